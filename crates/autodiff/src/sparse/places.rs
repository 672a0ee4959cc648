//! Rows and columns of the doubles of the values program.
//!
//! In: the result of the pattern program. Out: a position, or none, for each double. Linear in the number of doubles.
//!
//! A double has no position if its gather is absent: there it is zero.

use super::values::ABSENT;
use super::{Form, GatherShape, LeafShape, Sparsity, TermShape};
use chainrule_base::Diagnostic;
use chainrule_ir::Value;

/// Positions of the doubles of a values program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// Number of rows of the matrix.
    pub n_rows: usize,
    /// Number of columns.
    pub n_columns: usize,
    /// (row, column) of each double, in the order of the values program's leaves; `None` for one that is not an entry.
    /// Doubles at the same position are to be added.
    pub at: Vec<Option<(usize, usize)>>,
}

/// Dense block of a sparse derivative: the double of row `row + i` and column `column + j` is number `start + i *
/// stride + j` of the values program's doubles. Overlapping blocks add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DenseBlock {
    /// First row.
    pub row: usize,
    /// First column.
    pub column: usize,
    /// Number of rows.
    pub n_rows: usize,
    /// Number of columns.
    pub n_columns: usize,
    /// Number of the first double.
    pub start: usize,
    /// Distance between rows.
    pub stride: usize,
}

/// Returns the integers of the pattern program's result: for each of its arrays all elements, row-major.
#[must_use]
pub fn ints<S>(pattern: &Value<S>) -> Vec<Vec<i64>> {
    // Recursive on the nesting of types only.
    fn flat<S>(value: &Value<S>, into: &mut Vec<i64>) {
        match value {
            Value::Int(i) => into.push(*i),
            Value::Array(parts) | Value::Tuple(parts) => parts.iter().for_each(|part| flat(part, into)),
            Value::Real(_) | Value::Bool(_) => {}
        }
    }
    let one = |value: &Value<S>| {
        let mut all = Vec::new();
        flat(value, &mut all);
        all
    };
    match pattern {
        Value::Tuple(parts) => parts.iter().map(one).collect(),
        other => vec![one(other)],
    }
}

/// Leaf of the rows or of the columns: the number of its first double, its extents.
struct Line {
    start: usize,
    extents: Vec<usize>,
}

struct Layout<'a> {
    sizes: &'a [usize],
    ints: &'a [Vec<i64>],
    rows: Vec<Line>,
    columns: Vec<Line>,
    at: Vec<Option<(usize, usize)>>,
    /// Blocks, if requested.
    blocks: Option<Vec<DenseBlock>>,
}

impl Sparsity {
    /// Returns the positions of the doubles, from the [integers](ints) of the pattern program's result.
    ///
    /// # Errors
    /// Fails for integers that are not those of the pattern program, which is a bug; more doubles than can be counted.
    pub fn places(&self, ints: &[Vec<i64>]) -> Result<Places, Diagnostic> {
        let (places, _) = self.layout(ints, None)?;
        Ok(places)
    }

    /// Returns the dense blocks that the values program computes, in its order, without those that are not read.
    ///
    /// # Errors
    /// The errors of [`Self::places`].
    pub fn blocks(&self, ints: &[Vec<i64>]) -> Result<Vec<DenseBlock>, Diagnostic> {
        let (_, blocks) = self.layout(ints, Some(Vec::new()))?;
        Ok(blocks)
    }

    /// Returns the entries, and `blocks` with the dense blocks added, if given.
    fn layout(
        &self,
        ints: &[Vec<i64>],
        blocks: Option<Vec<DenseBlock>>,
    ) -> Result<(Places, Vec<DenseBlock>), Diagnostic> {
        let bug = || Diagnostic::bug("these are not the integers of the pattern program");
        // An array of negative extent is empty.
        let extent = |n: &i64| usize::try_from(*n).unwrap_or(0);
        let sizes: Vec<usize> = ints.first().ok_or_else(bug)?.iter().map(extent).collect();
        if sizes.len() != self.n_sizes {
            return Err(bug());
        }
        let (rows, n_rows) = lines(&self.rows, &sizes)?;
        let (columns, n_columns) = lines(&self.columns, &sizes)?;
        let mut layout = Layout { sizes: &sizes, ints, rows, columns, at: Vec::new(), blocks };
        for term in &self.terms {
            layout.term(term)?;
        }
        Ok((Places { n_rows, n_columns, at: layout.at }, layout.blocks.unwrap_or_default()))
    }
}

fn too_many() -> Diagnostic {
    Diagnostic::error("the sparse derivative has more elements than can be counted")
}

fn lines(shapes: &[LeafShape], sizes: &[usize]) -> Result<(Vec<Line>, usize), Diagnostic> {
    let (mut all, mut start) = (Vec::with_capacity(shapes.len()), 0_usize);
    for shape in shapes {
        let extents: Vec<usize> = shape.extents.iter().map(|k| sizes[*k]).collect();
        let n = product(&extents)?;
        all.push(Line { start, extents });
        start = start.checked_add(n).ok_or_else(too_many)?;
    }
    Ok((all, start))
}

