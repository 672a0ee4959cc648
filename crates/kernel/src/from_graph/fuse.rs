//! Products go into the sums that take them while a graph is lowered: `a * b + c` rounded once.
//!
//! The rule is that of [`contract`](crate::contract()), which looks at code that is there already: a product is fused where all
//! that reads it are sums and differences, each of which takes one product, the one that is computed first. Here the products
//! are not written and taken out again, and what reads a product is known from the graph.
//!
//! One walk from the last node to the first ([`Lowering::find_needed`]) finds what outputs need and makes a list of the sums
//! that read each product. When it is a product's turn to be computed, its arguments have been: it is fused if no sum of its
//! list takes another one. A sum that takes a product comes later and reads the product's arguments.

use super::{Lowering, NONE, State};
use crate::kernel::{Instr, Reg, Signs};
use chainrule_base::Id;
use chainrule_graph::NodeId;
use chainrule_ops::Op;

/// The sums that read products.
#[derive(Default)]
pub(super) struct Sums {
    /// By node, for a sum: the next sum that reads its first argument and its second one, or [`NONE`].
    next: Vec<[u32; 2]>,
    /// How many products were fused so far.
    pub n_fused: usize,
}

const _: () = assert!(NONE == u32::MAX);

impl Lowering<'_> {
    /// Marks what outputs need, and what must be kept; where products are fused, lists the sums that read them: a list begins
    /// in the product's [`State::real`].
    #[inline(never)]
    pub(super) fn find_needed(&mut self, fuse: bool) {
        if fuse {
            self.sums.next = vec![[NONE; 2]; self.graph.len()];
        }
        let state = self.state.as_mut_slice();
        for i in (0..state.len()).rev() {
            let node = state[i];
            if node.flags & (State::NEEDED | State::STORED) == 0 {
                continue;
            }
            if !node.is(State::BINARY) {
                let args = self.graph.args(NodeId::new(i));
                args.iter().for_each(|arg| state[arg.index()].flags |= State::NEEDED | State::KEPT);
                continue;
            }
            let [a, b] = node.args;
            // A product that is added to itself, or taken from itself, is read twice by one sum.
            // Without branches: what a node is, is hard to predict.
            let is_sum = fuse & matches!(node.op, Op::Add | Op::Sub) & (a != b);
            let flags = if is_sum { State::NEEDED } else { State::NEEDED | State::KEPT };
            let next = [a, b].map(|arg| {
                let arg = &mut state[arg.index()];
                arg.flags |= flags;
                let is_listed = is_sum & (arg.op == Op::Mul) & !arg.is(State::STORED);
                // All bits, or none: nothing changes then, and what is remembered is `NONE`.
                let listed = u32::from(is_listed).wrapping_neg();
                let first = arg.real;
                arg.real = i as u32 & listed | first & !listed;
                first | !listed
            });
            if let Some(place) = self.sums.next.get_mut(i) {
                *place = next;
            }
        }
    }
}

impl Sums {
    /// Puts the product `id`, which nothing reads but sums and no output holds, into them, if none of them takes another one:
    /// whether it is gone.
    #[inline]
    pub(super) fn fuse(&mut self, state: &mut [State], id: NodeId, product: State) -> bool {
        let mut sum = product.real as usize;
        while let Some(node) = state.get(sum) {
            if node.is(State::TAKES) {
                return false;
            }
            sum = self.next[sum][usize::from(node.args[0] != id)] as usize;
        }
        sum = product.real as usize;
        while let Some(node) = state.get_mut(sum) {
            node.flags |= State::TAKES;
            sum = self.next[sum][usize::from(node.args[0] != id)] as usize;
        }
        state[id.index()] = State { real: id.index() as u32, flags: State::DONE | State::FUSED, ..product };
        self.n_fused += 1;
        true
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
