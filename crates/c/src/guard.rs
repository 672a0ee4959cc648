//! Failures of operators in integer form: overflow, and division by zero.
//!
//! The operators' rows give the value in C, which is undefined in case of failure. This module has, for each operator
//! that can fail, a preceding test that is defined everywhere. A unit test walks all rows: an operator that can fail
//! must be listed, and its test must agree with its row.

use chainrule_ops::{Op, Spelling};

/// Returns the condition under which `op` fails, for operators that can fail.
pub(crate) fn fails(op: Op) -> Option<Spelling> {
    let (template, helper) = match op {
        Op::Add => ("cr_add_fails({0}, {1})", ADD),
        Op::Sub => ("cr_sub_fails({0}, {1})", SUB),
        Op::Mul => ("cr_mul_fails({0}, {1})", MUL),
        Op::Neg | Op::Abs => return Some(Spelling { template: "{0} == INT64_MIN", helper: None }),
        Op::Quot | Op::Mod => ("cr_div_fails({0}, {1})", DIV),
        _ => return None,
    };
    Some(Spelling { template, helper: Some(helper) })
}

pub(crate) const ADD: &str = "\
static inline int cr_add_fails(int64_t a, int64_t b) {
    return b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b;
}
";

const SUB: &str = "\
static inline int cr_sub_fails(int64_t a, int64_t b) {
    return b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b;
}
";

// Products of 31-bit numbers fit; others are decided by a division.
pub(crate) const MUL: &str = "\
static inline int cr_mul_fails(int64_t a, int64_t b) {
    const int64_t small = 0x7fffffff;
    if (-small <= a && a <= small && -small <= b && b <= small) return 0;
    if (a == 0 || b == 0) return 0;
    if (a > 0) return b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a;
    return b > 0 ? a < INT64_MIN / b : a < INT64_MAX / b;
}
";

const DIV: &str = "\
static inline int cr_div_fails(int64_t a, int64_t b) {
    return b == 0 || (a == INT64_MIN && b == -1);
}
";

/// `cr_add` and `cr_mul`: the result through a pointer, and whether it overflows. They need [`ADD`] and [`MUL`].
pub(crate) const INTO: &str = "\
static inline int cr_add(int64_t a, int64_t b, int64_t *out) {
    if (cr_add_fails(a, b)) return 1;
    *out = a + b;
    return 0;
}

static inline int cr_mul(int64_t a, int64_t b, int64_t *out) {
    if (cr_mul_fails(a, b)) return 1;
    *out = a * b;
    return 0;
}
";

/// `cr_len`: a negative length is that of a loop that does not run.
pub(crate) const LEN: &str = "\
static inline int64_t cr_len(int64_t len) {
    return len < 0 ? 0 : len;
}
";

/// `cr_gather`: packs elements of a few points, with the points of each element adjacent.
pub(crate) const GATHER: &str = "\
static inline void cr_gatherSUFFIX(TYPE *to, const TYPE *from, int64_t point, int64_t element, int64_t len, int lanes) {
    for (int64_t k = 0; k < len; k++)
        for (int l = 0; l < lanes; l++) to[k * lanes + l] = from[l * point + k * element];
}
";

/// `cr_scatter`: unpacks elements.
pub(crate) const SCATTER: &str = "\
static inline void cr_scatterSUFFIX(const TYPE *from, TYPE *to, int64_t point, int64_t element, int64_t len, int lanes) {
    for (int64_t k = 0; k < len; k++)
        for (int l = 0; l < lanes; l++) to[l * point + k * element] = from[k * lanes + l];
}
";

/// `cr_within`: whether an index is in range.
pub(crate) const WITHIN: &str = "\
static inline int cr_within(int64_t index, int64_t len) {
    return 0 <= index && index < len;
}
";
