//! Operation counts of a function that keeps its loops: polynomials in its sizes.
//!
//! In: a function of the array IR as it is lowered, optimised and with its scalar regions unrolled. Out:
//! [`LoopCounts`]. A sum over an index is summed exactly (Faulhaber), so that half a matrix counts n (n + 1) / 2. Of a
//! branch on data the costlier side counts; a `while`, and a loop whose length is computed from data, counts as one
//! iteration. Linear in the function.

use crate::function::Body;
use crate::guard::guard;
use crate::{Error, Function, Result, Rewrite};
use chainrule_ir::{self as ir, Block, Expr, Size, StateLoop, Type, VarId};
use chainrule_ops::{Counts, Op};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fmt;

/// Assumed value of a size in the comparison of two branches.
const LARGE: f64 = 1000.0;

/// Polynomial in sizes and indices: coefficients by monomial, whose variables ascend.
#[derive(Clone, PartialEq, Default, Debug)]
struct Amount(BTreeMap<Vec<VarId>, f64>);

impl Amount {
    fn number(number: f64) -> Self {
        Self(BTreeMap::from([(Vec::new(), number)]))
    }

    fn of(size: &Size) -> Self {
        let mut sum = Self::default();
        for (monomial, factor) in size.terms() {
            sum.add_term(monomial.to_vec(), factor as f64);
        }
        sum
    }

    fn add_term(&mut self, mut monomial: Vec<VarId>, factor: f64) {
        monomial.sort_unstable();
        let sum = self.0.entry(monomial).or_default();
        *sum += factor;
    }

    fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(monomial, factor)| self.add_term(monomial.clone(), *factor));
        self.0.retain(|_, factor| *factor != 0.0);
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                product.add_term([a.as_slice(), b].concat(), x * y);
            }
        }
        product.0.retain(|_, factor| *factor != 0.0);
        product
    }

    /// Returns the sum of this over `index` from 0 to `count` - 1.
    fn summed(&self, index: VarId, count: &Self) -> Self {
        let mut sum = Self::default();
        for (monomial, factor) in &self.0 {
            let others: Vec<VarId> = monomial.iter().copied().filter(|var| *var != index).collect();
            let term = Self(BTreeMap::from([(others.clone(), *factor)]));
            sum.add(&term.times(&power_sum(monomial.len() - others.len(), count)));
        }
        sum
    }

    fn at(&self, value: &impl Fn(VarId) -> f64) -> f64 {
        self.0
            .iter()
            .map(|(monomial, factor)| monomial.iter().fold(*factor, |product, var| product * value(*var)))
            .sum()
    }
}

/// Returns the sum of i^k for i from 0 to n - 1; for k of 4 and more its leading term.
fn power_sum(k: usize, n: &Amount) -> Amount {
    let by_power: &[f64] = match k {
        0 => &[1.0],
        1 => &[-1.0 / 2.0, 1.0 / 2.0],
        2 => &[1.0 / 6.0, -1.0 / 2.0, 1.0 / 3.0],
        3 => &[0.0, 1.0 / 4.0, -1.0 / 2.0, 1.0 / 4.0],
        _ => &[],
    };
    let mut sum = Amount::default();
    let mut power = n.clone();
    for factor in by_power {
        sum.add(&power.times(&Amount::number(*factor)));
        power = power.times(n);
    }
    if by_power.is_empty() {
        let leading = (0..k).fold(n.clone(), |power, _| power.times(n));
        sum.add(&leading.times(&Amount::number(1.0 / (k as f64 + 1.0))));
    }
    sum
}

/// Classes of operations, in the order of [`Counts`], then their weight.
const CLASSES: [&str; 6] = ["add", "mul", "div", "neg", "call", "logic"];
const WEIGHT: usize = CLASSES.len();

fn by_class(counts: &Counts) -> [u64; WEIGHT + 1] {
    [counts.add, counts.mul, counts.div, counts.neg, counts.call, counts.logic, counts.weight]
}

/// Operation counts as polynomials in the sizes of a function. Printed: `3*n + 1 add, n*m mul`.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopCounts {
    classes: [Amount; WEIGHT + 1],
    names: BTreeMap<VarId, String>,
}

impl LoopCounts {
    /// Returns the counts of each class at `sizes`, by name; a size that is not named is 1.
    #[must_use]
    pub fn at(&self, sizes: &[(&str, i64)]) -> Counts {
        let value = |var: VarId| {
            let name = self.names.get(&var);
            sizes.iter().find(|(known, _)| name.is_some_and(|name| name == known)).map_or(1.0, |(_, size)| *size as f64)
        };
        let [add, mul, div, neg, call, logic, weight] =
            self.classes.each_ref().map(|amount| amount.at(&value).round().max(0.0) as u64);
        Counts { add, mul, div, neg, call, logic, weight }
    }

