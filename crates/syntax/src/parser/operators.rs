//! Infix operators and unary minus, by operator precedence with an explicit stack: `a || b && c < d + e * -f ** g`
//! costs one call, not seven, and a sum of 100,000 terms one flat node.

use super::{Node, Parser, messages};
use crate::precedence::Level;
use crate::token::TokenKind;
use crate::tree::{Expr, ExprKind, Infix};
use chainrule_base::Span;

/// Returns the infix operator spelt by `kind`, including misspelt ones.
pub(super) fn infix(kind: TokenKind) -> Option<Infix> {
    Some(match kind {
        TokenKind::Plus => Infix::Add,
        TokenKind::Minus => Infix::Sub,
        TokenKind::Star => Infix::Mul,
        TokenKind::Slash => Infix::Div,
        TokenKind::Power => Infix::Pow,
        TokenKind::Less => Infix::Lt,
        TokenKind::LessEquals => Infix::Le,
        TokenKind::Greater => Infix::Gt,
        TokenKind::GreaterEquals => Infix::Ge,
        TokenKind::EqualsEquals | TokenKind::Equals => Infix::Eq,
        TokenKind::NotEquals => Infix::Ne,
        TokenKind::AndAnd | TokenKind::And => Infix::And,
        TokenKind::OrOr | TokenKind::Bar => Infix::Or,
        _ => return None,
    })
}

/// Operators that need their right operand.
enum Waiting {
    /// `-`, with its position.
    Negation(u32),
    /// Operators of one level.
    Chain { level: Level, first: Box<Expr>, rest: Vec<(Infix, Span, Expr)>, next: (Infix, Span), height: usize },
}

impl Parser<'_> {
    /// Parses any expression.
    pub(super) fn expr(&mut self) -> Node {
        if !self.enter() {
            return self.error_here();
        }
        let node = self.infix_expr();
        self.leave();
        node
    }

    fn infix_expr(&mut self) -> Node {
        let mut stack: Vec<Waiting> = Vec::new();
        loop {
            while self.kind() == TokenKind::Minus {
                let minus = self.bump();
                stack.push(Waiting::Negation(minus.start));
            }
            let operand = self.operand();
            if let Some(node) = self.after_operand(&mut stack, operand) {
                return self.after_expr(node);
            }
        }
    }

    /// Attaches `operand`; returns the whole expression if no operator follows. Separate from its caller, which is
    /// recursive, so that the caller's frame stays small.
    fn after_operand(&mut self, stack: &mut Vec<Waiting>, operand: Node) -> Option<Node> {
        let operator = infix(self.kind());
        let operand = self.reduce(stack, operand, operator);
        let Some(operator) = operator else { return Some(operand) };
        self.report_misspelt_operator();
        let token = self.bump();
        let next = (operator, self.token_span(token));
        match stack.last_mut() {
            // `reduce` left a chain of the operator's level on top only to be continued.
            Some(Waiting::Chain { level, rest, next: awaited, height, .. })
                if *level == operator.level() && *level != Level::Power =>
            {
                if *level == Level::Comparison && rest.is_empty() {
                    self.diagnostics.push(messages::chained_comparison(awaited.1, next.1));
                }
                rest.push((awaited.0, awaited.1, operand.expr));
                *height = (*height).max(operand.height);
                *awaited = next;
            }
            _ => stack.push(Waiting::Chain {
                level: operator.level(),
                first: Box::new(operand.expr),
                rest: Vec::new(),
                next,
                height: operand.height,
            }),
        }
        None
    }

    /// Completes the operators that bind tighter than `operator` (all, if there is none) with `operand`.
    fn reduce(&mut self, stack: &mut Vec<Waiting>, mut operand: Node, operator: Option<Infix>) -> Node {
        let level = operator.map(Infix::level);
        loop {
            let complete = match stack.last() {
                None => return operand,
                Some(Waiting::Negation(_)) => level.is_none_or(|l| l < Level::Negation),
                Some(Waiting::Chain { level: chain, .. }) => level.is_none_or(|l| l < *chain),
            };
            if !complete {
                return operand;
            }
            operand = match stack.pop() {
                None => return operand,
                Some(Waiting::Negation(start)) => {
                    let span = self.span(start, operand.expr.span.end);
                    self.node(ExprKind::Neg(Box::new(operand.expr)), span, operand.height)
                }
                Some(Waiting::Chain { first, mut rest, next, height, .. }) => {
                    let span = first.span.to(operand.expr.span);
                    rest.push((next.0, next.1, operand.expr));
                    self.node(ExprKind::Infix { first, rest }, span, height.max(operand.height))
                }
            };
        }
    }
}
