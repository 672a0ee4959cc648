//! Products of roots of one number, before differentiation.
//!
//! In: a function whose doubles may be treated as real numbers. Out: the function with at most one root of a number in
//! a product. The product has derivatives where its factors have none, and the chain rule would meet infinities that
//! zeros hide or that do not cancel.
//!
//! | product | becomes |
//! | --- | --- |
//! | `sqrt u * sqrt u`, `sqrt u ** 2`, `cbrt u ** 3` | `u` |
//! | `(c * sqrt u) ** 2` | `c ** 2 * u` |
//! | `x * sqrt u * sqrt u * sqrt u` | `x * u * sqrt u` |
//! | `cbrt u * u ** 1.5`, `sqrt u * cbrt u` | `u ** (11/6)`, `u ** (5/6)` |
//! | `u / sqrt u` | `sqrt u` |
//!
//! A product with one root of a number stays, and so do roots in denominators, where they are poles. `cbrt u * cbrt u`
//! stays, because no operator is that power of a negative number.

use chainrule_base::{Arena, Span};
use chainrule_ir::{Block, Expr, Function, Size, Stmt, Type, Var, VarId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Returns `function` with roots of one number multiplied. Linear in its size.
#[must_use]
pub fn without_products_of_roots(function: &Function) -> Cow<'_, Function> {
    if !has_root(&function.body) {
        return Cow::Borrowed(function);
    }
    let mut function = function.clone();
    let Function { body, vars, .. } = &mut function;
    Pass { vars, defs: FxHashMap::default(), firsts: FxHashMap::default(), classes: FxHashMap::default() }.block(body);
    Cow::Owned(function)
}

// Recursive on the nesting of blocks.
fn has_root(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| {
        matches!(stmt.expr, Expr::Op(Op::Sqrt | Op::Cbrt | Op::Pow, _)) || stmt.expr.blocks().into_iter().any(has_root)
    })
}

/// Maximum number of factors of a product that is searched for roots.
const MAX_FACTORS: usize = 8;

/// Expression by the classes of its operands: equal keys have equal values.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Real(u64),
    Size(Size),
    Op(Op, Vec<VarId>),
    ToReal(VarId),
    Get(VarId, VarId),
    Component(VarId, usize),
}

struct Pass<'a> {
    vars: &'a mut Arena<VarId, Var>,
    /// Roots, powers, products and numbers so far.
    defs: FxHashMap<VarId, Expr>,
    /// First variable of each expression.
    firsts: FxHashMap<Key, VarId>,
    /// First variable with the same value, for variables that are not their own.
    classes: FxHashMap<VarId, VarId>,
}

/// Factor `value ** times` of a product, where `value` is `base ** root`.
#[derive(Clone, Copy)]
struct Factor {
    value: VarId,
    times: f64,
    base: VarId,
    /// 1 for a value that is no root.
    root: f64,
    is_cbrt: bool,
}

impl Factor {
    fn is_root(&self) -> bool {
        self.root.fract() != 0.0
    }
}

/// Power of one number that replaces factors.
struct Power {
    base: VarId,
    exponent: f64,
    is_cbrt: bool,
}

impl Power {
    /// Returns the product of all powers of one number, if it has several roots that one operator can replace.
    fn of(factors: &[Factor]) -> Option<Self> {
        let n_roots: f64 = factors.iter().filter(|factor| factor.is_root()).map(|factor| factor.times).sum();
        if n_roots < 2.0 {
            return None;
        }
        let exponent: f64 = factors.iter().map(|factor| factor.root * factor.times).sum();
        // Thirds are not doubles.
        let sixths = (exponent * 6.0).round();
        let exponent = if (exponent * 6.0 - sixths).abs() < 1e-12 { sixths / 6.0 } else { exponent };
        let is_cbrt = factors.iter().all(|factor| factor.is_cbrt || !factor.is_root());
        let has_operator = !is_cbrt || sixths % 6.0 == 0.0 || sixths % 6.0 == 2.0;
        (exponent > 0.0 && has_operator).then(|| Self { base: factors[0].base, exponent, is_cbrt })
    }
}

