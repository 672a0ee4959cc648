//! Conversion of an array program to straight-line code, and the decision whether to convert.
//!
//! In: a function that is an array program. Out: the same function with arguments and results of the same names and
//! types, each element of which is a node of a scalar graph. [`Unroll`] selects which of the two is derived and
//! compiled: by default, the estimates of [`pays`] decide, and where loops may run in lanes, the estimated times of
//! both kernels, for each request. `docs/decisions/0049` and 0076 contain the reasons.

use crate::derive::{Chosen, Selected, record, selected};
use crate::function::{ArrayBody, Body, Port, ScalarBody, indices};
use crate::guard::guard;
use crate::interface::Signature;
use crate::passes::{DIFFERENTIATE, Passes, UNROLL};
use crate::prediction::shown_time;
use crate::where_spent::Origins;
use crate::{CompileOptions, Error, Function, Result};
use chainrule_autodiff::parts::{self, PartOf};
use chainrule_base::{Diagnostic, Kind, Name, timing};
use chainrule_graph::{Graph, NodeId, Semantics};
use chainrule_ir::{self as ir, Size, Type, VarId};
use chainrule_kernel::Kernel;
use chainrule_kernel::weights::WEIGHTS;
use chainrule_scalarise::leaves::{Leaf, assemble, leaves, take_apart};
use chainrule_scalarise::pays::{self, Estimate};
use chainrule_scalarise::{UNROLL_BUDGET, unroll};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// Whether the loops of an array program are unrolled: a function is then straight-line code, and its derivatives are
/// computed by accumulation on its graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unroll {
    /// If all sizes are known, and the cost model predicts that straight-line code takes no more time than loops.
    #[default]
    Auto,
    /// Always; a function whose loops cannot be unrolled is an error.
    Always,
    /// Never.
    Never,
}

/// Decision on an array program under its [`Unroll`].
#[derive(Clone, Debug)]
pub(crate) struct Decided {
    /// Straight-line code, if derivatives may be accumulated on it.
    straight: Option<Function>,
    /// Whether the function itself takes less time with its loops.
    has_fast_loops: bool,
    /// Form of first derivatives.
    first: First,
    /// Reason for the form of the function itself, in one line.
    why: String,
    /// Kernel of the loops by the default passes, if it was compared and takes less time.
    kernel: Option<Arc<Kernel>>,
}

/// Form of the first derivatives of a function that has straight-line code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum First {
    /// Straight-line code: no loop is long enough for lanes.
    Straight,
    /// The form of the faster kernel.
    Faster,
    /// Loops, which are much faster in the function itself.
    Loops,
    /// Loops, for higher derivatives too: the library states derivatives that are shorter.
    Stated,
}

impl Decided {
    /// Returns the decision for a function that keeps its loops for this reason.
    fn loops(why: &str) -> Self {
        let why = format!("loops are kept: {why}");
        Self { straight: None, has_fast_loops: true, first: First::Loops, why, kernel: None }
    }

    /// Returns the decision for a function whose loops take less time, although derivatives may be accumulated on
    /// `straight`.
    fn fast_loops(straight: Function, first: First, faster: FastLoops) -> Self {
        Self { straight: Some(straight), first, kernel: Some(faster.kernel), ..Self::loops(&faster.why) }
    }
}

/// Loops that take clearly less time than straight-line code.
pub(crate) struct FastLoops {
    /// Their predicted time and that of straight-line code, for messages.
    why: String,
    /// Their kernel by the default passes.
    kernel: Arc<Kernel>,
}

/// Estimated times of two kernels of one function.
pub(crate) struct Times {
    loops: f64,
    straight: f64,
    /// Kernel with loops.
    kernel: Kernel,
}

impl Times {
    /// Maximum time of loops that are taken, as a fraction of the time of straight-line code: estimates of the same
    /// code in two forms differ by about a tenth.
    const FAST: f64 = 0.9;

    /// The same for a function whose first derivatives are not compared.
    const MUCH_FASTER: f64 = 0.5;

    /// Returns the times of `loops` and `straight`; `None` if one of them cannot be lowered.
    pub(crate) fn of(loops: &Function, straight: &Function) -> Option<Self> {
        let passes = Passes::from(&CompileOptions::default());
        let kernel = passes.kernel(loops).ok()?;
        let straight = chainrule_kernel::time(&passes.kernel(straight).ok()?);
        Some(Self { loops: chainrule_kernel::time(&kernel), straight, kernel })
    }

