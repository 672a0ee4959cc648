//! Integers that data select.
//!
//! The row of a pivot or the place of a maximum is one of a few constants, each under a condition on data. Exactly one
//! of the conditions is true. Operators on such integers are evaluated for each alternative, elements at them are
//! selected, and loops that they count run as often as the largest, with steps that do nothing.
//!
//! Quadratic in the alternatives of an operator with two such arguments, otherwise linear; at most
//! [`MAX_ALTERNATIVES`].

use super::{Tree, Truth, Unrolled, Unroller, at, mismatch};
use chainrule_base::{Diagnostic, Span};
use chainrule_graph::NodeId;
use chainrule_ir::{Block, Size};
use chainrule_ops::Op;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum number of constants that an integer may be.
const MAX_ALTERNATIVES: usize = 32;

/// Constants with nodes that are 1 where the integer is that constant: distinct ones in ascending order, two at least.
pub type Alternatives = Rc<[(i64, NodeId)]>;

/// Constants under conditions that exclude each other.
type Guarded = Vec<(i64, NodeId)>;

/// How often a loop runs.
pub(super) struct Steps {
    /// Steps that always run.
    certain: i64,
    /// Conditions of the steps after them.
    guards: Vec<NodeId>,
}

impl Steps {
    pub(super) fn most(&self) -> i64 {
        self.certain + self.guards.len() as i64
    }

    /// Returns the condition of step `i`.
    pub(super) fn guard(&self, i: i64) -> Option<NodeId> {
        self.guards.get(usize::try_from(i - self.certain).ok()?).copied()
    }
}

