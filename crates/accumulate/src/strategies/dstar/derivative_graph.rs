//! One derivative graph f(i,j): the paths from root i to variable j, factored in place, with both dominator trees kept
//! up to date.
//!
//! Each algorithm is written once for both directions. Upwards are the parents and the dominator tree (rooted at the
//! root); downwards are the children and the postdominator tree (rooted at the variable).
//!
//! Invariants:
//! - Nodes are numbered along the paths: the variable is 0, the root the last; parents have greater numbers.
//! - Every node with an edge lies on a path from the root to the variable, and so does every edge.
//! - `trees[Up]` holds the immediate dominator, `trees[Down]` the immediate postdominator of each node with an edge.

use super::dominance::Tree;
use super::parts::PartId;
use crate::VertexId;

const NONE: u32 = u32::MAX;

/// Direction: towards the root, or towards the variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Up = 0,
    Down = 1,
}

impl Way {
    pub(super) const BOTH: [Self; 2] = [Self::Up, Self::Down];

    fn back(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// A factor subgraph by its ends, which are nodes of a derivative graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ends {
    pub(super) upper: u32,
    pub(super) lower: u32,
}

/// The derivative graph. See the module's invariants.
#[derive(Clone, Debug)]
pub(super) struct DerivativeGraph {
    vertices: Vec<VertexId>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Free indices of `edges`.
    free: Vec<u32>,
    trees: [Tree; 2],
}

/// First edge and degree of a node in each direction.
#[derive(Clone, Copy, Debug)]
struct Node {
    first: [u32; 2],
    degree: [u32; 2],
}

/// Edges are in two linked lists: upwards in that of the lower end, downwards in that of the upper end.
#[derive(Clone, Copy, Debug)]
struct Edge {
    part: PartId,
    /// Upper end, lower end.
    ends: [u32; 2],
    next: [u32; 2],
    before: [u32; 2],
}

/// The subgraph between a factor node and its factor base.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// All parts on paths between the ends, in the order of discovery.
    pub(super) parts: Vec<PartId>,
    /// Nodes on these paths, without the ends.
    pub(super) inner: Vec<u32>,
    /// Number of visited edges, in all regions.
    pub(super) visits: u64,
    /// Last walk that visited each node.
    met: Vec<u32>,
    walk: u32,
    stack: Vec<u32>,
}

impl DerivativeGraph {
    /// Returns the graph of these vertices, ascending, and of parts given with the positions of their upper and lower
    /// ends. Every edge must lie on a path from the first to the last vertex. O(e log n).
    pub(super) fn new(vertices: Vec<VertexId>, edges: impl DoubleEndedIterator<Item = (PartId, u32, u32)>) -> Self {
        let n = vertices.len();
        let mut graph = Self {
            vertices,
            nodes: vec![Node { first: [NONE; 2], degree: [0; 2] }; n],
            edges: Vec::with_capacity(edges.size_hint().0),
            free: Vec::new(),
            trees: [Tree::new(n, n as u32 - 1), Tree::new(n, 0)],
        };
        // Lists are built from their ends, so that they keep the given order.
        for (part, upper, lower) in edges.rev() {
            graph.add(part, upper, lower);
        }
        for node in (0..n as u32 - 1).rev() {
            graph.attach(node, Way::Up);
        }
        for node in 1..n as u32 {
            graph.attach(node, Way::Down);
        }
        graph
    }

    /// Returns the vertex of a node.
    pub(super) fn vertex(&self, node: u32) -> VertexId {
        self.vertices[node as usize]
    }

    /// Returns the initial number of nodes.
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the root.
    pub(super) fn root(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }

    /// Returns the edges that leave a node in this direction: the part and the other end.
    pub(super) fn edges(&self, node: u32, way: Way) -> impl Iterator<Item = (PartId, u32)> {
        let w = way as usize;
        let edge = |e: u32| (e != NONE).then_some(e);
        std::iter::successors(edge(self.nodes[node as usize].first[w]), move |e| edge(self.edges[*e as usize].next[w]))
            .map(move |e| (self.edges[e as usize].part, self.edges[e as usize].ends[w]))
    }

