//! Random well-typed functions with arguments that fit them, for tests and fuzzers.
//!
//! Every construct and every operator of the table occurs; loops have few steps, arrays few elements, including none
//! and one. Every index is in range, every `while` ends, and integers stay small, except for arithmetic on large ones
//! that may overflow: nearly every case has a value, though generally one with NaN or infinities.
//!
//! [`Options::smooth`] restricts functions to those that are differentiable in a neighbourhood of any real arguments:
//! operands are squeezed into the domain of their operator, which is found with [`chainrule_ops::Domain::contains`],
//! and nothing branches on a real number.
//!
//! When the source of randomness runs out, the simplest expressions are made, so that cases shrink.

pub mod arrays;
pub mod comparisons;
pub mod gathers;
mod integers;
mod linear;
pub mod records;
pub mod steps;
pub mod windows;
pub mod written;

use crate::{Builder, Expr, Function, Requirement, Size, Sizes, StateLoop, Type, Value, VarId, WhileLoop};
use arbitrary::{Result, Unstructured};
use chainrule_base::Name;
use chainrule_ops::{self as ops, CostClass, Op, Row};
use std::sync::Arc;

/// Returns numbers from 0 to below a bound, for arguments, which should differ even if a source has run out.
fn numbers(seed: u16) -> impl FnMut(i64) -> i64 {
    let mut state = u64::from(seed);
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below as u64) as i64
    }
}

/// One in this many operators on integers has a large operand.
const LARGE: u32 = 10;

/// Options of random functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Maximum nesting of blocks.
    pub depth: u32,
    /// Approximate maximum number of operations.
    pub fuel: u32,
    /// Whether functions are differentiable in a neighbourhood of any arguments.
    pub smooth: bool,
    /// Whether [`Expr::Jvp`] occurs.
    pub derivatives: bool,
    /// Whether [`Expr::Vjp`] occurs.
    pub transposed: bool,
    /// Whether values accumulated in place occur, in an order of their own: sums of arrays and tuples, one-hot arrays.
    pub linear: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { depth: 3, fuel: 60, smooth: false, derivatives: true, transposed: true, linear: true }
    }
}

impl Options {
    /// Returns the default, restricted to smooth functions.
    #[must_use]
    pub fn smooth() -> Self {
        Self { smooth: true, ..Self::default() }
    }
}

/// A function with arguments that fit it.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The function; the verifier accepts it.
    pub function: Function,
    /// Arguments, as many as parameters.
    pub args: Vec<Value<f64>>,
}

/// Returns a random function with random arguments.
///
/// # Errors
/// Fails if `u` runs out.
pub fn case(u: &mut Unstructured<'_>, options: Options) -> Result<Case> {
    let function = function(u, options)?;
    let args = arguments(u, &function)?;
    Ok(Case { function, args })
}

/// As [`case`], with only constructs that have F~ syntax, which only differentiates `Double`s by `Double`s.
///
/// # Errors
/// Fails if `u` runs out.
pub fn expressible_case(u: &mut Unstructured<'_>, options: Options) -> Result<Case> {
    let function = generate(u, options, Constructs::OfSyntax)?;
    let args = arguments(u, &function)?;
    Ok(Case { function, args })
}

/// Returns random arguments for `function`, with at most three elements in each dimension that is a size parameter, and
/// reals of magnitude below 4. Sizes that are required to be equal are; other requirements are only met by chance.
///
/// # Errors
/// Fails if `u` runs out.
pub fn arguments(u: &mut Unstructured<'_>, function: &Function) -> Result<Vec<Value<f64>>> {
    arguments_up_to(u, function, 3)
}

/// As [`arguments`], with sizes up to `longest`.
///
/// # Errors
/// Fails if `u` runs out.
pub fn arguments_up_to(u: &mut Unstructured<'_>, function: &Function, longest: i64) -> Result<Vec<Value<f64>>> {
    let mut sizes = Sizes::default();
    let equal = function.equal_sizes();
    for var in function.sizes.iter().filter(|var| equal.same(**var) == **var) {
        sizes.insert(*var, u.int_in_range(0..=longest)?);
    }
    for (var, number) in equal.numbers() {
        sizes.insert(*var, *number);
    }
    for (replaced, kept) in equal.pairs() {
        if let Some(value) = sizes.get(*kept) {
            sizes.insert(*replaced, value);
        }
    }
    let mut args = vec![Value::Int(0); function.params.len()];
    // Integers first: they may be sizes.
    for (param, arg) in function.params.iter().zip(&mut args) {
        if *function.ty(*param) == Type::Int {
            let value = match sizes.get(equal.same(*param)) {
                Some(same) => same,
                None => u.int_in_range(0..=4)?,
            };
            sizes.insert(*param, value);
            *arg = Value::Int(value);
        }
    }
    for (param, arg) in function.params.iter().zip(&mut args) {
        if *function.ty(*param) != Type::Int {
            *arg = argument(u, function.ty(*param), &sizes)?;
        }
    }
    Ok(args)
}

