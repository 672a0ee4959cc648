//! Types of expressions, from the types of their operands and of the results of their blocks.
//!
//! The builder uses it to infer types, the verifier to check them.

use crate::{Block, Expr, Size, StateLoop, Type, Var, VarId, WhileLoop};
use chainrule_base::Arena;
use chainrule_ops::{self as ops, Op};

/// Returns the type of `expr`; that of a record is the tuple without names. Sizes where types must agree are taken to
/// be equal: they can be so by a requirement of the function.
///
/// # Errors
/// A description of the fault, if operands or blocks do not have the required types.
pub fn type_of(expr: &Expr, vars: &Arena<VarId, Var>) -> Result<Type, String> {
    typed(expr, vars, Sizes::Trusted)
}

/// Whether sizes are compared where types must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    Compared,
    Trusted,
}

fn typed(expr: &Expr, vars: &Arena<VarId, Var>, sizes: Sizes) -> Result<Type, String> {
    let expect = |wanted: &Type, found: &Type, what: &str| {
        expect(wanted, found, what).or_else(|fault| match sizes {
            Sizes::Trusted if wanted.differs_in_sizes_only(found) => Ok(()),
            _ => Err(fault),
        })
    };
    match expr {
        Expr::Real(_) => Ok(Type::Double),
        Expr::Bool(_) => Ok(Type::Bool),
        Expr::Size(size) => {
            of_ints(size, vars)?;
            Ok(Type::Int)
        }
        Expr::Op(op, args) => of_operator(*op, args, vars),
        Expr::ToReal(arg) => {
            expect(&Type::Int, ty(*arg, vars)?, "the operand of a conversion")?;
            Ok(Type::Double)
        }
        Expr::ToInt(arg) => {
            expect(&Type::Double, ty(*arg, vars)?, "the operand of a conversion")?;
            Ok(Type::Int)
        }
        Expr::Build { size, index, body } => {
            of_ints(size, vars)?;
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            Ok(Type::array(size.clone(), of_block(body, vars)?.clone()))
        }
        Expr::Sum { count, index, body } => {
            of_ints(count, vars)?;
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            Ok(linear(of_block(body, vars)?, "the term of a sum")?.clone())
        }
        Expr::Fold(StateLoop { count, index, state, init, body }) => {
            of_ints(count, vars)?;
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            let init = ty(*init, vars)?;
            expect(init, ty(*state, vars)?, "the state of a fold")?;
            expect(init, of_block(body, vars)?, "the step of a fold")?;
            Ok(init.clone())
        }
        Expr::Loop(StateLoop { count, index, state, init, body }) => {
            of_ints(count, vars)?;
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            let init = ty(*init, vars)?;
            expect(init, ty(*state, vars)?, "the state of a loop")?;
            let triple = of_block(body, vars)?;
            let Type::Tuple(parts, _) = triple else {
                return Err(format!("an iteration of a loop makes {}, which is no triple", describe(triple)));
            };
            let [next, element, term] = parts.as_slice() else {
                return Err(format!("an iteration of a loop makes {}, which is no triple", describe(triple)));
            };
            expect(init, next, "the next state of a loop")?;
            linear(term, "the term of a loop")?;
            Ok(Type::tuple(vec![init.clone(), Type::array(count.clone(), element.clone()), term.clone()]))
        }
        Expr::Plus(a, b) => {
            let a = linear(ty(*a, vars)?, "what is added")?;
            expect(a, ty(*b, vars)?, "what is added to it")?;
            Ok(a.clone())
        }
        Expr::Zero | Expr::OneHot { .. } => Err("its type is not known from its operands".to_owned()),
        Expr::While(WhileLoop { limit, state, init, condition, body }) => {
            of_ints(limit, vars)?;
            let init = ty(*init, vars)?;
            expect(init, ty(*state, vars)?, "the state of a while")?;
            expect(&Type::Bool, of_block(condition, vars)?, "the condition of a while")?;
            expect(init, of_block(body, vars)?, "the step of a while")?;
            Ok(init.clone())
        }
        Expr::If { condition, then, otherwise } => {
            expect(&Type::Bool, ty(*condition, vars)?, "a condition")?;
            let then = of_block(then, vars)?;
            expect(then, of_block(otherwise, vars)?, "the other branch")?;
            Ok(then.clone())
        }
        Expr::Get { array, index, .. } => {
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            match ty(*array, vars)? {
                Type::Array(_, element) => Ok((**element).clone()),
                other => Err(format!("{} is indexed, which is no array", describe(other))),
            }
        }
        Expr::Array(elements) => {
            let Some((first, rest)) = elements.split_first() else {
                return Err("an array written out has no element".to_owned());
            };
            let first = ty(*first, vars)?;
            for element in rest {
                expect(first, ty(*element, vars)?, "an element of an array")?;
            }
            let size = i64::try_from(elements.len()).map_err(|_| "an array is too long".to_owned())?;
            Ok(Type::array(Size::constant(size), first.clone()))
        }
        Expr::Tuple(fields) => {
            Ok(Type::tuple(fields.iter().map(|v| ty(*v, vars).cloned()).collect::<Result<_, String>>()?))
        }
        Expr::Component(tuple, idx) => match ty(*tuple, vars)? {
            Type::Tuple(fields, _) => {
                fields.get(*idx).cloned().ok_or_else(|| format!("a tuple of {} has no component {idx}", fields.len()))
            }
            other => Err(format!("a component is taken of {}, which is no tuple", describe(other))),
        },
        Expr::Jvp { params, body, at, along } => {
            if params.len() != at.len() || params.len() != along.len() {
                return Err(format!(
                    "a function of {} parameters is differentiated at {} values along {}",
                    params.len(),
                    at.len(),
                    along.len()
                ));
            }
            for ((param, at), along) in params.iter().zip(at).zip(along) {
                let param = ty(*param, vars)?;
                expect(param, ty(*at, vars)?, "a coordinate of the point")?;
                expect(param, ty(*along, vars)?, "a coordinate of the direction")?;
            }
            Ok(of_block(body, vars)?.dual())
        }
        Expr::Vjp { params, body, at, cotangent } => {
            if params.len() != at.len() {
                return Err(format!(
                    "a function of {} parameters is differentiated at {} values",
                    params.len(),
                    at.len()
                ));
            }
            let body = of_block(body, vars)?;
            let mut parts = vec![body.clone()];
            for (param, at) in params.iter().zip(at) {
                let param = ty(*param, vars)?;
                expect(param, ty(*at, vars)?, "a coordinate of the point")?;
                parts.push(param.tangent().ok_or_else(|| format!("{} has no cotangent", describe(param)))?);
            }
            let wanted = body.tangent().ok_or_else(|| format!("{} has no cotangent", describe(body)))?;
            expect(&wanted, ty(*cotangent, vars)?, "the cotangent")?;
            Ok(Type::tuple(parts))
        }
        Expr::Custom(custom) => {
            let at = ty(custom.at, vars)?;
            expect(at, ty(custom.param, vars)?, "the parameter of a function with a rule")?;
            let value = of_block(&custom.body, vars)?;
            if let Some(rule) = &custom.rule {
                if !at.has_double() || !value.has_double() {
                    return Err("a function with a rule has no derivative".to_owned());
                }
                expect(value, ty(rule.me, vars)?, "the function in its rules")?;
                for (block, moved, result) in [(&rule.forward, at, value), (&rule.reverse, value, at)] {
                    for (param, wanted) in block.params.iter().zip([at, value, moved]) {
                        expect(wanted, ty(*param, vars)?, "a parameter of a rule")?;
                    }
                    expect(result, of_block(&block.body, vars)?, "the result of a rule")?;
                }
            }
            Ok(value.clone())
        }
        Expr::Again { me, .. } => ty(*me, vars).cloned(),
    }
}

