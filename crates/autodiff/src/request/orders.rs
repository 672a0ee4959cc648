//! Derivatives of any order.
//!
//! In: a function, a [`Request`], and the order of each part of it that is a derivative of some order. Out: a function
//! of all parts. The derivative of order k is the Jacobian, taken k times: its type is that of the result with each
//! double replaced by a gradient, k times.

use crate::forward::check_length;
use crate::request::{Part, Request, derive_told};
use crate::reverse::MadeAgain;
use chainrule_base::{Diagnostics, Name};
use chainrule_ir::{Builder, Function, Renaming, VarId};

/// Returns the function that computes the parts of `request`, with derivatives of some order among them: `orders` has
/// an order for each of these, and `None` for each of the parts, in the order of the result's fields.
///
/// # Errors
/// The errors of [`crate::derive()`]; a limitation if a derivative is too long.
pub fn derive_orders(
    function: &Function,
    request: &Request,
    orders: &[Option<usize>],
) -> Result<(Function, Vec<MadeAgain>), Diagnostics> {
    let mut parts = request.parts.iter();
    let (mut derived, mut all_again) = (Vec::new(), Vec::new());
    for order in orders {
        let (name, made) = match order {
            Some(order) => {
                let jacobian = Request { parts: vec![Part::Jacobian], ..request.clone() };
                let mut made = function.clone();
                for order in 1..=*order {
                    let (next, again) = derive_told(&made, &jacobian)?;
                    (made, all_again) = (next, [all_again, again].concat());
                    check_length(order, &made.body)?;
                }
                (format!("order{order}"), made)
            }
            None => {
                let Some(part) = parts.next() else { continue };
                let (made, again) = derive_told(function, &Request { parts: vec![*part], ..request.clone() })?;
                all_again.extend(again);
                (part.name().to_owned(), made)
            }
        };
        derived.push((Name::from(name), made));
    }
    Ok((together(function, &derived), all_again))
}

/// Returns the function with the parameters of `function` that computes all of `derived`, whose parameters begin with
/// the same; equal names of the others are one parameter. Several results are the fields of a record.
fn together(function: &Function, derived: &[(Name, Function)]) -> Function {
    let mut out = Builder::rewriting(function);
    let mut more: Vec<(Name, VarId)> = Vec::new();
    let mut results = Vec::new();
    let names: Vec<Name> = derived.iter().map(|(name, _)| name.clone()).collect();
    for (_, part) in derived {
        let own = part.sizes.iter().zip(&function.sizes).chain(part.params.iter().zip(&function.params));
        let mut renaming: Renaming = own.map(|(theirs, ours)| (*theirs, *ours)).collect();
        for param in part.params.iter().skip(function.params.len()) {
            let name = part.vars[*param].name.clone().unwrap_or_else(|| Name::from(param.to_string()));
            let known = more.iter().find(|(known, _)| *known == name).map(|(_, var)| *var);
            let var = known.unwrap_or_else(|| {
                let ty = out.rename_type(part.ty(*param), &renaming);
                out.param(&name, ty)
            });
            more.push((name, var));
            renaming.insert(*param, var);
        }
        results.push(out.inline_from(&part.vars, &part.body, &mut renaming));
    }
    let result = match results.as_slice() {
        [one] => *one,
        all => out.record(names.iter().cloned().collect(), all),
    };
    let mut function = out.finish(result);
    let suffix: String = names.iter().map(|name| format!("_{name}")).collect();
    function.name = Name::from(format!("{}{suffix}", function.name));
    function
}
