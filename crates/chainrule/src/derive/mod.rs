//! Requests for derivatives of a function: parts, results, arguments, strategy.
//!
//! In: a function and a request ([`Derivation`]). Out: a function that computes the requested derivatives, and can be
//! differentiated again or compiled.
//!
//! | module | owns |
//! | --- | --- |
//! | `array` | programs whose loops are kept: forward and reverse mode on the array IR (`autodiff`) |
//! | `scalar` | straight-line code: accumulation on the scalar graph (`accumulate`) |
//! | `select` | requested results and arguments, and parts of them |
//! | `whole` | results of derivatives as arrays and records of the program |
//!
//! A [`Derivation`] takes the second way if the function is straight-line code, or becomes so because all sizes are
//! known and the cost model says that it pays (`straight`).

mod array;
mod scalar;
mod select;
mod whole;

pub(crate) use select::{Chosen, Selected, selected};
pub(crate) use whole::record;

use select::{choose, is_part};

use crate::function::Body;
use crate::guard::guard;
use crate::{Compiled, Error, Function, Result, Unroll};
use chainrule_accumulate::strategy::Report;
use chainrule_accumulate::{GraphPasses, Improvement, Optimise};
use chainrule_autodiff::Part;
use chainrule_base::Name;
use std::borrow::Cow;

/// Requested part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Part that loops and straight-line code have alike.
    Part(Part),
    /// All derivatives of an order.
    Order(usize),
}

impl What {
    /// Returns the part of a request on array programs; `None` for a derivative of any order.
    fn part(self) -> Option<Part> {
        if let Self::Part(part) = self { Some(part) } else { None }
    }

    /// Returns the order of a derivative of any order.
    fn order(self) -> Option<usize> {
        if let Self::Order(order) = self { Some(order) } else { None }
    }

    /// Returns the suffix of a derived function's name.
    fn suffix(self) -> String {
        match self {
            Self::Part(part) => part.name().to_owned(),
            Self::Order(n) => format!("order{n}"),
        }
    }
}

/// Triangle of a matrix, with the diagonal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Triangle {
    /// Columns up to the row.
    Lower,
    /// Columns from the row on.
    Upper,
}

impl Triangle {
    /// Returns whether an entry is in the triangle.
    #[must_use]
    pub fn has(self, row: usize, column: usize) -> bool {
        match self {
            Self::Lower => column <= row,
            Self::Upper => column >= row,
        }
    }
}

/// Request for derivatives of a function. Only requested parts are computed.
///
/// A function of a program, with its loops or unrolled, has one `result`: the derivative, or a record of several, of
/// the types that [`chainrule_autodiff::request`] lists. Other results have systematic names: the Jacobian of `f` by
/// `x` is `df_dx`, a Hessian `d2f_dx_dy`, its diagonal `d2f_dx2`, the derivative along a direction `f_tan`, the
/// derivative against one `x_adj`, a Hessian times a direction `x_hvp`. Shapes are those of the result followed by
/// those of the arguments.
///
/// ```
/// use chainrule::{Function, vars};
/// let (q, p) = (vars("q", 2), vars("p", 2));
/// let f = Function::new("f", (&q, &p), &(q.dot(&p) * &q[0]))?;
/// let both = f.gradient().by(&["q"]).with_value().compile()?;
/// assert_eq!(both.eval(&[&[1.0, 2.0], &[3.0, 4.0]])?, [vec![11.0], vec![14.0, 4.0]]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Derivation {
    function: Function,
    what: Vec<What>,
    by: Option<Vec<String>>,
    of: Option<Vec<String>>,
    strategy: String,
    optimise: Optimise,
    sparse: bool,
    triangle: Option<Triangle>,
    pub(crate) checkpoints: Option<u32>,
    /// Passes over the scalar graph of the results.
    graph_passes: GraphPasses,
    /// Whether reports have listings of the steps of accumulations.
    lists_steps: bool,
}

/// Source lines of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Tracked,
    Unknown,
}

