//! The line graph, and what the elimination of a face does to it.
//!
//! | Naumann; the notes, section 1 | here |
//! | --- | --- |
//! | vertex of the line graph (an edge of the graph, or made from such) | [`LineId`], "line" |
//! | its predecessors P(i), its successors S(i) | `before`, `behind` |
//! | its label c(i) | `value` |
//! | intermediate face (i, j) | j in `behind` of i |
//! | elimination of (i, j): c(k) += c(j) c(i) | [`LineGraph::eliminate`] |
//! | absorption, fill-in, merge | [`LineGraph::eliminate`], `settle` |
//! | partial absorption and merge, with splitting | `settle` under [`Rules::Extended`] |
//!
//! In: a linearised graph. Out: one label for each pair of a source and a sink that is connected and
//! asked for.
//!
//! Invariants:
//! - The derivative of a pair is the sum over all paths of lines from its source to its sink of the
//!   products of their labels. Each rule keeps that sum.
//! - A line runs from a vertex to a vertex of the graph. Its `before` are lines to the former, its
//!   `behind` lines from the latter; both are ascending. A line from a source has no `before`: it has
//!   the source itself before it. The same for sinks. Every other live line has both.
//! - `before` of lines that start at the same source are equal (the source), and sets that are equal and
//!   not empty are of lines that start at the same vertex. So lines that may be added up have equal ends.
//!
//! The notes let a line j be cut down to S(j) - S(k) when part of the product c(j) c(i) is absorbed by a
//! line k with P(k) = P(i) and S(k) inside of S(j). That loses the paths from other lines before j to
//! S(k), unless i alone is before j. Here the product is a line of its own, (P(i), S(j)), and it is that
//! line which is cut: right for any j, and the same thing where the notes' rule is right.

use super::asked::Asked;
use super::labels::Labels;
use crate::draw::{Arrow, Mark, Picture, Tone};
use crate::{Label, LinearGraph, VertexId};
use chainrule_base::{Id, define_id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

define_id! {
    /// A line: a vertex of the line graph.
    pub struct LineId = "z";
}

/// Which rules hold after an elimination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// Lines are added up when their predecessors and successors are equal.
    Naumann,
    /// Also when one of the two sets is equal and the other is contained: the larger line is split.
    /// Each such split leaves fewer faces than before.
    #[default]
    Extended,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Line<V> {
    pub value: V,
    /// The vertex where it starts, and the one where it ends.
    pub source: VertexId,
    pub target: VertexId,
    /// Ascending.
    pub before: Vec<LineId>,
    /// Ascending.
    pub behind: Vec<LineId>,
    pub live: bool,
}

/// A line whose sets changed, and how large they were before.
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
    /// The lines between two vertices, ascending, dead ones among them until the next look.
    between: FxHashMap<(VertexId, VertexId), SmallVec<[LineId; 2]>>,
    /// Which pairs a line serves; `None` when all pairs are asked for.
    asked: Option<Asked>,
    n_faces: usize,
    work: u64,
    /// Lines whose sets lost members: they may have become equal to others, or useless.
    dirty: Vec<LineId>,
    /// Lines whose sets changed since the last [`Self::take_touched`], the first change of each first.
    touched: Vec<Touched>,
}

