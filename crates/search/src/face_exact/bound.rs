//! Lower bound of the number of remaining eliminations.
//!
//! Two kinds of eliminations are counted separately, by the ends of the line that they make:
//!
//! - From a source to a sink. Each requested pair that is connected by a path of two lines or more needs at least one:
//!   its derivative is a single label in the end, and a path of several lines is not.
//! - Any other. A path of three lines or more loses a face at some time, and the first that it loses makes a line that
//!   does not lead from its source to its sink. Until then the path runs through the same vertices, because lines are
//!   only merged with, and split into, lines of equal ends. Take paths that share no face and whose lines have no
//!   parallels: their first faces differ as triples of vertices, so the eliminations differ. The maximum number of such
//!   paths is a maximum flow.
//!
//! The second bound requires that paths are not dropped, so it is used only if all pairs are requested.

use chainrule_accumulate::face::{Labels, LineGraph, LineId};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// Returns the lower bound. O(lines times sinks / 64 + faces times flow).
pub(super) fn lower<L: Labels>(graph: &LineGraph<'_, L>, all_pairs: bool) -> u64 {
    let pending = pending_pairs(graph, all_pairs);
    if all_pairs { pending + disjoint_paths(graph) } else { pending }
}

/// Returns the number of requested pairs that have a path of two lines or more.
fn pending_pairs<L: Labels>(graph: &LineGraph<'_, L>, all_pairs: bool) -> u64 {
    let linear = graph.linear();
    let n_sinks = linear.sinks().len();
    let first_sink = linear.n_vertices() - n_sinks;
    let n_lines = graph.live().last().map_or(0, |(line, _)| line.index() + 1);
    // Lines are visited by their start, from the outputs, so a line's reach is complete before its use.
    let mut lines: Vec<LineId> = graph.live().map(|(line, _)| line).collect();
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(graph.line(*line).source));
    let mut reached = vec![FixedBitSet::with_capacity(n_sinks); n_lines];
    let mut by_source = vec![FixedBitSet::with_capacity(n_sinks); linear.sources().len()];
    for line in lines {
        let l = graph.line(line);
        let mut sinks = FixedBitSet::with_capacity(n_sinks);
        for s in &l.behind {
            sinks.union_with(&reached[s.index()]);
        }
        if linear.is_source(l.source) {
            by_source[l.source.index()].union_with(&sinks);
        }
        if linear.is_sink(l.target) {
            sinks.insert(l.target.index() - first_sink);
        }
        reached[line.index()] = sinks;
    }
    if !all_pairs && let Some(wanted) = linear.wanted().sinks_by_source(linear.sources().len()) {
        let kept = by_source.iter().zip(&wanted);
        return kept.map(|(r, w)| w.iter().filter(|sink| r.contains(sink.index() - first_sink)).count() as u64).sum();
    }
    by_source.iter().map(|sinks| sinks.count_ones(..) as u64).sum()
}

/// Returns the number of face-disjoint paths of three lines or more, through lines without parallels.
fn disjoint_paths<L: Labels>(graph: &LineGraph<'_, L>) -> u64 {
    let linear = graph.linear();
    let mut between: FxHashMap<_, u32> = FxHashMap::default();
    for (_, line) in graph.live() {
        *between.entry((line.source, line.target)).or_default() += 1;
    }
    let single = |line: LineId| {
        let l = graph.line(line);
        between[&(l.source, l.target)] == 1
    };
    // Faces whose elimination makes no line from a source to a sink, as arcs of capacity one.
    let n_lines = graph.live().last().map_or(0, |(line, _)| line.index() + 1);
    let mut forth: Vec<Vec<usize>> = vec![Vec::new(); n_lines];
    for (i, j) in graph.faces() {
        let ends = linear.is_source(graph.line(i).source) && linear.is_sink(graph.line(j).target);
        if !ends && single(i) && single(j) {
            forth[i.index()].push(j.index());
        }
    }
    let starts: Vec<usize> =
        graph.live().filter(|(_, l)| linear.is_source(l.source)).map(|(line, _)| line.index()).collect();
    let is_end = |n: usize| linear.is_sink(graph.line(LineId::new(n)).target);
    // Augmenting paths; a used arc is reversed.
    let mut flow = 0;
    loop {
        let mut came_from: Vec<Option<usize>> = vec![None; n_lines];
        let mut queue: Vec<usize> = Vec::new();
        for &start in &starts {
            came_from[start] = Some(start);
            queue.push(start);
        }
        let mut end = None;
        let mut next = 0;
        while next < queue.len() && end.is_none() {
            let n = queue[next];
            next += 1;
            for &m in &forth[n] {
                if came_from[m].is_none() {
                    came_from[m] = Some(n);
                    if is_end(m) {
                        end = Some(m);
                        break;
                    }
                    queue.push(m);
                }
            }
        }
        let Some(mut m) = end else { return flow };
        flow += 1;
        while let Some(n) = came_from[m].filter(|n| *n != m) {
            if let Some(at) = forth[n].iter().position(|k| *k == m) {
                forth[n].remove(at);
            }
            forth[m].push(n);
            m = n;
        }
    }
}