fn argument(u: &mut Unstructured<'_>, ty: &Type, sizes: &Sizes) -> Result<Value<f64>> {
    Ok(match ty {
        Type::Double => Value::Real(f64::from(u.int_in_range(-250..=250)?) / 64.0),
        Type::Int => Value::Int(u.int_in_range(0..=4)?),
        Type::Bool => Value::Bool(u.arbitrary()?),
        Type::Array(size, element) => {
            let n = sizes.eval(size).unwrap_or(0);
            Value::Array((0..n).map(|_| argument(u, element, sizes)).collect::<Result<_>>()?)
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|f| argument(u, f, sizes)).collect::<Result<_>>()?),
    })
}

/// Returns a random function.
///
/// # Errors
/// Fails if `u` runs out.
pub fn function(u: &mut Unstructured<'_>, options: Options) -> Result<Function> {
    generate(u, options, Constructs::All)
}

/// Constructs of generated functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constructs {
    All,
    /// Those that have F~ syntax.
    OfSyntax,
}

fn generate(u: &mut Unstructured<'_>, options: Options, constructs: Constructs) -> Result<Function> {
    let mut b = Builder::new("random");
    let sizes: Vec<VarId> = (0..u.int_in_range(0..=2)?).map(|i| b.size_param(["n", "m"][i])).collect();
    // A further size, of an array that the body reads as if its size were `n`, which is required.
    let equal = match sizes.first() {
        Some(first) if constructs == Constructs::All && u.ratio(1, 3)? => Some((b.size_param("l"), *first)),
        _ => None,
    };
    let mut g = Generator {
        b,
        u,
        options,
        expressible: constructs == Constructs::OfSyntax,
        fuel: options.fuel,
        scope: Vec::new(),
        naturals: sizes.clone(),
    };
    if g.u.ratio(1, 4)? {
        let count = g.param("k", Type::Int);
        g.naturals.push(count);
    }
    for (size, name) in sizes.into_iter().zip(["v", "w"]) {
        g.param(name, Type::array(Size::var(size), Type::Double));
    }
    let equal = equal.map(|(own, same)| (own, same, g.param("u", Type::array(Size::var(same), Type::Double))));
    for name in ["x", "y", "z"].iter().take(g.u.int_in_range(1..=3)?) {
        let ty = if *name == "x" { Type::Double } else { g.ty(2)? };
        g.param(name, ty);
    }
    let ty = if g.u.ratio(1, 2)? { Type::Double } else { g.ty(2)? };
    let result = g.body(&ty, options.depth)?;
    let mut function = g.b.finish(result);
    if let Some((own, same, array)) = equal {
        function.vars[array].ty = Type::array(Size::var(own), Type::Double);
        let (size, message) = (Size::var(own).sub(&Size::var(same)), "`u` has another length".to_owned());
        function.requires.push(Requirement { size, exactly_zero: true, message, span: None });
    }
    Ok(function)
}

// Squeezing of an operand into the domain of an operator.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Squeeze {
    // Unchanged.
    No,
    // 2 tanh x.
    Bounded,
    // 1 + 0.9 tanh x.
    Positive,
    // 0.9 tanh x.
    Unit,
    // 2 + 0.9 tanh x.
    AboveOne,
    // A constant 0, 1, 2, 3.
    Natural,
}

const SQUEEZES: [Squeeze; 6] =
    [Squeeze::No, Squeeze::Bounded, Squeeze::Positive, Squeeze::Unit, Squeeze::AboveOne, Squeeze::Natural];

