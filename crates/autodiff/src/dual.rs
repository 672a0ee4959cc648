//! Dual numbers in the code that forward mode generates.
//!
//! The dual number of a scalar is a pair of value and tangent, that of an array an array of duals, that of a tuple a
//! tuple of duals; inactive parts are unchanged ([`Activity::dual_type`]). A [`Dual`] is a dual number before it is
//! emitted: the value and the tangent of a scalar are two variables until the pair is needed, so straight-line code
//! never builds one.
//!
//! [`pack`] emits a dual as one variable, [`unpack`] is its inverse. At control-flow joins (branches, loop states,
//! elements of an array) both sides are packed to the joined activity, and inactive parts are paired with zeros.

use crate::activity::Activity;
use crate::emit::{At, Emitter, Scalar};
use chainrule_ir::{Type, VarId};

/// Dual number of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Dual {
    /// Inactive: the value; the tangent is structurally zero.
    Plain(VarId),
    /// Active double.
    Pair {
        /// Value.
        value: VarId,
        /// Tangent.
        tangent: Scalar,
    },
    /// Emitted array or tuple: a variable of type `activity.dual_type(..)`.
    Packed(VarId, Activity),
    /// Array or tuple with values and tangents in two variables of its own type: a parameter. Its activity is full.
    Zip {
        /// Values.
        at: VarId,
        /// Tangents.
        along: VarId,
    },
    /// Tuple that is not emitted.
    Tuple(Vec<Self>),
}

/// Returns the dual number with value `at` and tangent `along`, with all doubles active.
pub(crate) fn zip(out: &Emitter, at: VarId, along: VarId) -> Dual {
    let ty = out.ty(at);
    match ty {
        Type::Double => Dual::Pair { value: at, tangent: out.scalar(along) },
        _ if !ty.has_double() => Dual::Plain(at),
        _ => Dual::Zip { at, along },
    }
}

/// Returns the dual number in the variable `var` of a dual type.
pub(crate) fn unpack(out: &mut Emitter, var: VarId, activity: &Activity) -> Dual {
    match activity {
        Activity::Inactive => Dual::Plain(var),
        Activity::Active => {
            let (value, tangent) = (out.component(var, 0), out.component(var, 1));
            Dual::Pair { value, tangent: Scalar::Var(tangent) }
        }
        Activity::Array(_) | Activity::Tuple(_) => Dual::Packed(var, activity.clone()),
    }
}

/// Emits an access of an array (D-Get).
pub(crate) fn get(out: &mut Emitter, dual: &Dual, at: At) -> Dual {
    match dual {
        Dual::Plain(array) => Dual::Plain(out.get(*array, at)),
        Dual::Packed(array, activity) => {
            let element = out.get(*array, at);
            unpack(out, element, &activity.element())
        }
        Dual::Zip { at: value, along } => {
            let (value, along) = (out.get(*value, at), out.get(*along, at));
            zip(out, value, along)
        }
        // A double or a tuple is not an array, which the verifier has checked.
        Dual::Pair { .. } | Dual::Tuple(_) => dual.clone(),
    }
}

/// Returns component `k` of a dual tuple (D-Fst, D-Snd).
pub(crate) fn component(out: &mut Emitter, dual: &Dual, k: usize) -> Dual {
    match dual {
        Dual::Plain(tuple) => Dual::Plain(out.component(*tuple, k)),
        Dual::Packed(tuple, activity) => {
            let part = out.component(*tuple, k);
            unpack(out, part, &activity.component(k))
        }
        Dual::Zip { at, along } => {
            let (at, along) = (out.component(*at, k), out.component(*along, k));
            zip(out, at, along)
        }
        Dual::Tuple(parts) => parts.get(k).cloned().unwrap_or_else(|| dual.clone()),
        Dual::Pair { .. } => dual.clone(),
    }
}

