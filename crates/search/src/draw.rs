//! Pictures of small graphs as SVG, for the guide, for reports and for debugging.
//!
//! In: vertices and arrows with labels and tones ([`Picture`]); [`Picture::of`] makes one from a linearised graph. Out:
//! the text of an SVG file, with the same bytes for the same picture.
//!
//! Layered drawing after Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system
//! structures", 1981): the layer of a vertex is its longest path from a vertex without in-arrows, arrows that cross
//! layers get bends there, and each layer is ordered by the barycentres of its neighbours, in alternating sweeps.
//! Inputs are on the left. A sweep is linear in the arrows and the layers that they cross; meant for hundreds of
//! vertices.

use chainrule_accumulate::LinearGraph;
use chainrule_base::Id;
use std::fmt::Write;

/// Emphasis of a vertex or arrow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// No emphasis.
    #[default]
    Plain,
    /// Subject of the current step.
    Active,
    /// Result of the current step.
    New,
    /// Removed or to be removed; a faded vertex without arrows is not drawn.
    Faded,
}

impl Tone {
    fn color(self) -> &'static str {
        match self {
            Self::Plain => "#333333",
            Self::Active => "#c0392b",
            Self::New => "#1f6fb2",
            Self::Faded => "#bbbbbb",
        }
    }
}

/// A vertex of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Text in the vertex.
    pub label: String,
    /// Emphasis.
    pub tone: Tone,
}

/// An arrow of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrow {
    /// Index of the start vertex.
    pub from: usize,
    /// Index of the end vertex.
    pub to: usize,
    /// Text at the arrow; may be empty.
    pub label: String,
    /// Emphasis.
    pub tone: Tone,
}

/// An acyclic graph to be drawn. Arrows with a missing end are not drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picture {
    /// Title above the picture; may be empty.
    pub title: String,
    /// The vertices, in a topological order.
    pub marks: Vec<Mark>,
    /// The arrows, each from a vertex to a later one.
    pub arrows: Vec<Arrow>,
}

/// Distance of layers, and distance within a layer.
const STEP: (f64, f64) = (110.0, 64.0);
const RADIUS: f64 = 15.0;
const MARGIN: f64 = 34.0;
const TITLE: f64 = 28.0;
/// Approximate width of a character of a title.
const CHARACTER: f64 = 7.5;
const SWEEPS: usize = 12;

impl Picture {
    /// Returns the picture of a linearised graph, with vertices and edges labelled by their numbers.
    #[must_use]
    pub fn of(linear: &LinearGraph) -> Self {
        let marks = (0..linear.n_vertices()).map(|v| Mark { label: v.to_string(), tone: Tone::Plain }).collect();
        let arrows = linear
            .edges()
            .map(|(e, edge)| Arrow {
                from: edge.source.index(),
                to: edge.target.index(),
                label: e.to_string(),
                tone: Tone::Plain,
            })
            .collect();
        Self { title: String::new(), marks, arrows }
    }

    /// Returns the text of an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        let layout = Layout::new(self);
        let top = if self.title.is_empty() { 0.0 } else { TITLE };
        let (width, height) = layout.size();
        let width = width.max(CHARACTER * self.title.chars().count() as f64 + MARGIN);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {:.0}\" width=\"{width:.0}\" \
             height=\"{:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n",
            height + top,
            height + top
        );
        svg.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<defs>\n");
        for tone in [Tone::Plain, Tone::Active, Tone::New, Tone::Faded] {
            let _ = writeln!(
                svg,
                "<marker id=\"{tone:?}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
                 markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"{}\"/></marker>",
                tone.color()
            );
        }
        svg.push_str("</defs>\n");
        if !self.title.is_empty() {
            let _ = writeln!(
                svg,
                "<text x=\"{:.0}\" y=\"18\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
                width / 2.0,
                escaped(&self.title)
            );
        }
        let _ = writeln!(svg, "<g transform=\"translate(0 {top:.0})\">");
        for (idx, bends) in &layout.paths {
            layout.arrow(&mut svg, &self.arrows[*idx], bends, self.parallel(*idx));
        }
        for (place, mark) in layout.places.iter().zip(&self.marks) {
            let Some(place) = *place else { continue };
            let (x, y) = layout.at(place);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{RADIUS}\" fill=\"#ffffff\" stroke=\"{0}\" \
                 stroke-width=\"1.5\"/><text x=\"{x:.0}\" y=\"{1:.0}\" text-anchor=\"middle\" fill=\"{0}\">{2}</text>",
                mark.tone.color(),
                y + 4.5,
                escaped(&mark.label)
            );
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    /// Returns the number of preceding arrows with the same ends, and of all arrows with these ends.
    fn parallel(&self, idx: usize) -> (usize, usize) {
        let ends = |arrow: &Arrow| (arrow.from, arrow.to);
        let same = |arrow: &&Arrow| ends(arrow) == ends(&self.arrows[idx]);
        (self.arrows[..idx].iter().filter(same).count(), self.arrows.iter().filter(same).count())
    }
}

