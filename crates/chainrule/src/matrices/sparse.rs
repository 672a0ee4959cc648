//! Sparse Jacobians and Hessians of array programs.
//!
//! In: a function that keeps its loops. Out: a [`Sparse`]: the pattern program and the values program of
//! [`chainrule_autodiff::sparse`], compiled; then, for sizes and integers, a [`PreparedSparse`]: the pattern, and
//! memory for repeated computation of the values.
//!
//! Layouts. The values are in the order of [`Pattern::coo`], row by row, columns ascending in each row. So they are
//! also the values of compressed rows; [`Pattern::csr`] has starts and columns, and [`Pattern::csc`] starts, rows, and
//! for each entry its position among the values. Rows and columns are numbered like the doubles of compiled results and
//! arguments: leaf after leaf, in the order of [`Function::outputs`] and [`Function::inputs`], each row-major.
//!
//! Holds: each entry is stored once; contributions of several reads of one position are added. If the values program
//! computes the entries in order, each once, it writes them to their final positions.

use crate::engine::Memory;
use crate::function::{ArrayBody, Body};
use crate::guard::guard;
use crate::prepared::Flat;
use crate::{Backend, Checks, CompileOptions, Compiled, Error, Function, Pattern, Result};
use chainrule_autodiff::sparse::{self, DenseBlock, Sparsity, ints};
use chainrule_autodiff::{Mode, Places};
use chainrule_base::{Diagnostic, Diagnostics, Name, Poly};
use chainrule_ir::{Type, Value};
use chainrule_runtime::{Doubles, Elements, Sizes, Slice, SliceMut};
use chainrule_scalarise::leaves::leaves;
use std::sync::Arc;

/// The two programs of a sparse derivative, not compiled; created by [`Function::sparse_jacobian_programs`] and
/// [`Function::sparse_hessian_programs`].
#[derive(Debug)]
pub struct SparsePrograms {
    sparsity: Sparsity,
    /// Differentiated function.
    of: Arc<ArrayBody>,
}

/// Compiled sparse derivative; created by [`Function::sparse_jacobian`] and [`Function::sparse_hessian`].
#[derive(Debug)]
pub struct Sparse {
    programs: SparsePrograms,
    pattern: Compiled,
    values: Compiled,
}

/// Sparse derivative at fixed extents and integers; created by [`Sparse::prepare`]. Doubles may change between runs.
/// Running allocates nothing but lists of arguments and results.
#[derive(Debug)]
pub struct PreparedSparse<'s> {
    sparse: &'s Sparse,
    pattern: Pattern,
    /// Entry of each computed double, [`NONE`] for those that are not entries; empty if they are exactly the entries.
    entry: Vec<usize>,
    inputs: Vec<Elements>,
    sizes: Sizes,
    memory: Memory,
    /// Results of the values program, leaf after leaf.
    computed: Doubles,
    /// Entries, unless they are exactly the computed doubles.
    entries: Vec<f64>,
    n_leaves: usize,
    /// Results of the pattern program.
    indices: Vec<Vec<i64>>,
}

/// Form of a sparse matrix as results ([`PreparedSparse::results`]). All begin with `shape`, its numbers of rows and
/// columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SparseForm {
    /// `rows`, `columns` and `values` of the entries, row by row.
    #[default]
    Coo,
    /// `starts` of the rows among the entries, one more than there are rows; `columns` and `values` of the entries.
    Csr,
    /// `starts` of the columns among the entries, one more than there are columns; `rows` and `values` of the entries,
    /// column by column.
    Csc,
}

const NONE: usize = usize::MAX;

