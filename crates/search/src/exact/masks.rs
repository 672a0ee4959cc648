//! Small graphs as bit rows of fixed length, which the search copies and queries millions of times.

use super::state::State;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::rc::Rc;

/// A set of at most 64 W vertices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mask<const W: usize>([u64; W]);

impl<const W: usize> Mask<W> {
    pub(super) const EMPTY: Self = Self([0; W]);

    pub(super) fn contains(self, v: usize) -> bool {
        self.0[v / 64] >> (v % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, v: usize) {
        self.0[v / 64] |= 1 << (v % 64);
    }

    pub(super) fn with(mut self, v: usize) -> Self {
        self.insert(v);
        self
    }

    pub(super) fn without(mut self, v: usize) -> Self {
        self.0[v / 64] &= !(1 << (v % 64));
        self
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(super) fn len(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn first(self) -> Option<usize> {
        let idx = self.0.iter().position(|word| *word != 0)?;
        Some(64 * idx + self.0[idx].trailing_zeros() as usize)
    }

    pub(super) fn last(self) -> Option<usize> {
        let idx = self.0.iter().rposition(|word| *word != 0)?;
        Some(64 * idx + 63 - self.0[idx].leading_zeros() as usize)
    }

    /// Iterates in ascending order.
    pub(super) fn iter(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let v = self.first()?;
            self.0[v / 64] &= self.0[v / 64] - 1;
            Some(v)
        })
    }

    pub(super) fn or(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        self
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
        self
    }

    pub(super) fn minus(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= !b);
        self
    }
}

/// The neighbours of a vertex on one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<const W: usize> {
    pub(super) all: Mask<W>,
    /// Neighbours by free labels 1 or -1; none if every product counts.
    pub(super) unit: Mask<W>,
}

/// A partially eliminated graph, numbered in a topological order.
#[derive(Clone, Debug)]
pub(super) struct Graph<const W: usize> {
    /// Rows of predecessors and of successors of each vertex.
    pub(super) sides: [Vec<Row<W>>; 2],
    /// Vertices that may be eliminated.
    pub(super) inner: Mask<W>,
    /// Word operations of cut searches so far, in this graph and all copies of it.
    pub(super) work: Rc<Cell<u64>>,
}

/// Indices of [`Graph::sides`]: predecessors and successors.
pub(super) const BEFORE: usize = 0;
pub(super) const BEHIND: usize = 1;

impl<const W: usize> Graph<W> {
    /// Returns the remaining graph of a state, and the former vertex numbers; at most 64 W vertices.
    pub(super) fn new(state: &State, rest: &[usize]) -> (Self, Vec<usize>) {
        let ends = (0..state.n_vertices()).filter(|v| !state.is_intermediate(*v));
        let mut names: Vec<usize> = ends.chain(rest.iter().copied()).collect();
        names.sort_unstable();
        let places: FxHashMap<usize, usize> = names.iter().enumerate().map(|(place, v)| (*v, place)).collect();
        let place = |set: &FixedBitSet| {
            set.ones().filter_map(|v| places.get(&v)).fold(Mask::EMPTY, |mask, place| mask.with(*place))
        };
        let row = |side: &super::state::Side| Row { all: place(&side.all), unit: place(&side.unit) };
        let sides = [&state.before, &state.behind].map(|sides| names.iter().map(|v| row(&sides[*v])).collect());
        let inner = rest.iter().fold(Mask::EMPTY, |mask, v| mask.with(places[v]));
        (Self { sides, inner, work: Rc::default() }, names)
    }

    /// Returns the number of multiplications of `v` after all other vertices of `eliminated`.
    ///
    /// A vertex is then a neighbour of `v` if a path through `eliminated` leads there. The label of that edge is 1 or
    /// -1 if there is one such path and all its labels are.
    pub(super) fn cost(&self, v: usize, eliminated: Mask<W>) -> u64 {
        let through = eliminated.without(v);
        match self.paid(BEFORE, v, through) {
            0 => 0,
            before => before * self.paid(BEHIND, v, through),
        }
    }

    fn paid(&self, side: usize, v: usize, through: Mask<W>) -> u64 {
        let rows = &self.sides[side];
        let (mut once, mut paid) = (rows[v].unit, rows[v].all.minus(rows[v].unit));
        let mut done = Mask::EMPTY;
        loop {
            // All paths from `x` to `v` are known once everything between is done.
            let open = once.or(paid).and(through).minus(done);
            let Some(x) = (if side == BEFORE { open.last() } else { open.first() }) else { break };
            done.insert(x);
            let row = rows[x];
            let new = if once.contains(x) { row.unit.minus(once.or(paid)) } else { Mask::EMPTY };
            let other = row.all.minus(new);
            paid = paid.or(other);
            once = once.or(new).minus(other);
        }
        paid.minus(through).len()
    }

    /// Returns a lower bound of the cost of `v` if at most `free` is eliminated before it: the numbers of vertices
    /// outside `free` that paths through `free` reach while sharing nothing but `v`, on both sides (`cuts.rs`).
    pub(super) fn bound(&self, v: usize, free: Mask<W>) -> u64 {
        match self.disjoint_paths(BEFORE, v, free) {
            0 => 0,
            before => before * self.disjoint_paths(BEHIND, v, free),
        }
    }

