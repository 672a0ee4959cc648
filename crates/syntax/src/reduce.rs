//! Delta debugging: a small module for which a property still holds.
//!
//! In: a module, and a property of texts, such as "a pass changes the results". Out: a module that has the property,
//! and loses it if a definition, a statement or a subexpression is removed.
//!
//! Lists (definitions and statements) are halved as by A. Zeller and R. Hildebrandt, Simplifying and isolating
//! failure-inducing input (2002). Expressions are replaced by their parts from the outside in, as by G. Misherghi and
//! Z. Su, HDD: hierarchical delta debugging (2006), and names that are used once by their values. Types are not
//! considered: the property must reject texts that do not check.

use crate::format::print_module;
use crate::tree::{Expr, ExprKind, Item, ItemKind, Module, Pattern};
use chainrule_base::Name;

/// Property of a text, with the number of texts that may still be tried.
struct Search<'a> {
    holds: &'a mut dyn FnMut(&str) -> bool,
    budget: usize,
    best: Module,
}

/// Returns a small module for which `holds` returns true of the text; the module itself if it is minimal. At most
/// `budget` texts are tried. Every replacement has fewer nodes, so that the search ends.
#[must_use]
pub fn reduce(module: &Module, budget: usize, holds: &mut dyn FnMut(&str) -> bool) -> Module {
    let mut search = Search { holds, budget, best: module.clone() };
    loop {
        let changed = search.definitions() | search.statements() | search.expressions();
        if !changed || search.budget == 0 {
            return search.best;
        }
    }
}

impl Search<'_> {
    /// Takes a candidate if it has the property.
    fn accepts(&mut self, candidate: Module) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        let holds = (self.holds)(&print_module(&candidate));
        if holds {
            self.best = candidate;
        }
        holds
    }

    /// Removes chunks of a list: halves, quarters, and so on. `without` returns a module without the elements from `.0`
    /// up to `.1`.
    fn halve(&mut self, count: fn(&Module) -> usize, without: fn(&Module, (usize, usize)) -> Module) -> bool {
        let mut changed = false;
        let mut chunk = count(&self.best);
        while chunk > 0 {
            let mut start = 0;
            while start < count(&self.best) {
                if self.accepts(without(&self.best, (start, start + chunk))) {
                    changed = true;
                } else {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
        changed
    }

    fn definitions(&mut self) -> bool {
        self.halve(
            |module| module.items.len(),
            |module, (from, to)| {
                let mut module = module.clone();
                module.items.drain(from..to.min(module.items.len()));
                module
            },
        )
    }

    fn statements(&mut self) -> bool {
        self.halve(n_statements, |module, (from, to)| {
            let mut module = module.clone();
            let mut next = 0;
            values_mut(&mut module).for_each(|value| remove_statements(value, &mut next, &|n| (from..to).contains(&n)));
            module
        })
    }

    fn expressions(&mut self) -> bool {
        let mut changed = false;
        let mut at = 0;
        while let Some(found) = expr_at(&self.best, at) {
            let smaller = replacements(found);
            let accepted = smaller.into_iter().any(|replacement| {
                let mut candidate = self.best.clone();
                replace(&mut candidate, at, replacement);
                self.accepts(candidate)
            });
            changed |= accepted;
            if !accepted {
                at += 1;
            }
        }
        changed
    }
}

fn values(module: &Module) -> impl Iterator<Item = &Expr> {
    module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Let(binding) => Some(&binding.value),
        ItemKind::Import { .. } | ItemKind::TypeAlias { .. } => None,
    })
}

fn values_mut(module: &mut Module) -> impl Iterator<Item = &mut Expr> {
    module.items.iter_mut().filter_map(|Item { kind, .. }| match kind {
        ItemKind::Let(binding) => Some(&mut binding.value),
        ItemKind::Import { .. } | ItemKind::TypeAlias { .. } => None,
    })
}

/// Returns the direct subexpressions.
fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Integer(_)
        | ExprKind::Real(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Operator(_)
        | ExprKind::Error => Vec::new(),
        ExprKind::Apply { function, args } => std::iter::once(&**function).chain(args).collect(),
        ExprKind::Fun { body, .. } => vec![body],
        ExprKind::Let { bindings, body } => bindings.iter().map(|b| &b.value).chain([&**body]).collect(),
        ExprKind::If { arms, otherwise } => {
            arms.iter().flat_map(|(condition, value)| [condition, value]).chain([&**otherwise]).collect()
        }
        ExprKind::Infix { first, rest } => std::iter::once(&**first).chain(rest.iter().map(|r| &r.2)).collect(),
        ExprKind::Neg(of) | ExprKind::Component { tuple: of, .. } => vec![of],
        ExprKind::Index { array, indices } => std::iter::once(&**array).chain(indices).collect(),
        ExprKind::Tuple(parts) | ExprKind::Array(parts) => parts.iter().collect(),
        ExprKind::Record(fields) => fields.iter().map(|(_, value)| value).collect(),
        ExprKind::Field { record, .. } => vec![record],
        ExprKind::Annotated { expr, .. } => vec![expr],
    }
}