    /// Returns the factor subgraph of which this node is a factor base: the node branches in this direction, and all
    /// its paths in this direction first meet again at the other end.
    pub(super) fn factor_of(&self, node: u32, way: Way) -> Option<Ends> {
        if self.nodes[node as usize].degree[way as usize] < 2 {
            return None;
        }
        let factor = self.trees[way as usize].parent(node);
        Some(match way {
            Way::Up => Ends { upper: factor, lower: node },
            Way::Down => Ends { upper: node, lower: factor },
        })
    }

    /// Returns the direction of a factor subgraph, `None` if it is none. Upwards, the base is the lower end.
    pub(super) fn way_of(&self, ends: Ends) -> Option<Way> {
        if self.factor_of(ends.lower, Way::Up) == Some(ends) {
            Some(Way::Up)
        } else if self.factor_of(ends.upper, Way::Down) == Some(ends) {
            Some(Way::Down)
        } else {
            None
        }
    }

    /// Finds the region of a factor subgraph: a walk from its base in this direction never passes its factor node.
    /// Linear in the region.
    pub(super) fn region(&self, ends: Ends, way: Way, region: &mut Region) {
        let (base, factor) = match way {
            Way::Up => (ends.lower, ends.upper),
            Way::Down => (ends.upper, ends.lower),
        };
        region.start(self.nodes.len());
        region.visits += 1;
        region.stack.push(base);
        while let Some(node) = region.stack.pop() {
            for (part, other) in self.edges(node, way) {
                region.visits += 1;
                region.parts.push(part);
                if other != factor && region.meet(other) {
                    region.inner.push(other);
                    region.stack.push(other);
                }
            }
        }
    }

    /// Replaces the last region found by one part, and updates both trees. At worst linear in the region and the edges
    /// that leave its inner nodes, times log n.
    ///
    /// Let b be the factor node, c the base, upwards (downwards is the mirror image). Then b dominates c, so every path
    /// through c passes b, and its part between them lies in the region. One edge b - c with the sum of these parts
    /// preserves the sum over the paths through c, once no other edge leads up from c. Edges that then lead to no
    /// variable are on no path and are removed (c postdominates their lower end: the dominator test); the other edges
    /// serve paths around c and stay.
    ///
    /// *Dominators* of the remaining nodes do not change. As b is the immediate dominator, the region's paths only
    /// share b and its dominators, as the new edge does. *Postdominators* of inner nodes can change, because their
    /// paths through c are removed; those of b and of all nodes above do not, because the paths from b through c share
    /// nothing between b and c, with and without the region. Inner nodes are updated from c on, so that the
    /// postdominators of their children are correct at their turn.
    pub(super) fn contract(&mut self, ends: Ends, way: Way, region: &mut Region, part: PartId) {
        let base = if way == Way::Up { ends.lower } else { ends.upper };
        self.cut(base, way);
        match way {
            Way::Up => region.inner.sort_unstable(),
            Way::Down => region.inner.sort_unstable_by(|a, b| b.cmp(a)),
        }
        self.add(part, ends.upper, ends.lower);
        for &node in &region.inner {
            if self.nodes[node as usize].degree[way.back() as usize] == 0 {
                self.cut(node, way);
            } else {
                region.visits += self.attach(node, way.back());
            }
        }
    }

