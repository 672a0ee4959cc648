//! Keys of expressions: equal keys are expressions that are the same up to the names of what they bind.
//!
//! In: an expression over variables in scope. Out: a list of numbers. Bound variables are numbered in the
//! order in which they are bound, free ones are themselves; operands of commutative operators are in one
//! order. Linear in the expression. Common subexpressions across binders are found with it: two loops that
//! differ in the names of their indices have one key.

use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Size, Type, Var, VarId};
use rustc_hash::FxHashMap;

/// The key of an expression.
pub(crate) type Key = Vec<u64>;

const BOUND: u64 = 1 << 40;
/// Numbers that are given from outside are smaller.
const KNOWN: u64 = 1 << 33;

struct Writer<'a> {
    vars: &'a Arena<VarId, Var>,
    out: Key,
    bound: FxHashMap<VarId, u64>,
    next: u64,
}

impl<'a> Writer<'a> {
    fn new(vars: &'a Arena<VarId, Var>) -> Self {
        Self { vars, out: Vec::with_capacity(8), bound: FxHashMap::default(), next: 0 }
    }
}

/// The key of `expr`, whose variable has type `ty`; `vars` tells the types of others.
pub(crate) fn key(vars: &Arena<VarId, Var>, expr: &Expr, ty: &Type) -> Key {
    let mut writer = Writer::new(vars);
    writer.expr(expr);
    writer.ty(ty);
    writer.out
}

/// As [`key`], where variables are `known` by numbers: the same for variables that are worth the same.
pub(crate) fn key_knowing(vars: &Arena<VarId, Var>, expr: &Expr, ty: &Type, known: &FxHashMap<VarId, u64>) -> Key {
    let mut writer = Writer { bound: known.clone(), next: KNOWN, ..Writer::new(vars) };
    writer.expr(expr);
    writer.ty(ty);
    writer.out
}

/// The key of `block`, whose result has type `ty`.
pub(crate) fn block(vars: &Arena<VarId, Var>, block: &Block, ty: &Type) -> Key {
    let mut writer = Writer::new(vars);
    writer.block(block);
    writer.ty(ty);
    writer.out
}

