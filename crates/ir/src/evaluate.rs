//! The reference evaluator, which defines the meaning of a function: slow and simple.
//!
//! Numbers are those of any [`Algebra`] with truth values: doubles, extended precision, or a counting algebra.
//! [`Expr::Jvp`] is evaluated with dual numbers (`dual.rs`) and shares nothing with the differentiation of programs.
//!
//! Blocks are lists and are walked as lists; only nesting is recursive.

use crate::dual::{Duals, Num, primal_and_tangent};
use crate::{
    Block, Custom, Expr, Function, Size, Sizes, StateLoop, Stmt, Type, Value, Var, VarId, WhileLoop, bind_sizes,
};
use chainrule_base::{Arena, Diagnostic, Id, Kind, Span};
use chainrule_ops::{self as ops, Algebra, Op};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// Reason why a function has no value at its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Kind: an error of the program or its data, or a bug.
    pub kind: Kind,
    /// Message in one line.
    pub message: String,
    /// Source span of the failure.
    pub span: Option<Span>,
}

impl Failure {
    fn error(message: impl Into<String>) -> Self {
        Self { kind: Kind::Error, message: message.into(), span: None }
    }

    fn bug(message: impl Into<String>) -> Self {
        Self { kind: Kind::Bug, message: message.into(), span: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        let message = match &diagnostic.reason {
            Some(reason) => format!("{}: {reason}", diagnostic.title),
            None => diagnostic.title.clone(),
        };
        Self { kind: diagnostic.kind, message, span: diagnostic.span() }
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        let diagnostic = match failure.kind {
            Kind::Bug => Self::bug(failure.message),
            Kind::Limitation => Self::limitation(failure.message),
            Kind::Error | Kind::Warning => Self::error(failure.message),
        };
        match failure.span {
            Some(span) => diagnostic.with_label(span, "this has no value"),
            None => diagnostic,
        }
    }
}

/// Returns the value of `function` at `args`, in the numbers of `algebra`.
///
/// # Errors
/// Fails if the arguments do not fit ([`bind_sizes`]), an index is out of range, a size is negative, integers overflow
/// or are divided by 0, a `while` takes too many steps. Never panics, even on a function that the verifier refuses.
pub fn evaluate<A: Algebra>(
    function: &Function,
    algebra: &mut A,
    args: &[Value<A::Value>],
) -> Result<Value<A::Value>, Failure> {
    let sizes = bind_sizes(function, args)?;
    let (vars, numbers) = (&function.vars, Duals::new(algebra));
    let env = Arena::filled(vars.len(), None);
    let mut evaluator = Evaluator { vars, numbers, env, customs: BTreeMap::new() };
    for var in &function.sizes {
        evaluator.bind(*var, Item::Int(sizes.get(*var).unwrap_or(0)))?;
    }
    for (param, arg) in function.params.iter().zip(args) {
        evaluator.bind(*param, Item::new(arg))?;
    }
    Ok(evaluator.block(&function.body)?.value())
}

// A value inside the evaluator: its doubles may be dual numbers, its arrays are shared.
#[derive(Clone, Debug)]
enum Item<S> {
    Real(Num<S>),
    Int(i64),
    Bool(bool),
    Array(Rc<Vec<Self>>),
    Tuple(Rc<Vec<Self>>),
}

impl<S: Clone> Item<S> {
    fn new(value: &Value<S>) -> Self {
        let all = |items: &[Value<S>]| Rc::new(items.iter().map(Self::new).collect());
        match value {
            Value::Real(x) => Self::Real(Num::Base(x.clone())),
            Value::Int(i) => Self::Int(*i),
            Value::Bool(b) => Self::Bool(*b),
            Value::Array(items) => Self::Array(all(items)),
            Value::Tuple(items) => Self::Tuple(all(items)),
        }
    }