    fn polynomial(&self, amount: &Amount) -> String {
        let mut terms: Vec<(&Vec<VarId>, f64)> =
            amount.0.iter().map(|(monomial, factor)| (monomial, *factor)).collect();
        terms.sort_by_key(|(monomial, _)| (usize::MAX - monomial.len(), (*monomial).clone()));
        let mut text = String::new();
        for (monomial, factor) in terms {
            let mut factors: Vec<String> = Vec::new();
            let mut rest = monomial.as_slice();
            while let Some(var) = rest.first() {
                let power = rest.iter().take_while(|other| *other == var).count();
                let name = self.names.get(var).map_or("?", String::as_str);
                factors.push(if power == 1 { name.to_owned() } else { format!("{name}^{power}") });
                rest = &rest[power..];
            }
            let size = (factor.abs() * 1e6).round() / 1e6;
            if size != 1.0 || factors.is_empty() {
                factors.insert(0, format!("{size}"));
            }
            let sign = match (text.is_empty(), factor < 0.0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text.push_str(sign);
            text.push_str(&factors.join("*"));
        }
        text
    }
}

impl fmt::Display for LoopCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.classes[..WEIGHT]
            .iter()
            .zip(CLASSES)
            .filter(|(amount, _)| !amount.0.is_empty())
            .map(|(amount, class)| match amount.0.len() {
                1 => format!("{} {class}", self.polynomial(amount)),
                _ => format!("({}) {class}", self.polynomial(amount)),
            })
            .collect();
        if parts.is_empty() { f.write_str("no operations") } else { f.write_str(&parts.join(", ")) }
    }
}

impl Function {
    /// Operation counts of a function that keeps its loops, as polynomials in its sizes; `None` for straight-line code,
    /// which [`Self::counts`] counts. Of a branch on data the costlier side counts; a `while`, and a loop whose length
    /// is computed from data, counts as one iteration.
    ///
    /// # Errors
    /// Fails if derivatives in it cannot be worked out.
    ///
    /// ```
    /// use chainrule::Module;
    /// let text = "let f = fun (x : [n]Double) -> sum n (fun i -> sum i (fun j -> x[i] * x[j]))";
    /// let counts = Module::from_text("f.ft", text)?.function("f")?.loop_counts()?.expect("loops");
    /// assert_eq!(counts.at(&[("n", 10)]).call, 0);
    /// assert!(counts.to_string().contains("add"), "{counts}");
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn loop_counts(&self) -> Result<Option<LoopCounts>> {
        let Body::Array(body) = &self.decided()?.body else { return Ok(None) };
        let function = guard(|| {
            let expanded = Rewrite::All.expand(&body.function, None, body.semantics);
            let expanded = expanded.map_err(|d| Error::program(d, &body.sources))?;
            Ok(Rewrite::All.apply(expanded, body.semantics))
        })?;
        let walk = Walk::new(&function);
        let classes = walk.block(&function.body);
        let named = function.sizes.iter().chain(&function.params);
        let names = named.filter_map(|var| Some((*var, function.vars[*var].name.as_deref()?.to_owned()))).collect();
        Ok(Some(LoopCounts { classes, names }))
    }
}

struct Walk<'a> {
    function: &'a ir::Function,
    /// Expression of each variable that a statement binds.
    exprs: FxHashMap<VarId, &'a Expr>,
    /// Terms of sums, and the sums of two and branches of which they are made: they are added where they are not zero.
    terms: FxHashSet<VarId>,
}

type Classes = [Amount; WEIGHT + 1];

fn one(op: Op) -> Classes {
    let mut counts = Counts::default();
    counts.record(op);
    by_class(&counts).map(|n| if n == 0 { Amount::default() } else { Amount::number(n as f64) })
}

fn plus(sum: &mut Classes, other: &Classes) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| sum.add(other));
}

