//! Whole numbers.

use crate::table::Spelling;

/// Returns a double as an integer, rounded towards zero; the least integer for NaN and beyond 64 bits, as processors
/// and NumPy have it.
///
/// ```
/// # use chainrule_ops::truncate;
/// assert_eq!([2.9, -2.9, 1e19, f64::NAN].map(truncate), [2, -2, i64::MIN, i64::MIN]);
/// ```
#[must_use]
pub fn truncate(x: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[allow(clippy::cast_possible_truncation)]
    if (-LIMIT..LIMIT).contains(&x) { x as i64 } else { i64::MIN }
}

/// [`truncate`] in C99.
pub const TRUNCATE_C: Spelling = Spelling {
    template: "cr_truncate({0})",
    helper: Some(
        "\
static int64_t cr_truncate(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
",
    ),
};

/// [`truncate`] in Rust.
pub const TRUNCATE_RUST: Spelling = Spelling {
    template: "cr_truncate({0})",
    helper: Some(
        "\
fn cr_truncate(x: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&x) { x as i64 } else { i64::MIN }
}
",
    ),
};