    fn value(&self) -> Value<S> {
        let all = |items: &[Self]| items.iter().map(Self::value).collect();
        match self {
            Self::Real(x) => Value::Real(x.base().clone()),
            Self::Int(i) => Value::Int(*i),
            Self::Bool(b) => Value::Bool(*b),
            Self::Array(items) => Value::Array(all(items)),
            Self::Tuple(items) => Value::Tuple(all(items)),
        }
    }

    // Returns this value as a dual number of derivative `tag`, with `tangent`, which has its shape.
    fn seed(&self, tangent: &Self, tag: u32) -> Result<Self, Failure> {
        let all = |a: &[Self], b: &[Self]| -> Result<Rc<Vec<Self>>, Failure> {
            if a.len() != b.len() {
                return Err(Failure::bug("point and direction have different shapes"));
            }
            Ok(Rc::new(a.iter().zip(b).map(|(a, b)| a.seed(b, tag)).collect::<Result<_, _>>()?))
        };
        Ok(match (self, tangent) {
            (Self::Real(primal), Self::Real(tangent)) => {
                Self::Real(Num::Dual { tag, parts: Rc::new((primal.clone(), tangent.clone())) })
            }
            (Self::Int(_), Self::Int(_)) | (Self::Bool(_), Self::Bool(_)) => self.clone(),
            (Self::Array(a), Self::Array(b)) => Self::Array(all(a, b)?),
            (Self::Tuple(a), Self::Tuple(b)) => Self::Tuple(all(a, b)?),
            _ => return Err(Failure::bug("point and direction have different shapes")),
        })
    }

    // Returns the largest tag in it; 0 is none.
    fn last_tag(&self) -> u32 {
        match self {
            Self::Real(x) => x.tag(),
            Self::Int(_) | Self::Bool(_) => 0,
            Self::Array(items) | Self::Tuple(items) => items.iter().map(Self::last_tag).max().unwrap_or(0),
        }
    }

    // Returns this value without the derivative of `tag`, the largest in it; for 0, without any.
    fn still(&self, tag: u32) -> Self {
        match self {
            Self::Real(x) if tag == 0 => Self::Real(Num::Base(x.base().clone())),
            Self::Real(x) => Self::Real(primal_and_tangent(x, tag).0),
            Self::Int(_) | Self::Bool(_) => self.clone(),
            Self::Array(items) => Self::Array(Rc::new(items.iter().map(|item| item.still(tag)).collect())),
            Self::Tuple(items) => Self::Tuple(Rc::new(items.iter().map(|item| item.still(tag)).collect())),
        }
    }

    // Returns the derivatives of `tag`, the largest in it, in its own shape; integers and truth values stay.
    fn tangents<A: Algebra<Value = S>>(&self, numbers: &mut Duals<'_, A>, tag: u32) -> Self {
        match self {
            Self::Real(x) => Self::Real(primal_and_tangent(x, tag).1.unwrap_or_else(|| numbers.constant(0.0))),
            Self::Int(_) | Self::Bool(_) => self.clone(),
            Self::Array(items) => Self::Array(Rc::new(items.iter().map(|i| i.tangents(numbers, tag)).collect())),
            Self::Tuple(items) => Self::Tuple(Rc::new(items.iter().map(|i| i.tangents(numbers, tag)).collect())),
        }
    }

    // Returns the number of doubles.
    fn reals(&self) -> usize {
        match self {
            Self::Real(_) => 1,
            Self::Int(_) | Self::Bool(_) => 0,
            Self::Array(items) | Self::Tuple(items) => items.iter().map(Self::reals).sum(),
        }
    }

