//! Rows of bits: the neighbours of a vertex on one side, 64 in a word, with the kinds of labels. Used by
//! `order_cost.rs` and `edge_cost.rs`.

use chainrule_accumulate::VertexId;

/// One side of a vertex: all neighbours; for F > 1, the neighbours by labels other than 1 and -1; for F > 2, the
/// neighbours by labels that depend on the point.
pub(crate) type Row<const W: usize, const F: usize> = [[u64; W]; F];

pub(crate) fn size(sizes: &[u64], column: usize) -> u64 {
    sizes.get(column).copied().unwrap_or(1)
}

/// Iterates over the columns of a set, ascending.
pub(crate) fn bits<const W: usize>(words: [u64; W]) -> impl Iterator<Item = usize> {
    words.into_iter().enumerate().flat_map(|(idx, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            (word != 0).then(|| {
                word &= word - 1;
                64 * idx + bit
            })
        })
    })
}

pub(crate) fn contains<const W: usize>(words: &[u64; W], column: usize) -> bool {
    words[column / 64] >> (column % 64) & 1 == 1
}

pub(crate) fn insert<const W: usize, const F: usize>(row: &mut Row<W, F>, column: usize, paid: bool, var: bool) {
    let (word, bit) = (column / 64, 1 << (column % 64));
    // The sum of parallel edges may be any number.
    let paid = paid || row[0][word] & bit != 0;
    for (flag, set) in [true, paid, var].into_iter().take(F).enumerate() {
        if set {
            row[flag][word] |= bit;
        }
    }
}

pub(crate) fn restrict<const W: usize, const F: usize>(row: &mut Row<W, F>, mask: &[u64; W]) {
    for flag in row {
        for (word, mask) in flag.iter_mut().zip(mask) {
            *word &= mask;
        }
    }
}

/// Replaces the edge to or from `v` by the edges `new`. Their labels are products with the label of column `other` in
/// `side`. Returns the edges to which a product is added, except constants to constants.
#[inline]
pub(crate) fn absorb<const W: usize, const F: usize>(
    row: &mut Row<W, F>,
    v: usize,
    new: &Row<W, F>,
    side: &Row<W, F>,
    other: usize,
) -> [u64; W] {
    for flag in row.iter_mut() {
        flag[v / 64] &= !(1 << (v % 64));
    }
    let mut shared = [0; W];
    for word in 0..W {
        shared[word] = row[0][word] & new[0][word];
        row[0][word] |= new[0][word];
    }
    if F > 1 {
        let products = &new[usize::from(!contains(&side[1], other))];
        for word in 0..W {
            row[1][word] |= shared[word] | products[word];
        }
    }
    if F > 2 {
        let products = &new[if contains(&side[2], other) { 0 } else { 2 }];
        for word in 0..W {
            row[2][word] |= products[word];
            shared[word] &= row[2][word];
        }
    }
    shared
}

#[inline]
pub(crate) fn weight<const W: usize>(words: &[u64; W], sizes: &[u64]) -> u64 {
    if sizes.is_empty() {
        words.iter().map(|word| u64::from(word.count_ones())).sum()
    } else {
        bits(*words).map(|column| sizes[column]).sum()
    }
}

#[inline]
pub(crate) fn weights<const W: usize, const F: usize>(row: &Row<W, F>, sizes: &[u64]) -> [u64; F] {
    std::array::from_fn(|flag| weight(&row[flag], sizes))
}

/// Returns the weights of a single column.
pub(crate) fn single<const W: usize, const F: usize>(row: &Row<W, F>, column: usize, size: u64) -> [u64; F] {
    std::array::from_fn(|flag| size * u64::from(contains(&row[flag], column)))
}

/// Returns the multiplications of all labels of one side with all of the other.
#[inline]
pub(crate) fn products<const F: usize>(before: &[u64; F], behind: &[u64; F]) -> u64 {
    let last = F.min(2) - 1;
    let all = before[last] * behind[last];
    if F > 2 { all - (before[1] - before[2]) * (behind[1] - behind[2]) } else { all }
}

/// Returns the columns for which an edge would be kept.
pub(crate) fn mask<const W: usize>(columns: &[VertexId], serves: impl Fn(VertexId) -> bool) -> [u64; W] {
    let mut mask = [0; W];
    for (column, _) in columns.iter().enumerate().filter(|(_, v)| serves(**v)) {
        mask[column / 64] |= 1 << (column % 64);
    }
    mask
}