impl Function {
    /// Returns the sparse Jacobian of all results by the arguments `by`, or by all that contain doubles if `by` is
    /// empty, for a function that keeps its loops. Its pattern is determined by the indices at which the function reads
    /// its arguments.
    ///
    /// # Errors
    /// Fails for an argument that does not exist or contains no double; a function of straight-line code, for which
    /// there is [`crate::Derivation::sparse`]; a limitation if the extents of the result depend on doubles.
    ///
    /// ```
    /// use chainrule::{Module, Value};
    /// let module = Module::from_text("f.ft", "let f = fun (x : [n]Double) (at : [m]Index) ->
    ///   build m (fun i -> sin x[at[i]])")?;
    /// let sparse = module.function("f")?.sparse_jacobian(&["x"])?;
    /// let at = Value::Array(vec![Value::Int(2), Value::Int(0)]);
    /// let mut jacobian = sparse.prepare(&[vec![0.0, 1.0, 0.0].into(), at])?;
    /// assert_eq!(jacobian.pattern().coo(), [(0, 2), (1, 0)]);
    /// jacobian.run()?;
    /// assert_eq!(jacobian.values(), [1.0, 1.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn sparse_jacobian(&self, by: &[&str]) -> Result<Sparse> {
        self.sparse_jacobian_programs(by)?.compile_with(&CompileOptions::default())
    }

    /// Returns the sparse Hessian of a scalar function: of a sum, the sum of the Hessians of its terms. Both triangles.
    ///
    /// # Errors
    /// The errors of [`Self::sparse_jacobian`]; a result that is not a scalar.
    pub fn sparse_hessian(&self, by: &[&str]) -> Result<Sparse> {
        self.sparse_hessian_programs(by)?.compile_with(&CompileOptions::default())
    }

    /// Returns the programs of [`Self::sparse_jacobian`], for compilation with options, or emission.
    ///
    /// # Errors
    /// The errors of [`Self::sparse_jacobian`].
    ///
    /// ```
    /// use chainrule::{CompileOptions, Module};
    /// let module = Module::from_text("f.ft", "let f = fun (x : [n]Double) -> build n (fun i -> sin x[i])")?;
    /// let programs = module.function("f")?.sparse_jacobian_programs(&["x"])?;
    /// assert!(programs.notes().is_empty());
    /// let sparse = programs.compile_with(&CompileOptions { threads: Some(2), ..CompileOptions::default() })?;
    /// let mut jacobian = sparse.prepare(&[vec![0.0; 4].into()])?;
    /// jacobian.run()?;
    /// assert_eq!(jacobian.values(), [1.0; 4]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn sparse_jacobian_programs(&self, by: &[&str]) -> Result<SparsePrograms> {
        guard(|| SparsePrograms::new(self, by, sparse::jacobian))
    }

    /// Returns the programs of [`Self::sparse_hessian`], for compilation with options, or emission.
    ///
    /// # Errors
    /// The errors of [`Self::sparse_hessian`].
    pub fn sparse_hessian_programs(&self, by: &[&str]) -> Result<SparsePrograms> {
        guard(|| SparsePrograms::new(self, by, sparse::hessian))
    }
}

type Derive = fn(&chainrule_ir::Function, &[Name], Mode) -> std::result::Result<Sparsity, Diagnostics>;

impl SparsePrograms {
    fn new(function: &Function, by: &[&str], derive: Derive) -> Result<Self> {
        let Body::Array(body) = &function.body else {
            return Err(Error::request(
                format!("`{}` is straight-line code", function.name()),
                "ask for its sparse derivative with `.jacobian().sparse()` or `.hessian().sparse()`",
            ));
        };
        let by: Vec<Name> = by.iter().map(|name| Name::new(name)).collect();
        let sparsity = derive(&body.function, &by, Mode::Auto).map_err(|d| Error::program(d, &body.sources))?;
        Ok(Self { sparsity, of: Arc::clone(body) })
    }

    /// Compiles both. The pattern program keeps its checks, because positions of entries are computed from its indices.
    ///
    /// # Errors
    /// The errors of [`Function::compile_with`].
    pub fn compile_with(self, options: &CompileOptions) -> Result<Sparse> {
        let (pattern, values) = self.compiled(options)?;
        Ok(Sparse { programs: self, pattern, values })
    }

