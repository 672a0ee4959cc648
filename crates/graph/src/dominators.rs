//! Dominators and postdominators of a directed graph.
//!
//! In: successor lists and the nodes where paths start (or end). Out: the tree of immediate dominators.
//!
//! Source: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm" (2001). Several starts are joined by a virtual
//! one, which is never returned. Each sweep follows a reverse postorder; an acyclic graph needs one sweep, and a second
//! confirms the fixed point. No recursion.

const NONE: u32 = u32::MAX;

/// Dominator tree: `a` dominates `b` if every path from a start to `b` passes through `a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dominators {
    /// Immediate dominator of each node; the virtual start, numbered after all nodes, if there is no other; [`NONE`]
    /// for unreachable nodes.
    immediate: Vec<u32>,
    /// Entry and exit times of each node in a walk over the tree.
    interval: Vec<(u32, u32)>,
}

impl Dominators {
    /// Computes the dominators of the graph in which `successors[a]` lists the successors of `a`, for paths that start
    /// at one of `starts`. Nearly linear for graphs of modest depth, quadratic at worst.
    ///
    /// # Panics
    /// Panics if a node is not below `successors.len()`.
    #[must_use]
    pub fn new(successors: &[impl AsRef<[usize]>], starts: &[usize]) -> Self {
        let n = successors.len();
        let postorder = postorder(successors, starts);
        let mut number = vec![NONE; n + 1];
        for (i, node) in postorder.iter().enumerate() {
            number[*node] = i as u32;
        }
        number[n] = postorder.len() as u32;
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); n];
        for start in starts {
            predecessors[*start].push(n);
        }
        for node in &postorder {
            for next in successors[*node].as_ref() {
                predecessors[*next].push(*node);
            }
        }
        let mut immediate = vec![NONE; n + 1];
        immediate[n] = n as u32;
        let mut changed = true;
        while changed {
            changed = false;
            for &node in postorder.iter().rev() {
                let mut best = NONE;
                for &before in &predecessors[node] {
                    if immediate[before] != NONE {
                        best =
                            if best == NONE { before as u32 } else { meet(&immediate, &number, best, before as u32) };
                    }
                }
                if immediate[node] != best {
                    immediate[node] = best;
                    changed = true;
                }
            }
        }
        let interval = intervals(&immediate, &postorder);
        Self { immediate, interval }
    }

    /// Computes postdominators: `a` postdominates `b` if every path from `b` to one of `ends` passes through `a`.
    #[must_use]
    pub fn post(successors: &[impl AsRef<[usize]>], ends: &[usize]) -> Self {
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); successors.len()];
        for (node, nexts) in successors.iter().enumerate() {
            for next in nexts.as_ref() {
                predecessors[*next].push(node);
            }
        }
        Self::new(&predecessors, ends)
    }

    /// Returns the immediate dominator of `node`; `None` if there is none, or if `node` is unreachable.
    #[must_use]
    pub fn immediate(&self, node: usize) -> Option<usize> {
        let n = self.immediate.len() - 1;
        Some(self.immediate[node] as usize).filter(|d| *d < n)
    }

    /// Returns whether a path from a start reaches `node`.
    #[must_use]
    pub fn is_reached(&self, node: usize) -> bool {
        self.immediate[node] != NONE
    }

    /// Returns whether `a` dominates `b`; a node dominates itself. False if one is unreachable. O(1).
    #[must_use]
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let ((enter_a, leave_a), (enter_b, leave_b)) = (self.interval[a], self.interval[b]);
        self.is_reached(a) && self.is_reached(b) && enter_a <= enter_b && leave_b <= leave_a
    }

    /// Returns the dominators of `node`, from itself upwards.
    pub fn of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.is_reached(node).then_some(node);
        std::iter::successors(first, |node| self.immediate(*node))
    }
}

/// Returns the closest common ancestor of two nodes in the partial tree. Numbers grow towards the start.
fn meet(immediate: &[u32], number: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while number[a as usize] < number[b as usize] {
            a = immediate[a as usize];
        }
        while number[b as usize] < number[a as usize] {
            b = immediate[b as usize];
        }
    }
    a
}

