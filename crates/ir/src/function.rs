//! The IR: functions, blocks, statements.
//!
//! A [`Block`] is a list of statements, each of which binds one variable to one operation on variables, and a result.
//! Loops, branches and differentiated functions have blocks of their own, which see the variables of the enclosing
//! blocks. Long programs are therefore long lists, and only nesting in the source is nesting here.
//!
//! Invariants (the verifier checks them):
//! - every variable is bound once in a function, before its uses, and only used in its scope;
//! - operands have the types required by the operation; types are exactly those of [`Var::ty`];
//! - sizes are over base variables in scope; no result leaves the scope of a variable of its type.

use crate::{Custom, EqualSizes, Size, Type};
use chainrule_base::{Arena, Name, Span, define_id};
use chainrule_ops::Op;
use smallvec::{SmallVec, smallvec};

define_id! {
    /// A variable of a [`Function`].
    pub struct VarId = "v";
}

/// A function: parameters, requirements, a body.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Name in the program.
    pub name: Name,
    /// All variables.
    pub vars: Arena<VarId, Var>,
    /// Size parameters, of type `Int`: bound by the shapes of the arguments. Each is a whole dimension of the type of
    /// some parameter; the first such dimension binds it, the others are checked.
    pub sizes: Vec<VarId>,
    /// Parameters in order.
    pub params: Vec<VarId>,
    /// Requirements at entry besides the types of the parameters.
    pub requires: Vec<Requirement>,
    /// Body.
    pub body: Block,
}

/// A variable.
#[derive(Clone, PartialEq, Debug)]
pub struct Var {
    /// Its type.
    pub ty: Type,
    /// Name in the program, if any.
    pub name: Option<Name>,
    /// Source span, if any.
    pub span: Option<Span>,
    /// Value of an `Int` that is a polynomial of base variables; `None` for base variables.
    pub value: Option<Size>,
}

/// A condition on sizes and `Int` parameters that is checked at entry: `size >= 0`, or `size == 0`.
#[derive(Clone, PartialEq, Debug)]
pub struct Requirement {
    /// Polynomial that must be zero, or nonnegative; only over size parameters and `Int` parameters.
    pub size: Size,
    /// Whether it must be zero.
    pub exactly_zero: bool,
    /// Message if it does not hold: `v2 is shorter than v1`.
    pub message: String,
    /// Source span of its origin.
    pub span: Option<Span>,
}

/// Statements and a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// In order.
    pub stmts: Vec<Stmt>,
    /// Value of the block: a variable bound in it or around it.
    pub result: VarId,
}

impl Block {
    /// Returns the expression that one of its statements binds to `var`. Linear, from the end.
    #[must_use]
    pub fn bound(&self, var: VarId) -> Option<&Expr> {
        self.stmts.iter().rev().find(|stmt| stmt.var == var).map(|stmt| &stmt.expr)
    }

    /// Returns whether each index, also of nested blocks, is proved to be in range; in an order that depends on the
    /// form of the block only.
    #[must_use]
    pub fn proofs(&self) -> Vec<bool> {
        let (mut open, mut found) = (vec![self], Vec::new());
        while let Some(block) = open.pop() {
            for stmt in &block.stmts {
                if let Expr::Get { proved, .. } | Expr::OneHot { proved, .. } = &stmt.expr {
                    found.push(*proved);
                }
                open.extend(stmt.expr.blocks());
            }
        }
        found
    }

    /// Marks all indices, also of nested blocks, as not proved to be in range.
    pub fn forget_proofs(&mut self) {
        let mut open = vec![self];
        while let Some(block) = open.pop() {
            for stmt in &mut block.stmts {
                if let Expr::Get { proved, .. } | Expr::OneHot { proved, .. } = &mut stmt.expr {
                    *proved = false;
                }
                open.extend(stmt.expr.blocks_mut());
            }
        }
    }

    /// Calls `see` for every variable that its statements use, directly or in their blocks, and for its result.
    pub fn for_each_use(&self, see: &mut impl FnMut(VarId)) {
        self.stmts.iter().for_each(|stmt| stmt.expr.for_each_use(see));
        see(self.result);
    }
}

