//! Random trees, for tests and fuzzers.
//!
//! In: random bytes. Out: trees that the parser can make, except for spans: printing and parsing a tree returns the
//! same tree. Names are random and nothing is well-typed. Trees end when the bytes run out.

use crate::tree::{
    Binding, Expr, ExprKind, Ident, Infix, Item, ItemKind, Module, Param, Pattern, Size, SizeKind, Type, TypeKind,
};
use arbitrary::{Result, Unstructured};
use chainrule_base::{FileId, Id, Name, Span};

/// Maximum nesting of generated trees.
const MAX_HEIGHT: usize = 12;

/// Maximum number of optional parts.
const MAX_MORE: usize = 3;

const NAMES: &[&str] = &["x", "y'", "build", "i", "vectorMap2", "_t", "x₁", "a_long_name_for_wide_lines", "rec", "fn"];

const TYPES: &[&str] = &["Double", "Index", "Matrix", "T", "CameraWithALongName"];

const OPERATORS: &[Infix] = &[
    Infix::Add,
    Infix::Sub,
    Infix::Mul,
    Infix::Div,
    Infix::Pow,
    Infix::Lt,
    Infix::Le,
    Infix::Gt,
    Infix::Ge,
    Infix::Eq,
    Infix::Ne,
    Infix::And,
    Infix::Or,
];

fn nowhere() -> Span {
    Span::new(FileId::new(0), 0, 0)
}

/// Returns a random file.
///
/// # Errors
/// Never fails when bytes run out.
pub fn module(u: &mut Unstructured) -> Result<Module> {
    Ok(Module { items: several(u, 0, item)?, span: nowhere() })
}

fn item(u: &mut Unstructured) -> Result<Item> {
    let kind = match u.int_in_range(0..=7)? {
        0 => {
            let library = u.arbitrary()?;
            let path = if library { "linalg" } else { "a b/c.ft" };
            ItemKind::Import { path: path.to_owned(), library, path_span: nowhere() }
        }
        1 => ItemKind::TypeAlias { name: ident(u)?, ty: ty(u, MAX_HEIGHT)? },
        _ => ItemKind::Let(binding(u, MAX_HEIGHT)?),
    };
    let docs = several(u, 0, |u| Ok((*u.choose(&["What it is.", "", "  indented"])?).to_owned()))?;
    Ok(Item { kind, span: nowhere(), docs })
}

/// Returns a random expression.
///
/// # Errors
/// Never fails when bytes run out.
pub fn expression(u: &mut Unstructured) -> Result<Expr> {
    expr(u, MAX_HEIGHT)
}

fn expr(u: &mut Unstructured, height: usize) -> Result<Expr> {
    let kind = if height <= 1 || u.is_empty() { leaf(u)? } else { branch(u, height - 1)? };
    Ok(Expr { kind, span: nowhere() })
}

fn leaf(u: &mut Unstructured) -> Result<ExprKind> {
    Ok(match u.int_in_range(0..=9)? {
        0 => ExprKind::Integer(i64::from(u.arbitrary::<u16>()?)),
        1 => ExprKind::Integer(u.int_in_range(0..=i64::MAX)?),
        2 => ExprKind::Real(f64::from(u.arbitrary::<u16>()?) / 16.0),
        3 => {
            let x = f64::from_bits(u.arbitrary()?).abs();
            ExprKind::Real(if x.is_finite() { x } else { 0.5 })
        }
        4 => ExprKind::Bool(u.arbitrary()?),
        5 => ExprKind::Operator(*u.choose(OPERATORS)?),
        _ => ExprKind::Name(name(u, NAMES)?),
    })
}