/// Returns the reachable nodes in postorder.
fn postorder(successors: &[impl AsRef<[usize]>], starts: &[usize]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; successors.len()];
    for &start in starts {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        // A node and the number of its visited successors.
        let mut stack = vec![(start, 0)];
        while let Some((node, taken)) = stack.last_mut() {
            match successors[*node].as_ref().get(*taken) {
                Some(&next) => {
                    *taken += 1;
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// Returns entry and exit times of each node in a walk over the tree: sizes of subtrees from the leaves up, then
/// positions from the start down.
fn intervals(immediate: &[u32], postorder: &[usize]) -> Vec<(u32, u32)> {
    let mut size = vec![1u32; immediate.len()];
    for &node in postorder {
        size[immediate[node] as usize] += size[node];
    }
    let mut next_free = vec![1u32; immediate.len()];
    let mut interval = vec![(0, 0); immediate.len()];
    for &node in postorder.iter().rev() {
        let parent = immediate[node] as usize;
        let enter = next_free[parent];
        next_free[parent] += size[node];
        next_free[node] = enter + 1;
        interval[node] = (enter, enter + size[node] - 1);
    }
    interval
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::Unstructured;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    /// Returns the definition: `b` is unreachable after the removal of `a`.
    fn dominates(successors: &[Vec<usize>], starts: &[usize], a: usize, b: usize) -> bool {
        let reaches = |without: Option<usize>| {
            let mut seen = vec![false; successors.len()];
            let mut stack: Vec<usize> = starts.iter().copied().filter(|s| Some(*s) != without).collect();
            while let Some(node) = stack.pop() {
                if !std::mem::replace(&mut seen[node], true) {
                    stack.extend(successors[node].iter().copied().filter(|s| Some(*s) != without));
                }
            }
            seen[b]
        };
        reaches(None) && !reaches(Some(a))
    }

    fn random_dag(u: &mut Unstructured, acyclic: bool) -> arbitrary::Result<(Vec<Vec<usize>>, Vec<usize>)> {
        let n = u.int_in_range(1..=12)?;
        let mut successors = vec![Vec::new(); n];
        for _ in 0..u.int_in_range(0..=3 * n)? {
            let (a, b) = (u.choose_index(n)?, u.choose_index(n)?);
            if !acyclic || a < b {
                successors[a].push(b);
            }
        }
        let starts = if u.ratio(3, 4)? { vec![0] } else { vec![0, u.choose_index(n)?] };
        Ok((successors, starts))
    }

    fn check(successors: &[Vec<usize>], starts: &[usize], tree: &Dominators) {
        for b in 0..successors.len() {
            for a in 0..successors.len() {
                assert_eq!(tree.dominates(a, b), dominates(successors, starts, a, b), "{a} {b} in {successors:?}");
            }
            let mut all: Vec<usize> = tree.of(b).collect();
            all.sort_unstable();
            let expected: Vec<usize> = (0..successors.len()).filter(|a| dominates(successors, starts, *a, b)).collect();
            assert_eq!(all, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: chainrule_cases::cases(2000), rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn trees_agree_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..120), acyclic: bool) {
            let (successors, starts) = random_dag(&mut Unstructured::new(&bytes), acyclic).unwrap();
            check(&successors, &starts, &Dominators::new(&successors, &starts));
            let mut reversed = vec![Vec::new(); successors.len()];
            for (a, nexts) in successors.iter().enumerate() {
                for b in nexts {
                    reversed[*b].push(a);
                }
            }
            check(&reversed, &starts, &Dominators::post(&successors, &starts));
        }
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let n = 200_000;
        let successors: Vec<Vec<usize>> = (0..n).map(|i| if i + 1 < n { vec![i + 1] } else { vec![] }).collect();
        let tree = Dominators::new(&successors, &[0]);
        assert_eq!(tree.immediate(n - 1), Some(n - 2));
        assert!(tree.dominates(0, n - 1) && !tree.dominates(n - 1, 0));
    }
}
