//! Sequentialisation of parallel moves, for backends.
//!
//! Carried values of a loop change simultaneously, as do results of a branch: a new value may be another's old one. In:
//! pairs of locations. Out: moves such that none overwrites a location that is still read. A cycle saves one value in a
//! temporary, which is restored before the next is saved.

use std::collections::BTreeMap;

/// One move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move<P> {
    /// From one location to another.
    Direct {
        /// To.
        to: P,
        /// From.
        from: P,
    },
    /// From here to the temporary.
    Save(P),
    /// From the temporary to here.
    Restore(P),
}

/// Returns moves that set the first location of each pair to the old value of the second. No location is first twice.
/// The order depends on the locations only. `O(n log n)`.
#[must_use]
pub fn moves<P: Copy + Ord>(pairs: impl IntoIterator<Item = (P, P)>) -> Vec<Move<P>> {
    let mut source: BTreeMap<P, P> = BTreeMap::new();
    let mut readers: BTreeMap<P, u32> = BTreeMap::new();
    for (to, from) in pairs {
        if to != from {
            source.insert(to, from);
            *readers.entry(from).or_insert(0) += 1;
        }
    }
    let mut ready: Vec<P> = source.keys().copied().filter(|to| !readers.contains_key(to)).collect();
    let mut moves = Vec::with_capacity(source.len());
    loop {
        while let Some(to) = ready.pop() {
            let Some(from) = source.remove(&to) else { continue };
            moves.push(Move::Direct { to, from });
            if let Some(n) = readers.get_mut(&from) {
                *n -= 1;
                if *n == 0 {
                    readers.remove(&from);
                    if source.contains_key(&from) {
                        ready.push(from);
                    }
                }
            }
        }
        // Only cycles are left, in which each location has one reader: walk backwards from the saved one.
        let Some(saved) = source.keys().next().copied() else { return moves };
        moves.push(Move::Save(saved));
        let mut to = saved;
        while let Some(from) = source.remove(&to) {
            readers.remove(&from);
            if from == saved {
                moves.push(Move::Restore(to));
            } else {
                moves.push(Move::Direct { to, from });
            }
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the contents of the locations after the moves, each initially its own number.
    fn done(n: usize, moves: &[Move<usize>]) -> Vec<usize> {
        let mut held: Vec<usize> = (0..n).collect();
        let mut temporary = None;
        for step in moves {
            match *step {
                Move::Direct { to, from } => held[to] = held[from],
                Move::Save(from) => assert_eq!(temporary.replace(held[from]), None, "one temporary is enough"),
                Move::Restore(to) => held[to] = temporary.take().unwrap(),
            }
        }
        assert_eq!(temporary, None);
        held
    }

    #[test]
    fn chains_need_no_temporary_and_cycles_one() {
        let found = moves([(0, 1), (1, 2), (3, 3)]);
        assert_eq!(found, [Move::Direct { to: 0, from: 1 }, Move::Direct { to: 1, from: 2 }]);
        let found = moves([(0, 1), (1, 0)]);
        assert_eq!(found, [Move::Save(0), Move::Direct { to: 0, from: 1 }, Move::Restore(1)]);
    }

    #[test]
    fn all_maps_of_five_places_come_true() {
        const N: usize = 5;
        for code in 0..N.pow(N as u32) {
            let from = |to: usize| code / N.pow(to as u32) % N;
            let expected: Vec<usize> = (0..N).map(from).collect();
            assert_eq!(done(N, &moves(expected.iter().copied().enumerate())), expected);
        }
    }
}
