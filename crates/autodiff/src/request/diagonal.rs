//! Diagonal of a Hessian, without its other entries.
//!
//! A pass is the derivative of the gradient along a direction that is 1 at several inputs at once. At each of these
//! inputs, the result is the diagonal entry if no two of them occur in one term of the function: the other entries of
//! the row are multiplied by 0. Inputs that differ in the *leading* indices of an array do not occur in one term if the
//! index structure shows it ([`sparse::leading`](crate::sparse)); one pass for each combination of the trailing indices
//! then suffices. `sum n (fun i -> sin x[i])` takes one pass, `sum n (fun i -> norm x[i])` of an `[n][3]Double` three;
//! a function without such structure takes one for each input.
//!
//! Each array of doubles in a record has its own passes.

use crate::asked::{Asked, By, Leaf, Step};
use crate::sparse::double_leaves;
use chainrule_ir::{Block, Size, Type, VarId};

/// Array of doubles in a differentiation variable.
struct Place<'a> {
    /// Path of fields to it in the parameter, and in its tangent, which has fewer fields.
    fields: [&'a [usize]; 2],
    /// Extents below the leading indices.
    trailing: &'a [Size],
    leading: usize,
}

impl Asked {
    /// Computes the diagonal of the Hessian of `body`, of type `Double`. `leading` contains, for each array of doubles
    /// of `by`, the number of leading indices in which inputs of one term cannot differ; it is empty if unknown.
    pub(crate) fn diagonal(&mut self, body: &Block, by: &By, by_rows: bool, leading: &[usize]) -> VarId {
        let mut leading = leading.iter().copied();
        self.fields(by, &mut |asked, leaf| {
            let gradient = asked.gradient(body, leaf, by_rows);
            let ty = asked.out.ty(gradient.result).clone();
            let (whole, kept) = (double_leaves(&leaf.ty), double_leaves(&ty));
            let mut parts: Vec<(usize, VarId)> = Vec::with_capacity(whole.len());
            for ((fields, extents), (kept, _)) in whole.iter().zip(&kept) {
                let leading = leading.next().unwrap_or(0).min(extents.len());
                let place = Place { fields: [fields, kept], trailing: &extents[leading..], leading };
                parts.push((leading, asked.passes(&gradient, &ty, leaf, &place, &mut Vec::new())));
            }
            // An array of doubles whose indices are all leading or all trailing is already in order.
            if let ([(leading, part)], [(fields, extents)]) = (parts.as_slice(), whole.as_slice())
                && fields.is_empty()
                && (*leading == 0 || *leading == extents.len())
            {
                return *part;
            }
            let mut parts = parts.into_iter();
            asked.shaped(&ty, &mut Vec::new(), &mut |asked, steps| {
                let Some((leading, part)) = parts.next() else { return asked.out.real(0.0) };
                let indices: Vec<Step> = steps.iter().filter(|step| matches!(step, Step::Index(_))).copied().collect();
                let (outer, inner) = indices.split_at(leading);
                asked.at(part, &[inner, outer].concat())
            })
        })
    }

    /// Computes, for each index `at` below the leading ones of `place`, whose first steps are given, the diagonal
    /// entries there as arrays over the leading indices.
    fn passes(&mut self, gradient: &Block, ty: &Type, leaf: &Leaf, place: &Place<'_>, at: &mut Vec<Step>) -> VarId {
        if let Some(size) = place.trailing.get(at.len()) {
            return self.array(size, &mut |asked, index| {
                at.push(Step::Index(index));
                let part = asked.passes(gradient, ty, leaf, place, at);
                at.pop();
                part
            });
        }
        let [there, kept] = place.fields;
        let along = self.hot_at_all(&leaf.ty, place.leading, &steps(&leaf.ty, there, place.leading, at));
        let tangent = self.tangent(gradient, ty, leaf, along);
        self.at_all(tangent, place.leading, &steps(ty, kept, place.leading, at))
    }

    /// Emits a `ty` that is 1 at `steps`, for all values of the first `leading` indices, and 0 elsewhere.
    fn hot_at_all(&mut self, ty: &Type, leading: usize, steps: &[Step]) -> VarId {
        match (ty, steps) {
            (Type::Array(size, element), _) if leading > 0 => {
                self.array(size, &mut |asked, _| asked.hot_at_all(element, leading - 1, steps))
            }
            (Type::Tuple(fields, _), [Step::Field(place), rest @ ..]) if leading > 0 => {
                let mut parts = Vec::with_capacity(fields.len());
                for (k, field) in fields.iter().enumerate() {
                    let part = if k == *place { self.hot_at_all(field, leading, rest) } else { self.zero(field) };
                    parts.push(part);
                }
                self.out.tuple(parts, ty.clone())
            }
            _ => self.one_hot(ty, steps, None),
        }
    }

    /// Returns the parts of `value` at `steps`, for all values of the first `leading` indices.
    fn at_all(&mut self, value: VarId, leading: usize, steps: &[Step]) -> VarId {
        match (self.out.ty(value).clone(), steps) {
            (Type::Array(size, _), _) if leading > 0 => self.array(&size, &mut |asked, index| {
                let part = asked.out.element(value, index);
                asked.at_all(part, leading - 1, steps)
            }),
            (Type::Tuple(..), [Step::Field(place), rest @ ..]) if leading > 0 => {
                let part = self.out.component(value, *place);
                self.at_all(part, leading, rest)
            }
            _ => self.at(value, steps),
        }
    }
}

/// Returns the steps into a `ty` by `fields` and, below the `leading` indices, which are omitted, `indices`.
fn steps(ty: &Type, fields: &[usize], leading: usize, indices: &[Step]) -> Vec<Step> {
    let (mut ty, mut leading, mut fields, mut indices) = (ty, leading, fields.iter(), indices.iter());
    let mut steps = Vec::new();
    loop {
        ty = match ty {
            Type::Array(_, element) if leading > 0 => {
                leading -= 1;
                element
            }
            Type::Array(_, element) => {
                steps.extend(indices.next());
                element
            }
            Type::Tuple(parts, _) => {
                let Some((k, part)) = fields.next().and_then(|k| Some((*k, parts.get(*k)?))) else { break };
                steps.push(Step::Field(k));
                part
            }
            Type::Double | Type::Int | Type::Bool => break,
        };
    }
    steps
}
