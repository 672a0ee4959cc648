//! Which way a Jacobian takes fewer operations: forward mode makes a column of it in a pass, reverse mode a row.
//!
//! In: how many inputs and outputs there are, as polynomials of sizes. Out: [`Way`]. A pass of reverse mode is taken for twice
//! as dear as one of forward mode, so rows are made where there are more than twice as many inputs as outputs.
//!
//! Where sizes decide that are known only when the function runs, so does the comparison: who asks writes both ways under an
//! `if`. That is twice the code, and so it is done only where either way may be dear: not where one of the two counts is known
//! and [few](FEW), nor where the polynomials are ordered whatever the sizes are, from two on. (Where a size is 0 or 1, the
//! order may be another one, and there is little to do.)

use crate::Size;

/// So many passes are few: whatever the other count is, it is not worth while to have both ways in the code.
const FEW: i64 = 16;

/// How to make a Jacobian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// Forward mode.
    Columns,
    /// Reverse mode.
    Rows,
    /// Reverse mode where the first is less than the second, forward mode otherwise. That depends on sizes.
    RowsWhereLess(Size, Size),
}

/// The cheaper way for so many inputs and outputs.
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
    match (inputs.as_constant(), outputs.as_constant()) {
        (Some(_), Some(_)) if more.as_constant() > Some(0) => Way::Rows,
        (Some(_), Some(_)) => Way::Columns,
        (None, Some(outputs)) if outputs <= FEW => Way::Rows,
        (Some(inputs), None) if inputs <= FEW => Way::Columns,
        _ if is_natural(&more.neg()) => Way::Columns,
        _ if is_natural(&more) => Way::Rows,
        _ => Way::RowsWhereLess(dear, inputs.clone()),
    }
}

/// Whether it is seen that `size` is not negative where all sizes are two at least.
fn is_natural(size: &Size) -> bool {
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
        // Known numbers, and few of either.
        assert_eq!(cheaper(&number(7), &number(3)), Way::Rows);
        assert_eq!(cheaper(&number(6), &number(3)), Way::Columns);
        assert_eq!(cheaper(&n, &number(3)), Way::Rows);
        assert_eq!(cheaper(&number(3), &n), Way::Columns);
        // Ordered whatever the sizes are.
        assert_eq!(cheaper(&n.scale(2), &n), Way::Columns);
        assert_eq!(cheaper(&n.add(&number(1)), &n), Way::Columns);
        assert_eq!(cheaper(&n.scale(3), &n), Way::Rows);
        assert_eq!(cheaper(&nm, &n), Way::Rows);
        assert_eq!(cheaper(&n, &nm), Way::Columns);
        assert_eq!(cheaper(&n, &n.mul(&n)), Way::Columns);
        // Open.
        for (inputs, outputs) in [(n.add(&m), n.clone()), (nm, n.scale(3)), (n.clone(), number(100)), (number(100), n)]
        {
            assert_eq!(cheaper(&inputs, &outputs), Way::RowsWhereLess(outputs.scale(2), inputs));
        }
    }
}