/// Position of a point: its layer, and its height in the layer.
type Place = (usize, f64);

/// Positions of all vertices, and of the bends of all arrows.
struct Layout {
    /// `None` for vertices that are not drawn.
    places: Vec<Option<Place>>,
    /// Index and points of each arrow to be drawn.
    paths: Vec<(usize, Vec<Place>)>,
    n_layers: usize,
    /// Number of positions of the largest layer.
    breadth: usize,
}

impl Layout {
    fn new(picture: &Picture) -> Self {
        let n = picture.marks.len();
        let drawn: Vec<usize> = (0..picture.arrows.len())
            .filter(|idx| picture.arrows[*idx].from < picture.arrows[*idx].to && picture.arrows[*idx].to < n)
            .collect();
        let mut layer = vec![0_usize; n];
        let mut ascending = drawn.clone();
        ascending.sort_by_key(|idx| picture.arrows[*idx].to);
        for idx in &ascending {
            let Arrow { from, to, .. } = &picture.arrows[*idx];
            layer[*to] = layer[*to].max(layer[*from] + 1);
        }
        let n_layers = layer.iter().max().map_or(0, |l| l + 1);
        // Vertices without successors are on the right.
        let mut leads_on = vec![false; n];
        for idx in &drawn {
            leads_on[picture.arrows[*idx].from] = true;
        }
        for v in 0..n {
            if !leads_on[v] && layer[v] > 0 {
                layer[v] = n_layers - 1;
            }
        }
        let mut joined = vec![false; n];
        for idx in &drawn {
            joined[picture.arrows[*idx].from] = true;
            joined[picture.arrows[*idx].to] = true;
        }
        let shown = |v: usize| v >= n || joined[v] || picture.marks[v].tone != Tone::Faded;
        // Points: vertices, then bends.
        let mut links: Vec<(usize, usize)> = Vec::new();
        let mut chains: Vec<(usize, Vec<usize>)> = Vec::new();
        for idx in drawn {
            let Arrow { from, to, .. } = &picture.arrows[idx];
            let mut chain = vec![*from];
            for between in layer[*from] + 1..layer[*to] {
                chain.push(layer.len());
                layer.push(between);
            }
            chain.push(*to);
            links.extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
            chains.push((idx, chain));
        }
        let mut layers: Vec<Vec<usize>> = vec![Vec::new(); n_layers];
        for (point, l) in layer.iter().enumerate().filter(|(point, _)| shown(*point)) {
            layers[*l].push(point);
        }
        let (heights, breadth) = ordered(layers, &links, layer.len());
        let place = |point: usize| (layer[point], heights[point]);
        Self {
            places: (0..n).map(|v| shown(v).then(|| place(v))).collect(),
            paths: chains.into_iter().map(|(idx, chain)| (idx, chain.into_iter().map(place).collect())).collect(),
            n_layers,
            breadth,
        }
    }

    fn size(&self) -> (f64, f64) {
        let spans = |n: usize, step: f64| 2.0 * MARGIN + step * (n.max(1) - 1) as f64;
        (spans(self.n_layers, STEP.0), spans(self.breadth, STEP.1))
    }

    fn at(&self, (layer, height): Place) -> (f64, f64) {
        (MARGIN + STEP.0 * layer as f64, MARGIN + STEP.1 * height)
    }

    /// Draws an arrow through its points; arrows with the same ends are separated by bending.
    fn arrow(&self, svg: &mut String, arrow: &Arrow, bends: &[Place], (idx, n): (usize, usize)) {
        let mut points: Vec<(f64, f64)> = bends.iter().map(|place| self.at(*place)).collect();
        let apart = 26.0 * (idx as f64 - (n - 1) as f64 / 2.0);
        if points.len() == 2 {
            let middle = (f64::midpoint(points[0].0, points[1].0), f64::midpoint(points[0].1, points[1].1));
            points.insert(1, middle);
        }
        let last = points.len() - 1;
        for point in &mut points[1..last] {
            point.1 += apart;
        }
        points[0] = towards(points[0], points[1], RADIUS);
        points[last] = towards(points[last], points[last - 1], RADIUS + 1.0);
        // A quadratic curve through the midpoints of the segments, with the bends as control points.
        let mut path = format!("M{:.1},{:.1}", points[0].0, points[0].1);
        for i in 1..last {
            let end = if i + 1 == last {
                points[last]
            } else {
                (f64::midpoint(points[i].0, points[i + 1].0), f64::midpoint(points[i].1, points[i + 1].1))
            };
            let _ = write!(path, " Q{:.1},{:.1} {:.1},{:.1}", points[i].0, points[i].1, end.0, end.1);
        }
        let dashes = if arrow.tone == Tone::Faded { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\"{dashes} marker-end=\"url(#{:?})\"/>",
            arrow.tone.color(),
            arrow.tone
        );
        if !arrow.label.is_empty() {
            // The midpoint of the curve segment around the middle bend.
            let i = last / 2;
            let end = |a: (f64, f64), b: (f64, f64), at_end: bool| {
                if at_end { a } else { (f64::midpoint(a.0, b.0), f64::midpoint(a.1, b.1)) }
            };
            let start = end(points[i - 1], points[i], i == 1);
            let stop = end(points[i + 1], points[i], i + 1 == last);
            let x = (start.0 + 2.0 * points[i].0 + stop.0) / 4.0;
            let y = (start.1 + 2.0 * points[i].1 + stop.1) / 4.0;
            let _ = writeln!(
                svg,
                "<text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{}\" \
                 stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                y + 4.0,
                arrow.tone.color(),
                escaped(&arrow.label)
            );
        }
    }
}

