//! Lowering of a function of the array IR: loops over buffers, with scalars in registers.
//!
//! In: a function without derivatives (no `Jvp`, no `Vjp`). Out: a kernel with one port for each scalar leaf of a
//! parameter or of the result; an array of tuples becomes one array for each leaf. Only statements that the result
//! needs are lowered.
//!
//! **Values.** A scalar is a register, an integer a polynomial over registers, an array a view: part of a buffer, with
//! extents. Tuples, components, rows and variables are views of the same memory; nothing is copied for them. Views stay
//! valid because memory that a variable in scope can see is not overwritten (`builder`): an array is written when it is
//! made, and the state of a loop when no view of its old value is in scope.
//!
//! **Destinations** (destination passing). The consumer of an array offers memory for it: the port of the result, the
//! row of the array that is built around it, the next state. A build, fold or branch with a destination writes there
//! directly; any other value is copied there. Until the destination is filled, no other code reads or writes it, so
//! that it may be written early. A sum passes its accumulator to the code of its terms, which adds to it in place.
//!
//! **States.** A fold or while has the scalars of its state in carried registers. An array of the state has one buffer
//! if the next state can be made in place (`in_place` decides), and two otherwise: the body reads the current state and
//! writes the next one, which is copied over the current one at the end of the iteration.
//!
//! | module | owns |
//! | --- | --- |
//! | `layout` | leaves of types, views, values |
//! | `live` | statements that the result needs, and their last uses |
//! | `early` | rows of states, named before a step makes anything |
//! | `in_place` | states of loops that are overwritten while the next ones are made |
//! | `builder` | registers, code, lives of buffers |
//! | `offers` | destinations of values |
//! | `blocks` | blocks, statements without loops |
//! | `linear` | zeros, one-hot arrays, sums of two |
//! | `hot` | one-hot arrays made where they are added |
//! | `gather` | values of a state that are gathered before they are scattered |
//! | `terms` | order of the terms of sums of arrays |
//! | `distinct` | sums of arrays that differ from zero in distinct elements, for strict code |
//! | `loops` | build, fold, sum, loop, while, if |
//! | `deep` | stack for deeply nested blocks |

mod blocks;
mod builder;
mod deep;
mod distinct;
mod early;
mod gather;
mod hot;
mod in_place;
mod layout;
mod linear;
mod live;
mod loops;
mod offers;
mod terms;

use crate::events::{Event, walk};
use crate::kernel::{Class, Condition, Instr, Kernel, Place, Port, Reg, SizeParam, SizeSource};
use crate::prune::prune;
use crate::steps;
use builder::{Builder, Range};
use chainrule_base::{Arena, Diagnostic, Diagnostics, Name, Poly, Span};
use chainrule_ir::{Expr, Function, Size, VarId};
use chainrule_ops::Semantics;
use in_place::{Making, Narrow, Saving};
use layout::{Leaf, Scalar, Value, View};
use live::Live;
use offers::{Offer, Offers};
use std::collections::{BTreeMap, BTreeSet};

/// The kernel that computes `function`, where sums of arrays may be added in another order. Linear in the size of the
/// function, but for tuples, whose leaves are listed at each use.
///
/// # Errors
/// A limitation where the size of a result or of an array in the workspace depends on data; a bug where
/// the function is malformed, or holds a `Jvp`.
pub fn lower_function(function: &Function) -> Result<Kernel, Diagnostics> {
    lower_function_with(function, Semantics::Algebraic)
}

/// As [`lower_function`], under these semantics. Under strict ones, the kernel has the results of the reference
/// evaluator, bit for bit.
///
/// # Errors
/// As [`lower_function`].
pub fn lower_function_with(function: &Function, semantics: Semantics) -> Result<Kernel, Diagnostics> {
    deep::with_room_for(&function.body, || {
        let function = hot::apart(function);
        if semantics == Semantics::Algebraic {
            return lower(&early::rows(&terms::in_order(&function)), semantics, BTreeSet::new());
        }
        let (function, distinct) = distinct::sums(&function);
        lower(&early::rows(&function), semantics, distinct)
    })?
}

