//! Canonical keys: isomorphic line graphs should get one key.
//!
//! The remaining work depends only on the sources, the sinks, the lines, and which line follows which, as long as only
//! multiplications are counted. The key is that graph with its nodes in an order that depends only on the graph: colour
//! refinement until it is stable, with ties broken by individualising one node of the first class of equals, and so on.
//!
//! Equal keys are equal graphs, whatever the colours, because the key contains the whole graph. Isomorphic graphs may
//! still get different keys if nodes of equal colours are not images of one another; that costs only search time.

use chainrule_accumulate::face::{Labels, LineGraph};
use chainrule_base::Id;
use rustc_hash::FxHashMap;

/// Returns the key of the remaining graph. With `named`, sources and sinks are distinguished, which is needed if not
/// all pairs are requested; otherwise twins are equal.
///
/// Takes O(faces) for each round of refinement; there are few rounds.
pub(super) fn key<L: Labels>(graph: &LineGraph<'_, L>, named: bool) -> Box<[u16]> {
    let mut nodes = Nodes::new(graph, named);
    nodes.refine();
    while let Some(node) = nodes.first_tie() {
        nodes.colours[node] = mix(nodes.colours[node], 0x7e57);
        nodes.refine();
    }
    nodes.key()
}

/// Sources, sinks and lines as nodes of one graph.
struct Nodes {
    colours: Vec<u64>,
    /// Names of sources and sinks in the key, if they are distinguished.
    names: Vec<u16>,
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl Nodes {
    fn new<L: Labels>(graph: &LineGraph<'_, L>, named: bool) -> Self {
        let mut node_of_line: FxHashMap<usize, usize> = FxHashMap::default();
        let mut node_of_vertex: FxHashMap<usize, usize> = FxHashMap::default();
        for (n, (line, _)) in graph.live().enumerate() {
            node_of_line.insert(line.index(), n);
        }
        let n_lines = node_of_line.len();
        let mut nodes = Self {
            colours: vec![1; n_lines],
            names: vec![0; n_lines],
            before: vec![Vec::new(); n_lines],
            behind: vec![Vec::new(); n_lines],
        };
        let mut end = |nodes: &mut Self, vertex: usize, side: u64| {
            *node_of_vertex.entry(vertex).or_insert_with(|| {
                let name = if named { 1 + vertex } else { 0 };
                nodes.colours.push(mix(side, name as u64));
                nodes.names.push(name as u16);
                nodes.before.push(Vec::new());
                nodes.behind.push(Vec::new());
                nodes.colours.len() - 1
            })
        };
        for (n, (_, line)) in graph.live().enumerate() {
            for s in &line.behind {
                let s = node_of_line[&s.index()];
                nodes.behind[n].push(s);
                nodes.before[s].push(n);
            }
            if graph.linear().is_source(line.source) {
                let source = end(&mut nodes, line.source.index(), 2);
                nodes.behind[source].push(n);
                nodes.before[n].push(source);
            }
            if graph.linear().is_sink(line.target) {
                let sink = end(&mut nodes, line.target.index(), 3);
                nodes.behind[n].push(sink);
                nodes.before[sink].push(n);
            }
        }
        nodes
    }

    /// Refines colours by the colours of neighbours until no class is split.
    fn refine(&mut self) {
        let mut n_classes = self.n_classes();
        loop {
            let around = |nodes: &[usize]| nodes.iter().fold(0u64, |sum, n| sum.wrapping_add(mix(self.colours[*n], 5)));
            let refined: Vec<u64> = (0..self.colours.len())
                .map(|n| mix(mix(self.colours[n], around(&self.before[n])), around(&self.behind[n])))
                .collect();
            self.colours = refined;
            let refined = self.n_classes();
            if refined <= n_classes {
                return;
            }
            n_classes = refined;
        }
    }

    fn n_classes(&self) -> usize {
        let mut colours = self.colours.clone();
        colours.sort_unstable();
        colours.dedup();
        colours.len()
    }

    /// Returns a node of the smallest colour that several nodes have.
    fn first_tie(&self) -> Option<usize> {
        let mut nodes: Vec<usize> = (0..self.colours.len()).collect();
        nodes.sort_unstable_by_key(|n| (self.colours[*n], *n));
        nodes.windows(2).find(|pair| self.colours[pair[0]] == self.colours[pair[1]]).map(|pair| pair[0])
    }

    /// Returns, for each node in the order of colours, its name and the positions of its successors.
    fn key(&self) -> Box<[u16]> {
        let mut nodes: Vec<usize> = (0..self.colours.len()).collect();
        nodes.sort_unstable_by_key(|n| self.colours[*n]);
        let mut places = vec![0u16; nodes.len()];
        for (place, n) in nodes.iter().enumerate() {
            places[*n] = place as u16;
        }
        let mut key = Vec::new();
        for n in nodes {
            let mut behind: Vec<u16> = self.behind[n].iter().map(|s| places[*s]).collect();
            behind.sort_unstable();
            key.push(self.names[n]);
            key.push(behind.len() as u16);
            key.extend(behind);
        }
        key.into()
    }
}

/// Returns one step of splitmix64 on two numbers.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_add(0x632b_e59b_d9b4_e019);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
