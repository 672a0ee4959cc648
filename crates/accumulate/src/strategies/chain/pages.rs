//! Several sources and sinks: common chains and blocks are found page by page (the notes, section 5).
//!
//! | the notes | here |
//! | --- | --- |
//! | r-degree, t-degree: roots before a vertex, terminals behind it | `Degrees` |
//! | step 1: simple chains and blocks become reference edges | `Web::reduce` |
//! | step 2: v(i), v(j) | `pivots` |
//! | step 3: split the paths from Y(i) to X(j) into a page of their own | `restricted` |
//! | step 4: separate the paths through the edges that cross most levels | `split_at_sources`, `split_at_sinks` |
//! | step 5: factorise between v(i) and v(j) | `bridge` |
//! | step 6: again for each page; merge equal pairs | `accumulate` |
//!
//! Two decisions that the notes leave open: if no edge crosses levels, no set of roots is separated, since that only
//! repeats computations; and the block between v(i) and v(j) is factorised if it is closed on at least one side.
//! Otherwise the page is a leaf and is accumulated vertex by vertex.
//!
//! Every path from a source to a sink is in exactly one page: step 3 splits paths by their ends, step 4 by their first
//! or last edge. So the derivative of a pair is the sum over pages.

use super::levels::{Levels, Side};
use super::web::Web;
use crate::{Builder, LabelId, StopReason, VertexId};
use chainrule_base::Id;
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

/// Maximum number of pages; the remaining ones are leaves.
pub const MAX_PAGES: usize = 300;

/// Accumulates page by page; returns the labels as (sink, source, label).
///
/// # Errors
/// Fails if there are more products than `budget`.
pub(super) fn accumulate(
    web: Web<'_>,
    builder: &mut Builder,
    budget: u64,
) -> Result<Vec<(VertexId, VertexId, LabelId)>, StopReason> {
    let mut derivatives: BTreeMap<(VertexId, VertexId), Vec<LabelId>> = BTreeMap::new();
    let mut pages = vec![web];
    let mut n_pages = 1;
    while let Some(mut page) = pages.pop() {
        page.reduce(builder);
        for (sink, source, label) in page.ends() {
            derivatives.entry((sink, source)).or_default().push(label);
            page.remove(source, sink);
        }
        let parts = if n_pages < MAX_PAGES { step(&page, builder) } else { Vec::new() };
        if parts.is_empty() {
            page.finish(builder, budget)?;
            for (sink, source, label) in page.ends() {
                derivatives.entry((sink, source)).or_default().push(label);
            }
        }
        n_pages += parts.len();
        pages.extend(parts.into_iter().rev());
        if builder.n_products() > budget {
            return Err(StopReason::ProductBudget);
        }
    }
    let merged = derivatives.into_iter().map(|((sink, source), labels)| {
        for label in labels {
            builder.add(&[label]);
        }
        (sink, source, builder.close())
    });
    Ok(merged.collect())
}

/// Returns the pages that a page is split into, or the one that replaces it; none for a leaf.
fn step<'a>(page: &Web<'a>, builder: &mut Builder) -> Vec<Web<'a>> {
    let degrees = Degrees::new(page);
    let levels = Levels::new(page, Side::Sources);
    let Some((vi, vj)) = pivots(page, &degrees, &levels) else { return Vec::new() };
    let linear = page.linear;
    let sources: Vec<VertexId> = linear.sources().filter(|v| page.degrees(*v).1 > 0).collect();
    let sinks: Vec<VertexId> = linear.sinks().filter(|v| page.degrees(*v).0 > 0).collect();
    if sources.len() == 1 && sinks.len() == 1 {
        return Vec::new();
    }
    let first_sink = linear.n_vertices() - linear.sinks().len();
    let (before, others_before): (Vec<VertexId>, Vec<VertexId>) =
        sources.iter().partition(|v| degrees.sources[vi.index()].contains(v.index()));
    let (behind, others_behind): (Vec<VertexId>, Vec<VertexId>) =
        sinks.iter().partition(|v| degrees.sinks[vj.index()].contains(v.index() - first_sink));
    if !others_before.is_empty() || !others_behind.is_empty() {
        let parts = [(&before, &behind), (&others_before, &sinks), (&before, &others_behind)];
        return parts.iter().map(|(from, to)| restricted(page, from, to)).filter(|p| !is_empty(p)).collect();
    }
    if vi != vj && !only_edge(page, vi, vj) {
        return bridge(page, builder, vi, vj).into_iter().collect();
    }
    split_by_levels(page, &levels)
}

