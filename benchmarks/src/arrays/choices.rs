//! One program compiled in several ways, with ratios to the first: with index checks and without, with all loop states
//! saved and with checkpoints. Results are checked to be equal bit for bit.

use super::problems::Problem;
use super::{Options, print_row};
use crate::measure::Runner;
use chainrule::{Checks, CompileOptions, Compiled, InRange};
use serde_json::json;

/// Numbers of checkpoints to try.
const CHECKPOINTS: [u32; 5] = [100, 30, 10, 5, 3];

/// A way of compiling, and its code.
type Way = (String, Compiled);

/// Measures the ways in turn, round by round; returns the ratio of each to the first, and its memory.
fn measure(problem: &Problem, ways: &[Way], rounds: usize) -> Result<Vec<(f64, usize)>, Box<dyn std::error::Error>> {
    let mut at = ways.iter().map(|(_, code)| code.prepare(&problem.args)).collect::<Result<Vec<_>, _>>()?;
    at.iter_mut().try_for_each(chainrule::Prepared::run)?;
    let memory: Vec<usize> = at.iter().map(chainrule::Prepared::workspace_len).collect();
    for (other, (name, _)) in at.iter().zip(ways) {
        if other.results() != at[0].results() {
            return Err(format!("{}: {name} computes something else", problem.name).into());
        }
    }
    let mut runners: Vec<Runner<'_>> = at
        .iter_mut()
        .map(|at| {
            Runner::new(1, || {
                let _ = at.run();
            })
        })
        .collect();
    for _ in 0..rounds {
        runners.iter_mut().for_each(Runner::sample);
    }
    Ok(runners.iter().zip(memory).map(|(runner, memory)| (runner.ratio(&runners[0]), memory)).collect())
}

/// Prints the head of [`checks`].
pub(super) fn print_head_of_checks() {
    print_row(&["problem", "", "checks", "code", "memory only", "code", "none", "code"].map(str::to_owned));
}

/// Prints one row for an objective and one for its derivative: the number of checks in the kernel; time and bytes of
/// code relative to those with all checks, with only the checks for memory safety, and with none.
///
/// # Errors
/// Fails if a program is wrong, or its results depend on the checks.
#[allow(unsafe_code)]
pub(super) fn checks(problem: &Problem, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let (objective, derivative) = (problem.make)(None)?;
    for (what, function) in [("value", objective), ("with d", derivative)] {
        // SAFETY: it only runs at the arguments of the problem, at which it has just run with its checks.
        let promised = Checks::None(unsafe { InRange::promised() });
        let compile = |checks| function.compile_with(&CompileOptions { checks, ..CompileOptions::default() });
        let all = compile(Checks::All)?;
        all.prepare(&problem.args)?.run()?;
        let n_checks = all.listing().matches("check ").count();
        let ways = [
            ("all".to_owned(), all),
            ("memory".to_owned(), compile(Checks::Memory)?),
            ("none".to_owned(), compile(promised)?),
        ];
        let bytes: Vec<usize> = ways.iter().map(|(_, code)| code.code().map_or(0, <[u8]>::len)).collect();
        let found = measure(problem, &ways, options.rounds)?;
        if options.json {
            println!(
                "{}",
                json!({"problem": problem.name, "what": what, "checks": n_checks, "code": bytes,
                    "memory_only": found[1].0, "none": found[2].0})
            );
            continue;
        }
        let mut row = vec![problem.name.clone(), what.to_owned(), n_checks.to_string(), bytes[0].to_string()];
        for k in [1, 2] {
            row.extend([format!("{:.3}", found[k].0), bytes[k].to_string()]);
        }
        print_row(&row);
    }
    Ok(())
}

/// Prints the head of [`checkpoints`].
pub(super) fn print_head_of_checkpoints() {
    print_row(&["problem", "states", "time", "memory", "memory"].map(str::to_owned));
    print_row(&["", "", "/ all kept", "numbers", "/ all kept"].map(str::to_owned));
}

/// Measures the derivative with all states saved and with fewer and fewer checkpoints; does nothing if it saves no
/// states.
///
/// # Errors
/// Fails if a program is wrong, or its results depend on the number of checkpoints.
pub(super) fn checkpoints(problem: &Problem, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let mut ways: Vec<Way> = Vec::new();
    for n in std::iter::once(None).chain(CHECKPOINTS.map(Some)) {
        let name = n.map_or_else(|| "all".to_owned(), |n| n.to_string());
        ways.push((name, (problem.make)(n)?.1.compile()?));
    }
    let kernels: Vec<String> = ways.iter().map(|(_, code)| code.listing()).collect();
    if kernels.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(());
    }
    let found = measure(problem, &ways, options.rounds)?;
    for ((name, _), (time, memory)) in ways.iter().zip(&found) {
        let ratio = *memory as f64 / found[0].1 as f64;
        if options.json {
            println!(
                "{}",
                json!({"problem": problem.name, "states": name, "time": time, "memory": memory, "memory_ratio": ratio})
            );
        } else {
            let memory_ratio = format!("{ratio:.4}");
            print_row(&[problem.name.clone(), name.clone(), format!("{time:.2}"), memory.to_string(), memory_ratio]);
        }
    }
    Ok(())
}
