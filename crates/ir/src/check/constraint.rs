//! Constraints on types that are not known yet.
//!
//! A constraint waits for its variables and is examined again when one is bound. Constraints that remain when a
//! definition is generalised become part of the definition's type (a qualified type) and are added again at each use.

use super::table::{Class, Literal, Mismatch, Node, Table, TyId};
use chainrule_base::{Name, Span};

/// Condition of a constraint.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// `result` is the type of `a + b`: `Int` for two `Int`s, else `Double`.
    Arith {
        /// The first operand.
        a: TyId,
        /// The second operand.
        b: TyId,
        /// The sum.
        result: TyId,
    },
    /// `a < b` is valid: both are numbers.
    Compare {
        /// The first operand.
        a: TyId,
        /// The second operand.
        b: TyId,
    },
    /// `tuple` has at least `index + 1` components, and that one is `result`.
    Component {
        /// The tuple.
        tuple: TyId,
        /// Index of the component.
        index: usize,
        /// The component.
        result: TyId,
    },
    /// `record` has the field.
    Field {
        /// The record.
        record: TyId,
        /// The name of the field.
        field: Name,
        /// The field.
        result: TyId,
    },
    /// `dual` is the type of dual numbers over `of`.
    Dual {
        /// A type.
        of: TyId,
        /// DT of it.
        dual: TyId,
    },
    /// `result` is the type of `deriv e x`.
    Deriv {
        /// The type of `x`.
        by: TyId,
        /// The type of `e`.
        of: TyId,
        /// The type of the whole.
        result: TyId,
    },
    /// `ty` is differentiable: it only contains `Double`s.
    Real {
        /// The type.
        ty: TyId,
    },
}

/// A constraint with its origin.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Constraint.
    pub constraint: Constraint,
    /// Span of its origin.
    pub span: Span,
    /// Operator or function that requires it.
    pub by: Name,
}

/// Result of examining a constraint.
#[derive(Debug)]
pub enum Outcome {
    /// It holds permanently.
    Solved,
    /// It determines nothing more until one of these is bound.
    Waits(Vec<TyId>),
    /// It cannot hold.
    Fails(Failure),
}

/// Reason why a constraint cannot hold.
#[derive(Debug)]
pub enum Failure {
    /// Two types that should be equal are not.
    Unequal(TyId, TyId, Mismatch),
    /// Not a tuple, or a shorter one.
    NoComponent(TyId, usize),
    /// Not a record, or without that field.
    NoField(TyId, Name),
    /// A derivative by a value that is no real number.
    ByOther(TyId),
    /// A derivative of a value without real numbers.
    OfOther(TyId),
}

impl Constraint {
    /// Returns the types in the constraint.
    #[must_use]
    pub fn types(&self) -> Vec<TyId> {
        match self {
            Self::Arith { a, b, result } => vec![*a, *b, *result],
            Self::Compare { a, b } => vec![*a, *b],
            Self::Component { tuple, result, .. } => vec![*tuple, *result],
            Self::Field { record, result, .. } => vec![*record, *result],
            Self::Dual { of, dual } => vec![*of, *dual],
            Self::Deriv { by, of, result } => vec![*by, *of, *result],
            Self::Real { ty } => vec![*ty],
        }
    }

    /// Returns the constraint with other types.
    pub fn try_map<E>(&self, mut by: impl FnMut(TyId) -> Result<TyId, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Arith { a, b, result } => Self::Arith { a: by(*a)?, b: by(*b)?, result: by(*result)? },
            Self::Compare { a, b } => Self::Compare { a: by(*a)?, b: by(*b)? },
            Self::Component { tuple, index, result } => {
                Self::Component { tuple: by(*tuple)?, index: *index, result: by(*result)? }
            }
            Self::Field { record, field, result } => {
                Self::Field { record: by(*record)?, field: field.clone(), result: by(*result)? }
            }
            Self::Dual { of, dual } => Self::Dual { of: by(*of)?, dual: by(*dual)? },
            Self::Deriv { by: x, of, result } => Self::Deriv { by: by(*x)?, of: by(*of)?, result: by(*result)? },
            Self::Real { ty } => Self::Real { ty: by(*ty)? },
        })
    }

    /// Examines the constraint: binds the variables that it determines.
    pub fn solve(&self, table: &mut Table) -> Outcome {
        let outcome = match self {
            Self::Arith { a, b, result } => arith(table, *a, *b, *result),
            Self::Compare { a, b } => compare(table, *a, *b),
            Self::Component { tuple, index, result } => component(table, *tuple, *index, *result),
            Self::Field { record, field, result } => field_of(table, *record, field, *result),
            Self::Dual { of, dual } => {
                // A differentiated number is real.
                let number = table.as_var(*of).is_some_and(|v| v.class == Class::Num);
                let double = table.double;
                if number && table.unify(*of, double).is_err() {
                    return Outcome::Fails(Failure::OfOther(*of));
                }
                dual_type(table, *of, 0).and_then(|d| match d {
                    Some(d) => equal(table, *dual, d),
                    None => Ok(Outcome::Waits(vec![*of])),
                })
            }
            Self::Deriv { by, of, result } => deriv(table, *by, *of, *result, 0),
            Self::Real { ty } => real(table, *ty, 0),
        };
        outcome.unwrap_or_else(Outcome::Fails)
    }
}

