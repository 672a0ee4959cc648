//! Additions under a condition that lanes do everywhere.
//!
//! A branch that adds to elements, such as the gradient of a pair within a radius, keeps its loop in sequence. Where
//! it adds -0 instead ([`choices`](crate::choices)), the elements keep their bits, and the loop can be distributed and
//! run in lanes. It then computes and adds for all iterations: both forms are estimated.

use super::{LoopAccount, account, distribute};
use crate::choices::{choose, with_additions};
use crate::events::events;
use crate::kernel::Kernel;
use chainrule_ops::Semantics;

/// Converts branches of `kernel` that add to elements if it is then faster. As [`vectorise`](super::vectorise()).
pub(crate) fn convert_additions(kernel: &mut Kernel, semantics: Semantics) {
    let conditions = with_additions(kernel, &events(&kernel.body));
    if conditions.is_empty() {
        return;
    }
    let mut tried = kernel.clone();
    choose(&mut tried.regs, &mut tried.body, &conditions);
    let in_lanes = |kernel: &Kernel| -> f64 {
        let mut kernel = kernel.clone();
        if semantics == Semantics::Algebraic {
            distribute(&mut kernel);
        }
        let best = |it: &LoopAccount| it.inside.into_iter().chain(it.lanes).fold(it.sequence, f64::min);
        account(&kernel, semantics, None).iter().filter(|it| it.depth == 0).map(best).sum()
    };
    if in_lanes(&tried) < in_lanes(kernel) {
        *kernel = tried;
    }
}
