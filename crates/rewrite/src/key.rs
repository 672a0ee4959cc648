//! Keys of expressions: equal keys are expressions that are equal up to the names of bound variables.
//!
//! In: an expression over variables in scope. Out: a list of numbers. Bound variables are numbered in the order of
//! their binding, free ones represent themselves; operands of commutative operators are sorted. Linear in the
//! expression. Common subexpressions are found across binders: two loops that only differ in the names of their indices
//! have equal keys.

use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, Var, VarId, WhileLoop};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::Hasher;
use std::ops::Range;

/// The key of an expression.
pub(crate) type Key = Box<[u64]>;

/// Returns the hash of a key.
pub(crate) fn hash_of(key: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    key.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

/// Numbers of keys, from 0, in order of arrival. The keys are stored consecutively.
#[derive(Default)]
pub(crate) struct Numbers {
    words: Vec<u64>,
    /// Hash and range of each key, by number.
    keys: Vec<(u64, Range<usize>)>,
    /// Index by the hash of the key.
    table: HashTable<usize>,
}

impl Numbers {
    /// Returns the number of `key`.
    pub(crate) fn number(&mut self, key: &[u64]) -> u64 {
        let Self { words, keys, table } = self;
        let hash = hash_of(key);
        if let Some(number) =
            table.find(hash, |number| keys[*number].0 == hash && words[keys[*number].1.clone()] == *key)
        {
            return *number as u64;
        }
        let (start, number) = (words.len(), keys.len());
        words.extend_from_slice(key);
        keys.push((hash, start..words.len()));
        table.insert_unique(hash, number, |number| keys[*number].0);
        number as u64
    }
}

const BOUND: u64 = 1 << 40;
/// Upper bound of numbers given from outside.
const KNOWN: u64 = 1 << 33;

/// Writer of keys with reusable memory, so that a key takes no other memory.
#[derive(Default)]
pub(crate) struct Keys {
    out: Vec<u64>,
    /// Name of each variable, if it is not itself: [`BOUND`] and its number.
    names: Vec<u64>,
    /// Variables bound in the current key.
    bound: Vec<VarId>,
}

impl Keys {
    /// Returns the key of `expr`, whose variable has type `ty`; `vars` has the types of others.
    pub(crate) fn key(&mut self, vars: &Arena<VarId, Var>, expr: &Expr, ty: &Type) -> &[u64] {
        self.written(|writer| {
            writer.expr(expr, vars);
            writer.ty(ty);
        })
    }

    /// Returns the key of `block`, whose result has type `ty`.
    pub(crate) fn block(&mut self, vars: &Arena<VarId, Var>, block: &Block, ty: &Type) -> &[u64] {
        self.written(|writer| {
            writer.write_block(block, vars);
            writer.ty(ty);
        })
    }

    /// Returns whether two blocks have the same value, whatever the order of their statements and of the operands of
    /// commutative operators. Linear in the blocks.
    pub(crate) fn have_same_value(&mut self, vars: &Arena<VarId, Var>, blocks: [&Block; 2]) -> bool {
        let (mut numbers, mut named) = (Numbers::default(), Vec::new());
        let [a, b] = blocks.map(|block| self.value(block, vars, &mut numbers, &mut named));
        named.into_iter().for_each(|var| self.forget(var));
        a == b
    }

    /// Represents the variables of `block` by the numbers of their values, and returns that of the result. Bound
    /// variables are numbered by the loops around them; `named` collects all.
    // Recursive on nesting.
    fn value(&mut self, block: &Block, vars: &Arena<VarId, Var>, numbers: &mut Numbers, named: &mut Vec<VarId>) -> u64 {
        for stmt in &block.stmts {
            let n_bound = self.bound.len();
            let mut results: SmallVec<[u64; 2]> = SmallVec::new();
            if !stmt.expr.is_leaf() {
                stmt.expr.binders().into_iter().for_each(|binder| self.bind(binder));
                results.extend(stmt.expr.blocks().into_iter().map(|block| self.value(block, vars, numbers, named)));
            }
            self.out.clear();
            self.head(&stmt.expr);
            self.out.extend(results);
            self.ty(&vars[stmt.var].ty);
            let number = numbers.number(&self.out);
            named.extend(self.bound.drain(n_bound..));
            self.know(stmt.var, number);
            named.push(stmt.var);
        }
        self.id(block.result)
    }

    /// Represents `var` by `number` from here on, which is equal for variables of equal value.
    pub(crate) fn know(&mut self, var: VarId, number: u64) {
        self.call(var, BOUND + number);
    }

    /// Represents `var` by itself again.
    pub(crate) fn forget(&mut self, var: VarId) {
        self.call(var, 0);
    }

    fn call(&mut self, var: VarId, name: u64) {
        if self.names.len() <= var.index() {
            self.names.resize(var.index() + 1, 0);
        }
        self.names[var.index()] = name;
    }

    fn written(&mut self, write: impl FnOnce(&mut Self)) -> &[u64] {
        self.out.clear();
        write(self);
        for var in self.bound.drain(..) {
            self.names[var.index()] = 0;
        }
        &self.out
    }

    fn id(&self, var: VarId) -> u64 {
        match self.names.get(var.index()) {
            None | Some(0) => var.index() as u64,
            Some(name) => *name,
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
        self.call(var, BOUND + KNOWN + self.bound.len() as u64);
        self.bound.push(var);
    }

    fn size(&mut self, size: &Size) {
        if let Some(var) = size.as_var() {
            let id = self.id(var);
            return self.out.extend([1, 2, id, 1]);
        }
        if let Some(c) = size.as_constant() {
            return self.out.extend([0, c.cast_unsigned()]);
        }
        // Terms are sorted by numbers, because bound variables are not in the order of their names.
        let mut terms: SmallVec<[SmallVec<[u64; 4]>; 4]> = size
            .terms()
            .map(|(monomial, c)| {
                let mut term: SmallVec<[u64; 4]> = monomial.iter().map(|v| self.id(*v)).collect();
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

    fn write_block(&mut self, block: &Block, vars: &Arena<VarId, Var>) {
        self.out.push(block.stmts.len() as u64);
        for stmt in &block.stmts {
            self.expr(&stmt.expr, vars);
            // Operands do not determine the sizes of these.
            if matches!(stmt.expr, Expr::Zero | Expr::OneHot { .. }) {
                self.ty(&vars[stmt.var].ty);
            }
            self.bind(stmt.var);
        }
        self.var(block.result);
    }

    fn expr(&mut self, expr: &Expr, vars: &Arena<VarId, Var>) {
        self.head(expr);
        if expr.is_leaf() {
            return;
        }
        expr.binders().into_iter().for_each(|binder| self.bind(binder));
        for block in expr.blocks() {
            self.write_block(block, vars);
        }
    }

    /// Writes an expression without its blocks.
    fn head(&mut self, expr: &Expr) {
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
            Expr::ToInt(arg) => {
                self.out.push(23);
                self.var(*arg);
            }
            Expr::Build { size, .. } => {
                self.out.push(5);
                self.size(size);
            }
            Expr::Fold(StateLoop { count, init, .. }) => {
                self.out.push(6);
                self.size(count);
                self.var(*init);
            }
            Expr::Sum { count, .. } => {
                self.out.push(7);
                self.size(count);
            }
            Expr::While(WhileLoop { limit, init, .. }) => {
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
            Expr::Loop(StateLoop { count, init, .. }) => {
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
        let mut made = Keys::default();
        let keys: Vec<Key> = (f.body.stmts.iter()).map(|s| made.key(&f.vars, &s.expr, f.ty(s.var)).into()).collect();
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
        assert_ne!(keys[2], keys[3]);
    }
}
