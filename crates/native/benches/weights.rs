//! The cost model beside the machine: `cargo xtask calibrate`.
//!
//! Each row has two kernels, the second of which does some work more. Printed are the time of that work by the model
//! for vectorisation ([`chainrule_kernel::time`]) and as measured, both in units of one cheap instruction, and their
//! ratio. The unit is the measured time of a fused product in lanes. Times are the least of many runs, in turn; arrays
//! lie in the first cache, rows of 40 at its limit.
#![allow(clippy::unwrap_used)] // a program for people who work on Chainrule
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code, unused_imports))]

use chainrule_kernel::{Class, Kernel, parse, time};
#[cfg(all(target_arch = "x86_64", unix))]
use chainrule_native::{Bound, Options, Program, Workspace};
use chainrule_runtime::{Backend as _, Elements};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Elements of each array.
const N: usize = 512;

/// Elements of the first argument.
const ROOM: usize = 41 * N;

/// Runs of each kernel in one measurement, and measurements.
const RUNS: usize = 64;
const ROUNDS: usize = 200;

/// Work that is weighed.
struct Row {
    name: &'static str,
    loops: Loops,
    /// Lines of the second kernel, repeated. From the last number, `R`, they make `S`; `X` is the element of the first
    /// argument at `AT`, `H` a constant, `K` the number of the repetition, and other letters are registers.
    more: &'static str,
    times: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Loops {
    /// One iteration an element.
    Plain,
    /// Blocks of eight elements.
    Lanes,
}

const ROWS: &[Row] = &[
    Row { name: "fused product, in lanes", loops: Loops::Lanes, more: "S = mul_add R, H, X", times: 8 },
    Row { name: "sum, in lanes", loops: Loops::Lanes, more: "S = add R, H", times: 8 },
    Row { name: "fused product", loops: Loops::Plain, more: "S = mul_add R, H, X", times: 8 },
    Row {
        name: "comparison and selection, in lanes",
        loops: Loops::Lanes,

        more: "C = lt R, H; S = select C, X, R",
        times: 4,
    },
    Row {
        name: "adjacent element, in lanes",
        loops: Loops::Lanes,

        more: "L = load b0[AT + K]; S = add R, L",
        times: 4,
    },
    Row {
        name: "every third element, in lanes",
        loops: Loops::Lanes,

        more: "L = load b0[3*AT + K]; S = add R, L",
        times: 1,
    },
    Row {
        name: "every third element and its neighbour, in lanes",
        loops: Loops::Lanes,

        more: "L = load b0[3*AT + 2*K]; M = load b0[3*AT + 2*K + 1]; S = mul_add R, L, M",
        times: 1,
    },
    Row {
        name: "element of each row of 40, in lanes",
        loops: Loops::Lanes,
        more: "L = load b0[40*AT + K]; S = add R, L",
        times: 1,
    },
    Row {
        name: "element by a table of indices, in lanes",
        loops: Loops::Lanes,

        more: "I = load b1[AT]; L = load b0[I]; S = add R, L",
        times: 1,
    },
    Row { name: "quotient, in lanes", loops: Loops::Lanes, more: "S = div_real X, R", times: 2 },
    Row { name: "quotient", loops: Loops::Plain, more: "S = div_real X, R", times: 2 },
    Row { name: "square root, in lanes", loops: Loops::Lanes, more: "S = sqrt R", times: 2 },
    Row { name: "square root", loops: Loops::Plain, more: "S = sqrt R", times: 2 },
    Row { name: "sign, in lanes", loops: Loops::Lanes, more: "Q = sign R; S = add Q, X", times: 2 },
    Row { name: "exponential, in lanes", loops: Loops::Lanes, more: "S = exp X", times: 1 },
    Row { name: "exponential", loops: Loops::Plain, more: "S = exp X", times: 1 },
    Row { name: "logarithm, in lanes", loops: Loops::Lanes, more: "S = log X", times: 1 },
    Row { name: "sine, in lanes", loops: Loops::Lanes, more: "S = sin X", times: 1 },
    Row { name: "hyperbolic tangent, in lanes", loops: Loops::Lanes, more: "S = tanh X", times: 1 },
    Row { name: "log-gamma function, in lanes", loops: Loops::Lanes, more: "S = lgamma X", times: 1 },
];

/// Returns the kernel with the `times` times repeated work of `row`.
fn kernel(row: &Row, times: usize) -> Kernel {
    let (at, loops, indent) = match row.loops {
        Loops::Plain => ("r0", format!("for r0 in 0..{N}\n"), "  "),
        Loops::Lanes => ("8*r1 + r0", format!("for r1 in 0..{}\n  for r0 in 0..8 at once\n", N / 8), "    "),
    };
    let mut text = format!(
        "kernel f\ninput x: real[{ROOM}] in b0\ninput t: int[{N}] in b1\noutput y: real[{N}] in b2\nr2 = 0.5\n{loops}"
    );
    let mut next = 10;
    let line = |text: &mut String, code: &str| writeln!(text, "{indent}{code}").unwrap();
    line(&mut text, &format!("r3 = load b0[{at}]"));
    line(&mut text, "r4 = mul_add r3, r2, r2");
    let mut last = "r4".to_owned();
    for k in 0..times {
        let step = row.loops == Loops::Lanes;
        let scaled = |by: usize| if step { format!("{}*r1 + {by}*r0", 8 * by) } else { format!("{by}*r0") };
        let names = ["S", "C", "L", "M", "I", "Q"].map(|name| {
            next += 1;
            (name, format!("r{next}"))
        });
        for code in row.more.split("; ") {
            let mut code = code.replace("3*AT", &scaled(3)).replace("40*AT", &scaled(40)).replace("AT", at);
            code = code.replace("2*K", &(2 * k).to_string()).replace('K', &(k + 1).to_string());
            code = code.replace('R', &last).replace('H', "r2").replace('X', "r3");
            for (name, reg) in &names {
                code = code.replace(name, reg);
            }
            line(&mut text, &code);
        }
        last.clone_from(&names[0].1);
    }
    line(&mut text, &format!("store b2[{at}] = {last}"));
    parse(&text).unwrap_or_else(|e| panic!("{e:?} in\n{text}"))
}

#[cfg(all(target_arch = "x86_64", unix))]
fn main() {
    let measured: Vec<(f64, f64)> = ROWS.iter().map(measure).collect();
    let unit = measured[0].1;
    println!("The unit is {unit:.3} ns, the time of {}.", ROWS[0].name);
    println!("{:<48} {:>8} {:>9} {:>6}", "work", "model", "measured", "ratio");
    let mut logs = Vec::new();
    for (row, (model, real)) in ROWS.iter().zip(&measured) {
        let ratio = real / unit / model;
        println!("{:<48} {model:>8.2} {:>9.2} {ratio:>6.2}", row.name, real / unit);
        logs.push(ratio.ln().abs());
    }
    let off = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    println!("The model is off by a factor of {off:.2} in geometric mean.");
}

/// Returns the time of the additional work of a block, or of an iteration: by the model, and in ns.
#[cfg(all(target_arch = "x86_64", unix))]
fn measure(row: &Row) -> (f64, f64) {
    let kernels = [0, row.times].map(|times| kernel(row, times));
    let [less, more] = [&kernels[0], &kernels[1]].map(time);
    let programs = kernels.map(|kernel| Program::new(Arc::new(kernel), &Options::default()).unwrap());
    let mut bound: Vec<Bound<'_>> = programs.iter().map(bind).collect();
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (bound, least) in bound.iter_mut().zip(&mut least) {
            let begin = Instant::now();
            for _ in 0..RUNS {
                bound.run().unwrap();
            }
            *least = least.min(begin.elapsed().as_secs_f64() * 1e9 / RUNS as f64);
        }
    }
    let steps = if row.loops == Loops::Lanes { N / 8 } else { N };
    let each = (steps * row.times) as f64;
    ((more - less) / each, (least[1] - least[0]) / each)
}

#[cfg(all(target_arch = "x86_64", unix))]
fn bind(program: &Program) -> Bound<'_> {
    let sizes = program.bind(&[&[ROOM], &[N]], &[]).unwrap();
    let x: Vec<f64> = (0..ROOM).map(|i| 0.75 + 0.5 * (i as f64 * 0.618).fract()).collect();
    let t: Vec<i64> = (0..N as i64).map(|i| (i * 7) % N as i64).collect();
    let workspace = Workspace::new(program, &sizes);
    let mut reals = Elements::zeros(Class::Real, x.len());
    reals.reals_mut().copy_from_slice(&x);
    program.bound(sizes, vec![reals, Elements::Int(t)], workspace).unwrap()
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn main() {
    println!("Native code is for x86-64 machines.");
}
