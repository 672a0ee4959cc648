//! The cost model beside the machine: `cargo xtask calibrate`, and `cargo xtask calibrate CLASS` to write the table of
//! a machine class.
//!
//! Each row has two kernels, the second of which does some work more. Printed are the time of that work by the model
//! ([`chainrule_kernel::time`]) and as measured, both in units, and their ratio, without lanes and in lanes. The unit
//! is the measured time of a fused product in lanes. Times are the least of many runs, in turn. Arrays lie in the first
//! cache, elements of rows of 40 in the second. Lines of arrays that caches have no room for follow.
#![allow(clippy::unwrap_used)] // a program for people who work on Chainrule
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code, unused_imports))]

use chainrule_kernel::weights::is_costly;
use chainrule_kernel::{Class, Kernel, parse, time};
#[cfg(all(target_arch = "x86_64", unix))]
use chainrule_native::{Bound, Options, Program, Workspace};
use chainrule_ops::{Op, ROWS};
use chainrule_runtime::{Backend as _, Elements};
use std::fmt::Write as _;
use std::path::Path;
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
    name: String,
    /// Lines of the second kernel, repeated. From the last number, `R`, they make `S`; `X` is the element of the first
    /// argument at `AT`, `H` is 0.5, `E` is 1, `K` the number of the repetition, and other letters are registers.
    more: String,
    times: usize,
    /// Whether the work is measured without lanes too.
    is_plain: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Loops {
    /// One iteration an element.
    Plain,
    /// Blocks of eight elements.
    Lanes,
}

/// Names of rows that the table of a class is made from.
const PRODUCT: &str = "fused product";
const SUM: &str = "sum";
const SELECTION: &str = "comparison and selection";
const ADJACENT: &str = "adjacent element";
const STRIDED: &str = "every third element";
const BESIDE: &str = "every third element and its neighbour";
const FAR: &str = "element of each row of 40";
const INDEXED: &str = "element by a table of indices";
const INDEXED_TWICE: &str = "two elements by a table of indices";

fn rows() -> Vec<Row> {
    let row = |name: &str, is_plain, times, more: &str| Row { name: name.into(), more: more.into(), times, is_plain };
    let mut rows = vec![
        row(PRODUCT, true, 8, "S = mul_add R, H, X"),
        row(SUM, true, 8, "S = add R, H"),
        row(SELECTION, true, 4, "C = lt R, H; S = select C, X, R"),
        row(ADJACENT, true, 4, "L = load b0[AT + K]; S = add R, L"),
        row(STRIDED, false, 1, "L = load b0[3*AT + K]; S = add R, L"),
        row(BESIDE, false, 1, "L = load b0[3*AT + 2*K]; M = load b0[3*AT + 2*K + 1]; S = mul_add R, L, M"),
        row(FAR, false, 4, "L = load b0[40*AT + 8*K]; S = add R, L"),
        row(INDEXED, false, 1, "I = load b1[AT]; L = load b0[I]; S = add R, L"),
        row(INDEXED_TWICE, false, 1, "I = load b1[AT]; L = load b0[I]; M = load b0[I + 8]; S = mul_add R, L, M"),
    ];
    rows.extend(ROWS.iter().filter(|row| is_costly(row.op)).map(|row| Row {
        name: row.name.to_owned(),
        more: operator(row.op),
        times: 1,
        is_plain: true,
    }));
    rows
}

/// Returns the code of an operator at arguments of its domain, and a sum.
fn operator(op: Op) -> String {
    let inside = |a: &[f64]| (op.row().domain.contains)(a);
    let (make, arguments) = match op.arity() {
        1 if inside(&[0.75]) && inside(&[1.25]) => ("", "X"),
        1 if inside(&[0.375]) => ("P = mul X, H; ", "P"),
        1 => ("P = add X, E; ", "P"),
        _ if inside(&[0.75, 0.5]) => ("", "X, H"),
        _ => ("", "E, X"),
    };
    format!("{make}Q = {} {arguments}; S = add R, Q", op.row().name)
}

