//! Verifier of the invariants of [`crate::kernel`].
//!
//! In: any kernel. Out: success, or one bug diagnostic for each broken invariant. [`verify`] checks the invariants that
//! hold for all sizes; [`check_layout`](crate::check_layout()) checks the memory plan for given sizes. Bounds of loads
//! and stores, and reads of undefined elements, can be checked only at run time: the interpreter does so.
//!
//! Scopes: a register can be used from its definition to the end of the block that defines it. Carried values of a loop
//! and results of a branch belong to the enclosing block; carried registers are also in scope in the loop's blocks.
//! Registers defined in the condition of a `while` are in scope in the condition only.

use crate::events::{Event, Part, parts};
use crate::kernel::{
    BufferId, Carried, Class, Computed, Instr, Kernel, LANES, MAX_BRANCHES, Order, PARTS, Place, Port, Reg, SizeSource,
};
use crate::zeros::Zeros;
use chainrule_base::{Diagnostic, Id, Name, Poly};
use chainrule_ops::{Op, Type};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Maximum number of reported invariants.
const MAX_ERRORS: usize = 100;

/// Checks every invariant that does not depend on the values of the sizes. Linear in the kernel.
///
/// # Errors
/// One bug diagnostic for each of the first hundred broken invariants.
pub fn verify(kernel: &Kernel) -> Result<(), Vec<Diagnostic>> {
    let known = kernel.regs.as_slice().iter().map(|class| undefined(*class)).collect();
    let mut v = Verifier { kernel, known, errors: Vec::new() };
    v.header();
    v.body();
    if v.errors.is_empty() { Ok(()) } else { Err(v.errors) }
}

const DEFINED: u8 = 1;
const IN_SCOPE: u8 = 2;
const INT: u8 = 4;

/// Returns the state of an undefined register of this class.
#[inline]
fn undefined(class: Class) -> u8 {
    if class == Class::Int { INT } else { 0 }
}

/// Returns the state of a register that can be used as `class`.
#[inline]
fn usable(class: Class) -> u8 {
    DEFINED | IN_SCOPE | undefined(class)
}

/// Whether all operands and the result of an operation are numbers.
static IS_NUMERIC: [bool; Computed::END] = {
    let mut table = [true; Computed::END];
    let mut i = 0;
    while i < 64 {
        table[i] = match Computed::of_index(i) {
            Some(op) => op.is_numeric() && !op.has_steps(),
            None => false,
        };
        i += 1;
    }
    table
};

struct Verifier<'a> {
    kernel: &'a Kernel,
    /// State of each register: defined, in scope, integer ([`DEFINED`] and so on). A valid use takes one comparison.
    known: Vec<u8>,
    errors: Vec<Diagnostic>,
}

