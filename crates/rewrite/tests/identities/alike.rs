//! Equality of functions as programs, up to names and the order of independent statements. Both have the same value as
//! a term, and take the same operations, loads and stores, so a value that one computes outside a loop the other also
//! does.

use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, VarId};
use chainrule_rewrite::engine::measure;
use std::collections::HashMap;

/// Returns whether `a` and `b` are the same program.
pub fn alike(a: &Function, b: &Function) -> bool {
    let mut numbers = HashMap::new();
    let [x, y] = [a, b].map(|f| Terms { f, of: HashMap::new(), numbers: &mut numbers }.function());
    let [cost, other] = [a, b].map(measure);
    x == y
        && (cost.cost, cost.operations, cost.stored, cost.loops)
            == (other.cost, other.operations, other.stored, other.loops)
}

struct Terms<'a> {
    f: &'a Function,
    /// Number of the term of each variable.
    of: HashMap<VarId, usize>,
    numbers: &'a mut HashMap<String, usize>,
}

impl Terms<'_> {
    fn function(&mut self) -> usize {
        for (at, var) in self.f.sizes.iter().chain(&self.f.params).enumerate() {
            let number = self.number(format!("parameter {at}"));
            self.of.insert(*var, number);
        }
        self.block(&self.f.body, 0)
    }

    fn number(&mut self, term: String) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(term).or_insert(next)
    }

    fn size(&self, size: &Size) -> String {
        size.substitute(|v| Size::var(VarId::new(self.of[&v]))).to_string()
    }

    /// Returns the number of the value of `block`, inside loops that bind `bound` variables.
    fn block(&mut self, block: &Block, bound: usize) -> usize {
        for stmt in &block.stmts {
            let head = match &stmt.expr {
                Expr::Real(value) => format!("{value:e}"),
                Expr::Size(size) => format!("size {}", self.size(size)),
                Expr::Build { size, .. } => format!("build {}", self.size(size)),
                Expr::Op(op, _) => op.row().name.to_owned(),
                Expr::ToReal(_) => "real".to_owned(),
                Expr::ToInt(_) => "truncate".to_owned(),
                Expr::Sum { count, .. } => format!("sum {}", self.size(count)),
                Expr::Fold(StateLoop { count, .. }) => format!("fold {}", self.size(count)),
                Expr::Loop(StateLoop { count, .. }) => format!("loop {}", self.size(count)),
                Expr::Get { .. } => "get".to_owned(),
                Expr::Array(_) => "array".to_owned(),
                Expr::Tuple(_) => "tuple".to_owned(),
                Expr::Component(_, k) => format!("component {k}"),
                Expr::If { .. } => "if".to_owned(),
                Expr::OneHot { .. } => "one-hot".to_owned(),
                other => panic!("no identity has {other:?}"),
            };
            let mut parts: Vec<usize> = stmt.expr.operands().into_iter().map(|var| self.of[&var]).collect();
            if matches!(&stmt.expr, Expr::Op(op, _) if op.is_commutative()) {
                parts.sort_unstable();
            }
            let binders = stmt.expr.binders();
            for (at, binder) in binders.iter().enumerate() {
                let number = self.number(format!("bound {}", bound + at));
                self.of.insert(*binder, number);
            }
            for block in stmt.expr.blocks() {
                parts.push(self.block(block, bound + binders.len()));
            }
            let number = self.number(format!("{head} of {parts:?}"));
            self.of.insert(stmt.var, number);
        }
        self.of[&block.result]
    }
}
