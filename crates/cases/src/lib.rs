//! Test support: the number of cases of random tests, which the environment variable `CHAINRULE_RANDOM_CASES` scales;
//! pseudorandom numbers; cases in [`files`].
//!
//! `cargo xtask check` runs a tenth of the cases. Assertions about how much a random test covers hold for all cases
//! only; [`covers`] leaves them out if there are fewer.

pub mod files;
mod xorshift;

pub use xorshift::{Marsaglia, Xorshift};

/// Returns the factor in `CHAINRULE_RANDOM_CASES`, such as `10` or `0.1`; 1 by default.
fn factor() -> f64 {
    let factor = std::env::var("CHAINRULE_RANDOM_CASES").ok().and_then(|text| text.parse().ok());
    factor.filter(|factor: &f64| *factor > 0.0).unwrap_or(1.0)
}

/// Minimum number of cases.
const FEWEST: f64 = 3.0;

/// Returns the number of cases to run instead of `cases`.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and saturates")]
pub fn cases(cases: u32) -> u32 {
    let scaled = f64::from(cases) * factor();
    scaled.max(FEWEST.min(f64::from(cases))) as u32
}

/// Returns whether fewer cases run than by default.
#[must_use]
pub fn is_reduced() -> bool {
    factor() < 1.0
}

/// Asserts a statement about the coverage of a random test, unless fewer cases run than by default.
#[macro_export]
macro_rules! covers {
    ($($argument:tt)*) => {
        if !$crate::is_reduced() {
            assert!($($argument)*);
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn cases_are_scaled_and_coverage_is_asserted_for_all_of_them() {
        // The variable is not set here, or set by the chore that runs the tests.
        if super::is_reduced() {
            assert!(super::cases(1000) < 1000 && super::cases(1000) >= 3);
        } else {
            assert!(super::cases(1000) >= 1000);
        }
        assert_eq!(super::cases(1).min(2), super::cases(1));
        crate::covers!(1 + 1 == 2, "arithmetic");
    }
}