/// `var = expr`.
#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    /// Bound variable.
    pub var: VarId,
    /// Bound expression.
    pub expr: Expr,
    /// Source span.
    pub span: Option<Span>,
}

/// Operands of a scalar operator, without heap memory, because no operator has more.
pub type Operands = SmallVec<[VarId; 4]>;

/// A loop that carries a state from one iteration to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct StateLoop {
    /// Number of iterations; none if negative.
    pub count: Size,
    /// Number of the iteration from 0, bound in `body`.
    pub index: VarId,
    /// State before the iteration, bound in `body`.
    pub state: VarId,
    /// State before the first iteration.
    pub init: VarId,
    /// Result of an iteration: the next state, or a triple that starts with it.
    pub body: Block,
}

/// A loop that runs while a condition on its state holds; more than `limit` steps are an error.
#[derive(Clone, PartialEq, Debug)]
pub struct WhileLoop {
    /// Maximum number of steps.
    pub limit: Size,
    /// State before the step, bound in `condition` and in `body`.
    pub state: VarId,
    /// State before the first step.
    pub init: VarId,
    /// Whether to take another step; `Bool`.
    pub condition: Block,
    /// State after the step; of the same type.
    pub body: Block,
}

/// An operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A double.
    Real(f64),
    /// A truth value.
    Bool(bool),
    /// An integer: a constant, a length, an index computation that is a polynomial.
    Size(Size),
    /// A scalar operator. Numbers are all `Double`, or all `Int` if the operator has an integer value.
    Op(Op, Operands),
    /// Conversion of an `Int` to a `Double`.
    ToReal(VarId),
    /// Conversion of a `Double` to an `Int`: rounded towards zero; the least `Int` for NaN and beyond 64 bits.
    ToInt(VarId),
    /// `build size (fun index -> body)`: the array of the values of `body` at 0, ..., size - 1.
    Build {
        /// Number of elements; not negative.
        size: Size,
        /// The index, bound in `body`.
        index: VarId,
        /// Element.
        body: Block,
    },
    /// `ifold (fun state index -> body) init count`: `init` after `count` steps; `body` is the state after a step.
    Fold(StateLoop),
    /// `sum count (fun index -> body)`: the sum of the values of `body`, elementwise, from zero, in order. If `body` is
    /// an array, code accumulates into one array in place; terms may be sparse ([`Self::OneHot`], [`Self::Zero`]), and
    /// then only their nonzero elements are accessed.
    Sum {
        /// Number of terms; none if negative.
        count: Size,
        /// The index, bound in `body`.
        index: VarId,
        /// Term; of a [linear type](Type::is_linear).
        body: Block,
    },
    /// The general loop, of which [`Self::Build`], [`Self::Fold`] and [`Self::Sum`] are special cases: each iteration
    /// makes the next state, an element of an array, and a term of a sum. Its value is the triple of the last state,
    /// the array and the sum; `count` is not negative. `body` is a triple: the state after the iteration, an element,
    /// and a term, of a [linear type](Type::is_linear).
    Loop(StateLoop),
    /// The zero of the [linear type](Type::is_linear) of the statement's variable.
    Zero,
    /// The array of the statement's variable's type, linear, that is `value` at `index` and zero elsewhere.
    OneHot {
        /// Index from 0; an error if it is out of range.
        index: VarId,
        /// Element at the index.
        value: VarId,
        /// Whether the index was proved to be in range; otherwise it is checked at run time.
        proved: bool,
    },
    /// The elementwise sum of two values of one linear type that is an array or a tuple. (The sum of two `Double`s is
    /// an operator.)
    Plus(VarId, VarId),
    /// The first state for which a condition does not hold.
    While(WhileLoop),
    /// Lazy: only the chosen branch is computed.
    If {
        /// Condition, a `Bool`.
        condition: VarId,
        /// Branch for a true condition.
        then: Block,
        /// Branch for a false condition; of the same type.
        otherwise: Block,
    },
    /// `array[index]`.
    Get {
        /// The array.
        array: VarId,
        /// Index from 0.
        index: VarId,
        /// Whether the index was proved to be in range; otherwise it is checked at run time.
        proved: bool,
    },
    /// An array literal; at least one element.
    Array(Vec<VarId>),
    /// A tuple or record, according to the type of the statement's variable.
    Tuple(Vec<VarId>),
    /// A component of a tuple or record, from 0.
    Component(VarId, usize),
    /// D⟦fun params -> body⟧ applied to dual numbers: the value of `body` at `params = at`, with its derivative along
    /// `along`, as a dual number of the type [`Type::dual`] of the body's. Outer variables are constants in it, which
    /// separates nested derivatives. If `body`'s operators are not differentiable, the operator table's conventions
    /// hold.
    Jvp {
        /// Bound in `body`.
        params: Vec<VarId>,
        /// Differentiated body.
        body: Block,
        /// Point; as many as there are parameters, of their types.
        at: Vec<VarId>,
        /// Direction; of the same types (`Int` and `Bool` in it are ignored).
        along: Vec<VarId>,
    },
    /// The transpose of the derivative of `fun params -> body` at `params = at`, applied to a cotangent of its result:
    /// a tuple of the value of `body` and, for each parameter, its cotangent, of its type's [tangent
    /// type](Type::tangent). Otherwise as [`Self::Jvp`].
    Vjp {
        /// Bound in `body`; the type of each contains a `Double`.
        params: Vec<VarId>,
        /// Differentiated body; its type contains a `Double`.
        body: Block,
        /// Point; as many as there are parameters, of their types.
        at: Vec<VarId>,
        /// Cotangent; of the tangent type of the body's.
        cotangent: VarId,
    },
    /// A function with its own derivative, applied; or `constant`, whose derivative is zero.
    Custom(Box<Custom>),
    /// The function itself, inside a rule of a [`Custom`], applied to another point of the same type.
    Again {
        /// The [`crate::Rule::me`] of the rule.
        me: VarId,
        /// The point.
        at: VarId,
    },
}