    /// Attaches a node to its immediate (post)dominator: the closest common ancestor of its neighbours in this
    /// direction. Its previous one, if any, still dominates it, because no paths were added; so the new one is not
    /// above it, and the search ends there. Returns the number of visited edges.
    fn attach(&mut self, node: u32, way: Way) -> u64 {
        let tree = &self.trees[way as usize];
        let highest = tree.parent(node);
        let mut common = None;
        let mut n_edges = 0;
        for (_, other) in self.edges(node, way) {
            n_edges += 1;
            let next = common.map_or(other, |c| tree.common(c, other));
            common = Some(next);
            if next == highest {
                break;
            }
        }
        if let Some(parent) = common {
            self.trees[way as usize].attach(node, parent);
        }
        n_edges
    }

    /// Removes all edges that leave a node in this direction.
    fn cut(&mut self, node: u32, way: Way) {
        loop {
            let e = self.nodes[node as usize].first[way as usize];
            if e == NONE {
                return;
            }
            let edge = self.edges[e as usize];
            for w in Way::BOTH {
                let list = &mut self.nodes[edge.ends[w.back() as usize] as usize];
                let w = w as usize;
                list.degree[w] -= 1;
                if edge.before[w] == NONE {
                    list.first[w] = edge.next[w];
                } else {
                    self.edges[edge.before[w] as usize].next[w] = edge.next[w];
                }
                if edge.next[w] != NONE {
                    self.edges[edge.next[w] as usize].before[w] = edge.before[w];
                }
            }
            self.free.push(e);
        }
    }

    fn add(&mut self, part: PartId, upper: u32, lower: u32) {
        let mut edge = Edge { part, ends: [upper, lower], next: [NONE; 2], before: [NONE; 2] };
        let e = self.free.pop().unwrap_or(self.edges.len() as u32);
        for w in Way::BOTH {
            let list = &mut self.nodes[edge.ends[w.back() as usize] as usize];
            let w = w as usize;
            edge.next[w] = list.first[w];
            list.first[w] = e;
            list.degree[w] += 1;
            if edge.next[w] != NONE {
                self.edges[edge.next[w] as usize].before[w] = e;
            }
        }
        if (e as usize) < self.edges.len() {
            self.edges[e as usize] = edge;
        } else {
            self.edges.push(edge);
        }
    }

    /// Compares the trees with trees built from scratch, and the other invariants with their definitions.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        use chainrule_graph::Dominators;
        let n = self.nodes.len();
        let root = self.root();
        let neighbours =
            |way| (0..n as u32).map(|v| self.edges(v, way).map(|(_, o)| o as usize).collect()).collect::<Vec<Vec<_>>>();
        let (up, down) = (neighbours(Way::Up), neighbours(Way::Down));
        let dominators = Dominators::new(&down, &[root as usize]);
        let postdominators = Dominators::new(&up, &[0]);
        for v in 0..n {
            assert_eq!(up[v].len(), self.nodes[v].degree[0] as usize);
            assert_eq!(down[v].len(), self.nodes[v].degree[1] as usize);
            if up[v].is_empty() && down[v].is_empty() {
                continue;
            }
            assert!(dominators.is_reached(v) && postdominators.is_reached(v), "node {v} is on no path");
            assert!(up[v].iter().all(|o| *o > v) && down[v].iter().all(|o| *o < v));
            if v != root as usize {
                assert_eq!(dominators.immediate(v), Some(self.trees[0].parent(v as u32) as usize));
            }
            if v != 0 {
                assert_eq!(postdominators.immediate(v), Some(self.trees[1].parent(v as u32) as usize));
            }
        }
    }
}

impl Region {
    fn start(&mut self, n_nodes: usize) {
        self.parts.clear();
        self.inner.clear();
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.met.clear();
            self.walk = 1;
        }
        if self.met.len() < n_nodes {
            self.met.resize(n_nodes, 0);
        }
    }

    /// Marks the node as visited; returns whether this is its first visit in this walk.
    fn meet(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.met[node as usize], self.walk) != self.walk
    }

    /// Returns whether a node lies inside, also after [`DerivativeGraph::contract`].
    pub(super) fn contains(&self, node: u32) -> bool {
        self.met[node as usize] == self.walk
    }
}