impl Squeeze {
    // Returns sample numbers of its range, multiples of a tenth: where ranges touch, numbers are equal.
    fn samples(self) -> Vec<f64> {
        let tenths = |range: std::ops::RangeInclusive<i32>| range.map(|i| f64::from(i) / 10.0).collect();
        match self {
            Self::No => vec![-1000.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 1000.0],
            Self::Bounded => tenths(-20..=20),
            Self::Positive => tenths(1..=19),
            Self::Unit => tenths(-9..=9),
            Self::AboveOne => tenths(11..=29),
            Self::Natural => vec![0.0, 1.0, 2.0, 3.0],
        }
    }
}

// Returns whether `row` is differentiable for operands squeezed like this.
fn fits(row: &Row, squeezes: &[Squeeze]) -> bool {
    let mut points: Vec<Vec<f64>> = vec![Vec::new()];
    for squeeze in squeezes {
        let samples = squeeze.samples();
        points = points
            .iter()
            .flat_map(|point| samples.iter().map(|x| point.iter().chain([x]).copied().collect::<Vec<f64>>()))
            .collect();
    }
    points.iter().all(|point| (row.domain.contains)(point))
}

// Returns all ways to squeeze the operands of `row` into its differentiable domain. Rows with truth values among their
// arguments have none.
fn ways(row: &Row) -> Vec<Vec<Squeeze>> {
    match row.args {
        [ops::Type::Num] => SQUEEZES.iter().map(|s| vec![*s]).filter(|s| fits(row, s)).collect(),
        [ops::Type::Num, ops::Type::Num] => {
            SQUEEZES.iter().flat_map(|s| SQUEEZES.iter().map(|t| vec![*s, *t])).filter(|s| fits(row, s)).collect()
        }
        _ => vec![vec![Squeeze::No; row.args.len()]],
    }
}

struct Generator<'a, 'u> {
    b: Builder,
    u: &'a mut Unstructured<'u>,
    options: Options,
    // Whether only constructs with F~ syntax are made.
    expressible: bool,
    fuel: u32,
    // Variables in scope.
    scope: Vec<VarId>,
    // Small nonnegative base variables in scope: size parameters, indices, remainders.
    naturals: Vec<VarId>,
}

// Kinds of expressions that are tried, by the required type.
#[derive(Clone, Copy)]
enum Kind {
    Operator,
    Sum,
    Fold,
    While,
    If,
    Reach,
    Derivative,
    Transposed,
    Convert,
    Linear,
    Loop,
}

impl Generator<'_, '_> {
    fn param(&mut self, name: &str, ty: Type) -> VarId {
        let var = self.b.param(name, ty);
        self.scope.push(var);
        var
    }

    fn choose<T: Copy>(&mut self, items: &[T]) -> Result<T> {
        self.u.choose(items).copied()
    }

    // Returns a nonnegative size over variables in scope.
    fn size(&mut self) -> Result<Size> {
        if self.naturals.is_empty() || self.u.ratio(1, 3)? {
            return Ok(Size::constant(self.u.int_in_range(0..=3)?));
        }
        let naturals = self.naturals.clone();
        let base = Size::var(self.choose(&naturals)?);
        Ok(match self.u.int_in_range(0..=4)? {
            0 => base.add(&Size::constant(1)),
            1 => base.add(&Size::var(self.choose(&naturals)?)),
            _ => base,
        })
    }

    // Returns the count of a loop; may be negative.
    fn count(&mut self) -> Result<Size> {
        let size = self.size()?;
        Ok(if self.u.ratio(1, 6)? { size.sub(&Size::constant(1)) } else { size })
    }

    fn ty(&mut self, depth: u32) -> Result<Type> {
        Ok(match self.u.int_in_range(0..=if depth == 0 { 4 } else { 8 })? {
            0..=2 => Type::Double,
            3 => Type::Int,
            4 => Type::Bool,
            5 | 6 => Type::array(self.size()?, self.ty(depth - 1)?),
            7 => {
                let n = self.u.int_in_range(2..=3)?;
                Type::tuple((0..n).map(|_| self.ty(depth - 1)).collect::<Result<_>>()?)
            }
            _ => {
                let names: Vec<Name> =
                    ["p", "q", "r"].iter().take(self.u.int_in_range(1..=3)?).map(|s| Name::new(s)).collect();
                let fields = names.iter().map(|_| self.ty(depth - 1)).collect::<Result<_>>()?;
                Type::Tuple(fields, Some(names.into()))
            }
        })
    }

