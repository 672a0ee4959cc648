//! Activity analysis: computes the leaves of each variable that depend on the parameters of a derivative.
//!
//! Activity is kept *per leaf* of a type; all elements of an array are one leaf. A state that is a pair of a counter,
//! an accuracy and an iterate carries a tangent for the iterate only, and one active field does not make a whole record
//! active. Activity per element would depend on values; activity per variable would pair the constants of every record
//! with zeros.
//!
//! In: a block without `Jvp`, and the activity of its parameters. Out: the activity of each variable bound in it, the
//! least fixed point under the flow of values. An inactive variable has a structurally zero tangent, and forward mode
//! copies it unchanged: a constant exponent is never passed to a logarithm, and integers and truth values stay.
//!
//! Loops are iterated to a fixed point. Activities only grow, and an inner loop resumes from its last activity, so each
//! pass of a loop except the last raises a leaf of a state: the number of passes is at most the number of leaves of the
//! loop's state and of the enclosing states, at any depth.

use crate::chain;
use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, StateLoop, Type, Var, VarId, WhileLoop};

/// Set of the leaves of a type that carry a tangent, in normal form: an array or a tuple without an active leaf is
/// `Inactive`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Activity {
    /// No tangent.
    #[default]
    Inactive,
    /// Active double.
    Active,
    /// Array with elements of this activity.
    Array(Box<Self>),
    /// Tuple, with one activity per field.
    Tuple(Vec<Self>),
}

impl Activity {
    /// Returns the activity in which every double of `ty` is active.
    pub(crate) fn full(ty: &Type) -> Self {
        match ty {
            Type::Double => Self::Active,
            Type::Int | Type::Bool => Self::Inactive,
            Type::Array(_, element) => Self::array(Self::full(element)),
            Type::Tuple(fields, _) => Self::tuple(fields.iter().map(Self::full).collect()),
        }
    }

    pub(crate) fn array(element: Self) -> Self {
        if element == Self::Inactive { Self::Inactive } else { Self::Array(Box::new(element)) }
    }

    pub(crate) fn tuple(fields: Vec<Self>) -> Self {
        if fields.iter().all(|field| *field == Self::Inactive) { Self::Inactive } else { Self::Tuple(fields) }
    }

    pub(crate) fn element(&self) -> Self {
        match self {
            Self::Array(element) => (**element).clone(),
            _ => Self::Inactive,
        }
    }

    pub(crate) fn component(&self, k: usize) -> Self {
        match self {
            Self::Tuple(fields) => fields.get(k).cloned().unwrap_or_default(),
            _ => Self::Inactive,
        }
    }

    /// Joins `other` into `self`; returns whether `self` grew.
    pub(crate) fn join(&mut self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Inactive) | (Self::Active, Self::Active) => false,
            (Self::Array(a), Self::Array(b)) => a.join(b),
            (Self::Tuple(a), Self::Tuple(b)) => a.iter_mut().zip(b).fold(false, |grew, (x, y)| x.join(y) | grew),
            // Equal types have equal forms, so only `Inactive` remains.
            (this, _) => {
                *this = other.clone();
                true
            }
        }
    }

    /// Returns the leaves of both.
    fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => Self::array(a.meet(b)),
            (Self::Tuple(a), Self::Tuple(b)) => Self::tuple(a.iter().zip(b).map(|(a, b)| a.meet(b)).collect()),
            (Self::Active, Self::Active) => Self::Active,
            _ => Self::Inactive,
        }
    }

    /// Returns the type of the dual numbers of `ty` with this activity: each active double becomes a pair.
    pub(crate) fn dual_type(&self, ty: &Type) -> Type {
        match (self, ty) {
            (Self::Active, _) => ty.dual(),
            (Self::Array(inner), Type::Array(size, element)) => Type::array(size.clone(), inner.dual_type(element)),
            (Self::Tuple(inner), Type::Tuple(fields, names)) => {
                Type::Tuple(inner.iter().zip(fields).map(|(a, field)| a.dual_type(field)).collect(), names.clone())
            }
            _ => ty.clone(),
        }
    }
}

/// Activities of all variables of a function, for one differentiated block at a time.
#[derive(Default)]
pub(crate) struct Activities {
    of: Vec<Activity>,
    whole: Vec<bool>,
}

impl Activities {
    pub(crate) fn get(&self, var: VarId) -> &Activity {
        const NONE: &Activity = &Activity::Inactive;
        self.of.get(var.index()).unwrap_or(NONE)
    }

    /// Returns whether the variable has a use other than the access to an element or a component.
    pub(crate) fn used_whole(&self, var: VarId) -> bool {
        self.whole.get(var.index()).copied().unwrap_or(false)
    }

    /// Analyses `body`, with every double of `params` active.
    pub(crate) fn analyse(&mut self, vars: &Arena<VarId, Var>, params: &[VarId], body: &Block) {
        self.of.resize(vars.len(), Activity::Inactive);
        self.whole.resize(vars.len(), false);
        self.reset(body);
        for param in params {
            self.of[param.index()] = Activity::full(&vars[*param].ty);
            self.whole[param.index()] = false;
        }
        self.block(vars, body);
        self.mark_whole(body);
    }