    fn compiled(&self, options: &CompileOptions) -> Result<(Compiled, Compiled)> {
        let function = |f: &chainrule_ir::Function| self.of.with(f.clone());
        let checked = CompileOptions { checks: Checks::All, ..*options };
        let pattern = function(&self.sparsity.pattern).compile_with(&checked)?;
        Ok((pattern, function(&self.sparsity.values).compile_with(options)?))
    }

    /// Returns messages about structure that the indices do not determine: arguments that are used as a whole, and why.
    /// Their columns are dense.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.sparsity.notes()
    }

    /// Returns the program that computes the doubles, as a function with expanded derivatives, as it is compiled.
    #[must_use]
    pub fn values_program(&self) -> Function {
        let values = &self.sparsity.values;
        // Compilation or emission reports why it cannot be expanded.
        let expanded = crate::Rewrite::All.expand(values, None, self.of.semantics).unwrap_or_else(|_| values.clone());
        self.of.with(expanded)
    }

    /// Returns the program that computes the indices, as a function.
    #[must_use]
    pub fn pattern_program(&self) -> Function {
        self.of.with(self.sparsity.pattern.clone())
    }
}

impl Sparse {
    /// Returns the same, compiled with other options. The pattern program keeps its checks, because positions of
    /// entries are computed from its indices.
    ///
    /// # Errors
    /// The errors of [`Function::compile_with`].
    ///
    /// ```
    /// use chainrule::{Checks, CompileOptions, Module};
    /// let module = Module::from_text("f.ft", "let f = fun (x : [n]Double) -> build n (fun i -> sin x[i])")?;
    /// let options = CompileOptions { checks: Checks::Memory, threads: Some(2), ..CompileOptions::default() };
    /// let sparse = module.function("f")?.sparse_jacobian(&["x"])?.with_options(&options)?;
    /// let mut jacobian = sparse.prepare(&[vec![0.0; 4].into()])?;
    /// jacobian.run()?;
    /// assert_eq!(jacobian.values(), [1.0; 4]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn with_options(mut self, options: &CompileOptions) -> Result<Self> {
        (self.pattern, self.values) = self.programs.compiled(options)?;
        Ok(self)
    }

    /// Returns the backend of the values program: never [`Backend::Auto`].
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.values.backend()
    }

    /// As [`Compiled::refusal`], for the values program.
    #[must_use]
    pub fn refusal(&self) -> Option<&Diagnostic> {
        self.values.refusal()
    }

    /// Returns messages about structure that the indices do not determine: arguments that are used as a whole, and why.
    /// Their columns are dense.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.programs.notes()
    }

    /// As [`SparsePrograms::values_program`].
    #[must_use]
    pub fn values_program(&self) -> Function {
        self.programs.values_program()
    }

    /// As [`SparsePrograms::pattern_program`].
    #[must_use]
    pub fn pattern_program(&self) -> Function {
        self.programs.pattern_program()
    }

    /// Evaluates the pattern at these arguments, of which only sizes and integers matter, and allocates memory for the
    /// values.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument; if an index is out of range.
    pub fn prepare(&self, args: &[Value<f64>]) -> Result<PreparedSparse<'_>> {
        let indices = self.pattern.call(args)?;
        let indices = indices.first().map(ints).unwrap_or_default();
        let SparsePrograms { sparsity, of } = &self.programs;
        let places = sparsity.places(&indices).map_err(|d| Error::program(d, &of.sources))?;
        let (flat, sizes) = self.values.flatten(args)?;
        PreparedSparse::new(self, &places, indices, flat, sizes)
    }

    /// Returns the number of doubles that the values program computes at these arguments, which is at least that of the
    /// entries.
    ///
    /// # Errors
    /// Fails if a value does not have the type or the extents of its argument.
    pub fn n_computed(&self, args: &[Value<f64>]) -> Result<usize> {
        let sizes = self.values.sizes_of(args)?.1;
        Ok((0..self.leaves()).map(|i| sizes.output_len(i)).fold(0, usize::saturating_add))
    }

    /// Returns the number of leaves of the values program, which may be zero.
    fn leaves(&self) -> usize {
        self.values.signature().results.iter().map(|(name, ty)| leaves(ty, name).len()).sum()
    }
}