    // Adds a few statements, then an expression of type `ty`, to the open block.
    fn body(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        let (scope, naturals) = (self.scope.len(), self.naturals.len());
        for _ in 0..self.u.int_in_range(0..=2)? {
            match self.u.int_in_range(0..=4)? {
                0 => {
                    let natural = self.remainder()?;
                    self.naturals.push(natural);
                    self.scope.push(natural);
                }
                1 if self.options.derivatives && depth > 0 => {
                    let inner = self.ty(1)?;
                    let dual = self.derivative(&inner, depth - 1)?;
                    self.scope.push(dual);
                }
                2 if self.options.transposed && !self.expressible && depth > 0 => {
                    let parts = self.transposed(depth - 1)?;
                    self.scope.push(parts);
                }
                _ => {
                    let ty = self.ty(2)?;
                    let var = self.expr(&ty, depth)?;
                    self.scope.push(var);
                }
            }
        }
        let result = self.expr(ty, depth)?;
        self.scope.truncate(scope);
        self.naturals.truncate(naturals);
        Ok(result)
    }

    // As `body`, in a separate block, with `bound` and the index `index` in scope.
    fn block(&mut self, ty: &Type, depth: u32, bound: &[VarId], index: Option<VarId>) -> Result<crate::Block> {
        let (scope, naturals) = (self.scope.len(), self.naturals.len());
        self.scope.extend(bound);
        self.scope.extend(index);
        self.naturals.extend(index);
        self.b.push_block();
        let result = self.body(ty, depth)?;
        let block = self.b.pop_block(result);
        self.scope.truncate(scope);
        self.naturals.truncate(naturals);
        Ok(block)
    }

    // Returns some `Int` modulo a small number.
    fn remainder(&mut self) -> Result<VarId> {
        let int = self.leaf(&Type::Int)?;
        let divisor = self.u.int_in_range(1..=4)?;
        let divisor = self.b.int(divisor);
        Ok(self.b.compute(Expr::op(Op::Mod, &[int, divisor])))
    }

    fn real(&mut self) -> Result<VarId> {
        let value = match self.u.int_in_range(0..=9)? {
            8 if !self.options.smooth => {
                self.choose(&[-0.0, 0.1, 1e-9, 1e10, -1e300, 5e-324, f64::INFINITY, f64::NAN, -1.0 / 3.0])?
            }
            9 => self.choose(&[0.0, 1.0, -1.0, 2.0])?,
            _ => f64::from((self.u.int_in_range(0..=48)? + 24) % 49 - 24) / 8.0,
        };
        Ok(self.b.real(value))
    }

    // Adds the simplest expression of type `ty`, recursive on the type only.
    fn leaf(&mut self, ty: &Type) -> Result<VarId> {
        let fitting: Vec<VarId> = self.scope.iter().copied().filter(|v| self.b.ty(*v) == ty).collect();
        if !fitting.is_empty() && !self.u.ratio(1, 4)? {
            return self.choose(&fitting);
        }
        match ty {
            Type::Double => self.real(),
            Type::Int => {
                let naturals = self.naturals.clone();
                if naturals.is_empty() || self.u.ratio(1, 3)? {
                    let value = self.u.int_in_range(-3..=4)?;
                    return Ok(self.b.int(value));
                }
                self.choose(&naturals)
            }
            Type::Bool => {
                let value = self.u.arbitrary()?;
                Ok(self.b.bool(value))
            }
            Type::Array(size, element) => {
                let index = self.b.fresh(Type::Int);
                self.b.push_block();
                let result = self.leaf(element)?;
                let body = self.b.pop_block(result);
                Ok(self.b.compute(Expr::Build { size: size.clone(), index, body }))
            }
            Type::Tuple(fields, names) => {
                let fields = fields.iter().map(|f| self.leaf(f)).collect::<Result<Vec<_>>>()?;
                Ok(self.tuple(&fields, names.as_ref()))
            }
        }
    }

    fn tuple(&mut self, fields: &[VarId], names: Option<&Arc<[Name]>>) -> VarId {
        match names {
            Some(names) => self.b.record(names.clone(), fields),
            None => self.b.tuple(fields),
        }
    }

