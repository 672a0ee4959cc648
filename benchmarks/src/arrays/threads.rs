//! One evaluation on threads: each objective and derivative compiled without threads, as parallel loops on one thread,
//! and on several. Ratios are to the first. Each thread has a processor of its own: otherwise a thread that wakes may
//! wait behind the calling one until the scheduler moves it, which takes longer than most loops.

use super::problems::Problem;
use super::{Options, compile_with, print_row};
use crate::measure::Runner;
use chainrule::Function;
use serde_json::json;

/// Returns the columns for a number of threads.
fn head(threads: usize) -> [(String, &'static str); 8] {
    let column = |text: &str, unit| (text.to_owned(), unit);
    [
        column("problem", ""),
        column("value", "us"),
        column("in parts", ""),
        (format!("on {threads}"), ""),
        column("with d", "us"),
        column("in parts", ""),
        (format!("on {threads}"), ""),
        column("memory d", "numbers"),
    ]
}

/// Pins the calling thread and the threads of the global pool to processors.
///
/// # Errors
/// Fails if the pool has been started before.
pub(super) fn pin(threads: usize) -> Result<(), Box<dyn std::error::Error>> {
    pin_to(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.saturating_sub(1).max(1));
    Ok(pool.start_handler(|t| pin_to(t + 1)).build_global()?)
}

/// Pins the calling thread to a processor, where the system allows that.
#[allow(unsafe_code)]
fn pin_to(processor: usize) {
    #[cfg(target_os = "linux")]
    if processor < libc::CPU_SETSIZE as usize {
        // SAFETY: a set of processors is an array of bits, and has the bit of this one.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = processor;
}

/// Prints the head of the table.
pub(super) fn print_head(threads: usize) {
    print_row(&head(threads).map(|(name, _)| name));
    print_row(&head(threads).map(|(_, unit)| unit.to_owned()));
}

/// Measures and prints one row.
///
/// # Errors
/// Fails if a program is wrong, or its results depend on the number of threads.
pub(super) fn one(problem: &Problem, options: &Options, threads: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (objective, derivative) = (problem.make)(None)?;
    let value = measure(&objective, problem, options, threads)?;
    let with_derivative = measure(&derivative, problem, options, threads)?;
    if options.json {
        let object = |m: &Measured| json!({ "us": m.us, "in_parts": m.in_parts, "on_threads": m.on_threads });
        println!(
            "{}",
            json!({
                "problem": problem.name, "threads": threads, "value": object(&value),
                "derivative": object(&with_derivative), "memory_derivative": with_derivative.memory,
            })
        );
        return Ok(());
    }
    let mut row = vec![problem.name.clone()];
    for m in [&value, &with_derivative] {
        row.extend([format!("{:.1}", m.us), format!("{:.2}", m.in_parts), format!("{:.2}", m.on_threads)]);
    }
    row.push(with_derivative.memory.to_string());
    print_row(&row);
    Ok(())
}

struct Measured {
    us: f64,
    in_parts: f64,
    on_threads: f64,
    /// Numbers of workspace of the calling thread.
    memory: usize,
}

fn measure(
    function: &Function,
    problem: &Problem,
    options: &Options,
    threads: usize,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let plain = compile_with(function, options, None)?;
    let (in_parts, on_threads) =
        (compile_with(function, options, Some(1))?, compile_with(function, options, Some(threads))?);
    let mut plain = plain.prepare(&problem.args)?;
    let (mut in_parts, mut on_threads) = (in_parts.prepare(&problem.args)?, on_threads.prepare(&problem.args)?);
    in_parts.run()?;
    on_threads.run()?;
    if in_parts.result(0) != on_threads.result(0) {
        return Err(format!("{}: the result depends on the number of threads", problem.name).into());
    }
    let memory = on_threads.workspace_len();
    let mut runners = [&mut plain, &mut in_parts, &mut on_threads].map(|at| {
        Runner::new(1, move || {
            let _ = at.run();
        })
    });
    for _ in 0..options.rounds {
        runners.iter_mut().for_each(Runner::sample);
    }
    let [plain, in_parts, on_threads] = &runners;
    Ok(Measured {
        us: plain.median() / 1e3,
        in_parts: in_parts.ratio(plain),
        on_threads: on_threads.ratio(plain),
        memory,
    })
}
