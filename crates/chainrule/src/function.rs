//! Functions: named arguments, named results, a body that is a scalar graph or an array program.

use crate::build::{Expr, Tensor, input_name};
use crate::derive::{Derivation, What};
use crate::guard::guard;
use crate::interface::{Interface, Shape, Signature};
use crate::passes::lower_array;
use crate::straight::{Decided, Unroll};
use crate::where_spent::Origins;
use crate::{CompileOptions, Compiled, Error, Result, Rewrite};
use chainrule_accumulate::Pattern;
use chainrule_accumulate::derive::{Options, resolve};
use chainrule_autodiff::{MadeAgain, Part};
use chainrule_base::{Name, Sources};
use chainrule_graph::{Graph, Node, NodeId, Semantics, counts, verify};
use chainrule_ir as ir;
use chainrule_ops::Counts;
use chainrule_scalarise::leaves::leaves;
use std::sync::{Arc, OnceLock};

/// Function of named arguments, each a scalar, a vector, a matrix (or more), to named results.
///
/// Built from Rust expressions ([`Function::new`]) or from an F~ file ([`crate::Module::function`]). A derivative of a
/// function is a function again.
///
/// ```
/// use chainrule::{Function, vars};
/// let x = vars("x", 2);
/// let rosenbrock = (1.0 - &x[0]).pow(2.0) + 100.0 * (&x[1] - x[0].pow(2.0)).pow(2.0);
/// let f = Function::new("rosenbrock", &x, &rosenbrock)?;
/// let gradient = f.gradient().compile()?;
/// assert_eq!(gradient.eval(&[&[1.0, 1.0]])?, [[0.0, 0.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Function {
    name: Name,
    pub(crate) body: Body,
    pub(crate) interface: Arc<Interface>,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Scalar(Arc<ScalarBody>),
    Array(Arc<ArrayBody>),
}

/// Straight-line code: every input and result element is a node.
#[derive(Clone, Debug)]
pub(crate) struct ScalarBody {
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// Arguments and results of the program, for a function that was unrolled from one: the ports are their leaves, in
    /// order. Otherwise each port is an argument or a result.
    pub(crate) program: Option<Signature>,
    /// Origins of the nodes, for a function unrolled from a program.
    pub(crate) origins: Option<Arc<Origins>>,
    /// Request that made it, to show or leave out passes over its graph.
    pub(crate) derivation: Option<Arc<Derivation>>,
}

/// Array program, with the texts to which its spans refer.
#[derive(Clone, Debug)]
pub(crate) struct ArrayBody {
    pub(crate) function: ir::Function,
    pub(crate) sources: Arc<Sources>,
    /// Whether passes may treat its doubles as real numbers.
    pub(crate) semantics: Semantics,
    /// Loops that got checkpoints in the derivation although none were requested.
    pub(crate) made_again: Vec<MadeAgain>,
    /// Whether it is derived and compiled as straight-line code.
    pub(crate) unroll: Unroll,
    /// Whether sizes were given to it ([`Function::at_sizes`]).
    pub(crate) has_given_sizes: bool,
    /// Resulting decision, computed on first use.
    pub(crate) decided: Arc<OnceLock<Result<Decided>>>,
}

/// Argument or result of straight-line code.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: Name,
    /// Extents, outermost first.
    pub(crate) shape: Vec<usize>,
    /// One node per element, row-major; for a sparse result one per stored element.
    pub(crate) nodes: Vec<NodeId>,
    /// Positions of the stored elements of a sparse matrix.
    pub(crate) pattern: Option<Arc<Pattern>>,
}

/// Arguments or results: one tensor, several in a tuple, or a slice of them.
pub trait Tensors {
    /// Returns the tensors in order.
    fn tensors(&self) -> Vec<&dyn Tensor>;
}

impl<T: Tensor> Tensors for &T {
    fn tensors(&self) -> Vec<&dyn Tensor> {
        vec![*self]
    }
}

impl Tensors for &[&dyn Tensor] {
    fn tensors(&self) -> Vec<&dyn Tensor> {
        self.to_vec()
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Tensor),+> Tensors for ($(&$t,)+) {
            fn tensors(&self) -> Vec<&dyn Tensor> {
                vec![$(self.$i as &dyn Tensor),+]
            }
        }
    )*};
}
tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

