//! The scalar graph: hash-consed expressions over the operators of `chainrule-ops`.
//!
//! A [`Graph`] only grows; a node's arguments always have smaller ids than the node, so ascending id
//! order is a topological order, and every traversal is a loop, never a recursion.
//!
//! | module | owns |
//! | --- | --- |
//! | `graph` | nodes, hash-consed |
//! | `simplify` | simplification at construction: [`Graph::apply`] |
//! | `external` | users' own functions |
//! | `derivative` | unexpanded derivatives inside of expressions |
//! | `partials` | local partial derivatives as nodes |
//! | [`optimise`] | algebraic optimisation: the same values from fewer operations |
//! | `print` | listings, short expressions, Graphviz |
//! | `evaluate` | evaluation of a graph in any algebra; operation counts |
//! | `number` | value numbering by random evaluation, scale freedom: [`number()`] |
//! | `traverse` | reachable nodes, uses, levels, dependence |
//! | `copy` | extraction, import, substitution |
//! | `origin` | origins of nodes, for diagnostics |
//! | `verify` | invariants, checked after each pass with debug assertions: [`verify()`] |
//! | `dominators` | dominators and postdominators of any directed graph |
//! | [`generate`] | random and large graphs, for tests, fuzz targets and benchmarks |
//!
//! ```
//! use chainrule_graph::{Graph, Semantics};
//! use chainrule_ops::Op;
//! let mut g = Graph::new(Semantics::Algebraic);
//! let (x, y) = (g.input("x"), g.input("y"));
//! let difference = g.sub(x, y);
//! let opposite = g.sub(y, x);
//! assert_eq!(opposite, g.neg(difference));
//! let sine = g.apply(Op::Sin, &[opposite]);
//! assert_eq!(g.f64_at(&[0.5, 0.5], &[sine]).unwrap(), [0.0]);
//! ```

mod copy;
mod derivative;
mod dominators;
mod evaluate;
mod external;
#[cfg(feature = "generate")]
pub mod generate;
mod graph;
mod number;
pub mod optimise;
mod origin;
mod partials;
mod print;
mod simplify;
mod taylor;
mod traverse;
mod verify;

pub use dominators::Dominators;
pub use evaluate::{counts, evaluate, node_counts};
pub use external::{ExternalDerivative, ExternalFunction, PartialsFn, ValueFn};
pub use graph::{ExternalId, Graph, InputId, Node, NodeId};
pub use number::{NumberReport, Numbered, Numbering, number};
pub use origin::{Origin, OriginId};
pub use partials::partial;
pub use taylor::derivatives_of_order;
pub use traverse::NodeSet;
pub use verify::verify;

pub use chainrule_ops::Semantics;