impl Unroller<'_> {
    /// Returns the constants that `tree` may be, with their conditions.
    pub(super) fn alternatives(&mut self, tree: &Tree) -> Unrolled<Guarded> {
        match tree {
            Tree::Int(i) => Ok(vec![(*i, self.graph.constant(1.0))]),
            Tree::Chosen(alternatives) => Ok(alternatives.to_vec()),
            other => Err(mismatch(other, "an integer")),
        }
    }

    /// Returns the integer that is one of `guarded`, each under its condition.
    pub(super) fn chosen(&mut self, guarded: Guarded, span: Option<Span>) -> Unrolled<Tree> {
        let mut distinct: BTreeMap<i64, NodeId> = BTreeMap::new();
        for (value, guard) in guarded {
            if self.graph.as_const(guard) == Some(0.0) {
                continue;
            }
            let guard = match distinct.get(&value) {
                Some(other) => self.graph.apply(Op::Or, &[*other, guard]),
                None => guard,
            };
            distinct.insert(value, guard);
        }
        let alternatives: Guarded = distinct.into_iter().collect();
        if let [(value, _)] = alternatives.as_slice() {
            return Ok(Tree::Int(*value));
        }
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err(refusal(&format!("an integer may have more than {MAX_ALTERNATIVES} values"), span));
        }
        if let Some(certain) = alternatives.iter().find(|(_, guard)| self.graph.as_const(*guard).is_some()) {
            return Ok(Tree::Int(certain.0));
        }
        Ok(Tree::Chosen(alternatives.into()))
    }

    /// Returns how often a loop runs.
    pub(super) fn steps(&mut self, count: &Size, span: Option<Span>) -> Unrolled<Steps> {
        let alternatives = match self.integer(count, span)? {
            Tree::Int(certain) => return Ok(Steps { certain, guards: Vec::new() }),
            tree => self.alternatives(&tree)?,
        };
        let (certain, most) = (alternatives[0].0.max(0), alternatives[alternatives.len() - 1].0);
        let mut guards = Vec::new();
        for i in certain..most {
            let runs = alternatives.iter().filter(|(count, _)| *count > i).map(|(_, guard)| *guard);
            guards.push(self.any(runs));
            if guards.len() > MAX_ALTERNATIVES {
                return Err(refusal(&format!("a loop may have {} steps more or less", most - certain), span));
            }
        }
        Ok(Steps { certain, guards })
    }

    /// Returns the result of a step that runs under a condition, if there is one.
    pub(super) fn step(&mut self, body: &Block, guard: Option<NodeId>) -> Unrolled<Tree> {
        let open = usize::from(guard.is_some());
        self.speculative += open;
        let result = self.block(body);
        self.speculative -= open;
        result
    }

    /// Returns the result of such a step, or `otherwise` where it does not run.
    pub(super) fn where_it_runs(
        &mut self,
        guard: Option<NodeId>,
        result: Tree,
        otherwise: &Tree,
        span: Option<Span>,
    ) -> Unrolled<Tree> {
        match guard {
            Some(guard) => self.select(guard, &result, otherwise, span),
            None => Ok(result),
        }
    }

    /// Returns `a` if `condition` is true, else `b`.
    pub(super) fn select_integer(
        &mut self,
        condition: NodeId,
        a: &Tree,
        b: &Tree,
        span: Option<Span>,
    ) -> Unrolled<Tree> {
        let opposite = self.graph.apply(Op::Not, &[condition]);
        let mut guarded = Vec::new();
        for (tree, condition) in [(a, condition), (b, opposite)] {
            for (value, guard) in self.alternatives(tree)? {
                guarded.push((value, self.graph.apply(Op::And, &[condition, guard])));
            }
        }
        self.chosen(guarded, span)
    }

    /// Returns the values of all combinations of `args`, with their conditions.
    pub(super) fn combinations(&mut self, args: &[Tree], span: Option<Span>) -> Unrolled<Vec<(Vec<i64>, NodeId)>> {
        let mut combinations = vec![(Vec::new(), self.graph.constant(1.0))];
        for arg in args {
            let alternatives = self.alternatives(arg)?;
            let mut longer = Vec::new();
            for (values, guard) in &combinations {
                for (value, other) in &alternatives {
                    let both = self.graph.apply(Op::And, &[*guard, *other]);
                    if self.graph.as_const(both) != Some(0.0) {
                        longer.push(([values.as_slice(), &[*value]].concat(), both));
                    }
                }
            }
            combinations = longer;
            if combinations.len() > MAX_ALTERNATIVES * MAX_ALTERNATIVES {
                return Err(refusal("integers have too many combinations of values", span));
            }
        }
        Ok(combinations)
    }

    /// Returns a node that is 1 if one of the conditions is true.
    pub(super) fn any(&mut self, guards: impl IntoIterator<Item = NodeId>) -> NodeId {
        let none = self.graph.constant(0.0);
        guards.into_iter().fold(none, |any, guard| self.graph.apply(Op::Or, &[any, guard]))
    }

    /// Returns whether `guard` is true, as a value of the program.
    pub(super) fn truth(&mut self, guard: NodeId) -> Tree {
        Tree::Bool(self.graph.as_const(guard).map_or(Truth::Open(guard), |c| Truth::Known(c != 0.0)))
    }

    /// Returns a number for each alternative of an integer, selected by the conditions.
    pub(super) fn selected(
        &mut self,
        guarded: &[(i64, NodeId)],
        span: Option<Span>,
        mut value: impl FnMut(&mut Self, i64) -> Unrolled<Tree>,
    ) -> Unrolled<Tree> {
        let Some(((last, _), others)) = guarded.split_last() else {
            return Err(Diagnostic::bug("an integer has no value"));
        };
        let mut selected = value(self, *last)?;
        for (i, guard) in others.iter().rev() {
            let own = value(self, *i)?;
            selected = self.select(*guard, &own, &selected, span)?;
        }
        Ok(selected)
    }

    /// Returns `zeros` but for the element `value` at the chosen index.
    pub(super) fn chosen_one_hot(
        &mut self,
        zeros: &Tree,
        index: &Alternatives,
        value: &Tree,
        span: Option<Span>,
    ) -> Unrolled<Tree> {
        let Tree::Many(elements) = zeros else { return Err(mismatch(zeros, "an array")) };
        let mut elements = elements.to_vec();
        for (i, guard) in index.iter() {
            match usize::try_from(*i).ok().and_then(|i| elements.get_mut(i)) {
                Some(element) => *element = self.select(*guard, value, element, span)?,
                None => self.outside(span)?,
            }
        }
        Ok(Tree::Many(elements.into()))
    }

    /// Accepts an index outside of its array where the code may not run. Elsewhere loops would report it, if data
    /// select it; straight-line code has no such checks.
    pub(super) fn outside(&self, span: Option<Span>) -> Unrolled<()> {
        if self.speculative > 0 {
            return Ok(());
        }
        Err(refusal("an index that depends on data may be out of range", span))
    }
}

/// Returns the limitation that something cannot be unrolled because integers depend on data.
pub(super) fn refusal(reason: &str, span: Option<Span>) -> Diagnostic {
    let diagnostic = Diagnostic::limitation("integers that depend on data cannot be unrolled here")
        .with_reason(reason)
        .with_help("keep its loops: derive it as an array program");
    at(diagnostic, span, "computed here")
}
