//! Star colouring of symmetric matrices, in which each entry only has to be read at one of its two positions.
//!
//! Source: Gebremedhin, Manne and Pothen, *What color is your Jacobian? Graph coloring for computing derivatives*
//! (2005), sections 4 and 7; the rule for paths with an inner new vertex as in Gebremedhin, Tarafdar, Manne and Pothen,
//! *New acyclic and star coloring algorithms* (2007).
//!
//! In: a symmetric [`Pattern`], the adjacency matrix of a graph of columns. Out: a star colouring: neighbours have
//! different colours, and each path of four vertices has three colours. So if column j shares its colour in row i,
//! column i does not share its own in row j, and h_ij can be read there ([`super::reads`] finds the position).
//!
//! An arrow matrix takes two colours; columns that share no row would take as many colours as columns.

use crate::Pattern;
use std::cmp::Reverse;

const NONE: usize = usize::MAX;

/// The graph and its partial colouring.
struct Graph {
    starts: Vec<usize>,
    neighbours: Vec<usize>,
    colours: Vec<usize>,
    n_colours: usize,
    /// For each vertex, the number of neighbours of each colour.
    beside: Vec<Vec<u32>>,
}

impl Graph {
    fn neighbours(&self, v: usize) -> &[usize] {
        &self.neighbours[self.starts[v]..self.starts[v + 1]]
    }

    fn n_beside(&self, v: usize, colour: usize) -> u32 {
        self.beside[v].get(colour).copied().unwrap_or(0)
    }

    /// Gives `v` the first colour that leaves no two-coloured path of four vertices. `last` is, for each colour, the
    /// last vertex for which it was excluded.
    fn colour(&mut self, v: usize, last: &mut Vec<usize>) {
        for w in self.neighbours(v) {
            let colour = self.colours[*w];
            if colour == NONE {
                continue;
            }
            last[colour] = v;
            // Another neighbour of this colour: v would be inside a path w' v w x.
            let is_inside = self.n_beside(v, colour) > 1;
            for x in self.neighbours(*w).iter().filter(|x| **x != v) {
                // Or at the end of a path v w x y, with y of the colour of w.
                let other = self.colours[*x];
                if other != NONE && (is_inside || self.n_beside(*x, colour) > 1) {
                    last[other] = v;
                }
            }
        }
        let colour = last.iter().position(|last| *last != v).unwrap_or(last.len());
        if colour == last.len() {
            last.push(NONE);
        }
        self.n_colours = last.len();
        self.colours[v] = colour;
        for k in self.starts[v]..self.starts[v + 1] {
            let beside = &mut self.beside[self.neighbours[k]];
            beside.resize(beside.len().max(colour + 1), 0);
            beside[colour] += 1;
        }
    }
}

/// Returns a star colouring: the colour of each column, from 0, and the number of colours; `None` if the pattern is not
/// symmetric. Greedy in several orders, of which the first with the fewest colours is taken: natural order, most
/// neighbours first, smallest degree last. `O(sum of squares of the rows' lengths)`, with memory for a number for each
/// column and colour.
#[must_use]
pub fn columns(pattern: &Pattern) -> Option<(Vec<usize>, usize)> {
    let (n, n_columns) = pattern.shape();
    if n != n_columns || pattern.coo().iter().any(|(r, c)| pattern.place(*c, *r).is_none()) {
        return None;
    }
    let mut starts = vec![0];
    let mut neighbours = Vec::with_capacity(pattern.n_entries());
    for row in pattern.csr().starts.windows(2) {
        let entries = &pattern.coo()[row[0]..row[1]];
        neighbours.extend(entries.iter().filter(|(r, c)| r != c).map(|(_, c)| *c));
        starts.push(neighbours.len());
    }
    let degree = |v: usize| starts[v + 1] - starts[v];
    let mut by_degree: Vec<usize> = (0..n).collect();
    by_degree.sort_by_key(|v| (Reverse(degree(*v)), *v));
    let orders = [(0..n).collect(), by_degree, smallest_last(&starts, &neighbours)];
    let mut best: Option<(Vec<usize>, usize)> = None;
    for order in orders {
        let (starts, neighbours) = (starts.clone(), neighbours.clone());
        let (colours, beside) = (vec![NONE; n], vec![Vec::new(); n]);
        let mut graph = Graph { starts, neighbours, colours, n_colours: 0, beside };
        let mut last = Vec::new();
        order.into_iter().for_each(|v: usize| graph.colour(v, &mut last));
        if best.as_ref().is_none_or(|(_, fewest)| graph.n_colours < *fewest) {
            best = Some((graph.colours, graph.n_colours));
        }
    }
    best
}

