//! Cotangents in the code that reverse mode generates.
//!
//! The cotangent of a double is a double, that of an array an array, that of a tuple a tuple; integers and truth values
//! have none ([`Type::tangent`]). A [`Cotangent`] is a cotangent before it is emitted: structural zeros are omitted,
//! the doubles of a tuple are separate variables, and no zero is ever added.

use crate::activity::Activity;
use crate::emit::{Emitter, Scalar};
use chainrule_ir::{Expr, Type, VarId};
use chainrule_ops::{Algebra, Op};

/// Cotangent of a variable of the body.
#[derive(Clone, Debug)]
pub(crate) enum Cotangent {
    /// Cotangent of a double.
    Double(Scalar),
    /// Cotangent of an array: a variable of its tangent type.
    Array(VarId),
    /// Cotangent of a tuple, per component; `None` for a component that is structurally zero or has no cotangent.
    Tuple(Vec<Option<Self>>),
}

impl Cotangent {
    /// Returns the cotangent in the variable `var` of type `ty.tangent()`.
    pub(crate) fn of_var(out: &mut Emitter, var: VarId, ty: &Type) -> Self {
        match ty {
            Type::Double => Self::Double(out.scalar(var)),
            Type::Tuple(fields, _) => {
                let mut place = 0;
                let part = |field: &Type| {
                    field.has_double().then(|| {
                        let part = out.component(var, place);
                        place += 1;
                        Self::of_var(out, part, field)
                    })
                };
                Self::Tuple(fields.iter().map(part).collect())
            }
            Type::Array(..) | Type::Int | Type::Bool => Self::Array(var),
        }
    }

    /// Returns a form with a part for each active leaf of `ty`; its variables are placeholders.
    pub(crate) fn form(ty: &Type, activity: &Activity) -> Option<Self> {
        match (ty, activity) {
            (_, Activity::Inactive) => None,
            (Type::Tuple(fields, _), Activity::Tuple(parts)) => {
                Some(Self::Tuple(fields.iter().zip(parts).map(|(field, part)| Self::form(field, part)).collect()))
            }
            (Type::Array(..), _) => Some(Self::Array(chainrule_base::Id::new(0))),
            _ => Some(Self::Double(Scalar::Const(0.0))),
        }
    }