fn product(extents: &[usize]) -> Result<usize, Diagnostic> {
    extents.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent)).ok_or_else(too_many)
}

impl Layout<'_> {
    fn extents(&self, of: &[usize]) -> Result<usize, Diagnostic> {
        product(&of.iter().map(|k| self.sizes[*k]).collect::<Vec<usize>>())
    }

    /// Returns the number of the block of `gather` in `line` in iteration `cell` of its loops, the inner ones included;
    /// `None` if it is not read.
    fn number(&self, gather: &GatherShape, line: &Line, cell: usize) -> Result<Option<usize>, Diagnostic> {
        let indices = match gather.output {
            None => &[],
            Some(output) => {
                let from = cell * gather.n_indices;
                let all = self.ints.get(output).and_then(|ints| ints.get(from..from + gather.n_indices));
                all.ok_or_else(|| Diagnostic::bug("the pattern program made too few indices"))?
            }
        };
        let mut number = 0;
        for (index, extent) in indices.iter().zip(&line.extents) {
            match usize::try_from(*index).ok().filter(|index| index < extent) {
                Some(index) => number = number * extent + index,
                None if *index == ABSENT => return Ok(None),
                None => return Err(Diagnostic::bug("the pattern program made an index that is out of range")),
            }
        }
        Ok(Some(number))
    }

    fn term(&mut self, term: &TermShape) -> Result<(), Diagnostic> {
        let loops = self.extents(&term.loops)?;
        match term.form {
            Form::Together => {
                for (leaf, inner) in &term.rows {
                    let (start, n) = (self.rows[*leaf].start, self.extents(inner)?);
                    for cell in 0..loops {
                        let mut columns = Runs::default();
                        for gather in &term.gathers {
                            self.columns_of(gather, cell, 0, &mut columns)?;
                        }
                        self.add(&Runs::one(start + cell * n, n), &columns);
                    }
                }
            }
            Form::Apart => {
                for gather in &term.gathers {
                    for (leaf, inner) in &term.rows {
                        let (start, n) = (self.rows[*leaf].start, self.extents(inner)?);
                        for part in 0..gather.leaves.len() {
                            for cell in 0..loops {
                                let mut columns = Runs::default();
                                self.columns_of(gather, cell, part, &mut columns)?;
                                self.add(&Runs::one(start + cell * n, n), &columns);
                            }
                        }
                    }
                }
            }
            Form::Hessian => {
                for other in &term.gathers {
                    for gather in &term.gathers {
                        for part in 0..gather.leaves.len() {
                            for other_part in 0..other.leaves.len() {
                                for cell in 0..loops {
                                    let (mut rows, mut columns) = (Runs::default(), Runs::default());
                                    self.columns_of(gather, cell, part, &mut rows)?;
                                    self.columns_of(other, cell, other_part, &mut columns)?;
                                    self.add(&rows, &columns);
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends the doubles of all rows by all columns.
    fn add(&mut self, rows: &Runs, columns: &Runs) {
        let (before, stride) = (self.at.len(), columns.len);
        if let Some(blocks) = &mut self.blocks {
            for (row_offset, row, n_rows) in &rows.runs {
                for (offset, column, n_columns) in &columns.runs {
                    if let (Some(row), Some(column)) = (*row, *column) {
                        let start = before + row_offset * stride + offset;
                        let (n_rows, n_columns) = (*n_rows, *n_columns);
                        blocks.push(DenseBlock { row, column, n_rows, n_columns, start, stride });
                    }
                }
            }
        }
        for row in rows.each() {
            self.at.extend(columns.each().map(|column| Some((row?, column?))));
        }
    }

    /// Collects the columns of leaf `part` of `gather` in iteration `cell` of the term's loops, over the inner loops
    /// and the block.
    fn columns_of(&self, gather: &GatherShape, cell: usize, part: usize, columns: &mut Runs) -> Result<(), Diagnostic> {
        let inner = self.extents(&gather.dims)?;
        let Some((leaf, extents)) = gather.leaves.get(part) else { return Ok(()) };
        let (line, n) = (&self.columns[*leaf], self.extents(extents)?);
        for k in cell * inner..(cell + 1) * inner {
            let number = self.number(gather, line, k)?;
            columns.push(number.map(|number| line.start + number * n), n);
        }
        Ok(())
    }
}

/// Rows or columns in runs: the position of each run, its first element, and its length; `None` for those that are not
/// read.
#[derive(Default)]
struct Runs {
    runs: Vec<(usize, Option<usize>, usize)>,
    len: usize,
}

impl Runs {
    fn one(first: usize, n: usize) -> Self {
        Self { runs: vec![(0, Some(first), n)], len: n }
    }

    fn push(&mut self, first: Option<usize>, n: usize) {
        self.runs.push((self.len, first, n));
        self.len += n;
    }

    fn each(&self) -> impl Iterator<Item = Option<usize>> {
        self.runs.iter().flat_map(|(_, first, n)| (0..*n).map(move |k| first.map(|first| first + k)))
    }
}
