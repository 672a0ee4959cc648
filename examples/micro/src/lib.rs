//! Small benchmark problems of the field in F~: those of GradBench, and the dF~ paper's (Shaikhha et al., 2018, figures
//! 8 to 11). Each constant is the text of a program.
//!
//! | program | functions | subject |
//! | --- | --- | --- |
//! | [`LLSQ`] | `llsq x n` | linear least squares on n points |
//! | [`LSE`] | `lse x` | log-sum-exp |
//! | [`ODE`] | `ode x s`, `odeLast x s` | Runge-Kutta in s steps |
//! | [`DET`] | `det a sets`, `det5 a` | expansion by minors |
//! | [`KMEANS`] | `cost`, `curvature`, `direction` | points and centroids |
//! | [`MICRO`] | `dot`, `maximum`, `add`, `scale`, `misfit`, `projectAll`, each with its derivative | the paper's |

/// Least squares.
pub const LLSQ: &str = include_str!("../programs/llsq.ft");

/// The logarithm of a sum of exponentials.
pub const LSE: &str = include_str!("../programs/lse.ft");

/// Differential equations.
pub const ODE: &str = include_str!("../programs/ode.ft");

/// Determinants.
pub const DET: &str = include_str!("../programs/det.ft");

/// Clusters of points.
pub const KMEANS: &str = include_str!("../programs/kmeans.ft");

/// The dF~ paper's.
pub const MICRO: &str = include_str!("../programs/micro.ft");