/// Returns the direct subexpressions in the order of [`children`].
fn children_mut(expr: &mut Expr) -> Vec<&mut Expr> {
    match &mut expr.kind {
        ExprKind::Integer(_)
        | ExprKind::Real(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Operator(_)
        | ExprKind::Error => Vec::new(),
        ExprKind::Apply { function, args } => std::iter::once(&mut **function).chain(args).collect(),
        ExprKind::Fun { body, .. } => vec![body],
        ExprKind::Let { bindings, body } => bindings.iter_mut().map(|b| &mut b.value).chain([&mut **body]).collect(),
        ExprKind::If { arms, otherwise } => {
            arms.iter_mut().flat_map(|(condition, value)| [condition, value]).chain([&mut **otherwise]).collect()
        }
        ExprKind::Infix { first, rest } => {
            std::iter::once(&mut **first).chain(rest.iter_mut().map(|r| &mut r.2)).collect()
        }
        ExprKind::Neg(of) | ExprKind::Component { tuple: of, .. } => vec![of],
        ExprKind::Index { array, indices } => std::iter::once(&mut **array).chain(indices).collect(),
        ExprKind::Tuple(parts) | ExprKind::Array(parts) => parts.iter_mut().collect(),
        ExprKind::Record(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
        ExprKind::Field { record, .. } => vec![record],
        ExprKind::Annotated { expr, .. } => vec![expr],
    }
}

/// Returns an expression by its number in preorder; `None` behind the last.
fn expr_at(module: &Module, at: usize) -> Option<&Expr> {
    let mut pending: Vec<&Expr> = values(module).collect();
    pending.reverse();
    let mut n = 0;
    while let Some(expr) = pending.pop() {
        if n == at {
            return Some(expr);
        }
        n += 1;
        pending.extend(children(expr).into_iter().rev());
    }
    None
}

fn replace(module: &mut Module, at: usize, replacement: Expr) {
    let mut pending: Vec<&mut Expr> = values_mut(module).collect();
    pending.reverse();
    let mut n = 0;
    while let Some(expr) = pending.pop() {
        if n == at {
            *expr = replacement;
            return;
        }
        n += 1;
        pending.extend(children_mut(expr).into_iter().rev());
    }
}

/// Returns a `let` without one of its bindings, whose name is replaced by its value; `None` if that copies a value.
/// Names are replaced wherever they occur: a text in which another binding has the same name may change its meaning,
/// as any other candidate may.
fn inlined(expr: &Expr, at: usize) -> Option<Expr> {
    let mut expr = expr.clone();
    let ExprKind::Let { bindings, body } = &mut expr.kind else { return None };
    let binding = bindings.remove(at);
    let Pattern::Name(ident) = &binding.pattern else { return None };
    let rest = bindings[at..].iter_mut().map(|b| &mut b.value).chain([&mut **body]);
    let n_uses: usize = rest.map(|later| substitute(later, &ident.name, &binding.value)).sum();
    if n_uses > 1 && !children(&binding.value).is_empty() {
        return None;
    }
    if bindings.is_empty() {
        let body = std::mem::replace(&mut body.kind, ExprKind::Error);
        expr.kind = body;
    }
    Some(expr)
}

/// Replaces a name by a value; returns the number of replacements.
fn substitute(expr: &mut Expr, name: &Name, value: &Expr) -> usize {
    let mut n = 0;
    let mut pending = vec![expr];
    while let Some(expr) = pending.pop() {
        if matches!(&expr.kind, ExprKind::Name(found) if found == name) {
            expr.kind = value.kind.clone();
            n += 1;
        } else {
            pending.extend(children_mut(expr));
        }
    }
    n
}

/// Returns smaller expressions that may have the same type: subexpressions, shorter lists, and a number.
fn replacements(expr: &Expr) -> Vec<Expr> {
    let with = |kind| Expr { kind, span: expr.span };
    let mut smaller: Vec<Expr> = children(expr).into_iter().cloned().collect();
    match &expr.kind {
        ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Bool(_) | ExprKind::Operator(_) | ExprKind::Error => {
            return Vec::new();
        }
        ExprKind::Infix { first, rest } if rest.len() > 1 => smaller.extend((0..rest.len()).map(|dropped| {
            let mut rest = rest.clone();
            rest.remove(dropped);
            with(ExprKind::Infix { first: first.clone(), rest })
        })),
        ExprKind::Array(parts) if parts.len() > 1 => smaller.extend((0..parts.len()).map(|dropped| {
            let mut parts = parts.clone();
            parts.remove(dropped);
            with(ExprKind::Array(parts))
        })),
        ExprKind::Let { bindings, .. } => smaller.extend((0..bindings.len()).filter_map(|at| inlined(expr, at))),
        _ => {}
    }
    smaller.push(with(ExprKind::Real(1.0)));
    smaller
}

fn n_statements(module: &Module) -> usize {
    let mut pending: Vec<&Expr> = values(module).collect();
    let mut n = 0;
    while let Some(expr) = pending.pop() {
        if let ExprKind::Let { bindings, .. } = &expr.kind {
            n += bindings.len();
        }
        pending.extend(children(expr));
    }
    n
}

/// Removes the statements whose number, inner ones first, is `gone`. Recursive in the nesting of expressions, which
/// [`crate::tree::MAX_DEPTH`] bounds.
fn remove_statements(expr: &mut Expr, next: &mut usize, gone: &dyn Fn(usize) -> bool) {
    children_mut(expr).into_iter().for_each(|child| remove_statements(child, next, gone));
    if let ExprKind::Let { bindings, body } = &mut expr.kind {
        bindings.retain(|_| {
            let n = *next;
            *next += 1;
            !gone(n)
        });
        if bindings.is_empty() {
            let body = std::mem::replace(&mut body.kind, ExprKind::Error);
            expr.kind = body;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use chainrule_base::Sources;

    fn reduced(text: &str, needed: &[&str]) -> String {
        let mut sources = Sources::new();
        let file = sources.add("f.ft", text);
        let (module, diagnostics) = parse(&sources, file);
        assert!(!diagnostics.has_errors());
        let mut holds = |text: &str| needed.iter().all(|word| text.contains(word));
        print_module(&reduce(&module, 10_000, &mut holds))
    }

    #[test]
    fn definitions_and_statements_without_use_go() {
        let text =
            "let g = fun x -> x\nlet f = fun x ->\n  let a = sin x\n  let b = cos x\n  let c = exp a\n  c * b + a\n";
        assert_eq!(reduced(text, &["f", "cos"]).trim(), "let f = cos");
        assert_eq!(reduced(text, &["let c = exp"]).trim(), "let f = let c = exp in 1.0");
    }

    #[test]
    fn names_are_replaced_by_their_values_unless_that_copies() {
        let inlined = |text: &str, at: usize| {
            let mut sources = Sources::new();
            let file = sources.add("f.ft", text);
            let module = parse(&sources, file).0;
            inlined(expr_at(&module, 0).unwrap(), at).map(|expr| crate::print_expr(&expr).replace("\n", " "))
        };
        let text = "let f = let a = sin 1 in let b = a in b + b";
        assert_eq!(inlined(text, 0).as_deref(), Some("let b = sin 1 in b + b"));
        assert_eq!(inlined(text, 1).as_deref(), Some("let a = sin 1 in a + a"));
        assert_eq!(inlined("let f = let a = sin 1 in a + a", 0), None);
        assert_eq!(inlined("let f = let a = sin 1 in a", 0).as_deref(), Some("sin 1"));
    }

    #[test]
    fn sums_and_lists_lose_terms() {
        assert_eq!(reduced("let f = fun x y z -> x + y * z - 3 + y", &["- 3"]).trim(), "let f = 1.0 - 3");
        assert_eq!(reduced("let f = [1, 2, 3 + 4, 5]", &["["]).trim(), "let f = [5]");
    }

    #[test]
    fn a_minimal_module_stays_and_a_budget_ends_the_search() {
        assert_eq!(reduced("let f = 1", &["f"]).trim(), "let f = 1");
        let mut sources = Sources::new();
        let file = sources.add("f.ft", "let f = 1 + 2 + 3 + 4");
        let mut tried = Vec::new();
        let mut holds = |text: &str| {
            tried.push(text.to_owned());
            text.contains('f')
        };
        let _ = reduce(&parse(&sources, file).0, 2, &mut holds);
        assert_eq!(tried, ["", "let f = 1\n"]);
    }
}
