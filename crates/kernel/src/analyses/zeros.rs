//! Structurally zero elements of results.
//!
//! A sparse Jacobian stored as a dense array has more zeros than entries. As instructions they would be most of its
//! kernel; here up to 64 neighbouring elements are one [`Zeros`].

use crate::kernel::{BufferId, Class, Instr, Kernel, Stmt};
use chainrule_base::Poly;
use std::borrow::Cow;

/// Elements of a result within a range of 64 that are +0 before the body of a kernel begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zeros {
    /// Buffer of an output of doubles with a known length.
    pub buffer: BufferId,
    /// First of the elements.
    pub first: i64,
    /// Bit `i` is set if element `first + i` is one of them; the lowest bit is set.
    pub which: u64,
}

impl Zeros {
    /// Returns the elements, ascending.
    pub fn elements(self) -> impl Iterator<Item = i64> {
        let mut which = self.which;
        std::iter::from_fn(move || {
            let bit = which.trailing_zeros();
            which &= which.wrapping_sub(1);
            (bit < u64::BITS).then(|| self.first.wrapping_add(i64::from(bit)))
        })
    }

    /// Returns the last element.
    pub(crate) fn last(self) -> Option<i64> {
        self.first.checked_add(i64::from(self.which.checked_ilog2()?))
    }

    /// Adds an element to `all`, which contains no later element of its buffer.
    #[inline]
    pub(crate) fn add(all: &mut Vec<Self>, buffer: BufferId, element: i64) {
        match all.last_mut().filter(|zeros| zeros.buffer == buffer && element - zeros.first < i64::from(u64::BITS)) {
            Some(zeros) => zeros.which |= 1 << (element - zeros.first),
            None => all.push(Self { buffer, first: element, which: 1 }),
        }
    }
}

/// Returns `kernel` with its zeros stored by instructions at its start, for backends without [`Zeros`]. Linear in the
/// kernel if there are any.
#[must_use]
pub fn with_stored_zeros(kernel: &Kernel) -> Cow<'_, Kernel> {
    if kernel.zeros.is_empty() {
        return Cow::Borrowed(kernel);
    }
    let mut kernel = kernel.clone();
    let value = kernel.regs.push(Class::Real);
    let zeros = std::mem::take(&mut kernel.zeros);
    let stores = zeros.iter().flat_map(|zeros| zeros.elements().map(|element| (zeros.buffer, element)));
    let stores = stores.map(|(buffer, element)| Instr::Store { buffer, at: Poly::constant(element), value });
    let zero = Instr::Const { dst: value, value: 0.0 };
    let first = std::iter::once(zero).chain(stores);
    match kernel.body.first_mut() {
        Some(Stmt::Straight(code)) => drop(code.splice(..0, first)),
        _ => kernel.body.insert(0, Stmt::Straight(first.collect())),
    }
    Cow::Owned(kernel)
}

#[cfg(test)]
mod tests {
    use super::{Zeros, with_stored_zeros};
    use crate::kernel::{BufferId, Instr, Kernel, Stmt};
    use chainrule_base::{Id, Name};

    fn buffer(n: usize) -> BufferId {
        BufferId::new(n)
    }

    /// Returns the zeros for elements that ascend within each buffer.
    fn of(elements: &[(usize, i64)]) -> Vec<Zeros> {
        let mut all = Vec::new();
        elements.iter().for_each(|(b, element)| Zeros::add(&mut all, buffer(*b), *element));
        all
    }

    #[test]
    fn elements_come_back_in_as_few_words_as_hold_them() {
        let elements = [(0, 0), (0, 63), (0, 64), (0, 65), (0, 200), (1, 0), (1, 1)];
        let all = of(&elements);
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|zeros| zeros.which & 1 == 1));
        let back: Vec<(usize, i64)> =
            all.iter().flat_map(|zeros| zeros.elements().map(|e| (zeros.buffer.index(), e))).collect();
        assert_eq!(back, elements);
        let last: Vec<Option<i64>> = all.iter().map(|zeros| zeros.last()).collect();
        assert_eq!(last, [Some(63), Some(65), Some(200), Some(1)]);
        assert_eq!(Zeros { buffer: buffer(0), first: i64::MAX, which: 3 }.last(), None);
        assert_eq!(Zeros { buffer: buffer(0), first: 1, which: 0 }.last(), None);
    }

    #[test]
    fn zeros_are_stored_before_anything_else() {
        let none = Kernel::empty(Name::new("f"));
        assert!(matches!(with_stored_zeros(&none), std::borrow::Cow::Borrowed(_)));
        let zeros = of(&[(2, 1), (2, 4)]);
        for body in [vec![], vec![Stmt::Straight(vec![])]] {
            let stored = with_stored_zeros(&Kernel { zeros: zeros.clone(), body, ..none.clone() }).into_owned();
            assert!(stored.zeros.is_empty());
            let [Stmt::Straight(code)] = stored.body.as_slice() else { panic!("one block: {:?}", stored.body) };
            let [Instr::Const { dst, value }, stores @ ..] = code.as_slice() else { panic!("a constant: {code:?}") };
            assert_eq!(value.to_bits(), 0);
            let elements = stores.iter().map(|instr| match instr {
                Instr::Store { buffer, at, value } if value == dst => (buffer.index(), at.as_constant()),
                other => panic!("no store: {other:?}"),
            });
            assert_eq!(elements.collect::<Vec<_>>(), [(2, Some(1)), (2, Some(4))]);
        }
    }
}