fn is_empty(page: &Web<'_>) -> bool {
    page.edges().next().is_none()
}

/// Number of sources before each vertex and of sinks behind it, in a page.
struct Degrees {
    sources: Vec<FixedBitSet>,
    sinks: Vec<FixedBitSet>,
}

impl Degrees {
    fn new(page: &Web<'_>) -> Self {
        let linear = page.linear;
        let (n_sources, n_sinks) = (linear.sources().len(), linear.sinks().len());
        let first_sink = linear.n_vertices() - n_sinks;
        let mut sources = vec![FixedBitSet::with_capacity(n_sources); linear.n_vertices()];
        let mut sinks = vec![FixedBitSet::with_capacity(n_sinks); linear.n_vertices()];
        for v in linear.sources() {
            sources[v.index()].insert(v.index());
        }
        for v in linear.sinks() {
            sinks[v.index()].insert(v.index() - first_sink);
        }
        let edges: Vec<_> = page.edges().collect();
        for (u, v, _) in &edges {
            let (low, high) = sources.split_at_mut(v.index());
            high[0].union_with(&low[u.index()]);
        }
        for (u, v, _) in edges.iter().rev() {
            let (low, high) = sinks.split_at_mut(v.index());
            low[u.index()].union_with(&high[0]);
        }
        Self { sources, sinks }
    }
}

/// Returns v(i), the vertex nearest to the sources among those whose r-degree is the unique maximum of their level, and
/// v(j) behind it or itself, the same from the sinks with t-degrees.
fn pivots(page: &Web<'_>, degrees: &Degrees, levels: &Levels) -> Option<(VertexId, VertexId)> {
    let inner: Vec<VertexId> = page.linear.intermediates().filter(|v| page.degrees(*v) != (0, 0)).collect();
    let largest = |sets: &[FixedBitSet]| {
        // Largest degree of each level, and the vertex that has it if it is unique.
        let mut largest: BTreeMap<usize, (usize, Option<VertexId>)> = BTreeMap::new();
        for &v in &inner {
            let degree = sets[v.index()].count_ones(..);
            let entry = largest.entry(levels.of[v.index()]).or_insert((0, None));
            if degree > entry.0 {
                *entry = (degree, Some(v));
            } else if degree == entry.0 {
                entry.1 = None;
            }
        }
        largest.into_values().filter_map(|(degree, v)| Some((degree, v?))).collect::<Vec<_>>()
    };
    let (_, vi) =
        largest(&degrees.sources).into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let behind = reachable(page, vi);
    let candidates = largest(&degrees.sinks).into_iter().filter(|(_, v)| behind[v.index()]);
    let (_, vj) = candidates.reduce(|best, next| if next.0 >= best.0 { next } else { best })?;
    Some((vi, vj))
}

/// Returns, for each vertex, whether it is `start` or there is a path to it from `start`.
fn reachable(page: &Web<'_>, start: VertexId) -> Vec<bool> {
    let mut reached = vec![false; page.linear.n_vertices()];
    reached[start.index()] = true;
    for u in start.index()..reached.len() {
        if reached[u] {
            for (v, _) in page.behind(VertexId::new(u)) {
                reached[v.index()] = true;
            }
        }
    }
    reached
}

/// Returns, for each vertex, whether it is `end` or there is a path from it to `end`.
fn reaching(page: &Web<'_>, end: VertexId) -> Vec<bool> {
    let mut reached = vec![false; page.linear.n_vertices()];
    reached[end.index()] = true;
    for v in (0..=end.index()).rev() {
        if reached[v] {
            for u in page.before(VertexId::new(v)) {
                reached[u.index()] = true;
            }
        }
    }
    reached
}

/// Returns whether the edge from `vi` to `vj` is the only path.
fn only_edge(page: &Web<'_>, vi: VertexId, vj: VertexId) -> bool {
    let to = reaching(page, vj);
    page.behind(vi).all(|(v, _)| v == vj || !to[v.index()])
}

/// Returns the page of the paths from some sources to some sinks.
fn restricted<'a>(page: &Web<'a>, sources: &[VertexId], sinks: &[VertexId]) -> Web<'a> {
    kept(page, |u, _| sources.contains(&u), |_, v| sinks.contains(&v))
}

