//! Bundle adjustment of a film: finds the camera of each picture and the positions of tracked points that minimise the
//! distances between projected and marked points.
//!
//! | module | owns |
//! | --- | --- |
//! | [`problem`] | cameras, points, marks; the F~ program; a synthetic problem |
//! | [`libmv`] | problems in the format of Ceres' `libmv_bundle_adjuster` |
//! | [`normal`] | the damped normal equations, solved by the Schur complement |
//! | [`refine`](mod@refine) | Levenberg-Marquardt |
//! | [`picture`] | a histogram of the errors before and after, as SVG |

pub mod libmv;
pub mod normal;
pub mod picture;
pub mod problem;
pub mod refine;

pub use problem::Problem;
pub use refine::{Refined, refine};
