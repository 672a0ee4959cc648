//! Column colouring: columns that one product computes together, because no two of them have an entry in the same row.
//!
//! In: a [`Pattern`]. Out: a colour for each column. Columns of one colour share no row, so the product of the matrix
//! with the sum of their unit vectors contains each of their entries separately. This is Curtis, Powell and Reid's
//! grouping of columns: a distance-1 colouring of the column intersection graph. For a symmetric matrix it is a
//! distance-2 colouring of its own graph; [`star`] needs fewer colours there, because it reads each entry at one of two
//! positions. [`reads`] returns these positions for any colouring.
//!
//! Greedy, with columns of many neighbours first. The number of colours is at most the largest number of neighbours
//! plus one, and at least the number of entries of the longest row.

pub mod star;

use crate::Pattern;

/// Returns the colour of each column, from 0, and the number of colours. `O(sum of squares of the rows' lengths)`.
#[must_use]
pub fn columns(pattern: &Pattern) -> (Vec<usize>, usize) {
    const NONE: usize = usize::MAX;
    let (_, n_columns) = pattern.shape();
    let (rows, columns) = (pattern.csr(), pattern.csc());
    let row = |r: usize| &rows.indices[rows.starts[r]..rows.starts[r + 1]];
    let column = |c: usize| &columns.indices[columns.starts[c]..columns.starts[c + 1]];
    // An upper bound of the number of neighbours suffices for the order.
    let weight = |c: usize| column(c).iter().map(|r| row(*r).len()).sum::<usize>();
    let mut order: Vec<usize> = (0..n_columns).collect();
    order.sort_by_key(|c| (std::cmp::Reverse(weight(*c)), *c));
    let mut colours = vec![NONE; n_columns];
    let mut n_colours = 0;
    // For each colour, the last column that had a neighbour of this colour.
    let mut taken: Vec<usize> = Vec::new();
    for c in order {
        for neighbour in column(c).iter().flat_map(|r| row(*r)) {
            if let Some(last) = taken.get_mut(colours[*neighbour]) {
                *last = c;
            }
        }
        let colour = taken.iter().position(|last| *last != c).unwrap_or(n_colours);
        if colour == n_colours {
            n_colours += 1;
            taken.push(NONE);
        }
        colours[c] = colour;
    }
    (colours, n_colours)
}

/// Returns, for each entry of the pattern, the row and the colour whose product contains only this entry: in its own
/// row, or, if the matrix is symmetric, in the row of its column. `None` if neither exists; the colouring is then
/// invalid. Linear.
#[must_use]
pub fn reads(pattern: &Pattern, colours: &[usize]) -> Option<Vec<(usize, usize)>> {
    // By colour: the last row with an entry of it; by entry: whether another entry of the row has its colour.
    let mut last = vec![(usize::MAX, 0); colours.iter().max().map_or(0, |most| most + 1)];
    let mut alone = vec![true; pattern.n_entries()];
    for (place, (row, column)) in pattern.coo().iter().enumerate() {
        let before = std::mem::replace(&mut last[colours[*column]], (*row, place));
        if before.0 == *row {
            (alone[before.1], alone[place]) = (false, false);
        }
    }
    let read = |(place, (row, column)): (usize, &(usize, usize))| {
        if alone[place] {
            return Some((*row, colours[*column]));
        }
        let mirrored = pattern.place(*column, *row)?;
        alone[mirrored].then_some((*column, colours[*row]))
    };
    pattern.coo().iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::columns;
    use crate::Pattern;

    fn check(pattern: &Pattern) -> usize {
        let (colours, n) = columns(pattern);
        assert!(colours.iter().all(|colour| *colour < n.max(1)));
        let rows = pattern.csr();
        for row in rows.starts.windows(2) {
            let mut seen: Vec<usize> = rows.indices[row[0]..row[1]].iter().map(|c| colours[*c]).collect();
            seen.sort_unstable();
            assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "two columns of one colour meet");
            assert!(seen.len() <= n);
        }
        n
    }

    #[test]
    fn a_band_has_as_many_colours_as_it_is_wide() {
        for (n, width) in [(50, 1), (50, 3), (7, 5)] {
            let band = (0..n).flat_map(|r| (r..(r + width).min(n)).map(move |c| (r, c)));
            assert_eq!(check(&Pattern::new(n, n, band.collect())), width);
        }
    }

    #[test]
    fn an_arrow_takes_one_colour_a_column_and_its_transpose_two() {
        let arrow: Vec<(usize, usize)> = (0..9).flat_map(|k| [(0, k), (k, k)]).collect();
        assert_eq!(check(&Pattern::new(9, 9, arrow.clone())), 9);
        assert_eq!(check(&Pattern::new(9, 9, arrow.into_iter().map(|(r, c)| (c, r)).collect())), 2);
    }

    #[test]
    fn nothing_takes_no_colour_twice() {
        assert_eq!(check(&Pattern::new(3, 0, vec![])), 0);
        assert_eq!(check(&Pattern::new(0, 4, vec![])), 1);
        // Pseudo-random patterns.
        let mut state = 7u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for _ in 0..50 {
            let entries = (0..60).map(|_| (next(20), next(30))).collect();
            check(&Pattern::new(20, 30, entries));
        }
    }
}