/// Returns the height of each point in its layer, and the number of positions of the largest layer.
fn ordered(mut layers: Vec<Vec<usize>>, links: &[(usize, usize)], n_points: usize) -> (Vec<f64>, usize) {
    let n_layers = layers.len();
    let breadth = layers.iter().map(Vec::len).max().unwrap_or(0);
    let (mut before, mut behind) = (vec![Vec::new(); n_points], vec![Vec::new(); n_points]);
    for (from, to) in links {
        before[*to].push(*from);
        behind[*from].push(*to);
    }
    let mut heights = vec![0.0; n_points];
    let settle = |members: &[usize], heights: &mut Vec<f64>| {
        let first = (breadth - members.len()) as f64 / 2.0;
        for (idx, point) in members.iter().enumerate() {
            heights[*point] = first + idx as f64;
        }
    };
    for members in &layers {
        settle(members, &mut heights);
    }
    for sweep in 0..SWEEPS {
        let forward = sweep % 2 == 0;
        for step in 0..n_layers {
            let l = if forward { step } else { n_layers - 1 - step };
            let neighbours = if forward { &before } else { &behind };
            let centre = |point: usize, heights: &[f64]| {
                let near = &neighbours[point];
                if near.is_empty() {
                    return heights[point];
                }
                near.iter().map(|other| heights[*other]).sum::<f64>() / near.len() as f64
            };
            let mut members: Vec<(f64, usize)> = layers[l].iter().map(|p| (centre(*p, &heights), *p)).collect();
            members.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            layers[l] = members.into_iter().map(|(_, point)| point).collect();
            settle(&layers[l], &mut heights);
        }
    }
    (heights, breadth)
}

/// Returns the point at distance `length` from `a` towards `b`.
fn towards(a: (f64, f64), b: (f64, f64), length: f64) -> (f64, f64) {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let distance = (dx * dx + dy * dy).sqrt().max(1.0);
    (a.0 + dx * length / distance, a.1 + dy * length / distance)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_accumulate::Label;

    fn diamond() -> Picture {
        let v = Label::Var;
        let edges = [(0, 1, v), (0, 2, v), (1, 3, v), (2, 3, v), (2, 3, v), (0, 3, v)];
        Picture::of(&LinearGraph::from_edges(1, 2, 1, &edges).unwrap())
    }

    #[test]
    fn every_vertex_and_every_edge_is_drawn() {
        let svg = diamond().svg();
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("marker-end").count(), 6);
        assert_eq!(svg, diamond().svg());
    }

    #[test]
    fn no_two_vertices_share_a_place_and_arrows_go_right() {
        let layout = Layout::new(&diamond());
        for (idx, a) in layout.places.iter().enumerate() {
            assert!(layout.places[idx + 1..].iter().all(|b| a != b));
        }
        for (_, points) in &layout.paths {
            assert!(points.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
        }
    }

    #[test]
    fn removed_vertices_are_left_out() {
        let mut picture = diamond();
        picture.marks[1].tone = Tone::Faded;
        assert_eq!(picture.svg().matches("<circle").count(), 4);
        picture.arrows.retain(|arrow| arrow.from != 1 && arrow.to != 1);
        assert_eq!(picture.svg().matches("<circle").count(), 3);
    }

    #[test]
    fn graphs_that_cannot_be_drawn_are_left_out() {
        let mut picture = diamond();
        picture.title = "a < b & c".into();
        picture.arrows.push(Arrow { from: 3, to: 0, label: String::new(), tone: Tone::New });
        picture.arrows.push(Arrow { from: 0, to: 9, label: String::new(), tone: Tone::New });
        let svg = picture.svg();
        assert!(svg.contains("a &lt; b &amp; c"));
        assert_eq!(svg.matches("marker-end").count(), 6);
        assert!(Picture::default().svg().ends_with("</svg>\n"));
    }
}
