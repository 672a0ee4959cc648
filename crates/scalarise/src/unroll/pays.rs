//! Estimate of whether straight-line code of an array program pays, before it is generated.
//!
//! In: a function whose sizes are all known. Out: the number of operations that it has unrolled, counting equal ones
//! each time, and the cost of its loops in operations of weight 1. Straight-line code costs the weight of its
//! operations. Linear in the function.
//!
//! | | straight-line code | loops |
//! | --- | --- | --- |
//! | operator | its weight; 0 for constants | its weight |
//! | element that is read or stored | 0: it is in a register | `ACCESS` |
//! | loop | its iterations | `ENTRY`, its iterations, and `STEP` for each |
//! | independent iterations, many of them | the same | [`LANE_SPEEDUP`] iterations in the time of one |
//! | branch on data | both sides | the more expensive side |

use chainrule_base::Arena;
use chainrule_ir::{Block, Expr, Function, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_ops::{CostClass, Op};

/// Maximum number of operations of a function that is unrolled without a request. Deriving straight-line code of so
/// many takes some tens of milliseconds for a gradient.
pub const MAX_OPERATIONS: f64 = 2_000.0;

/// The same for a function with given sizes, which express a preference for straight-line code.
pub const MAX_OPERATIONS_OF_GIVEN_SIZES: f64 = 200_000.0;

/// The same for a function whose loops are estimated to take less time, up to [`LANE_SPEEDUP`] times: its derivatives
/// may still take less time as straight-line code.
pub const MAX_OPERATIONS_NEAR_LOOPS: f64 = 256.0;

/// Maximum number of comparisons and selections of a function with integers that data select, such as rows of pivots:
/// all alternatives are computed. Systems of up to four equations are below it, of six above it.
pub const MAX_SELECTIONS: u64 = 256;

/// The same for its derivatives, which are longer than the library's rules for large systems: systems of three
/// equations are below it, inverses of three rows above it.
pub const MAX_DIFFERENTIATED_SELECTIONS: u64 = 90;

/// Maximum number of graph nodes for each operation of these: operations, constants and inputs.
pub const NODES_PER_OPERATION: usize = 5;

/// Maximum number of elements of the arguments, and of a dense derivative, for the same.
pub const MAX_ELEMENTS: usize = 4_096;

/// Cost of reading or storing an element of an array.
const ACCESS: f64 = 1.0;

/// Cost of a loop in addition to its iterations.
const ENTRY: f64 = 5.0;

/// Cost of an iteration in addition to its body.
const STEP: f64 = 1.0;

/// Minimum trip count of loops that are estimated as lane loops: two rounds of eight.
const LANE_TRIPS: f64 = 16.0;

/// Minimum trip counts of loops that may take less time in lanes than straight-line code: a round and a half of eight
/// lanes; and with calls, which dominate the time, half a round.
const WIDE_TRIPS: f64 = 12.0;
const CALL_TRIPS: f64 = 4.0;

/// Speedup of a lane loop, on a processor with lanes of four numbers.
pub const LANE_SPEEDUP: f64 = 4.0;

/// Assumed trip count of a loop whose count is unknown here, but may be known when it is unrolled.
const UNKNOWN_TRIPS: f64 = 8.0;

/// Returns whether a value of type `ty` has at most [`MAX_ELEMENTS`] elements; all sizes are known.
pub fn has_few_elements(ty: &Type) -> bool {
    fn elements(ty: &Type) -> f64 {
        match ty {
            Type::Double | Type::Int | Type::Bool => 1.0,
            Type::Array(size, element) => size.as_constant().map_or(f64::INFINITY, |n| n as f64) * elements(element),
            Type::Tuple(fields, _) => fields.iter().map(elements).sum(),
        }
    }
    elements(ty) <= MAX_ELEMENTS as f64
}

/// Costs of one evaluation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Estimate {
    /// Operations of straight-line code, equal ones counted each time.
    pub operations: f64,
    /// Cost of loops.
    pub loops: f64,
    /// Whether there are calls of functions.
    calls: bool,
    /// Whether a loop may pay in lanes: it has at least `WIDE_TRIPS` iterations, or `CALL_TRIPS` with calls.
    pub lanes: bool,
    /// Whether data select integers.
    pub chooses: bool,
}

impl Estimate {
    /// Estimates `function`.
    pub fn of(function: &Function) -> Self {
        let n = function.vars.len();
        let none = || Arena::filled(n, false);
        let bounds = Arena::filled(n, None);
        let mut walk = Walk { function, bounds, is_constant: none(), is_whole: none(), is_data: none() };
        walk.block(&function.body, 1.0)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            loops: self.loops + other.loops,
            calls: self.calls || other.calls,
            lanes: self.lanes || other.lanes,
            chooses: self.chooses || other.chooses,
        }
    }
}

struct Walk<'a> {
    function: &'a Function,
    /// Upper bounds of integers, if known.
    bounds: Arena<VarId, Option<f64>>,
    /// Whether each double is constant in straight-line code: literals, integers, and values computed from them alone.
    is_constant: Arena<VarId, bool>,
    /// Whether each double is a whole number, a power to which is a few products.
    is_whole: Arena<VarId, bool>,
    /// Whether each truth value depends on doubles.
    is_data: Arena<VarId, bool>,
}