    /// Returns the sum of two cotangents of the same type.
    pub(crate) fn plus(self, out: &mut Emitter, other: Self) -> Self {
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => Self::Double(out.apply(Op::Add, &[a, b])),
            (Self::Array(a), Self::Array(b)) => Self::Array(out.builder.plus(a, b)),
            (Self::Tuple(a), Self::Tuple(b)) => {
                let part = |(a, b): (Option<Self>, Option<Self>)| match (a, b) {
                    (Some(a), Some(b)) => Some(a.plus(out, b)),
                    (a, b) => a.or(b),
                };
                Self::Tuple(a.into_iter().zip(b).map(part).collect())
            }
            // Equal types have equal forms.
            (this, _) => this,
        }
    }

    /// Returns this cotangent without its inactive parts.
    pub(crate) fn restricted(self, activity: &Activity) -> Option<Self> {
        match (self, activity) {
            (_, Activity::Inactive) => None,
            (Self::Tuple(parts), Activity::Tuple(to)) => {
                let parts: Vec<Option<Self>> =
                    parts.into_iter().zip(to).map(|(part, to)| part.and_then(|part| part.restricted(to))).collect();
                parts.iter().any(Option::is_some).then_some(Self::Tuple(parts))
            }
            (this, _) => Some(this),
        }
    }

    /// Returns a form with the parts of both.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Tuple(a), Self::Tuple(b)) => {
                let part = |(a, b): (&Option<Self>, &Option<Self>)| match (a, b) {
                    (Some(a), Some(b)) => Some(a.joined(b)),
                    (a, b) => a.clone().or_else(|| b.clone()),
                };
                Self::Tuple(a.iter().zip(b).map(part).collect())
            }
            _ => self.clone(),
        }
    }

    /// Appends the leaves of `form`, in order, as variables; `this` is of type `ty.tangent()`, and has no leaf that
    /// `form` lacks.
    pub(crate) fn flatten(out: &mut Emitter, this: Option<&Self>, form: &Self, ty: &Type, leaves: &mut Vec<VarId>) {
        match (form, this, ty) {
            (Self::Tuple(forms), this, Type::Tuple(fields, _)) => {
                for (k, (form, field)) in forms.iter().zip(fields).enumerate() {
                    let part = match this {
                        Some(Self::Tuple(parts)) => parts.get(k).and_then(Option::as_ref),
                        _ => None,
                    };
                    if let Some(form) = form {
                        Self::flatten(out, part, form, field, leaves);
                    }
                }
            }
            (_, Some(Self::Double(scalar)), _) => leaves.push(out.double(*scalar)),
            (_, Some(Self::Array(var)), _) => leaves.push(*var),
            _ => leaves.push(zero(out, ty)),
        }
    }

    /// Returns the number of leaves.
    pub(crate) fn n_leaves(&self) -> usize {
        match self {
            Self::Double(_) | Self::Array(_) => 1,
            Self::Tuple(parts) => parts.iter().flatten().map(Self::n_leaves).sum(),
        }
    }

    /// Returns the cotangent of form `self` with the leaves `leaves`.
    pub(crate) fn filled(&self, out: &Emitter, leaves: &mut impl Iterator<Item = VarId>) -> Self {
        match self {
            Self::Double(_) => leaves.next().map_or_else(|| self.clone(), |leaf| Self::Double(out.scalar(leaf))),
            Self::Array(_) => leaves.next().map_or_else(|| self.clone(), Self::Array),
            Self::Tuple(parts) => {
                Self::Tuple(parts.iter().map(|part| part.as_ref().map(|part| part.filled(out, leaves))).collect())
            }
        }
    }

    /// Returns `this`, the cotangent of a variable of type `ty`, as one variable of type `ty.tangent()`. `ty` contains
    /// a double.
    pub(crate) fn pack(out: &mut Emitter, this: Option<&Self>, ty: &Type) -> VarId {
        match (this, ty) {
            (Some(Self::Double(scalar)), _) => out.double(*scalar),
            (Some(Self::Array(var)), _) => *var,
            (Some(Self::Tuple(parts)), Type::Tuple(fields, _)) => {
                let mut packed = Vec::with_capacity(fields.len());
                for (part, field) in parts.iter().zip(fields) {
                    if field.has_double() {
                        packed.push(Self::pack(out, part.as_ref(), field));
                    }
                }
                let whole = ty.tangent().unwrap_or_else(|| ty.clone());
                out.tuple(packed, whole)
            }
            _ => zero(out, ty),
        }
    }
}

/// Returns `packed`, of type `ty.tangent()`, as one variable of type `ty`; integers and truth values are those of
/// `value`.
// Recursive on the depth of a type.
pub(crate) fn widened(out: &mut Emitter, packed: VarId, value: VarId, ty: &Type) -> VarId {
    match ty {
        _ if ty.is_linear() => packed,
        _ if !ty.has_double() => value,
        Type::Array(size, element) => out.build(size.clone(), &mut |out, index| {
            let (packed, value) = (out.element(packed, index), out.element(value, index));
            widened(out, packed, value, element)
        }),
        Type::Tuple(fields, _) => {
            let mut place = 0;
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                let value = out.component(value, k);
                let packed = if field.has_double() { out.component(packed, place) } else { value };
                place += usize::from(field.has_double());
                parts.push(widened(out, packed, value, field));
            }
            out.tuple(parts, ty.clone())
        }
        Type::Double | Type::Int | Type::Bool => packed,
    }
}

/// Inverse of [`widened`]: returns `var`, of type `ty`, which contains a double, without its integers and truth values.
// Recursive on the depth of a type.
pub(crate) fn narrowed(out: &mut Emitter, var: VarId, ty: &Type) -> Cotangent {
    match ty {
        Type::Tuple(fields, _) => {
            let mut parts = Vec::with_capacity(fields.len());
            for (k, field) in fields.iter().enumerate() {
                parts.push(field.has_double().then(|| {
                    let part = out.component(var, k);
                    narrowed(out, part, field)
                }));
            }
            Cotangent::Tuple(parts)
        }
        Type::Array(size, element) if !ty.is_linear() => {
            let array = out.build(size.clone(), &mut |out, index| {
                let part = out.element(var, index);
                let part = narrowed(out, part, element);
                Cotangent::pack(out, Some(&part), element)
            });
            Cotangent::Array(array)
        }
        _ => Cotangent::of_var(out, var, ty),
    }
}

/// Emits the zero of `ty.tangent()`.
fn zero(out: &mut Emitter, ty: &Type) -> VarId {
    match ty.tangent() {
        Some(Type::Double) | None => out.real(0.0),
        Some(tangent) => out.builder.emit(Expr::Zero, tangent),
    }
}
