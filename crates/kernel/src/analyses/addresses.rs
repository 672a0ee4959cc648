//! Strength reduction of addresses, for backends.
//!
//! An address without its constant term that is linear in the index of the innermost loop, and depends on nothing else
//! inside that loop, can be cached: it is set before the loop and incremented after each iteration.

use crate::Instr;
use crate::events::Event;
use crate::kernel::Reg;
use crate::liveness::Liveness;
use chainrule_base::{Id, Poly};
use std::collections::{BTreeMap, BTreeSet};

/// Splits off the constant term if it fits into an instruction.
#[must_use]
pub fn split_constant(at: &Poly<Reg>) -> (Poly<Reg>, i32) {
    let (rest, constant) = at.split_constant();
    i32::try_from(constant).map_or_else(|_| (at.clone(), 0), |offset| (rest, offset))
}

/// Returns the address for `index` 0.
#[must_use]
pub fn at_first(at: &Poly<Reg>, index: Reg) -> Poly<Reg> {
    at.substitute(|r| if r == index { Poly::zero() } else { Poly::var(r) })
}

/// Returns the difference of `poly` between neighbouring lanes, or `None` if it is not linear. `step` returns the
/// difference of an integer register between neighbouring lanes, or `None` if the register is equal in all of them.
#[must_use]
pub fn slope(poly: &Poly<Reg>, step: impl Fn(Reg) -> Option<i64>) -> Option<Poly<Reg>> {
    let mut slope = Poly::zero();
    for (monomial, c) in poly.terms() {
        let mut stepping = monomial.iter().enumerate().filter_map(|(at, r)| Some((at, step(*r)?)));
        let Some((at, by)) = stepping.next() else { continue };
        if stepping.next().is_some() {
            return None;
        }
        let rest = monomial.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, r)| Poly::var(*r));
        let rest = rest.fold(Poly::constant(c.checked_mul(by)?), |product, r| product.mul(&r));
        slope = slope.add(&rest);
    }
    Some(slope)
}

/// Returns the addresses (without constant terms) to cache, for each opening event of a loop by its number from 1.
///
/// With `nested`, the start addresses of inner loops are cached too. `once` holds the opening events of loops with one
/// iteration and their indices; these are not loops, and their index is 0. `O(n log n)` times the depth of loops.
#[must_use]
pub fn kept_addresses(
    events: &[Event<'_>],
    lives: &Liveness,
    nested: bool,
    once: &BTreeMap<u32, Reg>,
) -> BTreeMap<u32, Vec<Poly<Reg>>> {
    let mut found: BTreeMap<u32, Vec<Poly<Reg>>> = BTreeMap::new();
    let mut seen: BTreeSet<(u32, Poly<Reg>)> = BTreeSet::new();
    let mut open: Vec<(u32, Option<Reg>)> = Vec::new();
    let mut first: Option<Reg> = None;
    // Index of each loop, and the loop around it.
    let mut around = Vec::new();
    let fits = |rest: &Poly<Reg>, begin: u32, index: Option<Reg>| {
        rest.as_var().is_none()
            && rest.vars().iter().all(|v| Some(*v) == index || lives.def[v.index()] < begin)
            && index.is_none_or(|i| rest.split_linear(i).is_some())
    };
    for (at, event) in (1u32..).zip(events) {
        let address = match event {
            Event::For { index, .. } if once.contains_key(&at) => {
                first = Some(*index);
                continue;
            }
            Event::EndFor { index, .. } if first == Some(*index) => {
                first = None;
                continue;
            }
            Event::For { .. } | Event::While { .. } => {
                let index = if let Event::For { index, .. } = event { Some(*index) } else { None };
                around.extend(open.last().map(|outer| (at, index, *outer)));
                open.push((at, index));
                continue;
            }
            Event::EndFor { .. } | Event::EndWhile { .. } => {
                open.pop();
                continue;
            }
            Event::Instr(Instr::Load { at: address, .. } | Instr::Store { at: address, .. }) => address,
            _ => continue,
        };
        let Some((begin, index)) = open.last() else { continue };
        if address.as_constant().is_some() {
            continue;
        }
        let (rest, _) = match first {
            Some(first) => split_constant(&at_first(address, first)),
            None => split_constant(address),
        };
        if rest.as_constant().is_some() {
            continue;
        }
        if fits(&rest, *begin, *index) && seen.insert((*begin, rest.clone())) {
            found.entry(*begin).or_default().push(rest);
        }
    }
    // Inner loops before outer loops.
    for (at, index, (begin, outer)) in around.into_iter().rev().filter(|_| nested) {
        for address in found.get(&at).cloned().unwrap_or_default() {
            let base = index.and_then(|i| address.split_linear(i)).map_or(address, |(_, base)| base);
            let (rest, _) = split_constant(&base);
            if rest.as_constant().is_none() && fits(&rest, begin, outer) && seen.insert((begin, rest.clone())) {
                found.entry(begin).or_default().push(rest);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_term_goes_into_the_instruction() {
        let r = Poly::var(Reg::new(0));
        assert_eq!(split_constant(&r.add(&Poly::constant(3))), (r.clone(), 3));
        assert_eq!(split_constant(&Poly::constant(7)), (Poly::zero(), 7));
        let far = r.add(&Poly::constant(i64::MAX));
        assert_eq!(split_constant(&far), (far.clone(), 0));
    }
}