/// Returns the smallest-last order: each vertex has the minimum degree among itself and its predecessors in the order.
fn smallest_last(starts: &[usize], neighbours: &[usize]) -> Vec<usize> {
    let n = starts.len() - 1;
    let mut degree: Vec<usize> = (0..n).map(|v| starts[v + 1] - starts[v]).collect();
    let mut by_degree: Vec<Vec<usize>> = vec![Vec::new(); degree.iter().max().map_or(0, |d| d + 1)];
    (0..n).rev().for_each(|v| by_degree[degree[v]].push(v));
    let mut order = Vec::with_capacity(n);
    let mut gone = vec![false; n];
    let mut least = 0;
    while order.len() < n {
        let Some(v) = by_degree[least].pop() else {
            least += 1;
            continue;
        };
        if gone[v] || degree[v] != least {
            continue;
        }
        gone[v] = true;
        order.push(v);
        for w in &neighbours[starts[v]..starts[v + 1]] {
            if !gone[*w] {
                degree[*w] -= 1;
                by_degree[degree[*w]].push(*w);
                least = least.min(degree[*w]);
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::columns;
    use crate::Pattern;
    use crate::colouring::{self, reads};
    use std::collections::BTreeSet;

    fn symmetric(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Pattern {
        let edges = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        Pattern::new(n, n, edges.chain((0..n).map(|k| (k, k))).collect())
    }

    /// Returns whether neighbours differ and all paths of four vertices have three colours, by checking all paths.
    fn is_star(pattern: &Pattern, colours: &[usize]) -> bool {
        let n = colours.len();
        let mut beside = vec![BTreeSet::new(); n];
        pattern.coo().iter().filter(|(r, c)| r != c).for_each(|(r, c)| {
            beside[*r].insert(*c);
        });
        (0..n).all(|a| {
            beside[a].iter().all(|b| {
                colours[a] != colours[*b]
                    && beside[*b].iter().filter(|c| **c != a).all(|c| {
                        beside[*c]
                            .iter()
                            .filter(|d| **d != *b && **d != a)
                            .all(|d| BTreeSet::from([a, *b, *c, *d].map(|v| colours[v])).len() >= 3)
                    })
            })
        })
    }

    /// Returns the numbers of colours of the column colouring and of the star colouring, which is checked by its
    /// definition and by reconstructing a matrix from its products.
    fn counts(pattern: &Pattern) -> (usize, usize) {
        let (colours, n_colours) = columns(pattern).expect("it is symmetric");
        assert!(is_star(pattern, &colours), "{colours:?} of {pattern:?}");
        let n = colours.len();
        let h = |r: usize, c: usize| (1 + r.min(c) * n + r.max(c)) as f64;
        let mut products = vec![vec![0.0; n]; n_colours];
        pattern.coo().iter().for_each(|(r, c)| products[colours[*c]][*r] += h(*r, *c));
        let reads = reads(pattern, &colours).expect("each entry can be read off");
        for ((r, c), (row, colour)) in pattern.coo().iter().zip(reads) {
            assert_eq!(products[colour][row], h(*r, *c), "({r}, {c})");
        }
        (colouring::columns(pattern).1, n_colours)
    }

    fn grid(side: usize, reach: &[(usize, usize)]) -> Pattern {
        let at = |x: usize, y: usize| x * side + y;
        let edges = (0..side * side).flat_map(|k| reach.iter().map(move |(dx, dy)| (k / side, k % side, *dx, *dy)));
        let inside = edges.filter(|(x, y, dx, dy)| x + dx < side && y + dy < side);
        symmetric(side * side, inside.map(|(x, y, dx, dy)| (at(x, y), at(x + dx, y + dy))).collect::<Vec<_>>())
    }

    /// Returns a pattern with a block for each camera and each point, and one for each point that a camera sees.
    fn adjustment(cameras: usize, points: usize, seen_by: usize) -> Pattern {
        let (camera, point) = (|c: usize| 9 * c..9 * c + 9, |p: usize| 9 * cameras + 3 * p..9 * cameras + 3 * p + 3);
        let mut edges = Vec::new();
        let mut block = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            edges.extend(rows.flat_map(|r| columns.clone().filter(move |c| r != *c).map(move |c| (r, c))));
        };
        (0..cameras).for_each(|c| block(camera(c), camera(c)));
        for p in 0..points {
            block(point(p), point(p));
            (0..seen_by).for_each(|k| block(camera((p + k * k) % cameras), point(p)));
        }
        symmetric(9 * cameras + 3 * points, edges)
    }

    #[test]
    fn fewer_directions_on_patterns_of_problems() {
        let arrow = symmetric(100, (1..100).map(|k| (0, k)));
        assert_eq!(counts(&arrow), (100, 2));
        // A sum over neighbours, with some parameters that all terms share: a logistic model, a fit.
        let shared = (4..200).flat_map(|k| (0..4).map(move |s| (s, k)).chain((k > 4).then_some((k - 1, k))));
        let shared = symmetric(200, shared.chain([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]));
        assert_eq!(counts(&shared), (200, 7));
        // Five-point and nine-point stencils.
        assert_eq!(counts(&grid(20, &[(0, 1), (1, 0)])), (7, 5));
        let nine: Pattern = {
            let side = 20;
            let mut edges = Vec::new();
            for (x, y) in (0..side * side).map(|k| (k / side, k % side)) {
                for (dx, dy) in [(0, 1), (1, 0), (1, 1)] {
                    if x + dx < side && y + dy < side {
                        edges.push((x * side + y, (x + dx) * side + y + dy));
                    }
                }
                if x + 1 < side && y > 0 {
                    edges.push((x * side + y, (x + 1) * side + y - 1));
                }
            }
            symmetric(side * side, edges)
        };
        // The converse case: every four that meet in a square differ anyway.
        assert_eq!(counts(&nine), (9, 10));
        let band =
            |width: usize| symmetric(60, (0..60).flat_map(move |k| (k + 1..(k + width).min(60)).map(move |j| (k, j))));
        assert_eq!([1, 2, 3, 5].map(|width| counts(&band(width))), [(1, 1), (3, 3), (5, 5), (9, 9)]);
        let (columns, star) = counts(&adjustment(6, 24, 3));
        assert_eq!((columns, star), (72, 48));
    }

    #[test]
    fn any_symmetric_pattern_can_be_read_off() {
        let mut state = 11u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for round in 0..300 {
            let n = 1 + next(24);
            let edges: Vec<_> = (0..next(3 * n)).map(|_| (next(n), next(n))).collect();
            let mut pattern = symmetric(n, edges.iter().copied());
            if round % 3 == 0 {
                // Without the diagonal.
                pattern = Pattern::new(n, n, pattern.coo().iter().copied().filter(|(r, c)| r != c).collect());
            }
            counts(&pattern);
        }
    }

    #[test]
    fn what_is_not_symmetric_has_none() {
        assert_eq!(columns(&Pattern::new(2, 2, vec![(0, 1)])), None);
        assert_eq!(columns(&Pattern::new(2, 2, vec![(1, 0)])), None);
        assert_eq!(columns(&Pattern::new(2, 3, vec![])), None);
        assert_eq!(columns(&Pattern::new(0, 0, vec![])), Some((vec![], 0)));
    }

    #[test]
    fn a_colouring_that_is_none_is_seen() {
        let path = symmetric(4, [(0, 1), (1, 2), (2, 3)]);
        assert!(!is_star(&path, &[0, 1, 0, 1]) && reads(&path, &[0, 1, 0, 1]).is_none());
        assert!(!is_star(&path, &[0, 0, 1, 2]) && reads(&path, &[0, 0, 1, 2]).is_none());
        assert!(is_star(&path, &[0, 1, 0, 2]) && reads(&path, &[0, 1, 0, 2]).is_some());
    }
}