/// Checks whether `expr` can be of type `found`: that of [`type_of`], with equal sizes where types must agree, except
/// for names of fields in a tuple; any linear one for a zero, any linear array of the value for a one-hot array.
///
/// # Errors
/// As [`type_of`], and if it cannot.
pub fn check_type(expr: &Expr, found: &Type, vars: &Arena<VarId, Var>) -> Result<(), String> {
    match (expr, found) {
        (Expr::Zero, _) => linear(found, "a zero").map(|_| ()),
        (Expr::OneHot { index, value, .. }, Type::Array(_, element)) => {
            expect(&Type::Int, ty(*index, vars)?, "an index")?;
            expect(
                linear(element, "what stands in a one-hot array")?,
                ty(*value, vars)?,
                "the value in a one-hot array",
            )
        }
        (Expr::OneHot { .. }, _) => Err(format!("a one-hot array is bound to {}", describe(found))),
        _ => {
            let ty = typed(expr, vars, Sizes::Compared)?;
            let same = match (expr, &ty, found) {
                (Expr::Tuple(_), Type::Tuple(a, _), Type::Tuple(b, _)) => a == b,
                _ => ty == *found,
            };
            if same { Ok(()) } else { Err(format!("{} is bound to {}", describe(found), describe(&ty))) }
        }
    }
}

