//! Users' own scalar functions: tables, splines, foreign code.

use super::{Expr, Scope};
use chainrule_graph::{ExternalFunction, ExternalId, Graph, NodeId, Semantics, ValueFn};

/// User-defined scalar function: a Rust callback, with its partial derivatives as expressions or as further callbacks,
/// and the name of a C function for emitted C.
///
/// ```
/// use chainrule::{Function, UserFunction, var};
/// // sinc, whose derivative is an expression that uses sinc again
/// let sinc = UserFunction::new("sinc", 1, |x| if x[0] == 0.0 { 1.0 } else { x[0].sin() / x[0] });
/// let plain = sinc.clone();
/// let sinc = sinc.with_partials(move |x| vec![(x[0].cos() - plain.call(&[&x[0]])) / &x[0]]);
/// let x = var("x");
/// let f = Function::new("f", &x, &(sinc.call(&[&x]) * 2.0))?.gradient().compile()?;
/// assert!((f.eval(&[&[1.0]])?[0][0] - 2.0 * (1f64.cos() - 1f64.sin())).abs() < 1e-15);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UserFunction {
    function: ExternalFunction,
    partials: Vec<UserFunction>,
}

impl UserFunction {
    /// Returns the function `name` of `arity` numbers that `value` computes. It has no derivative yet.
    pub fn new(name: &str, arity: usize, value: impl Fn(&[f64]) -> f64 + Send + Sync + 'static) -> Self {
        Self { function: ExternalFunction::new(name, arity, value), partials: Vec::new() }
    }

    /// Adds its partial derivatives as expressions of the arguments, one per argument.
    ///
    /// # Panics
    /// Panics if the number of expressions from `partials` is not the number of arguments.
    #[must_use]
    pub fn with_partials(mut self, partials: impl FnOnce(&[Expr]) -> Vec<Expr>) -> Self {
        // The expressions are built once, on variables of a separate graph, and imported wherever the function is
        // differentiated.
        let scope = Scope::new(Semantics::Algebraic);
        let args: Vec<Expr> = (0..self.function.arity()).map(|i| scope.var(&format!("arg{i}"))).collect();
        let made = partials(&args);
        assert_eq!(made.len(), args.len(), "{} has one partial derivative an argument", self.function.name());
        let Some(first) = args.first() else { return self };
        let roots: Vec<NodeId> = made.iter().map(|e| first.session.adopt(e)).collect();
        let (template, roots) = first.session.graph().extract(&roots);
        let instantiate = move |graph: &mut Graph, args: &[NodeId]| {
            graph.import(&template, &roots, args).expect("every argument of the function has its node")
        };
        self.function = self.function.with_partials(instantiate);
        self
    }

    /// Adds its partial derivatives as further functions of the same arguments, one per argument.
    ///
    /// # Panics
    /// Panics if their number is not the number of arguments, or one takes another number of arguments.
    #[must_use]
    pub fn with_partial_functions(mut self, partials: Vec<Self>) -> Self {
        let arity = self.function.arity();
        assert_eq!(partials.len(), arity, "{} has one partial derivative an argument", self.function.name());
        assert!(partials.iter().all(|p| p.function.arity() == arity), "partial derivatives take the same arguments");
        self.partials = partials;
        self
    }

    /// Adds the name of the C function `double name(double, ...)` that emitted C calls.
    #[must_use]
    pub fn with_c_name(mut self, c_name: &str) -> Self {
        self.function = self.function.with_c_name(c_name);
        self
    }

    /// Applies the function to expressions.
    ///
    /// # Panics
    /// Panics if the number of arguments is not the function's, or is 0.
    #[must_use]
    pub fn call(&self, args: &[&Expr]) -> Expr {
        assert_eq!(args.len(), self.function.arity(), "{} takes {} arguments", self.function.name(), args.len());
        let session = args[0].session.clone();
        let nodes: Vec<NodeId> = args.iter().map(|arg| session.adopt(arg)).collect();
        let mut graph = session.graph();
        let function = self.register(&mut graph);
        let id = graph.external(function, &nodes);
        drop(graph);
        Expr { session, id }
    }

    /// Returns the evaluators of functions with this name and number of arguments, among this one and its derivatives.
    pub(crate) fn find(&self, name: &str, arity: usize) -> Vec<ValueFn> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(function) = open.pop() {
            if **function.function.name() == *name && function.function.arity() == arity {
                found.push(function.function.value_fn());
            }
            open.extend(&function.partials);
        }
        found
    }

    fn register(&self, graph: &mut Graph) -> ExternalId {
        if let Some((id, _)) = graph.external_functions().find(|(_, f)| f.is_same(&self.function)) {
            return id;
        }
        let mut function = self.function.clone();
        if !self.partials.is_empty() {
            function = function.with_partial_functions(self.partials.iter().map(|p| p.register(graph)).collect());
        }
        graph.register(function)
    }
}
