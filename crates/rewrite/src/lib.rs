//! The optimiser of array programs: IR in, IR out.
//!
//! ```
//! use chainrule_ir::{Builder, Expr, Type};
//! use chainrule_rewrite::{Options, optimise};
//! // build n (fun i -> (build n (fun j -> v[j]))[i]) is v.
//! let mut b = Builder::new("f");
//! let n = b.size_param("n");
//! let n = b.size_of(n);
//! let v = b.param("v", Type::array(n.clone(), Type::Double));
//! let copy = b.build(n.clone(), |b, j| b.get_proved(v, j));
//! let result = b.build(n, |b, i| b.get_proved(copy, i));
//! let (optimised, report) = optimise(&b.finish(result), &Options::default());
//! assert_eq!(optimised.body.stmts, []);
//! assert!(report.after < report.before);
//! ```
//!
//! Source: Shaikhha, Fitzgibbon, Vytiniotis, Peyton Jones and Koch, *Efficient differentiable programming in a
//! functional array-processing language* (2018), section 4.1 and figure 7. What differs from the paper: its
//! rules are corrected where they are unsound (`rules/README.md`), and their order is found, not given.
//!
//! | figure 7 | here |
//! | --- | --- |
//! | (a) ring structure | rules `neutral`, `zero`, `double`, `common-factor`, `sum-of-factor`, `mask-sum` |
//! | (b) lambda calculus | functions are inlined before; lets are statements |
//! | (c) fusion | rules `fuse`, `fuse-component`, [`fusion`]; lengths are sizes, which stay |
//! | (d) tuples | rules `component`, `same-tuple` |
//! | (e) iteration | rules `fold-of-none`, `fold-once`, `sum-of-mask`, `unroll-fold` |
//! | (f) conditionals | rules `if-same`, `if-one-hot`, `mask-product`, ...; `rebuild` decides branches, and moves into them what uses an array that they build |
//! | (g) fission | rules `split-fold`, `split-build`, [`live`] |
//!
//! | module | owns |
//! | --- | --- |
//! | [`engine`] | the strategy: passes in rounds |
//! | [`rules`] | the rules, by construct |
//! | `rebuild` | a function written anew: rules, common subexpressions, hoisting |
//! | `turn` | loops over directions, inside of the loops in them |
//! | `apart` | a function that chooses by its sizes, as two |
//! | [`live`] | what is used, to the field |
//! | [`fusion`] | which arrays vanish, by cost |
//! | [`merge`] | which loops, and which branches, become one |
//! | `products` | of which sums a common factor may be taken out |
//! | [`cost`] | what a program costs |
//! | `dependence` | what depends on what, to the scalar in arrays and tuples |
//! | `ranges` | what is known of integers |
//! | `key` | expressions equal up to names |
//! | [`report`] | what was done |
//! | [`check`] | whether a program still computes the same, for tests and fuzzers |

mod apart;
pub mod check;
pub mod cost;
mod dependence;
pub mod engine;
pub mod fusion;
mod key;
pub mod live;
pub mod merge;
mod products;
mod ranges;
mod rebuild;
pub mod report;
pub mod rules;
mod turn;
mod walk;

pub use engine::{Options, explain, optimise, optimise_watched};
pub use report::{Measure, Report, StopReason};
