//! `mathfun`: errors of the elementary functions and the time of a value, compared with the functions of the system
//! (glibc on Linux, through the standard library's methods) and of the `libm` crate.

#[path = "../../crates/mathfun/tests/support/arguments.rs"]
#[allow(dead_code)]
mod arguments;
#[path = "../../crates/mathfun/tests/support/truth.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod truth;

use chainrule_cases::Xorshift;
use chainrule_mathfun::{self as ours, Form, Function};
use clap::Args;
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;
use truth::{Truth, ulps};

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Only these functions, by C's names: sin, cos, sincos, tan, exp, expm1, log, log1p, cbrt, sinh, cosh, tanh,
    /// asinh, acosh, atanh, atan, erf, atan2, hypot, pow.
    #[arg(long = "function", value_delimiter = ',')]
    functions: Vec<String>,
    /// Arguments of each function for the errors; 0 skips them.
    #[arg(long, default_value_t = 50_000)]
    arguments: usize,
    /// Rounds of timing; the median counts.
    #[arg(long, default_value_t = 301)]
    rounds: usize,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Values in a call of an engine, which fit into the first cache.
const VALUES: usize = 1024;

/// One point of each engine.
struct Engines {
    function: Function,
    ours: fn(f64, f64) -> f64,
    system: fn(f64, f64) -> f64,
    libm: fn(f64, f64) -> f64,
    /// Interval of the arguments for timing.
    first: (f64, f64),
    second: (f64, f64),
}

fn engines() -> Vec<Engines> {
    macro_rules! unary {
        ($function:ident, $ours:ident, $system:ident, $libm:ident, $low:expr, $high:expr) => {
            Engines {
                function: Function::$function,
                ours: |x, _| ours::$ours(x),
                system: |x, _| x.$system(),
                libm: |x, _| libm::$libm(x),
                first: ($low, $high),
                second: (0.0, 0.0),
            }
        };
    }
    vec![
        unary!(Sin, sin, sin, sin, -10.0, 10.0),
        unary!(Cos, cos, cos, cos, -10.0, 10.0),
        Engines {
            function: Function::SinCos,
            ours: |x, _| sum(ours::sin_cos(x)),
            system: |x, _| sum(x.sin_cos()),
            libm: |x, _| sum(libm::sincos(x)),
            first: (-10.0, 10.0),
            second: (0.0, 0.0),
        },
        unary!(Exp, exp, exp, exp, -10.0, 10.0),
        unary!(Expm1, expm1, exp_m1, expm1, -2.0, 2.0),
        unary!(Log, log, ln, log, 0.0, 100.0),
        unary!(Log1p, log1p, ln_1p, log1p, -0.9, 10.0),
        unary!(Sinh, sinh, sinh, sinh, -10.0, 10.0),
        unary!(Cosh, cosh, cosh, cosh, -10.0, 10.0),
        unary!(Tanh, tanh, tanh, tanh, -3.0, 3.0),
        unary!(Asinh, asinh, asinh, asinh, -10.0, 10.0),
        unary!(Acosh, acosh, acosh, acosh, 1.0, 20.0),
        unary!(Atanh, atanh, atanh, atanh, -1.0, 1.0),
        unary!(Cbrt, cbrt, cbrt, cbrt, -100.0, 100.0),
        unary!(Tan, tan, tan, tan, -10.0, 10.0),
        unary!(Atan, atan, atan, atan, -5.0, 5.0),
        // The standard library has none.
        Engines {
            function: Function::Erf,
            ours: |x, _| ours::erf(x),
            system: |x, _| libm::erf(x),
            libm: |x, _| libm::erf(x),
            first: (-4.0, 4.0),
            second: (0.0, 0.0),
        },
        Engines {
            function: Function::Atan2,
            ours: ours::atan2,
            system: f64::atan2,
            libm: libm::atan2,
            first: (-5.0, 5.0),
            second: (-5.0, 5.0),
        },
        Engines {
            function: Function::Hypot,
            ours: ours::hypot,
            system: f64::hypot,
            libm: libm::hypot,
            first: (-5.0, 5.0),
            second: (-5.0, 5.0),
        },
        Engines {
            function: Function::Pow,
            ours: ours::pow,
            system: f64::powf,
            libm: libm::pow,
            first: (0.0, 10.0),
            second: (-10.0, 10.0),
        },
    ]
}

fn sum((a, b): (f64, f64)) -> f64 {
    a + b
}

/// Prints the errors, then the times.
///
/// # Errors
/// Fails if there is no function of a requested name.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(unknown) = options.functions.iter().find(|name| Function::ALL.iter().all(|f| f.name() != **name)) {
        let names: Vec<_> = Function::ALL.iter().map(|f| f.name()).collect();
        return Err(format!("there is no function `{unknown}`; the functions are {}", names.join(", ")).into());
    }
    let mut all = engines();
    if !options.functions.is_empty() {
        all.retain(|engines| options.functions.iter().any(|name| name == engines.function.name()));
    }
    if options.arguments > 0 {
        if !options.json {
            println!("Largest errors in ulp, against values of 115 digits:\n");
            println!("{:<7} {:>9} {:>9} {:>9} {:>9}  ours at", "", "arguments", "ours", "system", "libm");
        }
        for engines in &all {
            errors(engines, options);
        }
    }
    if options.rounds > 0 {
        if !options.json {
            println!("\nns per value, medians, one point by one call a value; ours/system for one point:\n");
            println!(
                "{:<7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}",
                "", "system", "libm", "ours", "4 lanes", "8 lanes", "ours/system"
            );
        }
        for engines in &all {
            times(engines, options);
        }
    }
    Ok(())
}