/// Derived function, with a report of its derivation.
#[derive(Clone, Debug)]
pub struct Derived {
    /// Function.
    pub function: Function,
    /// One report for each accumulation; none for an array program.
    pub reports: Vec<Report>,
    /// Path of each result in the record of an equivalent array program: the gradient by `x` is at `gradient`, `x` if
    /// there are other parts and other arguments. Empty if that record is the result: for an array program, and for an
    /// unrolled one, except for sparse derivatives.
    pub paths: Vec<Vec<Name>>,
    /// Saving of value numbering and factoring; `None` for an array program.
    pub improvement: Option<Improvement>,
    /// For an array program that has a Jacobian both by rows and by columns, the condition for rows: `2*m < n`.
    pub by_rows_where: Option<String>,
    /// Why the derivative has another form than the function, in one line: loops where that is straight-line code, or
    /// the reverse.
    pub form: Option<String>,
}

impl Derived {
    /// Returns a request for the function itself.
    #[must_use]
    pub fn itself(function: &Function) -> Self {
        let paths = match &function.body {
            Body::Scalar(body) if body.program.is_some() => Vec::new(),
            Body::Scalar(body) => match body.outputs.as_slice() {
                [_] => vec![Vec::new()],
                several => several.iter().map(|port| scalar::result_path(&port.name)).collect(),
            },
            Body::Array(_) => Vec::new(),
        };
        let function = function.clone();
        Self { function, reports: Vec::new(), paths, improvement: None, by_rows_where: None, form: None }
    }
}

impl Derivation {
    pub(crate) fn new(function: Function, what: What) -> Self {
        let optimise = Optimise::default();
        let (strategy, sparse, triangle, checkpoints) = ("auto".into(), false, None, None);
        let graph_passes = GraphPasses::default();
        Self {
            function,
            what: vec![what],
            by: None,
            of: None,
            strategy,
            optimise,
            sparse,
            triangle,
            checkpoints,
            graph_passes,
            lists_steps: false,
        }
    }

