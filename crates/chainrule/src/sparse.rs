//! Sparse Jacobians and Hessians of array programs.
//!
//! In: a function that keeps its loops. Out: a [`Sparse`]: the pattern program and the values program of
//! [`chainrule_autodiff::sparse`], compiled; then, for sizes and integers, a [`PreparedSparse`]: the pattern, and memory
//! in which the values are made again and again.
//!
//! Layouts. The values lie in the order of [`Pattern::coo`], row by row, columns ascending in each row. So they are the
//! values of compressed rows as they stand; [`Pattern::csr`] has starts and columns, and [`Pattern::csc`] starts, rows, and
//! for each entry its place among the values. Rows and columns are numbered as the doubles of compiled results and
//! arguments: leaf after leaf, as [`Function::outputs`] and [`Function::inputs`] list them, each row-major.
//!
//! Holds: an entry is there once; what several reads of one place contribute is added. Where the values program makes the
//! entries in order, each once, it writes them where they are read.

use crate::engine::Memory;
use crate::function::{ArrayBody, Body};
use crate::guard::guard;
use crate::leaves::leaves;
use crate::prepared::Flat;
use crate::{Backend, Checks, CompileOptions, Compiled, Error, Function, Pattern, Result};
use chainrule_autodiff::sparse::{self, DenseBlock, Sparsity, ints};
use chainrule_autodiff::{Mode, Places};
use chainrule_base::{Diagnostic, Diagnostics, Name, Poly};
use chainrule_ir::{Type, Value};
use chainrule_runtime::{Doubles, Elements, Sizes, Slice, SliceMut};
use std::sync::Arc;

/// The two programs of a sparse derivative, not compiled; made by [`Function::sparse_jacobian_programs`] and
/// [`Function::sparse_hessian_programs`].
#[derive(Debug)]
pub struct SparsePrograms {
    sparsity: Sparsity,
    /// Whose derivative it is.
    of: Arc<ArrayBody>,
}

/// A sparse derivative, compiled; made by [`Function::sparse_jacobian`] and [`Function::sparse_hessian`].
#[derive(Debug)]
pub struct Sparse {
    programs: SparsePrograms,
    pattern: Compiled,
    values: Compiled,
}

/// A sparse derivative at extents and integers that are fixed; made by [`Sparse::prepare`]. Doubles may change between
/// runs. Running allocates nothing but lists of arguments and results.
#[derive(Debug)]
pub struct PreparedSparse<'s> {
    sparse: &'s Sparse,
    pattern: Pattern,
    /// The entry of each double that is computed, [`NONE`] for those that are none; empty where they are the entries.
    entry: Vec<usize>,
    inputs: Vec<Elements>,
    sizes: Sizes,
    memory: Memory,
    /// What the values program computes, leaf after leaf.
    computed: Doubles,
    /// The entries, unless they are what is computed.
    entries: Vec<f64>,
    n_leaves: usize,
    /// What the pattern program computed.
    indices: Vec<Vec<i64>>,
}

/// How a sparse matrix is told as results ([`PreparedSparse::results`]). All begin with `shape`, its numbers of rows and
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
    /// The sparse Jacobian of all results by the arguments `by`, by all that hold doubles where none is named, for a
    /// function that keeps its loops. Its pattern is read off the indices at which the function reads its arguments.
    ///
    /// # Errors
    /// An argument that is not there or holds no double; a function of straight-line code, whose Jacobian
    /// [`crate::Derivation::sparse`] makes; a limitation where the extents of the result depend on doubles.
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

    /// The sparse Hessian of a scalar function: of a sum, the sum of the Hessians of its terms. All of it, not a triangle.
    ///
    /// # Errors
    /// As [`Self::sparse_jacobian`]; a result that is not a scalar.
    pub fn sparse_hessian(&self, by: &[&str]) -> Result<Sparse> {
        self.sparse_hessian_programs(by)?.compile_with(&CompileOptions::default())
    }

    /// The programs of [`Self::sparse_jacobian`], to be compiled once with other options, or emitted.
    ///
    /// # Errors
    /// As [`Self::sparse_jacobian`].
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

    /// The programs of [`Self::sparse_hessian`], to be compiled once with other options, or emitted.
    ///
    /// # Errors
    /// As [`Self::sparse_hessian`].
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

    /// Running code for both. The program that computes the pattern keeps its checks: places of entries are made of its
    /// indices.
    ///
    /// # Errors
    /// As [`Function::compile_with`].
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

    /// What the indices do not tell: arguments that are used as a whole, and why. Their columns are dense.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.sparsity.notes()
    }

    /// The program that computes the doubles, as a function: its derivatives worked out, as it is compiled.
    #[must_use]
    pub fn values_program(&self) -> Function {
        let values = &self.sparsity.values;
        // Whoever compiles or emits what cannot be expanded learns why.
        let expanded = crate::Rewrite::All.expand(values, None, self.of.semantics).unwrap_or_else(|_| values.clone());
        self.of.with(expanded)
    }

    /// The program that computes the indices, as a function.
    #[must_use]
    pub fn pattern_program(&self) -> Function {
        self.of.with(self.sparsity.pattern.clone())
    }
}