/// Lowers a function. `distinct` are the variables of sums of arrays whose operands differ from zero in distinct
/// elements, for strict semantics.
fn lower(function: &Function, semantics: Semantics, distinct: BTreeSet<VarId>) -> Result<Kernel, Diagnostics> {
    let mut l = Lowering {
        function,
        semantics,
        distinct,
        live: Live::of(function),
        defs: definitions(function),
        values: Arena::filled(function.vars.len(), None),
        offers: Arena::filled(function.vars.len(), None),
        known: BTreeMap::new(),
        narrow: BTreeMap::new(),
        steps: BTreeMap::new(),
        savings: BTreeMap::new(),
        b: Builder::default(),
    };
    let (mut sizes, inputs) = l.parameters();
    l.requirements(&sizes);
    l.equate();
    let outputs = l.results();
    std::mem::take(&mut l.b.errors).into_result(())?;

    let places: Vec<View> = outputs
        .iter()
        .map(|port| View { buffer: port.buffer, offset: Poly::zero(), dims: port.shape.clone() })
        .collect();
    l.b.open_code();
    l.load_parameters();
    let offers = places.iter().map(|place| Some(Offer::Write(place.clone()))).collect();
    let result = l.open_block(&function.body, offers);
    for (leaf, place) in result.iter().zip(&places) {
        l.b.settle(leaf, place);
    }
    l.b.close_frame();
    let mut body = l.b.close_code();
    l.b.errors.into_result(())?;
    prune(&mut body, l.b.regs.len(), &l.b.buffers);
    let mut names: BTreeSet<String> = sizes.iter().map(|size| size.name.to_string()).collect();
    for (reg, of) in l.b.naturals {
        sizes.push(SizeParam { name: unique(&mut names, "natural"), reg, source: SizeSource::Natural { of } });
    }
    let mut kernel = Kernel {
        name: identifier(&function.name).into(),
        regs: l.b.regs,
        sizes,
        inputs,
        outputs,
        buffers: l.b.buffers,
        requires: l.b.requires,
        workspace_reals: l.b.memory.total(Class::Real),
        workspace_ints: l.b.memory.total(Class::Int),
        externals: Vec::new(),
        failures: l.b.failures,
        zeros: Vec::new(),
        body,
    };
    if is_too_large(&kernel) {
        return Err(Diagnostic::limitation("an array has more elements than 64 bits can count")
            .with_reason("where elements lie in memory is computed in 64-bit integers")
            .with_help("make its extents smaller")
            .into());
    }
    steps::expand(&mut kernel);
    Ok(kernel)
}

/// Returns whether a length or an address does not fit into 64 bits.
fn is_too_large(kernel: &Kernel) -> bool {
    let buffers = kernel.buffers.as_slice().iter();
    let lengths = buffers.map(|buffer| &buffer.len).chain([&kernel.workspace_reals, &kernel.workspace_ints]);
    let conditions = kernel.requires.iter().map(|condition| &condition.size);
    lengths.chain(conditions).any(Poly::is_too_large)
        || walk(&kernel.body).any(|event| match event {
            Event::Instr(
                Instr::Load { at: poly, .. } | Instr::Store { at: poly, .. } | Instr::Int { value: poly, .. },
            )
            | Event::Instr(Instr::CheckIndex { len: poly, .. })
            | Event::For { count: poly, .. }
            | Event::While { limit: poly, .. } => poly.is_too_large(),
            Event::Copy { to, from, len, .. } => [&to.1, &from.1, len].into_iter().any(Poly::is_too_large),
            _ => false,
        })
}

/// Returns the expression that binds each variable, if a statement does.
fn definitions(function: &Function) -> Arena<VarId, Option<&Expr>> {
    let mut defs = Arena::filled(function.vars.len(), None);
    let mut open = vec![&function.body];
    while let Some(block) = open.pop() {
        for stmt in &block.stmts {
            defs[stmt.var] = Some(&stmt.expr);
            open.extend(stmt.expr.blocks());
        }
    }
    defs
}

