//! What elaboration computes with: data are variables of the IR, functions exist only here.

use crate::check::builtin::Builtin;
use crate::check::core::{Core, CoreFun};
use crate::{Type, VarId};
use std::rc::Rc;

/// A value at compile time.
#[derive(Clone)]
pub(super) enum Value<'p> {
    /// Not bound yet.
    Unbound,
    /// Data: a variable of the function in the making.
    Data(VarId),
    /// A function, with the arguments that it already has.
    Fun(Rc<Fun<'p>>),
    /// A generalised `let`: evaluated at each use, for the types of that use.
    Generalised(&'p Core, &'p [crate::check::table::TyId], Env),
}

/// A function.
pub(super) enum Fun<'p> {
    /// A function of the program.
    Closure {
        /// Its text.
        fun: &'p CoreFun,
        /// Where it was made.
        env: Env,
        /// Arguments so far, fewer than parameters.
        applied: Vec<Value<'p>>,
    },
    /// A function of the language.
    Builtin(Builtin, Vec<Value<'p>>),
    /// In the rule of a `withDerivative`: the function itself.
    Again {
        /// What the rule calls it.
        me: VarId,
        /// The type of its argument.
        at: Type,
    },
}

/// Where an expression is evaluated: which frame holds its locals, and what its type variables are.
#[derive(Clone, Copy)]
pub(super) struct Env {
    /// In the elaborator's frames.
    pub(super) frame: usize,
    /// In the elaborator's type frames.
    pub(super) types: usize,
}

/// The locals of one inlined function.
pub(super) struct Frame<'p> {
    /// The frame of the function around it.
    pub(super) parent: usize,
    /// How many functions are around it.
    pub(super) level: u32,
    /// By slot.
    pub(super) values: Vec<Value<'p>>,
}
