//! Removal of index checks, for callers who know that they hold.
//!
//! In: a kernel after all loop passes, which use the facts that its checks imply. Out: a kernel without
//! [`Instr::CheckIndex`] and without integers that only checks read. It computes the same if no check would fail.
//! Integer overflow, division by zero and loops beyond their limit are still detected.
//!
//! If a check would have failed, an address may be outside of its buffer. Backends still access no other memory: the
//! interpreter tests every address, machine code those that it cannot prove, unless the caller promises that all are
//! in range. They then report [`UNCHECKED`], not a bug of the kernel.

use crate::kernel::{Instr, Kernel};
use crate::prune::prune;
use crate::rebuild::{Pass, rebuild};

/// Message for an address outside of its buffer in a kernel without checks.
pub const UNCHECKED: &str = "an index lies outside of its array";

/// Reason why the message names no index.
const REASON: &str = "which one is not known, for checks of indices were left out";

impl Kernel {
    /// Returns the message for an index out of range and its reason, if [`unchecked`] removed the checks; otherwise
    /// `None`.
    #[must_use]
    pub fn unchecked_failure(&self) -> Option<(&str, &'static str)> {
        let found = self.failures.iter().find(|(message, _)| message == UNCHECKED)?;
        Some((&found.0, REASON))
    }
}

/// Removes the index checks of `kernel`, and code that becomes dead. Does nothing to a kernel without checks. Linear in
/// its size.
pub fn unchecked(kernel: &mut Kernel) {
    let mut pass = Drop { found: false };
    kernel.body = rebuild(std::mem::take(&mut kernel.body), &mut pass);
    if pass.found {
        prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
        kernel.failures.push((UNCHECKED.to_owned(), None));
    }
}

struct Drop {
    found: bool,
}

impl Pass for Drop {
    fn code(&mut self, mut code: Vec<Instr>) -> Vec<Instr> {
        let before = code.len();
        code.retain(|instr| !matches!(instr, Instr::CheckIndex { .. }));
        self.found |= code.len() < before;
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Buffer, Class, Place, Port, Reg, Stmt};
    use crate::verify::verify;
    use chainrule_base::{Arena, Id, Name, Poly};

    /// `y = x[at]` where a check looks at `at + 0`, which nothing else reads.
    fn gather() -> Kernel {
        let (mut regs, mut buffers) = (Arena::new(), Arena::new());
        let [at, copy, x]: [Reg; 3] = [Class::Int, Class::Int, Class::Real].map(|class| regs.push(class));
        let buffer = |class, len, place| Buffer { class, len: Poly::constant(len), place };
        let from = buffers.push(buffer(Class::Real, 5, Place::Input(0)));
        let index = buffers.push(buffer(Class::Int, 1, Place::Input(1)));
        let to = buffers.push(buffer(Class::Real, 1, Place::Output(0)));
        let port = |name, shape, buffer| Port { name: Name::new(name), shape, buffer };
        let code = vec![
            Instr::Load { dst: at, buffer: index, at: Poly::zero() },
            Instr::Int { dst: copy, value: Poly::var(at).add(&Poly::constant(0)).scale(2) },
            Instr::CheckIndex { index: copy, len: Poly::constant(10), failure: 0 },
            Instr::Load { dst: x, buffer: from, at: Poly::var(at) },
            Instr::Store { buffer: to, at: Poly::zero(), value: x },
        ];
        Kernel {
            name: Name::new("gather"),
            regs: regs.into(),
            sizes: vec![],
            inputs: vec![port("x", vec![Poly::constant(5)], from), port("at", vec![], index)],
            outputs: vec![port("y", vec![], to)],
            buffers,
            requires: vec![],
            workspace_reals: Poly::zero(),
            workspace_ints: Poly::zero(),
            externals: vec![],
            failures: vec![("outside".to_owned(), None)],
            zeros: vec![],
            body: vec![Stmt::Straight(code)],
        }
    }

    #[test]
    fn checks_go_with_the_values_that_only_they_read() {
        let mut kernel = gather();
        assert_eq!((verify(&kernel).is_ok(), kernel.unchecked_failure()), (true, None));
        unchecked(&mut kernel);
        assert_eq!(verify(&kernel), Ok(()));
        let Some(Stmt::Straight(code)) = kernel.body.first() else { panic!("its code has gone") };
        let kinds: Vec<bool> = code.iter().map(|instr| matches!(instr, Instr::Load { .. })).collect();
        assert_eq!(kinds, [true, true, false], "{kernel}");
        assert!(kernel.unchecked_failure().is_some());
        // Once more does nothing.
        let before = kernel.to_string();
        let n_failures = kernel.failures.len();
        unchecked(&mut kernel);
        assert_eq!((kernel.to_string(), kernel.failures.len()), (before, n_failures));
        assert_eq!(kernel.regs[Reg::new(1)], Class::Int);
    }
}
