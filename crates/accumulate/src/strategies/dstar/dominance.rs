//! A tree of immediate dominators (or postdominators) with updates of nodes.
//!
//! The closest common ancestor of two nodes takes O(log depth): besides its parent, each node knows an ancestor further
//! up, whose distance only depends on the depth (Myers, "An applicative random-access stack", 1983). In an acyclic
//! graph the immediate dominator of a node is the closest common ancestor of its predecessors (Cooper, Harvey, Kennedy
//! 2001; one sweep), so building a tree takes O(e log n), whatever its depth.

/// The tree. Invariant: `jump` is an ancestor, determined by the parents above.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    links: Vec<Link>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    parent: u32,
    jump: u32,
    depth: u32,
}

impl Tree {
    /// Returns a tree of the root alone; every other node must be attached after its parent.
    pub(super) fn new(n_nodes: usize, root: u32) -> Self {
        Self { links: vec![Link { parent: root, jump: root, depth: 0 }; n_nodes] }
    }

    /// Returns the parent of a node; the root is its own parent.
    pub(super) fn parent(&self, node: u32) -> u32 {
        self.links[node as usize].parent
    }

    /// Attaches `node` to `parent`. The subtree of `node` must be attached again.
    pub(super) fn attach(&mut self, node: u32, parent: u32) {
        let up = self.links[parent as usize];
        let first = self.links[up.jump as usize];
        let second = self.links[first.jump as usize];
        let jump = if up.depth - first.depth == first.depth - second.depth { first.jump } else { parent };
        self.links[node as usize] = Link { parent, jump, depth: up.depth + 1 };
    }

    /// Returns the closest common ancestor, which may be one of the nodes.
    pub(super) fn common(&self, mut a: u32, mut b: u32) -> u32 {
        if self.depth(a) < self.depth(b) {
            std::mem::swap(&mut a, &mut b);
        }
        let depth = self.depth(b);
        while self.depth(a) > depth {
            let link = self.links[a as usize];
            a = if self.depth(link.jump) >= depth { link.jump } else { link.parent };
        }
        while a != b {
            let (left, right) = (self.links[a as usize], self.links[b as usize]);
            (a, b) = if left.jump == right.jump { (left.parent, right.parent) } else { (left.jump, right.jump) };
        }
        a
    }

    fn depth(&self, node: u32) -> u32 {
        self.links[node as usize].depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_agree_with_walking() {
        let n = 3000_u32;
        let mut tree = Tree::new(n as usize, 0);
        let mut state = 1_u32;
        for node in 1..n {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Mostly deep, with branches.
            let parent = if state >> 28 == 0 { (state >> 8) % node } else { node - 1 };
            tree.attach(node, parent);
        }
        let ancestors = |mut node: u32| {
            let mut all = vec![node];
            while node != 0 {
                node = tree.parent(node);
                all.push(node);
            }
            all
        };
        for a in (0..n).step_by(37) {
            let of_a = ancestors(a);
            for b in (0..n).step_by(53) {
                let walked = ancestors(b).into_iter().find(|x| of_a.contains(x));
                assert_eq!(Some(tree.common(a, b)), walked);
            }
        }
    }
}
