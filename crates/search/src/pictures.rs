//! Pictures of eliminations in progress: vertices, faces, and the factorisation of D*.

use crate::draw::{Arrow, Mark, Picture, Tone};
use chainrule_accumulate::face::{Labels, LineGraph, LineId};
use chainrule_accumulate::vertex::Elimination;
use chainrule_accumulate::{LinearGraph, VertexId, dstar};
use chainrule_base::Id;

/// Returns a picture of the current graph of a vertex elimination, with faded eliminated vertices.
#[must_use]
pub fn vertices(elimination: &Elimination<'_>) -> Picture {
    let vertices = || (0..elimination.linear().n_vertices()).map(VertexId::new);
    let tone = |v: VertexId| if elimination.is_eliminated(v) { Tone::Faded } else { Tone::Plain };
    let marks = vertices().map(|v| Mark { label: v.index().to_string(), tone: tone(v) }).collect();
    let mut arrows = Vec::new();
    for v in vertices() {
        let mut behind: Vec<VertexId> = elimination.successors(v).collect();
        behind.sort_unstable();
        arrows.extend(behind.into_iter().map(|k| Arrow {
            from: v.index(),
            to: k.index(),
            label: String::new(),
            tone: Tone::Plain,
        }));
    }
    Picture { title: String::new(), marks, arrows }
}

/// Returns a picture of the current line graph: a vertex for each live line, named by its ends, and an arrow for each
/// face.
#[must_use]
pub fn faces<L: Labels>(graph: &LineGraph<'_, L>) -> Picture {
    // Lines in the order of their ends; faces follow that order.
    let mut live: Vec<LineId> = graph.live().map(|(line, _)| line).collect();
    live.sort_by_key(|l| (graph.line(*l).source, graph.line(*l).target, *l));
    let mut place = vec![usize::MAX; live.iter().map(|l| l.index() + 1).max().unwrap_or(0)];
    for (idx, line) in live.iter().enumerate() {
        place[line.index()] = idx;
    }
    let mark = |l: &LineId| {
        let line = graph.line(*l);
        Mark { label: format!("{}{}", line.source.index(), line.target.index()), tone: Tone::Plain }
    };
    let arrows = graph.faces().map(|(i, j)| Arrow {
        from: place[i.index()],
        to: place[j.index()],
        label: String::new(),
        tone: Tone::Plain,
    });
    Picture { title: String::new(), marks: live.iter().map(mark).collect(), arrows: arrows.collect() }
}

/// Returns pictures of the derivative graph of the first requested pair of a root and a variable: before, and after
/// each factorisation of D* in sequence. Edges that the next step replaces are red, the edge made by the last step is
/// blue. Empty for graphs with more than 500 edges.
#[must_use]
pub fn factorisation(linear: &LinearGraph) -> Vec<Picture> {
    dstar::stages(linear).iter().map(|stage| derivative_graph(linear, stage)).collect()
}

fn derivative_graph(linear: &LinearGraph, stage: &dstar::Stage) -> Picture {
    let mut used = vec![false; linear.n_vertices()];
    let mut arrows = Vec::new();
    for edge in &stage.edges {
        let (from, to) = (edge.source.index(), edge.target.index());
        (used[from], used[to]) = (true, true);
        let tone = match edge.role {
            dstar::Role::Other => Tone::Plain,
            dstar::Role::Replaced => Tone::Active,
            dstar::Role::New => Tone::New,
        };
        arrows.push(Arrow { from, to, label: edge.name.clone(), tone });
    }
    let tone = |v: usize| if used[v] { Tone::Plain } else { Tone::Faded };
    let marks = (0..linear.n_vertices()).map(|v| Mark { label: v.to_string(), tone: tone(v) }).collect();
    Picture { title: stage.title.clone(), marks, arrows }
}