fn linear<'a>(ty: &'a Type, what: &str) -> Result<&'a Type, String> {
    if ty.is_linear() { Ok(ty) } else { Err(format!("{what} is {}, which cannot be added", describe(ty))) }
}

fn of_operator(op: Op, args: &[VarId], vars: &Arena<VarId, Var>) -> Result<Type, String> {
    let row = op.row();
    if args.len() != row.args.len() {
        return Err(format!("`{}` takes {} arguments and is given {}", row.name, row.args.len(), args.len()));
    }
    let mut number: Option<&Type> = None;
    for (arg, kind) in args.iter().zip(row.args) {
        let arg = ty(*arg, vars)?;
        match (kind, arg) {
            (ops::Type::Bool, Type::Bool) => {}
            (ops::Type::Num, Type::Double | Type::Int) => {
                if number.is_some_and(|earlier| earlier != arg) {
                    return Err(format!("`{}` mixes Double and Int", row.name));
                }
                number = Some(arg);
            }
            _ => return Err(format!("`{}` is applied to {}", row.name, describe(arg))),
        }
    }
    if number == Some(&Type::Int) && row.int.is_none() {
        return Err(format!("`{}` is not defined for Int", row.name));
    }
    Ok(match row.result {
        ops::Type::Bool => Type::Bool,
        ops::Type::Num => number.cloned().unwrap_or(Type::Double),
    })
}

fn of_ints(size: &Size, vars: &Arena<VarId, Var>) -> Result<(), String> {
    size.vars().into_iter().try_for_each(|v| expect(&Type::Int, ty(v, vars)?, "a variable of a size"))
}

fn of_block<'a>(block: &Block, vars: &'a Arena<VarId, Var>) -> Result<&'a Type, String> {
    ty(block.result, vars)
}

fn ty(var: VarId, vars: &Arena<VarId, Var>) -> Result<&Type, String> {
    vars.get(var).map(|v| &v.ty).ok_or_else(|| format!("{var} does not exist"))
}

fn expect(wanted: &Type, found: &Type, what: &str) -> Result<(), String> {
    if wanted == found {
        Ok(())
    } else {
        Err(format!("{what} is {} where {} is needed", describe(found), describe(wanted)))
    }
}

/// Returns a type in words, for messages: `[v1 + 1]Double`.
#[must_use]
pub fn describe(ty: &Type) -> String {
    describe_with(ty, &mut ToString::to_string)
}

/// As [`describe`], with sizes written by `size`.
pub fn describe_with(ty: &Type, size: &mut impl FnMut(&Size) -> String) -> String {
    match ty {
        Type::Double => "Double".to_owned(),
        Type::Int => "Int".to_owned(),
        Type::Bool => "Bool".to_owned(),
        Type::Array(n, element) => {
            let n = size(n);
            format!("[{n}]{}", describe_with(element, size))
        }
        Type::Tuple(fields, None) => {
            format!("({})", fields.iter().map(|f| describe_with(f, size)).collect::<Vec<_>>().join(", "))
        }
        Type::Tuple(fields, Some(names)) => {
            let fields: Vec<String> =
                names.iter().zip(fields).map(|(name, f)| format!("{name} : {}", describe_with(f, size))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
