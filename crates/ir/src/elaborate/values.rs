//! Compile-time values: data are variables of the IR, functions only exist during elaboration.

use crate::check::builtin::Builtin;
use crate::check::core::{Core, CoreFun};
use crate::{Type, VarId};
use std::rc::Rc;

/// A value at compile time.
#[derive(Clone)]
pub(super) enum Value<'p> {
    /// Not bound yet.
    Unbound,
    /// Data: a variable of the function under construction.
    Data(VarId),
    /// A function, with the arguments applied so far.
    Fun(Rc<Fun<'p>>),
    /// A generalised `let`: evaluated at each use, for the types of that use.
    Generalised(&'p Core, &'p [crate::check::table::TyId], Env),
}

/// A function.
pub(super) enum Fun<'p> {
    /// A function of the program.
    Closure {
        /// Its definition.
        fun: &'p CoreFun,
        /// Its environment.
        env: Env,
        /// Arguments so far, fewer than parameters.
        applied: Vec<Value<'p>>,
    },
    /// A built-in function.
    Builtin(Builtin, Vec<Value<'p>>),
    /// The function itself, inside a rule of a `withDerivative`.
    Again {
        /// Its name in the rule.
        me: VarId,
        /// Type of its argument.
        at: Type,
    },
}

/// Environment of an expression: the frame of its locals, and the instances of its type variables.
#[derive(Clone, Copy)]
pub(super) struct Env {
    /// Index of the elaborator's frames.
    pub(super) frame: usize,
    /// Index of the elaborator's type frames.
    pub(super) types: usize,
}

/// Locals of one inlined function.
pub(super) struct Frame<'p> {
    /// Frame of the enclosing function.
    pub(super) parent: usize,
    /// Number of enclosing functions.
    pub(super) level: u32,
    /// Values by slot.
    pub(super) values: Vec<Value<'p>>,
}
