//! Construction of functions: by hand in tests, and in passes that write a new function.
//!
//! A [`Builder`] has an arena of variables and a stack of open blocks; every statement is added to the innermost. Loops
//! and branches are made with closures ([`Builder::build`], [`Builder::fold`], ...) or, where closures are
//! inconvenient, with [`Builder::push_block`], [`Builder::pop_block`] and [`Builder::emit`].
//!
//! The builder does not check types: ill-typed operations get the type `Double`, and the verifier reports the fault. So
//! the builder never panics on an invalid program.
//!
//! ```
//! use chainrule_ir::{Builder, Type};
//! use chainrule_ops::Op;
//! // let norm2 = fun (x : [n]Double) -> sum n (fun i -> x[i] * x[i])
//! let mut b = Builder::new("norm2");
//! let n = b.size_param("n");
//! let n = b.size_of(n);
//! let x = b.param("x", Type::array(n.clone(), Type::Double));
//! let result = b.sum(n, |b, i| {
//!     let xi = b.get(x, i);
//!     b.op(Op::Mul, &[xi, xi])
//! });
//! let function = b.finish(result);
//! assert_eq!(function.result_type(), &Type::Double);
//! ```

use crate::custom::{Custom, Rule, RuleBlock};
use crate::{Block, Expr, Function, Requirement, Size, StateLoop, Stmt, Type, Var, VarId, WhileLoop, type_of};
use chainrule_base::{Arena, Name, Span};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum number of terms of integer arithmetic that is kept as a polynomial ...
const MAX_TERMS: usize = 16;
/// ... its maximum degree ...
const MAX_DEGREE: usize = 6;
/// ... and maximum magnitude of coefficients; beyond, it is an ordinary operation.
const MAX_COEFFICIENT: u64 = 1 << 31;

/// A function under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    /// Variables so far.
    pub vars: Arena<VarId, Var>,
    name: Name,
    sizes: Vec<VarId>,
    params: Vec<VarId>,
    requires: Vec<Requirement>,
    // Open blocks, innermost last; never empty.
    open: Vec<Vec<Stmt>>,
    span: Option<Span>,
}

/// Replacements of the variables of a copied block; other variables stay.
#[derive(Clone, Debug, Default)]
pub struct Renaming {
    map: FxHashMap<VarId, VarId>,
}

impl Renaming {
    /// Returns an empty renaming.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces `old` by `new` from here on.
    pub fn insert(&mut self, old: VarId, new: VarId) {
        self.map.insert(old, new);
    }

    /// Returns the replacement of `old`: by default itself.
    #[must_use]
    pub fn get(&self, old: VarId) -> VarId {
        self.map.get(&old).copied().unwrap_or(old)
    }
}

impl FromIterator<(VarId, VarId)> for Renaming {
    fn from_iter<T: IntoIterator<Item = (VarId, VarId)>>(pairs: T) -> Self {
        Self { map: pairs.into_iter().collect() }
    }
}

// Function that owns the variables of a copied block.
#[derive(Clone, Copy)]
enum Source<'a> {
    Own,
    Other(&'a Arena<VarId, Var>),
}

