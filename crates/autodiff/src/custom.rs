//! Functions that state their own derivative ([`Custom`]): instantiation of their rules, and removal of the rules once
//! no derivative is left.
//!
//! Forward mode emits the forward rule, reverse mode the reverse rule, each with the computed value; the value stays a
//! [`Custom`], so that an outer derivative finds its rule again. A rule that applies the function itself gets a copy of
//! it, rules included.

use chainrule_base::{Arena, Diagnostic, Id, Span};
use chainrule_ir::{Block, Builder, Custom, Expr, Function, Renaming, Size, Stmt, Var, VarId};
use std::collections::BTreeSet;

/// Kind of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Reverse,
}

/// Returns a copy of a rule of `custom` at point, value, and direction or cotangent, in which the function itself is
/// applied like any other; all variables that it binds are fresh, and variables are replaced according to `renaming`.
/// Returns `None` without a rule.
pub(crate) fn rule(
    builder: &mut Builder,
    custom: &Custom,
    direction: Direction,
    args: [VarId; 3],
    renaming: &mut Renaming,
) -> Option<Block> {
    let rule = custom.rule.as_ref()?;
    let chosen = match direction {
        Direction::Forward => &rule.forward,
        Direction::Reverse => &rule.reverse,
    };
    for (param, arg) in chosen.params.iter().zip(args) {
        renaming.insert(*param, arg);
    }
    let me = renaming.get(rule.me);
    let mut block = builder.copy_block(&chosen.body, renaming);
    again(builder, &mut block, me, custom, renaming);
    Some(block)
}

fn again(builder: &mut Builder, block: &mut Block, me: VarId, custom: &Custom, renaming: &mut Renaming) {
    for stmt in &mut block.stmts {
        for inner in stmt.expr.blocks_mut() {
            again(builder, inner, me, custom, renaming);
        }
        if let Expr::Again { me: found, at } = stmt.expr
            && found == me
        {
            stmt.expr = builder.copy_custom(custom, at, renaming);
        }
    }
}

/// Returns the variables with `active` that functions with rules in `block` capture, with the location of each such
/// function.
pub(crate) fn captured(block: &Block, active: &dyn Fn(VarId) -> bool) -> Vec<(VarId, Option<Span>)> {
    let mut found = Vec::new();
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        for stmt in &block.stmts {
            if let Expr::Custom(custom) = &stmt.expr {
                let own = custom.param;
                let mut used = BTreeSet::new();
                // Variables bound inside are not active.
                for block in stmt.expr.blocks() {
                    block.for_each_use(&mut |var| {
                        used.insert(var);
                    });
                }
                found.extend(used.into_iter().filter(|var| *var != own && active(*var)).map(|var| (var, stmt.span)));
            } else {
                blocks.extend(stmt.expr.blocks());
            }
        }
    }
    found
}

/// Returns the error that `var`, an active variable, is captured by a function with a rule at `span`.
pub(crate) fn captures(vars: &Arena<VarId, Var>, var: VarId, span: Option<Span>) -> Diagnostic {
    let name = vars[var].name.as_ref().map_or("a value".to_owned(), |name| format!("`{name}`"));
    let mut diagnostic = Diagnostic::error("a derivative would be lost")
        .with_reason(format!(
            "the function of a `withDerivative` uses {name} from around it, by which is differentiated, and its rules \
             say nothing of that"
        ))
        .with_help("pass it with the argument, or hold it by `constant` if it is meant to be one");
    if let Some(span) = span {
        diagnostic = diagnostic.with_label(span, "this has a derivative of its own");
    }
    if let Some(at) = vars[var].span {
        diagnostic = diagnostic.with_label(at, "it comes from here");
    }
    diagnostic
}

/// Returns the location, if any, of a derivative that a program states (`withDerivative`, `constant`) and that other
/// methods than this crate's would have to respect. The library's own rules do not count: they are the derivatives of
/// the computed values.
#[must_use]
pub fn own_derivative(function: &Function) -> Option<Option<Span>> {
    let mut blocks = vec![&function.body];
    while let Some(block) = blocks.pop() {
        for stmt in &block.stmts {
            if matches!(&stmt.expr, Expr::Custom(custom) if !custom.promised) {
                return Some(stmt.span);
            }
            blocks.extend(stmt.expr.blocks());
        }
    }
    None
}

/// Replaces every function with a rule by its body. Linear.
pub(crate) fn lower(function: &mut Function) {
    let mut lower = Lower { is: vec![None; function.vars.len()] };
    lower.block(&mut function.body);
}

struct Lower {
    /// Replacements of variables.
    is: Vec<Option<VarId>>,
}

impl Lower {
    fn resolve(&self, var: VarId) -> VarId {
        self.is.get(var.index()).copied().flatten().unwrap_or(var)
    }

    fn block(&mut self, block: &mut Block) {
        let stmts = std::mem::take(&mut block.stmts);
        block.stmts.reserve(stmts.len());
        self.stmts(stmts, &mut block.stmts);
        block.result = self.resolve(block.result);
    }

    // Neither a point nor a value is an integer, so no size refers to them.
    fn stmts(&mut self, stmts: Vec<Stmt>, to: &mut Vec<Stmt>) {
        for mut stmt in stmts {
            stmt.expr.map_operands(&|var| self.resolve(var), &Size::clone);
            if let Expr::Custom(custom) = stmt.expr {
                let Custom { at, param, body, .. } = *custom;
                self.is[param.index()] = Some(at);
                self.stmts(body.stmts, to);
                self.is[stmt.var.index()] = Some(self.resolve(body.result));
                continue;
            }
            for inner in stmt.expr.blocks_mut() {
                self.block(inner);
            }
            to.push(stmt);
        }
    }
}