fn errors(engines: &Engines, options: &Options) {
    let function = engines.function;
    let name = function.name();
    // Both together have the bits of each; `lanes` tests that.
    if function == Function::SinCos {
        return;
    }
    let pairs: Vec<(f64, f64)> = if function.arity() == 2 {
        let mut pairs = arguments::pairs_of(name, options.arguments);
        // For other arguments, C99 defines the result.
        pairs.retain(|(a, b)| {
            let inside = if name == "pow" { *a > 0.0 || b.fract() == 0.0 } else { true };
            a.is_finite() && b.is_finite() && *a != 0.0 && inside
        });
        pairs
    } else {
        arguments::of(name, options.arguments).into_iter().map(|x| (x, 0.0)).collect()
    };
    let mut truth = Truth::new();
    let mut worst = [(0.0, (0.0, 0.0)); 3];
    for (a, b) in &pairs {
        let exact = if function.arity() == 2 { truth.value(name, &[*a, *b]) } else { truth.value(name, &[*a]) };
        for (worst, engine) in worst.iter_mut().zip([engines.ours, engines.system, engines.libm]) {
            let error = ulps(engine(*a, *b), &exact);
            if error > worst.0 {
                *worst = (error, (*a, *b));
            }
        }
    }
    let at = worst[0].1;
    if options.json {
        let [ours, system, libm] = worst.map(|w| w.0);
        println!(
            "{}",
            json!({"function": name, "arguments": pairs.len(), "ulp": ours, "system_ulp": system, "libm_ulp": libm, "at": [at.0, at.1]})
        );
    } else {
        let at = if function.arity() == 2 { format!("{:e}, {:e}", at.0, at.1) } else { format!("{:e}", at.0) };
        println!("{name:<7} {:>9} {:>9.4} {:>9.4} {:>9.4}  {at}", pairs.len(), worst[0].0, worst[1].0, worst[2].0);
    }
}

fn times(engines: &Engines, options: &Options) {
    let function = engines.function;
    let mut random = Xorshift::new(11);
    let mut draw = |(low, high): (f64, f64)| (0..VALUES).map(|_| random.between(low, high)).collect::<Vec<f64>>();
    let (a, b) = (draw(engines.first), draw(engines.second));
    let (mut y, mut z) = (vec![0.0; VALUES], vec![0.0; VALUES]);
    let mut runs: Vec<Box<dyn FnMut()>> = Vec::new();
    for engine in [engines.system, engines.libm, engines.ours] {
        let (a, b, mut y) = (a.clone(), b.clone(), y.clone());
        runs.push(Box::new(move || {
            for ((a, b), y) in a.iter().zip(&b).zip(&mut y) {
                *y = engine(*a, *b);
            }
            black_box(&mut y);
        }));
    }
    for form in [Form::Lanes4, Form::Lanes8] {
        if !form.available() {
            continue;
        }
        let (a, b, mut y, mut z) = (a.clone(), b.clone(), std::mem::take(&mut y), std::mem::take(&mut z));
        y.resize(VALUES, 0.0);
        z.resize(VALUES, 0.0);
        runs.push(Box::new(move || {
            match function {
                Function::SinCos => ours::apply_sin_cos_in(form, &a, &mut y, &mut z),
                _ if function.arity() == 2 => ours::apply2_in(form, function, &a, &b, &mut y),
                _ => ours::apply1_in(form, function, &a, &mut y),
            }
            black_box((&mut y, &mut z));
        }));
    }
    // In turn, so that other work of the machine affects all alike.
    let mut samples = vec![Vec::new(); runs.len()];
    for _ in 0..options.rounds {
        for (run, samples) in runs.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            run();
            samples.push(start.elapsed().as_secs_f64() * 1e9 / VALUES as f64);
        }
    }
    let medians: Vec<f64> = samples
        .into_iter()
        .map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 2]
        })
        .collect();
    let lanes = |form: Form, at: usize| if form.available() { medians.get(at).copied() } else { None };
    let (four, eight) = (lanes(Form::Lanes4, 3), lanes(Form::Lanes8, 4));
    let ratio = medians[2] / medians[0];
    let name = function.name();
    if options.json {
        println!(
            "{}",
            json!({"function": name, "system_ns": medians[0], "libm_ns": medians[1], "ns": medians[2], "lanes4_ns": four, "lanes8_ns": eight, "ratio": ratio})
        );
    } else {
        let show = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{ns:.2}"));
        println!(
            "{name:<7} {:>8.2} {:>8.2} {:>8.2} {:>8} {:>8} {ratio:>12.2}",
            medians[0],
            medians[1],
            medians[2],
            show(four),
            show(eight)
        );
    }
}
