//! The IR: functions, blocks, statements.
//!
//! A [`Block`] is a list of statements, each of which binds one variable to one operation on
//! variables, and a result. Loops, branches and differentiated functions have blocks of their own,
//! which see the variables of the blocks around them. Long programs are therefore long lists, and
//! only nesting that a person wrote as nesting nests.
//!
//! Invariants (the verifier checks them):
//! - every variable is bound once in a function, before its uses, and used only where it is in scope;
//! - operands have the types that the operation asks for; types are exactly those of [`Var::ty`];
//! - sizes are over base variables in scope; no result leaves the scope of a variable of its type.

use crate::{Custom, Size, Type};
use chainrule_base::{Arena, Name, Span, define_id};
use chainrule_ops::Op;
use smallvec::{SmallVec, smallvec};

define_id! {
    /// A variable of a [`Function`].
    pub struct VarId = "v";
}

/// A function: parameters, what must hold of them, a body.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Its name in the program.
    pub name: Name,
    /// All variables.
    pub vars: Arena<VarId, Var>,
    /// Size parameters, of type `Int`: bound by the shapes of the arguments. Each is a whole dimension
    /// of the type of some parameter; the first such dimension binds it, the others are checked.
    pub sizes: Vec<VarId>,
    /// Parameters in order.
    pub params: Vec<VarId>,
    /// What must hold at entry beyond the types of the parameters.
    pub requires: Vec<Requirement>,
    /// What it computes.
    pub body: Block,
}

/// A variable.
#[derive(Clone, PartialEq, Debug)]
pub struct Var {
    /// Its type.
    pub ty: Type,
    /// What the program calls it, if it does.
    pub name: Option<Name>,
    /// Where the program makes it, if it does.
    pub span: Option<Span>,
    /// For an `Int` that is a polynomial of base variables: that polynomial. `None` for base variables.
    pub value: Option<Size>,
}

/// A condition on sizes and `Int` parameters that is checked at entry: `size >= 0`, or `size == 0`.
#[derive(Clone, PartialEq, Debug)]
pub struct Requirement {
    /// What must be zero, or not negative; over size parameters and `Int` parameters only.
    pub size: Size,
    /// Whether it must be exactly zero.
    pub exactly_zero: bool,
    /// What is wrong when it does not hold, in words: `v2 is shorter than v1`.
    pub message: String,
    /// What asks for it.
    pub span: Option<Span>,
}

/// Statements and a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// In order.
    pub stmts: Vec<Stmt>,
    /// What the block is worth: a variable bound in it or around it.
    pub result: VarId,
}

impl Block {
    /// Tells `see` every variable that its statements use, directly or in their blocks, and its result.
    pub fn for_each_use(&self, see: &mut impl FnMut(VarId)) {
        self.stmts.iter().for_each(|stmt| stmt.expr.for_each_use(see));
        see(self.result);
    }
}

/// `var = expr`.
#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    /// What it binds.
    pub var: VarId,
    /// To what.
    pub expr: Expr,
    /// What in the program asks for it.
    pub span: Option<Span>,
}