/// One function on its way.
struct Lowering<'f> {
    function: &'f Function,
    /// Allowed rewrites: under algebraic semantics, sums of arrays may be added in another order.
    semantics: Semantics,
    /// Under strict semantics, sums whose operands differ from zero in distinct elements, and may be added one after
    /// another.
    distinct: BTreeSet<VarId>,
    live: Live,
    /// Expression that binds each variable, if a statement does.
    defs: Arena<VarId, Option<&'f Expr>>,
    values: Arena<VarId, Option<Value>>,
    /// Where the consumer of a variable wants its leaves.
    offers: Arena<VarId, Option<Offers>>,
    /// Conditions that are known to hold, or not to, where lowering is.
    known: BTreeMap<VarId, bool>,
    /// Leaves of builds that change one element of what is in their place, with the state that this is part of.
    narrow: BTreeMap<(VarId, usize), (Narrow, View)>,
    /// Steps to make in the memory of a loop's state, before its next state.
    steps: BTreeMap<VarId, Vec<Making>>,
    /// Parts to save before the statement that overwrites them.
    savings: BTreeMap<VarId, Vec<Saving>>,
    b: Builder,
}

impl<'f> Lowering<'f> {
    /// Makes sizes and input ports, and binds the parameters.
    fn parameters(&mut self) -> (Vec<SizeParam>, Vec<Port>) {
        let function = self.function;
        let size = Range { is_size: true, non_negative: true, ..Range::default() };
        for var in &function.sizes {
            let reg = self.b.ranged(size.clone());
            self.values[*var] = Some(vec![Leaf::Int(Poly::var(reg))]);
        }
        let mut ports: Vec<Port> = Vec::new();
        let mut values: Vec<SizeParam> = Vec::new();
        let (mut port_names, mut size_names) = (BTreeSet::new(), BTreeSet::new());
        for (idx, param) in function.params.iter().enumerate() {
            let var = &function.vars[*param];
            let name = var.name.as_ref().map_or_else(|| format!("arg{idx}"), ToString::to_string);
            let mut value = Vec::new();
            for leaf in layout::leaves(&var.ty) {
                let shape: Vec<Poly<Reg>> = leaf.dims.iter().map(|size| self.size(size)).collect();
                let input = ports.len();
                let buffer = self.b.port_buffer(leaf.scalar.class(), &shape, Place::Input(input));
                let name = unique(&mut port_names, &format!("{name}{}", leaf.path));
                let view = View { buffer, offset: Poly::zero(), dims: shape.clone() };
                value.push(match leaf.scalar {
                    _ if !shape.is_empty() => Leaf::Array(view),
                    Scalar::Int => {
                        let reg = self.b.ranged(Range { non_negative: false, ..size.clone() });
                        let name = unique(&mut size_names, &identifier(&name));
                        values.push(SizeParam { name, reg, source: SizeSource::Value { input } });
                        Leaf::Int(Poly::var(reg))
                    }
                    // Loaded when the body begins: see `load_parameters`.
                    Scalar::Double | Scalar::Bool => Leaf::Array(view),
                });
                ports.push(Port { name, shape, buffer });
            }
            self.values[*param] = Some(value);
        }
        let mut sizes = Vec::new();
        for var in &function.sizes {
            let extent = self.size(&Size::var(*var));
            let place = |port: &Port| port.shape.iter().position(|dim| *dim == extent);
            let source = ports.iter().enumerate().find_map(|(input, port)| place(port).map(|dim| (input, dim)));
            let (Some((input, dim)), Some(reg)) = (source, extent.as_var()) else {
                self.b.bug("a size is the extent of no argument");
                continue;
            };
            let name = function.vars[*var].name.as_ref().map_or("n", Name::as_str);
            let name = unique(&mut size_names, &identifier(name));
            sizes.push(SizeParam { name, reg, source: SizeSource::Extent { input, dim } });
        }
        sizes.extend(values);
        (sizes, ports)
    }

    /// Adds the conditions that the function requires, and records the integers that are never negative.
    fn requirements(&mut self, sizes: &[SizeParam]) {
        for requirement in &self.function.requires {
            let size = self.size(&requirement.size);
            for param in sizes {
                let (var, zero) = (Poly::var(param.reg), !requirement.exactly_zero);
                if zero && size.sub(&var).as_constant().is_some_and(|c| c <= 0) {
                    self.b.set_non_negative(param.reg);
                }
            }
            self.b.requires.push(Condition {
                size,
                exactly_zero: requirement.exactly_zero,
                message: requirement.message.clone(),
                span: requirement.span,
            });
        }
    }

