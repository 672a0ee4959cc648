//! Sparse derivatives by a few directions, for programs whose indices do not determine their pattern.
//!
//! In: a function that keeps its loops. Out: a [`Coloured`]; for sizes and integers a [`PreparedColoured`]: the
//! pattern, found by tracing each number through one evaluation ([`chainrule_autodiff::sparse::dependence`]), groups of
//! columns that share no row ([`chainrule_accumulate::colouring`]), and the derivative along one direction, which is
//! run once per group. Of a Hessian, which is symmetric, an entry may be read at either of its two positions: groups
//! are those of a star colouring if that has fewer.
//!
//! [`Function::sparse_jacobian`] is better if the indices determine the pattern: it computes each number once, and its
//! pattern holds for all branches.

use crate::function::{ArrayBody, Body};
use crate::sparse::{SparseForm, results};
use crate::{Backend, CompileOptions, Compiled, Error, Function, Pattern, Prepared, Result};
use chainrule_accumulate::colouring;
use chainrule_autodiff::own_derivative;
use chainrule_autodiff::sparse::dependence::{Dependence, dependence};
use chainrule_autodiff::sparse::interaction::interaction;
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_ir::{Type, Value};
use chainrule_scalarise::leaves::leaves;

/// Sparse derivative by directions; created by [`Function::coloured_jacobian`] and [`Function::coloured_hessian`].
#[derive(Debug)]
pub struct Coloured {
    /// Function of the Jacobian.
    function: Function,
    by: Vec<Name>,
    /// Scalar function of which it is the gradient, if it is one: its Jacobian is symmetric.
    scalar: Option<Function>,
    /// Derivative along a direction.
    jvp: Compiled,
    /// Leaves of the direction among the arguments of `jvp`, in the order of the columns.
    directions: Vec<usize>,
}

/// Sparse derivative at fixed extents and integers; created by [`Coloured::prepare`]. Doubles may change between runs.
#[derive(Debug)]
pub struct PreparedColoured<'c> {
    directions: &'c [usize],
    pattern: Pattern,
    n_colours: usize,
    /// Columns of each colour, each with its leaf and its position there.
    seeds: Vec<Vec<(usize, usize)>>,
    /// Rows of each colour, with their entries.
    entries: Vec<Vec<(usize, usize)>>,
    prepared: Prepared<'c>,
    n_leaves: usize,
    values: Vec<f64>,
}

impl Function {
    /// Returns the sparse Jacobian of all results by the arguments `by`, or by all that contain doubles if `by` is
    /// empty, for a function that keeps its loops and whose control flow depends on no double. It takes as many
    /// directions as there are groups of columns that share no row.
    ///
    /// # Errors
    /// Fails for an argument that does not exist, contains no double, or also contains integers; a function of
    /// straight-line code.
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// // Heat in a rod: the indices do not determine dependences, since each step reads the previous one.
    /// let module = Module::from_text("heat.ft", "let heat = fun (u : [n]Double) (steps : Card) ->
    ///   ifold (fun u k -> build n (fun i ->
    ///     u[i] + 0.1 * (u[max 0 (i - 1)] - 2 * u[i] + u[min (n - 1) (i + 1)]))) u steps")?;
    /// let coloured = module.function("heat")?.coloured_jacobian(&["u"])?;
    /// let mut jacobian = coloured.prepare(&[vec![1.0; 100].into(), Value::Int(2)])?;
    /// // Two to either side, whatever the number of columns.
    /// assert_eq!((jacobian.n_colours(), jacobian.pattern().n_entries()), (5, 494));
    /// jacobian.run()?;
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn coloured_jacobian(&self, by: &[&str]) -> Result<Coloured> {
        self.coloured_jacobian_with(by, &CompileOptions::default())
    }

    /// Does the same as [`Self::coloured_jacobian`], compiled with other options.
    ///
    /// # Errors
    /// The errors of [`Self::coloured_jacobian`] and [`Function::compile_with`].
    pub fn coloured_jacobian_with(&self, by: &[&str], options: &CompileOptions) -> Result<Coloured> {
        Coloured::new(self, by, None, options)
    }

