//! Built-in functions, with their types.
//!
//! Scalar functions are the rows of the operator table; this module does not list them.

use super::constraint::Constraint;
use super::table::{Class, Literal, Table, TyId};
use chainrule_ops::{Op, Type as Kind};
use chainrule_syntax::tree::Infix;

/// A built-in function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Builtin {
    /// `build n f`
    Build,
    /// `ifold f z n`
    Fold,
    /// `scan f z n`
    Scan,
    /// `sum n f`
    Sum,
    /// `while condition step init limit`
    While,
    /// `get a i`
    Get,
    /// `length a`
    Length,
    /// `pair a b`
    Pair,
    /// `fst p`
    Fst,
    /// `snd p`
    Snd,
    /// `real i`
    Real,
    Truncate,
    /// A row of the operator table.
    Op(Op),
    /// An infix operator as a function.
    Infix(Infix),
    /// `diff f x`: figure 5 and table 2 of the paper.
    Diff,
    /// `vdiff f x`
    Vdiff,
    /// `mdiff f x`
    Mdiff,
    /// `grad f v`
    Grad,
    /// `jacob f v`
    Jacob,
    /// `mgrad f m`
    Mgrad,
    /// `derivative f x`
    Derivative,
    /// `gradient f v`
    Gradient,
    /// `jacobian f v`
    Jacobian,
    /// `jvp f x v`
    Jvp,
    /// `hessian f v`
    Hessian,
    /// `hessianDiagonal f v`
    HessianDiagonal,
    /// `hvp f v d`
    Hvp,
    /// `vjp f x w`
    Vjp,
    /// `constant x`
    Constant,
    /// `withDerivative f forward reverse x`
    WithDerivative,
}

/// Names with a special syntax: they must be fully applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `deriv e x`
    Deriv,
    /// `forward f (a, a_tan) ...`
    Forward,
}

/// Names, functions, and numbers of arguments.
const NAMED: &[(&str, Builtin, usize)] = &[
    ("build", Builtin::Build, 2),
    ("ifold", Builtin::Fold, 3),
    ("scan", Builtin::Scan, 3),
    ("sum", Builtin::Sum, 2),
    ("while", Builtin::While, 4),
    ("get", Builtin::Get, 2),
    ("length", Builtin::Length, 1),
    ("pair", Builtin::Pair, 2),
    ("fst", Builtin::Fst, 1),
    ("snd", Builtin::Snd, 1),
    ("real", Builtin::Real, 1),
    ("truncate", Builtin::Truncate, 1),
    ("diff", Builtin::Diff, 2),
    ("vdiff", Builtin::Vdiff, 2),
    ("mdiff", Builtin::Mdiff, 2),
    ("grad", Builtin::Grad, 2),
    ("jacob", Builtin::Jacob, 2),
    ("mgrad", Builtin::Mgrad, 2),
    ("derivative", Builtin::Derivative, 2),
    ("gradient", Builtin::Gradient, 2),
    ("jacobian", Builtin::Jacobian, 2),
    ("jvp", Builtin::Jvp, 3),
    ("hessian", Builtin::Hessian, 2),
    ("hessianDiagonal", Builtin::HessianDiagonal, 2),
    ("hvp", Builtin::Hvp, 3),
    ("vjp", Builtin::Vjp, 3),
    ("constant", Builtin::Constant, 1),
    ("withDerivative", Builtin::WithDerivative, 4),
];

/// Returns all names with a built-in meaning, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMED
        .iter()
        .map(|row| row.0)
        .chain(Op::all().map(Op::name))
        .chain(CONSTANTS.iter().map(|row| row.0))
        .chain(["deriv", "forward"])
}

/// Names of numbers.
const CONSTANTS: &[(&str, f64)] = &[("pi", std::f64::consts::PI), ("inf", f64::INFINITY), ("nan", f64::NAN)];

/// Returns the number called `name`.
#[must_use]
pub fn constant(name: &str) -> Option<f64> {
    CONSTANTS.iter().find(|row| row.0 == name).map(|row| row.1)
}

impl Builtin {
    /// Returns the function called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let named = NAMED.iter().find(|row| row.0 == name).map(|row| row.1);
        named.or_else(|| Op::by_name(name).map(Self::Op))
    }

    /// Returns its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Op(op) => op.name(),
            Self::Infix(infix) => symbol(infix),
            _ => NAMED.iter().find(|row| row.1 == self).map_or("?", |row| row.0),
        }
    }

    /// Returns the number of arguments.
    #[must_use]
    pub fn arity(self) -> usize {
        match self {
            Self::Op(op) => op.arity(),
            Self::Infix(_) => 2,
            _ => NAMED.iter().find(|row| row.1 == self).map_or(1, |row| row.2),
        }
    }
}