    // Returns this value with the double number `before` as a dual number with tangent `one`.
    fn seed_one(&self, one: &Num<S>, tag: u32, before: &mut usize) -> Self {
        let mut all = |items: &[Self]| Rc::new(items.iter().map(|item| item.seed_one(one, tag, before)).collect());
        match self {
            Self::Real(primal) => {
                let here = *before == 0;
                *before = before.wrapping_sub(1);
                if here {
                    Self::Real(Num::Dual { tag, parts: Rc::new((primal.clone(), one.clone())) })
                } else {
                    self.clone()
                }
            }
            Self::Int(_) | Self::Bool(_) => self.clone(),
            Self::Array(items) => Self::Array(all(items)),
            Self::Tuple(items) => Self::Tuple(all(items)),
        }
    }

    // Returns a value of the tangent type of this one's type `ty` with these doubles; `None` if there is none.
    fn with_reals(&self, ty: &Type, reals: &mut dyn Iterator<Item = Num<S>>) -> Option<Self> {
        match (self, ty) {
            _ if !ty.has_double() => None,
            (Self::Real(_), _) => Some(Self::Real(reals.next()?)),
            (Self::Array(items), Type::Array(_, element)) => {
                Some(Self::Array(Rc::new(items.iter().filter_map(|item| item.with_reals(element, reals)).collect())))
            }
            (Self::Tuple(items), Type::Tuple(fields, _)) => {
                let parts = items.iter().zip(fields).filter_map(|(item, field)| item.with_reals(field, reals));
                Some(Self::Tuple(Rc::new(parts.collect())))
            }
            _ => None,
        }
    }

    // Returns the pairs of value and derivative of the dual numbers of derivative `tag`.
    fn harvest<A: Algebra<Value = S>>(&self, numbers: &mut Duals<'_, A>, tag: u32) -> Self {
        match self {
            Self::Real(x) => {
                let (primal, tangent) = primal_and_tangent(x, tag);
                let tangent = tangent.unwrap_or_else(|| numbers.constant(0.0));
                Self::Tuple(Rc::new(vec![Self::Real(primal), Self::Real(tangent)]))
            }
            Self::Int(_) | Self::Bool(_) => self.clone(),
            Self::Array(items) => Self::Array(Rc::new(items.iter().map(|i| i.harvest(numbers, tag)).collect())),
            Self::Tuple(items) => Self::Tuple(Rc::new(items.iter().map(|i| i.harvest(numbers, tag)).collect())),
        }
    }
}

fn out_of_range(index: i64, len: i64, proved: bool) -> Failure {
    let message = format!("index {index} is out of range for an array of {len}");
    if proved { Failure::bug(format!("{message}, and was proved to be in range")) } else { Failure::error(message) }
}

struct Evaluator<'a, A: Algebra> {
    vars: &'a Arena<VarId, Var>,
    numbers: Duals<'a, A>,
    // Current bindings; those out of scope stay until they are bound again.
    env: Arena<VarId, Option<Item<A::Value>>>,
    // Functions whose rules are being evaluated, by their name in the rules.
    customs: BTreeMap<VarId, Rc<Custom>>,
}

type Result_<A> = Result<Item<<A as Algebra>::Value>, Failure>;

impl<'a, A: Algebra> Evaluator<'a, A> {
    fn bind(&mut self, var: VarId, item: Item<A::Value>) -> Result<(), Failure> {
        if var.index() >= self.env.len() {
            return Err(Failure::bug(format!("{var} does not exist")));
        }
        self.env[var] = Some(item);
        Ok(())
    }

    fn get(&self, var: VarId) -> Result<&Item<A::Value>, Failure> {
        self.env
            .get(var)
            .and_then(Option::as_ref)
            .ok_or_else(|| Failure::bug(format!("{var} is used before it is bound")))
    }

    fn int(&self, var: VarId) -> Result<i64, Failure> {
        match self.get(var)? {
            Item::Int(i) => Ok(*i),
            _ => Err(Failure::bug(format!("{var} is no integer"))),
        }
    }

    fn size(&self, size: &Size) -> Result<i64, Failure> {
        let mut sizes = Sizes::default();
        for var in size.vars() {
            sizes.insert(var, self.int(var)?);
        }
        sizes.eval(size).ok_or_else(|| Failure::error("integer overflow"))
    }

