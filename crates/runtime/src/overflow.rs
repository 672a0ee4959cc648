//! Integer overflow in code for polynomials.

/// Effect of overflow in the arithmetic of a polynomial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// The program fails, exactly if [`Poly::eval`](chainrule_base::Poly::eval) has no value.
    Fails,
    /// The value wraps: an address that is checked later, or that cannot overflow.
    Wraps,
}