fn branch(u: &mut Unstructured, height: usize) -> Result<ExprKind> {
    let boxed = |u: &mut Unstructured| Ok(Box::new(expr(u, height)?));
    Ok(match u.int_in_range(0..=15)? {
        0 | 1 => {
            let mut function = boxed(u)?;
            // The parser reports an applied number.
            if matches!(function.kind, ExprKind::Integer(_) | ExprKind::Real(_) | ExprKind::Bool(_)) {
                function.kind = ExprKind::Name(name(u, NAMES)?);
            }
            ExprKind::Apply { function, args: several(u, 1, |u| expr(u, height))? }
        }
        2 | 3 => {
            let params = several(u, 1, |u| param(u, height))?;
            let result = if u.ratio(1, 4)? { Some(ty(u, height)?) } else { None };
            ExprKind::Fun { params, result, body: boxed(u)? }
        }
        4 | 5 => ExprKind::Let { bindings: several(u, 1, |u| binding(u, height))?, body: boxed(u)? },
        6 => {
            let arms = several(u, 1, |u| Ok((expr(u, height)?, expr(u, height)?)))?;
            ExprKind::If { arms, otherwise: boxed(u)? }
        }
        7 | 8 => {
            let first = boxed(u)?;
            let op = *u.choose(OPERATORS)?;
            let alone = op == Infix::Pow || op.level() == Infix::Eq.level();
            let mut rest = vec![(op, nowhere(), expr(u, height)?)];
            while !alone && rest.len() <= MAX_MORE && u.ratio(1, 2)? {
                let same: Vec<Infix> = OPERATORS.iter().copied().filter(|o| o.level() == op.level()).collect();
                rest.push((*u.choose(&same)?, nowhere(), expr(u, height)?));
            }
            ExprKind::Infix { first, rest }
        }
        9 => ExprKind::Neg(boxed(u)?),
        10 => ExprKind::Index { array: boxed(u)?, indices: several(u, 1, |u| expr(u, height))? },
        11 => ExprKind::Tuple(several(u, 2, |u| expr(u, height))?),
        12 => ExprKind::Component { tuple: boxed(u)?, index: u.int_in_range(0..=11)? },
        13 => ExprKind::Record(several(u, 1, |u| Ok((ident(u)?, expr(u, height)?)))?),
        14 if u.arbitrary()? => ExprKind::Field { record: boxed(u)?, field: ident(u)? },
        14 => ExprKind::Array(several(u, 1, |u| expr(u, height))?),
        _ => ExprKind::Annotated { expr: boxed(u)?, ty: ty(u, height)? },
    })
}

fn binding(u: &mut Unstructured, height: usize) -> Result<Binding> {
    let ty = if u.ratio(1, 4)? { Some(ty(u, height)?) } else { None };
    Ok(Binding { pattern: pattern(u, height)?, ty, value: expr(u, height)? })
}

fn param(u: &mut Unstructured, height: usize) -> Result<Param> {
    let ty = if u.ratio(1, 3)? { Some(ty(u, height)?) } else { None };
    Ok(Param { pattern: pattern(u, height)?, ty })
}

fn pattern(u: &mut Unstructured, height: usize) -> Result<Pattern> {
    Ok(match u.int_in_range(0..=7)? {
        0 => Pattern::Wildcard(nowhere()),
        1 if height > 1 && !u.is_empty() => Pattern::Tuple(several(u, 2, |u| pattern(u, height - 1))?, nowhere()),
        _ => Pattern::Name(ident(u)?),
    })
}

/// Returns a random type of nesting at most `height`.
///
/// # Errors
/// Never fails when bytes run out.
pub fn ty(u: &mut Unstructured, height: usize) -> Result<Type> {
    let leaf = height <= 1 || u.is_empty();
    let kind = match u.int_in_range(0..=7)? {
        0 | 1 if !leaf => {
            let size = if u.ratio(3, 4)? { Some(size(u, height - 1)?) } else { None };
            TypeKind::Array { size, element: Box::new(ty(u, height - 1)?) }
        }
        2 if !leaf => TypeKind::Tuple(several(u, 2, |u| ty(u, height - 1))?),
        3 if !leaf => TypeKind::Record(several(u, 1, |u| Ok((ident(u)?, ty(u, height - 1)?)))?),
        4 if !leaf => TypeKind::Function(Box::new(ty(u, height - 1)?), Box::new(ty(u, height - 1)?)),
        _ => TypeKind::Name(name(u, TYPES)?),
    };
    Ok(Type { kind, span: nowhere() })
}

fn size(u: &mut Unstructured, height: usize) -> Result<Size> {
    let kind = match u.int_in_range(0..=3)? {
        0 if height > 1 && !u.is_empty() => {
            let op = *u.choose(&[Infix::Add, Infix::Sub, Infix::Mul])?;
            SizeKind::Infix(op, Box::new(size(u, height - 1)?), Box::new(size(u, height - 1)?))
        }
        1 => SizeKind::Number(i64::from(u.arbitrary::<u8>()?)),
        _ => SizeKind::Name(name(u, NAMES)?),
    };
    Ok(Size { kind, span: nowhere() })
}

fn name(u: &mut Unstructured, from: &[&str]) -> Result<Name> {
    Ok(Name::new(u.choose(from)?))
}

fn ident(u: &mut Unstructured) -> Result<Ident> {
    Ok(Ident { name: name(u, &NAMES[..NAMES.len() - 2])?, span: nowhere() })
}

/// Returns at least `least` results of `one`, and possibly a few more.
fn several<T>(
    u: &mut Unstructured,
    least: usize,
    mut one: impl FnMut(&mut Unstructured) -> Result<T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    while all.len() < least || all.len() < least + MAX_MORE && !u.is_empty() && u.ratio(1, 3)? {
        all.push(one(u)?);
    }
    Ok(all)
}
