//! Store pairs: stores of adjacent elements are made adjacent in the code.
//!
//! A processor stores one number a cycle, or two adjacent ones, and code for Jacobians is mostly stores. A store is
//! delayed until the adjacent element is computed, if that is soon, so that a backend can store both with one
//! instruction.

use crate::kernel::{BufferId, Instr};

/// Maximum delay of a store in instructions; the number occupies a register meanwhile.
const SOON: usize = 6;

/// Moves stores down to just before the store of an adjacent element, within [`SOON`] instructions.
///
/// `stored` lists the positions of stores to distinct known elements, in order, each with the number of products before
/// it that are fused into sums, since these count as instructions. Nothing in `code` loads these elements. Linear in
/// the number of stores.
pub(super) fn put_beside(code: &mut [Instr], stored: &[(usize, usize)]) {
    // Delayed stores: position, number of products before it, element.
    let mut waiting: Vec<(usize, usize, BufferId, i64)> = Vec::new();
    for (at, n_fused) in stored.iter().copied() {
        let Some(Instr::Store { buffer, at: element, .. }) = code.get(at) else { continue };
        let (buffer, Some(element)) = (*buffer, element.as_constant()) else { continue };
        waiting.retain(|(first, before, ..)| (at + n_fused) - (first + before) <= SOON);
        let is_beside = |(.., b, e): &(usize, usize, BufferId, i64)| *b == buffer && e.abs_diff(element) == 1;
        let Some(i) = waiting.iter().position(is_beside) else {
            waiting.push((at, n_fused, buffer, element));
            continue;
        };
        let (first, ..) = waiting.remove(i);
        code[first..at].rotate_left(1);
        waiting.iter_mut().filter(|(waits, ..)| *waits > first).for_each(|(waits, ..)| *waits -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{SOON, put_beside};
    use crate::kernel::{BufferId, Instr, Reg};
    use chainrule_base::{Id, Poly};

    /// Returns code with a constant for each register, stored to its element immediately; `None` for no store.
    fn code(elements: &[Option<i64>]) -> (Vec<Instr>, Vec<(usize, usize)>) {
        let (mut code, mut stored) = (Vec::new(), Vec::new());
        for (r, element) in elements.iter().enumerate() {
            code.push(Instr::Const { dst: Reg::new(r), value: 1.0 });
            if let Some(element) = element {
                stored.push((code.len(), 0));
                let (buffer, at) = (BufferId::new(0), Poly::constant(*element));
                code.push(Instr::Store { buffer, at, value: Reg::new(r) });
            }
        }
        (code, stored)
    }

    /// Returns the stored elements in order, each with the number of constants before it.
    fn stores(code: &[Instr]) -> Vec<(i64, usize)> {
        let is_const = |i: &&Instr| matches!(i, Instr::Const { .. });
        let each = code.iter().enumerate().filter_map(|(at, instr)| match instr {
            Instr::Store { at: element, .. } => {
                Some((element.as_constant()?, code[..at].iter().filter(is_const).count()))
            }
            _ => None,
        });
        each.collect()
    }

    #[test]
    fn adjacent_values_are_stored_together_if_both_are_ready_soon() {
        let (mut few, stored) = code(&[Some(5), Some(9), Some(4), Some(8), Some(2)]);
        put_beside(&mut few, &stored);
        assert_eq!(stores(&few), [(5, 3), (4, 3), (9, 4), (8, 4), (2, 5)]);
        let far: Vec<_> = std::iter::once(Some(1)).chain([None; SOON]).chain([Some(2)]).collect();
        let (mut far, stored) = code(&far);
        put_beside(&mut far, &stored);
        assert_eq!(stores(&far), [(1, 1), (2, SOON + 2)]);
        // Each store has one partner.
        let (mut row, stored) = code(&[Some(0), Some(1), Some(2), Some(3)]);
        put_beside(&mut row, &stored);
        assert_eq!(stores(&row), [(0, 2), (1, 2), (2, 4), (3, 4)]);
    }

    #[test]
    fn every_number_is_stored_once_after_it_is_computed() {
        let mut random = chainrule_cases::Xorshift::new(1);
        let mut number = |bound: u64| random.below(bound);
        for _ in 0..500 {
            let n = number(60) as usize;
            let mut elements: Vec<Option<i64>> = (0..n as i64).map(Some).collect();
            for i in (1..n).rev() {
                // Mostly nearby elements, so that there are pairs.
                let near = if number(2) == 0 { 4 } else { i as u64 };
                elements.swap(i, i.saturating_sub(number(near + 1) as usize));
            }
            elements.iter_mut().filter(|_| number(4) == 0).for_each(|element| *element = None);
            let (mut moved, stored) = code(&elements);
            put_beside(&mut moved, &stored);
            let mut computed = 0;
            let mut left: Vec<i64> = elements.iter().copied().flatten().collect();
            for instr in &moved {
                match instr {
                    Instr::Const { dst, .. } => {
                        assert_eq!(dst.index(), computed);
                        computed += 1;
                    }
                    Instr::Store { at, value, .. } => {
                        assert!(value.index() < computed, "stored before it is computed");
                        assert!(computed <= value.index() + 1 + SOON, "waits for too long");
                        let element = at.as_constant().unwrap();
                        assert_eq!(elements[value.index()], Some(element));
                        left.retain(|e| *e != element);
                    }
                    _ => unreachable!(),
                }
            }
            assert_eq!((computed, left), (n, vec![]));
            assert_eq!(moved.len(), n + elements.iter().flatten().count());
        }
    }
}