    fn items(&self, vars: &[VarId]) -> Result<Rc<Vec<Item<A::Value>>>, Failure> {
        Ok(Rc::new(vars.iter().map(|v| self.get(*v).cloned()).collect::<Result<_, _>>()?))
    }

    fn block(&mut self, block: &Block) -> Result_<A> {
        for stmt in &block.stmts {
            self.stmt(stmt)?;
        }
        self.get(block.result).cloned()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Failure> {
        match self.expr(stmt.var, &stmt.expr) {
            Ok(item) => self.bind(stmt.var, item),
            Err(failure) => Err(Failure { span: failure.span.or(stmt.span), ..failure }),
        }
    }

    // Evaluates `expr`, which is bound to `var`.
    fn expr(&mut self, var: VarId, expr: &Expr) -> Result_<A> {
        match expr {
            Expr::Real(value) => Ok(Item::Real(self.numbers.constant(*value))),
            Expr::Bool(value) => Ok(Item::Bool(*value)),
            Expr::Size(size) => Ok(Item::Int(self.size(size)?)),
            Expr::Op(op, args) => self.operator(*op, args),
            Expr::ToReal(arg) => {
                let int = self.int(*arg)?;
                Ok(Item::Real(self.numbers.constant(int as f64)))
            }
            Expr::ToInt(arg) => {
                let Item::Real(x) = self.get(*arg)? else {
                    return Err(Failure::bug(format!("{arg} is no double")));
                };
                match self.numbers.to_f64(x) {
                    Some(x) => Ok(Item::Int(ops::truncate(x))),
                    None => Err(Failure {
                        kind: Kind::Limitation,
                        ..Failure::error("no symbolic number can be made an integer".to_owned())
                    }),
                }
            }
            Expr::Build { size, index, body } => {
                let n = self.size(size)?;
                if n < 0 {
                    return Err(Failure::error(format!("an array of {n} elements is built")));
                }
                let mut items = Vec::new();
                for i in 0..n {
                    self.bind(*index, Item::Int(i))?;
                    items.push(self.block(body)?);
                }
                Ok(Item::Array(Rc::new(items)))
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                let n = self.size(count)?;
                let mut now = self.get(*init)?.clone();
                for i in 0..n {
                    self.bind(*index, Item::Int(i))?;
                    self.bind(*state, now)?;
                    now = self.block(body)?;
                }
                Ok(now)
            }
            Expr::Sum { count, index, body } => {
                let n = self.size(count)?;
                let mut sum = self.zero(self.ty(body.result)?)?;
                for i in 0..n {
                    self.bind(*index, Item::Int(i))?;
                    let term = self.block(body)?;
                    sum = self.plus(&sum, &term)?;
                }
                Ok(sum)
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let n = self.size(count)?;
                let Type::Tuple(parts, _) = self.ty(var)? else {
                    return Err(Failure::bug("a loop has no three parts"));
                };
                if n < 0 {
                    return Err(Failure::error(format!("an array of {n} elements is built")));
                }
                let mut sum = self.zero(parts.get(2).unwrap_or(&Type::Double))?;
                let mut now = self.get(*init)?.clone();
                let mut items = Vec::new();
                for i in 0..n {
                    self.bind(*index, Item::Int(i))?;
                    self.bind(*state, now)?;
                    let Item::Tuple(parts) = self.block(body)? else {
                        return Err(Failure::bug("an iteration of a loop makes no triple"));
                    };
                    let [next, item, term] = parts.as_slice() else {
                        return Err(Failure::bug("an iteration of a loop makes no triple"));
                    };
                    now = next.clone();
                    items.push(item.clone());
                    sum = self.plus(&sum, term)?;
                }
                Ok(Item::Tuple(Rc::new(vec![now, Item::Array(Rc::new(items)), sum])))
            }
            Expr::Zero => self.zero(self.ty(var)?),
            Expr::OneHot { index, value, proved } => {
                let Type::Array(size, element) = self.ty(var)? else {
                    return Err(Failure::bug("a one-hot array is no array"));
                };
                let (n, index, value) = (self.size(size)?, self.int(*index)?, self.get(*value)?.clone());
                if !(0..n).contains(&index) {
                    return Err(out_of_range(index, n, *proved));
                }
                let zero = self.zero(element)?;
                let items = (0..n).map(|i| if i == index { value.clone() } else { zero.clone() }).collect();
                Ok(Item::Array(Rc::new(items)))
            }
            Expr::Plus(a, b) => {
                let (a, b) = (self.get(*a)?.clone(), self.get(*b)?.clone());
                self.plus(&a, &b)
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                let limit = self.size(limit)?;
                let mut now = self.get(*init)?.clone();
                let mut steps = 0;
                loop {
                    self.bind(*state, now.clone())?;
                    match self.block(condition)? {
                        Item::Bool(false) => return Ok(now),
                        Item::Bool(true) => {}
                        _ => return Err(Failure::bug("a condition is no truth value")),
                    }
                    if steps >= limit {
                        return Err(Failure::error(format!("a `while` has not come to its end after {steps} steps")));
                    }
                    steps += 1;
                    now = self.block(body)?;
                }
            }
            Expr::If { condition, then, otherwise } => match self.get(*condition)? {
                Item::Bool(true) => self.block(then),
                Item::Bool(false) => self.block(otherwise),
                _ => Err(Failure::bug("a condition is no truth value")),
            },
            Expr::Get { array, index, proved } => {
                let index = self.int(*index)?;
                let Item::Array(items) = self.get(*array)? else {
                    return Err(Failure::bug("what is indexed is no array"));
                };
                let item = usize::try_from(index).ok().and_then(|i| items.get(i));
                item.cloned().ok_or_else(|| out_of_range(index, items.len() as i64, *proved))
            }
            Expr::Array(elements) => Ok(Item::Array(self.items(elements)?)),
            Expr::Tuple(fields) => Ok(Item::Tuple(self.items(fields)?)),
            Expr::Component(tuple, idx) => match self.get(*tuple)? {
                Item::Tuple(items) if *idx < items.len() => Ok(items[*idx].clone()),
                _ => Err(Failure::bug(format!("{tuple} has no component {idx}"))),
            },
            Expr::Jvp { params, body, at, along } => {
                if params.len() != at.len() || params.len() != along.len() {
                    return Err(Failure::bug("a derivative has too few or too many coordinates"));
                }
                let tag = self.numbers.fresh_tag();
                for ((param, at), along) in params.iter().zip(at).zip(along) {
                    let seeded = self.get(*at)?.seed(self.get(*along)?, tag)?;
                    self.bind(*param, seeded)?;
                }
                let result = self.block(body)?;
                Ok(result.harvest(&mut self.numbers, tag))
            }
            Expr::Vjp { params, body, at, cotangent } => self.vjp(params, body, at, *cotangent),
            Expr::Custom(custom) => {
                let at = self.get(custom.at)?.clone();
                self.custom(custom, at)
            }
            Expr::Again { me, at } => {
                let at = self.get(*at)?.clone();
                let Some(custom) = self.customs.get(me).cloned() else {
                    return Err(Failure::bug(format!("{me} is no function in its own rule")));
                };
                self.custom(&custom, at)
            }
        }
    }

    // A function with a promised rule is differentiated through its body, which shares nothing with the rule.
    fn custom(&mut self, custom: &Custom, at: Item<A::Value>) -> Result_<A> {
        if custom.promised {
            self.bind(custom.param, at)?;
            return self.block(&custom.body);
        }
        let Some(rule) = &custom.rule else {
            self.bind(custom.param, at.still(0))?;
            return self.block(&custom.body);
        };
        let tag = at.last_tag();
        if tag == 0 {
            self.bind(custom.param, at)?;
            return self.block(&custom.body);
        }
        // The outermost derivative uses the rule; enclosing ones differentiate the value and the rule.
        self.customs.insert(rule.me, Rc::new(custom.clone()));
        let point = at.still(tag);
        let along = at.tangents(&mut self.numbers, tag);
        let value = self.custom(custom, point.clone())?;
        for (param, item) in rule.forward.params.iter().zip([point, value.clone(), along]) {
            self.bind(*param, item)?;
        }
        let tangent = self.block(&rule.forward.body)?;
        value.seed(&tangent, tag)
    }

    fn ty(&self, var: VarId) -> Result<&'a Type, Failure> {
        let var = self.vars.get(var).ok_or_else(|| Failure::bug(format!("{var} does not exist")))?;
        Ok(&var.ty)
    }

