//! Published and measured reference counts of the benchmark problems: arithmetic operations (additions,
//! multiplications, divisions, negations) of the part of each problem that the sources count.
//!
//! Sources: Guenter, "Efficient symbolic differentiation for graphics applications", 2007, tables of
//! sections 5.2 to 5.4 (D*); CasADi 3.7, CppADCodeGen 2.5, SymPy, SymEngine and SymForce, each with its
//! common subexpression elimination, run in November 2026 from the same formulation (the best of them);
//! prototypes of value numbering; hand-written recursive Newton-Euler through CasADi.

/// Counted code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Only the function.
    Function,
    /// Only the derivative.
    Derivative,
    /// Both in one call.
    Both,
}

impl Part {
    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Derivative => "derivative",
            Self::Both => "both",
        }
    }
}

/// Reference counts of one part of one problem.
#[derive(Clone, Copy, Default, Debug)]
pub struct Target {
    /// D* of 2007.
    pub dstar: Option<u64>,
    /// Best peer from the same formulation.
    pub peer: Option<(u64, &'static str)>,
    /// Prototype of value numbering.
    pub prototype: Option<u64>,
    /// Goal.
    pub goal: Option<u64>,
    /// Best peer from the hand-written recursive Newton-Euler formulation.
    pub newton_euler: Option<u64>,
}

/// A row: problem, part, D*, best peer and its name, prototype, goal, Newton-Euler. 0 means unknown.
type Row = (&'static str, Part, u64, u64, &'static str, u64, u64, u64);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("sh5", Part::Derivative, 196, 159, "SymEngine", 100, 90, 0),
    ("sh10", Part::Derivative, 0, 849, "CasADi", 468, 430, 0),
    ("sh15", Part::Derivative, 2126, 1931, "CasADi", 1122, 1000, 0),
    ("sh20", Part::Derivative, 3846, 3430, "CasADi", 2128, 1880, 0),
    ("idf2_par", Part::Function, 147, 232, "", 0, 0, 0),
    ("idf3_par", Part::Function, 302, 440, "", 0, 0, 0),
    ("idf4_par", Part::Function, 479, 675, "", 0, 0, 0),
    ("idf5_par", Part::Function, 664, 913, "", 0, 0, 0),
    ("idf6_par", Part::Function, 849, 934, "SymEngine*", 0, 0, 239),
    ("idf6_perp", Part::Function, 1133, 1634, "SymEngine", 0, 0, 712),
    ("idf6_gen", Part::Function, 0, 2639, "CasADi", 0, 0, 1029),
    ("idj6_par", Part::Derivative, 0, 6088, "CasADi*", 4345, 0, 1273),
    ("idj6_perp", Part::Derivative, 0, 13185, "CasADi", 0, 0, 4393),
    ("idj6_gen", Part::Derivative, 0, 21360, "CasADi", 0, 0, 6712),
    ("st2_par", Part::Derivative, 419, 631, "", 0, 0, 194),
    ("st3_par", Part::Derivative, 881, 1202, "", 0, 0, 326),
    ("st4_par", Part::Derivative, 1409, 1825, "", 0, 0, 458),
    ("st6_par", Part::Derivative, 2645, 3089, "", 0, 0, 722),
    ("st40_par", Part::Derivative, 22739, 24480, "", 0, 0, 5186),
    ("st6_gen", Part::Derivative, 0, 7412, "", 0, 0, 0),
    ("st12_gen", Part::Derivative, 0, 16918, "", 0, 0, 0),
    ("st18_gen", Part::Derivative, 0, 26422, "", 0, 0, 0),
    ("st40_gen", Part::Derivative, 0, 61268, "", 0, 0, 0),
    ("ba", Part::Derivative, 0, 278, "CasADi", 0, 0, 0),
];

/// Returns the reference counts of this part of this problem.
pub fn target(problem: &str, part: Part) -> Target {
    let Some(row) = ROWS.iter().find(|row| row.0 == problem && row.1 == part) else { return Target::default() };
    let known = |n: u64| (n > 0).then_some(n);
    Target {
        dstar: known(row.2),
        peer: known(row.3).map(|n| (n, row.4)),
        prototype: known(row.5),
        goal: known(row.6),
        newton_euler: known(row.7),
    }
}

/// Published or measured reference times of batches, in ns a point.
#[derive(Clone, Copy, Default, Debug)]
pub struct Published {
    /// JAX, `vmap` over 4096 points.
    pub jax: Option<f64>,
    /// Eight lanes of AVX-512, written by hand from CasADi's operations, on a machine of this class.
    pub lanes_by_hand: Option<f64>,
}

/// Problem, JAX, lanes by hand. 0 means unknown.
const TIMES: &[(&str, f64, f64)] = &[
    ("sh5", 0.0, 11.4),
    ("sh20", 38_000.0, 0.0),
    ("idf6_par", 0.0, 34.0),
    ("idf6_gen", 0.0, 68.0),
    ("ba", 667.0, 13.3),
];

/// Returns the reference times of this problem's derivative in batches.
pub fn published_time(problem: &str) -> Published {
    let known = |ns: f64| (ns > 0.0).then_some(ns);
    let row = TIMES.iter().find(|row| row.0 == problem);
    row.map_or_else(Published::default, |row| Published { jax: known(row.1), lanes_by_hand: known(row.2) })
}