impl<'s> PreparedSparse<'s> {
    fn new(sparse: &'s Sparse, places: &Places, indices: Vec<Vec<i64>>, flat: Flat, sizes: Sizes) -> Result<Self> {
        let n_leaves = sparse.leaves();
        let computed: usize = (0..n_leaves).map(|i| sizes.output_len(i)).sum();
        if computed != places.at.len() && !places.at.is_empty() {
            return Err(Error::Bug(format!("{computed} doubles for {} places", places.at.len())));
        }
        let in_order = places.at.windows(2).all(|pair| pair[0] < pair[1]) && places.at.iter().all(Option::is_some);
        let is_all = in_order && computed == places.at.len();
        let pattern = Pattern::new(places.n_rows, places.n_columns, places.at.iter().copied().flatten().collect());
        let place =
            |at: &Option<(usize, usize)>| at.and_then(|(row, column)| pattern.place(row, column)).unwrap_or(NONE);
        let entry = if is_all { Vec::new() } else { places.at.iter().map(place).collect() };
        let entries = if is_all { Vec::new() } else { vec![0.0; pattern.n_entries()] };
        let memory = sparse.values.memory(&sizes);
        let computed = Doubles::zeros(computed);
        Ok(Self { sparse, pattern, entry, inputs: flat.columns, sizes, memory, computed, entries, n_leaves, indices })
    }

    /// Returns the positions of the entries.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns the doubles of argument `i`, row-major, for writing; empty for integers and for arguments that do not
    /// exist. Arguments are numbered as in [`Function::inputs`].
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        match self.inputs.get_mut(i) {
            Some(Elements::Real(x)) => x,
            _ => &mut [],
        }
    }

    /// Computes the values.
    ///
    /// # Errors
    /// Fails if the program fails.
    pub fn run(&mut self) -> Result<()> {
        let inputs: Vec<Slice<'_>> = self.inputs.iter().map(Elements::slice).collect();
        let mut outputs = Vec::with_capacity(self.n_leaves);
        let mut rest = &mut *self.computed;
        for leaf in 0..self.n_leaves {
            let (output, more) = rest.split_at_mut(self.sizes.output_len(leaf));
            outputs.push(SliceMut::Real(output));
            rest = more;
        }
        let values = &self.sparse.values;
        values.engine().run(&self.sizes, &inputs, &mut outputs, &mut self.memory).map_err(|e| values.failed(e))?;
        if !self.entry.is_empty() || !self.entries.is_empty() {
            self.entries.fill(0.0);
            for (entry, x) in self.entry.iter().zip(self.computed.iter()) {
                if *entry != NONE {
                    self.entries[*entry] += x;
                }
            }
        }
        Ok(())
    }

    /// Returns the values of the last run, in the order of the pattern's entries.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        if self.pattern.n_entries() == self.computed.len() && self.entry.is_empty() {
            &self.computed
        } else {
            &self.entries
        }
    }

    /// Returns the derivative as results, in the form of the command line.
    #[must_use]
    pub fn results(&self, form: SparseForm) -> Vec<(Name, Type, Value<f64>)> {
        results(self.pattern(), self.values(), form)
    }

    /// Returns the dense blocks as results: `shape`; of each block its first row and column (`rows`, `columns`), its
    /// numbers of both (`n_rows`, `n_columns`); the `values` of all blocks, each row-major, one block after the other.
    /// Overlapping blocks add.
    ///
    /// # Errors
    /// The errors of [`Self::blocks`].
    pub fn block_results(&self) -> Result<Vec<(Name, Type, Value<f64>)>> {
        let blocks = self.blocks()?;
        let each = |of: fn(&DenseBlock) -> usize| blocks.iter().map(of).collect();
        let mut values = Vec::new();
        for block in &blocks {
            for row in 0..block.n_rows {
                let start = block.start + row * block.stride;
                values.extend_from_slice(&self.computed[start..start + block.n_columns]);
            }
        }
        Ok(vec![
            shape(&self.pattern),
            integers("rows", each(|block| block.row)),
            integers("columns", each(|block| block.column)),
            integers("n_rows", each(|block| block.n_rows)),
            integers("n_columns", each(|block| block.n_columns)),
            reals(values),
        ])
    }

    /// Returns whether the values program writes the entries itself, without a pass that adds and sorts them.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.entry.is_empty()
    }

    /// Returns the dense blocks of the derivative; overlapping blocks add. Their numbers refer to [`Self::computed`].
    ///
    /// # Errors
    /// Never fails, since the pattern exists already.
    pub fn blocks(&self) -> Result<Vec<DenseBlock>> {
        let SparsePrograms { sparsity, of } = &self.sparse.programs;
        sparsity.blocks(&self.indices).map_err(|d| Error::program(d, &of.sources))
    }

    /// Returns the doubles of the blocks, as computed by the last run.
    #[must_use]
    pub fn computed(&self) -> &[f64] {
        &self.computed
    }
}

