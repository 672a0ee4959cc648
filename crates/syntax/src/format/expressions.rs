//! Expressions.

use super::Printer;
use super::layout::Event;
use crate::precedence::Level;
use crate::token::TokenKind;
use crate::tree::{Binding, Expr, ExprKind, Infix, Param, Pattern, Type};
use chainrule_base::Span;

/// Context of an expression.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Expressions that bind looser than this need parentheses.
    loosest: Level,
    /// Whether no text follows that a `fun` or `if` here could absorb.
    last: bool,
}

impl Slot {
    /// After `=`, `->`, in brackets: any expression is possible.
    pub(super) const OPEN: Self = Self { loosest: Level::Open, last: true };

    /// Returns an operand or an argument.
    const fn at_least(loosest: Level) -> Self {
        Self { loosest, last: false }
    }
}

/// Returns the precedence of the outermost construct of `expr`.
fn level(expr: &Expr) -> Level {
    match &expr.kind {
        ExprKind::Fun { .. } | ExprKind::Let { .. } | ExprKind::If { .. } => Level::Open,
        ExprKind::Infix { rest, .. } => rest.first().map_or(Level::Postfix, |(op, ..)| op.level()),
        ExprKind::Neg(_) => Level::Negation,
        ExprKind::Integer(n) if *n < 0 => Level::Negation,
        ExprKind::Real(x) if x.is_sign_negative() => Level::Negation,
        ExprKind::Apply { .. } => Level::Application,
        _ => Level::Postfix,
    }
}

/// Returns the next tighter level, for operands on the side on which an operator does not associate.
fn tighter(level: Level) -> Level {
    match level {
        Level::Open => Level::Or,
        Level::Or => Level::And,
        Level::And => Level::Comparison,
        Level::Comparison => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Negation,
        Level::Negation => Level::Power,
        Level::Power => Level::Application,
        Level::Application | Level::Postfix => Level::Postfix,
    }
}

