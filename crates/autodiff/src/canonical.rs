//! Canonical reads: of the congruent leaves of a tuple, only the first one is read.
//!
//! The others are then never used, and [`crate::activity`] gives no tangent to leaves that are never used.
//!
//! In: a block and the classes of its leaves. Out: the same block, in which components of tuples are read in other
//! places. Holds: what is read is equal bit for bit; statements are added for the tuples on the way only.

use crate::congruent::{Class, Value, Values};
use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Stmt, Type, Var, VarId};
use rustc_hash::FxHashMap;

/// Redirects reads in `block` to the first of congruent leaves.
pub(crate) fn reads(vars: &mut Arena<VarId, Var>, values: &Values, block: &mut Block) {
    Reads { vars, values, parts: FxHashMap::default(), firsts: FxHashMap::default() }.block(block);
}

struct Reads<'a> {
    vars: &'a mut Arena<VarId, Var>,
    values: &'a Values,
    /// Tuple and index of each variable that is a component.
    parts: FxHashMap<VarId, (VarId, usize)>,
    /// Path of components to the first leaf of each class, for each tuple that is read and not a component itself.
    firsts: FxHashMap<VarId, FxHashMap<Class, Vec<usize>>>,
}

impl Reads<'_> {
    // Recursive on the nesting of blocks.
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if !matches!(stmt.expr, Expr::Custom(_) | Expr::Jvp { .. } | Expr::Vjp { .. }) {
                stmt.expr.blocks_mut().into_iter().for_each(|inner| self.block(inner));
            }
            if let Expr::Component(tuple, k) = stmt.expr {
                self.parts.insert(stmt.var, (tuple, k));
                if matches!(self.vars[stmt.var].ty, Type::Double | Type::Bool) {
                    stmt = self.redirected(stmt, &mut stmts);
                }
            }
            stmts.push(stmt);
        }
        block.stmts = stmts;
    }

    /// Returns the statement that reads the first of the leaves that are congruent to that of `stmt`.
    fn redirected(&mut self, stmt: Stmt, stmts: &mut Vec<Stmt>) -> Stmt {
        let mut path = Vec::new();
        let mut root = stmt.var;
        while let Some((tuple, k)) = self.parts.get(&root) {
            path.push(*k);
            root = *tuple;
        }
        path.reverse();
        let (Some(value), Some(Value::Leaf(class))) = (self.values.get(root), self.values.get(stmt.var)) else {
            return stmt;
        };
        let firsts = self.firsts.entry(root).or_insert_with(|| firsts(value));
        let Some(first) = firsts.get(class).filter(|first| **first != path) else { return stmt };
        let Some((last, tuples)) = first.split_last() else { return stmt };
        let mut tuple = root;
        for k in tuples {
            let Type::Tuple(fields, _) = &self.vars[tuple].ty else { return stmt };
            let Some(ty) = fields.get(*k).cloned() else { return stmt };
            let part = self.vars.push(Var { ty, name: None, span: None, value: None });
            stmts.push(Stmt { var: part, expr: Expr::Component(tuple, *k), span: stmt.span });
            tuple = part;
        }
        Stmt { expr: Expr::Component(tuple, *last), ..stmt }
    }
}

/// Returns the path to the first leaf of each class in a tuple, in the order of components.
fn firsts(value: &Value) -> FxHashMap<Class, Vec<usize>> {
    let mut firsts = FxHashMap::default();
    let mut open = vec![(value, Vec::new())];
    while let Some((value, path)) = open.pop() {
        match value {
            Value::Leaf(class) => {
                firsts.entry(*class).or_insert(path);
            }
            // The leaves of an array are read from its elements.
            Value::Array(_) => {}
            Value::Tuple(fields) => {
                open.extend(fields.iter().enumerate().rev().map(|(k, field)| (field, [&path[..], &[k]].concat())));
            }
        }
    }
    firsts
}