/// Access to a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Verifier<'_> {
    fn wrong(&mut self, what: impl Display) {
        if self.errors.len() == MAX_ERRORS {
            return;
        }
        self.errors.push(
            Diagnostic::bug(format!("the kernel `{}` is malformed", self.kernel.name)).with_reason(what.to_string()),
        );
    }

    fn header(&mut self) {
        let kernel = self.kernel;
        if !is_c_identifier(&kernel.name) {
            self.wrong("its name is not a C identifier");
        }
        let mut names: BTreeSet<&Name> = BTreeSet::new();
        for size in &kernel.sizes {
            if !names.insert(&size.name) || !is_c_identifier(&size.name) {
                self.wrong(format_args!("the size name `{}` is not a C identifier of its own", size.name));
            }
            if let SizeSource::Natural { of } = &size.source {
                self.poly(of, format_args!("the size `{}`", size.name));
            }
            self.define(size.reg, Some(Class::Int));
            self.size_source(&size.name, size.reg, &size.source);
        }
        for (ports, what) in [(&kernel.inputs, "input"), (&kernel.outputs, "output")] {
            let mut names: BTreeSet<&Name> = BTreeSet::new();
            for (idx, port) in ports.iter().enumerate() {
                if ports.len() > 1 && !names.insert(&port.name) {
                    self.wrong(format_args!("two {what}s are called `{}`", port.name));
                }
                self.port(port, &if what == "input" { Place::Input(idx) } else { Place::Output(idx) });
            }
        }
        for (id, buffer) in kernel.buffers.iter() {
            self.poly(&buffer.len, format_args!("the length of {id}"));
            match &buffer.place {
                Place::Workspace(offset) => self.poly(offset, format_args!("the offset of {id}")),
                Place::Input(idx) if kernel.inputs.get(*idx).is_none_or(|port| port.buffer != id) => {
                    self.wrong(format_args!("{id} is the buffer of no input"));
                }
                Place::Output(idx) if kernel.outputs.get(*idx).is_none_or(|port| port.buffer != id) => {
                    self.wrong(format_args!("{id} is the buffer of no output"));
                }
                Place::Input(_) | Place::Output(_) => {}
            }
        }
        for condition in &kernel.requires {
            self.poly(&condition.size, format_args!("the condition `{}`", condition.message));
        }
        for zeros in &kernel.zeros {
            self.zeros(*zeros);
        }
        let end = |zeros: &Zeros| (zeros.buffer, zeros.last());
        if !kernel.zeros.is_sorted_by(|before, after| end(before) < (after.buffer, Some(after.first))) {
            self.wrong("its zeros are not in order");
        }
        self.poly(&kernel.workspace_reals, "the workspace of doubles");
        self.poly(&kernel.workspace_ints, "the workspace of integers");
    }

    fn zeros(&mut self, zeros: Zeros) {
        let id = zeros.buffer;
        let Some(buffer) = self.kernel.buffers.get(id) else {
            return self.wrong(format_args!("{id}, in which there are zeros, does not exist"));
        };
        let len = buffer.len.as_constant();
        if buffer.class != Class::Real || !matches!(buffer.place, Place::Output(_)) {
            self.wrong(format_args!("{id}, in which there are zeros, is no output of doubles"));
        } else if zeros.which & 1 == 0
            || zeros.first < 0
            || zeros.last().is_none_or(|last| len.is_none_or(|len| last >= len))
        {
            self.wrong(format_args!("zeros of {id} from element {} on are not inside", zeros.first));
        }
    }

    fn size_source(&mut self, name: &Name, reg: Reg, source: &SizeSource) {
        let (SizeSource::Extent { input, .. } | SizeSource::Value { input }) = source else { return };
        let Some(port) = self.kernel.inputs.get(*input) else {
            return self.wrong(format_args!("the size `{name}` comes from an input that is not there"));
        };
        let right = match source {
            SizeSource::Extent { dim, .. } => port.shape.get(*dim).and_then(Poly::as_var) == Some(reg),
            SizeSource::Value { .. } | SizeSource::Natural { .. } => {
                port.shape.is_empty() && self.kernel.buffers.get(port.buffer).is_some_and(|b| b.class == Class::Int)
            }
        };
        if !right {
            self.wrong(format_args!("the size `{name}` does not fit the input `{}`", port.name));
        }
    }

    fn port(&mut self, port: &Port, place: &Place) {
        for extent in &port.shape {
            self.poly(extent, format_args!("the shape of `{}`", port.name));
        }
        let len = port.shape.iter().fold(Poly::constant(1), |len, extent| len.mul(extent));
        match self.kernel.buffers.get(port.buffer) {
            None => self.wrong(format_args!("`{}` has no buffer", port.name)),
            Some(buffer) if buffer.place != *place => {
                self.wrong(format_args!("the buffer of `{}` is in another place", port.name));
            }
            Some(buffer) if buffer.len != len => {
                self.wrong(format_args!("the buffer of `{}` is {} long instead of {len}", port.name, buffer.len));
            }
            Some(_) => {}
        }
    }

    /// Defines `reg`; reports a second definition or another class.
    #[inline]
    fn define(&mut self, reg: Reg, class: Option<Class>) {
        match self.known.get_mut(reg.index()) {
            Some(known) if *known & DEFINED == 0 && class.is_none_or(|class| *known == undefined(class)) => {
                *known |= DEFINED | IN_SCOPE;
            }
            _ => self.wrong_definition(reg, class),
        }
    }

    #[cold]
    fn wrong_definition(&mut self, reg: Reg, class: Option<Class>) {
        let Some(found) = self.kernel.regs.get(reg) else {
            return self.wrong(format_args!("{reg} does not exist"));
        };
        if let Some(class) = class.filter(|class| class != found) {
            self.wrong(format_args!("{reg} is {found:?} where {class:?} is defined"));
        }
        let known = usable(*found);
        if self.known[reg.index()] & DEFINED != 0 {
            self.wrong(format_args!("{reg} is defined twice"));
        }
        self.known[reg.index()] = known;
    }

    #[inline]
    fn use_reg(&mut self, reg: Reg, class: Option<Class>, place: impl Display) {
        let known = self.known.get(reg.index()).copied().unwrap_or(0);
        let fits = match class {
            Some(class) => known == usable(class),
            None => known & IN_SCOPE != 0,
        };
        if !fits {
            self.wrong_use(reg, class, &place);
        }
    }

    #[cold]
    fn wrong_use(&mut self, reg: Reg, class: Option<Class>, place: &dyn Display) {
        match (self.kernel.regs.get(reg), class) {
            (None, _) => self.wrong(format_args!("{place} uses {reg}, which does not exist")),
            (Some(_), _) if self.known[reg.index()] & IN_SCOPE == 0 => {
                self.wrong(format_args!("{place} uses {reg}, which is not in scope"));
            }
            (Some(found), Some(class)) if class != *found => {
                self.wrong(format_args!("{place} uses {reg}, which is {found:?}, as {class:?}"));
            }
            _ => {}
        }
    }

    #[inline]
    fn poly(&mut self, poly: &Poly<Reg>, place: impl Display) {
        if poly.as_constant().is_none() {
            if poly.is_too_large() {
                self.wrong(format_args!("{place} has a number that does not fit into 64 bits"));
            }
            self.variables(poly, &place);
        }
    }

    #[inline(never)]
    fn variables(&mut self, poly: &Poly<Reg>, place: &dyn Display) {
        for (monomial, _) in poly.terms() {
            for reg in monomial {
                self.use_reg(*reg, Some(Class::Int), place);
            }
        }
    }

    #[inline]
    fn buffer(&mut self, id: BufferId, access: Access, place: impl Display) -> Option<Class> {
        let Some(buffer) = self.kernel.buffers.get(id) else {
            self.wrong(format_args!("{place} names {id}, which does not exist"));
            return None;
        };
        if access == Access::Write && matches!(buffer.place, Place::Input(_)) {
            self.wrong(format_args!("{place} writes the input {id}"));
        }
        Some(buffer.class)
    }

    fn failure(&mut self, failure: usize) {
        if failure >= self.kernel.failures.len() {
            self.wrong(format_args!("failure {failure} has no message"));
        }
    }

    fn class(&self, reg: Reg) -> Option<Class> {
        self.kernel.regs.get(reg).copied()
    }

    /// Verifies the body. `scopes` holds the registers defined in each open block but the outermost, for their removal
    /// at the block's end.
    fn body(&mut self) {
        let mut scopes: Vec<Vec<Reg>> = Vec::new();
        let mut loops = 0;
        for part in parts(&self.kernel.body) {
            let event = match part {
                Part::Event(event) => event,
                Part::Block(instrs) => {
                    instrs.iter().for_each(|instr| self.instr(instr));
                    if let Some(scope) = scopes.last_mut() {
                        scope.extend(instrs.iter().filter_map(Instr::dst));
                    }
                    continue;
                }
            };
            match event {
                // They come in blocks.
                Event::Instr(_) => {}
                Event::Copy { to, from, len, .. } => self.copy(to, from, len),
                Event::For { index, count, carried, order } => {
                    self.poly(count, "a loop's count");
                    let may_be_parallel = loops == 0 && scopes.len() <= MAX_BRANCHES;
                    if !can_run(order, count, carried, may_be_parallel) {
                        self.wrong(format_args!("the loop over {index} cannot run at once"));
                    }
                    self.carry(carried, &mut scopes);
                    scopes.push(Vec::new());
                    loops += 1;
                    self.define(index, Some(Class::Int));
                    scopes.last_mut().into_iter().for_each(|scope| scope.push(index));
                }
                Event::While { carried, limit } => {
                    self.poly(limit, "a loop's limit");
                    self.carry(carried, &mut scopes);
                    scopes.push(Vec::new());
                    loops += 1;
                }
                Event::Test { holds, failure } => {
                    self.use_reg(holds, Some(Class::Int), "a condition");
                    self.failure(failure);
                    self.leave(scopes.pop());
                    scopes.push(Vec::new());
                }
                Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
                    for c in carried {
                        self.use_reg(c.next, self.class(c.var), "the end of a loop");
                    }
                    loops -= 1;
                    self.leave(scopes.pop());
                }
                Event::If { condition } => {
                    self.use_reg(condition, Some(Class::Int), "a branch");
                    scopes.push(Vec::new());
                }
                Event::Else { choices } => {
                    for c in choices {
                        self.use_reg(c.then, self.class(c.var), "the end of a branch");
                    }
                    self.leave(scopes.pop());
                    scopes.push(Vec::new());
                }
                Event::EndIf { choices } => {
                    for c in choices {
                        self.use_reg(c.otherwise, self.class(c.var), "the end of a branch");
                    }
                    self.leave(scopes.pop());
                    for c in choices {
                        self.define(c.var, None);
                        scopes.last_mut().into_iter().for_each(|scope| scope.push(c.var));
                    }
                }
            }
        }
    }

    fn copy(&mut self, to: &(BufferId, Poly<Reg>), from: &(BufferId, Poly<Reg>), len: &Poly<Reg>) {
        for poly in [&to.1, &from.1, len] {
            self.poly(poly, "a copy");
        }
        if self.buffer(to.0, Access::Write, "a copy") != self.buffer(from.0, Access::Read, "a copy") {
            self.wrong(format_args!("a copy from {} to {} changes the class", from.0, to.0));
        }
        if to == from {
            self.wrong(format_args!("a copy of {} onto itself", to.0));
        }
    }

    fn carry(&mut self, carried: &[Carried], scopes: &mut [Vec<Reg>]) {
        for c in carried {
            self.use_reg(c.init, self.class(c.var), "a loop's initial state");
        }
        for c in carried {
            self.define(c.var, None);
        }
        if let Some(scope) = scopes.last_mut() {
            scope.extend(carried.iter().map(|c| c.var));
        }
    }

    fn leave(&mut self, scope: Option<Vec<Reg>>) {
        for reg in scope.into_iter().flatten() {
            if let Some(known) = self.known.get_mut(reg.index()) {
                *known &= !IN_SCOPE;
            }
        }
    }

    #[inline]
    fn instr(&mut self, instr: &Instr) {
        if let Some((dst, args, what)) = instr.computes()
            && IS_NUMERIC[what.index()]
        {
            let known = self.known.as_mut_slice();
            let is_usable = |r: &Reg| known.get(r.index()) == Some(&(DEFINED | IN_SCOPE));
            // Unused places repeat the first argument.
            if args.iter().all(is_usable)
                && let Some(known @ 0) = known.get_mut(dst.index())
            {
                *known = DEFINED | IN_SCOPE;
                return;
            }
        }
        match instr {
            Instr::Const { dst, .. } => self.define(*dst, Some(Class::Real)),
            Instr::Load { dst, buffer, at } => {
                self.poly(at, "a load");
                let class = self.buffer(*buffer, Access::Read, "a load");
                self.define(*dst, class);
            }
            Instr::Store { buffer, at, value } => {
                self.poly(at, "a store");
                let class = self.buffer(*buffer, Access::Write, "a store");
                self.use_reg(*value, class, "a store");
            }
            _ => self.rare_instr(instr),
        }
    }

    /// Verifies an instruction that is rare in straight-line code.
    #[inline(never)]
    fn rare_instr(&mut self, instr: &Instr) {
        match instr {
            Instr::Const { .. } | Instr::Load { .. } | Instr::Store { .. } => {}
            Instr::Int { dst, value } => {
                self.poly(value, "an integer");
                self.define(*dst, Some(Class::Int));
            }
            Instr::Op { op, .. } if op.has_steps() => {
                self.wrong(format_args!("the composite operator {} is not expanded", op.name()));
            }
            Instr::Op { dst, op, args } if op.is_numeric() => {
                for arg in &args[..op.arity()] {
                    self.use_reg(*arg, Some(Class::Real), Called(*op));
                }
                self.define(*dst, Some(Class::Real));
            }
            Instr::Op { dst, op, args } => {
                for (arg, ty) in args.iter().zip(op.row().args) {
                    self.use_reg(*arg, Some(class_of(*ty)), Called(*op));
                }
                self.define(*dst, Some(class_of(op.row().result)));
            }
            Instr::IntOp { dst, op, args, failure } => {
                if op.row().int.is_none() {
                    self.wrong(format_args!("{} has no integer form", op.name()));
                }
                for arg in &args[..op.arity()] {
                    self.use_reg(*arg, Some(Class::Int), Called(*op));
                }
                self.failure(*failure);
                self.define(*dst, Some(Class::Int));
            }
            Instr::MulAdd { dst, signs, args } => {
                args.iter().for_each(|arg| self.use_reg(*arg, Some(Class::Real), signs.name()));
                self.define(*dst, Some(Class::Real));
            }
            Instr::ToReal { dst, src } => {
                self.use_reg(*src, Some(Class::Int), "a conversion");
                self.define(*dst, Some(Class::Real));
            }
            Instr::ToInt { dst, src } => {
                self.use_reg(*src, Some(Class::Real), "a conversion");
                self.define(*dst, Some(Class::Int));
            }
            Instr::External { dst, function, args } => {
                match self.kernel.externals.get(*function) {
                    None => self.wrong(format_args!("external {function} does not exist")),
                    Some(external) if external.arity != args.len() => {
                        self.wrong(format_args!("`{}` is called with {} arguments", external.name, args.len()));
                    }
                    Some(_) => {}
                }
                for arg in args {
                    self.use_reg(*arg, Some(Class::Real), "a call");
                }
                self.define(*dst, Some(Class::Real));
            }
            Instr::CheckIndex { index, len, failure } => {
                self.use_reg(*index, Some(Class::Int), "a check");
                self.poly(len, "a check");
                self.failure(*failure);
            }
        }
    }
}

/// Name of an operator, looked up when it is displayed.
struct Called(Op);

impl Display for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Returns the class of registers for values of type `ty` of the operator table.
#[must_use]
pub fn class_of(ty: Type) -> Class {
    match ty {
        Type::Num => Class::Real,
        Type::Bool => Class::Int,
    }
}

fn is_c_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether iterations with these loop-carried values can run in this order.
fn can_run(order: Order, count: &Poly<Reg>, carried: &[Carried], may_be_parallel: bool) -> bool {
    match order {
        Order::InOrder => true,
        // The interpreter checks unknown trip counts.
        Order::Lanes => carried.is_empty() && count.as_constant().is_none_or(|n| n <= LANES),
        Order::Parts => may_be_parallel && carried.is_empty() && count.as_constant() == Some(PARTS),
    }
}