    // Adds an expression of type `ty`.
    fn expr(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        if depth == 0 || self.fuel == 0 || self.u.ratio(1, 8)? {
            return self.leaf(ty);
        }
        self.fuel -= 1;
        let mut kinds = vec![Kind::Reach, Kind::If, Kind::Fold, Kind::While];
        if !self.expressible {
            kinds.push(Kind::Loop);
            kinds.extend(
                (self.options.linear && ty.is_linear() && *ty != Type::Double)
                    .then_some([Kind::Linear; 4])
                    .into_iter()
                    .flatten(),
            );
            kinds.extend((self.options.transposed && *ty == Type::Double).then_some(Kind::Transposed));
        }
        match ty {
            Type::Double => {
                kinds.extend([Kind::Operator; 10]);
                kinds.extend([Kind::Sum, Kind::Sum, Kind::Reach, Kind::Reach, Kind::Reach, Kind::Convert]);
                kinds.extend(self.options.derivatives.then_some(Kind::Derivative));
            }
            Type::Int | Type::Bool => kinds.extend([Kind::Operator; 6]),
            Type::Array(..) | Type::Tuple(..) => kinds.extend([Kind::Convert; 6]),
        }
        let double = self.options.derivatives && *ty == Type::Double.dual();
        kinds.extend(double.then_some(Kind::Derivative));
        match self.choose(&kinds)? {
            Kind::Operator => self.operator(ty, depth),
            Kind::Reach => self.reach(ty),
            Kind::Convert => self.convert(ty, depth),
            Kind::If => {
                let condition = self.expr(&Type::Bool, depth - 1)?;
                let then = self.block(ty, depth - 1, &[], None)?;
                let otherwise = self.block(ty, depth - 1, &[], None)?;
                Ok(self.b.compute(Expr::If { condition, then, otherwise }))
            }
            Kind::Sum => {
                let (count, index) = (self.count()?, self.b.fresh(Type::Int));
                let body = self.block(&Type::Double, depth - 1, &[], Some(index))?;
                Ok(self.b.compute(Expr::Sum { count, index, body }))
            }
            Kind::Fold => {
                let init = self.expr(ty, depth - 1)?;
                let (count, index, state) = (self.count()?, self.b.fresh(Type::Int), self.b.fresh(ty.clone()));
                let body = self.block(ty, depth - 1, &[state], Some(index))?;
                Ok(self.b.compute(Expr::Fold(StateLoop { count, index, state, init, body })))
            }
            Kind::While => self.while_(ty, depth),
            Kind::Linear => self.linear(ty, depth),
            Kind::Loop => self.loop_(ty, depth),
            Kind::Transposed => {
                let parts = self.transposed(depth - 1)?;
                // The cotangent of the first parameter.
                Ok(self.b.component(parts, 1))
            }
            Kind::Derivative => {
                let dual = self.derivative(&Type::Double, depth - 1)?;
                if double {
                    return Ok(dual);
                }
                let part = self.u.int_in_range(0..=1)?;
                Ok(self.b.component(dual, 1 - part))
            }
        }
    }

    // Adds a `while` over a pair of a counter, which ends it, and a state of type `ty`.
    fn while_(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        let zero = self.b.int(0);
        let init = self.expr(ty, depth - 1)?;
        let init = self.b.tuple(&[zero, init]);
        let steps = self.u.int_in_range(0..=3)?;
        let state = self.b.fresh(self.b.ty(init).clone());
        self.b.push_block();
        let counter = self.b.component(state, 0);
        let last = self.b.int(steps);
        let mut goes_on = self.b.op(Op::Lt, &[counter, last]);
        if self.u.ratio(1, 2)? {
            self.scope.push(state);
            let also = self.expr(&Type::Bool, depth - 1)?;
            self.scope.pop();
            goes_on = self.b.op(Op::And, &[goes_on, also]);
        }
        let condition = self.b.pop_block(goes_on);
        self.b.push_block();
        let counter = self.b.component(state, 0);
        let one = self.b.int(1);
        let counter = self.b.op(Op::Add, &[counter, one]);
        self.scope.push(state);
        let next = self.body(ty, depth - 1)?;
        self.scope.pop();
        let next = self.b.tuple(&[counter, next]);
        let body = self.b.pop_block(next);
        let limit = Size::constant(steps + self.u.int_in_range(0..=1)?);
        let result = self.b.compute(Expr::While(WhileLoop { limit, state, init, condition, body }));
        Ok(self.b.component(result, 1))
    }