/// Returns the matrix with this pattern and these values as results.
#[must_use]
pub fn results(pattern: &Pattern, values: &[f64], form: SparseForm) -> Vec<(Name, Type, Value<f64>)> {
    let shape = shape(pattern);
    match form {
        SparseForm::Coo => {
            let (rows, columns) = pattern.coo().iter().copied().unzip();
            vec![shape, integers("rows", rows), integers("columns", columns), reals(values.to_vec())]
        }
        SparseForm::Csr => {
            let csr = pattern.csr();
            vec![shape, integers("starts", csr.starts), integers("columns", csr.indices), reals(values.to_vec())]
        }
        SparseForm::Csc => {
            let csc = pattern.csc();
            let values = csc.places.iter().map(|place| values[*place]).collect();
            vec![shape, integers("starts", csc.starts), integers("rows", csc.indices), reals(values)]
        }
    }
}

/// Returns the matrix with this pattern and these values as blocks of one entry each.
pub(crate) fn single_blocks(pattern: &Pattern, values: &[f64]) -> Vec<(Name, Type, Value<f64>)> {
    let (rows, columns) = pattern.coo().iter().copied().unzip();
    let ones = vec![1; pattern.n_entries()];
    vec![
        shape(pattern),
        integers("rows", rows),
        integers("columns", columns),
        integers("n_rows", ones.clone()),
        integers("n_columns", ones),
        reals(values.to_vec()),
    ]
}

fn array(name: &str, element: Type, items: Vec<Value<f64>>) -> (Name, Type, Value<f64>) {
    let n = Poly::constant(i64::try_from(items.len()).unwrap_or(i64::MAX));
    (Name::new(name), Type::array(n, element), Value::Array(items))
}

fn integers(name: &str, items: Vec<usize>) -> (Name, Type, Value<f64>) {
    let item = |k: usize| Value::Int(i64::try_from(k).unwrap_or(i64::MAX));
    array(name, Type::Int, items.into_iter().map(item).collect())
}

fn reals(values: Vec<f64>) -> (Name, Type, Value<f64>) {
    array("values", Type::Double, values.into_iter().map(Value::Real).collect())
}

fn shape(pattern: &Pattern) -> (Name, Type, Value<f64>) {
    let (n_rows, n_columns) = pattern.shape();
    integers("shape", vec![n_rows, n_columns])
}
