//! Sparsity patterns: where a Jacobian may be other than zero, in the three usual forms.

/// The places of a matrix that may be other than zero.
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
    /// Where each line starts; one more than there are lines.
    pub starts: Vec<usize>,
    /// The column of each entry in compressed rows, the row in compressed columns.
    pub indices: Vec<usize>,
    /// For each entry its place in [`Pattern::coo`].
    pub places: Vec<usize>,
}

impl Pattern {
    /// The pattern with these (row, column) entries; in any order, repetitions allowed.
    ///
    /// # Panics
    /// When an entry lies outside.
    #[must_use]
    pub fn new(n_rows: usize, n_columns: usize, mut entries: Vec<(usize, usize)>) -> Self {
        assert!(entries.iter().all(|&(r, c)| r < n_rows && c < n_columns), "entries lie inside {n_rows} x {n_columns}");
        entries.sort_unstable();
        entries.dedup();
        Self { n_rows, n_columns, entries }
    }

    /// Rows and columns.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_columns)
    }

    /// How many places may be other than zero.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.entries.len()
    }

    /// Coordinates: (row, column), ascending.
    #[must_use]
    pub fn coo(&self) -> &[(usize, usize)] {
        &self.entries
    }

    /// The place of (row, column) in [`Pattern::coo`]; `None` where the matrix is zero.
    #[must_use]
    pub fn place(&self, row: usize, column: usize) -> Option<usize> {
        self.entries.binary_search(&(row, column)).ok()
    }

    /// Compressed rows; columns ascending in each.
    #[must_use]
    pub fn csr(&self) -> Compressed {
        self.compress(self.n_rows, |&(r, c)| (r, c))
    }

    /// Compressed columns; rows ascending in each.
    #[must_use]
    pub fn csc(&self) -> Compressed {
        self.compress(self.n_columns, |&(r, c)| (c, r))
    }

    /// `split` gives line and index. Entries come in ascending order, so indices ascend in each line.
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