/// Emits `dual`, of the plain type `ty`, as one variable of type `to.dual_type(ty)`. Tangents of leaves that `to` lacks
/// are left out.
// Recursive on the depth of a type.
pub(crate) fn pack(out: &mut Emitter, dual: &Dual, ty: &Type, to: &Activity) -> VarId {
    match (dual, to) {
        (_, Activity::Inactive) => split(out, dual, ty, Half::Value),
        (Dual::Plain(var), Activity::Active) => out.pair(*var, Scalar::Const(0.0)),
        (Dual::Pair { value, tangent }, _) => out.pair(*value, *tangent),
        (Dual::Packed(var, activity), _) if activity == to => *var,
        (_, Activity::Array(inner)) => match ty {
            Type::Array(size, element) => out.build(size.clone(), &mut |out, index| {
                let part = get(out, dual, At { index, proved: true });
                pack(out, &part, element, inner)
            }),
            _ => some_variable(dual),
        },
        (_, Activity::Tuple(inner)) => match ty {
            Type::Tuple(fields, _) => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, (field, to)) in fields.iter().zip(inner).enumerate() {
                    let part = component(out, dual, k);
                    parts.push(pack(out, &part, field, to));
                }
                out.tuple(parts, to.dual_type(ty))
            }
            _ => some_variable(dual),
        },
        (Dual::Packed(..) | Dual::Zip { .. } | Dual::Tuple(_), _) => some_variable(dual),
    }
}

// Only for ill-typed duals, which the verifier reports.
fn some_variable(dual: &Dual) -> VarId {
    match dual {
        Dual::Plain(var) | Dual::Packed(var, _) | Dual::Pair { value: var, .. } | Dual::Zip { at: var, .. } => *var,
        Dual::Tuple(parts) => parts.first().map_or_else(|| chainrule_base::Id::new(0), some_variable),
    }
}

/// Returns value or derivative of `dual`, of the plain type `ty`, as one variable of that type. In a derivative,
/// inactive doubles are 0, and integers and truth values are those of the value.
// Recursive on the depth of a type.
pub(crate) fn split(out: &mut Emitter, dual: &Dual, ty: &Type, which: Half) -> VarId {
    match (dual, ty) {
        (Dual::Plain(var), _) if which == Half::Value || !ty.has_double() => *var,
        (Dual::Plain(_), Type::Double) => out.real(0.0),
        (Dual::Plain(_), _) if ty.is_linear() => out.builder.zero(ty.clone()),
        (Dual::Pair { value, .. }, _) if which == Half::Value => *value,
        (Dual::Pair { tangent, .. }, _) => out.double(*tangent),
        (Dual::Zip { at, along }, _) if which == Half::Value || ty.is_linear() => {
            if which == Half::Value {
                *at
            } else {
                *along
            }
        }
        (_, Type::Array(size, element)) => out.build(size.clone(), &mut |out, index| {
            let part = get(out, dual, At { index, proved: true });
            split(out, &part, element, which)
        }),
        (_, Type::Tuple(fields, _)) => {
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                let part = component(out, dual, k);
                parts.push(split(out, &part, field, which));
            }
            out.tuple(parts, ty.clone())
        }
        _ => some_variable(dual),
    }
}

/// Half of a dual number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Half {
    /// Value: of the plain type.
    Value,
    /// Tangent: of the [`Type::tangent`] of the plain type.
    Tangent,
}

/// Returns one half of `dual`, a variable of type `ty.dual()`. `ty` must contain a double for the tangent.
// Recursive on the depth of a type.
pub(crate) fn half(out: &mut Emitter, dual: VarId, ty: &Type, which: Half) -> VarId {
    match ty {
        Type::Double => out.component(dual, usize::from(which == Half::Tangent)),
        _ if !ty.has_double() => dual,
        Type::Array(size, element) => out.build(size.clone(), &mut |out, index| {
            let part = out.element(dual, index);
            half(out, part, element, which)
        }),
        Type::Tuple(fields, _) => {
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                if which == Half::Value || field.has_double() {
                    let part = out.component(dual, k);
                    parts.push(half(out, part, field, which));
                }
            }
            let whole = if which == Half::Value { Some(ty.clone()) } else { ty.tangent() };
            out.tuple(parts, whole.unwrap_or_else(|| ty.clone()))
        }
        Type::Int | Type::Bool => dual,
    }
}