/// The operands of a scalar operator: no memory of their own, for no operator has more.
pub type Operands = SmallVec<[VarId; 4]>;

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A double.
    Real(f64),
    /// A truth value.
    Bool(bool),
    /// An integer: a constant, a length, an index computation that is a polynomial.
    Size(Size),
    /// A scalar operator. Numbers are all `Double`, or all `Int` where the operator has an integer value.
    Op(Op, Operands),
    /// An `Int` as a `Double`.
    ToReal(VarId),
    /// `build size (fun index -> body)`: the array of the values of `body` at 0, ..., size - 1.
    Build {
        /// How many elements; not negative.
        size: Size,
        /// The index, bound in `body`.
        index: VarId,
        /// An element.
        body: Block,
    },
    /// `ifold (fun state index -> body) init count`: `init` after `count` steps.
    Fold {
        /// How many steps; none when negative.
        count: Size,
        /// The step's number from 0, bound in `body`.
        index: VarId,
        /// The state before the step, bound in `body`.
        state: VarId,
        /// The state before the first step.
        init: VarId,
        /// The state after the step; of the same type.
        body: Block,
    },
    /// `sum count (fun index -> body)`: the sum of the values of `body`, elementwise, from zero, in order.
    /// Where `body` is an array, code adds into one array in place; what it adds may be sparse
    /// ([`Self::OneHot`], [`Self::Zero`]), and then only that is touched.
    Sum {
        /// How many terms; none when negative.
        count: Size,
        /// The index, bound in `body`.
        index: VarId,
        /// A term; of a [linear type](Type::is_linear).
        body: Block,
    },
    /// The loop of which [`Self::Build`], [`Self::Fold`] and [`Self::Sum`] are special cases: each iteration
    /// makes the next state, an element of an array, and a term of a sum. Its value is the triple of the last
    /// state, the array and the sum.
    Loop {
        /// How many iterations; not negative.
        count: Size,
        /// The iteration's number from 0, bound in `body`.
        index: VarId,
        /// The state before the iteration, bound in `body`.
        state: VarId,
        /// The state before the first iteration.
        init: VarId,
        /// A triple: the state after the iteration, of the same type; an element; a term, of a
        /// [linear type](Type::is_linear).
        body: Block,
    },
    /// The zero of the [linear type](Type::is_linear) of the statement's variable.
    Zero,
    /// The array of the statement's variable's type, linear, that is `value` at `index` and zero elsewhere.
    OneHot {
        /// From 0; an error where it is out of range.
        index: VarId,
        /// The element there.
        value: VarId,
        /// Whether the index was proved to be in range; otherwise it is checked when the program runs.
        proved: bool,
    },
    /// The elementwise sum of two values of one linear type that is an array or a tuple. (That of two
    /// `Double`s is an operator.)
    Plus(VarId, VarId),
    /// `while`: the first state for which `condition` does not hold. It is an error when that takes
    /// more than `limit` steps.
    While {
        /// The largest number of steps.
        limit: Size,
        /// The state, bound in `condition` and in `body`.
        state: VarId,
        /// The state before the first step.
        init: VarId,
        /// Whether to take another step; `Bool`.
        condition: Block,
        /// The state after the step; of the same type.
        body: Block,
    },
    /// Lazy: only the branch that is chosen is computed.
    If {
        /// Of type `Bool`.
        condition: VarId,
        /// Where it holds.
        then: Block,
        /// Where it does not; of the same type.
        otherwise: Block,
    },
    /// `array[index]`.
    Get {
        /// The array.
        array: VarId,
        /// From 0.
        index: VarId,
        /// Whether the index was proved to be in range; otherwise it is checked when the program runs.
        proved: bool,
    },
    /// An array written out; at least one element.
    Array(Vec<VarId>),
    /// A tuple or record; the type of the statement's variable says which.
    Tuple(Vec<VarId>),
    /// A component of a tuple or record, from 0.
    Component(VarId, usize),
    /// D⟦fun params -> body⟧ applied to dual numbers: the value of `body` at `params = at`, with its
    /// derivative along `along`, as a dual number of the type [`Type::dual`] of the body's.
    /// Variables of the blocks around it are constants in it: that is what keeps nested derivatives
    /// apart. Where `body`'s operators are not differentiable, the operator table's conventions hold.
    Jvp {
        /// Bound in `body`.
        params: Vec<VarId>,
        /// What is differentiated.
        body: Block,
        /// The point; as many as there are parameters, of their types.
        at: Vec<VarId>,
        /// The direction; of the same types (`Int` and `Bool` in it are not looked at).
        along: Vec<VarId>,
    },
    /// The transpose of the derivative of `fun params -> body` at `params = at`, applied to a cotangent of
    /// its result: a tuple of the value of `body` and, for each parameter, its cotangent, of its type's
    /// [tangent type](Type::tangent). Otherwise as [`Self::Jvp`].
    Vjp {
        /// Bound in `body`; there is a `Double` in the type of each.
        params: Vec<VarId>,
        /// What is differentiated; there is a `Double` in its type.
        body: Block,
        /// The point; as many as there are parameters, of their types.
        at: Vec<VarId>,
        /// Of the tangent type of the body's.
        cotangent: VarId,
    },
    /// A function that states its own derivative, applied; or `constant`, whose derivative is zero.
    Custom(Box<Custom>),
    /// In a rule of a [`Custom`]: the function itself, applied to another point of the same type.
    Again {
        /// The [`crate::Rule::me`] of the rule.
        me: VarId,
        /// The point.
        at: VarId,
    },
}

