//! Parts of values: elements, ranges of elements and fields of results and of differentiation parameters.
//!
//! In: a function, and [`Step`]s into its result or its parameters. Out: a function with a part of the result
//! ([`select`]); a function with a further parameter for each part of a parameter, which is added to the part
//! ([`with_shifts`]): its derivative by the shift, at a shift of zero ([`at_zero`]), is the derivative by the part.
//!
//! A shift is added as a one-hot array, so that a directional derivative by an element touches that element only. The
//! rest of the parameter is constant.
//!
//! Holds: an index that is out of range of a constant extent has no type ([`part_type`]); for other extents the
//! function gets a requirement, which is checked at entry.

use chainrule_base::Name;
use chainrule_ir::{Builder, Function, Renaming, Requirement, Size, Type, VarId};
use chainrule_ops::Op;

/// Step from a value to a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Field of a tuple.
    Field(usize),
    /// All elements of an array: the following steps apply to each.
    Each,
    /// Element of an array, from 0.
    Index(i64),
    /// Elements of an array from the first number to before the second.
    Range(i64, i64),
}

/// Part of a value.
#[derive(Clone, PartialEq, Debug)]
pub struct PartOf {
    /// Number of the parameter; 0 for the result.
    pub param: usize,
    /// Steps to the part.
    pub steps: Vec<Step>,
    /// Name of the shift, or of the field of the selection.
    pub name: Name,
    /// Text of the request, for messages: `x[3]`.
    pub text: String,
}

/// Returns the type of the part of `ty` at `steps`; `None` if there is no such part.
#[must_use]
pub fn part_type(ty: &Type, steps: &[Step]) -> Option<Type> {
    let Some((step, rest)) = steps.split_first() else { return Some(ty.clone()) };
    let below = |size: &Size, end: i64| size.as_constant().is_none_or(|n| end <= n);
    match (step, ty) {
        (Step::Field(k), Type::Tuple(fields, _)) => part_type(fields.get(*k)?, rest),
        (Step::Each, Type::Array(size, element)) => Some(Type::array(size.clone(), part_type(element, rest)?)),
        (Step::Index(k), Type::Array(size, element)) if *k >= 0 && below(size, k.checked_add(1)?) => {
            part_type(element, rest)
        }
        (Step::Range(begin, end), Type::Array(size, element)) if 0 <= *begin && begin <= end && below(size, *end) => {
            Some(Type::array(Size::constant(end - begin), part_type(element, rest)?))
        }
        _ => None,
    }
}

/// Returns whether two parts of one value have a common component.
#[must_use]
pub fn overlap(a: &[Step], b: &[Step]) -> bool {
    let range = |step: &Step| match *step {
        Step::Field(_) | Step::Each => None,
        Step::Index(k) => Some((k, k.saturating_add(1))),
        Step::Range(begin, end) => Some((begin, end)),
    };
    a.iter().zip(b).all(|steps| match steps {
        (Step::Field(a), Step::Field(b)) => a == b,
        (a, b) => match (range(a), range(b)) {
            (Some(a), Some(b)) => a.0.max(b.0) < a.1.min(b.1),
            _ => true,
        },
    })
}

/// Returns `function` with `parts` of its result: a single part bare, several as a record.
#[must_use]
pub fn select(function: &Function, parts: &[PartOf]) -> Function {
    let mut out = Builder::rewriting(function);
    for part in parts {
        require(&mut out, function.result_type(), part);
    }
    let whole = out.inline(&function.body, &mut Renaming::new());
    let picked: Vec<VarId> = parts.iter().map(|part| pick(&mut out, whole, &part.steps)).collect();
    let result = match picked.as_slice() {
        [one] => *one,
        all => out.record(parts.iter().map(|part| part.name.clone()).collect(), all),
    };
    out.finish(result)
}

