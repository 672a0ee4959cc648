//! Divergence analysis: values that vary between points, and whether points can run in lanes.
//!
//! In: a kernel, its events. Out: whether each register varies between points, if several points can run in lanes:
//! their control, addresses and checks are uniform. Numbers always vary. Truth values computed from numbers vary; they
//! may be carried, selected, combined, select values, be converted to numbers and stored into results. Any other use
//! would be divergent control, and points then run one by one. They also do if integers are loaded from arguments other
//! than sizes, or from results.

use chainrule_base::{Arena, Poly};
use chainrule_kernel::{BufferId, Class, Event, Instr, Kernel, Place, Reg, SizeSource};
use chainrule_text::Facts;

/// Maximum number of passes over loop-carried values; beyond, points run one by one.
const PASSES: usize = 64;

/// Returns whether each register varies; `None` if points cannot run in lanes.
pub(crate) fn varying(kernel: &Kernel, events: &[Event<'_>], facts: &Facts) -> Option<Arena<Reg, bool>> {
    let mut differs = Arena::filled(kernel.regs.len(), false);
    for r in kernel.regs.ids() {
        differs[r] = kernel.regs[r] == Class::Real;
    }
    let written = || events.iter().filter(|event| facts.is_written(event));
    for pass in 0.. {
        let mut changed = false;
        for event in written() {
            changed |= spread(event, &mut differs);
        }
        if !changed {
            break;
        }
        if pass == PASSES {
            return None;
        }
    }
    // An argument that is a single integer is not loaded by any statement.
    let read = |event: &&Event<'_>| match event {
        Event::Instr(Instr::Load { dst, .. }) => facts.needed[*dst],
        event => facts.is_written(event),
    };
    events.iter().filter(read).all(|event| is_uniform(event, kernel, &differs)).then_some(differs)
}

/// Marks the definitions of `event` that depend on varying values; returns whether any is new.
fn spread(event: &Event<'_>, differs: &mut Arena<Reg, bool>) -> bool {
    let mut changed = false;
    let mut set = |differs: &mut Arena<Reg, bool>, var: Reg, value: bool| {
        changed |= value && !differs[var];
        differs[var] |= value;
    };
    match event {
        Event::Instr(Instr::Op { dst, op, args }) => {
            let value = args[..op.arity()].iter().any(|r| differs[*r]);
            set(differs, *dst, value);
        }
        Event::For { carried, .. }
        | Event::EndFor { carried, .. }
        | Event::While { carried, .. }
        | Event::EndWhile { carried } => {
            for c in *carried {
                let value = differs[c.init] || differs[c.next];
                set(differs, c.var, value);
            }
        }
        Event::EndIf { choices } => {
            for c in *choices {
                let value = differs[c.then] || differs[c.otherwise];
                set(differs, c.var, value);
            }
        }
        _ => {}
    }
    changed
}

/// Returns whether `event` is uniform, so that all points can execute it in lanes.
fn is_uniform(event: &Event<'_>, kernel: &Kernel, differs: &Arena<Reg, bool>) -> bool {
    let poly = |p: &Poly<Reg>| p.vars().into_iter().all(|r| !differs[r]);
    let int = |buffer: BufferId| kernel.buffers[buffer].class == Class::Int;
    let in_workspace = |buffer: BufferId| matches!(kernel.buffers[buffer].place, Place::Workspace(_));
    let is_size = |buffer: BufferId| match kernel.buffers[buffer].place {
        Place::Input(input) => kernel.sizes.iter().any(|size| size.source == SizeSource::Value { input }),
        _ => false,
    };
    match event {
        Event::Instr(instr) => match instr {
            Instr::Const { .. }
            | Instr::Op { .. }
            | Instr::MulAdd { .. }
            | Instr::ToReal { .. }
            | Instr::External { .. } => true,
            Instr::ToInt { .. } => false,
            Instr::Int { value, .. } => poly(value),
            Instr::IntOp { op, args, .. } => args[..op.arity()].iter().all(|r| !differs[*r]),
            Instr::Load { buffer, at, .. } => poly(at) && (!int(*buffer) || in_workspace(*buffer) || is_size(*buffer)),
            Instr::Store { buffer, at, value } => {
                poly(at) && (!int(*buffer) || !in_workspace(*buffer) || !differs[*value])
            }
            Instr::CheckIndex { index, len, .. } => !differs[*index] && poly(len),
        },
        Event::Copy { to, from, len, .. } => {
            poly(&to.1) && poly(&from.1) && poly(len) && (!int(from.0) || in_workspace(from.0))
        }
        Event::For { count: size, .. } | Event::While { limit: size, .. } => poly(size),
        Event::Test { holds: reg, .. } | Event::If { condition: reg } => !differs[*reg],
        Event::EndFor { .. } | Event::EndWhile { .. } | Event::Else { .. } | Event::EndIf { .. } => true,
    }
}