impl<'a> Walk<'a> {
    fn new(function: &'a ir::Function) -> Self {
        let mut walk = Self { function, exprs: FxHashMap::default(), terms: FxHashSet::default() };
        let mut todo = vec![&function.body];
        let mut sums = Vec::new();
        while let Some(block) = todo.pop() {
            for stmt in &block.stmts {
                walk.exprs.insert(stmt.var, &stmt.expr);
                todo.extend(stmt.expr.blocks());
                match &stmt.expr {
                    Expr::Sum { body, .. } => sums.push((body.result, false)),
                    Expr::Loop(StateLoop { body, .. }) => sums.push((body.result, true)),
                    _ => {}
                }
            }
        }
        let term = |(result, is_triple)| if is_triple { walk.last_field(result) } else { Some(result) };
        let mut todo: Vec<VarId> = sums.into_iter().filter_map(term).collect();
        walk.terms.extend(&todo);
        while let Some(var) = todo.pop() {
            let parts = match walk.exprs.get(&var) {
                Some(Expr::Plus(a, b)) => vec![*a, *b],
                Some(Expr::Tuple(fields)) => fields.to_vec(),
                Some(Expr::If { then, otherwise, .. }) => vec![then.result, otherwise.result],
                _ => continue,
            };
            todo.extend(parts.into_iter().filter(|part| walk.terms.insert(*part)));
        }
        walk
    }

    /// Returns the last field of the triple of a [`Expr::Loop`].
    fn last_field(&self, triple: VarId) -> Option<VarId> {
        match self.exprs.get(&triple) {
            Some(Expr::Tuple(parts)) => parts.last().copied(),
            _ => None,
        }
    }

    /// Recursive on the nesting of blocks.
    fn block(&self, block: &Block) -> Classes {
        let mut sum = Classes::default();
        for stmt in &block.stmts {
            plus(&mut sum, &self.expr(&stmt.expr, stmt.var));
        }
        sum
    }

    /// Returns the number of additions of doubles for adding the value of this variable to another. Recursive on the
    /// structure of sparse terms.
    fn added(&self, var: VarId) -> Amount {
        match self.exprs.get(&var) {
            Some(Expr::Zero) => Amount::default(),
            Some(Expr::OneHot { value, .. }) => self.added(*value),
            Some(Expr::Plus(a, b)) => {
                let mut sum = self.added(*a);
                sum.add(&self.added(*b));
                let all = words(self.function.ty(var));
                if sum.at(&|_| LARGE) <= all.at(&|_| LARGE) { sum } else { all }
            }
            Some(Expr::Tuple(fields)) => {
                let mut sum = Amount::default();
                fields.iter().for_each(|field| sum.add(&self.added(*field)));
                sum
            }
            Some(Expr::If { then, otherwise, .. }) => {
                let (a, b) = (self.added(then.result), self.added(otherwise.result));
                if a.at(&|_| LARGE) >= b.at(&|_| LARGE) { a } else { b }
            }
            _ => words(self.function.ty(var)),
        }
    }

    fn expr(&self, expr: &Expr, var: VarId) -> Classes {
        let is_double = |var: &VarId| *self.function.ty(*var) == Type::Double;
        let adds = |n: Amount| one(Op::Add).map(|amount| amount.times(&n));
        match expr {
            Expr::Op(op, args) if args.iter().any(is_double) => one(*op),
            Expr::Sum { count, index, body } => {
                let mut step = self.block(body);
                plus(&mut step, &adds(self.added(body.result)));
                self.repeated(&step, *index, count)
            }
            Expr::Build { size: count, index, body } | Expr::Fold(StateLoop { count, index, body, .. }) => {
                self.repeated(&self.block(body), *index, count)
            }
            Expr::Loop(StateLoop { count, index, body, .. }) => {
                let mut step = self.block(body);
                if let Some(term) = self.last_field(body.result) {
                    plus(&mut step, &adds(self.added(term)));
                }
                self.repeated(&step, *index, count)
            }
            Expr::Plus(..) if self.terms.contains(&var) => Classes::default(),
            Expr::Plus(a, b) => {
                let (a, b) = (self.added(*a), self.added(*b));
                adds(if a.at(&|_| LARGE) <= b.at(&|_| LARGE) { a } else { b })
            }
            Expr::If { then, otherwise, .. } => {
                let (a, b) = (self.block(then), self.block(otherwise));
                let weight = |classes: &Classes| classes[WEIGHT].at(&|_| LARGE);
                if weight(&a) >= weight(&b) { a } else { b }
            }
            other => {
                let mut sum = Classes::default();
                other.blocks().into_iter().for_each(|block| plus(&mut sum, &self.block(block)));
                sum
            }
        }
    }

    fn repeated(&self, step: &Classes, index: VarId, count: &Size) -> Classes {
        let count = Amount::of(count);
        step.each_ref().map(|amount| amount.summed(index, &count))
    }
}

fn words(ty: &Type) -> Amount {
    match ty {
        Type::Double => Amount::number(1.0),
        Type::Int | Type::Bool => Amount::default(),
        Type::Array(size, element) => Amount::of(size).times(&words(element)),
        Type::Tuple(fields, _) => {
            let mut sum = Amount::default();
            fields.iter().for_each(|field| sum.add(&words(field)));
            sum
        }
    }
}