/// Returns `function` with a shift of each of `parts`: a further parameter after the others, with the part's name and
/// the type of its tangents. Parts without doubles get none.
#[must_use]
pub fn with_shifts(function: &Function, parts: &[PartOf]) -> Function {
    let mut out = Builder::rewriting(function);
    let mut renaming = Renaming::new();
    for part in parts {
        let Some(param) = function.params.get(part.param) else { continue };
        let ty = part_type(function.ty(*param), &part.steps).and_then(|ty| ty.tangent());
        let Some(ty) = ty else { continue };
        require(&mut out, function.ty(*param), part);
        let shift = out.param(&part.name, ty);
        let value = renaming.get(*param);
        let shifted = shifted(&mut out, value, &part.steps, shift);
        renaming.insert(*param, shifted);
    }
    let result = out.inline(&function.body, &mut renaming);
    out.finish(result)
}

/// Returns a derivative of a function [`with_shifts`], at shifts of zero: its parameters from number `first` on, `n` of
/// them, are removed.
#[must_use]
pub fn at_zero(derived: &Function, first: usize, n: usize) -> Function {
    let shifts: Vec<VarId> = derived.params.iter().skip(first).take(n).copied().collect();
    let mut out = Builder::rewriting(derived);
    let zero = |out: &mut Builder, shift: &VarId| match derived.ty(*shift) {
        Type::Double => out.real(0.0),
        ty => out.zero(ty.clone()),
    };
    let mut renaming: Renaming = shifts.iter().map(|shift| (*shift, zero(&mut out, shift))).collect();
    let result = out.inline(&derived.body, &mut renaming);
    let mut function = out.finish(result);
    function.params.retain(|param| !shifts.contains(param));
    function
}

/// Adds the requirements that the indices of `part` are in range.
fn require(out: &mut Builder, ty: &Type, part: &PartOf) {
    let mut ty = ty;
    for step in &part.steps {
        ty = match (step, ty) {
            (Step::Field(k), Type::Tuple(fields, _)) if *k < fields.len() => &fields[*k],
            (step, Type::Array(size, element)) => {
                let least = match step {
                    Step::Index(k) => k.saturating_add(1),
                    Step::Range(_, end) => *end,
                    Step::Field(_) | Step::Each => 0,
                };
                if least > 0 && size.as_constant().is_none() {
                    out.require(Requirement {
                        size: size.sub(&Size::constant(least)),
                        exactly_zero: false,
                        message: format!("there is no `{}`: its array has too few elements", part.text),
                        span: None,
                    });
                }
                element
            }
            _ => return,
        };
    }
}

// Recursive on the nesting of types only, here and below.
fn pick(out: &mut Builder, value: VarId, steps: &[Step]) -> VarId {
    let Some((step, rest)) = steps.split_first() else { return value };
    match *step {
        Step::Field(k) => {
            let field = out.component(value, k);
            pick(out, field, rest)
        }
        Step::Each => {
            let size = out.length(value);
            elements(out, size, value, 0, rest)
        }
        Step::Index(k) => {
            let index = out.int(k);
            let element = out.get_proved(value, index);
            pick(out, element, rest)
        }
        Step::Range(begin, end) => elements(out, Size::constant(end - begin), value, begin, rest),
    }
}

/// Emits the array of the parts at `steps` of `size` elements of `value`, from number `begin` on.
fn elements(out: &mut Builder, size: Size, value: VarId, begin: i64, steps: &[Step]) -> VarId {
    out.build(size, |out, index| {
        let index = plus(out, index, begin);
        let element = out.get_proved(value, index);
        pick(out, element, steps)
    })
}

fn plus(out: &mut Builder, index: VarId, more: i64) -> VarId {
    let more = out.int(more);
    out.op(Op::Add, &[index, more])
}

