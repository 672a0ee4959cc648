//! Emission of scalar code: a [`Builder`] that tracks literals.
//!
//! In: operations on scalars, constant or computed. Out: statements. Holds: a literal is bound once per scope and
//! tracked, so that `0`, `1` and `-1` can be recognised and omitted. A differentiation variable is never treated as a
//! literal, even if it is bound to one ([`Emitter::bind_seed`]). A selection against 0 is tracked too, and a product
//! with it becomes a selection of the product (`docs/decisions/0005` does the same in graphs).

use crate::reverse::Keeping;
use chainrule_base::{Id, Span};
use chainrule_ir::{Block, Builder, Expr, Function, Operands, Size, Stmt, Type, VarId};
use chainrule_ops::{Algebra, Op, Type as OpType};
use std::collections::BTreeMap;

/// Scalar that may be a constant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scalar {
    /// Constant; a truth value is 1 or 0.
    Const(f64),
    /// Computed.
    Var(VarId),
}

impl Scalar {
    fn is(self, c: f64) -> bool {
        self == Self::Const(c)
    }
}

/// Definition of a scalar that is 0 unless a condition holds, or unless it does not.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mask {
    condition: VarId,
    /// Whether the value is selected if the condition holds.
    holds: bool,
    value: Scalar,
}

/// Position in an array.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) index: VarId,
    /// Whether the index is proved to be in range.
    pub(crate) proved: bool,
}

/// Builder that tracks literals. Blocks are opened and closed through it, not through the builder.
pub(crate) struct Emitter {
    pub(crate) builder: Builder,
    /// Value of each variable that is bound to a literal.
    literals: Vec<Option<f64>>,
    /// Definition of each variable that is `select(condition, value, 0)`, or with the operands exchanged.
    masks: BTreeMap<VarId, Mask>,
    /// Literals bound in each open block, by bits.
    scopes: Vec<BTreeMap<u64, VarId>>,
    span: Option<Span>,
    /// Policy for the number of loop states that reverse mode keeps in memory.
    pub(crate) keeping: Keeping,
}

impl Emitter {
    /// Continues `builder`, in which only the outermost block is open.
    pub(crate) fn new(builder: Builder) -> Self {
        let scopes = vec![BTreeMap::new()];
        Self { builder, literals: Vec::new(), masks: BTreeMap::new(), scopes, span: None, keeping: Keeping::default() }
    }

    pub(crate) fn finish(self, result: VarId) -> Function {
        self.builder.finish(result)
    }

    pub(crate) fn open(&mut self) {
        self.builder.push_block();
        self.scopes.push(BTreeMap::new());
    }

    pub(crate) fn close(&mut self, result: VarId) -> Block {
        self.scopes.pop();
        self.builder.pop_block(result)
    }

    /// Returns a fresh variable that dumps name `<name of like><suffix>`.
    pub(crate) fn fresh_like(&mut self, ty: Type, like: VarId, suffix: &str) -> VarId {
        let name = self.builder.vars[like].name.as_ref().map(|name| format!("{name}{suffix}"));
        match name {
            Some(name) => self.builder.fresh_named(ty, &name),
            None => self.builder.fresh(ty),
        }
    }

    pub(crate) fn ty(&self, var: VarId) -> &Type {
        self.builder.ty(var)
    }

    /// Emits `var = expr` in the innermost block.
    pub(crate) fn bind(&mut self, var: VarId, expr: Expr) {
        if let Expr::Real(c) = expr {
            if self.literals.len() <= var.index() {
                self.literals.resize(var.index() + 1, None);
            }
            self.literals[var.index()] = Some(c);
            if let Some(scope) = self.scopes.last_mut() {
                scope.entry(c.to_bits()).or_insert(var);
            }
        }
        // A derivative that is differentiated again may have another definition now.
        if self.masks.remove(&var).is_some()
            && let Expr::Op(Op::Select, args) = &expr
        {
            self.note_mask(var, args[0], self.scalar(args[1]), self.scalar(args[2]));
        }
        self.builder.push(Stmt { var, expr, span: self.span });
    }

    /// Does the same for a differentiation variable: it is never replaced by its value.
    pub(crate) fn bind_seed(&mut self, var: VarId, expr: Expr) {
        self.builder.push(Stmt { var, expr, span: self.span });
    }

    /// Returns the source location of the emitted statements.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }

    /// Sets the source location of the following statements.
    pub(crate) fn set_span(&mut self, span: Option<Span>) {
        self.span = span;
        self.builder.set_span(span);
    }