    /// Returns a maximum flow by augmenting paths in which each vertex passes one unit.
    fn disjoint_paths(&self, side: usize, v: usize, free: Mask<W>) -> u64 {
        const NONE: u16 = u16::MAX;
        self.work.set(self.work.get() + 8 * W as u64);
        let rows = &self.sides[side];
        let left_out = self.units(side, v, free).with(v);
        let direct = rows[v].all.minus(left_out).minus(free);
        let mut paths = direct.len();
        // Previous vertex of the flow into a vertex.
        let mut from = [NONE; 512];
        direct.iter().for_each(|x| from[x] = v as u16);
        let mut flowing = direct;
        let mut parent = [NONE; 1024];
        let mut queue: Vec<u16> = Vec::with_capacity(64);
        loop {
            // Entrances and exits of vertices, node 2x and node 2x + 1, reached from the exit of v.
            let mut reached = [left_out, Mask::EMPTY.with(v)];
            queue.clear();
            queue.push((2 * v + 1) as u16);
            let mut end = None;
            let (mut next, mut visited) = (0, 0_u64);
            'search: while let Some(&node) = queue.get(next) {
                next += 1;
                visited += 1;
                let x = usize::from(node / 2);
                if node % 2 == 1 {
                    if x != v && flowing.contains(x) && !reached[0].contains(x) {
                        reached[0].insert(x);
                        parent[2 * x] = node;
                        queue.push((2 * x) as u16);
                    }
                    for y in rows[x].all.minus(reached[0]).iter() {
                        if from[y] == x as u16 {
                            continue;
                        }
                        reached[0].insert(y);
                        parent[2 * y] = node;
                        if !free.contains(y) && !flowing.contains(y) {
                            end = Some(y);
                            break 'search;
                        }
                        queue.push((2 * y) as u16);
                    }
                } else {
                    let y = if flowing.contains(x) { usize::from(from[x]) } else { x };
                    if !reached[1].contains(y) {
                        reached[1].insert(y);
                        parent[2 * y + 1] = node;
                        queue.push((2 * y + 1) as u16);
                    }
                }
            }
            self.work.set(self.work.get() + visited * 4 * W as u64);
            let Some(end) = end else { return paths };
            paths += 1;
            let mut node = 2 * end;
            while node != 2 * v + 1 {
                let before = usize::from(parent[node]);
                if node % 2 == 0 {
                    let x = node / 2;
                    if before / 2 == x {
                        from[x] = NONE;
                        flowing = flowing.without(x);
                    } else {
                        from[x] = (before / 2) as u16;
                        flowing.insert(x);
                    }
                }
                node = before;
            }
        }
    }

    /// Returns the vertices that may have a unit edge to `v` when it is eliminated.
    fn units(&self, side: usize, v: usize, free: Mask<W>) -> Mask<W> {
        let rows = &self.sides[side];
        let mut units = rows[v].unit;
        let mut done = Mask::EMPTY;
        while let Some(u) = units.and(free).minus(done).first() {
            done.insert(u);
            units = units.or(rows[u].unit);
        }
        units
    }

    /// Eliminates `v`.
    pub(super) fn eliminate(&mut self, v: usize) {
        let nothing = Row { all: Mask::EMPTY, unit: Mask::EMPTY };
        for side in [BEFORE, BEHIND] {
            let (near, beyond) = (self.sides[side][v], self.sides[1 - side][v]);
            for i in near.all.iter() {
                // Seen from `i`, `v` is on the other side.
                let row = &mut self.sides[1 - side][i];
                let absorbed = beyond.all.and(row.all);
                let new = if near.unit.contains(i) { beyond.unit.minus(absorbed) } else { Mask::EMPTY };
                row.unit = row.unit.minus(absorbed).or(new).without(v);
                row.all = row.all.or(beyond.all).without(v);
            }
        }
        self.sides[BEFORE][v] = nothing;
        self.sides[BEHIND][v] = nothing;
        self.inner = self.inner.without(v);
    }

    /// Returns whether each edge that the elimination of `v` makes already exists with a paid label.
    pub(super) fn fills_nothing(&self, v: usize) -> bool {
        let behind = self.sides[BEHIND][v].all;
        let paid = |i: usize| self.sides[BEHIND][i].all.minus(self.sides[BEHIND][i].unit);
        self.sides[BEFORE][v].all.iter().all(|i| behind.minus(paid(i)).is_empty())
    }

    /// Returns the connected components of `set`, by their lowest vertices.
    pub(super) fn parts(&self, mut set: Mask<W>) -> Vec<Mask<W>> {
        let mut parts = Vec::new();
        while let Some(first) = set.first() {
            let mut part = Mask::EMPTY.with(first);
            let mut done = Mask::EMPTY;
            while let Some(v) = part.minus(done).first() {
                done.insert(v);
                part = part.or(self.sides[BEFORE][v].all.or(self.sides[BEHIND][v].all).and(set));
            }
            set = set.minus(part);
            parts.push(part);
        }
        parts
    }
}