/// Emits `value` with `shift` added to its part at `steps`.
fn shifted(out: &mut Builder, value: VarId, steps: &[Step], shift: VarId) -> VarId {
    let ty = out.ty(value).clone();
    if ty.is_linear() {
        let shift = embedded(out, &ty, steps, shift);
        return out.plus(value, shift);
    }
    let (step, rest) = match steps.split_first() {
        Some((step, rest)) => (Some(*step), rest),
        None => (None, steps),
    };
    match (step, &ty) {
        (Some(Step::Field(at)), Type::Tuple(fields, _)) => {
            let parts: Vec<VarId> = (0..fields.len())
                .map(|k| {
                    let field = out.component(value, k);
                    if k == at { shifted(out, field, rest, shift) } else { field }
                })
                .collect();
            tuple(out, &parts, &ty)
        }
        // The shift has a field for each field with doubles.
        (None, Type::Tuple(fields, _)) => {
            let mut with_doubles = 0;
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                let part = out.component(value, k);
                parts.push(if field.has_double() {
                    let shift = out.component(shift, with_doubles);
                    with_doubles += 1;
                    shifted(out, part, rest, shift)
                } else {
                    part
                });
            }
            tuple(out, &parts, &ty)
        }
        (None | Some(Step::Each), Type::Array(size, _)) => out.build(size.clone(), |out, index| {
            let (element, shift) = (out.get_proved(value, index), out.get_proved(shift, index));
            shifted(out, element, rest, shift)
        }),
        (Some(Step::Index(at)), Type::Array(size, _)) => out.build(size.clone(), |out, index| {
            let at = out.int(at);
            let here = out.op(Op::Eq, &[index, at]);
            let element = out.get_proved(value, index);
            out.if_(here, |out| shifted(out, element, rest, shift), |_| element)
        }),
        (Some(Step::Range(begin, end)), Type::Array(size, _)) => out.build(size.clone(), |out, index| {
            let (first, end) = (out.int(begin), out.int(end));
            let (from, to) = (out.op(Op::Le, &[first, index]), out.op(Op::Lt, &[index, end]));
            let here = out.op(Op::And, &[from, to]);
            let element = out.get_proved(value, index);
            let inside = |out: &mut Builder| {
                let index = plus(out, index, begin.saturating_neg());
                let shift = out.get_proved(shift, index);
                shifted(out, element, rest, shift)
            };
            out.if_(here, inside, |_| element)
        }),
        _ => value,
    }
}

fn tuple(out: &mut Builder, parts: &[VarId], like: &Type) -> VarId {
    match like {
        Type::Tuple(_, Some(names)) => out.record(names.clone(), parts),
        _ => out.tuple(parts),
    }
}

/// Emits the value of the linear type `ty` that is `shift` at `steps`, and zero elsewhere.
fn embedded(out: &mut Builder, ty: &Type, steps: &[Step], shift: VarId) -> VarId {
    let Some((step, rest)) = steps.split_first() else { return shift };
    match (*step, ty) {
        (Step::Field(at), Type::Tuple(fields, _)) => {
            let parts: Vec<VarId> = (fields.iter().enumerate())
                .map(|(k, field)| match field {
                    _ if k == at => embedded(out, field, rest, shift),
                    Type::Double => out.real(0.0),
                    field => out.zero(field.clone()),
                })
                .collect();
            tuple(out, &parts, ty)
        }
        (Step::Each, Type::Array(size, element)) => out.build(size.clone(), |out, index| {
            let shift = out.get_proved(shift, index);
            embedded(out, element, rest, shift)
        }),
        (Step::Index(at), Type::Array(size, element)) => {
            let value = embedded(out, element, rest, shift);
            let index = out.int(at);
            out.one_hot_proved(size.clone(), index, value)
        }
        (Step::Range(begin, end), Type::Array(size, element)) => out.sum(Size::constant(end - begin), |out, index| {
            let shift = out.get_proved(shift, index);
            let value = embedded(out, element, rest, shift);
            let index = plus(out, index, begin);
            out.one_hot_proved(size.clone(), index, value)
        }),
        _ => shift,
    }
}
