//! What alone uses an array that branches make moves into them (figure 7f): `f (if c then x else y)` becomes
//! `if c then f x else f y`, and in each branch the array may vanish.
//!
//! Only one statement moves, and it stands twice then; which ones are worth that, [`crate::fusion`] tells. Nothing runs
//! that did not run before: of the branches one is taken, and what uses the array did run.

use super::{Env, Expr, Rebuild, VarId};
use crate::rules::is_mask;
use crate::walk;
use chainrule_ir::Block;

impl Rebuild<'_> {
    /// `var`, which uses `arrays`, in the branches that make them; nothing where they are no longer made by branches, or
    /// not under one condition.
    pub(super) fn in_branches(&mut self, var: VarId, arrays: &[VarId]) -> Option<VarId> {
        let user = self.def(var)?;
        let mut used = Vec::new();
        walk::mentioned(&user, &mut |v| used.push(v));
        let mut condition = None;
        let mut made: Vec<(VarId, [Block; 2])> = Vec::new();
        for array in arrays.iter().filter(|array| used.contains(array)) {
            let def = self.def(*array)?;
            let Expr::If { condition: own, then, otherwise } = &*def else { continue };
            if *condition.get_or_insert(*own) == *own && !is_mask(self, *array) {
                made.push((*array, [then.clone(), otherwise.clone()]));
            }
        }
        let condition = condition.filter(|_| !made.is_empty())?;
        let ty = self.ty(var).clone();
        let branch = |rb: &mut Self, which: usize| {
            let mut env = Env::copying(&[]);
            for (array, blocks) in &made {
                let block = &blocks[which];
                let value = rb.inline(block, block.result, &mut Env::copying(&[]));
                env.insert(*array, value);
            }
            rb.write(&user, ty.clone(), (None, None), &mut env)
        };
        Some(self.if_(condition, &ty, |rb| branch(rb, 0), |rb| branch(rb, 1)))
    }
}