impl Builder {
    /// Returns a function called `name`, without parameters yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::from_vars(Name::new(name), Arena::new())
    }

    /// Returns a function called `name` whose variables go on from `vars`.
    #[must_use]
    pub fn from_vars(name: Name, vars: Arena<VarId, Var>) -> Self {
        Self {
            vars,
            name,
            sizes: Vec::new(),
            params: Vec::new(),
            requires: Vec::new(),
            open: vec![Vec::new()],
            span: None,
        }
    }

    /// Returns a function with the variables, name, parameters and requirements of `function`, and no body yet.
    /// Statements of the old body can be reused unchanged, each at most once.
    #[must_use]
    pub fn rewriting(function: &Function) -> Self {
        Self {
            sizes: function.sizes.clone(),
            params: function.params.clone(),
            requires: function.requires.clone(),
            ..Self::from_vars(function.name.clone(), function.vars.clone())
        }
    }

    /// Renames the function.
    pub fn rename(&mut self, name: Name) {
        self.name = name;
    }

    /// Returns the size parameters.
    #[must_use]
    pub fn sizes(&self) -> &[VarId] {
        &self.sizes
    }

    /// Returns the function, with `result` of the outermost block. Open blocks are closed with it.
    #[must_use]
    pub fn finish(mut self, result: VarId) -> Function {
        let stmts = if self.open.is_empty() { Vec::new() } else { self.open.swap_remove(0) };
        Function {
            name: self.name,
            vars: self.vars,
            sizes: self.sizes,
            params: self.params,
            requires: self.requires,
            body: Block { stmts, result },
        }
    }

    /// Adds a size parameter.
    pub fn size_param(&mut self, name: &str) -> VarId {
        let var = self.fresh_named(Type::Int, name);
        self.sizes.push(var);
        var
    }

    /// Adds a parameter.
    pub fn param(&mut self, name: &str, ty: Type) -> VarId {
        let var = self.fresh_named(ty, name);
        self.params.push(var);
        var
    }

    /// Makes an existing variable a size parameter.
    pub fn push_size_param(&mut self, var: VarId) {
        self.sizes.push(var);
    }

    /// Makes an existing variable a parameter.
    pub fn push_param(&mut self, var: VarId) {
        self.params.push(var);
    }

    /// Adds a condition that is checked at entry.
    pub fn require(&mut self, requirement: Requirement) {
        self.requires.push(requirement);
    }

    /// Sets the source span of the following statements and variables. Returns the previous one.
    pub fn set_span(&mut self, span: Option<Span>) -> Option<Span> {
        std::mem::replace(&mut self.span, span)
    }

    /// Returns a new unbound variable without a name.
    pub fn fresh(&mut self, ty: Type) -> VarId {
        let span = self.span;
        self.vars.push(Var { ty, name: None, span, value: None })
    }

    /// Returns a new unbound variable with a name.
    pub fn fresh_named(&mut self, ty: Type, name: &str) -> VarId {
        let span = self.span;
        self.vars.push(Var { ty, name: Some(Name::new(name)), span, value: None })
    }

    /// Names `var`, unless it has a name.
    pub fn name(&mut self, var: VarId, name: &Name) {
        self.vars[var].name.get_or_insert_with(|| name.clone());
    }

    /// Returns the type of `var`.
    #[must_use]
    pub fn ty(&self, var: VarId) -> &Type {
        &self.vars[var].ty
    }

    /// Returns the `Int` `var` as a size.
    #[must_use]
    pub fn size_of(&self, var: VarId) -> Size {
        size_of(&self.vars, var)
    }

    /// Returns the number of elements of `array`; 0 if it is no array.
    #[must_use]
    pub fn length(&self, array: VarId) -> Size {
        match self.ty(array) {
            Type::Array(size, _) => size.clone(),
            _ => Size::zero(),
        }
    }

    /// Opens a block.
    pub fn push_block(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost block.
    pub fn pop_block(&mut self, result: VarId) -> Block {
        Block { stmts: self.open.pop().unwrap_or_default(), result }
    }

    /// Adds a statement unchanged.
    pub fn push(&mut self, stmt: Stmt) {
        match self.open.last_mut() {
            Some(block) => block.push(stmt),
            None => self.open.push(vec![stmt]),
        }
    }

    /// Adds `expr` of type `ty`; returns its variable.
    pub fn emit(&mut self, expr: Expr, ty: Type) -> VarId {
        let var = self.fresh(ty);
        if let Expr::Size(size) = &expr {
            self.vars[var].value = Some(size.clone());
        }
        self.push(Stmt { var, expr, span: self.span });
        var
    }

    /// Adds `expr` with the type returned by [`type_of`]; returns its variable.
    pub fn compute(&mut self, expr: Expr) -> VarId {
        let ty = type_of(&expr, &self.vars).unwrap_or(Type::Double);
        self.emit(expr, ty)
    }

    /// Adds a double.
    pub fn real(&mut self, value: f64) -> VarId {
        self.compute(Expr::Real(value))
    }

    /// Adds an integer.
    pub fn int(&mut self, value: i64) -> VarId {
        self.compute(Expr::Size(Size::constant(value)))
    }

    /// Adds a truth value.
    pub fn bool(&mut self, value: bool) -> VarId {
        self.compute(Expr::Bool(value))
    }

    /// Adds a size as an `Int`; a size that is a single variable is that variable.
    pub fn size(&mut self, size: Size) -> VarId {
        match size.as_var() {
            Some(var) => var,
            None => self.compute(Expr::Size(size)),
        }
    }

    /// Adds a scalar operator. Sums, differences and products of `Int`s become polynomials.
    pub fn op(&mut self, op: Op, args: &[VarId]) -> VarId {
        match self.polynomial(op, args) {
            Some(size) => self.size(size),
            None => self.compute(Expr::op(op, args)),
        }
    }

    fn polynomial(&self, op: Op, args: &[VarId]) -> Option<Size> {
        if args.len() != op.arity() || args.iter().any(|v| *self.ty(*v) != Type::Int) {
            return None;
        }
        let arg = |i: usize| self.size_of(args[i]);
        let size = match op {
            Op::Add => arg(0).add(&arg(1)),
            Op::Sub => arg(0).sub(&arg(1)),
            Op::Mul => arg(0).mul(&arg(1)),
            Op::Neg => arg(0).neg(),
            _ => return None,
        };
        let small = size.terms().len() <= MAX_TERMS
            && size.terms().all(|(m, c)| m.len() <= MAX_DEGREE && c.unsigned_abs() <= MAX_COEFFICIENT);
        small.then_some(size)
    }

    /// Converts an `Int` to a `Double`; a known one to a literal, so that derivatives of powers know their exponents.
    pub fn to_real(&mut self, int: VarId) -> VarId {
        match self.size_of(int).as_constant() {
            Some(value) => self.real(value as f64),
            None => self.compute(Expr::ToReal(int)),
        }
    }

    /// Converts a `Double` to an `Int`, rounded towards zero.
    pub fn to_int(&mut self, real: VarId) -> VarId {
        self.compute(Expr::ToInt(real))
    }

    /// Adds `array[index]`, checked at run time.
    pub fn get(&mut self, array: VarId, index: VarId) -> VarId {
        self.compute(Expr::Get { array, index, proved: false })
    }

    /// Adds `array[index]` for an index that is known to be in range.
    pub fn get_proved(&mut self, array: VarId, index: VarId) -> VarId {
        self.compute(Expr::Get { array, index, proved: true })
    }

    /// Adds an array literal of at least one element.
    pub fn array(&mut self, elements: &[VarId]) -> VarId {
        self.compute(Expr::Array(elements.to_vec()))
    }

    /// Adds a tuple.
    pub fn tuple(&mut self, fields: &[VarId]) -> VarId {
        self.compute(Expr::Tuple(fields.to_vec()))
    }

    /// Adds a record, with as many names as fields.
    pub fn record(&mut self, names: Arc<[Name]>, fields: &[VarId]) -> VarId {
        let types = fields.iter().map(|v| self.ty(*v).clone()).collect();
        self.emit(Expr::Tuple(fields.to_vec()), Type::Tuple(types, Some(names)))
    }

    /// Adds a component of a tuple or record, from 0.
    pub fn component(&mut self, tuple: VarId, idx: usize) -> VarId {
        self.compute(Expr::Component(tuple, idx))
    }

    /// Adds `build size (fun index -> body)`.
    pub fn build(&mut self, size: Size, body: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.fresh(Type::Int);
        let body = self.block(|b| body(b, index));
        self.compute(Expr::Build { size, index, body })
    }

    /// Adds `sum count (fun index -> body)`.
    pub fn sum(&mut self, count: Size, body: impl FnOnce(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.fresh(Type::Int);
        let body = self.block(|b| body(b, index));
        self.compute(Expr::Sum { count, index, body })
    }

    /// Adds `ifold (fun state index -> body) init count`.
    pub fn fold(&mut self, count: Size, init: VarId, body: impl FnOnce(&mut Self, VarId, VarId) -> VarId) -> VarId {
        let state = self.fresh(self.ty(init).clone());
        let index = self.fresh(Type::Int);
        let body = self.block(|b| body(b, state, index));
        self.compute(Expr::Fold(StateLoop { count, index, state, init, body }))
    }

    /// Adds `while (fun state -> condition) (fun state -> body) init limit`.
    pub fn while_(
        &mut self,
        limit: Size,
        init: VarId,
        condition: impl FnOnce(&mut Self, VarId) -> VarId,
        body: impl FnOnce(&mut Self, VarId) -> VarId,
    ) -> VarId {
        let state = self.fresh(self.ty(init).clone());
        let condition = self.block(|b| condition(b, state));
        let body = self.block(|b| body(b, state));
        self.compute(Expr::While(WhileLoop { limit, state, init, condition, body }))
    }

    /// Adds `if condition then ... else ...`.
    pub fn if_(
        &mut self,
        condition: VarId,
        then: impl FnOnce(&mut Self) -> VarId,
        otherwise: impl FnOnce(&mut Self) -> VarId,
    ) -> VarId {
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.compute(Expr::If { condition, then, otherwise })
    }

    /// Adds D⟦fun params -> body⟧ at `at` along `along`.
    pub fn jvp(&mut self, at: &[VarId], along: &[VarId], body: impl FnOnce(&mut Self, &[VarId]) -> VarId) -> VarId {
        let params: Vec<VarId> = at.iter().map(|v| self.fresh(self.ty(*v).clone())).collect();
        let body = self.block(|b| body(b, &params));
        self.compute(Expr::Jvp { params, body, at: at.to_vec(), along: along.to_vec() })
    }

    /// Adds the value and the cotangents of `fun params -> body` at `at`, for `cotangent`.
    pub fn vjp(&mut self, at: &[VarId], cotangent: VarId, body: impl FnOnce(&mut Self, &[VarId]) -> VarId) -> VarId {
        let params: Vec<VarId> = at.iter().map(|v| self.fresh(self.ty(*v).clone())).collect();
        let body = self.block(|b| body(b, &params));
        self.compute(Expr::Vjp { params, body, at: at.to_vec(), cotangent })
    }

    /// Adds the zero of the linear type `ty`.
    pub fn zero(&mut self, ty: Type) -> VarId {
        self.emit(Expr::Zero, ty)
    }

    /// Adds the array of `size` elements that is `value` at `index`, which is known to be in range, and zero elsewhere.
    pub fn one_hot_proved(&mut self, size: Size, index: VarId, value: VarId) -> VarId {
        let ty = Type::array(size, self.ty(value).clone());
        self.emit(Expr::OneHot { index, value, proved: true }, ty)
    }

    /// Adds the sum of two values of one linear type.
    pub fn plus(&mut self, a: VarId, b: VarId) -> VarId {
        match self.ty(a) {
            Type::Double => self.op(Op::Add, &[a, b]),
            _ => self.compute(Expr::Plus(a, b)),
        }
    }

    /// Returns the statements that `body` adds, as a block.
    pub fn block(&mut self, body: impl FnOnce(&mut Self) -> VarId) -> Block {
        self.push_block();
        let result = body(self);
        self.pop_block(result)
    }

    /// Adds a copy of the statements of `block`, whose variables are this builder's, with new variables for its
    /// bindings and variables replaced by `renaming`. Returns the new result; `renaming` then also contains the other
    /// new variables.
    pub fn inline(&mut self, block: &Block, renaming: &mut Renaming) -> VarId {
        self.copy_stmts(Source::Own, block, renaming)
    }

    /// As [`Self::inline`], for a block whose variables are those of another function. `renaming` must contain every
    /// free variable of the block.
    pub fn inline_from(&mut self, vars: &Arena<VarId, Var>, block: &Block, renaming: &mut Renaming) -> VarId {
        self.copy_stmts(Source::Other(vars), block, renaming)
    }

    /// Returns a copy of `block`, with new variables as by [`Self::inline`].
    pub fn copy_block(&mut self, block: &Block, renaming: &mut Renaming) -> Block {
        self.copy(Source::Own, block, renaming)
    }

    /// Returns a copy of `custom` at the point `at`, with new variables as by [`Self::inline`].
    pub fn copy_custom(&mut self, custom: &Custom, at: VarId, renaming: &mut Renaming) -> Expr {
        self.copy_rules(Source::Own, custom, at, renaming)
    }

    /// `ty` with the variables of its sizes replaced.
    #[must_use]
    pub fn rename_type(&self, ty: &Type, renaming: &Renaming) -> Type {
        ty.map_sizes(&mut |size| self.rename_size(size, renaming))
    }

    /// Returns `size` with its variables replaced by the values of their replacements.
    #[must_use]
    pub fn rename_size(&self, size: &Size, renaming: &Renaming) -> Size {
        size.substitute(|v| self.size_of(renaming.get(v)))
    }

    /// Computes `size` with its variables replaced, term by term, by operations that fail at run time if a number does
    /// not fit.
    fn by_operations(&mut self, size: &Size, renaming: &Renaming) -> Size {
        let mut sum = None;
        for (monomial, c) in size.terms() {
            let mut product = self.int(c);
            for var in monomial {
                product = self.op(Op::Mul, &[product, renaming.get(*var)]);
            }
            sum = Some(sum.map_or(product, |sum| self.op(Op::Add, &[sum, product])));
        }
        sum.map_or(Size::zero(), |sum| self.size_of(sum))
    }

    fn copy(&mut self, source: Source<'_>, block: &Block, renaming: &mut Renaming) -> Block {
        self.push_block();
        let result = self.copy_stmts(source, block, renaming);
        self.pop_block(result)
    }

    fn copy_stmts(&mut self, source: Source<'_>, block: &Block, renaming: &mut Renaming) -> VarId {
        for stmt in &block.stmts {
            let expr = self.copy_expr(source, &stmt.expr, renaming);
            // After the blocks of `expr`: no variable that they bind occurs in the type.
            let var = self.copy_var(source, stmt.var, renaming);
            if let Expr::Size(size) = &expr {
                self.vars[var].value = Some(size.clone());
            }
            self.push(Stmt { var, expr, span: stmt.span });
        }
        renaming.get(block.result)
    }

    fn copy_var(&mut self, source: Source<'_>, old: VarId, renaming: &mut Renaming) -> VarId {
        let var = match source {
            Source::Own => &self.vars[old],
            Source::Other(vars) => &vars[old],
        };
        let (name, span) = (var.name.clone(), var.span);
        let ty = self.rename_type(&var.ty, renaming);
        let new = self.vars.push(Var { ty, name, span, value: None });
        renaming.insert(old, new);
        new
    }

    fn copy_expr(&mut self, source: Source<'_>, expr: &Expr, renaming: &mut Renaming) -> Expr {
        let all = |vars: &[VarId], renaming: &Renaming| vars.iter().map(|v| renaming.get(*v)).collect();
        match expr {
            Expr::Real(value) => Expr::Real(*value),
            Expr::Bool(value) => Expr::Bool(*value),
            Expr::Size(old) => {
                let size = self.rename_size(old, renaming);
                let size = if size.is_too_large() { self.by_operations(old, renaming) } else { size };
                Expr::Size(size)
            }
            Expr::Op(op, args) => Expr::Op(*op, args.iter().map(|v| renaming.get(*v)).collect()),
            Expr::ToReal(arg) => Expr::ToReal(renaming.get(*arg)),
            Expr::ToInt(arg) => Expr::ToInt(renaming.get(*arg)),
            Expr::Build { size, index, body } => {
                let size = self.rename_size(size, renaming);
                let index = self.copy_var(source, *index, renaming);
                Expr::Build { size, index, body: self.copy(source, body, renaming) }
            }
            Expr::Sum { count, index, body } => {
                let count = self.rename_size(count, renaming);
                let index = self.copy_var(source, *index, renaming);
                Expr::Sum { count, index, body: self.copy(source, body, renaming) }
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, renaming), renaming.get(*init));
                let index = self.copy_var(source, *index, renaming);
                let state = self.copy_var(source, *state, renaming);
                Expr::Fold(StateLoop { count, index, state, init, body: self.copy(source, body, renaming) })
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let (count, init) = (self.rename_size(count, renaming), renaming.get(*init));
                let index = self.copy_var(source, *index, renaming);
                let state = self.copy_var(source, *state, renaming);
                Expr::Loop(StateLoop { count, index, state, init, body: self.copy(source, body, renaming) })
            }
            Expr::Zero => Expr::Zero,
            Expr::OneHot { index, value, proved } => {
                Expr::OneHot { index: renaming.get(*index), value: renaming.get(*value), proved: *proved }
            }
            Expr::Plus(a, b) => Expr::Plus(renaming.get(*a), renaming.get(*b)),
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let (limit, init) = (self.rename_size(limit, renaming), renaming.get(*init));
                let state = self.copy_var(source, *state, renaming);
                let condition = self.copy(source, condition, renaming);
                Expr::While(WhileLoop { limit, state, init, condition, body: self.copy(source, body, renaming) })
            }
            Expr::If { condition, then, otherwise } => {
                let condition = renaming.get(*condition);
                let then = self.copy(source, then, renaming);
                Expr::If { condition, then, otherwise: self.copy(source, otherwise, renaming) }
            }
            Expr::Get { array, index, proved } => {
                Expr::Get { array: renaming.get(*array), index: renaming.get(*index), proved: *proved }
            }
            Expr::Array(elements) => Expr::Array(all(elements, renaming)),
            Expr::Tuple(fields) => Expr::Tuple(all(fields, renaming)),
            Expr::Component(tuple, idx) => Expr::Component(renaming.get(*tuple), *idx),
            Expr::Jvp { params, body, at, along } => {
                let (at, along) = (all(at, renaming), all(along, renaming));
                let params = params.iter().map(|p| self.copy_var(source, *p, renaming)).collect();
                Expr::Jvp { params, body: self.copy(source, body, renaming), at, along }
            }
            Expr::Vjp { params, body, at, cotangent } => {
                let (at, cotangent) = (all(at, renaming), renaming.get(*cotangent));
                let params = params.iter().map(|p| self.copy_var(source, *p, renaming)).collect();
                Expr::Vjp { params, body: self.copy(source, body, renaming), at, cotangent }
            }
            Expr::Custom(custom) => self.copy_rules(source, custom, renaming.get(custom.at), renaming),
            Expr::Again { me, at } => Expr::Again { me: renaming.get(*me), at: renaming.get(*at) },
        }
    }

    fn copy_rules(&mut self, source: Source<'_>, custom: &Custom, at: VarId, renaming: &mut Renaming) -> Expr {
        let param = self.copy_var(source, custom.param, renaming);
        let body = self.copy(source, &custom.body, renaming);
        let rule = custom.rule.as_ref().map(|rule| {
            let me = self.copy_var(source, rule.me, renaming);
            let mut block = |block: &RuleBlock| {
                let params = block.params.map(|param| self.copy_var(source, param, renaming));
                RuleBlock { params, body: self.copy(source, &block.body, renaming) }
            };
            Rule { me, forward: block(&rule.forward), reverse: block(&rule.reverse) }
        });
        Expr::Custom(Box::new(Custom { at, param, body, rule, promised: custom.promised }))
    }
}

