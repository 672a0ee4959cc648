//! Array programs in Graphviz's language.
//!
//! A statement is a vertex, a block a cluster. Edges lead from operands to what uses them, numbered where there are
//! several, as in the graph of straight-line code ([`chainrule_graph::Graph::dot`]); from the result of a block an edge
//! leads to its statement.

use chainrule_ir::value::named;
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, VarId, WhileLoop};
use std::fmt::Write;

/// Returns the statements of `function` as a graph.
pub(crate) fn dot(function: &Function) -> String {
    let mut drawing = Drawing { function, out: String::from("digraph graph_ {\n  rankdir=BT;\n"), n_clusters: 0 };
    for var in function.sizes.iter().chain(&function.params) {
        drawing.vertex(*var, &drawing.name(*var), "box");
    }
    drawing.block(&function.body);
    let result = function.body.result;
    let _ = writeln!(drawing.out, "  {result} [peripheries=2];");
    drawing.out.push_str("}\n");
    drawing.out
}

struct Drawing<'a> {
    function: &'a Function,
    out: String,
    n_clusters: usize,
}

impl Drawing<'_> {
    fn name(&self, var: VarId) -> String {
        self.function.vars[var].name.as_deref().map_or_else(|| var.to_string(), str::to_owned)
    }

    fn vertex(&mut self, var: VarId, label: &str, shape: &str) {
        let label = label.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(self.out, "  {var} [label=\"{label}\", shape={shape}];");
    }

    /// Recursive on the nesting of blocks.
    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            let (expr, var) = (&stmt.expr, stmt.var);
            self.vertex(var, &self.label(expr), "ellipse");
            let operands = expr.operands();
            for (k, operand) in operands.iter().enumerate() {
                let label = if operands.len() > 1 { format!(" [label=\"{k}\"]") } else { String::new() };
                let _ = writeln!(self.out, "  {operand} -> {var}{label};");
            }
            let blocks = expr.blocks();
            if blocks.is_empty() {
                continue;
            }
            let _ = writeln!(self.out, "  subgraph cluster_{} {{", self.n_clusters);
            self.n_clusters += 1;
            for binder in expr.binders() {
                self.vertex(binder, &self.name(binder), "box");
            }
            for block in &blocks {
                self.block(block);
            }
            self.out.push_str("  }\n");
            for block in &blocks {
                let _ = writeln!(self.out, "  {} -> {var} [style=dashed];", block.result);
            }
        }
    }

    fn label(&self, expr: &Expr) -> String {
        let size = |size: &Size| named(size, &self.function.vars);
        match expr {
            Expr::Real(x) => format!("{x:?}"),
            Expr::Bool(b) => b.to_string(),
            Expr::Size(s) => size(s),
            Expr::Op(op, _) => op.row().name.to_owned(),
            Expr::ToReal(_) => "real".to_owned(),
            Expr::ToInt(_) => "truncate".to_owned(),
            Expr::Build { size: n, .. } => format!("build {}", size(n)),
            Expr::Fold(StateLoop { count, .. }) => format!("ifold {}", size(count)),
            Expr::Sum { count, .. } => format!("sum {}", size(count)),
            Expr::Loop(StateLoop { count, .. }) => format!("loop {}", size(count)),
            Expr::While(WhileLoop { limit, .. }) => format!("while, at most {}", size(limit)),
            Expr::If { .. } => "if".to_owned(),
            Expr::Zero => "zero".to_owned(),
            Expr::OneHot { .. } => "one-hot".to_owned(),
            Expr::Plus(..) => "add".to_owned(),
            Expr::Get { .. } => "get".to_owned(),
            Expr::Array(_) => "array".to_owned(),
            Expr::Tuple(_) => "tuple".to_owned(),
            Expr::Component(_, k) => format!("component {k}"),
            Expr::Jvp { .. } => "jvp".to_owned(),
            Expr::Vjp { .. } => "vjp".to_owned(),
            Expr::Custom(_) => "function with a derivative".to_owned(),
            Expr::Again { .. } => "the function".to_owned(),
        }
    }
}