/// Makes two types equal.
fn equal(table: &mut Table, a: TyId, b: TyId) -> Result<Outcome, Failure> {
    match table.unify(a, b) {
        Ok(()) => Ok(Outcome::Solved),
        Err(why) => Err(Failure::Unequal(a, b, why)),
    }
}

/// Returns whether `ty` is the type of number literals only.
fn is_pure_literal(table: &Table, ty: TyId) -> bool {
    table.as_var(ty).is_some_and(|v| v.literal == Literal::Pure)
}

/// Gives a number literal the type `other`, which does not change.
fn adopt(table: &mut Table, literal: TyId, other: TyId) -> Result<(), Failure> {
    let flag = table.as_var(other).map(|v| v.literal);
    if let (Some(flag), Some(variable)) = (flag, table.as_var_mut(literal)) {
        variable.literal = flag;
    }
    equal(table, literal, other).map(|_| ())
}

fn arith(table: &mut Table, a: TyId, b: TyId, result: TyId) -> Result<Outcome, Failure> {
    for ty in [a, b, result] {
        if let Err(why) = table.restrict(ty, Class::Num) {
            return Err(Failure::Unequal(ty, table.double, why));
        }
    }
    let (double, int) = (table.double, table.int);
    if matches!(table.node(a), Node::Error) || matches!(table.node(b), Node::Error) {
        return Ok(Outcome::Solved);
    }
    if is_pure_literal(table, a) && is_pure_literal(table, b) {
        adopt(table, a, b)?;
        adopt(table, result, b)?;
        return Ok(Outcome::Solved);
    }
    if is_pure_literal(table, a) {
        adopt(table, a, b)?;
        return equal(table, result, b);
    }
    if is_pure_literal(table, b) {
        adopt(table, b, a)?;
        return equal(table, result, a);
    }
    if table.is(a, double) || table.is(b, double) {
        return equal(table, result, double);
    }
    if table.is(a, b) {
        return equal(table, result, a);
    }
    if table.is(result, int) {
        equal(table, a, int)?;
        return equal(table, b, int);
    }
    if table.is(result, double) {
        // One of them is `Double`.
        if table.is(a, int) {
            return equal(table, b, double);
        }
        if table.is(b, int) {
            return equal(table, a, double);
        }
    }
    Ok(Outcome::Waits(vec![a, b, result]))
}

fn compare(table: &mut Table, a: TyId, b: TyId) -> Result<Outcome, Failure> {
    for ty in [a, b] {
        if let Err(why) = table.restrict(ty, Class::Num) {
            return Err(Failure::Unequal(ty, table.double, why));
        }
    }
    if is_pure_literal(table, a) {
        adopt(table, a, b)?;
        return Ok(Outcome::Solved);
    }
    if is_pure_literal(table, b) {
        adopt(table, b, a)?;
        return Ok(Outcome::Solved);
    }
    let waits = [a, b].into_iter().filter(|ty| table.as_var(*ty).is_some()).collect::<Vec<_>>();
    Ok(if waits.is_empty() || table.is(a, b) { Outcome::Solved } else { Outcome::Waits(waits) })
}

fn component(table: &mut Table, tuple: TyId, index: usize, result: TyId) -> Result<Outcome, Failure> {
    match table.node(tuple).clone() {
        Node::Var(_) => Ok(Outcome::Waits(vec![tuple])),
        Node::Tuple(fields, _) if index < fields.len() => equal(table, result, fields[index]),
        Node::Error => equal(table, result, tuple),
        _ => Err(Failure::NoComponent(tuple, index)),
    }
}