impl Expr {
    /// `op` of `args`.
    #[must_use]
    #[inline]
    pub fn op(op: Op, args: &[VarId]) -> Self {
        Self::Op(op, Operands::from_slice(args))
    }

    /// Whether it has no blocks, and so binds nothing.
    #[must_use]
    #[inline]
    pub const fn is_leaf(&self) -> bool {
        matches!(
            self,
            Self::Real(_)
                | Self::Bool(_)
                | Self::Size(_)
                | Self::Op(..)
                | Self::ToReal(_)
                | Self::Get { .. }
                | Self::Array(_)
                | Self::Tuple(_)
                | Self::Component(..)
                | Self::Zero
                | Self::OneHot { .. }
                | Self::Plus(..)
                | Self::Again { .. }
        )
    }

    /// The blocks inside it.
    #[must_use]
    pub fn blocks(&self) -> SmallVec<[&Block; 2]> {
        match self {
            Self::Build { body, .. }
            | Self::Fold { body, .. }
            | Self::Sum { body, .. }
            | Self::Loop { body, .. }
            | Self::Jvp { body, .. }
            | Self::Vjp { body, .. } => smallvec![body],
            Self::While { condition, body, .. } => smallvec![condition, body],
            Self::If { then, otherwise, .. } => smallvec![then, otherwise],
            Self::Custom(custom) => custom.blocks(),
            _ => SmallVec::new(),
        }
    }

