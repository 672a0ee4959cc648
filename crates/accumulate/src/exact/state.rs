//! The graph while vertices are eliminated, as rows of bits: small, quick to copy, counts only.

use crate::program::is_unit;
use crate::{Counting, Label, LinearGraph};
use chainrule_base::Id;

/// A set of vertices.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Set(Box<[u64]>);

impl Set {
    pub(super) fn empty(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)].into())
    }

    pub(super) fn contains(&self, v: usize) -> bool {
        self.0[v / 64] >> (v % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, v: usize) {
        self.0[v / 64] |= 1 << (v % 64);
    }

    pub(super) fn remove(&mut self, v: usize) {
        self.0[v / 64] &= !(1 << (v % 64));
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// Ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(idx, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    64 * idx + bit
                })
            })
        })
    }

    pub(super) fn unite(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
    }

    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
}

/// The neighbours of a vertex on one side.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) all: Set,
    /// Those whose label is 1 or -1 and costs nothing; none where every product counts.
    pub(super) unit: Set,
}

/// The graph with some intermediates eliminated. Which are decides everything: the order does not.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) n_sources: usize,
    pub(super) first_sink: usize,
    pub(super) before: Vec<Side>,
    pub(super) behind: Vec<Side>,
}

impl State {
    pub(super) fn new(linear: &LinearGraph, counting: Counting) -> Self {
        let n = linear.n_vertices();
        let side = Side { all: Set::empty(n), unit: Set::empty(n) };
        let mut state = Self {
            n_sources: linear.sources().len(),
            first_sink: n - linear.sinks().len(),
            before: vec![side.clone(); n],
            behind: vec![side; n],
        };
        let free = |label: Label| counting != Counting::Plain && is_unit(label);
        for (_, edge) in linear.edges() {
            state.join(edge.source.index(), edge.target.index(), free(edge.label));
        }
        state
    }

    /// An edge; where there was one, the sum of both is no unit.
    fn join(&mut self, i: usize, k: usize, unit: bool) {
        let unit = unit && !self.behind[i].all.contains(k);
        for (side, other) in [(&mut self.behind[i], k), (&mut self.before[k], i)] {
            side.all.insert(other);
            if unit { side.unit.insert(other) } else { side.unit.remove(other) }
        }
    }

    pub(super) fn n_vertices(&self) -> usize {
        self.before.len()
    }

    pub(super) fn is_intermediate(&self, v: usize) -> bool {
        v >= self.n_sources && v < self.first_sink
    }

    /// How many multiplications the elimination of `v` takes now.
    pub(super) fn cost(&self, v: usize) -> u64 {
        let paid = |side: &Side| side.all.len() - side.unit.len();
        paid(&self.before[v]) * paid(&self.behind[v])
    }

    /// Whether the elimination of `v` makes an edge that is not there.
    pub(super) fn fills_in(&self, v: usize) -> bool {
        self.before[v].all.iter().any(|i| !self.behind[v].all.is_subset(&self.behind[i].all))
    }

    pub(super) fn eliminate(&mut self, v: usize) {
        let n = self.n_vertices();
        let nothing = Side { all: Set::empty(n), unit: Set::empty(n) };
        let before = std::mem::replace(&mut self.before[v], nothing.clone());
        let behind = std::mem::replace(&mut self.behind[v], nothing);
        for i in before.all.iter() {
            absorb(&mut self.behind[i], v, &behind, before.unit.contains(i));
        }
        for k in behind.all.iter() {
            absorb(&mut self.before[k], v, &before, behind.unit.contains(k));
        }
    }
}

/// `side` loses `v` and gets what is beyond it; what it had already is no unit any more.
fn absorb(side: &mut Side, v: usize, beyond: &Side, by_unit: bool) {
    let mut absorbed = beyond.all.clone();
    absorbed.intersect(&side.all);
    side.unit.subtract(&absorbed);
    if by_unit {
        let mut new = beyond.unit.clone();
        new.subtract(&absorbed);
        side.unit.unite(&new);
    }
    side.all.unite(&beyond.all);
    side.all.remove(v);
    side.unit.remove(v);
}
