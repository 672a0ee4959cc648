//! `chainrule test`.

use crate::request::{Derivative, Which};
use crate::{Outcome, explain, print, progress};
use clap::Args;

/// Compare a derivative with forward mode and central differences in extended precision
#[derive(Args)]
#[command(
    after_help = "At random points, the compiled derivative (in doubles) and the same program in 115 digits are compared
with forward mode in 115 digits, and that with central differences in 115 digits. Sizes and integer arguments that are not
given are small numbers.

Examples:
  chainrule test model.ft --size n=5
  chainrule test model.ft --what jacobian --strategy reverse --points 20 --range 0.5..2 --size n=3"
)]
pub struct Options {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    /// Number of points
    #[arg(long, default_value_t = 5, value_parser = points)]
    points: usize,
    /// Range of every coordinate of the points
    #[arg(long, default_value = "0.1..1.5", value_parser = range, allow_hyphen_values = true)]
    range: (f64, f64),
    /// Seed of the points
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum relative error
    #[arg(long, default_value_t = 1e-10, value_parser = tolerance)]
    tolerance: f64,
}

fn points(text: &str) -> Result<usize, String> {
    let number = text.trim().parse().ok().filter(|n| (1..=chainrule::check::MAX_POINTS).contains(n));
    number.ok_or_else(|| format!("write a number from 1 to {}, such as 5", chainrule::check::MAX_POINTS))
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|x: &f64| *x >= 0.0);
    number.ok_or_else(|| "write a number that is not negative, such as 1e-10".into())
}

fn range(text: &str) -> Result<(f64, f64), String> {
    let parse = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    match text.split_once("..").map(|(lo, hi)| (parse(lo), parse(hi))) {
        Some((Some(lo), Some(hi))) if lo <= hi => Ok((lo, hi)),
        _ => Err("write it as LOW..HIGH, such as -1..1".into()),
    }
}

/// Compares and prints the agreement.
pub fn run(options: &Options) -> Outcome {
    let function = options.which.load()?;
    let derivation = match options.derivative.on(&function) {
        Some(derivation) => derivation,
        None => function.jacobian().strategy(&options.derivative.strategy),
    };
    let settings = chainrule::check::Settings { points: options.points, range: options.range, seed: options.seed };
    let agreement = progress::during("comparing", || chainrule::check::compare(&function, &derivation, &settings))
        .map_err(|e| explain(&e))?;
    print(&format!("{agreement}"))?;
    let (worst, tolerance) = (agreement.worst(), options.tolerance);
    if worst <= tolerance {
        return Ok(());
    }
    let off = format!("error: the derivative is off by {worst:.1e}, more than {tolerance:.1e}");
    if agreement.precisely.max(agreement.from_differences) <= tolerance {
        return Err(format!(
            "{off}\n  help: in 115 digits it is right: what is lost is rounding. Write the function so that it loses less, \
             compare where it loses less (--range), or allow for it (--tolerance)"
        ));
    }
    Err(off)
}