impl Sparse {
    /// The same, compiled with other options. The program that computes the pattern keeps its checks: places of entries are made of
    /// its indices.
    ///
    /// # Errors
    /// As [`Function::compile_with`].
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

    /// What computes the values: never [`Backend::Auto`].
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.values.backend()
    }

    /// As [`Compiled::refusal`], of what computes the values.
    #[must_use]
    pub fn refusal(&self) -> Option<&Diagnostic> {
        self.values.refusal()
    }

    /// What the indices do not tell: arguments that are used as a whole, and why. Their columns are dense.
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

    /// Evaluates the pattern at these arguments, of which only sizes and integers matter, and makes memory for the values.
    ///
    /// # Errors
    /// When a value does not have the type or the extents of its argument; when an index is out of range.
    pub fn prepare(&self, args: &[Value<f64>]) -> Result<PreparedSparse<'_>> {
        let indices = self.pattern.call(args)?;
        let indices = indices.first().map(ints).unwrap_or_default();
        let SparsePrograms { sparsity, of } = &self.programs;
        let places = sparsity.places(&indices).map_err(|d| Error::program(d, &of.sources))?;
        let (flat, sizes) = self.values.flatten(args)?;
        PreparedSparse::new(self, &places, indices, flat, sizes)
    }

    /// The number of doubles that the values program computes at these arguments, which is at least that of the entries.
    ///
    /// # Errors
    /// When a value does not have the type or the extents of its argument.
    pub fn n_computed(&self, args: &[Value<f64>]) -> Result<usize> {
        let sizes = self.values.sizes_of(args)?.1;
        Ok((0..self.leaves()).map(|i| sizes.output_len(i)).fold(0, usize::saturating_add))
    }

    /// Whether the values program has anything to compute.
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

    /// Where the entries are.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The doubles of argument `i`, row-major, to be changed; none where it is of integers or is not there. Arguments
    /// are numbered as [`Function::inputs`] lists them.
    pub fn argument_mut(&mut self, i: usize) -> &mut [f64] {
        match self.inputs.get_mut(i) {
            Some(Elements::Real(x)) => x,
            _ => &mut [],
        }
    }

    /// Computes the values.
    ///
    /// # Errors
    /// When the program fails.
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

    /// The values of the last run, in the order of the pattern's entries.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        if self.pattern.n_entries() == self.computed.len() && self.entry.is_empty() {
            &self.computed
        } else {
            &self.entries
        }
    }

    /// The derivative as results, as the command line prints them.
    #[must_use]
    pub fn results(&self, form: SparseForm) -> Vec<(Name, Type, Value<f64>)> {
        results(self.pattern(), self.values(), form)
    }

    /// The dense blocks as results: `shape`; of each block its first row and column (`rows`, `columns`), how many it has of both
    /// (`n_rows`, `n_columns`); the `values` of all blocks, each row-major, one block after the other. Blocks that overlap add.
    ///
    /// # Errors
    /// As [`Self::blocks`].
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

    /// Whether the values program writes the entries itself, without a pass that adds and sorts them.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.entry.is_empty()
    }

    /// The dense blocks that the derivative is made of; blocks that overlap add. Their numbers are of
    /// [`Self::computed`].
    ///
    /// # Errors
    /// Never, as the pattern was there before.
    pub fn blocks(&self) -> Result<Vec<DenseBlock>> {
        let SparsePrograms { sparsity, of } = &self.sparse.programs;
        sparsity.blocks(&self.indices).map_err(|d| Error::program(d, &of.sources))
    }

    /// The doubles of the blocks, as the last run computed them.
    #[must_use]
    pub fn computed(&self) -> &[f64] {
        &self.computed
    }
}

/// The matrix with this pattern and these values as results.
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
