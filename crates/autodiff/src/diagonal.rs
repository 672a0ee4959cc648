//! The diagonal of a Hessian, without the rest of it.
//!
//! A pass is the derivative of the gradient along a direction that is 1 at several inputs at once. At each of these the result
//! is the diagonal's number, if no two of them meet in one term of the function: other entries of the row are multiplied by 0.
//! Inputs that differ in the *leading* indices of an array do not meet where the index structure says so
//! ([`sparse::leading`](crate::sparse)): a pass for each place below them is enough. `sum n (fun i -> sin x[i])` takes one,
//! `sum n (fun i -> norm x[i])` of an `[n][3]Double` three; what tells nothing takes one for each input.
//!
//! Of a record, each array of doubles has its own passes.

use crate::asked::{Asked, By, Leaf, Step};
use crate::sparse::double_leaves;
use chainrule_ir::{Block, Size, Type, VarId};

/// An array of doubles inside of what is differentiated by.
struct Place<'a> {
    /// The fields that lead there in the parameter, and in its tangent, which has fewer.
    fields: [&'a [usize]; 2],
    /// Below the leading ones.
    trailing: &'a [Size],
    leading: usize,
}

impl Asked {
    /// The diagonal of the Hessian of `body`, of type `Double`. `leading`: for each array of doubles of `by` how many leading
    /// indices there are by which inputs do not meet; none where it does not say.
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
            // An array of doubles all of whose indices are on one side is in its order already.
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

    /// For each index `at` below the leading ones of `place`, of which the first are known: the numbers of the diagonal there,
    /// arrays over the leading indices.
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

    /// A `ty` that is 1 at `steps`, whatever the first `leading` indices are, and 0 elsewhere.
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

    /// What is at `steps` in `value`, for all of the first `leading` indices.
    fn at_all(&mut self, value: VarId, leading: usize, steps: &[Step]) -> VarId {
        match (self.out.ty(value).clone(), steps) {
            (Type::Array(size, _), _) if leading > 0 => self.array(&size, &mut |asked, index| {
                let part = asked.out.get(value, index, true);
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

/// The way into a `ty` by `fields` and, below the `leading` indices, which are left out, `indices`.
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
