//! The line graph, and the elimination of a face.
//!
//! | Naumann; the notes, section 1 | here |
//! | --- | --- |
//! | vertex of the line graph (an edge of the graph, or one made of edges) | [`LineId`], "line" |
//! | its predecessors P(i), its successors S(i) | `before`, `behind` |
//! | its label c(i) | `value` |
//! | intermediate face (i, j) | j in `behind` of i |
//! | elimination of (i, j): c(k) += c(j) c(i) | [`LineGraph::eliminate`] |
//! | absorption, fill-in, merge | [`LineGraph::eliminate`], `settle` |
//! | partial absorption and merge, with splitting | `settle` under [`Rules::Extended`] |
//!
//! In: a linearised graph. Out: one label for each requested and connected pair of a source and a sink.
//!
//! Invariants:
//! - The derivative of a pair is the sum, over all paths of lines from its source to its sink, of the products of their
//!   labels. Each rule preserves that sum.
//! - A line leads from a vertex to a vertex of the graph. Its `before` are lines to the former, its `behind` lines from
//!   the latter; both are ascending. A line from a source has no `before`: its predecessor is the source itself. The
//!   same holds for sinks. Every other live line has both.
//! - Lines that start at the same source have equal `before` (the source), and nonempty equal sets belong to lines that
//!   start at the same vertex. So lines that may be added up have equal ends.
//!
//! The notes reduce a line j to S(j) - S(k) if part of the product c(j) c(i) is absorbed by a line k with P(k) = P(i)
//! and S(k) inside S(j). That loses the paths from other lines before j to S(k), unless only i precedes j. This module
//! makes the product a line of its own, (P(i), S(j)), and reduces that line: this is correct for any j, and equal to
//! the notes' rule if that rule is correct.

use super::labels::Labels;
use super::requested::Requested;
use crate::{Label, LinearGraph, VertexId};
use chainrule_base::{Id, define_id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

define_id! {
    /// A line: a vertex of the line graph.
    pub struct LineId = "z";
}

/// Rules after an elimination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// Lines are added up if their predecessors and successors are equal.
    Naumann,
    /// Lines are also added up if one of the two sets is equal and the other is contained: the larger line is split.
    /// Each such split decreases the number of faces.
    #[default]
    Extended,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Line<V> {
    /// Value of the labels.
    pub value: V,
    /// Start vertex.
    pub source: VertexId,
    /// End vertex.
    pub target: VertexId,
    /// Lines with a face to this one, ascending.
    pub before: Vec<LineId>,
    /// Lines with a face from this one, ascending.
    pub behind: Vec<LineId>,
    /// Whether the line has not been removed.
    pub live: bool,
}

/// A line whose sets changed, with their previous sizes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Touched {
    pub line: LineId,
    pub n_before: usize,
    pub n_behind: usize,
}

/// The line graph. See the module's invariants.
#[derive(Clone, Debug)]
pub struct LineGraph<'a, L: Labels> {
    linear: &'a LinearGraph,
    labels: L,
    rules: Rules,
    lines: Vec<Line<L::Value>>,
    /// Lines between two vertices, ascending; dead lines are removed at the next look-up.
    between: FxHashMap<(VertexId, VertexId), SmallVec<[LineId; 2]>>,
    /// Requested pairs that each line serves; `None` if all pairs are requested.
    requested: Option<Requested>,
    n_faces: usize,
    work: u64,
    /// Lines whose sets lost members: they may have become equal to others, or useless.
    dirty: Vec<LineId>,
    /// Lines whose sets changed since the last [`Self::take_touched`], in the order of their first changes.
    touched: Vec<Touched>,
}

impl<'a, L: Labels> LineGraph<'a, L> {
    /// Returns a line for each edge, and a face for each pair of consecutive edges on a path of a requested pair.
    /// Parallel edges that serve the same pairs are added up. Linear in the number of faces.
    #[must_use]
    pub fn new(linear: &'a LinearGraph, labels: L, rules: Rules) -> Self {
        let mut graph = Self {
            linear,
            rules,
            lines: Vec::with_capacity(linear.n_edges()),
            between: FxHashMap::default(),
            requested: Requested::new(linear),
            n_faces: 0,
            work: 0,
            dirty: Vec::new(),
            touched: Vec::new(),
            labels,
        };
        // The lines out of each vertex, and into it, once parallel edges are merged.
        let mut into: Vec<Vec<LineId>> = vec![Vec::new(); linear.n_vertices()];
        for (e, edge) in linear.edges() {
            let value = graph.labels.edge(linear, e);
            let parallel = graph.between.get(&(edge.source, edge.target)).map(|lines| lines[0]);
            if let Some(line) = parallel {
                let sum = graph.labels.sum(graph.lines[line.index()].value, value);
                graph.lines[line.index()].value = sum;
            } else {
                let line = graph.make(edge.source, edge.target, value);
                into[edge.target.index()].push(line);
            }
        }
        for idx in 0..graph.lines.len() {
            let line = LineId::new(idx);
            for &before in &into[graph.lines[idx].source.index()] {
                if graph.requested.as_ref().is_none_or(|a| a.follows(before, line)) {
                    graph.link(before, line);
                }
            }
        }
        if graph.requested.is_some() {
            graph.dirty = (0..graph.lines.len()).map(LineId::new).collect();
            graph.settle();
        }
        graph
    }

