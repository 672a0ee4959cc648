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
//! functional array-processing language* (2018), section 4.1 and figure 7. Differences from the paper: unsound rules
//! are corrected (`rules/README.md`), and the order of rules is searched, not given.
//!
//! | figure 7 | here |
//! | --- | --- |
//! | (a) ring structure | rules `neutral`, `zero`, `double`, `common-factor`, `sum-of-factor`, `mask-sum` |
//! | (b) lambda calculus | functions are inlined before; lets are statements |
//! | (c) fusion | rules `fuse`, `fuse-component`, [`fusion`]; lengths are sizes, which stay |
//! | (d) tuples | rules `component`, `same-tuple` |
//! | (e) iteration | rules `fold-of-none`, `fold-once`, `sum-of-mask`, `unroll-fold` |
//! | (f) conditionals | rules `if-same`, `if-one-hot`, `mask-product`, ...; branches in `rebuild` |
//!
//! | module | owns |
//! | --- | --- |
//! | [`engine`] | the strategy: passes in rounds |
//! | [`rules`] | the rules, by construct |
//! | `rebuild` | rebuilding of a function: rules, common subexpressions, hoisting |
//! | `turn` | direction sinking: loops over directions move inside others |
//! | `apart` | splitting of a function that branches on its sizes |
//! | [`live`] | liveness, to the field |
//! | [`fusion`] | vertical fusion, by cost |
//! | [`merge`] | horizontal fusion of loops and branches |
//! | `hoist` | hoisting before differentiation |
//! | `products` | sums from which a common factor may be extracted |
//! | [`cost`] | the cost model |
//! | `dependence` | dependences, to the scalars in arrays and tuples |
//! | `ranges` | ranges of integers |
//! | `conditions` | consequences of conditions |
//! | `key` | expressions up to names |
//! | [`report`] | report of the optimiser |
//! | [`check`] | checker of optimised programs, for tests and fuzzers |

mod apart;
pub mod check;
mod conditions;
pub mod cost;
mod dependence;
pub mod engine;
pub mod fusion;
mod hoist;
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
pub use hoist::hoisted;
pub use report::{Measure, Report, StopReason};