    /// Lets one size, or a number, stand for all that are required to equal it, also as the extents of parameters: they
    /// are compared before the body runs.
    fn equate(&mut self) {
        let mut same: BTreeMap<Reg, Poly<Reg>> = BTreeMap::new();
        let equal = self.function.equal_sizes();
        let by_numbers = equal.numbers().iter().map(|(var, number)| (*var, Size::constant(*number)));
        for (replaced, kept) in by_numbers.chain(equal.pairs().iter().map(|(var, kept)| (*var, Size::var(*kept)))) {
            let (own, other) = (self.size(&Size::var(replaced)), self.size(&kept));
            same.extend(own.as_var().map(|own| (own, other.clone())));
            self.values[replaced] = Some(vec![Leaf::Int(other)]);
        }
        for param in &self.function.params {
            for leaf in self.values[*param].iter_mut().flatten() {
                let Leaf::Array(view) = leaf else { continue };
                for extent in &mut view.dims {
                    *extent = extent.substitute(|r| same.get(&r).cloned().unwrap_or_else(|| Poly::var(r)));
                }
            }
        }
    }

    /// Returns the output ports.
    fn results(&mut self) -> Vec<Port> {
        let function = self.function;
        let mut ports = Vec::new();
        let span = function.vars[function.body.result].span;
        for (idx, leaf) in layout::leaves(function.result_type()).into_iter().enumerate() {
            let vars: Vec<VarId> = leaf.dims.iter().flat_map(Size::vars).collect();
            if vars.iter().any(|var| self.values[*var].is_none()) {
                let mut diagnostic =
                    Diagnostic::limitation("the size of the result is computed while the function runs")
                        .with_reason("whoever calls the function provides the memory for its result beforehand")
                        .with_help("make the result as long as it can become, a size known from the arguments");
                if let Some(span) = span {
                    diagnostic = diagnostic.with_label(span, "how long this is cannot be known at entry");
                }
                self.b.errors.push(diagnostic);
                return ports;
            }
            let shape: Vec<Poly<Reg>> = leaf.dims.iter().map(|size| self.size(size)).collect();
            self.b.require_extents(&shape, span);
            let buffer = self.b.port_buffer(leaf.scalar.class(), &shape, Place::Output(idx));
            ports.push(Port { name: format!("result{}", leaf.path).into(), shape, buffer });
        }
        ports
    }

    /// Returns a size as a polynomial over registers.
    fn size(&mut self, size: &Size) -> Poly<Reg> {
        if let Some(c) = size.as_constant() {
            return Poly::constant(c);
        }
        let mut missing = false;
        let poly = size.substitute(|var| match self.values[var].as_deref() {
            Some([Leaf::Int(value)]) => value.clone(),
            _ => {
                missing = true;
                Poly::zero()
            }
        });
        if missing {
            self.b.bug("a size uses what is not an integer in scope");
        }
        if poly.is_too_large() {
            // Its integers are computed, each of which fits or fails.
            return size.substitute(|var| Poly::var(self.scalar(var)));
        }
        poly
    }

    /// Returns the phrase for `var`, a `kind`, in messages: ``the array `A` ``, or `an array`.
    fn called(&self, var: VarId, kind: &str) -> String {
        match &self.function.vars[var].name {
            Some(name) => format!("the {kind} `{name}`"),
            None => format!("an {kind}"),
        }
    }

    fn span(&self, var: VarId, stmt: Option<Span>) -> Option<Span> {
        stmt.or(self.function.vars[var].span)
    }
}

/// Returns `name`, or a variation on it that is not in `taken` yet.
pub(crate) fn unique(taken: &mut BTreeSet<String>, name: &str) -> Name {
    let mut candidate = name.to_owned();
    let mut k = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{k}");
        k += 1;
    }
    candidate.into()
}

/// Returns the C identifier nearest to `name`. Letters outside ASCII become `u` and their code, so that names of one
/// such letter differ.
fn identifier(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() => text.push(c),
            _ if c.is_ascii() => text.push('_'),
            _ => text.push_str(&format!("u{:x}", u32::from(c))),
        }
    }
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    text
}