    fn make(&mut self, source: VertexId, target: VertexId, value: L::Value) -> LineId {
        let line = LineId::new(self.lines.len());
        self.lines.push(Line { value, source, target, before: Vec::new(), behind: Vec::new(), live: true });
        self.between.entry((source, target)).or_default().push(line);
        self.touched.push(Touched { line, n_before: 0, n_behind: 0 });
        line
    }

    /// Returns the number of faces.
    #[must_use]
    pub fn n_faces(&self) -> usize {
        self.n_faces
    }

    /// Returns the number of visited set entries.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Returns the linearised graph.
    #[must_use]
    pub fn linear(&self) -> &'a LinearGraph {
        self.linear
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &L {
        &self.labels
    }

    /// Returns all faces (i, j), ascending.
    pub fn faces(&self) -> impl Iterator<Item = (LineId, LineId)> {
        let live = self.lines.iter().enumerate().filter(|(_, line)| line.live);
        live.flat_map(|(i, line)| line.behind.iter().map(move |j| (LineId::new(i), *j)))
    }

    /// Returns whether there is a face (i, j).
    #[must_use]
    pub fn is_face(&self, i: LineId, j: LineId) -> bool {
        self.lines.get(i.index()).is_some_and(|line| line.live && line.behind.binary_search(&j).is_ok())
    }

    /// Returns a line, live or removed.
    #[must_use]
    pub fn line(&self, line: LineId) -> &Line<L::Value> {
        &self.lines[line.index()]
    }

    /// Returns the live lines, ascending.
    pub fn live(&self) -> impl Iterator<Item = (LineId, &Line<L::Value>)> {
        let lines = self.lines.iter().enumerate().map(|(idx, line)| (LineId::new(idx), line));
        lines.filter(|(_, line)| line.live)
    }

    /// Returns the kind of a line's label.
    #[must_use]
    pub fn kind(&self, line: LineId) -> Label {
        self.labels.kind(self.lines[line.index()].value)
    }

    /// Returns whether the product of a face would be absorbed by an existing line.
    #[must_use]
    pub fn is_absorbed(&self, i: LineId, j: LineId) -> bool {
        self.absorber(i, j).is_some()
    }

    fn absorber(&self, i: LineId, j: LineId) -> Option<LineId> {
        let (first, second) = (&self.lines[i.index()], &self.lines[j.index()]);
        let parallels = self.between.get(&(first.source, second.target))?;
        parallels.iter().copied().find(|k| {
            let line = &self.lines[k.index()];
            line.live && line.before == first.before && line.behind == second.behind
        })
    }

