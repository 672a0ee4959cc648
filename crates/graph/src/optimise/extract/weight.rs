//! Weight of a network, without converting it to a graph.
//!
//! In: a network after extraction. Out: the weight of the graph that `emit` would build, except for negations, and for
//! common parts of two sums or products that extraction has not found. Most rounds save nothing; the weight shows this
//! in a small part of the time that the graph takes.

use super::{Extraction, Slot};
use crate::graph::{Graph, Node};
use crate::optimise::cube::Literal;
use crate::optimise::network::{Form, Term, is_unit};
use chainrule_base::Id;
use chainrule_ops::Op;
use smallvec::SmallVec;

/// Lists for the weight of a network.
#[derive(Default)]
pub(super) struct Weighing {
    /// Whether the roots need each literal.
    live: Vec<bool>,
    /// Number of cubes that divide by each literal.
    n_divided: Vec<u32>,
    /// Literals to visit.
    stack: Vec<Literal>,
    /// Slots of cubes that divide.
    dividing: Vec<u32>,
}

impl Weighing {
    /// Prepares the lists for `n_literals`.
    fn clear(&mut self, n_literals: usize) {
        self.live.clear();
        self.live.resize(n_literals, false);
        self.n_divided.clear();
        self.n_divided.resize(n_literals, 0);
        self.stack.clear();
        self.dividing.clear();
    }

    /// Marks a literal as needed; it is visited once.
    fn see(&mut self, literal: Literal) {
        if !std::mem::replace(&mut self.live[literal.index()], true) {
            self.stack.push(literal);
        }
    }
}

impl Extraction {
    /// Returns the final weight of the roots; `source` is the graph of the opaque operations. Linear.
    pub(in crate::optimise) fn weight(&mut self, source: &Graph) -> u64 {
        let mul = u64::from(Op::Mul.row().weight);
        let div = u64::from(Op::Div.row().weight);
        let forms = self.network.forms.as_slice();
        let lists = &mut self.weighing;
        lists.clear(forms.len());
        let mut weight = 0;
        let scaled = |term: &Term| u64::from(!is_unit(term.coef) && term.literal.is_some());
        for root in &self.network.roots {
            weight += mul * scaled(root);
            root.literal.into_iter().for_each(|literal| lists.see(literal));
        }
        while let Some(literal) = lists.stack.pop() {
            match &forms[literal.index()] {
                Form::Leaf(_) => {}
                Form::Opaque(id, args) => {
                    weight += match source.node(*id) {
                        Node::Apply(op, _) => u64::from(op.row().weight),
                        _ => u64::from(Op::Sin.row().weight),
                    };
                    for arg in args {
                        weight += mul * scaled(arg);
                        arg.literal.into_iter().for_each(|literal| lists.see(literal));
                    }
                }
                Form::Sum(_) => {
                    let members = &self.members[literal.index()];
                    weight += u64::from(Op::Add.row().weight) * (members.len() as u64).saturating_sub(1);
                    let mut factors: SmallVec<[f64; 4]> = SmallVec::new();
                    for slot in members {
                        let Slot { cube, .. } = &self.slots[*slot as usize];
                        let factor = cube.coef.abs();
                        if factor != 1.0 && !cube.powers.is_empty() && !factors.contains(&factor) {
                            factors.push(factor);
                            weight += mul;
                        }
                        for (used, e) in &cube.powers {
                            let n = e.unsigned_abs();
                            weight += mul * u64::from(n.ilog2() + n.count_ones() - 1);
                            lists.n_divided[used.index()] += u32::from(*e < 0);
                            lists.see(*used);
                        }
                        weight += mul * (cube.powers.len() as u64).saturating_sub(1);
                        if cube.powers.iter().any(|(_, e)| *e < 0) {
                            lists.dividing.push(*slot);
                        }
                    }
                }
            }
        }
        // A divisor of only one cube is a division instead of a multiplication; other divisors are inverted once.
        let mut inverted: SmallVec<[Literal; 8]> = SmallVec::new();
        for slot in &lists.dividing {
            let powers = &self.slots[*slot as usize].cube.powers;
            let divides = |(used, e): &&(Literal, i32)| *e == -1 && lists.n_divided[used.index()] == 1;
            let n_below = powers.iter().filter(divides).count();
            if n_below > 0 {
                weight += if n_below < powers.len() { div - mul } else { div };
            }
            inverted.extend(powers.iter().filter(|p| p.1 < 0 && !divides(p)).map(|p| p.0));
        }
        inverted.sort_unstable();
        inverted.dedup();
        weight + div * inverted.len() as u64
    }
}
