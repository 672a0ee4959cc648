//! Types, sizes and patterns.

use super::Printer;
use super::layout::Event;
use crate::precedence::Level;
use crate::tree::{Param, Pattern, Size, SizeKind, Type, TypeKind};

impl Printer<'_> {
    pub(super) fn ty(&mut self, ty: &Type) {
        self.comments_before(ty.span.start);
        let end = ty.span.end;
        match &ty.kind {
            TypeKind::Name(name) => self.push(name.as_str()),
            TypeKind::Array { size, element } => {
                self.push("[");
                if let Some(size) = size {
                    self.size(size, Level::Sum);
                }
                self.push("]");
                if matches!(element.kind, TypeKind::Function(..)) {
                    self.paren_type(element);
                } else {
                    self.ty(element);
                }
            }
            TypeKind::Tuple(types) => self.bracketed("(", ")", &Event::SoftLine, end, |p| {
                p.separated(types, Self::ty);
            }),
            TypeKind::Record(fields) => self.bracketed("{", "}", &Event::Line, end, |p| {
                p.separated(fields, |p, (name, ty)| {
                    p.comments_before(name.span.start);
                    p.push(format!("{} : ", name.name));
                    p.ty(ty);
                });
            }),
            TypeKind::Function(from, to) => self.group(|p| {
                if matches!(from.kind, TypeKind::Function(..)) {
                    p.paren_type(from);
                } else {
                    p.ty(from);
                }
                p.indented(|p| {
                    p.event(Event::Line);
                    p.push("=> ");
                    p.ty(to);
                });
            }),
            TypeKind::Error => self.push("_"),
        }
    }

    fn paren_type(&mut self, ty: &Type) {
        self.comments_before(ty.span.start);
        self.push("(");
        self.ty(ty);
        self.push(")");
    }

    fn size(&mut self, size: &Size, loosest: Level) {
        match &size.kind {
            SizeKind::Number(n) => self.push(n.to_string()),
            SizeKind::Name(name) => self.push(name.as_str()),
            SizeKind::Infix(op, left, right) => {
                let level = op.level();
                if level < loosest {
                    self.push("(");
                }
                self.size(left, level);
                self.push(format!(" {} ", op.symbol()));
                // A right operand of the same level was in parentheses.
                self.size(right, if level == Level::Sum { Level::Product } else { Level::Postfix });
                if level < loosest {
                    self.push(")");
                }
            }
        }
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern) {
        self.comments_before(pattern.span().start);
        match pattern {
            Pattern::Name(ident) => self.push(ident.name.as_str()),
            Pattern::Wildcard(_) => self.push("_"),
            Pattern::Tuple(parts, span) => self.bracketed("(", ")", &Event::SoftLine, span.end, |p| {
                p.separated(parts, Self::pattern);
            }),
        }
    }

    pub(super) fn param(&mut self, param: &Param) {
        let Some(ty) = &param.ty else { return self.pattern(&param.pattern) };
        self.comments_before(param.pattern.span().start);
        self.push("(");
        self.pattern(&param.pattern);
        self.push(" : ");
        self.ty(ty);
        self.push(")");
    }

    /// Prints items with `,` and a possible line end between them.
    pub(super) fn separated<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.push(",");
                self.event(Event::Line);
            }
            print(self, item);
        }
    }
}