/// Returns the page of the paths whose first edge is accepted by `first` and whose last edge is accepted by `last`.
fn kept<'a>(
    page: &Web<'a>,
    first: impl Fn(VertexId, VertexId) -> bool,
    last: impl Fn(VertexId, VertexId) -> bool,
) -> Web<'a> {
    let linear = page.linear;
    let n = linear.n_vertices();
    let edges: Vec<_> = page
        .edges()
        .filter(|&(u, v, _)| (!linear.is_source(u) || first(u, v)) && (!linear.is_sink(v) || last(u, v)))
        .collect();
    let mut forth: Vec<bool> = (0..n).map(|v| linear.is_source(VertexId::new(v))).collect();
    for (u, v, _) in &edges {
        forth[v.index()] |= forth[u.index()];
    }
    let mut back: Vec<bool> = (0..n).map(|v| linear.is_sink(VertexId::new(v))).collect();
    for (u, v, _) in edges.iter().rev() {
        back[u.index()] |= back[v.index()];
    }
    let mut part = page.without_edges();
    for (u, v, label) in edges {
        if forth[u.index()] && back[v.index()] {
            part.set(u, v, label);
        }
    }
    part
}

/// Step 4: returns two pages, or none if no edge from a source or to a sink crosses levels.
fn split_by_levels<'a>(page: &Web<'a>, levels: &Levels) -> Vec<Web<'a>> {
    let linear = page.linear;
    let crossed = |u: VertexId, v: VertexId| levels.of[v.index()] - levels.of[u.index()];
    let most = |edges: &mut dyn Iterator<Item = (VertexId, VertexId, LabelId)>| {
        edges.map(|(u, v, _)| crossed(u, v)).max().unwrap_or(0)
    };
    let at_sources = most(&mut page.edges().filter(|(u, ..)| linear.is_source(*u)));
    let at_sinks = most(&mut page.edges().filter(|(_, v, _)| linear.is_sink(*v)));
    let parts = if at_sources > 1 {
        [true, false].map(|far| kept(page, |u, v| (crossed(u, v) == at_sources) == far, |_, _| true))
    } else if at_sinks > 1 {
        [true, false].map(|far| kept(page, |_, _| true, |u, v| (crossed(u, v) == at_sinks) == far))
    } else {
        return Vec::new();
    };
    // A part would be the page itself, and the recursion would not end.
    if parts.iter().any(is_empty) { Vec::new() } else { parts.into() }
}

/// Step 5: replaces all paths from `vi` to `vj` by one edge. `None` if the block between them is open on both sides:
/// removing its edges would remove other paths.
fn bridge<'a>(page: &Web<'a>, builder: &mut Builder, vi: VertexId, vj: VertexId) -> Option<Web<'a>> {
    let (from, to) = (reachable(page, vi), reaching(page, vj));
    let inside = |v: VertexId| from[v.index()] && to[v.index()];
    let inner: Vec<VertexId> = page.linear.intermediates().filter(|v| inside(*v) && *v != vi && *v != vj).collect();
    let closed_behind = inner.iter().all(|v| page.behind(*v).all(|(w, _)| inside(w)));
    let closed_before = inner.iter().all(|v| page.before(*v).all(&inside));
    if !closed_behind && !closed_before {
        return None;
    }
    // Backward factorisation of the block.
    let mut part: BTreeMap<VertexId, LabelId> = BTreeMap::new();
    for &v in inner.iter().rev().chain([&vi]) {
        for (w, label) in page.behind(v).filter(|(w, _)| inside(*w)) {
            if w == vj {
                builder.add(&[label]);
            } else if let Some(rest) = part.get(&w) {
                builder.add(&[label, *rest]);
            }
        }
        part.insert(v, builder.close());
    }
    let mut bridged = page.clone();
    let edges: Vec<_> = if closed_behind {
        page.behind(vi).filter(|(w, _)| inside(*w)).map(|(w, _)| (vi, w)).collect()
    } else {
        page.before(vj).filter(|u| inside(*u)).map(|u| (u, vj)).collect()
    };
    for (u, v) in edges {
        bridged.remove(u, v);
    }
    bridged.set(vi, vj, part[&vi]);
    Some(bridged)
}