impl Writer<'_> {
    fn id(&self, var: VarId) -> u64 {
        match self.bound.get(&var) {
            Some(number) => BOUND + number,
            None => var.index() as u64,
        }
    }

    fn var(&mut self, var: VarId) {
        let id = self.id(var);
        self.out.push(id);
    }

    fn vars(&mut self, vars: &[VarId]) {
        self.out.push(vars.len() as u64);
        vars.iter().for_each(|v| self.var(*v));
    }

    fn bind(&mut self, var: VarId) {
        self.bound.insert(var, self.next);
        self.next += 1;
    }

    fn size(&mut self, size: &Size) {
        // Terms are put in the order of the numbers: bound variables are not in that of their names.
        let mut terms: Vec<Vec<u64>> = size
            .terms()
            .map(|(monomial, c)| {
                let mut term: Vec<u64> = monomial.iter().map(|v| self.id(*v)).collect();
                term.sort_unstable();
                term.push(c.cast_unsigned());
                term
            })
            .collect();
        terms.sort_unstable();
        self.out.push(terms.len() as u64);
        for term in terms {
            self.out.push(term.len() as u64);
            self.out.extend(term);
        }
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Double => self.out.push(0),
            Type::Int => self.out.push(1),
            Type::Bool => self.out.push(2),
            Type::Array(size, element) => {
                self.out.push(3);
                self.size(size);
                self.ty(element);
            }
            Type::Tuple(fields, names) => {
                self.out.extend([4, fields.len() as u64, u64::from(names.is_some())]);
                for name in names.iter().flat_map(|names| names.iter()) {
                    let text = name.as_str().as_bytes();
                    self.out.push(text.len() as u64);
                    self.out.extend(text.iter().map(|byte| u64::from(*byte)));
                }
                fields.iter().for_each(|field| self.ty(field));
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.out.push(block.stmts.len() as u64);
        for stmt in &block.stmts {
            self.expr(&stmt.expr);
            // Their operands do not tell the sizes of these.
            if matches!(stmt.expr, Expr::Zero | Expr::OneHot { .. }) {
                let vars = self.vars;
                self.ty(&vars[stmt.var].ty);
            }
            self.bind(stmt.var);
        }
        self.var(block.result);
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Real(value) => self.out.extend([0, value.to_bits()]),
            Expr::Bool(value) => self.out.extend([1, u64::from(*value)]),
            Expr::Size(size) => {
                self.out.push(2);
                self.size(size);
            }
            Expr::Op(op, args) => {
                self.out.extend([3, *op as u64]);
                let start = self.out.len();
                args.iter().for_each(|v| self.var(*v));
                if op.is_commutative() {
                    self.out[start..].sort_unstable();
                }
            }
            Expr::ToReal(arg) => {
                self.out.push(4);
                self.var(*arg);
            }
            Expr::Build { size, .. } => {
                self.out.push(5);
                self.size(size);
            }
            Expr::Fold { count, init, .. } => {
                self.out.push(6);
                self.size(count);
                self.var(*init);
            }
            Expr::Sum { count, .. } => {
                self.out.push(7);
                self.size(count);
            }
            Expr::While { limit, init, .. } => {
                self.out.push(8);
                self.size(limit);
                self.var(*init);
            }
            Expr::If { condition, .. } => {
                self.out.push(9);
                self.var(*condition);
            }
            // Whether the index was proved does not change the value, and the first one was checked.
            Expr::Get { array, index, .. } => {
                self.out.push(10);
                self.var(*array);
                self.var(*index);
            }
            Expr::Array(elements) => {
                self.out.push(11);
                self.vars(elements);
            }
            Expr::Tuple(fields) => {
                self.out.push(12);
                self.vars(fields);
            }
            Expr::Component(tuple, k) => {
                self.out.extend([13, *k as u64]);
                self.var(*tuple);
            }
            Expr::Jvp { at, along, .. } => {
                self.out.push(14);
                self.vars(at);
                self.vars(along);
            }
            Expr::Loop { count, init, .. } => {
                self.out.push(15);
                self.size(count);
                self.var(*init);
            }
            Expr::Zero => self.out.push(16),
            Expr::OneHot { index, value, .. } => {
                self.out.push(17);
                self.var(*index);
                self.var(*value);
            }
            Expr::Plus(a, b) => {
                self.out.push(18);
                self.var(*a);
                self.var(*b);
            }
            Expr::Vjp { at, cotangent, .. } => {
                self.out.push(19);
                self.vars(at);
                self.var(*cotangent);
            }
            Expr::Custom(custom) => {
                self.out.push(20 + u64::from(custom.promised));
                self.var(custom.at);
            }
            Expr::Again { me, at } => {
                self.out.push(22);
                self.var(*me);
                self.var(*at);
            }
        }
        expr.binders().into_iter().for_each(|binder| self.bind(binder));
        for block in expr.blocks() {
            self.block(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_ir::Builder;
    use chainrule_ops::Op;

    #[test]
    fn loops_that_differ_in_names_have_one_key() {
        let mut b = Builder::new("f");
        let n = b.size_param("n");
        let n = b.size_of(n);
        let v = b.param("v", Type::array(n.clone(), Type::Double));
        let mut sum = |op: Op, swap: bool| {
            b.sum(n.clone(), |b, i| {
                let (x, y) = (b.get_proved(v, i), b.to_real(i));
                b.op(op, &if swap { [y, x] } else { [x, y] })
            })
        };
        let all = [sum(Op::Add, false), sum(Op::Add, true), sum(Op::Sub, false), sum(Op::Sub, true)];
        let f = b.finish(all[0]);
        let keys: Vec<Key> = f.body.stmts.iter().map(|s| key(&f.vars, &s.expr, f.ty(s.var))).collect();
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
        assert_ne!(keys[2], keys[3]);
    }
}