/// Returns whether `expr` has no parts.
fn is_atom(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Name(_) | ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Bool(_) | ExprKind::Operator(_)
    )
}

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr, slot: Slot) {
        if self.needs_parens(expr, slot) {
            self.parens(expr);
        } else {
            self.bare(expr, slot);
        }
    }

    fn needs_parens(&self, expr: &Expr, slot: Slot) -> bool {
        let level = level(expr);
        if slot.loosest == Level::Open || level == Level::Postfix {
            return false;
        }
        // Without a text, and around expressions that a reader could misjudge, a redundant pair is better.
        let kept = self.text.is_none() || self.is_parenthesised(expr);
        match level {
            Level::Open => kept || !slot.last || matches!(expr.kind, ExprKind::Let { .. }),
            Level::Application => level < slot.loosest,
            _ => level < slot.loosest || self.text.is_some() && kept,
        }
    }

    /// Returns whether the text has parentheses around `expr`.
    fn is_parenthesised(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Infix { first, .. } => first.span.start > expr.span.start,
            _ => self.paren_at(expr.span.start),
        }
    }

    fn parens(&mut self, expr: &Expr) {
        self.comments_before(expr.span.start);
        // Added parentheses hold no comments that the expression does not hold.
        let end = if self.text.is_some() && self.is_parenthesised(expr) { expr.span.end } else { 0 };
        if let ExprKind::Fun { params, result, body } = &expr.kind {
            return self.group(|p| {
                p.push("(");
                p.fun_header(params, result.as_ref(), body, p.inside_parens(expr.span.start));
                p.indented(|p| {
                    p.fun_body(body);
                    p.line_comments_before(end);
                });
                p.event(Event::SoftLine);
                p.comments_before(end);
                p.push(")");
            });
        }
        self.bracketed("(", ")", &Event::SoftLine, end, |p| p.bare(expr, Slot::OPEN));
    }

    fn bare(&mut self, expr: &Expr, slot: Slot) {
        let Span { start, end, .. } = expr.span;
        match &expr.kind {
            ExprKind::Integer(_) | ExprKind::Real(_) => self.number(expr),
            ExprKind::Bool(value) => self.atom(expr, if *value { "true" } else { "false" }),
            ExprKind::Name(name) => self.atom(expr, name.as_str()),
            ExprKind::Operator(op) => {
                self.comments_before(start);
                self.push(format!("({})", op.symbol()));
            }
            ExprKind::Error => self.atom(expr, "_"),
            ExprKind::Apply { function, args } => self.apply(expr, function, args),
            ExprKind::Fun { params, result, body } => {
                let keyword = self.inside_parens(start);
                self.comments_before(keyword);
                self.group(|p| {
                    p.fun_header(params, result.as_ref(), body, keyword);
                    p.indented(|p| p.fun_body(body));
                });
            }
            ExprKind::Let { bindings, body } => self.let_chain(bindings, body, self.inside_parens(start)),
            ExprKind::If { arms, otherwise } => self.conditional(arms, otherwise, self.inside_parens(start)),
            ExprKind::Infix { first, rest } => self.infix(first, rest, slot),
            ExprKind::Neg(of) => {
                self.comments_before(self.inside_parens(start));
                self.push("-");
                self.expr(of, Slot { loosest: Level::Power, last: slot.last });
            }
            ExprKind::Index { array, indices } => {
                // The brackets of an index in parentheses are not those after them.
                match array.kind {
                    ExprKind::Index { .. } => self.parens(array),
                    _ => self.postfix_base(array),
                }
                for index in indices {
                    self.bracketed("[", "]", &Event::SoftLine, 0, |p| p.expr(index, Slot::OPEN));
                }
            }
            ExprKind::Component { tuple, index } => {
                self.postfix_base(tuple);
                self.push(format!(".{index}"));
            }
            ExprKind::Field { record, field } => {
                self.postfix_base(record);
                self.push(format!(".{}", field.name));
            }
            ExprKind::Tuple(parts) => {
                self.comments_before(start);
                self.bracketed("(", ")", &Event::SoftLine, end, |p| {
                    p.separated(parts, |p, part| p.expr(part, Slot::OPEN));
                });
            }
            ExprKind::Array(parts) => {
                self.comments_before(start);
                self.bracketed("[", "]", &Event::SoftLine, end, |p| p.elements(parts));
            }
            ExprKind::Record(fields) => {
                self.comments_before(start);
                self.bracketed("{", "}", &Event::Line, end, |p| {
                    p.separated(fields, |p, (name, value)| {
                        p.comments_before(name.span.start);
                        p.push(format!("{} =", name.name));
                        p.group(|p| {
                            p.indented(|p| {
                                p.event(Event::Line);
                                p.expr(value, Slot::OPEN);
                            });
                        });
                    });
                });
            }
            ExprKind::Annotated { expr, ty } => {
                self.comments_before(start);
                self.bracketed("(", ")", &Event::SoftLine, end, |p| {
                    p.closed(expr);
                    p.push(" : ");
                    p.ty(ty);
                });
            }
        }
    }

    fn atom(&mut self, expr: &Expr, text: &str) {
        self.comments_before(self.inside_parens(expr.span.start));
        self.push(text);
    }

    /// Prints a number as the text spells it, otherwise in its shortest spelling.
    fn number(&mut self, expr: &Expr) {
        let written = self.number_at(expr.span).map(str::to_owned);
        let text = written.unwrap_or_else(|| match &expr.kind {
            ExprKind::Real(x) => format!("{x:?}"),
            ExprKind::Integer(n) => n.to_string(),
            _ => String::new(),
        });
        self.atom(expr, &text);
    }

    /// Prints the base of `[i]`, `.0` or `.name`; without parentheses, `1.0` and `true.0` would be parsed differently.
    fn postfix_base(&mut self, base: &Expr) {
        if matches!(base.kind, ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Bool(_)) {
            self.parens(base);
        } else {
            self.expr(base, Slot::at_least(Level::Postfix));
        }
    }

    /// Prints the elements of an array: numbers fill lines, other elements get a line each.
    fn elements(&mut self, parts: &[Expr]) {
        let fill = parts.iter().all(|part| {
            is_atom(part) || matches!(&part.kind, ExprKind::Neg(of) if is_atom(of) && !self.is_parenthesised(of))
        });
        if !fill {
            return self.separated(parts, |p, part| p.expr(part, Slot::OPEN));
        }
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                self.push(",");
                self.event(Event::Fill);
            }
            self.expr(part, Slot::OPEN);
        }
    }

    fn infix(&mut self, first: &Expr, rest: &[(Infix, Span, Expr)], slot: Slot) {
        let Some((op, ..)) = rest.first() else { return self.expr(first, slot) };
        let level = op.level();
        let (left, right) = match level {
            Level::Power => (Level::Application, Level::Negation),
            _ => (tighter(level), tighter(level)),
        };
        // Inside operands of another operator, the lines of this one are further indented.
        let nested = slot.loosest > Level::Open;
        self.group(|p| {
            p.expr(first, Slot::at_least(left));
            if nested {
                p.event(Event::Indent);
            }
            for (i, (op, span, operand)) in rest.iter().enumerate() {
                p.event(Event::Line);
                p.comments_before(span.start);
                p.push(format!("{} ", op.symbol()));
                p.expr(operand, Slot { loosest: right, last: slot.last && i + 1 == rest.len() });
            }
            if nested {
                p.event(Event::Dedent);
            }
        });
    }

    fn apply(&mut self, expr: &Expr, function: &Expr, args: &[Expr]) {
        const ARGUMENT: Slot = Slot::at_least(Level::Postfix);
        let (head, tail) = args.split_at(self.hugged_argument(expr).unwrap_or(args.len()));
        self.group(|p| {
            // Parentheses keep the shape of `(f x) y`.
            p.expr(function, ARGUMENT);
            p.indented(|p| {
                for arg in head {
                    p.event(Event::Line);
                    p.expr(arg, ARGUMENT);
                }
            });
        });
        for arg in tail {
            self.push(" ");
            self.expr(arg, ARGUMENT);
        }
    }

    /// Returns the argument that is a function, if it is the only one and all arguments after it are short: its lines
    /// are indented from the start of the application, as in `build n (fun i ->`. No comment may be outside it, because
    /// it could end a line where none may end.
    fn hugged_argument(&self, expr: &Expr) -> Option<usize> {
        let ExprKind::Apply { function, args } = &expr.kind else { return None };
        let hugged = args.iter().position(|arg| level(arg) == Level::Open)?;
        let lambda = matches!(args[hugged].kind, ExprKind::Fun { .. });
        let short_after = args[hugged + 1..].iter().all(is_atom);
        let others_closed = level(function) > Level::Open;
        let span = args[hugged].span;
        let comments =
            self.has_comment(expr.span.start, span.start) || self.has_comment(span.end, expr.span.end.max(span.end));
        (lambda && short_after && others_closed && !comments).then_some(hugged)
    }

    /// Prints `fun x y ->`, from the keyword at `keyword` on.
    fn fun_header(&mut self, params: &[Param], result: Option<&Type>, body: &Expr, keyword: u32) {
        self.comments_before(keyword);
        let arrow = self.token_start_before(body.span.start);
        self.group(|p| {
            p.push("fun");
            p.indented(|p| {
                p.params(params);
                if let Some(ty) = result {
                    p.push(" : ");
                    p.ty(ty);
                }
                p.comments_before(arrow);
                p.push(" ->");
            });
        });
    }

    /// Prints parameters, each with a preceding blank.
    fn params(&mut self, params: &[Param]) {
        for param in params {
            self.event(Event::Line);
            self.param(param);
        }
    }

    fn fun_body(&mut self, body: &Expr) {
        let stays = self.line_ends_before(body.span.start);
        self.event(if stays { Event::HardLine } else { Event::Line });
        self.expr(body, Slot::OPEN);
    }

    fn conditional(&mut self, arms: &[(Expr, Expr)], otherwise: &Expr, keyword: u32) {
        self.comments_before(keyword);
        let stays = arms
            .iter()
            .any(|(_, value)| self.line_ends_before(value.span.start) || self.line_ends_after(value.span.end))
            || self.line_ends_before(otherwise.span.start);
        let line = if stays { Event::HardLine } else { Event::Line };
        self.group(|p| {
            for (i, (condition, value)) in arms.iter().enumerate() {
                p.push(if i == 0 { "if " } else { "else if " });
                if level(condition) == Level::Open {
                    p.parens(condition);
                } else {
                    p.indented(|p| p.expr(condition, Slot::OPEN));
                }
                p.push(" then");
                p.indented(|p| {
                    p.event(line.clone());
                    p.expr(value, Slot::OPEN);
                });
                p.event(line.clone());
            }
            p.push("else");
            p.indented(|p| {
                p.event(line.clone());
                // Without parentheses it would be one of the arms.
                if matches!(otherwise.kind, ExprKind::If { .. }) {
                    p.parens(otherwise);
                } else {
                    p.expr(otherwise, Slot::OPEN);
                }
            });
        });
    }

    /// Prints an expression that must not end in `fun`, `let` or `if`.
    fn closed(&mut self, expr: &Expr) {
        if level(expr) == Level::Open {
            self.parens(expr);
        } else {
            self.expr(expr, Slot::OPEN);
        }
    }

    fn let_chain(&mut self, bindings: &[Binding], body: &Expr, keyword: u32) {
        self.comments_above(keyword);
        let keywords: Vec<u32> = bindings.iter().map(|b| self.token_start_before(b.pattern.span().start)).collect();
        let body_start = self.leftmost(body);
        let stays = bindings.iter().any(|b| self.line_ends_after(b.value.span.end))
            || keywords.iter().skip(1).any(|at| self.line_ends_before(*at))
            || self.line_ends_before(body.span.start);
        let line = if stays { Event::HardLine } else { Event::Line };
        self.group(|p| {
            for (i, binding) in bindings.iter().enumerate() {
                if i > 0 {
                    p.comments_above(keywords[i]);
                    p.blank_before(keywords[i]);
                }
                p.binding(binding);
                p.event(Event::IfFlat(" in"));
                p.event(line.clone());
            }
            p.comments_above(body_start);
            p.blank_before(body.span.start);
            // Without parentheses its bindings would continue this chain.
            if matches!(body.kind, ExprKind::Let { .. }) {
                p.parens(body);
            } else {
                p.expr(body, Slot::OPEN);
            }
        });
    }

    /// Returns the start of the first part of `expr` that is no parenthesis.
    fn leftmost(&self, expr: &Expr) -> u32 {
        let mut expr = expr;
        loop {
            expr = match &expr.kind {
                ExprKind::Infix { first: child, .. }
                | ExprKind::Apply { function: child, .. }
                | ExprKind::Index { array: child, .. }
                | ExprKind::Component { tuple: child, .. }
                | ExprKind::Field { record: child, .. } => child,
                _ => return self.inside_parens(expr.span.start),
            };
        }
    }

    /// Prints `let pattern : type = value`. Every line start in it is further indented than the `let`.
    pub(super) fn binding(&mut self, binding: &Binding) {
        self.push("let ");
        self.event(Event::Indent);
        self.pattern(&binding.pattern);
        let sugar = self.function_sugar(binding);
        if let Some((params, result, body)) = sugar {
            self.group(|p| p.params(params));
            if let Some(ty) = result {
                self.push(" : ");
                self.ty(ty);
            }
            self.comments_before(self.token_start_before(body.span.start));
            self.push(" =");
            self.value(body);
            return;
        }
        if let Some(ty) = &binding.ty {
            self.push(" : ");
            self.ty(ty);
        }
        self.comments_before(self.token_start_before(binding.value.span.start));
        self.push(" =");
        if let ExprKind::Fun { params, result, body } = &binding.value.kind {
            let keyword = self.inside_parens(binding.value.span.start);
            self.push(" ");
            self.group(|p| {
                p.fun_header(params, result.as_ref(), body, keyword);
                p.fun_body(body);
            });
            self.event(Event::Dedent);
            return;
        }
        self.value(&binding.value);
    }

    /// Returns the parameters, result and body of `let f x = e` if the text uses this form.
    fn function_sugar<'e>(&self, binding: &'e Binding) -> Option<(&'e [Param], Option<&'e Type>, &'e Expr)> {
        let ExprKind::Fun { params, result, body } = &binding.value.kind else { return None };
        let named = matches!(binding.pattern, Pattern::Name(_)) && binding.ty.is_none();
        let before = self.kind_before(binding.value.span.start);
        let sugar = named && before.is_some_and(|kind| kind != TokenKind::Equals);
        sugar.then_some((params.as_slice(), result.as_ref(), body))
    }

    /// Prints the value after the `=` of a `let`, and ends the binding's indentation.
    fn value(&mut self, value: &Expr) {
        let header = match &value.kind {
            ExprKind::Tuple(_) | ExprKind::Array(_) | ExprKind::Record(_) => Some(value.span.start),
            ExprKind::Apply { args, .. } => self.hugged_argument(value).map(|hugged| args[hugged].span.start),
            _ => None,
        };
        let comment = |header: u32| {
            let before = self.text.as_ref().and_then(|_| self.end_before(value.span.start)).unwrap_or(header);
            self.has_comment(before, header)
        };
        if header.is_some_and(|header| !comment(header)) {
            self.event(Event::Dedent);
            self.push(" ");
            self.expr(value, Slot::OPEN);
            return;
        }
        self.group(|p| {
            let stays = matches!(value.kind, ExprKind::Let { .. }) && p.line_ends_before(value.span.start);
            p.event(if stays { Event::HardLine } else { Event::Line });
            p.expr(value, Slot::OPEN);
        });
        self.event(Event::Dedent);
    }
}
