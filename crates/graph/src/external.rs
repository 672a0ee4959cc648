//! Users' own scalar functions: tables, splines, foreign code.
//!
//! A graph holds a registry of them; a call is a node that no rule looks into. A function says how
//! its partial derivatives are made: as an expression, as further functions, or not at all, which is
//! an error only when the derivative is asked for.

use crate::graph::{ExternalId, Graph, NodeId};
use chainrule_base::{Id, Name};
use std::fmt;
use std::sync::Arc;

/// Computes the value of a user's function from its arguments, as many as its arity.
pub type ValueFn = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// Makes all partial derivatives of a user's function at the given arguments, one node an argument.
pub type PartialsFn = Arc<dyn Fn(&mut Graph, &[NodeId]) -> Vec<NodeId> + Send + Sync>;

/// How a user's function is differentiated.
#[derive(Clone, Default)]
pub enum ExternalDerivative {
    /// Not at all: asking for a derivative is the user's error.
    #[default]
    None,
    /// By an expression that makes all partials.
    Expression(PartialsFn),
    /// By further functions of the same arguments, one a partial.
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
    /// The function `name` of `arity` numbers, without a derivative and without a spelling in C.
    pub fn new(
        name: impl Into<Name>,
        arity: usize,
        value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> ExternalFunction {
        Self { name: name.into(), arity, value: Arc::new(value), derivative: ExternalDerivative::None, c_name: None }
    }

    /// With partial derivatives as expressions: `partials` is given the graph and the arguments.
    #[must_use]
    pub fn with_partials(
        mut self,
        partials: impl Fn(&mut Graph, &[NodeId]) -> Vec<NodeId> + Send + Sync + 'static,
    ) -> Self {
        self.derivative = ExternalDerivative::Expression(Arc::new(partials));
        self
    }

    /// With partial derivatives that are further functions of the same arguments, one a partial.
    #[must_use]
    pub fn with_partial_functions(mut self, partials: Vec<ExternalId>) -> Self {
        self.derivative = ExternalDerivative::Functions(partials);
        self
    }

    /// With the name of a C function `double name(double, ...)` that the user provides.
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

    /// How many arguments it takes.
    #[must_use]
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// Its value; as many arguments as [`Self::arity`] says.
    #[must_use]
    pub fn value(&self, args: &[f64]) -> f64 {
        (self.value)(args)
    }

    /// What computes its value, to be kept by a backend.
    #[must_use]
    pub fn value_fn(&self) -> ValueFn {
        Arc::clone(&self.value)
    }

    /// How it is differentiated.
    #[must_use]
    pub fn derivative(&self) -> &ExternalDerivative {
        &self.derivative
    }

    /// The functions that its partials are; empty when they are made otherwise.
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

    /// The C function that the user provides, if any.
    #[must_use]
    pub fn c_name(&self) -> Option<&Name> {
        self.c_name.as_ref()
    }

    /// Whether both are the same function: one registered in two graphs, not two that happen to agree.
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

    /// The user's function of this id; `None` when it is not registered here.
    #[must_use]
    pub fn external_function(&self, id: ExternalId) -> Option<&ExternalFunction> {
        self.externals.get(id)
    }

    /// All registered functions in the order of registration.
    pub fn external_functions(&self) -> impl ExactSizeIterator<Item = (ExternalId, &ExternalFunction)> {
        self.externals.as_slice().iter().enumerate().map(|(i, f)| (ExternalId::new(i), f))
    }
}