    // Returns the zero of a linear type.
    fn zero(&mut self, ty: &Type) -> Result_<A> {
        Ok(match ty {
            Type::Double => Item::Real(self.numbers.constant(0.0)),
            Type::Int | Type::Bool => return Err(Failure::bug("there is no zero of a type that is not linear")),
            Type::Array(size, element) => {
                let n = self.size(size)?;
                if n < 0 {
                    return Err(Failure::error(format!("an array of {n} elements is built")));
                }
                let zero = self.zero(element)?;
                Item::Array(Rc::new((0..n).map(|_| zero.clone()).collect()))
            }
            Type::Tuple(fields, _) => {
                Item::Tuple(Rc::new(fields.iter().map(|field| self.zero(field)).collect::<Result<_, _>>()?))
            }
        })
    }

    fn plus(&mut self, a: &Item<A::Value>, b: &Item<A::Value>) -> Result_<A> {
        let mut all = |a: &[Item<A::Value>], b: &[Item<A::Value>]| -> Result<_, Failure> {
            if a.len() != b.len() {
                return Err(Failure::bug("what is added has different shapes"));
            }
            Ok(Rc::new(a.iter().zip(b).map(|(a, b)| self.plus(a, b)).collect::<Result<_, _>>()?))
        };
        Ok(match (a, b) {
            (Item::Array(a), Item::Array(b)) => Item::Array(all(a, b)?),
            (Item::Tuple(a), Item::Tuple(b)) => Item::Tuple(all(a, b)?),
            (Item::Real(a), Item::Real(b)) => Item::Real(self.numbers.apply(Op::Add, &[a.clone(), b.clone()])),
            _ => return Err(Failure::bug("what is added has different shapes")),
        })
    }