    /// Restricts the request to these arguments or parts of them: elements such as `q[3]`, ranges such as `q[0..3]`,
    /// fields such as `p.a`. Each bracket is for the next dimension; the field of an array of records is that of each
    /// element. A part is called `q_3`, `q_0_to_3` or `p_a` in results and directions.
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// let text = "let f = fun (x : [n]Double) -> sum n (fun i -> sin x[i])";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let slope = f.gradient().by(&["x[1]"]).compile()?;
    /// assert_eq!(slope.call(&[vec![1.0, 0.0].into()])?, [Value::Real(1.0)]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn by(mut self, arguments: &[&str]) -> Self {
        self.by = Some(arguments.iter().map(ToString::to_string).collect());
        self
    }

    /// Restricts the request to these results or parts of them, as [`Self::by`]: `tau`, `tau[0]`. The result of a
    /// program is `result`, which may be left out: `result[2]` is `[2]`, `result.a` is `a`.
    #[must_use]
    pub fn of(mut self, results: &[&str]) -> Self {
        self.of = Some(results.iter().map(ToString::to_string).collect());
        self
    }

    /// Selects a strategy of accumulation instead of `auto`; [`crate::STRATEGIES`] lists them. Functions that keep
    /// their loops have two besides `auto`: `forward` and `reverse`.
    #[must_use]
    pub fn strategy(mut self, name: &str) -> Self {
        self.strategy = name.into();
        self
    }

    /// Disables value numbering and factoring: derivatives stay as accumulated. Functions built under strict semantics
    /// are never changed by them, nor are those that keep their loops.
    #[must_use]
    pub fn without_optimisation(mut self) -> Self {
        self.optimise = Optimise::Off;
        self
    }

    /// Searches shortly for derivatives with few operations: straight-line code of some ten to a hundred operations is
    /// derived three to six times faster, and has a few percent more operations; code that the search can shrink much,
    /// such as the dynamics of robots, has up to nearly twice as many. Array programs are the same.
    ///
    /// ```
    /// use chainrule::Module;
    /// let text = "let f = fun (x : [3]Double) -> sum 3 (fun i -> sin x[i])";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let gradient = f.gradient().quick().function()?;
    /// assert_eq!(gradient.counts().map(|counts| counts.call), Some(3));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.optimise = Optimise::Quick;
        self
    }

    /// Restricts Jacobians and Hessians to elements that are not structurally zero, row by row. [`Self::matrix`]
    /// compiles such a matrix of any function. [`Self::function`] returns one of straight-line code;
    /// [`Function::pattern`] has the positions of its elements.
    #[must_use]
    pub fn sparse(mut self) -> Self {
        self.sparse = true;
        self
    }

    /// Restricts a sparse matrix to its lower triangle, with the diagonal: half of a Hessian.
    ///
    /// ```
    /// use chainrule::Module;
    /// let text = "let f = fun (x : [n]Double) -> sum (n - 1) (fun i -> x[i] * x[i + 1] ** 2)";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let matrix = f.hessian().lower().matrix()?;
    /// let hessian = matrix.prepare(&[vec![1.0, 2.0, 4.0].into()])?;
    /// assert_eq!(hessian.pattern().coo(), [(1, 0), (1, 1), (2, 1), (2, 2)]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn lower(mut self) -> Self {
        self.triangle = Some(Triangle::Lower);
        self.sparse()
    }

    /// Restricts a sparse matrix to its upper triangle, with the diagonal.
    #[must_use]
    pub fn upper(mut self) -> Self {
        self.triangle = Some(Triangle::Upper);
        self.sparse()
    }

    /// Limits reverse mode to `n` states of each loop in memory (at least one); the others are recomputed from these
    /// checkpoints, by the schedule that takes the fewest steps (Griewank and Walther's *revolve*): a loop of at most
    /// C(n + t, n) steps is run at most t times more. Derivatives are the same, bit for bit before they are optimised.
    /// By default the state before every step is kept, except for loops whose number of steps is unknown at entry: they
    /// have 32 checkpoints ([`crate::Optimisation::checkpointed`]).
    ///
    /// For functions that keep their loops; straight-line code has none. Derivatives in the text of a program are
    /// expanded when it is compiled: see [`crate::CompileOptions::checkpoints`].
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// let text = "let f = fun (x : [n]Double) (s : Card) ->
    ///   vectorSum (ifold (fun y _ -> build n (fun i -> y[i] + x[i] * (1 - y[i]) * 0.01)) x s)";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let args = [vec![0.5; 10].into(), Value::Int(1000)];
    /// let (kept, again) = (f.gradient().compile()?, f.gradient().checkpoints(12).compile()?);
    /// let (mut kept, mut again) = (kept.prepare(&args)?, again.prepare(&args)?);
    /// assert!(kept.workspace_len() > 1000 * 10);
    /// assert!(again.workspace_len() < 20 * 10);
    /// kept.run()?;
    /// again.run()?;
    /// assert_eq!(kept.result(0), again.result(0));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoints(mut self, n: u32) -> Self {
        self.checkpoints = Some(n);
        self
    }

    /// Adds the value of the function itself, first among the results, in one call.
    #[must_use]
    pub fn with_value(mut self) -> Self {
        if !self.what.contains(&What::Part(Part::Value)) {
            self.what.insert(0, What::Part(Part::Value));
        }
        self
    }

    /// Adds the parts of another request on the same function, in one call. The other's choice of arguments, results
    /// and strategy is ignored.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        for what in &other.what {
            if !self.what.contains(what) {
                self.what.push(*what);
            }
        }
        self
    }

    /// Selects whether the loops of the derivative are unrolled: as [`Function::unroll`].
    #[must_use]
    pub fn unroll(mut self, unroll: Unroll) -> Self {
        self.function = self.function.unroll(unroll);
        self
    }

    fn derived_name(&self) -> String {
        let suffixes: Vec<String> = self.what.iter().map(|w| w.suffix()).collect();
        format!("{}_{}", self.function.name(), suffixes.join("_"))
    }

    /// Returns whether it requests more than the value.
    pub(crate) fn differentiates(&self) -> bool {
        self.what.iter().any(|what| *what != What::Part(Part::Value))
    }

    /// Selects the passes over the scalar graph of the results.
    pub(crate) fn graph_passes(self, graph_passes: GraphPasses) -> Self {
        Self { graph_passes, ..self }
    }

    /// Adds listings of the steps of accumulations to the reports.
    pub(crate) fn list_steps(self) -> Self {
        Self { lists_steps: true, ..self }
    }

    /// Returns the derived function, which can be differentiated again.
    ///
    /// # Errors
    /// Fails if an argument or a result does not exist, the result of a gradient is not a scalar, a strategy is
    /// unknown, or a user's function has no derivative.
    pub fn function(&self) -> Result<Function> {
        self.derive(Lines::Unknown).map(|derived| derived.function)
    }

    /// Returns the derived function with the report of its derivation; [`Function::operations_by_line`] is available
    /// for it as well.
    ///
    /// # Errors
    /// The errors of [`Self::function`].
    pub fn explain(&self) -> Result<Derived> {
        self.derive(Lines::Tracked)
    }

    fn derive(&self, lines: Lines) -> Result<Derived> {
        guard(|| {
            let selected = self.with_selected_results()?;
            if let Cow::Owned(selected) = selected {
                return selected.derive(lines);
            }
            self.check()?;
            let why = self.why_loops_are_kept();
            let function = if why.is_some() { &self.function } else { self.form()? };
            let body = match &function.body {
                Body::Scalar(body) => body,
                Body::Array(body) => {
                    let derived = self.derive_array(body)?;
                    // A function that keeps its loops anyway has its own reason.
                    let differs = lines == Lines::Tracked && !self.function.keeps_loops();
                    let form = why.filter(|_| differs).map(|why| format!("loops are kept: {why}"));
                    return Ok(Derived { form: form.or(derived.form), ..derived });
                }
            };
            let straight = Self { function: function.clone(), ..self.clone() }.derive_scalar(body, lines)?;
            if let Some(loops) = self.with_faster_loops(&straight.function) {
                return Ok(Derived { form: loops.function.unrolling(), ..loops });
            }
            let is_unrolled = self.differentiates() && self.function.keeps_loops();
            let form = is_unrolled.then(|| "loops are unrolled: straight-line code saves most in derivatives".into());
            Ok(Derived { form, ..straight })
        })
    }

    pub(crate) fn triangle(&self) -> Option<Triangle> {
        self.triangle
    }

    /// Returns whether the requested matrix is a Hessian, not a Jacobian.
    pub(crate) fn matrix_is_hessian(&self) -> Result<bool> {
        match self.what.as_slice() {
            [What::Part(Part::Jacobian | Part::Gradient)] => Ok(false),
            [What::Part(Part::Hessian)] => Ok(true),
            _ => Err(Error::request(
                "a sparse matrix is a Jacobian, a gradient or a Hessian",
                "ask for one of them alone, as in `--what jacobian`",
            )),
        }
    }

    /// Returns the requested arguments as a whole, and the requested parts of them if there are any.
    pub(crate) fn whole_arguments(&self) -> Result<(Vec<String>, Option<Vec<Chosen>>)> {
        let names = self.by.clone().unwrap_or_default();
        if !names.iter().any(|name| is_part(name)) {
            return Ok((names, None));
        }
        let params = &self.function.signature().params;
        let parts = choose(params, Some(&names), self.function.name(), "argument")?;
        let mut whole: Vec<String> = Vec::new();
        for name in parts.iter().filter_map(|chosen| params.get(chosen.part.param)).map(|(name, _)| name.to_string()) {
            if !whole.contains(&name) {
                whole.push(name);
            }
        }
        Ok((whole, Some(parts)))
    }

    /// Returns the differentiated function.
    pub(crate) fn differentiated(&self) -> &Function {
        &self.function
    }

    /// Returns the same request on a function of the selected results of a program.
    pub(crate) fn with_selected_results(&self) -> Result<Cow<'_, Self>> {
        let Some(names) = &self.of else { return Ok(Cow::Borrowed(self)) };
        let signature = self.function.signature();
        let is_program = match &self.function.body {
            Body::Scalar(body) => body.program.is_some(),
            Body::Array(_) => true,
        };
        if !is_program {
            return Ok(Cow::Borrowed(self));
        }
        let chosen = choose(&signature.results, Some(names), self.function.name(), "result")?;
        let function = self.function.selected(&chosen)?;
        Ok(Cow::Owned(Self { function, of: None, ..self.clone() }))
    }

    /// Compiles it.
    ///
    /// # Errors
    /// The errors of [`Self::function`], and if the function cannot be lowered.
    pub fn compile(&self) -> Result<Compiled> {
        self.function()?.compile()
    }
}

fn not_scalar(name: &str, what: What, elements: usize) -> Error {
    Error::request(
        format!("a {} needs one scalar result; `{name}` has {elements}", what.suffix()),
        "ask for the jacobian, or choose one result with `of`",
    )
}