    // Adds D⟦fun params -> body⟧, with a body of type `ty` if possible.
    fn derivative(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        let ty = if self.expressible && !ty.is_linear() { &Type::Double } else { ty };
        let mut types = vec![Type::Double];
        if self.u.ratio(1, 2)? {
            let ty = self.ty(1)?;
            if !self.expressible || ty.is_linear() {
                types.push(ty);
            }
        }
        let at = types.iter().map(|t| self.expr(t, depth)).collect::<Result<Vec<_>>>()?;
        let along = types.iter().map(|t| self.leaf(t)).collect::<Result<Vec<_>>>()?;
        let params: Vec<VarId> = types.into_iter().map(|t| self.b.fresh(t)).collect();
        let body = self.block(ty, depth, &params, None)?;
        Ok(self.b.compute(Expr::Jvp { params, body, at, along }))
    }

    // Adds a construct other than an operator that makes a value of type `ty`: a conversion, a build, a tuple.
    fn convert(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        match ty {
            Type::Double => {
                let int = self.expr(&Type::Int, depth - 1)?;
                Ok(self.b.to_real(int))
            }
            Type::Array(size, element) => {
                if let Some(n @ 1..=3) = size.as_constant()
                    && self.u.ratio(1, 2)?
                {
                    let elements = (0..n).map(|_| self.expr(element, depth - 1)).collect::<Result<Vec<_>>>()?;
                    return Ok(self.b.array(&elements));
                }
                let index = self.b.fresh(Type::Int);
                let body = self.block(element, depth - 1, &[], Some(index))?;
                Ok(self.b.compute(Expr::Build { size: size.clone(), index, body }))
            }
            Type::Tuple(fields, names) => {
                let fields = fields.iter().map(|f| self.expr(f, depth - 1)).collect::<Result<Vec<_>>>()?;
                Ok(self.tuple(&fields, names.as_ref()))
            }
            Type::Int | Type::Bool => self.leaf(ty),
        }
    }

    // Adds a part of type `ty` of a variable in scope.
    fn reach(&mut self, ty: &Type) -> Result<VarId> {
        let fitting: Vec<VarId> =
            self.scope.iter().copied().filter(|v| self.b.ty(*v) != ty && contains(self.b.ty(*v), ty)).collect();
        if fitting.is_empty() {
            return self.leaf(ty);
        }
        let from = self.choose(&fitting)?;
        self.reach_from(from, ty)
    }

    // Recursive on the type of `from`.
    fn reach_from(&mut self, from: VarId, ty: &Type) -> Result<VarId> {
        let whole = self.b.ty(from).clone();
        match &whole {
            _ if whole == *ty => Ok(from),
            Type::Tuple(fields, _) => {
                let fitting: Vec<usize> = (0..fields.len()).filter(|i| contains(&fields[*i], ty)).collect();
                if fitting.is_empty() {
                    return self.leaf(ty);
                }
                let idx = self.choose(&fitting)?;
                let component = self.b.component(from, idx);
                self.reach_from(component, ty)
            }
            Type::Array(size, _) => {
                if let Some(n) = size.as_constant() {
                    if n <= 0 {
                        return self.leaf(ty);
                    }
                    let index = self.u.int_in_range(0..=n - 1)?;
                    let index = self.b.int(index);
                    let element =
                        if self.u.arbitrary()? { self.b.get(from, index) } else { self.b.get_proved(from, index) };
                    return self.reach_from(element, ty);
                }
                let element = |g: &mut Self, index| {
                    let element = g.b.get(from, index);
                    g.reach_from(element, ty)
                };
                self.if_filled(size, element, |g| g.leaf(ty))
            }
            _ => self.leaf(ty),
        }
    }

    // if 0 < size then ... else ..., with an index modulo the size.
    fn if_filled(
        &mut self,
        size: &Size,
        then: impl FnOnce(&mut Self, VarId) -> Result<VarId>,
        otherwise: impl FnOnce(&mut Self) -> Result<VarId>,
    ) -> Result<VarId> {
        let length = self.b.size(size.clone());
        let zero = self.b.int(0);
        let condition = self.b.op(Op::Lt, &[zero, length]);
        self.b.push_block();
        let index = self.leaf(&Type::Int)?;
        let index = self.b.op(Op::Mod, &[index, length]);
        let result = then(self, index)?;
        let then = self.b.pop_block(result);
        self.b.push_block();
        let result = otherwise(self)?;
        let otherwise = self.b.pop_block(result);
        Ok(self.b.compute(Expr::If { condition, then, otherwise }))
    }

