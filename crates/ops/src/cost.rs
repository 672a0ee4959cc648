//! Costs of operators, and counts of operations.

use crate::Op;
use std::fmt;
use std::ops::{Add, AddAssign};

/// Class in which an operation is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CostClass {
    /// Addition or subtraction.
    Add,
    /// Multiplication.
    Mul,
    /// Division.
    Div,
    /// A negation that remains in the code.
    Neg,
    /// A function: square root, sine, ...
    Call,
    /// Comparison, selection, minimum, absolute value: one or two cheap instructions.
    Logic,
}

/// Operation counts, one per class.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Additions and subtractions.
    pub add: u64,
    /// Multiplications.
    pub mul: u64,
    /// Divisions.
    pub div: u64,
    /// Negations.
    pub neg: u64,
    /// Function calls.
    pub call: u64,
    /// Comparisons, selections, minima, absolute values.
    pub logic: u64,
    /// Sum of the operators' weights, by which programs are compared.
    pub weight: u64,
}

impl Counts {
    /// Counts one application of `op`; of a composite operator, of each of its steps.
    pub fn record(&mut self, op: Op) {
        self.record_many(op, 1);
    }

    /// Counts `n` applications of `op`.
    pub fn record_many(&mut self, op: Op, n: u64) {
        let row = op.row();
        if let Some(steps) = row.steps {
            // These have no steps of their own.
            steps.operators().into_iter().for_each(|op| self.record_many(op, n));
            return;
        }
        let class = match row.cost {
            CostClass::Add => &mut self.add,
            CostClass::Mul => &mut self.mul,
            CostClass::Div => &mut self.div,
            CostClass::Neg => &mut self.neg,
            CostClass::Call => &mut self.call,
            CostClass::Logic => &mut self.logic,
        };
        *class += n;
        self.weight += n * u64::from(row.weight);
    }

    /// Returns the number of arithmetic operations: additions, multiplications, divisions, negations.
    #[must_use]
    pub fn arithmetic(&self) -> u64 {
        self.add + self.mul + self.div + self.neg
    }
}

impl Add for Counts {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.add += other.add;
        self.mul += other.mul;
        self.div += other.div;
        self.neg += other.neg;
        self.call += other.call;
        self.logic += other.logic;
        self.weight += other.weight;
    }
}

/// `12 add, 30 mul, 1 call`: the classes that occur, or `no operations`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = [
            (self.add, "add"),
            (self.mul, "mul"),
            (self.div, "div"),
            (self.neg, "neg"),
            (self.call, "call"),
            (self.logic, "logic"),
        ];
        let parts: Vec<String> =
            classes.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
        if parts.is_empty() { f.write_str("no operations") } else { f.write_str(&parts.join(", ")) }
    }
}