impl Function {
    /// Returns the function `name` that takes `inputs` (variables) to `outputs`. Derivatives that stand in the
    /// outputs are derived here. Results without a name are called `result`, or `result0`, `result1`, ...
    ///
    /// # Errors
    /// Fails if an input is not a variable or is given twice, when an output depends on a variable that is
    /// not among the inputs, when a user's function without a derivative is differentiated.
    // Tuples of references read best by value.
    #[allow(clippy::needless_pass_by_value)]
    pub fn new(name: &str, inputs: impl Tensors, outputs: impl Tensors) -> Result<Self> {
        let (inputs, outputs) = (inputs.tensors(), outputs.tensors());
        let Some(first) = outputs.iter().flat_map(|o| o.elements()).next() else {
            return Err(Error::request(format!("`{name}` has no results"), "give at least one output"));
        };
        let session = first.session;
        let adopt = |tensor: &&dyn Tensor| -> Vec<NodeId> {
            tensor.elements().iter().map(|e: &Expr| session.adopt(e)).collect()
        };
        let input_nodes: Vec<Vec<NodeId>> = inputs.iter().map(adopt).collect();
        let output_nodes: Vec<Vec<NodeId>> = outputs.iter().map(adopt).collect();

        let mut graph = session.graph().clone();
        let roots: Vec<NodeId> = output_nodes.iter().flatten().copied().collect();
        let roots = resolve(&mut graph, &roots, &Options::default()).map_err(Error::lone)?;

        // A separate graph: inputs in the order of the arguments, then the nodes that the outputs need.
        let mut own = Graph::new(graph.semantics());
        let mut given = rustc_hash::FxHashMap::default();
        let mut input_ports = Vec::new();
        for (i, (tensor, nodes)) in inputs.iter().zip(&input_nodes).enumerate() {
            let name = tensor.name().unwrap_or_else(|| Name::from(format!("arg{i}")));
            let mut copies = Vec::new();
            for (k, node) in nodes.iter().enumerate() {
                let Some(element) = input_name(&graph, *node) else {
                    return Err(Error::request(
                        format!("element {k} of the argument `{name}` is `{}`, not a variable", graph.short(*node)),
                        "pass variables made by `var`, `vars` or `matrix` as inputs",
                    ));
                };
                let copy = own.input(element);
                if given.insert(*node, copy).is_some() {
                    return Err(Error::request(
                        format!("the variable `{}` is given twice as an input", graph.short(*node)),
                        "give each variable once",
                    ));
                }
                copies.push(copy);
            }
            input_ports.push(Port { name, shape: tensor.shape(), nodes: copies, pattern: None });
        }
        for id in graph.reachable(&roots).iter() {
            if matches!(graph.node(id), Node::Input(_)) && !given.contains_key(&id) {
                return Err(Error::request(
                    format!("`{name}` depends on {}, which is not among its inputs", graph.short(id)),
                    "add it to the inputs",
                ));
            }
        }
        // Extraction first: the order of nodes then depends on the function alone, not on other nodes of the
        // expressions' graph.
        let (needed, roots) = graph.extract(&roots);
        let stand_in = |id: &NodeId| given.get(id).copied().unwrap_or(*id);
        let stand_ins: Vec<NodeId> = graph.inputs().iter().map(|(_, id)| stand_in(id)).collect();
        let roots = own.import(&needed, &roots, &stand_ins).map_err(Error::lone)?;
        let mut roots = roots.into_iter();
        let many = outputs.len() > 1;
        let output_ports = outputs
            .iter()
            .zip(&output_nodes)
            .enumerate()
            .map(|(i, (tensor, nodes))| {
                let unnamed = || if many { Name::from(format!("result{i}")) } else { Name::new("result") };
                let taken = |n: &Name| input_ports.iter().any(|port: &Port| port.name == *n);
                let name = tensor.name().filter(|n| !taken(n)).unwrap_or_else(unnamed);
                Port { name, shape: tensor.shape(), nodes: roots.by_ref().take(nodes.len()).collect(), pattern: None }
            })
            .collect();
        Self::from_scalar(
            name,
            ScalarBody {
                graph: own,
                inputs: input_ports,
                outputs: output_ports,
                program: None,
                origins: None,
                derivation: None,
            },
        )
    }

    pub(crate) fn from_scalar(name: &str, body: ScalarBody) -> Result<Self> {
        for ports in [&body.inputs, &body.outputs] {
            for (i, port) in ports.iter().enumerate() {
                if ports[..i].iter().any(|other| other.name == port.name) {
                    return Err(Error::request(
                        format!("two arguments or results of `{name}` are called `{}`", port.name),
                        "give each a name of its own, with `named`",
                    ));
                }
            }
        }
        debug_assert_eq!(verify(&body.graph, &body.roots()), Ok(()), "{}", body.graph.listing(&body.roots()));
        let interface = Arc::new(Interface::from(&body));
        Ok(Self { name: Name::new(name), body: Body::Scalar(Arc::new(body)), interface })
    }