fn field_of(table: &mut Table, record: TyId, field: &Name, result: TyId) -> Result<Outcome, Failure> {
    match table.node(record).clone() {
        Node::Var(_) => Ok(Outcome::Waits(vec![record])),
        Node::Tuple(fields, Some(names)) => match names.iter().position(|n| n == field) {
            Some(k) => equal(table, result, fields[k]),
            None => Err(Failure::NoField(record, field.clone())),
        },
        Node::Error => equal(table, result, record),
        _ => Err(Failure::NoField(record, field.clone())),
    }
}

/// Returns DT of `ty`; `None` while it is not known.
fn dual_type(table: &mut Table, ty: TyId, depth: u32) -> Result<Option<TyId>, Failure> {
    if depth > 50 {
        return Err(Failure::OfOther(ty));
    }
    Ok(match table.node(ty).clone() {
        Node::Var(_) | Node::Link(_) => None,
        Node::Double => Some(table.tuple(vec![ty, ty], None)),
        Node::Int if depth == 0 => return Err(Failure::OfOther(ty)),
        Node::Bool if depth == 0 => return Err(Failure::OfOther(ty)),
        Node::Int | Node::Bool | Node::Error => Some(ty),
        Node::Array(element) => dual_type(table, element, depth + 1)?.map(|d| table.array(d)),
        Node::Tuple(fields, names) => {
            let mut duals = Vec::with_capacity(fields.len());
            for field in fields.iter() {
                match dual_type(table, *field, depth + 1)? {
                    Some(dual) => duals.push(dual),
                    None => return Ok(None),
                }
            }
            Some(table.tuple(duals, names))
        }
        Node::Fun(..) => return Err(Failure::OfOther(ty)),
    })
}

/// Determines the type of `deriv e x`: the shape of `x` with DT of the type of `e` at each `Double`.
fn deriv(table: &mut Table, by: TyId, of: TyId, result: TyId, depth: u32) -> Result<Outcome, Failure> {
    let shape = |table: &mut Table| -> Result<Option<TyId>, Failure> {
        // Differentiated numbers are real.
        for ty in [by, of] {
            let double = table.double;
            if table.as_var(ty).is_some_and(|v| v.class == Class::Num) {
                equal(table, ty, double)?;
            }
        }
        let Some(dual) = dual_type(table, of, 0)? else { return Ok(None) };
        shape_of(table, by, dual, depth)
    };
    match shape(table)? {
        Some(ty) => equal(table, result, ty),
        None => {
            // Part of the result may be known: by a single number the result is the dual itself.
            Ok(Outcome::Waits(table.vars_of(by).into_iter().chain(table.vars_of(of)).flatten().collect()))
        }
    }
}

fn shape_of(table: &mut Table, by: TyId, dual: TyId, depth: u32) -> Result<Option<TyId>, Failure> {
    if depth > 50 {
        return Err(Failure::ByOther(by));
    }
    Ok(match table.node(by).clone() {
        Node::Var(v) if v.class == Class::Num => {
            let double = table.double;
            equal(table, by, double)?;
            Some(dual)
        }
        Node::Var(_) | Node::Link(_) => None,
        Node::Double => Some(dual),
        Node::Array(element) => shape_of(table, element, dual, depth + 1)?.map(|e| table.array(e)),
        Node::Tuple(fields, names) => {
            let mut shapes = Vec::with_capacity(fields.len());
            for field in fields.iter() {
                match shape_of(table, *field, dual, depth + 1)? {
                    Some(shape) => shapes.push(shape),
                    None => return Ok(None),
                }
            }
            Some(table.tuple(shapes, names))
        }
        Node::Error => Some(by),
        Node::Int | Node::Bool | Node::Fun(..) => return Err(Failure::ByOther(by)),
    })
}

/// Requires that `ty` only contains `Double`s.
fn real(table: &mut Table, ty: TyId, depth: u32) -> Result<Outcome, Failure> {
    if depth > 50 {
        return Err(Failure::ByOther(ty));
    }
    match table.node(ty).clone() {
        Node::Var(v) if v.class == Class::Num => {
            let double = table.double;
            equal(table, ty, double)
        }
        Node::Var(_) => Ok(Outcome::Waits(vec![ty])),
        Node::Double | Node::Error | Node::Link(_) => Ok(Outcome::Solved),
        Node::Array(element) => real(table, element, depth + 1),
        Node::Tuple(fields, _) => {
            let mut waits = Vec::new();
            for field in fields.iter() {
                if let Outcome::Waits(vars) = real(table, *field, depth + 1)? {
                    waits.extend(vars);
                }
            }
            Ok(if waits.is_empty() { Outcome::Solved } else { Outcome::Waits(waits) })
        }
        Node::Int | Node::Bool | Node::Fun(..) => Err(Failure::ByOther(ty)),
    }
}