impl<'a, L: Labels> LineGraph<'a, L> {
    /// A line for each edge, a face for each pair of edges that follow one another and lie on a path of
    /// a pair asked for; parallel edges that serve the same pairs are added up. Linear in the number of faces.
    #[must_use]
    pub fn new(linear: &'a LinearGraph, labels: L, rules: Rules) -> Self {
        let mut graph = Self {
            linear,
            rules,
            lines: Vec::with_capacity(linear.n_edges()),
            between: FxHashMap::default(),
            asked: Asked::new(linear),
            n_faces: 0,
            work: 0,
            dirty: Vec::new(),
            touched: Vec::new(),
            labels,
        };
        // The lines out of each vertex, and into it, once parallel edges are one line.
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
                if graph.asked.as_ref().is_none_or(|a| a.follows(before, line)) {
                    graph.link(before, line);
                }
            }
        }
        if graph.asked.is_some() {
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

    /// How many faces there are.
    #[must_use]
    pub fn n_faces(&self) -> usize {
        self.n_faces
    }

    /// How many entries of sets were looked at.
    #[must_use]
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The graph behind.
    #[must_use]
    pub fn linear(&self) -> &'a LinearGraph {
        self.linear
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &L {
        &self.labels
    }

    /// All faces (i, j), ascending.
    pub fn faces(&self) -> impl Iterator<Item = (LineId, LineId)> {
        let live = self.lines.iter().enumerate().filter(|(_, line)| line.live);
        live.flat_map(|(i, line)| line.behind.iter().map(move |j| (LineId::new(i), *j)))
    }

    /// The line graph as it is now: a vertex for each line, named by its ends, and an arrow for each face. Lines that
    /// are gone are left out.
    #[must_use]
    pub fn picture(&self) -> Picture {
        // Lines in the order of their ends, which no face goes against.
        let mut live: Vec<usize> = (0..self.lines.len()).filter(|l| self.lines[*l].live).collect();
        live.sort_by_key(|l| (self.lines[*l].source, self.lines[*l].target, *l));
        let mut place = vec![usize::MAX; self.lines.len()];
        for (idx, line) in live.iter().enumerate() {
            place[*line] = idx;
        }
        let mark = |l: &usize| {
            let line = &self.lines[*l];
            Mark { label: format!("{}{}", line.source.index(), line.target.index()), tone: Tone::Plain }
        };
        let arrows = self.faces().map(|(i, j)| Arrow {
            from: place[i.index()],
            to: place[j.index()],
            label: String::new(),
            tone: Tone::Plain,
        });
        Picture { title: String::new(), marks: live.iter().map(mark).collect(), arrows: arrows.collect() }
    }

    /// Whether there is a face (i, j).
    #[must_use]
    pub fn is_face(&self, i: LineId, j: LineId) -> bool {
        self.lines.get(i.index()).is_some_and(|line| line.live && line.behind.binary_search(&j).is_ok())
    }

    pub(super) fn line(&self, line: LineId) -> &Line<L::Value> {
        &self.lines[line.index()]
    }

    /// The live lines, ascending.
    pub(super) fn live(&self) -> impl Iterator<Item = (LineId, &Line<L::Value>)> {
        let lines = self.lines.iter().enumerate().map(|(idx, line)| (LineId::new(idx), line));
        lines.filter(|(_, line)| line.live)
    }

    /// What is known of a line's label.
    #[must_use]
    pub fn kind(&self, line: LineId) -> Label {
        self.labels.kind(self.lines[line.index()].value)
    }

    /// Whether the product of a face would be absorbed by a line that is there.
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

    /// The lines whose sets changed since the last call, with the sizes of their sets then. Ascending.
    pub(super) fn take_touched(&mut self) -> Vec<Touched> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|t| t.line);
        touched.dedup_by_key(|t| t.line);
        touched
    }

    /// Eliminates the face (i, j); nothing is done where there is none.
    ///
    /// Every path through the face is one through i, then j; it becomes one through the new line, or the
    /// one that absorbs it, which has i's predecessors and j's successors and the product for its label.
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
        if let Some(asked) = &mut self.asked {
            asked.add(i, j);
        }
        for p in before {
            if self.asked.as_ref().is_none_or(|a| a.follows(p, made)) {
                self.link(p, made);
            }
        }
        for s in behind {
            if self.asked.as_ref().is_none_or(|a| a.follows(made, s)) {
                self.link(made, s);
            }
        }
        if self.rules == Rules::Extended || self.asked.is_some() {
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

    /// Takes a line out. Lines around it may become useless, or equal.
    fn kill(&mut self, line: LineId) {
        for p in self.lines[line.index()].before.clone() {
            self.unlink(p, line);
        }
        for s in self.lines[line.index()].behind.clone() {
            self.unlink(line, s);
        }
        self.lines[line.index()].live = false;
    }

    /// Whether a line lies on no path that is asked for.
    fn is_useless(&self, line: LineId) -> bool {
        let l = &self.lines[line.index()];
        (l.before.is_empty() && !self.linear.is_source(l.source))
            || (l.behind.is_empty() && !self.linear.is_sink(l.target))
            || self.asked.as_ref().is_some_and(|a| !a.follows(line, line))
    }

    /// Takes out what is useless and adds up what may be added up, until nothing changes. Ends, because
    /// every step takes a line or a face away.
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

    /// Forgets pairs that no longer pass through `line`, and the faces that served only them.
    fn narrow(&mut self, line: LineId) {
        let Some(asked) = &mut self.asked else { return };
        let l = &self.lines[line.index()];
        let inner = (!self.linear.is_source(l.source), !self.linear.is_sink(l.target));
        self.work += (l.before.len() + l.behind.len()) as u64;
        if !asked.narrow(line, &l.before, &l.behind, inner) {
            return;
        }
        let (before, behind) = (l.before.clone(), l.behind.clone());
        for p in before {
            if self.asked.as_ref().is_some_and(|a| !a.follows(p, line)) {
                self.unlink(p, line);
            }
            self.dirty.push(p);
        }
        for s in behind {
            if self.asked.as_ref().is_some_and(|a| !a.follows(line, s)) {
                self.unlink(line, s);
            }
            self.dirty.push(s);
        }
    }

    /// Merge, and under the extended rules partial merge, of `line` with lines of equal ends.
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
                // The older one stays; whoever has one of them beside it has both.
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

    /// c(line) += c(other).
    fn add_to(&mut self, line: LineId, other: LineId) {
        let sum = self.labels.sum(self.lines[line.index()].value, self.lines[other.index()].value);
        self.lines[line.index()].value = sum;
    }

    /// `small` takes over from `large`, whose successors contain its own, the predecessors being equal.
    fn split_behind(&mut self, small: LineId, large: LineId) {
        self.add_to(small, large);
        for s in self.lines[small.index()].behind.clone() {
            self.unlink(large, s);
        }
    }

    /// `small` takes over from `large`, whose predecessors contain its own, the successors being equal.
    fn split_before(&mut self, small: LineId, large: LineId) {
        self.add_to(small, large);
        for p in self.lines[small.index()].before.clone() {
            self.unlink(p, large);
        }
    }

    /// Eliminates what faces are left, in ascending order, and returns the labels of the derivatives as
    /// (sink, source, label), with all labels.
    #[must_use]
    pub fn finish(mut self) -> (L, Vec<(VertexId, VertexId, L::Value)>) {
        // A line that has no face left never gets one: what is made here comes behind lines with faces.
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

/// Whether all of `small`, which is not empty, is in `large`. Both ascend.
fn is_subset(small: &[LineId], large: &[LineId]) -> bool {
    let mut rest = large.iter();
    !small.is_empty() && small.len() < large.len() && small.iter().all(|line| rest.any(|other| other == line))
}

#[cfg(test)]
mod tests {
    use super::super::labels::Recorder;
    use super::*;
    use crate::{Counting, check};

    /// A detour beside an edge, then two outputs: lines 0 and 1 are the detour, 2 the edge beside it, 3 and 4
    /// lead to the outputs.
    fn detour() -> LinearGraph {
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 4)].map(|(s, t)| (s, t, Label::Var));
        LinearGraph::from_edges(1, 2, 2, &edges).unwrap()
    }

    /// Eliminates these faces and then the rest; how many faces were left, and the multiplications.
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
            // The detour's product is absorbed by the edge beside it.
            assert_eq!(eliminated(rules, &[(0, 1)]), (2, 3));
        }
        // Once line 3 does not follow line 2, that takes only a part of the product: two faces are left, not three.
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