    pub(crate) fn from_array(function: ir::Function, sources: Arc<Sources>, semantics: Semantics) -> Self {
        let (unroll, decided) = (Unroll::default(), Arc::default());
        let made_again = Vec::new();
        Self::of_array(ArrayBody { function, sources, semantics, made_again, unroll, has_given_sizes: false, decided })
    }

    pub(crate) fn of_array(body: ArrayBody) -> Self {
        let (name, interface) = (body.function.name.clone(), Arc::new(Interface::from(&body)));
        Self { name, body: Body::Array(Arc::new(body)), interface }
    }

    /// Returns a derivative of the function `of`.
    pub(crate) fn from_derived(function: ir::Function, of: &ArrayBody, made_again: Vec<MadeAgain>) -> Self {
        Self::of_array(ArrayBody { function, made_again, decided: Arc::default(), ..ArrayBody::clone(of) })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the same function with another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Name::new(name);
        if let Body::Array(body) = &mut self.body {
            let mut body = ArrayBody::clone(body);
            body.function.name = self.name.clone();
            body.decided = Arc::default();
            self.body = Body::Array(Arc::new(body));
        }
        self
    }

    /// As [`Self::named`], with the decision on an array program.
    pub(crate) fn renamed(&self, name: &str) -> Self {
        let mut renamed = self.clone().named(name);
        if let (Body::Array(of), Body::Array(body)) = (&self.body, &mut renamed.body) {
            Arc::make_mut(body).decided = Arc::clone(&of.decided);
        }
        renamed
    }

