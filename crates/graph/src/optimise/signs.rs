//! Signs: selection of the direction of each sum such that few negations remain.
//!
//! In: a network. Out: the same network, with the sign of some sums and of all coefficients of their uses inverted.
//!
//! A sign costs nothing in a sum that has a positive term, or in a product with a number; a product passes it on to its
//! users. The remaining negations are at roots, arguments of functions and sums of only negative terms. Inverting a sum
//! with terms of both signs costs nothing by itself; so each such sum is inverted once if that leaves fewer negations,
//! users first, because they impose the signs.

use super::cube::Literal;
use super::emit::order;
use super::network::{Form, Network};
use chainrule_base::Arena;

/// Maximum number of places that change when one sum is inverted.
const MAX_REACH: usize = 64;

/// Use of a literal.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a cube of a sum, to an odd power.
    Cube(Literal, usize),
    /// As an argument of an opaque operation.
    Argument(Literal, usize),
    /// As a root.
    Root(usize),
}

/// Chooses the signs. Linear, except for literals with very many uses, which stay unchanged.
pub(super) fn choose_signs(network: &mut Network) {
    let Some((order, _)) = order(network) else { return };
    let mut users: Arena<Literal, Vec<Place>> = Arena::filled(network.forms.len(), Vec::new());
    for literal in &order {
        match &network.forms[*literal] {
            Form::Leaf(_) => {}
            Form::Opaque(_, args) => {
                for (i, arg) in args.iter().enumerate() {
                    if let Some(used) = arg.literal {
                        users[used].push(Place::Argument(*literal, i));
                    }
                }
            }
            Form::Sum(cubes) => {
                for (i, cube) in cubes.iter().enumerate() {
                    for (used, _) in cube.powers.iter().filter(|(_, e)| e % 2 != 0) {
                        users[*used].push(Place::Cube(*literal, i));
                    }
                }
            }
        }
    }
    for (i, root) in network.roots.iter().enumerate() {
        if let Some(used) = root.literal {
            users[used].push(Place::Root(i));
        }
    }
    for literal in order.iter().rev() {
        let Form::Sum(cubes) = &network.forms[*literal] else { continue };
        let negative = cubes.iter().filter(|c| c.coef < 0.0).count();
        // A negative product passes its sign on; a sum of both signs may be inverted.
        match (cubes.len(), negative) {
            (1, 1) => turn(network, &users, *literal, Ties::Turn),
            (1, 0) => {}
            _ => turn(network, &users, *literal, Ties::Stay),
        }
    }
}

/// Inverts a sum, and each product of which it is a factor; reverts this unless fewer negations remain.
/// Decision between signs that cost the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ties {
    Turn,
    Stay,
}

fn turn(network: &mut Network, users: &Arena<Literal, Vec<Place>>, literal: Literal, ties: Ties) {
    let mut places = Vec::new();
    let mut stack = vec![literal];
    let mut turned = vec![literal];
    while let Some(next) = stack.pop() {
        for place in &users[next] {
            match place {
                Place::Cube(owner, _) if is_product(network, *owner) => {
                    stack.push(*owner);
                    turned.push(*owner);
                }
                _ => places.push(*place),
            }
        }
        if places.len() + turned.len() > MAX_REACH {
            return;
        }
    }
    let mut before = negations(network, &places);
    before += negations_of(network, literal);
    flip(network, literal, &places);
    let after = negations(network, &places) + negations_of(network, literal);
    if after >= before && !(ties == Ties::Turn && after == before) {
        flip(network, literal, &places);
    }
}

fn is_product(network: &Network, literal: Literal) -> bool {
    matches!(&network.forms[literal], Form::Sum(cubes) if cubes.len() == 1)
}

/// Changes the sign of a sum and of all these uses of it.
fn flip(network: &mut Network, literal: Literal, places: &[Place]) {
    if let Form::Sum(cubes) = &mut network.forms[literal] {
        for cube in cubes {
            cube.coef = -cube.coef;
        }
    }
    for place in places {
        match (*place, &mut network.forms) {
            (Place::Root(i), _) => network.roots[i].coef = -network.roots[i].coef,
            (Place::Cube(owner, i), forms) => {
                if let Form::Sum(cubes) = &mut forms[owner] {
                    cubes[i].coef = -cubes[i].coef;
                }
            }
            (Place::Argument(owner, i), forms) => {
                if let Form::Opaque(_, args) = &mut forms[owner] {
                    args[i].coef = -args[i].coef;
                }
            }
        }
    }
}

/// Returns the number of negations at these places.
fn negations(network: &Network, places: &[Place]) -> usize {
    let mut owners: Vec<Literal> = Vec::new();
    let mut n = 0;
    for place in places {
        match *place {
            Place::Root(i) => n += usize::from(network.roots[i].coef == -1.0),
            Place::Cube(owner, _) => owners.push(owner),
            Place::Argument(owner, i) => {
                if let Form::Opaque(_, args) = &network.forms[owner] {
                    n += usize::from(args[i].coef == -1.0);
                }
            }
        }
    }
    owners.sort_unstable();
    owners.dedup();
    n + owners.iter().map(|owner| negations_of(network, *owner)).sum::<usize>()
}

/// Returns whether a sum needs a negation: all its terms are subtracted.
fn negations_of(network: &Network, literal: Literal) -> usize {
    match &network.forms[literal] {
        Form::Sum(cubes) => usize::from(cubes.iter().all(|c| c.coef == -1.0 && !c.powers.is_empty())),
        _ => 0,
    }
}