/// Build that copies an array but for one element ([`Expr::changed_element`]).
#[derive(Clone, Copy, Debug)]
pub struct ChangedElement<'e> {
    /// Array that is copied.
    pub array: VarId,
    /// Index of the element.
    pub at: VarId,
    /// New element.
    pub value: VarId,
    /// Block that computes the new element.
    pub block: &'e Block,
}

impl Expr {
    /// Returns the operation `op` of `args`.
    #[must_use]
    #[inline]
    pub fn op(op: Op, args: &[VarId]) -> Self {
        Self::Op(op, Operands::from_slice(args))
    }

    /// Returns whether it has no blocks, and so binds nothing.
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
                | Self::ToInt(_)
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

    /// Returns the blocks inside it.
    #[must_use]
    pub fn blocks(&self) -> SmallVec<[&Block; 2]> {
        match self {
            Self::Build { body, .. }
            | Self::Fold(StateLoop { body, .. })
            | Self::Sum { body, .. }
            | Self::Loop(StateLoop { body, .. })
            | Self::Jvp { body, .. }
            | Self::Vjp { body, .. } => smallvec![body],
            Self::While(WhileLoop { condition, body, .. }) => smallvec![condition, body],
            Self::If { then, otherwise, .. } => smallvec![then, otherwise],
            Self::Custom(custom) => custom.blocks(),
            _ => SmallVec::new(),
        }
    }