/// Returns the `Int` `var` as a size: its polynomial, or itself if it is a base variable.
#[must_use]
pub fn size_of(vars: &Arena<VarId, Var>, var: VarId) -> Size {
    vars[var].value.clone().unwrap_or_else(|| Size::var(var))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_arithmetic_is_one_polynomial() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let one = b.int(1);
        let (left, right) = (b.op(Op::Add, &[n, one]), b.op(Op::Add, &[one, n]));
        assert_eq!(b.size_of(left), b.size_of(right));
        let back = b.op(Op::Sub, &[left, one]);
        assert_eq!(back, n);
        let half = b.op(Op::Quot, &[n, one]);
        assert_eq!(b.vars[half].value, None);
    }

    #[test]
    fn polynomials_stay_small() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let mut power = n;
        for _ in 0..40 {
            power = b.op(Op::Mul, &[power, power]);
            let size = b.size_of(power);
            assert!(size.terms().all(|(m, _)| m.len() <= MAX_DEGREE));
        }
    }

    #[test]
    fn an_inlined_block_binds_everything_anew_and_substitutes_in_types() {
        let mut b = Builder::new("f");
        let n = b.param("n", Type::Int);
        let block = b.block(|b| {
            let size = b.size_of(n);
            b.build(size, Builder::to_real)
        });
        let three = b.int(3);
        let m = b.op(Op::Mul, &[n, three]);
        let mut renaming = Renaming::from_iter([(n, m)]);
        let copy = b.inline(&block, &mut renaming);
        assert_eq!(*b.ty(copy), Type::array(Size::var(n).scale(3), Type::Double));
        assert_eq!(renaming.get(block.result), copy);
        let Expr::Build { index: old, .. } = &block.stmts[0].expr else { panic!("a build") };
        assert_ne!(renaming.get(*old), *old);
    }
}
