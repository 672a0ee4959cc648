//! Contraction into fused multiply-adds while a graph is lowered: `a * b + c` rounded once.
//!
//! The rule is that of [`contract`](crate::contract()), which works on existing code: a product is fused if all its
//! uses are sums and differences, each of which takes one product, the one that is computed first. Here the products
//! are never written, and their uses are known from the graph.
//!
//! One walk from the last node to the first ([`Lowering::find_needed`]) finds the nodes that outputs need, writes the
//! constants among them, and lists the sums that use each product. When a product is due, its arguments are computed:
//! it is fused if no sum of its list has taken another product. The sum comes later and reads the product's arguments.

use super::Lowering;
use super::look::{NONE, State};
use crate::kernel::{Instr, Reg, Signs};
use chainrule_base::Id;
use chainrule_graph::NodeId;
use chainrule_ops::Op;

/// Sums that use products.
#[derive(Default)]
pub(super) struct Sums {
    /// Lists of more than one sum: each sum, and the rest of its list.
    more: Vec<(u32, u32)>,
    /// Number of products fused so far.
    pub n_fused: usize,
}

/// Flag of a list in [`Sums::more`]. A list of sums is [`NONE`], the number of a node, or this flag with an index.
const MORE: u32 = 1 << 31;

/// Maximum number of nodes: beyond it, numbers of nodes and indices of lists would be ambiguous.
pub(super) const MOST_NODES: usize = MORE as usize / 2;

impl Lowering<'_> {
    /// Marks the nodes that outputs need and the products that must not be fused, and writes the needed constants that
    /// are not outputs. With `fuse`, lists the sums that use each product; a list begins in the product's
    /// [`State::real`].
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
            // Without branches, since the kind of a node is hard to predict.
            let is_sum = fuse & matches!(node.op, Op::Add | Op::Sub) & (a != b);
            let flags = if is_sum { State::NEEDED } else { State::NEEDED | State::KEPT };
            for arg in [a, b] {
                let arg = &mut state[arg.index()];
                // A product that is already excluded from fusion needs no list.
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
    /// Fuses the product `id`, which only sums use and which is no output, unless one of the sums takes another
    /// product. Returns whether it was fused.
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

    /// Iterates over the sums of a list.
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

/// Returns the instruction that computes `dst`, a binary node whose arguments have registers. A fused product has its
/// node number in place of a register.
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