    /// Returns the sparse Hessian of a scalar function: the Jacobian of its gradient, as [`Self::coloured_jacobian`],
    /// but with fewer directions if it suffices that each number can be read at one of its two positions, (i, j) or (j,
    /// i).
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// // Each number meets its neighbour and the first: columns share the first row, so none go together. Read at
    /// // either place, the first is alone, and three colours do for the others.
    /// let module = Module::from_text("arrow.ft", "let f = fun (x : [n]Double) ->
    ///   ifold (fun s i -> s + x[0] * x[i] * x[max 0 (i - 1)]) 0.0 n")?;
    /// let hessian = module.function("f")?.coloured_hessian(&["x"])?;
    /// assert_eq!(hessian.prepare(&[vec![1.0; 100].into()])?.n_colours(), 4);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Self::coloured_jacobian`]; a result that is not a scalar.
    pub fn coloured_hessian(&self, by: &[&str]) -> Result<Coloured> {
        self.coloured_hessian_with(by, &CompileOptions::default())
    }

    /// Does the same as [`Self::coloured_hessian`], compiled with other options.
    ///
    /// # Errors
    /// The errors of [`Self::coloured_hessian`] and [`Function::compile_with`].
    pub fn coloured_hessian_with(&self, by: &[&str], options: &CompileOptions) -> Result<Coloured> {
        let Body::Array(_) = &self.body else { return Err(straight(self)) };
        Coloured::new(&self.gradient().by(by).function()?, by, Some(self.clone()), options)
    }
}

fn straight(function: &Function) -> Error {
    Error::request(
        format!("`{}` is straight-line code", function.name()),
        "ask for its sparse derivative with `.jacobian().sparse()` or `.hessian().sparse()`",
    )
}

fn is_of_doubles(ty: &Type) -> bool {
    leaves(ty, "").iter().all(|leaf| leaf.scalar == Type::Double)
}

impl Coloured {
    fn new(function: &Function, by: &[&str], scalar: Option<Function>, options: &CompileOptions) -> Result<Self> {
        let Body::Array(_) = &function.body else { return Err(straight(function)) };
        let params = &function.signature().params;
        let mut names: Vec<Name> = by.iter().map(|name| Name::new(name)).collect();
        if names.is_empty() {
            let holds_double = |ty: &Type| leaves(ty, "").iter().any(|leaf| leaf.scalar == Type::Double);
            names = params.iter().filter(|(_, ty)| holds_double(ty)).map(|(name, _)| name.clone()).collect();
        }
        let named: Vec<&str> = names.iter().map(Name::as_str).collect();
        let jvp = function.jvp().by(&named).function()?.compile_with(options)?;
        if let Some((name, _)) = params.iter().find(|(name, ty)| names.contains(name) && !is_of_doubles(ty)) {
            return Err(Error::request(
                format!("the argument `{name}` holds integers besides doubles"),
                "give the doubles as an argument of their own",
            ));
        }
        let mut directions = Vec::new();
        for name in &names {
            let wanted = format!("{name}_tan");
            let mut at = 0;
            for (param, ty) in &jvp.signature().params {
                let n = leaves(ty, param).len();
                if param.as_str() == wanted {
                    directions.extend(at..at + n);
                }
                at += n;
            }
        }
        Ok(Self { function: function.clone(), by: names, scalar, jvp, directions })
    }