/// Returns the kernel with the `times` times repeated work of `row`.
fn kernel(row: &Row, loops: Loops, times: usize) -> Kernel {
    let is_lanes = loops == Loops::Lanes;
    let (at, loops, indent) = match loops {
        Loops::Plain => ("r0", format!("for r0 in 0..{N}\n"), "  "),
        Loops::Lanes => ("8*r1 + r0", format!("for r1 in 0..{}\n  for r0 in 0..8 at once\n", N / 8), "    "),
    };
    let mut text = format!(
        "kernel f\ninput x: real[{ROOM}] in b0\ninput t: int[{N}] in b1\noutput y: real[{N}] in b2\nr2 = 0.5\nr5 = 1.0\n{loops}"
    );
    let mut next = 10;
    let line = |text: &mut String, code: &str| writeln!(text, "{indent}{code}").unwrap();
    line(&mut text, &format!("r3 = load b0[{at}]"));
    line(&mut text, "r4 = mul_add r3, r2, r2");
    let mut last = "r4".to_owned();
    for k in 0..times {
        let scaled = |by: usize| if is_lanes { format!("{}*r1 + {by}*r0", 8 * by) } else { format!("{by}*r0") };
        let names = ["S", "C", "L", "M", "I", "P", "Q"].map(|name| {
            next += 1;
            (name, format!("r{next}"))
        });
        for code in row.more.split("; ") {
            let mut code = code.replace("3*AT", &scaled(3)).replace("40*AT", &scaled(40)).replace("AT", at);
            code = code.replace("8*K", &(8 * k + 8).to_string()).replace("2*K", &(2 * k).to_string());
            code = code.replace('K', &(k + 1).to_string());
            code = code.replace('R', &last).replace('H', "r2").replace('X', "r3").replace('E', "r5");
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

/// Model and measurement of the additional work of a row, in units and in ns.
#[derive(Clone, Copy)]
struct Times {
    model: f64,
    ns: f64,
}

#[cfg(all(target_arch = "x86_64", unix))]
fn main() {
    let rows = rows();
    let measured: Vec<(Option<Times>, Times)> =
        rows.iter().map(|row| (row.is_plain.then(|| measure(row, Loops::Plain)), measure(row, Loops::Lanes))).collect();
    let unit = measured[0].1.ns;
    println!("The unit is {unit:.3} ns, the time of a {PRODUCT} in lanes.");
    println!("{:<40} {:^26}   {:^26}", "", "without lanes", "in lanes");
    let head = format!("{:>8} {:>9} {:>7}", "model", "measured", "ratio");
    println!("{:<40} {head}   {head}", "work");
    let mut logs = Vec::new();
    for (row, (plain, lanes)) in rows.iter().zip(&measured) {
        let [plain, lanes] = [*plain, Some(*lanes)].map(|times| match times {
            None => format!("{:>26}", ""),
            Some(Times { model, ns }) => {
                let ratio = ns / unit / model;
                logs.push(ratio.ln().abs());
                format!("{model:>8.2} {:>9.2} {ratio:>7.2}", ns / unit)
            }
        });
        println!("{:<40} {plain}   {lanes}", row.name);
    }
    let levels = levels();
    for (room, ns) in &levels {
        println!("A cache line of an array that {:.0} KiB have no room for takes {:.2}.", room / 1024.0, ns / unit);
    }
    let off = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    println!("The model is off by a factor of {off:.2} in geometric mean.");
    let class = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if let Some(class) = class {
        let file = class.replace('-', "_");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../kernel/src/weights/{file}.rs"));
        std::fs::write(&path, table(&class, &rows, &measured, &levels)).unwrap();
        println!("{} is written.", path.display());
    }
}

/// Returns the table of a machine class as Rust code.
fn table(class: &str, rows: &[Row], measured: &[(Option<Times>, Times)], levels: &[(f64, f64); 3]) -> String {
    let unit = measured[0].1.ns;
    let plain_unit = measured[0].0.map_or(unit, |times| times.ns);
    let of = |name: &str| {
        let (plain, lanes) = measured[rows.iter().position(|row| row.name == name).unwrap()];
        (plain.map_or(0.0, |times| times.ns / plain_unit), lanes.ns / unit)
    };
    // A selection row has two cheap instructions, and so has an element with its sum.
    let cheap = |pick: fn((f64, f64)) -> f64| {
        (pick(of(PRODUCT)) + pick(of(SUM)) + pick(of(SELECTION)) + pick(of(ADJACENT))) / 6.0
    };
    let (plain, lanes) = (cheap(|t| t.0), cheap(|t| t.1));
    let above = |name: &str, less: f64| (of(name).1 - less).max(lanes);
    let (strided, indexed) = (above(STRIDED, lanes), above(INDEXED_TWICE, of(INDEXED).1));
    let mut text = format!(
        "//! Weights of the machine class {class}. Written by `cargo xtask calibrate {class}`.\n\n\
         use super::{{Weight, Weights}};\nuse chainrule_ops::Op;\n\n\
         pub(super) const {}: Weights = Weights {{\n    class: \"{class}\",\n    unit_ns: {unit:.3},\n    \
         plain_unit: {:.2},\n    levels: [{}],\n    cheap: Weight {{ plain: {plain:.2}, lanes: {lanes:.2} }},\n    strided: {strided:.2},\n    \
         strided_far: {:.2},\n    beside: {:.2},\n    index: {:.2},\n    indexed: {indexed:.2},\n    operators: &[\n",
        class.to_uppercase().replace('-', "_"),
        plain_unit / unit,
        levels.map(|(room, ns)| format!("({room:.1}, {:.1})", ns / unit)).join(", "),
        above(FAR, lanes),
        above(BESIDE, of(STRIDED).1),
        above(INDEXED, indexed + lanes),
    );
    for row in ROWS.iter().filter(|row| is_costly(row.op)) {
        let (whole, blocks) = of(row.name);
        let others = if operator(row.op).starts_with('P') { 2.0 } else { 1.0 };
        let (whole, blocks) = ((whole - others * plain).max(plain), (blocks - others * lanes).max(lanes));
        writeln!(text, "        (Op::{:?}, Weight {{ plain: {whole:.2}, lanes: {blocks:.2} }}),", row.op).unwrap();
    }
    text + "    ],\n};\n"
}

#[cfg(all(target_arch = "x86_64", unix))]
fn measure(row: &Row, loops: Loops) -> Times {
    let kernels = [0, row.times].map(|times| kernel(row, loops, times));
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
    let steps = if loops == Loops::Lanes { N / 8 } else { N };
    let each = (steps * row.times) as f64;
    Times { model: (more - less) / each, ns: (least[1] - least[0]) / each }
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

/// Returns the caches by level: their room in bytes, and the ns of a cache line of arrays that the next level or memory
/// holds.
#[cfg(all(target_arch = "x86_64", unix))]
fn levels() -> [(f64, f64); 3] {
    let rooms = [0usize, 2, 3].map(|index| {
        let size = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"));
        let kib = size.ok().and_then(|size| size.trim().trim_end_matches('K').parse::<usize>().ok());
        kib.unwrap_or([32, 1024, 32_768][index.saturating_sub(1)]) << 10
    });
    let [_, second, third] = rooms;
    let lines = [second / 2, third / 2, 8 * third].map(|bytes| bytes / 64);
    std::array::from_fn(|level| (rooms[level] as f64, line_ns(lines[level])))
}

/// Returns the ns of each of `lines` cache lines that are read one after the other, eight at once.
#[cfg(all(target_arch = "x86_64", unix))]
fn line_ns(lines: usize) -> f64 {
    let n = lines / 8;
    let each = |code: &dyn Fn(usize) -> String| (0..8).map(code).collect::<String>();
    let carried = each(&|k| format!(", r{} = r2 then r{}", 10 + k, 30 + k));
    let added = each(&|k| {
        let (sum, x, next) = (10 + k, 20 + k, 30 + k);
        format!("    r{x} = load b0[64*r1 + r0 + {}]\n    r{next} = add r{sum}, r{x}\n", 8 * k)
    });
    let stored = each(&|k| format!("  store b1[r0 + {}] = r{}\n", 8 * k, 10 + k));
    let text = format!(
        "kernel f\ninput x: real[{}] in b0\noutput y: real[64] in b1\nfor r0 in 0..8 at once\n  r2 = -0.0\n  \
         for r1 in 0..{n}{carried}\n{added}{stored}",
        64 * n
    );
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?} in\n{text}"));
    let program = Program::new(Arc::new(kernel), &Options::default()).unwrap();
    let sizes = program.bind(&[&[64 * n]], &[]).unwrap();
    let workspace = Workspace::new(&program, &sizes);
    let mut x = Elements::zeros(Class::Real, 64 * n);
    // Pages that nothing was written to may all be one page.
    x.reals_mut().fill(1.0);
    let mut bound = program.bound(sizes, vec![x], workspace).unwrap();
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS / 8 {
        let begin = Instant::now();
        bound.run().unwrap();
        least = least.min(begin.elapsed().as_secs_f64() * 1e9 / (8 * n) as f64);
    }
    least
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn main() {
    println!("Native code is for x86-64 machines.");
}
