//! Properties of the nodes below a set of roots: reachability, uses, levels, dependence on inputs.
//!
//! Arguments have smaller ids than their users, so every traversal is a sweep over ids, downwards to mark and upwards
//! to compute. All are linear in the largest root's id, at any depth.

use crate::graph::{Graph, NodeId};
use chainrule_base::Id;

/// Set of nodes, iterated in ascending order: arguments before users.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeSet {
    marks: Vec<bool>,
    len: usize,
}

impl NodeSet {
    /// Returns whether it contains `id`.
    #[must_use]
    pub fn contains(&self, id: NodeId) -> bool {
        self.marks.get(id.index()).copied().unwrap_or(false)
    }

    /// Adds `id`; returns whether it is new.
    pub fn insert(&mut self, id: NodeId) -> bool {
        if id.index() >= self.marks.len() {
            self.marks.resize(id.index() + 1, false);
        }
        let new = !std::mem::replace(&mut self.marks[id.index()], true);
        self.len += usize::from(new);
        new
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns its nodes, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = NodeId> {
        self.marks.iter().enumerate().filter(|(_, mark)| **mark).map(|(i, _)| NodeId::new(i))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        let mut set = Self::default();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

impl Graph {
    /// Returns the roots and all nodes below them.
    #[must_use]
    pub fn reachable(&self, roots: &[NodeId]) -> NodeSet {
        let mut set: NodeSet = roots.iter().copied().collect();
        for idx in (0..set.marks.len()).rev() {
            if set.marks[idx] {
                for arg in self.args(NodeId::new(idx)) {
                    set.insert(*arg);
                }
            }
        }
        set
    }

    /// Returns the number of uses of each node, by id: one for each argument place of a node below the roots and one
    /// for each time it is a root.
    #[must_use]
    pub fn use_counts(&self, roots: &[NodeId]) -> Vec<u32> {
        let mut counts = vec![0; self.len()];
        for root in roots {
            counts[root.index()] += 1;
        }
        for id in self.reachable(roots).iter() {
            for arg in self.args(id) {
                counts[arg.index()] += 1;
            }
        }
        counts
    }

    /// Returns the level of each node below the roots, by id: 0 without arguments, else one more than the highest level
    /// among them. Unreachable nodes have level 0.
    #[must_use]
    pub fn levels(&self, roots: &[NodeId]) -> Vec<u32> {
        let mut levels = vec![0; self.len()];
        for id in self.reachable(roots).iter() {
            levels[id.index()] = self.args(id).iter().map(|a| levels[a.index()] + 1).max().unwrap_or(0);
        }
        levels
    }

    /// Returns the largest level below the roots.
    #[must_use]
    pub fn depth(&self, roots: &[NodeId]) -> u32 {
        let levels = self.levels(roots);
        roots.iter().map(|r| levels[r.index()]).max().unwrap_or(0)
    }

    /// Returns the nodes below the roots, roots included, that depend on one of `inputs`: those that must be recomputed
    /// when these inputs change, and those through which a derivative by them passes.
    #[must_use]
    pub fn dependents(&self, roots: &[NodeId], inputs: &[NodeId]) -> NodeSet {
        let inputs: NodeSet = inputs.iter().copied().collect();
        let mut set = NodeSet::default();
        for id in self.reachable(roots).iter() {
            if inputs.contains(id) || self.args(id).iter().any(|a| set.contains(*a)) {
                set.insert(id);
            }
        }
        set
    }

    /// Returns, for each root, the `inputs` on which it depends, as ascending positions in `inputs`: the pattern of the
    /// Jacobian. 64 inputs per sweep.
    #[must_use]
    pub fn depends_on(&self, roots: &[NodeId], inputs: &[NodeId]) -> Vec<Vec<usize>> {
        let reachable = self.reachable(roots);
        let mut patterns = vec![Vec::new(); roots.len()];
        let mut words = vec![0u64; self.len()];
        for (block, group) in inputs.chunks(64).enumerate() {
            let mut seeds: Vec<(NodeId, u64)> = group.iter().enumerate().map(|(bit, x)| (*x, 1 << bit)).collect();
            seeds.sort_unstable();
            for id in reachable.iter() {
                let start = seeds.partition_point(|(x, _)| *x < id);
                let own = seeds[start..].iter().take_while(|(x, _)| *x == id).fold(0, |word, (_, bit)| word | bit);
                words[id.index()] = self.args(id).iter().fold(own, |word, a| word | words[a.index()]);
            }
            for (pattern, root) in patterns.iter_mut().zip(roots) {
                let word = words[root.index()];
                pattern.extend((0..group.len()).filter(|bit| word >> bit & 1 == 1).map(|bit| 64 * block + bit));
            }
        }
        patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Semantics;
    use chainrule_ops::Op;

    #[test]
    fn sweeps_see_what_is_below_the_roots_only() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y, z) = (g.input("x"), g.input("y"), g.input("z"));
        let xy = g.mul(x, y);
        let dead = g.apply(Op::Sin, &[z]);
        let s = g.apply(Op::Sin, &[xy]);
        let root = g.add(s, xy);
        let below = g.reachable(&[root]);
        assert_eq!(below.iter().collect::<Vec<_>>(), [x, y, xy, s, root]);
        assert_eq!(below.len(), 5);
        assert!(!below.contains(dead));
        let uses = g.use_counts(&[root, root]);
        assert_eq!([uses[x.index()], uses[xy.index()], uses[z.index()], uses[root.index()]], [1, 2, 0, 2]);
        assert_eq!(g.depth(&[root]), 3);
        assert_eq!(g.dependents(&[root, dead], &[y]).iter().collect::<Vec<_>>(), [y, xy, s, root]);
        assert_eq!(g.depends_on(&[root, dead, x], &[z, y, x]), [vec![1, 2], vec![0], vec![2]]);
    }

    #[test]
    fn patterns_wider_than_a_word() {
        let mut g = Graph::new(Semantics::Algebraic);
        let inputs: Vec<NodeId> = (0..150).map(|i| g.input(format!("x{i}"))).collect();
        let roots: Vec<NodeId> = (0..149).map(|i| g.mul(inputs[i], inputs[i + 1])).collect();
        for (i, pattern) in g.depends_on(&roots, &inputs).iter().enumerate() {
            assert_eq!(*pattern, [i, i + 1]);
        }
    }
}