    /// As [`Self::blocks`], for modification.
    #[must_use]
    pub fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        match self {
            Self::Build { body, .. }
            | Self::Fold(StateLoop { body, .. })
            | Self::Sum { body, .. }
            | Self::Loop(StateLoop { body, .. })
            | Self::Jvp { body, .. }
            | Self::Vjp { body, .. } => smallvec![body],
            Self::While(WhileLoop { condition, body, .. }) => smallvec![condition, body],
            Self::If { then, otherwise, .. } => smallvec![then, otherwise],
            Self::Custom(custom) => custom.blocks_mut(),
            _ => SmallVec::new(),
        }
    }

    /// Returns the variables that it uses directly: operands, and variables in its sizes, without the uses in its
    /// blocks.
    #[must_use]
    pub fn operands(&self) -> SmallVec<[VarId; 4]> {
        let mut operands = SmallVec::new();
        self.for_each_operand(&mut |var| operands.push(var));
        operands
    }

    /// Calls `see` for the variables of [`Self::operands`], in order.
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
            Self::ToReal(v) | Self::ToInt(v) | Self::Component(v, _) => see(*v),
            Self::Fold(StateLoop { count: size, init, .. })
            | Self::Loop(StateLoop { count: size, init, .. })
            | Self::While(WhileLoop { limit: size, init, .. }) => {
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

    /// Calls `see` for every variable that it uses, directly or in its blocks.
    pub fn for_each_use(&self, see: &mut impl FnMut(VarId)) {
        self.for_each_operand(see);
        if !self.is_leaf() {
            self.blocks().into_iter().for_each(|block| block.for_each_use(see));
        }
    }

    /// Replaces each operand by `var(operand)` and each size by `size(size)`; binders and blocks stay.
    pub fn map_operands(&mut self, var: &impl Fn(VarId) -> VarId, size: &impl Fn(&Size) -> Size) {
        match self {
            Self::Real(_) | Self::Bool(_) | Self::Zero => {}
            Self::Size(s) | Self::Build { size: s, .. } | Self::Sum { count: s, .. } => *s = size(s),
            Self::Op(_, args) => args.iter_mut().for_each(|arg| *arg = var(*arg)),
            Self::Array(args) | Self::Tuple(args) => args.iter_mut().for_each(|arg| *arg = var(*arg)),
            Self::ToReal(arg) | Self::ToInt(arg) | Self::Component(arg, _) => *arg = var(*arg),
            Self::Fold(StateLoop { count: s, init, .. })
            | Self::Loop(StateLoop { count: s, init, .. })
            | Self::While(WhileLoop { limit: s, init, .. }) => {
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

    /// Returns the change if this build copies an array but for one element: `build n (fun i -> if i == j then e else
    /// a[i])`, where `j` and `a` come from outside.
    #[must_use]
    pub fn changed_element(&self) -> Option<ChangedElement<'_>> {
        let Self::Build { index, body, .. } = self else { return None };
        let (condition, block, value, otherwise) = match body.bound(body.result)? {
            Self::If { condition, then, otherwise } => {
                let kept = otherwise.bound(otherwise.result).or_else(|| body.bound(otherwise.result));
                (*condition, then, then.result, kept?)
            }
            Self::Op(Op::Select, args) => (args[0], body, args[1], body.bound(args[2])?),
            _ => return None,
        };
        let is_outside = |var: VarId| var != *index && body.bound(var).is_none();
        let Self::Op(Op::Eq, args) = body.bound(condition)? else { return None };
        let at = match args[..] {
            [own, at] | [at, own] if own == *index && is_outside(at) => at,
            _ => return None,
        };
        match *otherwise {
            Self::Get { array, index: own, .. } if own == *index && is_outside(array) => {
                Some(ChangedElement { array, at, value, block })
            }
            _ => None,
        }
    }

    /// Returns the array that this expression copies but for some elements: one element ([`Self::changed_element`]),
    /// one in some of its rows, or those of a branch; sparse arrays, by `is_sparse`, may be added to rows. `rows` says
    /// which rows count as parts of it.
    pub fn changed_array(&self, rows: Rows, is_sparse: &dyn Fn(VarId) -> bool) -> Option<VarId> {
        match self.changed(rows, is_sparse)? {
            Changed::Array(array) => Some(array),
            Changed::Row { .. } => None,
        }
    }

    // Recursive on nesting.
    fn changed(&self, rows: Rows, is_sparse: &dyn Fn(VarId) -> bool) -> Option<Changed> {
        let from = |block: &Block| match block.bound(block.result) {
            Some(Self::Get { .. }) if rows == Rows::Named => None,
            None | Some(Self::Get { .. }) => Changed::Array(block.result).outside(block),
            Some(made) => made.changed(rows, is_sparse)?.outside(block),
        };
        if let Some(change) = self.changed_element() {
            let array = Changed::Array(change.array);
            let Self::Build { body, .. } = self else { return Some(array) };
            return match body.bound(body.result) {
                Some(Self::If { otherwise, .. }) if rows == Rows::Read => array.outside(otherwise),
                _ => Some(array),
            };
        }
        match self {
            Self::If { then, otherwise, .. } => from(then).filter(|array| Some(array) == from(otherwise).as_ref()),
            Self::Build { index, body, .. } => {
                let mut row = body.result;
                loop {
                    let made = match body.bound(row)? {
                        Self::Get { .. } => Changed::Array(row).outside(body)?,
                        Self::Plus(whole, term) | Self::Plus(term, whole) if is_sparse(*term) => Changed::Array(*whole),
                        made => made.changed(rows, is_sparse)?,
                    };
                    match made {
                        Changed::Array(made) => row = made,
                        Changed::Row { array, index: at } => {
                            return (at == *index && body.bound(array).is_none()).then_some(Changed::Array(array));
                        }
                    }
                }
            }
            _ => None,
        }
    }

    /// Returns the variables it binds in its blocks.
    #[must_use]
    pub fn binders(&self) -> SmallVec<[VarId; 2]> {
        match self {
            Self::Build { index, .. } | Self::Sum { index, .. } => smallvec![*index],
            Self::Fold(StateLoop { index, state, .. }) | Self::Loop(StateLoop { index, state, .. }) => {
                smallvec![*index, *state]
            }
            Self::While(WhileLoop { state, .. }) => smallvec![*state],
            Self::Jvp { params, .. } | Self::Vjp { params, .. } => SmallVec::from_slice(params),
            Self::Custom(custom) => custom.binders(),
            _ => SmallVec::new(),
        }
    }
}

/// Rows that count as parts of the array that an expression changes ([`Expr::changed_array`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// Rows with a name outside of the branches that pass them on.
    Named,
    /// Rows that branches read, too.
    Read,
}

/// Array of which some elements are changed.
#[derive(PartialEq)]
enum Changed {
    Array(VarId),
    Row { array: VarId, index: VarId },
}

impl Changed {
    /// Returns it by variables from outside of `block`; `None` for a row of a row there.
    fn outside(self, block: &Block) -> Option<Self> {
        let is_outside = |array: &VarId| block.bound(*array).is_none();
        match self {
            Self::Array(row) => match block.bound(row) {
                None => Some(Self::Array(row)),
                Some(Expr::Get { array, index, .. }) if is_outside(array) => {
                    Some(Self::Row { array: *array, index: *index })
                }
                Some(_) => None,
            },
            Self::Row { array, index } => is_outside(&array).then_some(Self::Row { array, index }),
        }
    }
}

impl Function {
    /// Returns the type of the result.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.vars[self.body.result].ty
    }

    /// Returns the type of `var`.
    #[must_use]
    pub fn ty(&self, var: VarId) -> &Type {
        &self.vars[var].ty
    }

    /// Returns the size and `Int` parameters that are required to equal others, or numbers. Quadratic in the
    /// requirements.
    #[must_use]
    pub fn equal_sizes(&self) -> EqualSizes {
        let mut equal = EqualSizes::default();
        for requirement in self.requires.iter().filter(|requirement| requirement.exactly_zero) {
            let size = equal.canonical(&requirement.size);
            for size in [size.clone(), size.neg()] {
                let (var, less) = size.split_constant();
                if let Some(var) = var.as_var().filter(|_| less <= 0) {
                    equal.equate_number(var, -less);
                }
            }
            let Some((a, b)) = size.as_difference() else { continue };
            // Sizes are never negative, integers may be.
            let (kept, replaced) = if self.sizes.contains(&a) { (a, b) } else { (b, a) };
            equal.equate(replaced, kept);
        }
        equal
    }

    /// Adds a variable of type `ty` without a name.
    pub fn fresh(&mut self, ty: Type) -> VarId {
        self.vars.push(Var { ty, name: None, span: None, value: None })
    }
}