impl Pass<'_> {
    // Recursive on the nesting of blocks.
    fn block(&mut self, block: &mut Block) {
        let mut done = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if let Some(expr) = self.replaced(&stmt, &mut done) {
                stmt.expr = expr;
            }
            if let Some(quotient) = self.quotient(&stmt.expr) {
                self.defs.insert(stmt.var, Expr::Real(quotient));
            } else if matches!(stmt.expr, Expr::Op(Op::Sqrt | Op::Cbrt | Op::Pow | Op::Mul, _) | Expr::Real(_)) {
                self.defs.insert(stmt.var, stmt.expr.clone());
            }
            if let Some(key) = self.key(&stmt.expr) {
                let first = *self.firsts.entry(key).or_insert(stmt.var);
                if first != stmt.var {
                    self.classes.insert(stmt.var, first);
                }
            }
            stmt.expr.blocks_mut().into_iter().for_each(|inner| self.block(inner));
            done.push(stmt);
        }
        block.stmts = done;
    }

    fn class(&self, var: VarId) -> VarId {
        self.classes.get(&var).copied().unwrap_or(var)
    }

    fn key(&self, expr: &Expr) -> Option<Key> {
        Some(match expr {
            Expr::Real(c) => Key::Real(c.to_bits()),
            Expr::Size(size) => Key::Size(size.clone()),
            Expr::Op(op, args) => Key::Op(*op, args.iter().map(|arg| self.class(*arg)).collect()),
            Expr::ToReal(int) => Key::ToReal(self.class(*int)),
            Expr::Get { array, index, .. } => Key::Get(self.class(*array), self.class(*index)),
            Expr::Component(tuple, k) => Key::Component(self.class(*tuple), *k),
            _ => return None,
        })
    }

    /// Returns the expression of a product or power without products of roots; adds statements to `done`.
    fn replaced(&mut self, stmt: &Stmt, done: &mut Vec<Stmt>) -> Option<Expr> {
        let (op @ (Op::Mul | Op::Pow | Op::Div), args) = (match &stmt.expr {
            Expr::Op(op, args) if self.vars[stmt.var].ty == Type::Double => Some((*op, args)),
            _ => None,
        })?
        else {
            return None;
        };
        let mut emit = |pass: &mut Self, expr| pass.emit(expr, stmt.span, done);
        if op == Op::Div {
            let is_root = self
                .root(args[1])
                .is_some_and(|(base, root, _)| root == 0.5 && self.class(base) == self.class(args[0]));
            return is_root.then(|| {
                let one = emit(self, Expr::Real(1.0));
                Expr::op(Op::Mul, &[args[1], one])
            });
        }
        let mut factors = self.factors(stmt)?;
        let mut powers = Vec::new();
        while let Some(root) = factors.iter().find(|factor| factor.is_root() && factor.times > 0.0).copied() {
            let class = self.class(root.base);
            let (same, others): (Vec<Factor>, Vec<Factor>) =
                factors.iter().partition(|factor| self.class(factor.base) == class);
            match Power::of(&same) {
                Some(power) => {
                    powers.push(power);
                    factors = others;
                }
                // Each of them is a factor by itself.
                None => factors = factors.iter().map(|factor| self.alone(*factor, class)).collect(),
            }
        }
        if powers.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        for factor in factors {
            values.push(self.power(factor.value, factor.times, &mut emit));
        }
        for Power { base, exponent, is_cbrt } in powers {
            let whole = exponent.trunc();
            let root = match exponent - whole {
                0.0 => None,
                0.5 => Some(Op::Sqrt),
                _ if is_cbrt => Some(Op::Cbrt),
                _ => {
                    values.push(self.power(base, exponent, &mut emit));
                    continue;
                }
            };
            if whole > 0.0 {
                values.push(self.power(base, whole, &mut emit));
            }
            if let Some(op) = root {
                values.push(emit(self, Expr::op(op, &[base])));
            }
        }
        let last = values.pop()?;
        let first = values.into_iter().reduce(|a, b| emit(self, Expr::op(Op::Mul, &[a, b])));
        let first = first.unwrap_or_else(|| emit(self, Expr::Real(1.0)));
        Some(Expr::op(Op::Mul, &[first, last]))
    }

    fn alone(&self, factor: Factor, class: VarId) -> Factor {
        match self.class(factor.base) == class {
            true => Factor { base: factor.value, root: 1.0, is_cbrt: false, ..factor },
            false => factor,
        }
    }

    fn emit(&mut self, expr: Expr, span: Option<Span>, done: &mut Vec<Stmt>) -> VarId {
        let var = self.vars.push(Var { ty: Type::Double, name: None, span, value: None });
        if matches!(expr, Expr::Op(..) | Expr::Real(_)) {
            self.defs.insert(var, expr.clone());
        }
        done.push(Stmt { var, expr, span });
        var
    }

    fn power(&mut self, base: VarId, exponent: f64, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> VarId {
        if exponent == 1.0 {
            return base;
        }
        let exponent = emit(self, Expr::Real(exponent));
        emit(self, Expr::op(Op::Pow, &[base, exponent]))
    }

    /// Returns the factors of a product or a whole power.
    fn factors(&self, stmt: &Stmt) -> Option<Vec<Factor>> {
        let (mut open, mut factors) = (vec![], Vec::new());
        self.open(&stmt.expr, 1.0, &mut open)?;
        while let Some((value, times)) = open.pop() {
            if let Some((base, root, is_cbrt)) = self.root(value) {
                factors.push(Factor { value, times, base, root, is_cbrt });
                continue;
            }
            let is_open = open.len() + factors.len() < MAX_FACTORS
                && self.defs.get(&value).is_some_and(|def| self.open(def, times, &mut open).is_some());
            if !is_open {
                factors.push(Factor { value, times, base: value, root: 1.0, is_cbrt: false });
            }
        }
        Some(factors)
    }

    /// Adds the factors of an expression to the power `times`, if it is a product or a whole power.
    fn open(&self, expr: &Expr, times: f64, open: &mut Vec<(VarId, f64)>) -> Option<()> {
        match expr {
            Expr::Op(Op::Mul, args) => open.extend(args.iter().map(|arg| (*arg, times))),
            Expr::Op(Op::Pow, args) => {
                let exponent = self.number(args[1]).filter(|e| *e >= 1.0 && *e <= MAX_EXPONENT && e.fract() == 0.0)?;
                open.push((args[0], times * exponent));
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the base and the exponent of a root, and whether it is a cubic one.
    fn root(&self, value: VarId) -> Option<(VarId, f64, bool)> {
        match self.defs.get(&value)? {
            Expr::Op(Op::Sqrt, args) => Some((args[0], 0.5, false)),
            Expr::Op(Op::Cbrt, args) => Some((args[0], 1.0 / 3.0, true)),
            Expr::Op(Op::Pow, args) => {
                let exponent = self.number(args[1]).filter(|e| *e > 0.0 && *e <= MAX_EXPONENT && e.fract() != 0.0)?;
                Some((args[0], exponent, false))
            }
            _ => None,
        }
    }

    /// Returns the value of a fraction, such as `1/3`.
    fn quotient(&self, expr: &Expr) -> Option<f64> {
        match expr {
            Expr::Op(Op::Div, args) => Some(self.number(args[0])? / self.number(args[1])?),
            _ => None,
        }
    }

    fn number(&self, var: VarId) -> Option<f64> {
        match self.defs.get(&var)? {
            Expr::Real(c) => Some(*c),
            _ => None,
        }
    }
}

/// Maximum exponent of a power that is opened.
const MAX_EXPONENT: f64 = 64.0;