    /// Forgets which lines changed.
    pub fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// Returns the lines whose sets changed since the last call, with the sizes of their sets at that time. Ascending.
    pub(super) fn take_touched(&mut self) -> Vec<Touched> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|t| t.line);
        touched.dedup_by_key(|t| t.line);
        touched
    }

    /// Eliminates the face (i, j); does nothing if it does not exist.
    ///
    /// Every path through i, then j, becomes one through the new line, or through the line that absorbs it, which has
    /// i's predecessors, j's successors, and the product as its label.
    pub fn eliminate(&mut self, i: LineId, j: LineId) {
        if !self.is_face(i, j) {
            return;
        }
        let (first, second) = (&self.lines[i.index()], &self.lines[j.index()]);
        let (source, target) = (first.source, second.target);
        self.work += 1 + first.before.len() as u64 + second.behind.len() as u64;
        let product = self.labels.product(first.value, second.value);
        if let Some(k) = self.absorber(i, j) {
            let sum = self.labels.sum(self.lines[k.index()].value, product);
            self.lines[k.index()].value = sum;
        } else {
            self.fill_in(i, j, source, target, product);
        }
        self.unlink(i, j);
        self.settle();
    }

    fn fill_in(&mut self, i: LineId, j: LineId, source: VertexId, target: VertexId, product: L::Value) {
        let before = self.lines[i.index()].before.clone();
        let behind = self.lines[j.index()].behind.clone();
        let made = self.make(source, target, product);
        if let Some(requested) = &mut self.requested {
            requested.add(i, j);
        }
        for p in before {
            if self.requested.as_ref().is_none_or(|a| a.follows(p, made)) {
                self.link(p, made);
            }
        }
        for s in behind {
            if self.requested.as_ref().is_none_or(|a| a.follows(made, s)) {
                self.link(made, s);
            }
        }
        if self.rules == Rules::Extended || self.requested.is_some() {
            self.dirty.push(made);
        }
    }

    fn touch(&mut self, line: LineId) {
        let l = &self.lines[line.index()];
        self.touched.push(Touched { line, n_before: l.before.len(), n_behind: l.behind.len() });
    }

    fn link(&mut self, i: LineId, j: LineId) {
        self.touch(i);
        self.touch(j);
        insert(&mut self.lines[i.index()].behind, j);
        insert(&mut self.lines[j.index()].before, i);
        self.n_faces += 1;
    }

    fn unlink(&mut self, i: LineId, j: LineId) {
        self.touch(i);
        self.touch(j);
        remove(&mut self.lines[i.index()].behind, j);
        remove(&mut self.lines[j.index()].before, i);
        self.n_faces -= 1;
        self.dirty.push(i);
        self.dirty.push(j);
    }

    /// Removes a line. Lines around it may become useless, or equal.
    fn kill(&mut self, line: LineId) {
        for p in self.lines[line.index()].before.clone() {
            self.unlink(p, line);
        }
        for s in self.lines[line.index()].behind.clone() {
            self.unlink(line, s);
        }
        self.lines[line.index()].live = false;
    }

    /// Returns whether a line lies on no requested path.
    fn is_useless(&self, line: LineId) -> bool {
        let l = &self.lines[line.index()];
        (l.before.is_empty() && !self.linear.is_source(l.source))
            || (l.behind.is_empty() && !self.linear.is_sink(l.target))
            || self.requested.as_ref().is_some_and(|a| !a.follows(line, line))
    }

    /// Removes useless lines and adds up lines until nothing changes. Terminates, because every step removes a line or
    /// a face.
    fn settle(&mut self) {
        while let Some(line) = self.dirty.pop() {
            if !self.lines[line.index()].live {
                continue;
            }
            self.narrow(line);
            if self.is_useless(line) {
                self.kill(line);
                continue;
            }
            let ends = (self.lines[line.index()].source, self.lines[line.index()].target);
            let Some(parallels) = self.between.get_mut(&ends) else { continue };
            parallels.retain(|k| self.lines[k.index()].live);
            if parallels.len() > 1 {
                let parallels = parallels.clone();
                self.add_up(line, &parallels);
            }
        }
    }

    /// Removes pairs that no longer pass through `line`, and the faces that served only them.
    fn narrow(&mut self, line: LineId) {
        let Some(requested) = &mut self.requested else { return };
        let l = &self.lines[line.index()];
        let inner = (!self.linear.is_source(l.source), !self.linear.is_sink(l.target));
        self.work += (l.before.len() + l.behind.len()) as u64;
        if !requested.narrow(line, &l.before, &l.behind, inner) {
            return;
        }
        let (before, behind) = (l.before.clone(), l.behind.clone());
        for p in before {
            if self.requested.as_ref().is_some_and(|a| !a.follows(p, line)) {
                self.unlink(p, line);
            }
            self.dirty.push(p);
        }
        for s in behind {
            if self.requested.as_ref().is_some_and(|a| !a.follows(line, s)) {
                self.unlink(line, s);
            }
            self.dirty.push(s);
        }
    }

    /// Merges `line` with lines of equal ends, under the extended rules also partially.
    fn add_up(&mut self, line: LineId, parallels: &[LineId]) {
        for &other in parallels {
            if other == line || !self.lines[other.index()].live {
                continue;
            }
            if !self.lines[line.index()].live {
                return;
            }
            let (l, o) = (&self.lines[line.index()], &self.lines[other.index()]);
            self.work += 1;
            if l.before == o.before && l.behind == o.behind {
                // The older line stays; neighbours of one of the lines are neighbours of both.
                let (kept, gone) = (line.min(other), line.max(other));
                self.add_to(kept, gone);
                self.kill(gone);
                continue;
            }
            if self.rules == Rules::Naumann {
                continue;
            }
            if l.before == o.before {
                if is_subset(&l.behind, &o.behind) {
                    self.split_behind(line, other);
                } else if is_subset(&o.behind, &l.behind) {
                    self.split_behind(other, line);
                }
            } else if l.behind == o.behind {
                if is_subset(&l.before, &o.before) {
                    self.split_before(line, other);
                } else if is_subset(&o.before, &l.before) {
                    self.split_before(other, line);
                }
            }
        }
    }

    /// Performs c(line) += c(other).
    fn add_to(&mut self, line: LineId, other: LineId) {
        let sum = self.labels.sum(self.lines[line.index()].value, self.lines[other.index()].value);
        self.lines[line.index()].value = sum;
    }

    /// Transfers the successors of `small` from `large`, which contains them; the predecessors are equal.
    fn split_behind(&mut self, small: LineId, large: LineId) {
        self.add_to(small, large);
        for s in self.lines[small.index()].behind.clone() {
            self.unlink(large, s);
        }
    }

    /// Transfers the predecessors of `small` from `large`, which contains them; the successors are equal.
    fn split_before(&mut self, small: LineId, large: LineId) {
        self.add_to(small, large);
        for p in self.lines[small.index()].before.clone() {
            self.unlink(p, large);
        }
    }

    /// Eliminates remaining faces in ascending order. Returns all labels, and the labels of the derivatives as (sink,
    /// source, label).
    #[must_use]
    pub fn finish(mut self) -> (L, Vec<(VertexId, VertexId, L::Value)>) {
        // A line without faces never gets one: new lines come behind lines with faces.
        let mut idx = 0;
        while idx < self.lines.len() {
            let i = LineId::new(idx);
            while let Some(&j) = self.lines[idx].behind.first() {
                self.eliminate(i, j);
            }
            idx += 1;
        }
        let ends = self.live().map(|(_, line)| (line.target, line.source, line.value)).collect();
        (self.labels, ends)
    }
}