    /// Emits a double.
    pub(crate) fn real(&mut self, c: f64) -> VarId {
        match self.scopes.iter().rev().find_map(|scope| scope.get(&c.to_bits())) {
            Some(var) => *var,
            None => {
                let var = self.builder.fresh(Type::Double);
                self.bind(var, Expr::Real(c));
                var
            }
        }
    }

    /// Returns the constant or the variable for a variable of type `Double`.
    pub(crate) fn scalar(&self, var: VarId) -> Scalar {
        match self.literals.get(var.index()) {
            Some(Some(c)) => Scalar::Const(*c),
            _ => Scalar::Var(var),
        }
    }

    /// Returns `scalar` as a variable of type `Double`.
    pub(crate) fn double(&mut self, scalar: Scalar) -> VarId {
        match scalar {
            Scalar::Const(c) => self.real(c),
            Scalar::Var(var) => var,
        }
    }

    /// Returns the definition of `scalar` if it is 0 under a condition.
    fn mask(&self, scalar: Scalar) -> Option<Mask> {
        match scalar {
            Scalar::Const(_) => None,
            Scalar::Var(var) => self.masks.get(&var).copied(),
        }
    }

    /// Records the definition of `var`, `select(condition, a, b)`, if one operand is 0.
    fn note_mask(&mut self, var: VarId, condition: VarId, a: Scalar, b: Scalar) {
        let mask = |holds, value| Mask { condition, holds, value };
        match (a.is(0.0), b.is(0.0)) {
            (false, true) => self.masks.insert(var, mask(true, a)),
            (true, false) => self.masks.insert(var, mask(false, b)),
            _ => None,
        };
    }

    /// Emits `value` under the condition of `mask`, else 0.
    fn masked(&mut self, mask: Mask, value: Scalar) -> Scalar {
        let (condition, zero) = (Scalar::Var(mask.condition), Scalar::Const(0.0));
        let (a, b) = if mask.holds { (value, zero) } else { (zero, value) };
        self.apply(Op::Select, &[condition, a, b])
    }

    /// Emits the dual number of a double, as one variable.
    pub(crate) fn pair(&mut self, value: VarId, tangent: Scalar) -> VarId {
        let tangent = self.double(tangent);
        self.builder.tuple(&[value, tangent])
    }

    /// Emits a tuple or record of type `ty`.
    pub(crate) fn tuple(&mut self, parts: Vec<VarId>, ty: Type) -> VarId {
        self.builder.emit(Expr::Tuple(parts), ty)
    }

    /// Emits the access to component `k` of a tuple.
    pub(crate) fn component(&mut self, tuple: VarId, k: usize) -> VarId {
        self.builder.component(tuple, k)
    }

    /// Emits `array[index]` for an index that is in range.
    pub(crate) fn element(&mut self, array: VarId, index: VarId) -> VarId {
        self.get(array, At { index, proved: true })
    }

    /// Emits an access of an array.
    pub(crate) fn get(&mut self, array: VarId, At { index, proved }: At) -> VarId {
        self.builder.compute(Expr::Get { array, index, proved })
    }

    /// Emits `build size (fun index -> body(index))`.
    pub(crate) fn build(&mut self, size: Size, body: &mut dyn FnMut(&mut Self, VarId) -> VarId) -> VarId {
        let index = self.builder.fresh(Type::Int);
        self.open();
        let result = body(self, index);
        let body = self.close(result);
        self.builder.compute(Expr::Build { size, index, body })
    }

    /// Emits `array` with `value` in place of the elements at these indices, outermost first, if there are any. `None`
    /// stands for all indices of a dimension, which `value` has too.
    // Recursive on the depth of a type.
    pub(crate) fn with_element(&mut self, array: VarId, at: &[Option<VarId>], value: VarId) -> VarId {
        let [first, rest @ ..] = at else { return value };
        let size = self.builder.length(array);
        self.build(size, &mut |out, k| {
            let Some(first) = *first else {
                let (row, value) = (out.element(array, k), out.element(value, k));
                return out.with_element(row, rest, value);
            };
            let condition = out.builder.op(Op::Eq, &[k, first]);
            out.open();
            let row = if rest.is_empty() { array } else { out.element(array, k) };
            let changed = out.with_element(row, rest, value);
            let then = out.close(changed);
            out.open();
            let before = out.element(array, k);
            let otherwise = out.close(before);
            out.builder.compute(Expr::If { condition, then, otherwise })
        })
    }
}

