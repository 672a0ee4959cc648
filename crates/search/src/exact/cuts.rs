//! Lower bounds of the cost of eliminating one vertex at any time: minimum vertex cuts.
//!
//! When v is eliminated, its predecessors separate it from the sources and from every remaining intermediate: the last
//! remaining vertex of each path to v is a predecessor. So, by Menger's theorem, there are at least as many
//! predecessors as paths to v, from the sources and from intermediates known to remain, that share nothing but v. The
//! same holds for successors and sinks; the product of both numbers bounds the cost from below.
//!
//! If products by 1 and -1 are free, an edge u -> v can only be a unit at that time if a path of unit edges leads from
//! u to v. Such u are removed from the graph: the other predecessors still separate v from the vertices that can be
//! reached without them.
//!
//! This module has the bound for a graph of any size without knowledge of remaining vertices; `masks.rs` has it for the
//! search.

use super::state::{Side, State};
use fixedbitset::FixedBitSet;

/// Returns a lower bound of the cost of `v` if at least the vertices eliminated in `state` are eliminated by then. O(p
/// e), where p is the larger factor of the bound, and e the number of edges.
pub(super) fn bound(state: &State, v: usize) -> u64 {
    let sources = |u: usize| u < state.n_sources;
    let sinks = |u: usize| u >= state.first_sink;
    match disjoint_paths(&state.before, v, sources) {
        0 => 0,
        paths => paths * disjoint_paths(&state.behind, v, sinks),
    }
}

const NONE: usize = usize::MAX;

/// Returns the number of paths from `v` along `sides` to ends that share nothing but `v`.
///
/// A maximum flow by augmenting paths (Ford and Fulkerson) in which each vertex passes one unit: vertex x is split into
/// an entrance, node 2x, and an exit, node 2x + 1.
fn disjoint_paths(sides: &[Side], v: usize, is_end: impl Fn(usize) -> bool) -> u64 {
    let free = units(sides, v);
    // Previous vertex of the flow through a vertex; `NONE` if there is no flow.
    let mut from = vec![NONE; sides.len()];
    let mut parent = vec![NONE; 2 * sides.len()];
    let mut queue = Vec::new();
    let mut paths = 0;
    loop {
        parent.fill(NONE);
        queue.clear();
        let start = 2 * v + 1;
        parent[start] = start;
        queue.push(start);
        let mut end = NONE;
        let mut next = 0;
        while next < queue.len() && end == NONE {
            let node = queue[next];
            next += 1;
            let x = node / 2;
            let mut reach = |to: usize| {
                if parent[to] == NONE {
                    parent[to] = node;
                    queue.push(to);
                }
            };
            if node % 2 == 1 {
                if x != v && from[x] != NONE {
                    reach(2 * x);
                }
                for y in sides[x].all.ones() {
                    if y != v && from[y] != x && !free.contains(y) {
                        reach(2 * y);
                    }
                }
            } else if from[x] != NONE {
                reach(2 * from[x] + 1);
            } else if is_end(x) {
                end = x;
            } else {
                reach(2 * x + 1);
            }
        }
        if end == NONE {
            return paths;
        }
        paths += 1;
        // An entrance that was reached from its own exit loses its flow; others get it from where they were reached.
        let mut node = 2 * end;
        while node != start {
            if node.is_multiple_of(2) {
                let origin = parent[node] / 2;
                from[node / 2] = if origin == node / 2 { NONE } else { origin };
            }
            node = parent[node];
        }
    }
}

/// Returns the vertices that may have a unit edge to `v` when it is eliminated.
fn units(sides: &[Side], v: usize) -> FixedBitSet {
    let mut reached = sides[v].unit.clone();
    let mut stack: Vec<usize> = reached.ones().collect();
    while let Some(u) = stack.pop() {
        for w in sides[u].unit.ones() {
            if !reached.put(w) {
                stack.push(w);
            }
        }
    }
    reached
}
