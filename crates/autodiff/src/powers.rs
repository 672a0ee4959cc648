//! Products and powers of roots of one number, before differentiation.
//!
//! In: a function whose doubles may be treated as real numbers. Out: the function with at most one root of a number in
//! a product, and no root of a power. The result has derivatives where its factors have none, and the chain rule would
//! meet infinities that zeros hide or that do not cancel.
//!
//! | expression | becomes |
//! | --- | --- |
//! | `sqrt u * sqrt u`, `sqrt u ** 2`, `cbrt u ** 3`, `sqrt (sqrt u) ** 4` | `u` |
//! | `(c * sqrt u) ** 2` | `c ** 2 * u` |
//! | `sqrt u * sqrt (2 * u)` | `sqrt 2 * u` |
//! | `sqrt (-u) * sqrt (u * (-3))` | `sqrt 3 * (-u)` |
//! | `x * sqrt u * sqrt u * sqrt u` | `x * u * sqrt u` |
//! | `cbrt u * u ** 1.5`, `sqrt u * cbrt u` | `u ** (11/6)`, `u ** (5/6)` |
//! | `sqrt u * abs u`, `abs u ** 2` | `u * sqrt u`, `u ** 2` |
//! | `u / sqrt u` | `sqrt u` |
//! | `sqrt (u ** 3)`, `sqrt (u ** 4)`, `sqrt (u * u)` | `u * sqrt u`, `u ** 2`, `abs u` |
//! | `(u ** 1.5) ** 0.5` | `u ** 0.75` |
//! | `hypot u v ** 2`, `hypot u (3 * u)` | `u * u + v * v`, `sqrt 10 * abs u` |
//!
//! A product with one root of a number stays, and so do roots in denominators, where they are poles. `cbrt u * cbrt u`
//! stays, because no operator is that power of a negative number.

mod form;

use chainrule_base::{Arena, Span};
use chainrule_ir::{Block, Expr, Function, Size, Stmt, Type, Var, VarId};
use chainrule_ops::Op;
use form::{Form, Kind, MAX_EXPONENT};
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
    Pass::new(vars).block(body);
    Cow::Owned(function)
}

// Recursive on the nesting of blocks.
fn has_root(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| {
        matches!(stmt.expr, Expr::Op(Op::Sqrt | Op::Cbrt | Op::Pow | Op::Hypot | Op::Abs, _))
            || stmt.expr.blocks().into_iter().any(has_root)
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
    ToInt(VarId),
    Get(VarId, VarId),
    Component(VarId, usize),
}

struct Pass<'a> {
    vars: &'a mut Arena<VarId, Var>,
    /// Products, powers, norms and numbers so far.
    defs: FxHashMap<VarId, Expr>,
    /// Values that are powers of another number.
    forms: FxHashMap<VarId, Form>,
    /// First variable of each expression.
    firsts: FxHashMap<Key, VarId>,
    /// First variable with the same value, for variables that are not their own.
    classes: FxHashMap<VarId, VarId>,
}

/// Factor `value ** times` of a product.
#[derive(Clone, Copy)]
struct Factor {
    value: VarId,
    times: f64,
    form: Form,
}

impl Factor {
    /// Returns the factor as a power of `value`, which is no root.
    fn alone(self) -> Self {
        Self { form: Form::itself(self.value), ..self }
    }

    /// Returns whether it is a root that another one can cancel.
    fn is_root(&self) -> bool {
        self.form.is_root() && self.form.kind != Kind::Abs
    }
}

/// Returns the product of powers of one number, if it has several roots that operators can replace, or absolute values
/// whose sign a root or an even exponent decides.
fn product(factors: &[Factor]) -> Option<Form> {
    let n_roots: f64 = factors.iter().filter(|factor| factor.is_root()).map(|factor| factor.times).sum();
    let has_abs = factors.iter().any(|factor| factor.form.kind == Kind::Abs);
    if n_roots < 2.0 && !has_abs {
        return None;
    }
    let mut powers = factors.iter().map(|factor| factor.form.to_whole(factor.times));
    let first = powers.next()??;
    let form = powers.try_fold(first, |all, power| all.times(power?))?;
    (form.has_operators() && (form.kind != Kind::Abs || form.exponent % 2.0 == 0.0)).then_some(form)
}

impl<'a> Pass<'a> {
    fn new(vars: &'a mut Arena<VarId, Var>) -> Self {
        Self {
            vars,
            defs: FxHashMap::default(),
            forms: FxHashMap::default(),
            firsts: FxHashMap::default(),
            classes: FxHashMap::default(),
        }
    }