    /// Returns the loops, if their time is clearly less.
    pub(crate) fn fast_loops(self) -> Option<FastLoops> {
        let [loops, straight] = self.shown();
        let why = || format!("their predicted time is {loops}, and {straight} unrolled");
        (self.loops < Self::FAST * self.straight).then(|| FastLoops { why: why(), kernel: Arc::new(self.kernel) })
    }

    /// Returns the times of loops and of straight-line code, for messages.
    fn shown(&self) -> [String; 2] {
        [self.loops, self.straight].map(|units| shown_time(units * WEIGHTS.unit_ns))
    }

    /// Returns the form of first derivatives.
    fn first(&self) -> First {
        if self.loops < Self::MUCH_FASTER * self.straight { First::Loops } else { First::Faster }
    }
}

/// Returns the number of operations for messages: an estimate may exceed any integer.
fn rounded(operations: f64) -> String {
    if operations < 1e6 { format!("{operations:.0}") } else { format!("{operations:.0e}") }
}

impl Function {
    /// Selects whether the loops of the function and of its derivatives are unrolled. No effect on straight-line code.
    ///
    /// ```
    /// use chainrule::{Module, Unroll};
    /// let text = "let f = fun (x : [3]Double) -> sum 3 (fun i -> sin x[i])";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// assert!(!f.keeps_loops() && f.clone().unroll(Unroll::Never).keeps_loops());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn unroll(self, unroll: Unroll) -> Self {
        let Body::Array(body) = &self.body else { return self };
        let mut body = ArrayBody::clone(body);
        (body.unroll, body.decided) = (unroll, Arc::default());
        Self::of_array(body)
    }

    /// Returns the same function for these values of size parameters and `Int` arguments, by name: sizes become numbers
    /// in the types of the others, and the `Int` arguments are removed. Straight-line code is returned unchanged.
    ///
    /// # Errors
    /// Fails if there is no size with such a name, or the function is not defined for these sizes.
    ///
    /// ```
    /// use chainrule::Module;
    /// let text = "let f = fun (x : [n]Double) (k : Int) -> real k * vectorSum x";
    /// let f = Module::from_text("f.ft", text)?.function("f")?.at_sizes(&[("n", 3), ("k", 2)])?;
    /// assert_eq!(f.inputs().len(), 1);
    /// assert_eq!(f.inputs()[0].extents, [Some(3)]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn at_sizes(&self, sizes: &[(&str, i64)]) -> Result<Self> {
        let Body::Array(body) = &self.body else { return Ok(self.clone()) };
        if sizes.is_empty() {
            return Ok(self.clone());
        }
        let f = &body.function;
        let named = || f.sizes.iter().chain(f.params.iter().filter(|p| f.vars[**p].ty == Type::Int)).copied();
        let mut known: Vec<(VarId, i64)> = Vec::new();
        for (name, size) in sizes {
            let Some(var) = named().find(|v| f.vars[*v].name.as_deref() == Some(*name)) else {
                let names: Vec<_> = named().filter_map(|v| f.vars[v].name.as_deref()).collect();
                let help = match names.as_slice() {
                    [] => "it has no sizes".into(),
                    names => format!("its sizes are {}", names.join(", ")),
                };
                return Err(Error::request(format!("`{}` has no size `{name}`", self.name()), help));
            };
            if *size < 0 {
                return Err(Error::request(format!("the size {name}={size} is negative"), "sizes start at 0"));
            }
            known.push((var, *size));
        }
        let function = ir::specialise(f, &known);
        for requirement in &function.requires {
            let Some(size) = requirement.size.as_constant() else { continue };
            if size < 0 || (requirement.exactly_zero && size != 0) {
                let mut diagnostic = Diagnostic::error(requirement.message.clone())
                    .with_help("give sizes for which the program is defined");
                if let Some(span) = requirement.span {
                    diagnostic = diagnostic.with_label(span, "needed here");
                }
                return Err(Error::program(diagnostic, &body.sources));
            }
        }
        let body = ArrayBody { function, has_given_sizes: true, decided: Arc::default(), ..ArrayBody::clone(body) };
        Ok(Self::of_array(body))
    }

    /// Returns straight-line code for given sizes, as by [`Self::at_sizes`], regardless of its cost. The other
    /// arguments and the result are those of the function, and so are those of its derivatives. Straight-line code is
    /// returned unchanged.
    ///
    /// # Errors
    /// Fails if a size is missing or unknown, or loops cannot be unrolled because they depend on data.
    pub fn unrolled(&self, sizes: &[(&str, i64)]) -> Result<Self> {
        guard(|| self.at_sizes(sizes)?.unroll_within(UNROLL_BUDGET))
    }

    /// Returns the function of the `chosen` parts of the result of a program: a single part bare, several as a record.
    pub(crate) fn selected(&self, chosen: &[Chosen]) -> Result<Self> {
        let body = match &self.body {
            Body::Scalar(body) => body,
            Body::Array(body) => {
                let parts: Vec<PartOf> = chosen.iter().map(|chosen| chosen.part.clone()).collect();
                let function = parts::select(&body.function, &parts);
                let body = ArrayBody { function, decided: Arc::default(), ..ArrayBody::clone(body) };
                return Ok(Self::of_array(body));
            }
        };
        let signature = self.signature();
        let entries: Vec<(Name, Type)> =
            chosen.iter().map(|chosen| (chosen.part.name.clone(), chosen.ty.clone())).collect();
        let ty = record(&entries);
        let nodes = selected(&body.outputs, &signature.results, chosen);
        let port =
            |(leaf, s): (Leaf, Selected)| Port { name: leaf.name, shape: s.shape, nodes: s.nodes, pattern: None };
        let outputs = leaves(&ty, "result").into_iter().zip(nodes).map(port).collect();
        let program = Signature { params: signature.params.clone(), results: vec![(Name::new("result"), ty)] };
        Self::from_scalar(
            self.name(),
            ScalarBody { outputs, program: Some(program), derivation: None, ..ScalarBody::clone(body) },
        )
    }

    /// Returns the form of the function that is compiled: straight-line code, if [`Unroll`] selects it. Computed once.
    pub(crate) fn decided(&self) -> Result<&Self> {
        Ok(match self.decision()? {
            Some(Decided { straight: Some(straight), has_fast_loops: false, .. }) => straight,
            _ => self,
        })
    }

    /// Does the same, without the reason why it cannot be unrolled.
    pub(crate) fn decided_or_self(&self) -> &Self {
        self.decided().unwrap_or(self)
    }

    /// Returns the form of the function that is differentiated: straight-line code also where the loops of the function
    /// itself take less time in lanes, because accumulation saves most operations of derivatives.
    pub(crate) fn to_differentiate(&self) -> Result<&Self> {
        let decided = self.decision()?.filter(|decided| decided.first != First::Stated);
        Ok(decided.and_then(|decided| decided.straight.as_ref()).unwrap_or(self))
    }

    /// Returns the form of the first derivatives of an array program that has straight-line code.
    pub(crate) fn form_of_first_derivatives(&self) -> First {
        self.decision().ok().flatten().map_or(First::Straight, |decided| decided.first)
    }

    fn decision(&self) -> Result<Option<&Decided>> {
        let Body::Array(body) = &self.body else { return Ok(None) };
        match body.decided.get_or_init(|| guard(|| self.decide(body))) {
            Ok(decided) => Ok(Some(decided)),
            Err(error) => Err(error.clone()),
        }
    }

    /// Returns this array program, which keeps its loops; `straight` is the same function as straight-line code, on
    /// which derivatives are accumulated.
    pub(crate) fn with_fast_loops(self, straight: Self, faster: FastLoops) -> Self {
        let Body::Array(body) = &self.body else { return self };
        let decided = Arc::new(OnceLock::from(Ok(Decided::fast_loops(straight, First::Faster, faster))));
        Self::of_array(ArrayBody { decided, ..ArrayBody::clone(body) })
    }

    /// Returns the kernel of the loops by the default passes, if it is known from the decision to keep them.
    pub(crate) fn kernel_of_loops(&self) -> Option<Kernel> {
        let decided = self.decision().ok()??;
        decided.kernel.as_ref().map(|kernel| Kernel { name: self.name().clone(), ..Kernel::clone(kernel) })
    }

    /// Returns why the function is straight-line code or keeps its loops, in one line; `None` for a function that was
    /// never an array program.
    #[must_use]
    pub fn unrolling(&self) -> Option<String> {
        self.decision().ok()?.map(|decided| decided.why.clone())
    }

    fn decide(&self, body: &ArrayBody) -> Result<Decided> {
        let keep = |why: &str| Ok(Decided::loops(why));
        let unroll = |straight: Self, first: First, why: String| {
            Ok(Decided { straight: Some(straight), has_fast_loops: false, first, why, kernel: None })
        };
        match body.unroll {
            Unroll::Never => return keep("as requested"),
            Unroll::Always => {
                let straight = self.unroll_within(UNROLL_BUDGET)?;
                return unroll(straight, First::Straight, "loops are unrolled, as requested".to_owned());
            }
            Unroll::Auto => {}
        }
        let f = &body.function;
        if body.semantics == Semantics::Strict {
            return keep("strict code computes what the program says");
        }
        if let Some(open) = f.sizes.iter().chain(f.params.iter().filter(|p| *f.ty(**p) == Type::Int)).next() {
            let name = f.vars[*open].name.as_deref().unwrap_or("?");
            return keep(&format!("`{name}` is not known"));
        }
        if chainrule_autodiff::own_derivative(f).is_some() {
            return keep("a derivative is stated");
        }
        if !f.params.iter().all(|param| pays::has_few_elements(f.ty(*param)))
            || !pays::has_few_elements(f.result_type())
        {
            return keep(&format!("an argument or a result has more than {} elements", pays::MAX_ELEMENTS));
        }
        let Estimate { operations, loops, lanes, chooses, .. } = Estimate::of(f);
        let counted = rounded(operations);
        let most = if body.has_given_sizes { pays::MAX_OPERATIONS_OF_GIVEN_SIZES } else { pays::MAX_OPERATIONS };
        if operations > most {
            return keep(&format!("unrolled they have about {counted} operations, more than {most}"));
        }
        match self.unroll_within(pays::NODES_PER_OPERATION * most as usize) {
            Ok(function) => {
                let counts = function.counts().unwrap_or_default();
                let weight = counts.weight as f64;
                if chooses && counts.logic > pays::MAX_SELECTIONS {
                    return keep(&format!("data select integers, of which straight-line code computes all ({counts})"));
                }
                let is_near = weight <= pays::LANE_SPEEDUP * loops && operations <= pays::MAX_OPERATIONS_NEAR_LOOPS;
                if weight > loops && !is_near {
                    let (loops, weight) = (rounded(loops), rounded(weight));
                    return keep(&format!("their cost is estimated at {loops}, and {weight} unrolled"));
                }
                let factored = || function.value().quick().function().ok();
                let are_compared = lanes || chooses;
                let times =
                    if are_compared { factored().and_then(|factored| Times::of(self, &factored)) } else { None };
                let form_if = |is_fast: bool, times: Option<&Times>| match times {
                    _ if chooses && counts.logic > pays::MAX_DIFFERENTIATED_SELECTIONS => First::Stated,
                    Some(times) if is_fast => times.first(),
                    _ if are_compared => First::Faster,
                    _ => First::Straight,
                };
                let (if_fast, first) = (form_if(true, times.as_ref()), form_if(false, times.as_ref()));
                let shown = times.as_ref().map_or_else(String::new, |times| {
                    let [loops, straight] = times.shown();
                    format!("; their predicted time is {straight}, and {loops} with loops")
                });
                if let Some(faster) = times.and_then(Times::fast_loops) {
                    return Ok(Decided::fast_loops(function, if_fast, faster));
                }
                unroll(function, first, format!("loops are unrolled: all sizes are known, {counts}{shown}"))
            }
            // A failure in straight-line code may be in a branch that is never taken.
            Err(error) if !error.is_bug() => keep(&first_line(&error)),
            Err(error) => Err(error),
        }
    }

    fn unroll_within(&self, budget: usize) -> Result<Self> {
        timing::time(UNROLL, || self.unroll_now(budget))
    }

    fn unroll_now(&self, budget: usize) -> Result<Self> {
        let Body::Array(body) = &self.body else { return Ok(self.clone()) };
        if let Some(span) = chainrule_autodiff::own_derivative(&body.function) {
            let message = Diagnostic::limitation(format!("the loops of `{}` cannot be unrolled", self.name()))
                .with_reason("straight-line code is differentiated as it is computed, and here a derivative is stated")
                .with_help("derive it with its loops");
            let message = span.into_iter().fold(message, |message, span| message.with_label(span, "stated here"));
            return Err(Error::program(message, &body.sources));
        }
        let function = match body.semantics {
            Semantics::Algebraic => chainrule_autodiff::without_products_of_roots(&body.function),
            Semantics::Strict => Cow::Borrowed(&body.function),
        };
        let expanded = timing::time(DIFFERENTIATE, || chainrule_autodiff::expand(&function));
        let expanded = expanded.map_err(|d| Error::program(d, &body.sources))?;
        let f = &expanded;
        if let Some(open) = f.sizes.iter().chain(f.params.iter().filter(|p| *f.ty(**p) == Type::Int)).next() {
            let name = f.vars[*open].name.as_deref().unwrap_or("?");
            return Err(Error::request(
                format!("the size `{name}` of `{}` is not known", self.name()),
                format!("give it a number: `--size {name}=3` on the command line, `(\"{name}\", 3)` in Rust"),
            ));
        }
        // An array of integers may be empty, so that its elements tell nothing.
        if !leaves(f.result_type(), "").iter().all(|leaf| leaf.scalar == Type::Double) {
            return Err(Error::request(
                format!("a result of `{}` holds integers or truth values", self.name()),
                "only doubles can be results of straight-line code; keep its loops",
            ));
        }
        let extent = |size: &Size| size.as_constant().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let mut graph = Graph::new(body.semantics);
        let mut params = Vec::new();
        let mut inputs = Vec::new();
        let mut args = Vec::new();
        for param in &f.params {
            let (name, ty) = (f.vars[*param].name.as_deref().unwrap_or("arg"), f.ty(*param));
            let mut nodes = Vec::new();
            for leaf in leaves(ty, name) {
                if leaf.scalar != Type::Double {
                    return Err(Error::request(
                        format!("the argument `{}` of `{}` holds integers", leaf.name, self.name()),
                        "a function with integer arrays keeps its loops: derive it as an array program",
                    ));
                }
                let shape: Vec<usize> = leaf.extents.iter().map(&extent).collect();
                let len = shape.iter().try_fold(1_usize, |len, n| len.checked_mul(*n));
                if len.is_none_or(|len| len > budget.saturating_sub(graph.len())) {
                    let extents: String = shape.iter().map(|n| format!("[{n}]")).collect();
                    return Err(Error::request(
                        format!("the argument `{}` has too many elements to be unrolled: {extents}", leaf.name),
                        format!(
                            "straight-line code has {budget} elements and operations at most: \
                             keep the loops, or make the sizes smaller"
                        ),
                    ));
                }
                let elements: Vec<NodeId> = indices(&shape).map(|i| graph.input(format!("{}{i}", leaf.name))).collect();
                nodes.push(elements.clone());
                inputs.push(Port { name: leaf.name, shape, nodes: elements, pattern: None });
            }
            params.push((Name::new(name), ty.clone()));
            args.push(assemble(ty, &nodes, &extent));
        }
        let (result, spans) = unroll(f, args, &mut graph, budget).map_err(|d| Error::program(d, &body.sources))?;
        let origins = Some(Arc::new(Origins::track(&mut graph, &spans, &body.sources)));
        let Some(nodes) = take_apart(f.result_type(), &result) else {
            return Err(Error::Bug("a result of doubles was unrolled to something else".to_owned()));
        };
        let outputs = leaves(f.result_type(), "result")
            .into_iter()
            .zip(nodes)
            .map(|(leaf, nodes)| Port {
                name: leaf.name,
                shape: leaf.extents.iter().map(&extent).collect(),
                nodes,
                pattern: None,
            })
            .collect();
        let program = Some(Signature { params, results: vec![(Name::new("result"), f.result_type().clone())] });
        Self::from_scalar(self.name(), ScalarBody { graph, inputs, outputs, program, origins, derivation: None })
    }
}

/// Returns the first message of an error, without its location.
fn first_line(error: &Error) -> String {
    match error {
        Error::Program { diagnostics, .. } => diagnostics.iter().next().map_or_else(String::new, |d| d.title.clone()),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

impl Error {
    /// Returns whether the error is a bug of Chainrule.
    fn is_bug(&self) -> bool {
        match self {
            Self::Bug(_) => true,
            Self::Program { diagnostics, .. } => diagnostics.iter().any(|d| d.kind == Kind::Bug),
            _ => false,
        }
    }
}