impl Form {
    /// Returns the form called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "deriv" => Some(Self::Deriv),
            "forward" => Some(Self::Forward),
            _ => None,
        }
    }

    /// Returns its syntax.
    #[must_use]
    pub fn usage(self) -> &'static str {
        match self {
            Self::Deriv => "deriv e x",
            Self::Forward => "forward f (x, x_tan)",
        }
    }
}

/// Returns the spelling of an operator.
#[must_use]
pub fn symbol(infix: Infix) -> &'static str {
    match infix {
        Infix::Add => "+",
        Infix::Sub => "-",
        Infix::Mul => "*",
        Infix::Div => "/",
        Infix::Pow => "**",
        Infix::Lt => "<",
        Infix::Le => "<=",
        Infix::Gt => ">",
        Infix::Ge => ">=",
        Infix::Eq => "==",
        Infix::Ne => "<>",
        Infix::And => "&&",
        Infix::Or => "||",
    }
}

/// Returns the row of an infix operator. `>`, `>=` swap the operands of `<`, `<=`, and `<>` negates `==`; their types
/// are the same.
#[must_use]
pub fn infix_op(infix: Infix) -> Op {
    match infix {
        Infix::Add => Op::Add,
        Infix::Sub => Op::Sub,
        Infix::Mul => Op::Mul,
        Infix::Div => Op::Div,
        Infix::Pow => Op::Pow,
        Infix::Lt | Infix::Gt => Op::Lt,
        Infix::Le | Infix::Ge => Op::Le,
        Infix::Eq | Infix::Ne => Op::Eq,
        Infix::And => Op::And,
        Infix::Or => Op::Or,
    }
}

/// Returns the types of the arguments and the result of `op`, and their constraint.
///
/// Numbers: if the operator has an integer value, `Int`s yield an `Int`; everything else converts to `Double`.
pub fn op_type(table: &mut Table, op: Op) -> (Vec<TyId>, TyId, Option<Constraint>) {
    let row = op.row();
    let args: Vec<TyId> = row
        .args
        .iter()
        .map(|kind| if *kind == Kind::Num { table.var_of(Class::Num, Literal::Open) } else { table.bool })
        .collect();
    match (row.result, row.int.is_some(), args.as_slice()) {
        (Kind::Bool, _, [a, b]) if row.args == [Kind::Num, Kind::Num] => {
            let constraint = Constraint::Compare { a: *a, b: *b };
            (args, table.bool, Some(constraint))
        }
        (Kind::Bool, ..) => (args, table.bool, None),
        (Kind::Num, true, [a]) => {
            let a = *a;
            (args, a, None)
        }
        (Kind::Num, true, [a, b]) => {
            let result = table.var(Class::Num);
            let constraint = Constraint::Arith { a: *a, b: *b, result };
            (args, result, Some(constraint))
        }
        (Kind::Num, ..) => (args, table.double, None),
    }
}