    // Computes one derivative along each double of the point, multiplied by the cotangent: slow and simple.
    fn vjp(&mut self, params: &[VarId], body: &Block, at: &[VarId], cotangent: VarId) -> Result_<A> {
        if params.len() != at.len() {
            return Err(Failure::bug("a derivative has too few or too many coordinates"));
        }
        let points = at.iter().map(|at| self.get(*at).cloned()).collect::<Result<Vec<_>, _>>()?;
        let cotangent = self.get(cotangent)?.clone();
        for (param, point) in params.iter().zip(&points) {
            self.bind(*param, point.clone())?;
        }
        let mut parts = vec![self.block(body)?];
        for (param, point) in params.iter().zip(&points) {
            let mut slopes = Vec::new();
            for k in 0..point.reals() {
                let tag = self.numbers.fresh_tag();
                let mut before = k;
                let one = self.numbers.constant(1.0);
                let seeded = point.seed_one(&one, tag, &mut before);
                self.bind(*param, seeded)?;
                let result = self.block(body)?;
                let mut slope = None;
                self.dot(&result, self.ty(body.result)?, &cotangent, tag, &mut slope)?;
                slopes.push(slope.unwrap_or_else(|| self.numbers.constant(0.0)));
            }
            self.bind(*param, point.clone())?;
            let cotangent = point.with_reals(self.ty(*param)?, &mut slopes.into_iter());
            parts.push(cotangent.ok_or_else(|| Failure::bug("what has no double has no cotangent"))?);
        }
        Ok(Item::Tuple(Rc::new(parts)))
    }