    /// Clears the results of an earlier differentiation.
    fn reset(&mut self, block: &Block) {
        for stmt in &block.stmts {
            for var in [stmt.var].into_iter().chain(stmt.expr.binders()) {
                self.of[var.index()] = Activity::Inactive;
                self.whole[var.index()] = false;
            }
            for inner in stmt.expr.blocks() {
                self.reset(inner);
            }
        }
    }

    /// Raises the activity of `var`; returns whether it grew.
    pub(crate) fn raise(&mut self, var: VarId, by: &Activity) -> bool {
        self.of[var.index()].join(by)
    }

    /// Leaves only the leaves `to` of `var` active.
    pub(crate) fn restrict(&mut self, var: VarId, to: &Activity) {
        let of = &mut self.of[var.index()];
        *of = of.meet(to);
    }

    fn block(&mut self, vars: &Arena<VarId, Var>, block: &Block) {
        for stmt in &block.stmts {
            let activity = self.expr(vars, stmt.var, &stmt.expr);
            self.raise(stmt.var, &activity);
        }
    }

    fn expr(&mut self, vars: &Arena<VarId, Var>, var: VarId, expr: &Expr) -> Activity {
        match expr {
            Expr::Real(_)
            | Expr::Bool(_)
            | Expr::Size(_)
            | Expr::ToReal(_)
            | Expr::ToInt(_)
            | Expr::Zero
            | Expr::Jvp { .. }
            | Expr::Vjp { .. }
            | Expr::Again { .. } => Activity::Inactive,
            // Its blocks are never differentiated, so they contain no active variable.
            Expr::Custom(custom) => {
                let active = custom.rule.is_some() && *self.get(custom.at) != Activity::Inactive;
                if active { Activity::full(&vars[var].ty) } else { Activity::Inactive }
            }
            Expr::Op(op, args) => {
                let is_double = vars[var].ty == Type::Double;
                let active =
                    |(idx, arg): (usize, &VarId)| *self.get(*arg) == Activity::Active && chain::depends(*op, idx);
                if is_double && args.iter().enumerate().any(active) { Activity::Active } else { Activity::Inactive }
            }
            Expr::Build { body, .. } => {
                self.block(vars, body);
                Activity::array(self.get(body.result).clone())
            }
            Expr::Sum { body, .. } => {
                self.block(vars, body);
                self.get(body.result).clone()
            }
            Expr::Fold(StateLoop { state, init, body, .. }) | Expr::While(WhileLoop { state, init, body, .. }) => {
                let init = self.get(*init).clone();
                self.raise(*state, &init);
                loop {
                    if let Expr::While(WhileLoop { condition, .. }) = expr {
                        self.block(vars, condition);
                    }
                    self.block(vars, body);
                    let after = self.get(body.result).clone();
                    if !self.raise(*state, &after) {
                        return self.get(*state).clone();
                    }
                }
            }
            Expr::Loop(StateLoop { state, init, body, .. }) => {
                let init = self.get(*init).clone();
                self.raise(*state, &init);
                loop {
                    self.block(vars, body);
                    let triple = self.get(body.result).clone();
                    if !self.raise(*state, &triple.component(0)) {
                        let element = Activity::array(triple.component(1));
                        return Activity::tuple(vec![self.get(*state).clone(), element, triple.component(2)]);
                    }
                }
            }
            Expr::OneHot { value, .. } => Activity::array(self.get(*value).clone()),
            Expr::Plus(a, b) => {
                let mut activity = self.get(*a).clone();
                activity.join(self.get(*b));
                activity
            }
            Expr::If { then, otherwise, .. } => {
                self.block(vars, then);
                self.block(vars, otherwise);
                let mut activity = self.get(then.result).clone();
                activity.join(self.get(otherwise.result));
                activity
            }
            Expr::Get { array, .. } => self.get(*array).element(),
            Expr::Array(elements) => {
                let mut activity = Activity::Inactive;
                for element in elements {
                    activity.join(self.get(*element));
                }
                Activity::array(activity)
            }
            Expr::Tuple(fields) => Activity::tuple(fields.iter().map(|field| self.get(*field).clone()).collect()),
            Expr::Component(tuple, k) => self.get(*tuple).component(*k),
        }
    }

    /// Visits statements in reverse, so that every use of a tuple is known before its components are visited.
    fn mark_whole(&mut self, block: &Block) {
        self.whole[block.result.index()] = true;
        for stmt in block.stmts.iter().rev() {
            match &stmt.expr {
                Expr::Get { .. } | Expr::Component(..) | Expr::Custom(_) => continue,
                Expr::Tuple(_) if !self.used_whole(stmt.var) => continue,
                _ => {}
            }
            for operand in stmt.expr.operands() {
                self.whole[operand.index()] = true;
            }
            for inner in stmt.expr.blocks() {
                self.mark_whole(inner);
            }
        }
    }
}