impl Walk<'_> {
    /// Returns an upper bound of `size`; integers are not negative.
    fn bound(&self, size: &Size) -> Option<f64> {
        let mut sum = 0.0;
        for (monomial, factor) in size.terms() {
            let mut product = factor as f64;
            for var in monomial {
                let bound = self.bounds[*var]?;
                product = if product < 0.0 { 0.0 } else { product * bound };
            }
            sum += product;
        }
        Some(sum.max(0.0))
    }

    /// Returns the costs of `block`, of which `speedup` evaluations take the time of one. Recursive on the nesting of
    /// blocks.
    fn block(&mut self, block: &Block, speedup: f64) -> Estimate {
        let mut sum = Estimate::default();
        for stmt in &block.stmts {
            sum = sum.plus(self.expr(&stmt.expr, stmt.var, speedup));
        }
        sum
    }

    fn expr(&mut self, expr: &Expr, var: VarId, speedup: f64) -> Estimate {
        let is_double = |var: &VarId| *self.function.ty(*var) == Type::Double;
        let access = Estimate { loops: ACCESS / speedup, ..Estimate::default() };
        match expr {
            Expr::Real(_) | Expr::ToReal(_) => {
                self.is_constant[var] = true;
                self.is_whole[var] = !matches!(expr, Expr::Real(x) if x.fract() != 0.0);
                Estimate::default()
            }
            // Straight-line code has no integers that data decide.
            Expr::ToInt(_) => Estimate { operations: f64::MAX, ..Estimate::default() },
            Expr::Op(op, args) if args.iter().any(is_double) => {
                self.is_data[var] = true;
                let weight = f64::from(op.row().weight);
                let is_known = |arg: &VarId| self.is_constant[*arg] || *self.function.ty(*arg) == Type::Int;
                let loops = weight / speedup;
                if args.iter().all(is_known) {
                    self.is_constant[var] = true;
                    return Estimate { loops, ..Estimate::default() };
                }
                let is_power = *op == Op::Pow && args.last().is_some_and(|exponent| self.is_whole[*exponent]);
                let calls = op.row().cost == CostClass::Call && !is_power;
                Estimate { operations: 1.0, loops, calls, ..Estimate::default() }
            }
            Expr::Size(size) => {
                self.bounds[var] = self.bound(size);
                Estimate::default()
            }
            Expr::Op(op, args) => {
                self.is_data[var] = args.iter().any(|arg| self.is_data[*arg]);
                let mut bounds = args.iter().map(|arg| self.bounds[*arg]);
                self.bounds[var] = match op {
                    Op::Min => bounds.flatten().reduce(f64::min),
                    Op::Max => bounds.try_fold(0.0, |most: f64, bound| Some(most.max(bound?))),
                    _ => None,
                };
                Estimate::default()
            }
            Expr::Get { .. } if is_double(&var) => access,
            Expr::Build { size: count, index, body } | Expr::Sum { count, index, body } => {
                let trips = self.bound(count).unwrap_or(UNKNOWN_TRIPS);
                let speedup = if trips >= LANE_TRIPS { LANE_SPEEDUP } else { speedup };
                self.bounds[*index] = Some((trips - 1.0).max(0.0));
                let is_stored = matches!(expr, Expr::Build { .. }) && is_double(&body.result);
                let one = self.block(body, speedup);
                let step = (STEP + if is_stored { ACCESS } else { 0.0 }) / speedup;
                times(one, trips, step)
            }
            Expr::Fold(StateLoop { count, index, body, .. }) | Expr::Loop(StateLoop { count, index, body, .. }) => {
                let trips = self.bound(count).unwrap_or(UNKNOWN_TRIPS);
                self.bounds[*index] = Some((trips - 1.0).max(0.0));
                let one = self.block(body, speedup);
                times(one, trips, STEP / speedup)
            }
            Expr::While(WhileLoop { limit, condition, body, .. }) => {
                let trips = self.bound(limit).map_or(UNKNOWN_TRIPS, |limit| limit.min(UNKNOWN_TRIPS));
                let one = self.block(condition, speedup).plus(self.block(body, speedup));
                times(one, trips, STEP / speedup)
            }
            Expr::If { condition, then, otherwise } => {
                let (a, b) = (self.block(then, speedup), self.block(otherwise, speedup));
                let both = a.plus(b);
                let mut has_int = false;
                self.function.ty(var).for_each_leaf(&mut |leaf| has_int |= *leaf.scalar == Type::Int);
                let chooses = both.chooses || self.is_data[*condition] && has_int;
                Estimate { loops: a.loops.max(b.loops) + 1.0 / speedup, chooses, ..both }
            }
            other => other.blocks().into_iter().fold(Estimate::default(), |sum, b| sum.plus(self.block(b, speedup))),
        }
    }
}

fn times(one: Estimate, trips: f64, step: f64) -> Estimate {
    let may_pay = trips >= WIDE_TRIPS || trips >= CALL_TRIPS && one.calls;
    Estimate {
        operations: one.operations * trips,
        loops: (one.loops + step) * trips + ENTRY,
        lanes: one.lanes || may_pay,
        ..one
    }
}
