//! Bundle adjustment of a film: where the camera was in each picture, and where the points are that were tracked through
//! them, so that the points are seen where they were marked.
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