    // Adds to `sum` the products of the tangents in `result`, of type `ty`, with `cotangent`, of its tangent type.
    fn dot(
        &mut self,
        result: &Item<A::Value>,
        ty: &Type,
        cotangent: &Item<A::Value>,
        tag: u32,
        sum: &mut Option<Num<A::Value>>,
    ) -> Result<(), Failure> {
        match (result, ty, cotangent) {
            (Item::Real(x), _, Item::Real(weight)) => {
                if let (_, Some(tangent)) = primal_and_tangent(x, tag) {
                    let term = self.numbers.apply(Op::Mul, &[tangent, weight.clone()]);
                    *sum = Some(match sum.take() {
                        None => term,
                        Some(sum) => self.numbers.apply(Op::Add, &[sum, term]),
                    });
                }
                Ok(())
            }
            (Item::Array(items), Type::Array(_, element), Item::Array(weights)) if items.len() == weights.len() => {
                items
                    .iter()
                    .zip(weights.iter())
                    .try_for_each(|(item, weight)| self.dot(item, element, weight, tag, sum))
            }
            (Item::Tuple(items), Type::Tuple(fields, _), Item::Tuple(weights)) => {
                let mut parts = items.iter().zip(fields).filter(|(_, field)| field.has_double()).zip(weights.iter());
                parts.try_for_each(|((item, field), weight)| self.dot(item, field, weight, tag, sum))
            }
            _ => Err(Failure::bug("a cotangent has another shape")),
        }
    }

    fn operator(&mut self, op: Op, args: &[VarId]) -> Result_<A> {
        let row = op.row();
        let operands = args.iter().map(|v| self.get(*v).cloned()).collect::<Result<Vec<_>, _>>()?;
        if operands.len() != row.args.len() {
            return Err(Failure::bug(format!("`{}` has {} operands", row.name, operands.len())));
        }
        let ints: Vec<i64> =
            operands.iter().filter_map(|v| if let Item::Int(i) = v { Some(*i) } else { None }).collect();
        if !ints.is_empty() && ints.len() == operands.len() {
            let Some(int) = row.int else {
                return Err(Failure::bug(format!("`{}` is not defined for integers", row.name)));
            };
            let Some(result) = int(&ints) else {
                let zero = matches!(op, Op::Quot | Op::Mod) && ints.get(1) == Some(&0);
                return Err(Failure::error(if zero { "integer division by zero" } else { "integer overflow" }));
            };
            return Ok(match row.result {
                ops::Type::Bool => Item::Bool(result != 0),
                ops::Type::Num => Item::Int(result),
            });
        }
        let mut numbers = Vec::with_capacity(operands.len());
        for (operand, kind) in operands.into_iter().zip(row.args) {
            numbers.push(match (operand, kind) {
                (Item::Real(x), ops::Type::Num) => x,
                (Item::Bool(b), ops::Type::Bool) => self.numbers.constant(f64::from(u8::from(b))),
                _ => return Err(Failure::bug(format!("an operand of `{}` has the wrong type", row.name))),
            });
        }
        let result = self.numbers.apply(op, &numbers);
        match row.result {
            ops::Type::Num => Ok(Item::Real(result)),
            ops::Type::Bool => match self.numbers.to_f64(&result) {
                Some(truth) => Ok(Item::Bool(truth != 0.0)),
                None => Err(Failure {
                    kind: Kind::Limitation,
                    ..Failure::error(format!("`{}` cannot be decided for symbolic numbers", row.name))
                }),
            },
        }
    }
}
