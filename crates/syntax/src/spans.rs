//! Removal of spans from trees, for comparison with `==`.

use crate::tree::{Binding, Expr, ExprKind, Ident, ItemKind, Module, Param, Pattern, Size, SizeKind, Type, TypeKind};
use chainrule_base::{FileId, Id, Span};

/// Returns the dummy span.
fn nowhere() -> Span {
    Span::new(FileId::new(0), 0, 0)
}

/// Sets every span in `module` to the dummy span.
pub fn strip_module(module: &mut Module) {
    module.span = nowhere();
    for item in &mut module.items {
        item.span = nowhere();
        match &mut item.kind {
            ItemKind::Import { path_span, .. } => *path_span = nowhere(),
            ItemKind::TypeAlias { name, ty } => {
                ident(name);
                strip_type(ty);
            }
            ItemKind::Let(b) => binding(b),
        }
    }
}

/// Sets every span in `expr` to the dummy span.
pub fn strip_expr(expr: &mut Expr) {
    expr.span = nowhere();
    match &mut expr.kind {
        ExprKind::Integer(_)
        | ExprKind::Real(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(_)
        | ExprKind::Operator(_)
        | ExprKind::Error => {}
        ExprKind::Apply { function, args } => {
            strip_expr(function);
            args.iter_mut().for_each(strip_expr);
        }
        ExprKind::Fun { params, result, body } => {
            params.iter_mut().for_each(param);
            result.iter_mut().for_each(strip_type);
            strip_expr(body);
        }
        ExprKind::Let { bindings, body } => {
            bindings.iter_mut().for_each(binding);
            strip_expr(body);
        }
        ExprKind::If { arms, otherwise } => {
            for (condition, value) in arms {
                strip_expr(condition);
                strip_expr(value);
            }
            strip_expr(otherwise);
        }
        ExprKind::Infix { first, rest } => {
            strip_expr(first);
            for (_, span, operand) in rest {
                *span = nowhere();
                strip_expr(operand);
            }
        }
        ExprKind::Neg(of) | ExprKind::Component { tuple: of, .. } => strip_expr(of),
        ExprKind::Index { array, indices } => {
            strip_expr(array);
            indices.iter_mut().for_each(strip_expr);
        }
        ExprKind::Tuple(parts) | ExprKind::Array(parts) => parts.iter_mut().for_each(strip_expr),
        ExprKind::Record(fields) => {
            for (field, value) in fields {
                ident(field);
                strip_expr(value);
            }
        }
        ExprKind::Field { record, field } => {
            strip_expr(record);
            ident(field);
        }
        ExprKind::Annotated { expr, ty } => {
            strip_expr(expr);
            strip_type(ty);
        }
    }
}

/// Sets every span in `ty` to the dummy span.
pub fn strip_type(ty: &mut Type) {
    ty.span = nowhere();
    match &mut ty.kind {
        TypeKind::Name(_) | TypeKind::Error => {}
        TypeKind::Array { size, element } => {
            size.iter_mut().for_each(strip_size);
            strip_type(element);
        }
        TypeKind::Tuple(types) => types.iter_mut().for_each(strip_type),
        TypeKind::Record(fields) => {
            for (field, ty) in fields {
                ident(field);
                strip_type(ty);
            }
        }
        TypeKind::Function(from, to) => {
            strip_type(from);
            strip_type(to);
        }
    }
}

fn strip_size(size: &mut Size) {
    size.span = nowhere();
    if let SizeKind::Infix(_, left, right) = &mut size.kind {
        strip_size(left);
        strip_size(right);
    }
}

fn ident(ident: &mut Ident) {
    ident.span = nowhere();
}

fn binding(binding: &mut Binding) {
    pattern(&mut binding.pattern);
    binding.ty.iter_mut().for_each(strip_type);
    strip_expr(&mut binding.value);
}

fn param(param: &mut Param) {
    pattern(&mut param.pattern);
    param.ty.iter_mut().for_each(strip_type);
}

fn pattern(p: &mut Pattern) {
    match p {
        Pattern::Name(name) => ident(name),
        Pattern::Wildcard(span) => *span = nowhere(),
        Pattern::Tuple(parts, span) => {
            *span = nowhere();
            parts.iter_mut().for_each(pattern);
        }
    }
}