    /// Returns the backend that runs it: never [`Backend::Auto`].
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.jvp.backend()
    }

    /// As [`Compiled::refusal`].
    #[must_use]
    pub fn refusal(&self) -> Option<&Diagnostic> {
        self.jvp.refusal()
    }

    /// Returns the same, compiled with other options.
    ///
    /// # Errors
    /// The errors of [`Function::compile_with`].
    pub fn with_options(mut self, options: &CompileOptions) -> Result<Self> {
        let named: Vec<&str> = self.by.iter().map(Name::as_str).collect();
        self.jvp = self.function.jvp().by(&named).function()?.compile_with(options)?;
        Ok(self)
    }

    /// Returns the dependences of each double.
    fn followed(&self, body: &ArrayBody, args: &[Value<f64>]) -> Result<Dependence> {
        let error = |d: Diagnostics| Error::program(d, &body.sources);
        match self.scalar.as_ref().map(|scalar| &scalar.body) {
            Some(Body::Array(scalar)) if own_derivative(&scalar.function).is_none() => {
                interaction(&scalar.function, &self.by, args).map_err(error)
            }
            _ => dependence(&body.function, &self.by, args).map_err(error),
        }
    }

    /// Finds the pattern at these arguments, of which only sizes and integers matter, and allocates memory for the
    /// values.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument; a limitation if control flow depends on
    /// doubles.
    pub fn prepare(&self, args: &[Value<f64>]) -> Result<PreparedColoured<'_>> {
        let Body::Array(body) = &self.function.body else { return Err(straight(&self.function)) };
        let params = &self.function.signature().params;
        let mut all = args.to_vec();
        for name in &self.by {
            let Some(k) = params.iter().position(|(param, _)| param == name) else { continue };
            all.extend(args.get(k).map(|arg| arg.map(&mut |_| 0.0)));
        }
        let mut prepared = self.jvp.prepare(&all)?;
        let found = self.followed(body, args)?;
        let pattern = Pattern::new(found.n_rows, found.n_columns, found.at);
        let (mut colours, mut n_colours) = colouring::columns(&pattern);
        if self.scalar.is_some()
            && let Some((star, n_star)) = colouring::star::columns(&pattern)
            && n_star < n_colours
        {
            (colours, n_colours) = (star, n_star);
        }
        let Some(reads) = colouring::reads(&pattern, &colours) else {
            return Err(Error::Bug("a colouring from which not all entries can be read".to_owned()));
        };
        let mut places = Vec::with_capacity(colours.len());
        for leaf in &self.directions {
            places.extend((0..prepared.argument_mut(*leaf).len()).map(|k| (*leaf, k)));
        }
        let n_leaves: usize = self.jvp.signature().results.iter().map(|(name, ty)| leaves(ty, name).len()).sum();
        let n_results: usize = (0..n_leaves).map(|leaf| prepared.result(leaf).len()).sum();
        if places.len() != colours.len() || n_results != pattern.shape().0 {
            let shape = format!("{} by {}", n_results, places.len());
            return Err(Error::Bug(format!("a Jacobian of {shape} has a pattern of {:?}", pattern.shape())));
        }
        let (mut seeds, mut entries) = (vec![Vec::new(); n_colours], vec![Vec::new(); n_colours]);
        for (colour, place) in colours.iter().zip(places) {
            seeds[*colour].push(place);
        }
        for (entry, (row, colour)) in reads.into_iter().enumerate() {
            entries[colour].push((row, entry));
        }
        let values = vec![0.0; pattern.n_entries()];
        let directions = &self.directions;
        Ok(PreparedColoured { directions, pattern, n_colours, seeds, entries, prepared, n_leaves, values })
    }
}

impl PreparedColoured<'_> {
    /// Returns the positions of the entries.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns the number of directions of a run.
    #[must_use]
    pub fn n_colours(&self) -> usize {
        self.n_colours
    }

    /// Returns the doubles of argument `i`, row-major, for writing; empty for integers and for arguments that do not
    /// exist. Arguments are numbered as in [`Function::inputs`].
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        if self.directions.contains(&i) { &mut [] } else { self.prepared.argument_mut(i) }
    }

    /// Computes the values.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn run(&mut self) -> Result<()> {
        let mut rows = Vec::with_capacity(self.pattern.shape().0);
        for (seeds, entries) in self.seeds.iter().zip(&self.entries) {
            for leaf in self.directions {
                self.prepared.argument_mut(*leaf).fill(0.0);
            }
            for (leaf, k) in seeds {
                self.prepared.argument_mut(*leaf)[*k] = 1.0;
            }
            self.prepared.run()?;
            rows.clear();
            for leaf in 0..self.n_leaves {
                rows.extend_from_slice(self.prepared.result(leaf));
            }
            for (row, entry) in entries {
                self.values[*entry] = rows[*row];
            }
        }
        Ok(())
    }

    /// Returns the values of the last run, in the order of the pattern's entries.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// As [`crate::PreparedSparse::results`].
    #[must_use]
    pub fn results(&self, form: SparseForm) -> Vec<(Name, Type, Value<f64>)> {
        results(&self.pattern, &self.values, form)
    }
}