    // Recursive on the nesting of blocks.
    fn block(&mut self, block: &mut Block) {
        let mut done = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if self.vars[stmt.var].ty == Type::Double
                && let Some(expr) = self.replaced(&stmt, &mut done)
            {
                stmt.expr = expr;
            }
            self.note(stmt.var, &stmt.expr);
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

    /// Adds the definition and the form of a variable.
    fn note(&mut self, var: VarId, expr: &Expr) {
        if let Some(quotient) = self.quotient(expr) {
            self.defs.insert(var, Expr::Real(quotient));
            return;
        }
        if matches!(expr, Expr::Op(Op::Pow | Op::Mul | Op::Hypot, _) | Expr::Real(_)) {
            self.defs.insert(var, expr.clone());
        }
        if self.vars[var].ty == Type::Double
            && let Some(form) = self.form(expr)
        {
            self.forms.insert(var, form);
        }
    }

    /// Returns the form of an expression of other values.
    fn form(&self, expr: &Expr) -> Option<Form> {
        let Expr::Op(op, args) = expr else { return None };
        let of = |k: usize| self.forms.get(&args[k]).copied().unwrap_or_else(|| Form::itself(args[k]));
        match op {
            Op::Neg => of(0).scaled(-1.0),
            Op::Abs => of(0).to_abs(),
            Op::Sqrt => of(0).to_root(0.5),
            Op::Cbrt => of(0).to_cubic_root(),
            Op::Mul => match (self.number(args[0]), self.number(args[1])) {
                (Some(c), None) => of(1).scaled(c),
                (None, Some(c)) => of(0).scaled(c),
                _ if self.class(of(0).base) == self.class(of(1).base) => of(0).times(of(1)),
                _ => None,
            },
            Op::Div => of(0).scaled(1.0 / self.number(args[1])?),
            Op::Pow => match self.number(args[1])? {
                e if e > 0.0 && e.fract() == 0.0 => of(0).to_whole(e),
                e if e > 0.0 => of(0).to_root(e),
                _ => None,
            },
            _ => None,
        }
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
            Expr::ToInt(real) => Key::ToInt(self.class(*real)),
            Expr::Get { array, index, .. } => Key::Get(self.class(*array), self.class(*index)),
            Expr::Component(tuple, k) => Key::Component(self.class(*tuple), *k),
            _ => return None,
        })
    }

    /// Returns another expression of a root, product, power or quotient; adds statements to `done`.
    fn replaced(&mut self, stmt: &Stmt, done: &mut Vec<Stmt>) -> Option<Expr> {
        let Expr::Op(op, args) = &stmt.expr else { return None };
        let mut emit = |pass: &mut Self, expr| pass.emit(expr, stmt.span, done);
        let values = match op {
            Op::Div => self.quotient_by_root(args, &mut emit)?,
            Op::Hypot => self.norm_of_multiples(args, &mut emit)?,
            Op::Sqrt | Op::Cbrt => self.root_of_power(stmt, &mut emit)?,
            Op::Pow => match self.root_of_power(stmt, &mut emit) {
                Some(values) => values,
                None => self.product(stmt, &mut emit)?,
            },
            Op::Mul => self.product(stmt, &mut emit)?,
            _ => return None,
        };
        self.multiplied(values, &mut emit)
    }

    /// Returns the factors of `u / sqrt u`.
    fn quotient_by_root(
        &mut self,
        args: &[VarId],
        emit: &mut impl FnMut(&mut Self, Expr) -> VarId,
    ) -> Option<Vec<VarId>> {
        let root = self.forms.get(&args[1]).filter(|form| form.kind == Kind::Root && form.exponent == 0.5)?;
        (self.class(root.base) == self.class(args[0])).then_some(())?;
        let scale = root.scale.to(2.0).value();
        let mut values = vec![args[1]];
        if scale != 1.0 {
            values.push(emit(self, Expr::Real(1.0 / scale)));
        }
        Some(values)
    }

    /// Returns the factors of the norm of two multiples of one number.
    fn norm_of_multiples(
        &mut self,
        args: &[VarId],
        emit: &mut impl FnMut(&mut Self, Expr) -> VarId,
    ) -> Option<Vec<VarId>> {
        let multiple = |pass: &Self, var: VarId| match pass.forms.get(&var) {
            Some(form) if form.exponent == 1.0 && form.kind == Kind::Whole => (form.base, form.scale.value()),
            _ => (var, 1.0),
        };
        let [(a, c), (b, d)] = [multiple(self, args[0]), multiple(self, args[1])];
        let scale = match (self.number(args[0]), self.number(args[1])) {
            (Some(0.0), _) => return Some(vec![emit(self, Expr::op(Op::Abs, &[args[1]]))]),
            (_, Some(0.0)) => return Some(vec![emit(self, Expr::op(Op::Abs, &[args[0]]))]),
            _ if self.class(a) == self.class(b) => Op::Hypot.value(&[c, d]),
            _ => return None,
        };
        scale.is_normal().then_some(())?;
        Some(vec![emit(self, Expr::Real(scale)), emit(self, Expr::op(Op::Abs, &[a]))])
    }

    /// Returns the factors of a root of a power, such as `sqrt (u ** 3)`: its chain rule multiplies a zero by an
    /// infinity.
    fn root_of_power(&mut self, stmt: &Stmt, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> Option<Vec<VarId>> {
        let Expr::Op(op, args) = &stmt.expr else { return None };
        self.forms.get(&args[0]).filter(|form| form.exponent > 1.0)?;
        if *op == Op::Pow {
            self.number(args[1]).filter(|e| e.fract() != 0.0)?;
        }
        let form = self.form(&stmt.expr).filter(Form::has_operators)?;
        Some(self.written(form, emit))
    }

    /// Returns the factors of a product or whole power without products of roots.
    fn product(&mut self, stmt: &Stmt, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> Option<Vec<VarId>> {
        let mut factors = self.factors(stmt)?;
        let mut products = Vec::new();
        // Roots that decide a sign come first.
        let leaders: [fn(&Factor) -> bool; 3] = [
            |factor| factor.is_root() && factor.form.kind != Kind::Cubic,
            Factor::is_root,
            |factor| factor.form.kind == Kind::Abs,
        ];
        for is_leader in leaders {
            while let Some(root) = factors.iter().find(|factor| is_leader(factor)).copied() {
                let class = self.class(root.form.base);
                let (same, others): (Vec<Factor>, Vec<Factor>) = factors.iter().partition(|factor| {
                    self.class(factor.form.base) == class && factor.form.times(root.form).is_some()
                });
                match product(&same) {
                    Some(form) => {
                        products.push(form);
                        factors = others;
                    }
                    // Each of them is a factor by itself.
                    None => factors = others.into_iter().chain(same.into_iter().map(Factor::alone)).collect(),
                }
            }
        }
        let squares = self.squares(&mut factors, emit);
        if products.is_empty() && squares.is_empty() {
            return None;
        }
        let mut values = Vec::new();
        for factor in factors {
            values.push(self.power(factor.value, factor.times, emit));
        }
        values.extend(squares);
        for form in products {
            values.extend(self.written(form, emit));
        }
        Some(values)
    }

    /// Removes pairs of equal norms `hypot a b`; returns `a * a + b * b` for each.
    fn squares(&mut self, factors: &mut Vec<Factor>, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> Vec<VarId> {
        let mut squares = Vec::new();
        let mut at = 0;
        while let Some(Factor { value, .. }) = factors.get(at).copied() {
            at += 1;
            let Some(Expr::Op(Op::Hypot, args)) = self.defs.get(&value) else { continue };
            let (a, b, class) = (args[0], args[1], self.class(value));
            let is_same = |factor: &&Factor| self.class(factor.value) == class;
            let times: f64 = factors.iter().filter(is_same).map(|factor| factor.times).sum();
            let whole = (times / 2.0).floor();
            if whole == 0.0 {
                continue;
            }
            factors.retain(|factor| self.class(factor.value) != class);
            if times % 2.0 != 0.0 {
                factors.push(Factor { value, times: 1.0, form: Form::itself(value) });
            }
            at = 0;
            let [a, b] = [a, b].map(|x| emit(self, Expr::op(Op::Mul, &[x, x])));
            let sum = emit(self, Expr::op(Op::Add, &[a, b]));
            squares.push(self.power(sum, whole, emit));
        }
        squares
    }

    /// Returns the factors of the value of a form.
    fn written(&mut self, form: Form, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> Vec<VarId> {
        let Form { scale, exponent, kind, .. } = form;
        let mut values = Vec::new();
        let scale = scale.value();
        if scale != 1.0 {
            values.push(emit(self, Expr::Real(scale)));
        }
        let base = match kind {
            Kind::NegatedRoot => emit(self, Expr::op(Op::Neg, &[form.base])),
            Kind::Abs if exponent % 2.0 != 0.0 => emit(self, Expr::op(Op::Abs, &[form.base])),
            _ => form.base,
        };
        let whole = exponent.trunc();
        let root = match exponent - whole {
            0.0 => None,
            0.5 => Some(Op::Sqrt),
            _ if kind == Kind::Cubic => Some(Op::Cbrt),
            _ => {
                values.push(self.power(base, exponent, emit));
                return values;
            }
        };
        if whole > 0.0 {
            values.push(self.power(base, whole, emit));
        }
        if let Some(op) = root {
            values.push(emit(self, Expr::op(op, &[base])));
        }
        values
    }

    /// Returns the product of values as an expression.
    fn multiplied(&mut self, mut values: Vec<VarId>, emit: &mut impl FnMut(&mut Self, Expr) -> VarId) -> Option<Expr> {
        let last = values.pop()?;
        let first = values.into_iter().reduce(|a, b| emit(self, Expr::op(Op::Mul, &[a, b])));
        let first = first.unwrap_or_else(|| emit(self, Expr::Real(1.0)));
        Some(Expr::op(Op::Mul, &[first, last]))
    }

    fn emit(&mut self, expr: Expr, span: Option<Span>, done: &mut Vec<Stmt>) -> VarId {
        let var = self.vars.push(Var { ty: Type::Double, name: None, span, value: None });
        self.note(var, &expr);
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
            let form = self.forms.get(&value).copied();
            if let Some(form) = form.filter(|form| form.is_root() || form.kind == Kind::Abs) {
                factors.push(Factor { value, times, form });
                continue;
            }
            let is_open = open.len() + factors.len() < MAX_FACTORS
                && self.defs.get(&value).is_some_and(|def| self.open(def, times, &mut open).is_some());
            if !is_open {
                factors.push(Factor { value, times, form: Form::itself(value) });
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