/// Operators on scalars, as statements. Constants are folded; zeros and ones of tangents and partials, which are
/// structural and not the result of arithmetic, are omitted.
impl Algebra for Emitter {
    type Value = Scalar;

    fn constant(&mut self, c: f64) -> Scalar {
        Scalar::Const(c)
    }

    fn apply(&mut self, op: Op, args: &[Scalar]) -> Scalar {
        let known: Option<Vec<f64>> =
            args.iter().map(|arg| if let Scalar::Const(c) = arg { Some(*c) } else { None }).collect();
        if let Some(known) = known {
            return Scalar::Const(op.value(&known));
        }
        match (op, args) {
            (Op::Mul, [a, b]) if a.is(0.0) || b.is(0.0) => return Scalar::Const(0.0),
            (Op::Mul, [a, b]) | (Op::Add, [b, a]) if a.is(if op == Op::Mul { 1.0 } else { 0.0 }) => return *b,
            (Op::Mul, [a, b]) | (Op::Add, [b, a]) if b.is(if op == Op::Mul { 1.0 } else { 0.0 }) => return *a,
            (Op::Mul, [a, b]) if a.is(-1.0) => return self.apply(Op::Neg, &[*b]),
            (Op::Mul, [a, b]) if b.is(-1.0) => return self.apply(Op::Neg, &[*a]),
            (Op::Pow, [a, b]) if b.is(1.0) => return *a,
            (Op::Select, [Scalar::Const(c), a, b]) => return if *c == 0.0 { *b } else { *a },
            (Op::Select, [_, a, b]) if a == b => return *a,
            // A number that is 0 under a condition stays 0 in every product: 0 times infinity would be NaN.
            (Op::Mul, [a, b]) => {
                if let Some(mask) = self.mask(*a) {
                    let product = self.apply(Op::Mul, &[mask.value, *b]);
                    return self.masked(mask, product);
                }
                if let Some(mask) = self.mask(*b) {
                    let product = self.apply(Op::Mul, &[*a, mask.value]);
                    return self.masked(mask, product);
                }
            }
            // A zero masks the other factor: a non-number or a finite number needs no mask.
            (Op::MaskedMul | Op::StrongMul, [a, b]) => {
                let is_zero = a.is(0.0) || (op == Op::StrongMul && b.is(0.0));
                let is_finite = |x: &Scalar| matches!(x, Scalar::Const(c) if c.is_finite());
                let never_zero = matches!(a, Scalar::Const(_)) && op == Op::MaskedMul;
                match () {
                    () if is_zero => return Scalar::Const(0.0),
                    () if never_zero || is_finite(a) || is_finite(b) => return self.apply(Op::Mul, &[*a, *b]),
                    () => {}
                }
                if let Some(mask) = self.mask(*a) {
                    let product = self.apply(op, &[mask.value, *b]);
                    return self.masked(mask, product);
                }
                if let Some(mask) = self.mask(*b) {
                    let product = self.apply(op, &[*a, mask.value]);
                    return self.masked(mask, product);
                }
            }
            (Op::Neg, [a]) => {
                if let Some(mask) = self.mask(*a) {
                    let negative = self.apply(Op::Neg, &[mask.value]);
                    return self.masked(mask, negative);
                }
            }
            _ => {}
        }
        let row = op.row();
        let operands: Operands = (args.iter().zip(row.args))
            .map(|(arg, ty)| match (arg, ty) {
                (Scalar::Const(c), OpType::Bool) => self.builder.bool(*c != 0.0),
                _ => self.double(*arg),
            })
            .collect();
        let ty = if row.result == OpType::Bool { Type::Bool } else { Type::Double };
        let var = self.builder.emit(Expr::Op(op, operands), ty);
        if let (Op::Select, [Scalar::Var(condition), a, b]) = (op, args) {
            self.note_mask(var, *condition, *a, *b);
        }
        Scalar::Var(var)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_differentiated_by_stands_for_itself_alone() {
        let mut out = Emitter::new(Builder::new("f"));
        let seed = out.builder.fresh(Type::Double);
        out.bind_seed(seed, Expr::Real(0.0));
        let zero = out.real(0.0);
        assert_ne!(zero, seed);
        assert_eq!((out.real(0.0), out.scalar(seed), out.scalar(zero)), (zero, Scalar::Var(seed), Scalar::Const(0.0)));
        // A literal of the block itself, and not of a closed block.
        out.open();
        let one = out.real(1.0);
        assert_eq!((out.real(0.0), out.real(1.0)), (zero, one));
        out.close(one);
        assert_ne!(out.real(1.0), one);
    }
}
