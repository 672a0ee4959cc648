//! Sparsity patterns: structurally nonzero entries of a Jacobian, in the three usual formats.

/// Structurally nonzero entries of a matrix.
///
/// Invariant: entries are ascending by (row, column), each once, inside the shape.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    n_rows: usize,
    n_columns: usize,
    entries: Vec<(usize, usize)>,
}

/// Compressed rows or columns: the entries of line i are `indices[starts[i]..starts[i + 1]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// Start of each line, with one more entry than lines.
    pub starts: Vec<usize>,
    /// The column of each entry in compressed rows, the row in compressed columns.
    pub indices: Vec<usize>,
    /// Index of each entry in [`Pattern::coo`].
    pub places: Vec<usize>,
}

impl Pattern {
    /// Returns the pattern with these (row, column) entries, in any order and with repetitions.
    ///
    /// # Panics
    /// Panics if an entry is outside the shape.
    #[must_use]
    pub fn new(n_rows: usize, n_columns: usize, mut entries: Vec<(usize, usize)>) -> Self {
        assert!(entries.iter().all(|&(r, c)| r < n_rows && c < n_columns), "entries lie inside {n_rows} x {n_columns}");
        entries.sort_unstable();
        entries.dedup();
        Self { n_rows, n_columns, entries }
    }

    /// Returns the numbers of rows and columns.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_columns)
    }

    /// Returns the number of structurally nonzero entries.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns coordinates: (row, column), ascending.
    #[must_use]
    pub fn coo(&self) -> &[(usize, usize)] {
        &self.entries
    }

    /// Returns the index of (row, column) in [`Pattern::coo`]; `None` if the entry is zero.
    #[must_use]
    pub fn place(&self, row: usize, column: usize) -> Option<usize> {
        self.entries.binary_search(&(row, column)).ok()
    }

    /// Returns compressed rows, with columns ascending in each.
    #[must_use]
    pub fn csr(&self) -> Compressed {
        self.compress(self.n_rows, |&(r, c)| (r, c))
    }

    /// Returns compressed columns, with rows ascending in each.
    #[must_use]
    pub fn csc(&self) -> Compressed {
        self.compress(self.n_columns, |&(r, c)| (c, r))
    }

    /// Compresses; `split` returns line and index. Entries ascend, so indices ascend in each line.
    fn compress(&self, n_lines: usize, split: impl Fn(&(usize, usize)) -> (usize, usize)) -> Compressed {
        let mut starts = vec![0; n_lines + 1];
        for entry in &self.entries {
            starts[split(entry).0 + 1] += 1;
        }
        for line in 0..n_lines {
            starts[line + 1] += starts[line];
        }
        let mut free = starts.clone();
        let (mut indices, mut places) = (vec![0; self.entries.len()], vec![0; self.entries.len()]);
        for (place, entry) in self.entries.iter().enumerate() {
            let (line, idx) = split(entry);
            indices[free[line]] = idx;
            places[free[line]] = place;
            free[line] += 1;
        }
        Compressed { starts, indices, places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_of_one_pattern() {
        let p = Pattern::new(3, 2, vec![(2, 0), (0, 1), (2, 1), (0, 1)]);
        assert_eq!(p.coo(), [(0, 1), (2, 0), (2, 1)]);
        assert_eq!(p.csr(), Compressed { starts: vec![0, 1, 1, 3], indices: vec![1, 0, 1], places: vec![0, 1, 2] });
        assert_eq!(p.csc(), Compressed { starts: vec![0, 1, 3], indices: vec![2, 0, 2], places: vec![1, 0, 2] });
        assert_eq!((p.place(2, 0), p.place(1, 0)), (Some(1), None));
    }
}
