//! Even powers of square roots, before differentiation: `sqrt(u) ** 2` becomes `u`, `(c * sqrt(u)) ** 2` becomes
//! `c * c * u`, and `sqrt(u) ** 4` becomes `u ** 2`.
//!
//! In: a function whose doubles may be treated as real numbers. Out: the function without these roots. The square has
//! derivatives where the root has none: the Hessian of `vectorNorm x ** 2` at 0 is 2 on the diagonal. The scalar graph
//! simplifies straight-line code likewise.

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Stmt, Type, Var, VarId};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Returns `function` with squares of square roots simplified. Linear in its size.
#[must_use]
pub fn without_squared_roots(function: &Function) -> Cow<'_, Function> {
    if !has_root(&function.body) {
        return Cow::Borrowed(function);
    }
    let mut function = function.clone();
    let Function { body, vars, .. } = &mut function;
    Pass { vars, defs: FxHashMap::default() }.block(body);
    Cow::Owned(function)
}

// Recursive on the nesting of blocks.
fn has_root(block: &Block) -> bool {
    let is_root =
        |stmt: &Stmt| matches!(stmt.expr, Expr::Op(Op::Sqrt, _)) || stmt.expr.blocks().into_iter().any(has_root);
    block.stmts.iter().any(is_root)
}

struct Pass<'a> {
    vars: &'a mut Arena<VarId, Var>,
    /// Roots, products and numbers so far.
    defs: FxHashMap<VarId, Expr>,
}

/// Exponents of powers that are simplified.
const EXPONENTS: [f64; 4] = [2.0, 4.0, 6.0, 8.0];

/// Maximum number of factors of a product that is searched for a root.
const MAX_FACTORS: usize = 8;

impl Pass<'_> {
    // Recursive on the nesting of blocks.
    fn block(&mut self, block: &mut Block) {
        let mut done = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if let Some((square, factors, exponent)) = self.squared(&stmt.expr) {
                let mut value = square;
                let mut emit = |expr| {
                    let var = self.vars.push(Var { ty: Type::Double, name: None, span: stmt.span, value: None });
                    done.push(Stmt { var, expr, span: stmt.span });
                    var
                };
                if exponent != 2.0 {
                    let half = emit(Expr::Real(exponent / 2.0));
                    value = emit(Expr::op(Op::Pow, &[value, half]));
                }
                for factor in factors {
                    let power = if exponent == 2.0 {
                        emit(Expr::op(Op::Mul, &[factor, factor]))
                    } else {
                        let exponent = emit(Expr::Real(exponent));
                        emit(Expr::op(Op::Pow, &[factor, exponent]))
                    };
                    value = emit(Expr::op(Op::Mul, &[power, value]));
                }
                let one = emit(Expr::Real(1.0));
                stmt.expr = Expr::op(Op::Mul, &[value, one]);
            }
            if matches!(stmt.expr, Expr::Op(Op::Sqrt | Op::Mul, _) | Expr::Real(_)) {
                self.defs.insert(stmt.var, stmt.expr.clone());
            }
            stmt.expr.blocks_mut().into_iter().for_each(|inner| self.block(inner));
            done.push(stmt);
        }
        block.stmts = done;
    }

    /// Returns `u`, the other factors and the exponent if the expression is an even power of a product with the factor
    /// `sqrt u`.
    fn squared(&self, expr: &Expr) -> Option<(VarId, Vec<VarId>, f64)> {
        let (base, exponent) = match expr {
            Expr::Op(Op::Mul, args) if args[0] == args[1] => (args[0], 2.0),
            Expr::Op(Op::Pow, args) => match self.defs.get(&args[1]) {
                Some(Expr::Real(exponent)) if EXPONENTS.contains(exponent) => (args[0], *exponent),
                _ => return None,
            },
            _ => return None,
        };
        let (mut open, mut factors, mut square) = (vec![base], Vec::new(), None);
        while let Some(var) = open.pop() {
            match self.defs.get(&var) {
                Some(Expr::Op(Op::Sqrt, args)) if square.is_none() => square = Some(args[0]),
                Some(Expr::Op(Op::Mul, args)) if open.len() + factors.len() < MAX_FACTORS => {
                    open.extend_from_slice(args);
                }
                _ => factors.push(var),
            }
        }
        Some((square?, factors, exponent))
    }
}
