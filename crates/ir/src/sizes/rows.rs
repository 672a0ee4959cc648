//! Choice of the mode of a Jacobian: forward mode makes a column in a pass, reverse mode a row.
//!
//! In: the numbers of inputs and outputs, as polynomials of sizes. Out: [`Way`]. A pass of reverse mode is assumed to
//! cost twice as much as one of forward mode, so rows are made if there are more than twice as many inputs as outputs.
//!
//! If the decision depends on sizes known only at run time, so does the comparison: callers write both modes under an
//! `if`. That doubles the code, so it is only done if either mode may be costly: not if the polynomials are ordered for
//! all sizes from two on, ignoring a few inputs or outputs. If a size is 0 or 1, or the few are as many as the others,
//! the order may differ, but there is little to compute.

use crate::Size;

/// Maximum number of passes for which two modes in the code do not pay.
const FEW: i64 = 32;

/// Mode of a Jacobian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// Forward mode.
    Columns,
    /// Reverse mode.
    Rows,
    /// Reverse mode if the first is less than the second, forward mode otherwise. That depends on sizes.
    RowsWhereLess(Size, Size),
}

/// Returns the cheaper mode for so many inputs and outputs.
///
/// ```
/// use chainrule_base::Id;
/// use chainrule_ir::{Size, VarId, rows::{Way, cheaper}};
/// let [n, m] = [0, 1].map(|idx| Size::var(VarId::new(idx)));
/// assert_eq!(cheaper(&n, &n), Way::Columns);
/// assert_eq!(cheaper(&n, &Size::constant(1)), Way::Rows);
/// assert_eq!(cheaper(&n, &m), Way::RowsWhereLess(m.scale(2), n.clone()));
/// ```
#[must_use]
pub fn cheaper(inputs: &Size, outputs: &Size) -> Way {
    let dear = outputs.scale(2);
    let more = inputs.sub(&dear);
    if let (Some(inputs), Some(dear)) = (inputs.as_constant(), dear.as_constant()) {
        return if inputs > dear { Way::Rows } else { Way::Columns };
    }
    let fixed = more.terms().find(|(monomial, _)| monomial.is_empty()).map_or(0, |(_, c)| c);
    let more = if fixed.abs() <= FEW { more.sub(&Size::constant(fixed)) } else { more };
    if is_natural(&more.neg()) {
        Way::Columns
    } else if is_natural(&more) {
        Way::Rows
    } else {
        Way::RowsWhereLess(dear, inputs.clone())
    }
}

/// Maximum degree of a polynomial that is written out at sizes of two and more: of degree `k` that has `2^k` terms.
const MAX_DEGREE: usize = 8;

/// Returns whether `size` is provably nonnegative if all sizes are at least two.
fn is_natural(size: &Size) -> bool {
    let is_positive = |c: i64| c > 0;
    if size.terms().all(|(_, c)| is_positive(c)) || size.degree() > MAX_DEGREE {
        return size.terms().all(|(_, c)| is_positive(c));
    }
    let above = size.substitute(|var| Size::var(var).add(&Size::constant(2)));
    above.terms().all(|(_, c)| c > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VarId;
    use chainrule_base::Id;

    #[test]
    fn the_way_is_open_only_where_sizes_decide() {
        let [n, m] = [0, 1].map(|idx| Size::var(VarId::new(idx)));
        let number = Size::constant;
        let nm = n.mul(&m);
        // Known numbers, or a few of either.
        assert_eq!(cheaper(&number(7), &number(3)), Way::Rows);
        assert_eq!(cheaper(&number(6), &number(3)), Way::Columns);
        assert_eq!(cheaper(&n, &number(3)), Way::Rows);
        assert_eq!(cheaper(&number(3), &n), Way::Columns);
        // Ordered for all sizes.
        assert_eq!(cheaper(&n.scale(2), &n), Way::Columns);
        assert_eq!(cheaper(&n.add(&number(1)), &n), Way::Columns);
        assert_eq!(cheaper(&n.scale(3), &n), Way::Rows);
        assert_eq!(cheaper(&nm, &n), Way::Rows);
        assert_eq!(cheaper(&n, &nm), Way::Columns);
        assert_eq!(cheaper(&n, &n.mul(&n)), Way::Columns);
        // A few more or less are ignored.
        assert_eq!(cheaper(&n.scale(2).add(&number(1)), &n), Way::Columns);
        assert_eq!(cheaper(&n.scale(2).add(&number(26)), &n.scale(3)), Way::Columns);
        assert_eq!(cheaper(&nm.add(&number(3)), &n.add(&number(8))), Way::Rows);
        // Open.
        for (inputs, outputs) in [(n.add(&m), n.clone()), (nm, n.scale(3)), (n.clone(), number(100)), (number(100), n)]
        {
            assert_eq!(cheaper(&inputs, &outputs), Way::RowsWhereLess(outputs.scale(2), inputs));
        }
    }
}