/// Returns the type of `builtin` at one use, and its constraint.
pub fn type_of(table: &mut Table, builtin: Builtin) -> (TyId, Option<Constraint>) {
    let (double, int) = (table.double, table.int);
    let no_constraint = |table: &mut Table, params: &[TyId], result: TyId| (table.funs(params, result), None);
    match builtin {
        Builtin::Op(op) => {
            let (args, result, constraint) = op_type(table, op);
            (table.funs(&args, result), constraint)
        }
        Builtin::Infix(infix) => {
            let (args, result, constraint) = op_type(table, infix_op(infix));
            (table.funs(&args, result), constraint)
        }
        Builtin::Build => {
            let a = table.var(Class::Data);
            let (f, result) = (table.fun(int, a), table.array(a));
            no_constraint(table, &[int, f], result)
        }
        Builtin::Fold => {
            let s = table.var_of(Class::Data, Literal::Open);
            let f = table.funs(&[s, int], s);
            no_constraint(table, &[f, s, int], s)
        }
        Builtin::Scan => {
            let (s, a) = (table.var_of(Class::Data, Literal::Open), table.var(Class::Data));
            let step = table.tuple(vec![s, a], None);
            let f = table.funs(&[s, int], step);
            let all = table.array(a);
            let result = table.tuple(vec![s, all], None);
            no_constraint(table, &[f, s, int], result)
        }
        Builtin::Sum => {
            // Terms are numbers; elaboration converts them.
            let a = table.var(Class::Num);
            let f = table.fun(int, a);
            no_constraint(table, &[int, f], double)
        }
        Builtin::While => {
            let s = table.var_of(Class::Data, Literal::Open);
            let (condition, step) = (table.fun(s, table.bool), table.fun(s, s));
            no_constraint(table, &[condition, step, s, int], s)
        }
        Builtin::Get => {
            let a = table.var(Class::Data);
            let array = table.array(a);
            no_constraint(table, &[array, int], a)
        }
        Builtin::Length => {
            let a = table.var(Class::Data);
            let array = table.array(a);
            no_constraint(table, &[array], int)
        }
        Builtin::Pair => {
            let (a, b) = (table.var(Class::Data), table.var(Class::Data));
            let pair = table.tuple(vec![a, b], None);
            no_constraint(table, &[a, b], pair)
        }
        Builtin::Fst | Builtin::Snd => {
            let (a, b) = (table.var(Class::Data), table.var(Class::Data));
            let pair = table.tuple(vec![a, b], None);
            no_constraint(table, &[pair], if builtin == Builtin::Fst { a } else { b })
        }
        Builtin::Real => {
            let a = table.var(Class::Num);
            no_constraint(table, &[a], double)
        }
        Builtin::Truncate => {
            let a = table.var(Class::Num);
            no_constraint(table, &[a], int)
        }
        Builtin::Diff | Builtin::Vdiff | Builtin::Mdiff => {
            let rank = usize::from(builtin != Builtin::Diff) + usize::from(builtin == Builtin::Mdiff);
            let (value, dual) = (nested(table, double, rank), dual_of_rank(table, rank));
            let f = table.fun(double, value);
            no_constraint(table, &[f, double], dual)
        }
        Builtin::Grad | Builtin::Mgrad => {
            let rank = if builtin == Builtin::Grad { 1 } else { 2 };
            let (at, dual) = (nested(table, double, rank), dual_of_rank(table, rank));
            let f = table.fun(at, double);
            no_constraint(table, &[f, at], dual)
        }
        Builtin::Jacob => {
            let (vector, dual) = (nested(table, double, 1), dual_of_rank(table, 2));
            let f = table.fun(vector, vector);
            no_constraint(table, &[f, vector], dual)
        }
        Builtin::Derivative => {
            let a = table.var(Class::Data);
            let f = table.fun(double, a);
            no_constraint(table, &[f, double], a)
        }
        Builtin::Gradient | Builtin::HessianDiagonal => {
            let a = table.var(Class::Data);
            let f = table.fun(a, double);
            (table.funs(&[f, a], a), Some(Constraint::Real { ty: a }))
        }
        Builtin::Hvp => {
            let a = table.var(Class::Data);
            let f = table.fun(a, double);
            (table.funs(&[f, a, a], a), Some(Constraint::Real { ty: a }))
        }
        Builtin::Jacobian => {
            let (vector, matrix) = (nested(table, double, 1), nested(table, double, 2));
            let f = table.fun(vector, vector);
            no_constraint(table, &[f, vector], matrix)
        }
        Builtin::Hessian => {
            let (vector, matrix) = (nested(table, double, 1), nested(table, double, 2));
            let f = table.fun(vector, double);
            no_constraint(table, &[f, vector], matrix)
        }
        Builtin::Jvp => {
            let (a, b) = (table.var(Class::Data), table.var(Class::Data));
            let f = table.fun(a, b);
            (table.funs(&[f, a, a], b), Some(Constraint::Real { ty: a }))
        }
        Builtin::Vjp => {
            let (a, b) = (table.var(Class::Data), table.var(Class::Data));
            let f = table.fun(a, b);
            let both = table.tuple(vec![a, b], None);
            (table.funs(&[f, a, b], a), Some(Constraint::Real { ty: both }))
        }
        Builtin::Constant => {
            let a = table.var_of(Class::Data, Literal::Open);
            no_constraint(table, &[a], a)
        }
        Builtin::WithDerivative => {
            let (a, b) = (table.var(Class::Data), table.var(Class::Data));
            let f = table.fun(a, b);
            let (forward, reverse) = (table.funs(&[f, a, b, a], b), table.funs(&[f, a, b, b], a));
            no_constraint(table, &[f, forward, reverse, a], b)
        }
    }
}

/// Returns the type of `element` inside `rank` arrays.
fn nested(table: &mut Table, element: TyId, rank: usize) -> TyId {
    (0..rank).fold(element, |ty, _| table.array(ty))
}

/// Returns `DoubleD`, `VectorD`, `MatrixD`.
pub fn dual_of_rank(table: &mut Table, rank: usize) -> TyId {
    let pair = table.tuple(vec![table.double, table.double], None);
    nested(table, pair, rank)
}
