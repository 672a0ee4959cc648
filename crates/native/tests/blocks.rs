//! Adjacent blocks are one: a delayed load of one block is used in the next.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_backend_tests::by_hand::{ByHand, small_integers};
use chainrule_backend_tests::native::compare;
use chainrule_base::Poly;
use chainrule_kernel::{Class, Instr, Order, Stmt, verify};
use chainrule_ops::Op;

/// Stride of elements between lanes.
const FAR: i64 = 5;

#[test]
fn elements_that_are_apart_wait_for_the_next_block() {
    // Each lane accesses this many adjacent elements, or the same one this many times.
    for (n_fields, apart) in [(1, 1), (2, 1), (3, 1), (4, 1), (3, 0), (2, 3)] {
        for (n_first, lanes) in [(1, 8), (2, 8), (2, 5)] {
            let mut by_hand = ByHand::new("blocks");
            let (_, x) = by_hand.size(Class::Real);
            let y = by_hand.output(&Poly::constant(lanes));
            let lane = by_hand.reg(Class::Int);
            let fields: Vec<_> = (0..n_fields).map(|_| by_hand.reg(Class::Real)).collect();
            let at = |field: i64| Poly::var(lane).scale(FAR).add(&Poly::constant(apart * field));
            let loads = fields.iter().zip(0..).map(|(dst, field)| Instr::Load { dst: *dst, buffer: x, at: at(field) });
            let mut sum = fields[0];
            let mut adds = Vec::new();
            for field in &fields {
                let dst = by_hand.reg(Class::Real);
                adds.push(Instr::Op { dst, op: Op::Add, args: [sum, *field, sum] });
                sum = dst;
            }
            adds.push(Instr::Store { buffer: y, at: Poly::var(lane), value: sum });
            // Some are used in the block that loads them.
            let mut first: Vec<Instr> = loads.collect();
            first.extend(adds.drain(..n_first - 1));
            let body = vec![Stmt::Straight(first), Stmt::Straight(adds)];
            let count = Poly::constant(lanes);
            let the = Stmt::For { index: lane, count, carried: vec![], order: Order::Lanes, body };
            let kernel = by_hand.with_body(vec![the]);
            assert_eq!(verify(&kernel), Ok(()));
            compare(&kernel, &[small_integers(&kernel, &[60])]).unwrap();
        }
    }
}
