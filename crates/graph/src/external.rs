//! Users' own scalar functions: tables, splines, foreign code.
//!
//! A graph holds a registry of them; a call is an opaque node for all rules. A function specifies its partial
//! derivatives: as expressions, as further functions, or not at all, which is an error only when a derivative is
//! requested.

use crate::graph::{ExternalId, Graph, NodeId};
use chainrule_base::{Id, Name};
use std::fmt;
use std::sync::Arc;

/// Computes the value of a user's function from its arguments, as many as its arity.
pub type ValueFn = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// Computes all partial derivatives of a user's function at the given arguments, one node per argument.
pub type PartialsFn = Arc<dyn Fn(&mut Graph, &[NodeId]) -> Vec<NodeId> + Send + Sync>;

/// Derivative of a user's function.
#[derive(Clone, Default)]
pub enum ExternalDerivative {
    /// None: requesting a derivative is the user's error.
    #[default]
    None,
    /// Expressions for all partials.
    Expression(PartialsFn),
    /// Further functions of the same arguments, one per partial.
    Functions(Vec<ExternalId>),
}

/// A user's function.
#[derive(Clone)]
pub struct ExternalFunction {
    name: Name,
    arity: usize,
    value: ValueFn,
    derivative: ExternalDerivative,
    c_name: Option<Name>,
}

impl ExternalFunction {
    /// Returns the function `name` of `arity` numbers, without a derivative and without a C function.
    pub fn new(
        name: impl Into<Name>,
        arity: usize,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> ExternalFunction {
        Self { name: name.into(), arity, value: Arc::new(value), derivative: ExternalDerivative::None, c_name: None }
    }

    /// Adds partial derivatives as expressions: `partials` takes the graph and the arguments.
    #[must_use]
    pub fn with_partials(
        mut self,
        partials: impl Fn(&mut Graph, &[NodeId]) -> Vec<NodeId> + Send + Sync + 'static,
    ) -> Self {
        self.derivative = ExternalDerivative::Expression(Arc::new(partials));
        self
    }

    /// Adds partial derivatives that are further functions of the same arguments, one per partial.
    #[must_use]
    pub fn with_partial_functions(mut self, partials: Vec<ExternalId>) -> Self {
        self.derivative = ExternalDerivative::Functions(partials);
        self
    }

    /// Adds the name of a C function `double name(double, ...)` that the user provides.
    #[must_use]
    pub fn with_c_name(mut self, c_name: impl Into<Name>) -> Self {
        self.c_name = Some(c_name.into());
        self
    }

    /// Its name in dumps and messages.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the number of arguments.
    #[must_use]
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// Returns its value at [`Self::arity`] arguments.
    #[must_use]
    pub fn value(&self, args: &[f64]) -> f64 {
        (self.value)(args)
    }

    /// Returns the evaluator of its value, for storage in a backend.
    #[must_use]
    pub fn value_fn(&self) -> ValueFn {
        Arc::clone(&self.value)
    }

    /// Returns its derivative.
    #[must_use]
    pub fn derivative(&self) -> &ExternalDerivative {
        &self.derivative
    }

    /// Returns the functions that are its partials; empty for other derivatives.
    pub(crate) fn partial_functions(&self) -> &[ExternalId] {
        if let ExternalDerivative::Functions(partials) = &self.derivative { partials } else { &[] }
    }

    pub(crate) fn rename_partials(&mut self, new: impl Fn(ExternalId) -> ExternalId) {
        if let ExternalDerivative::Functions(partials) = &mut self.derivative {
            for p in partials {
                *p = new(*p);
            }
        }
    }

    /// Returns the C function that the user provides, if any.
    #[must_use]
    pub fn c_name(&self) -> Option<&Name> {
        self.c_name.as_ref()
    }

    /// Returns whether both are the same function: one registered in two graphs, not two that are equal by coincidence.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) && self.name == other.name && self.arity == other.arity
    }
}

impl fmt::Debug for ExternalFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.arity)
    }
}

impl Graph {
    /// Registers a user's function; never merged with another.
    pub fn register(&mut self, function: ExternalFunction) -> ExternalId {
        self.externals.push(function)
    }

    /// Returns the user's function of this id; `None` if it is not registered here.
    #[must_use]
    pub fn external_function(&self, id: ExternalId) -> Option<&ExternalFunction> {
        self.externals.get(id)
    }

    /// Returns all registered functions in the order of registration.
    pub fn external_functions(&self) -> impl ExactSizeIterator<Item = (ExternalId, &ExternalFunction)> {
        self.externals.as_slice().iter().enumerate().map(|(i, f)| (ExternalId::new(i), f))
    }
}