    fn operator(&mut self, ty: &Type, depth: u32) -> Result<VarId> {
        let result = if *ty == Type::Bool { ops::Type::Bool } else { ops::Type::Num };
        let of_ints = *ty == Type::Int || (*ty == Type::Bool && (self.options.smooth || self.u.arbitrary()?));
        let rows: Vec<&'static Row> = ops::ROWS
            .iter()
            .filter(|row| row.result == result)
            .filter(|row| !of_ints || row.int.is_some() || !row.args.contains(&ops::Type::Num))
            .collect();
        let row = *self.u.choose(&rows)?;
        if of_ints {
            return self.operator_of_ints(row, depth);
        }
        let mut ways = ways(row);
        if self.options.smooth && row.cost != CostClass::Add {
            // Unsqueezed operands grow without bound in loops.
            ways.retain(|way| !way.contains(&Squeeze::No) || row.args.contains(&ops::Type::Bool));
        }
        if ways.is_empty() || (!self.options.smooth && self.u.ratio(1, 4)?) {
            if self.options.smooth {
                return self.leaf(ty);
            }
            ways = vec![vec![Squeeze::No; row.args.len()]];
        }
        let n_ways = ways.len();
        let way = ways.swap_remove(self.u.choose_index(n_ways)?);
        let mut args = Vec::new();
        for (kind, squeeze) in row.args.iter().zip(way) {
            args.push(match kind {
                ops::Type::Bool => self.expr(&Type::Bool, depth - 1)?,
                ops::Type::Num => {
                    let arg = self.expr(&Type::Double, depth - 1)?;
                    self.squeeze(squeeze, arg)?
                }
            });
        }
        Ok(self.b.op(row.op, &args))
    }

    fn squeeze(&mut self, squeeze: Squeeze, x: VarId) -> Result<VarId> {
        let (scale, shift) = match squeeze {
            Squeeze::No => return Ok(x),
            Squeeze::Natural => {
                let order = f64::from(self.u.int_in_range(0..=3)?);
                return Ok(self.b.real(order));
            }
            Squeeze::Bounded => (2.0, 0.0),
            Squeeze::Positive => (0.9, 1.0),
            Squeeze::Unit => (0.9, 0.0),
            Squeeze::AboveOne => (0.9, 2.0),
        };
        let tanh = self.b.op(Op::Tanh, &[x]);
        let scale = self.b.real(scale);
        let scaled = self.b.op(Op::Mul, &[scale, tanh]);
        if shift == 0.0 {
            return Ok(scaled);
        }
        let shift = self.b.real(shift);
        Ok(self.b.op(Op::Add, &[shift, scaled]))
    }

    // Adds an operator on Int and Bool. Values that could grow in a loop are taken modulo a small number.
    fn operator_of_ints(&mut self, row: &Row, depth: u32) -> Result<VarId> {
        if row.result == ops::Type::Num && self.u.ratio(1, LARGE)? {
            let steps = self.u.int_in_range(0..=2)?;
            let large = self.large(steps)?;
            // A smooth function would lose its digits.
            return if !self.options.smooth && self.u.ratio(1, 3)? { Ok(large) } else { self.reduced(large) };
        }
        let mut args = Vec::new();
        let mut small = true;
        for kind in row.args {
            args.push(match kind {
                ops::Type::Bool => self.expr(&Type::Bool, depth - 1)?,
                ops::Type::Num if row.result == ops::Type::Bool && self.u.ratio(1, LARGE)? => self.large(1)?,
                ops::Type::Num => {
                    let int = self.expr(&Type::Int, depth - 1)?;
                    small &= self.naturals.contains(&int);
                    int
                }
            });
        }
        if matches!(row.op, Op::Quot | Op::Mod) {
            let divisor = self.choose(&[3, 1, 2, 7, -2, -1])?;
            args[1] = self.b.int(divisor);
            small = true;
        }
        let result = self.b.op(row.op, &args);
        if small
            || row.result == ops::Type::Bool
            || self.b.vars[result].value.as_ref().is_some_and(|v| v.as_constant().is_some())
        {
            return Ok(result);
        }
        self.reduced(result)
    }
}

fn contains(whole: &Type, part: &Type) -> bool {
    whole == part
        || match whole {
            Type::Array(_, element) => contains(element, part),
            Type::Tuple(fields, _) => fields.iter().any(|f| contains(f, part)),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_that_is_differentiable_somewhere_has_a_smooth_way() {
        let without: Vec<&str> = ops::ROWS.iter().filter(|row| ways(row).is_empty()).map(|row| row.name).collect();
        assert_eq!(without, ["div", "mod", "floor", "ceil", "binade"]);
    }
}
