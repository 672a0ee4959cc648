//! Pending constraints, and defaults for those that remain.

use super::constraint::{Asked, Constraint, Failure, Outcome};
use super::table::{Class, Literal, Mismatch, Node, Table, TyId};

/// A type scheme: variables that each use instantiates, with constraints.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// Quantified variables.
    pub vars: Box<[TyId]>,
    /// Constraints.
    pub constraints: Vec<Asked>,
    /// The type.
    pub ty: TyId,
}

/// An instance of a scheme: the variables' instances, the type, the constraints.
pub type Instance = (Box<[TyId]>, TyId, Vec<Asked>);

/// Constraints by number; `None` once solved, failed or moved into a scheme.
#[derive(Default)]
pub struct Pending {
    items: Vec<Option<Asked>>,
}

impl Pending {
    /// Returns the number of constraints ever added, which is that of the next one.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.items.len()
    }

    /// Returns the pending constraints from number `mark` on.
    pub fn since(&self, mark: usize) -> impl Iterator<Item = (usize, &Asked)> {
        self.items.iter().enumerate().skip(mark).filter_map(|(k, asked)| asked.as_ref().map(|a| (k, a)))
    }

    /// Removes a constraint.
    pub fn take(&mut self, number: usize) -> Option<Asked> {
        self.items.get_mut(number).and_then(Option::take)
    }

    /// Adds a constraint and examines it; returns failures.
    pub fn add(&mut self, table: &mut Table, asked: Asked) -> Vec<(Asked, Failure)> {
        table.woken.push(self.items.len());
        self.items.push(Some(asked));
        self.wake(table)
    }

    /// Examines all constraints with newly bound variables; returns failures.
    pub fn wake(&mut self, table: &mut Table) -> Vec<(Asked, Failure)> {
        let mut failures = Vec::new();
        while let Some(number) = table.woken.pop() {
            let Some(asked) = self.take(number) else { continue };
            match asked.constraint.solve(table) {
                Outcome::Solved => {}
                Outcome::Fails(failure) => failures.push((asked, failure)),
                Outcome::Waits(on) => {
                    for ty in on {
                        if let Some(variable) = table.as_var_mut(ty)
                            && variable.watchers.last() != Some(&number)
                        {
                            variable.watchers.push(number);
                        }
                    }
                    if let Some(slot) = self.items.get_mut(number) {
                        *slot = Some(asked);
                    }
                }
            }
        }
        failures
    }

    /// Gives a sum that starts from a number literal the type of its terms.
    pub fn settle_accumulators(&mut self, table: &mut Table, mark: usize) -> Vec<(Asked, Failure)> {
        let waiting: Vec<Constraint> = self.since(mark).map(|(_, asked)| asked.constraint.clone()).collect();
        let mut failures = Vec::new();
        for constraint in waiting {
            let Constraint::Arith { a, b, result } = constraint else { continue };
            let (a, b, result) = (table.find(a), table.find(b), table.find(result));
            let mixed = |ty: TyId| table.as_var(ty).is_some_and(|v| v.literal == Literal::Mixed);
            if (result == a && mixed(a)) || (result == b && mixed(b)) {
                // Both are numbers, so they unify unless they are an `Int` and a `Double`.
                let _ = table.unify(a, b);
                failures.extend(self.wake(table));
            }
        }
        failures
    }

    /// Applies defaults to the constraints from `mark` on.
    pub fn assume(&mut self, table: &mut Table, mark: usize, defaults: Defaults) -> Vec<(Asked, Failure)> {
        let mut failures = self.settle_accumulators(table, mark);
        let numbers: Vec<usize> = self.since(mark).map(|(k, _)| k).collect();
        for number in numbers {
            let Some(Some(asked)) = self.items.get(number) else { continue };
            let double = table.double;
            match asked.constraint {
                Constraint::Compare { a, b } => {
                    let _ = table.unify(a, b);
                }
                Constraint::Arith { a, b, .. } => {
                    if table.as_var(a).is_some() && table.as_var(b).is_some() {
                        let _ = table.unify(a, b);
                    } else if defaults == Defaults::All {
                        for ty in [a, b] {
                            if table.as_var(ty).is_some() {
                                let _ = table.unify(ty, double);
                            }
                        }
                    }
                }
                _ => {}
            }
            failures.extend(self.wake(table));
        }
        failures
    }
}

/// Defaults of constraints on types that no use determines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Defaults {
    /// Both sides of a comparison are equal, and so are operands.
    Equality,
    /// In addition, every variable of a constraint becomes `Double`.
    All,
}

impl Scheme {
    /// Returns the scheme of a type that is not generalised.
    #[must_use]
    pub fn mono(ty: TyId) -> Self {
        Self { vars: Box::default(), constraints: Vec::new(), ty }
    }

    /// Instantiates the scheme.
    pub fn instantiate(&self, table: &mut Table) -> Result<Instance, Mismatch> {
        if self.vars.is_empty() {
            return Ok((Box::default(), self.ty, Vec::new()));
        }
        // A computed value is no number literal; the position of an argument may become one.
        let mut computed = rustc_hash::FxHashSet::default();
        for asked in &self.constraints {
            if let Constraint::Arith { result, .. } = asked.constraint {
                computed.insert(table.find(result));
            }
        }
        let fresh: Box<[TyId]> = self
            .vars
            .iter()
            .map(|var| {
                let (class, literal) = table.as_var(*var).map_or((Class::Any, Literal::No), |v| (v.class, v.literal));
                let place = literal == Literal::No && !computed.contains(&table.root(*var));
                table.var_of(class, if place { Literal::Open } else { literal })
            })
            .collect();
        let map: rustc_hash::FxHashMap<TyId, TyId> = self.vars.iter().copied().zip(fresh.iter().copied()).collect();
        let by = |ty: TyId| map.get(&ty).copied();
        let ty = table.substitute(self.ty, &by)?;
        let mut constraints = Vec::with_capacity(self.constraints.len());
        for asked in &self.constraints {
            let constraint = asked.constraint.try_map(|ty| table.substitute(ty, &by))?;
            constraints.push(Asked { constraint, span: asked.span, by: asked.by.clone() });
        }
        Ok((fresh, ty, constraints))
    }
}

/// Returns whether `ty` is a function.
#[must_use]
pub fn is_function(table: &Table, ty: TyId) -> bool {
    matches!(table.node(ty), Node::Fun(..))
}