fn insert(set: &mut Vec<LineId>, line: LineId) {
    if let Err(at) = set.binary_search(&line) {
        set.insert(at, line);
    }
}

fn remove(set: &mut Vec<LineId>, line: LineId) {
    if let Ok(at) = set.binary_search(&line) {
        set.remove(at);
    }
}

/// Returns whether all of `small`, which is not empty, is in `large`. Both ascend.
fn is_subset(small: &[LineId], large: &[LineId]) -> bool {
    let mut rest = large.iter();
    !small.is_empty() && small.len() < large.len() && small.iter().all(|line| rest.any(|other| other == line))
}

#[cfg(test)]
mod tests {
    use super::super::labels::Recorder;
    use super::*;
    use crate::{Counting, check};

    /// Returns a detour parallel to an edge, then two outputs: lines 0 and 1 are the detour, 2 the edge, 3 and 4 lead
    /// to the outputs.
    fn detour() -> LinearGraph {
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 4)].map(|(s, t)| (s, t, Label::Var));
        LinearGraph::from_edges(1, 2, 2, &edges).unwrap()
    }

    /// Eliminates these faces, then the rest. Returns the number of faces between, and the multiplications.
    fn eliminated(rules: Rules, faces: &[(usize, usize)]) -> (usize, u64) {
        let linear = detour();
        let mut graph = LineGraph::new(&linear, Recorder::new(&linear), rules);
        for &(i, j) in faces {
            assert!(graph.is_face(LineId::new(i), LineId::new(j)));
            graph.eliminate(LineId::new(i), LineId::new(j));
        }
        let n_faces = graph.n_faces();
        let (labels, ends) = graph.finish();
        let program = labels.into_builder().finish(&linear, &ends);
        assert!(check::program(&linear, &program, 1).agrees());
        (n_faces, program.count(Counting::Plain).mul)
    }

    #[test]
    fn absorption_and_partial_absorption() {
        for rules in [Rules::Naumann, Rules::Extended] {
            // The detour's product is absorbed by the parallel edge.
            assert_eq!(eliminated(rules, &[(0, 1)]), (2, 3));
        }
        // If line 3 does not follow line 2, that absorbs only a part of the product: two faces remain, not three.
        assert_eq!(eliminated(Rules::Naumann, &[(2, 3), (0, 1)]), (3, 5));
        assert_eq!(eliminated(Rules::Extended, &[(2, 3), (0, 1)]), (2, 4));
    }

    #[test]
    fn parallel_edges_are_one_line_and_faces_that_serve_nothing_are_not_there() {
        let v = Label::Var;
        let linear =
            LinearGraph::from_edges(2, 1, 2, &[(0, 2, v), (0, 2, v), (1, 2, v), (2, 3, v), (2, 4, v)]).unwrap();
        assert_eq!(LineGraph::new(&linear, super::super::Kinds, Rules::Naumann).n_faces(), 4);
        let linear = linear.ask_only(&[(0, 0), (1, 1)]).unwrap();
        assert_eq!(LineGraph::new(&linear, super::super::Kinds, Rules::Naumann).n_faces(), 2);
    }
}