    /// Returns the same function with these names of its arguments, in order; fewer names rename the first arguments.
    ///
    /// A derivative names its directions after the arguments (`x_tan`). Other names allow a derivative of a derivative
    /// along the same argument.
    ///
    /// # Errors
    /// Fails if two arguments have the same name.
    ///
    /// ```
    /// use chainrule::Module;
    /// let f = Module::from_text("f.ft", "let f = fun (x : Double) -> x * x * x")?.function("f")?;
    /// let slope = f.jvp().function()?.with_argument_names(&["x", "along"])?;
    /// let curvature = slope.jvp().by(&["x"]).function()?;
    /// assert_eq!(curvature.compile()?.eval(&[&[2.0], &[3.0], &[5.0]])?[0], [180.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn with_argument_names(self, names: &[&str]) -> Result<Self> {
        match self.body {
            Body::Scalar(body) => {
                let mut body = ScalarBody::clone(&body);
                match &mut body.program {
                    Some(program) => {
                        program.params.iter_mut().zip(names).for_each(|(param, name)| param.0 = Name::new(name));
                        let leaves = program.params.iter().flat_map(|(name, ty)| leaves(ty, name));
                        body.inputs.iter_mut().zip(leaves).for_each(|(port, leaf)| port.name = leaf.name);
                    }
                    None => body.inputs.iter_mut().zip(names).for_each(|(port, name)| port.name = Name::new(name)),
                }
                Self::from_scalar(self.name.as_str(), body)
            }
            Body::Array(body) => {
                let mut body = ArrayBody::clone(&body);
                let function = &mut body.function;
                for (param, name) in function.params.iter().zip(names) {
                    function.vars[*param].name = Some(Name::new(name));
                }
                let name_of = |param: &ir::VarId| function.vars[*param].name.clone();
                let mut known: Vec<Name> = function.params.iter().filter_map(name_of).collect();
                known.sort_unstable();
                if let Some(pair) = known.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(Error::request(
                        format!("two arguments of `{}` are called `{}`", self.name, pair[0]),
                        "give each a name of its own",
                    ));
                }
                body.decided = Arc::default();
                Ok(Self::of_array(body))
            }
        }
    }

    /// Returns whether its loops are kept (an F~ function) rather than unrolled into straight-line code; see
    /// [`Self::unroll`].
    #[must_use]
    pub fn keeps_loops(&self) -> bool {
        matches!(self.decided_or_self().body, Body::Array(_))
    }

    /// Returns whether passes may treat its doubles as real numbers: the semantics of its module
    /// ([`crate::Module::with_semantics`]) or scope ([`crate::Scope::new`]).
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        match &self.body {
            Body::Scalar(body) => body.graph.semantics(),
            Body::Array(body) => body.semantics,
        }
    }

    /// Returns the same function under other semantics, which apply to its derivatives, too. Straight-line code is
    /// unchanged: it was simplified at construction.
    ///
    /// ```
    /// use chainrule::{Module, Semantics};
    /// let f = Module::from_text("f.ft", "let f = fun (x : Double) -> x * 0")?.function("f")?;
    /// assert!(f.clone().compile()?.eval(&[&[f64::NAN]])?[0][0] == 0.0);
    /// assert!(f.with_semantics(Semantics::Strict).compile()?.eval(&[&[f64::NAN]])?[0][0].is_nan());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        if let Body::Array(body) = &mut self.body {
            let decided = Arc::default();
            self.body = Body::Array(Arc::new(ArrayBody { semantics, decided, ..ArrayBody::clone(body) }));
        }
        self
    }

    /// Returns the names of the sizes of a function that keeps its loops, then of the integers among its arguments: the
    /// names that [`Self::unrolled`] takes.
    #[must_use]
    pub fn size_names(&self) -> Vec<String> {
        let Body::Array(body) = &self.body else { return Vec::new() };
        let f = &body.function;
        let ints = f.params.iter().filter(|p| f.vars[**p].ty == ir::Type::Int);
        f.sizes.iter().chain(ints).filter_map(|var| f.vars[*var].name.as_deref().map(str::to_owned)).collect()
    }

    /// Returns names and types of the arguments and results.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.interface.signature
    }

    /// Returns names and extents of the arguments.
    #[must_use]
    pub fn inputs(&self) -> &[Shape] {
        &self.interface.inputs
    }

    /// Returns names and extents of the results.
    #[must_use]
    pub fn outputs(&self) -> &[Shape] {
        &self.interface.outputs
    }

    /// Returns the sparsity pattern of a sparse result, by name.
    #[must_use]
    pub fn pattern(&self, output: &str) -> Option<&Pattern> {
        match &self.decided_or_self().body {
            Body::Scalar(body) => body.outputs.iter().find(|p| *p.name == *output)?.pattern.as_deref(),
            Body::Array(_) => None,
        }
    }

    /// Returns operation counts of straight-line code; `None` for a function that keeps its loops.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        match &self.decided_or_self().body {
            Body::Scalar(body) => Some(counts(&body.graph, &body.roots())),
            Body::Array(_) => None,
        }
    }

    /// Returns operation counts of a function that keeps its loops, after lowering: `sizes` contains its sizes, by
    /// name; all others are 1. Of a branch on data the side with the larger weight counts, once for each time that it
    /// is reached. As [`Self::counts`] for straight-line code.
    ///
    /// # Errors
    /// The errors of [`Self::compile`].
    ///
    /// ```
    /// use chainrule::{Module, Rewrite};
    /// let text = "let f = fun (x : [n]Double) -> sum n (fun i -> x[i] * x[i])";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// assert_eq!(f.counts_at(&[("n", 10)], Rewrite::All)?.mul, 10);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn counts_at(&self, sizes: &[(&str, i64)], rewrite: Rewrite) -> Result<Counts> {
        let body = match &self.decided()?.body {
            Body::Scalar(body) => return Ok(counts(&body.graph, &body.roots())),
            Body::Array(body) => body,
        };
        rewrite.check()?;
        let kernel = guard(|| lower_array(body, rewrite))?;
        let value = |name: &str| sizes.iter().find(|(known, _)| *known == name).map_or(1, |(_, size)| *size);
        let mut sizes: Vec<i64> = Vec::with_capacity(kernel.sizes.len());
        for size in &kernel.sizes {
            let before = |r| kernel.sizes.iter().position(|size| size.reg == r).map_or(0, |k| sizes[k]);
            let natural = size.natural().and_then(|of| of.eval(before)).map(|value| value.max(0));
            sizes.push(natural.unwrap_or_else(|| value(&size.name)));
        }
        Ok(chainrule_kernel::counts(&kernel, &sizes))
    }

    /// Returns the program as text: one line per operation, or F~.
    #[must_use]
    pub fn listing(&self) -> String {
        match &self.decided_or_self().body {
            Body::Scalar(body) => body.graph.listing(&body.roots()),
            Body::Array(body) => {
                if !ir::express::is_needed(&body.function) {
                    return ir::print(&body.function);
                }
                // Prints the result of reverse mode in optimised form, in constructs of the language.
                let optimised = Rewrite::All.apply(body.function.clone(), body.semantics);
                let mut expressed = ir::express::express(&optimised);
                chainrule_autodiff::tidy::function(&mut expressed);
                ir::print(&expressed)
            }
        }
    }

    fn derive(&self, part: Part) -> Derivation {
        Derivation::new(self.clone(), What::Part(part))
    }

    /// Requests the function alone; useful with [`Derivation::by`]'s siblings to compile value and derivative in one
    /// call.
    #[must_use]
    pub fn value(&self) -> Derivation {
        self.derive(Part::Value)
    }

    /// Requests the Jacobian of every result by every argument.
    #[must_use]
    pub fn jacobian(&self) -> Derivation {
        self.derive(Part::Jacobian)
    }

    /// Requests the gradient of a scalar result by every argument.
    #[must_use]
    pub fn gradient(&self) -> Derivation {
        self.derive(Part::Gradient)
    }

    /// Requests the Hessian of a scalar result by every argument.
    #[must_use]
    pub fn hessian(&self) -> Derivation {
        self.derive(Part::Hessian)
    }

    /// Requests the diagonal of the Hessian of a scalar result, shaped like the arguments: the second derivative by
    /// each number. Less work than the Hessian: of a function that keeps its loops, as much as one [`Self::hvp`] if its
    /// indices show that it is a sum of terms of one number each.
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// let text = "let f = fun (x : [n]Double) -> sum n (fun i -> x[i] ** 3)";
    /// let diagonal = Module::from_text("f.ft", text)?.function("f")?.hessian_diagonal().compile()?;
    /// assert_eq!(diagonal.call(&[vec![1.0, 2.0].into()])?, [vec![6.0, 12.0].into()]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn hessian_diagonal(&self) -> Derivation {
        self.derive(Part::HessianDiagonal)
    }

    /// Requests the Jacobian times a vector: the derivative along a direction, which becomes further arguments `x_tan`,
    /// one for each argument `x`.
    #[must_use]
    pub fn jvp(&self) -> Derivation {
        self.derive(Part::Jvp)
    }

    /// Requests a vector times the Jacobian; the vector becomes further arguments `y_adj`, one for each result `y`.
    #[must_use]
    pub fn vjp(&self) -> Derivation {
        self.derive(Part::Vjp)
    }

    /// Requests the Hessian of a scalar result times a vector, which becomes further arguments `x_tan`.
    #[must_use]
    pub fn hvp(&self) -> Derivation {
        self.derive(Part::Hvp)
    }

    /// Requests derivatives of the given order, of every result by every argument, order times.
    #[must_use]
    pub fn derivatives(&self, order: usize) -> Derivation {
        Derivation::new(self.clone(), What::Order(order))
    }

    /// Returns the function with the derivatives in its text expanded, with so many checkpoints for each loop in
    /// reverse mode: the counterpart of [`CompileOptions::checkpoints`] for emitted text. Straight-line code is
    /// unchanged.
    ///
    /// # Errors
    /// Fails if derivatives in it cannot be expanded.
    pub fn with_checkpoints(&self, n: u32) -> Result<Self> {
        let Body::Array(body) = &self.body else { return Ok(self.clone()) };
        let expanded = guard(|| {
            let expanded = Rewrite::All.expand(&body.function, Some(n), body.semantics);
            expanded.map_err(|d| Error::program(d, &body.sources))
        });
        Ok(body.with(expanded?).unroll(Unroll::Never))
    }

    /// Compiles the function itself.
    ///
    /// # Errors
    /// Fails if the function cannot be lowered (a limitation).
    pub fn compile(&self) -> Result<Compiled> {
        self.compile_with(&CompileOptions::default())
    }

    /// Does the same, with options.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile); further, a backend or instructions that this machine does not support.
    pub fn compile_with(&self, options: &CompileOptions) -> Result<Compiled> {
        options.rewrite.check()?;
        guard(|| Compiled::new(self, options))
    }
}

impl ArrayBody {
    /// Returns another function of the same text, under the same semantics.
    pub(crate) fn with(&self, function: ir::Function) -> Function {
        Function::from_derived(function, self, Vec::new())
    }
}

impl ScalarBody {
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        self.outputs.iter().flat_map(|port| port.nodes.iter().copied()).collect()
    }
}

/// Returns the index of each element of an array of this shape, row-major: `[0][0]`, `[0][1]`, ....
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = String> {
    (0..shape.iter().product()).map(move |mut position: usize| {
        let mut parts: Vec<usize> = Vec::new();
        for extent in shape.iter().rev() {
            parts.push(position % extent);
            position /= extent;
        }
        parts.iter().rev().map(|i| format!("[{i}]")).collect()
    })
}
