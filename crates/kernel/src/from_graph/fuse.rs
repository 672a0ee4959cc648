//! Products go into the sums that take them while a graph is lowered: `a * b + c` rounded once.
//!
//! The rule is that of [`contract`](crate::contract()), which looks at code that is there already: a product is fused where all
//! that reads it are sums and differences, each of which takes one product, the one that is computed first. Here the products
//! are not written and taken out again, and what reads a product is known from the graph.
//!
//! One walk from the last node to the first ([`Lowering::find_needed`]) finds what outputs need, writes the constants among that
//! and makes a list of the sums that read each product. When it is a product's turn to be computed, its arguments have been: it is
//! fused if no sum of its list takes another one. A sum that takes a product comes later and reads the product's arguments.

use super::Lowering;
use super::look::{NONE, State};
use crate::kernel::{Instr, Reg, Signs};
use chainrule_base::Id;
use chainrule_graph::NodeId;
use chainrule_ops::Op;

/// The sums that read products.
#[derive(Default)]
pub(super) struct Sums {
    /// Lists of more than one sum: each sum, and what comes after it.
    more: Vec<(u32, u32)>,
    /// How many products were fused so far.
    pub n_fused: usize,
}

/// A list of sums is [`NONE`], the number of a node, or this with the place of its first one in [`Sums::more`].
const MORE: u32 = 1 << 31;

/// Of graphs of more nodes the numbers of nodes and the places of lists are not told apart.
pub(super) const MOST_NODES: usize = MORE as usize / 2;

impl Lowering<'_> {
    /// Marks what outputs need, and what must be kept, and writes the constants that are needed and stored nowhere; where
    /// products are fused, lists the sums that read them: a list begins in the product's [`State::real`].
    #[inline(never)]
    pub(super) fn find_needed(&mut self, fuse: bool) {
        let state = self.state.as_mut_slice();
        for i in (0..state.len()).rev() {
            let node = state[i];
            if node.flags & (State::NEEDED | State::STORED) == 0 {
                continue;
            }
            if !node.is(State::BINARY) {
                if node.op == State::OTHER {
                    let args = self.graph.args(NodeId::new(i));
                    args.iter().for_each(|arg| state[arg.index()].flags |= State::NEEDED | State::KEPT);
                } else if let Some(value) = node.as_const()
                    && !node.is(State::STORED)
                {
                    let dst = self.code.define(|dst| Instr::Const { dst, value });
                    (state[i].real, state[i].flags) = (dst.index() as u32, node.flags | State::DONE);
                }
                continue;
            }
            let [a, b] = node.args;
            // A product that is added to itself, or taken from itself, is read twice by one sum.
            // Without branches: what a node is, is hard to predict.
            let is_sum = fuse & matches!(node.op, Op::Add | Op::Sub) & (a != b);
            let flags = if is_sum { State::NEEDED } else { State::NEEDED | State::KEPT };
            for arg in [a, b] {
                let arg = &mut state[arg.index()];
                // What is kept by a node that comes later needs no list.
                let is_listed = is_sum & (arg.op == Op::Mul) & (arg.flags & (State::STORED | State::KEPT) == 0);
                arg.flags |= flags;
                let (first, mut list) = (arg.real, i as u32);
                if is_listed & (first != NONE) {
                    list = MORE | self.sums.more.len() as u32;
                    self.sums.more.push((i as u32, first));
                }
                // All bits, or none.
                let listed = u32::from(is_listed).wrapping_neg();
                arg.real = list & listed | first & !listed;
            }
        }
    }
}

impl Sums {
    /// Puts the product `id`, which nothing reads but sums and no output holds, into them, if none of them takes another one:
    /// whether it is gone.
    #[inline]
    pub(super) fn fuse(&mut self, state: &mut [State], id: NodeId, product: State) -> bool {
        let takes = |sum: u32| state.get(sum as usize).is_some_and(|sum| sum.is(State::TAKES));
        if self.list(product.real).any(takes) {
            return false;
        }
        for sum in self.list(product.real) {
            if let Some(sum) = state.get_mut(sum as usize) {
                sum.flags |= State::TAKES;
            }
        }
        state[id.index()] = State { real: id.index() as u32, flags: State::DONE | State::FUSED, ..product };
        self.n_fused += 1;
        true
    }

    /// The sums of a list.
    #[inline]
    fn list(&self, mut list: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::from_fn(move || {
            if list == NONE {
                return None;
            }
            let (sum, rest) = if list < MORE { (list, NONE) } else { *self.more.get((list - MORE) as usize)? };
            list = rest;
            Some(sum)
        })
    }
}

/// What computes `dst`, the node of two numbers, whose arguments have registers; in place of that of a fused product stands
/// the product's number.
#[inline(always)]
pub(super) fn computed(state: &[State], dst: Reg, node: State, [x, y]: [Reg; 2]) -> Instr {
    if !node.is(State::TAKES) {
        return Instr::Op { dst, op: node.op, args: [x, y, x] };
    }
    let is_first = state[node.args[0].index()].is(State::FUSED);
    let (product, c) = if is_first { (x, y) } else { (y, x) };
    let signs = match (node.op, is_first) {
        (Op::Add, _) => Signs::Plus,
        (_, true) => Signs::MinusSummand,
        (_, false) => Signs::MinusProduct,
    };
    let [a, b] = state[product.index()].args.map(|arg| Reg::new(state[arg.index()].real as usize));
    Instr::MulAdd { dst, signs, args: [a, b, c] }
}