    /// As [`Self::blocks`], to be changed in place.
    #[must_use]
    pub fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        match self {
            Self::Build { body, .. }
            | Self::Fold { body, .. }
            | Self::Sum { body, .. }
            | Self::Loop { body, .. }
            | Self::Jvp { body, .. }
            | Self::Vjp { body, .. } => smallvec![body],
            Self::While { condition, body, .. } => smallvec![condition, body],
            Self::If { then, otherwise, .. } => smallvec![then, otherwise],
            Self::Custom(custom) => custom.blocks_mut(),
            _ => SmallVec::new(),
        }
    }

    /// The variables it uses directly: operands, and variables in its sizes, but not what its blocks use.
    #[must_use]
    pub fn operands(&self) -> SmallVec<[VarId; 4]> {
        let mut operands = SmallVec::new();
        self.for_each_operand(&mut |var| operands.push(var));
        operands
    }

    /// Tells `see` what [`Self::operands`] lists, in its order.
    pub fn for_each_operand(&self, see: &mut impl FnMut(VarId)) {
        fn sizes(size: &Size, see: &mut impl FnMut(VarId)) {
            match (size.as_constant(), size.as_var()) {
                (Some(_), _) => {}
                (_, Some(var)) => see(var),
                _ => size.vars().into_iter().for_each(see),
            }
        }
        match self {
            Self::Real(_) | Self::Bool(_) | Self::Zero => {}
            Self::Size(size) | Self::Build { size, .. } | Self::Sum { count: size, .. } => sizes(size, see),
            Self::Op(_, args) => args.iter().for_each(|arg| see(*arg)),
            Self::Array(args) | Self::Tuple(args) => args.iter().for_each(|arg| see(*arg)),
            Self::ToReal(v) | Self::Component(v, _) => see(*v),
            Self::Fold { count: size, init, .. }
            | Self::Loop { count: size, init, .. }
            | Self::While { limit: size, init, .. } => {
                sizes(size, see);
                see(*init);
            }
            Self::If { condition, .. } => see(*condition),
            Self::Get { array: a, index: b, .. } | Self::OneHot { index: a, value: b, .. } | Self::Plus(a, b) => {
                see(*a);
                see(*b);
            }
            Self::Jvp { at, along, .. } => at.iter().chain(along).for_each(|v| see(*v)),
            Self::Vjp { at, cotangent, .. } => at.iter().chain([cotangent]).for_each(|v| see(*v)),
            Self::Custom(custom) => see(custom.at),
            Self::Again { at, .. } => see(*at),
        }
    }

    /// Tells `see` every variable that it uses, directly or in its blocks.
    pub fn for_each_use(&self, see: &mut impl FnMut(VarId)) {
        self.for_each_operand(see);
        if !self.is_leaf() {
            self.blocks().into_iter().for_each(|block| block.for_each_use(see));
        }
    }

    /// Each operand replaced by `var(operand)` and each size by `size(size)`; binders and blocks stay.
    pub fn map_operands(&mut self, var: &impl Fn(VarId) -> VarId, size: &impl Fn(&Size) -> Size) {
        match self {
            Self::Real(_) | Self::Bool(_) | Self::Zero => {}
            Self::Size(s) | Self::Build { size: s, .. } | Self::Sum { count: s, .. } => *s = size(s),
            Self::Op(_, args) => args.iter_mut().for_each(|arg| *arg = var(*arg)),
            Self::Array(args) | Self::Tuple(args) => args.iter_mut().for_each(|arg| *arg = var(*arg)),
            Self::ToReal(arg) | Self::Component(arg, _) => *arg = var(*arg),
            Self::Fold { count: s, init, .. }
            | Self::Loop { count: s, init, .. }
            | Self::While { limit: s, init, .. } => {
                *s = size(s);
                *init = var(*init);
            }
            Self::If { condition, .. } => *condition = var(*condition),
            Self::Get { array, index, .. } => {
                *array = var(*array);
                *index = var(*index);
            }
            Self::OneHot { index, value, .. } => {
                *index = var(*index);
                *value = var(*value);
            }
            Self::Plus(a, b) => {
                *a = var(*a);
                *b = var(*b);
            }
            Self::Vjp { at, cotangent, .. } => at.iter_mut().chain([cotangent]).for_each(|arg| *arg = var(*arg)),
            Self::Jvp { at, along, .. } => at.iter_mut().chain(along).for_each(|arg| *arg = var(*arg)),
            Self::Custom(custom) => custom.at = var(custom.at),
            Self::Again { at, .. } => *at = var(*at),
        }
    }

    /// The variables it binds in its blocks.
    #[must_use]
    pub fn binders(&self) -> SmallVec<[VarId; 2]> {
        match self {
            Self::Build { index, .. } | Self::Sum { index, .. } => smallvec![*index],
            Self::Fold { index, state, .. } | Self::Loop { index, state, .. } => smallvec![*index, *state],
            Self::While { state, .. } => smallvec![*state],
            Self::Jvp { params, .. } | Self::Vjp { params, .. } => SmallVec::from_slice(params),
            Self::Custom(custom) => custom.binders(),
            _ => SmallVec::new(),
        }
    }
}

impl Function {
    /// The type of the result.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.vars[self.body.result].ty
    }

    /// The type of `var`.
    #[must_use]
    pub fn ty(&self, var: VarId) -> &Type {
        &self.vars[var].ty
    }

    /// Adds a variable of type `ty` without a name.
    pub fn fresh(&mut self, ty: Type) -> VarId {
        self.vars.push(Var { ty, name: None, span: None, value: None })
    }
}
