//! The only user of an array built in branches moves into them (figure 7f): `f (if c then x else y)` becomes `if c then
//! f x else f y`, and in each branch the array may vanish.
//!
//! Only one statement moves, and is then duplicated; [`crate::fusion`] decides which ones are worth it. Nothing runs
//! that did not run before: one of the branches is taken, and the user of the array ran.

use super::{Env, Expr, Rebuild, VarId};
use crate::rules::is_mask;
use crate::walk;
use chainrule_ir::Block;

impl Rebuild<'_> {
    /// Writes `var`, which uses `arrays`, into the branches that build them; `None` if they are no longer built in
    /// branches under one condition.
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
