//! Loops and branches with closures as bodies.

use super::program::{Part, Program};
use super::term::{Operand, Term};

// Counts and states read best by value: they are literals or new terms.
#[allow(clippy::needless_pass_by_value)]
impl Program {
    /// Returns the array of `element(0)`, ..., `element(n - 1)`.
    #[must_use]
    pub fn build(&self, n: impl Operand, element: impl FnOnce(Term) -> Term) -> Term {
        self.over("build", &n, element)
    }

    /// Returns the sum of `element(0)`, ..., `element(n - 1)`, a `Double`.
    #[must_use]
    pub fn sum(&self, n: impl Operand, element: impl FnOnce(Term) -> Term) -> Term {
        self.over("sum", &n, element)
    }

    fn over(&self, name: &str, n: &impl Operand, element: impl FnOnce(Term) -> Term) -> Term {
        let n = self.term(self.atom(n));
        let index = self.open(&["i"]).remove(0);
        let lambda = self.close(element(index));
        self.apply(name, [n.into(), Part::Lambda(lambda)])
    }

    /// Returns the state after `n` steps from `start`: `step(state, i)` for `i` from 0.
    #[must_use]
    pub fn fold(&self, start: impl Operand, n: impl Operand, step: impl FnOnce(Term, Term) -> Term) -> Term {
        self.carry("ifold", &start, &n, step)
    }

    /// Does the same as [`Self::fold`] for a `step` that returns the next state and an element; returns the last state,
    /// and the array of elements.
    #[must_use]
    pub fn scan(
        &self,
        start: impl Operand,
        n: impl Operand,
        step: impl FnOnce(Term, Term) -> (Term, Term),
    ) -> (Term, Term) {
        let both = self.carry("scan", &start, &n, |state, index| {
            let (state, element) = step(state, index);
            self.tuple(&[&state, &element])
        });
        (both.component(0), both.component(1))
    }

    fn carry(&self, name: &str, start: &impl Operand, n: &impl Operand, step: impl FnOnce(Term, Term) -> Term) -> Term {
        let (start, n) = (self.term(self.atom(start)), self.term(self.atom(n)));
        let mut params = self.open(&["s", "i"]);
        let (index, state) = (params.remove(1), params.remove(0));
        let lambda = self.close(step(state, index));
        self.apply(name, [Part::Lambda(lambda), start.into(), n.into()])
    }

    /// Returns the first state from `start` on, by `step`, for which `holds` is false; running fails if that takes more
    /// than `limit` steps.
    #[must_use]
    pub fn repeat_while(
        &self,
        start: impl Operand,
        limit: impl Operand,
        holds: impl FnOnce(Term) -> Term,
        step: impl FnOnce(Term) -> Term,
    ) -> Term {
        let (start, limit) = (self.term(self.atom(&start)), self.term(self.atom(&limit)));
        let state = self.open(&["s"]).remove(0);
        let holds = self.close(holds(state));
        let state = self.open(&["s"]).remove(0);
        let step = self.close(step(state));
        self.apply("while", [Part::Lambda(holds), Part::Lambda(step), start.into(), limit.into()])
    }

    /// Returns `then` if the condition holds, otherwise `otherwise`; the other one is not evaluated, and neither its
    /// value nor its derivatives reach the result.
    #[must_use]
    pub fn branch(
        &self,
        condition: impl Operand,
        then: impl FnOnce() -> Term,
        otherwise: impl FnOnce() -> Term,
    ) -> Term {
        let _ = self.open(&[]);
        let then = self.close(then());
        let _ = self.open(&[]);
        let otherwise = self.close(otherwise());
        self.choose(condition, then, otherwise)
    }
}
