//! The cost model beside the machine: `cargo xtask calibrate`, and `cargo xtask calibrate CLASS` to write the table of
//! a machine class.
//!
//! Each row has two kernels, the second of which does the same work more often. Printed are the time of that work by
//! the model ([`chainrule_kernel::time`]) and as measured, both in units, and their ratio, without lanes and in lanes.
//! The unit is the measured time of a fused product in lanes. Times are the least of many runs, in turn. Arrays lie in
//! the first cache, elements of rows of 40 in the second. Lines of arrays that caches have no room for follow, and what
//! only predictions use: loads and stores where nothing else limits, and latencies.
#![allow(clippy::unwrap_used)] // a program for people who work on Chainrule
#![cfg_attr(not(all(target_arch = "x86_64", unix)), allow(dead_code, unused_imports))]

use chainrule_kernel::weights::{is_costly, processor};
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
    /// Lines of the kernel, repeated. From a carried number, `R`, they make `S`; `X` is the element of the first
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
const INDEXED: &str = "element by a checked index";
const INDEXED_TWICE: &str = "two elements by a checked index";
const CHECKED_TWICE: &str = "element by an index with two checks";
const LOADS: &str = "two loads and a fused product";
const STORES: &str = "store";
const SHARED: &str = "two shared elements and a fused product";

fn rows() -> Vec<Row> {
    let row = |name: &str, is_plain, times, more: &str| Row { name: name.into(), more: more.into(), times, is_plain };
    let mut rows = vec![
        row(PRODUCT, true, 8, "S = mul_add R, H, X"),
        row(SUM, true, 8, "S = add R, H"),
        row(SELECTION, true, 8, "C = lt R, H; S = select C, X, R"),
        row(ADJACENT, true, 8, "L = load b0[AT + K]; S = add R, L"),
        row(STRIDED, false, 1, "L = load b0[3*AT + 16*K]; S = add R, L"),
        row(BESIDE, false, 1, "L = load b0[3*AT + 16*K]; M = load b0[3*AT + 16*K + 1]; S = mul_add R, L, M"),
        row(FAR, false, 2, "L = load b0[40*AT + 8*K]; S = add R, L"),
        row(INDEXED, false, 1, "I = load b1[AT]; check I < 512 else 0; L = load b0[I]; S = add R, L"),
        row(
            INDEXED_TWICE,
            false,
            1,
            "I = load b1[AT]; check I < 512 else 0; L = load b0[I]; M = load b0[I + 8]; S = mul_add R, L, M",
        ),
        row(
            CHECKED_TWICE,
            false,
            1,
            "I = load b1[AT]; check I < 600 else 0; check I < 512 else 0; L = load b0[I]; S = add R, L",
        ),
        row(LOADS, true, 8, "L = load b0[AT + 16*K]; M = load b0[AT + 16*K + 8]; S = mul_add R, L, M"),
        row(STORES, true, 4, "store b2[AT + 512*K] = R; S = add R, H"),
        row(SHARED, false, 8, "L = load b0[8*r1 + 16*K]; M = load b0[8*r1 + 16*K + 1]; S = mul_add R, L, M"),
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
        1 if inside(&[0.75]) && inside(&[1.25]) => ("", "L"),
        1 if inside(&[0.375]) => ("P = mul L, H; ", "P"),
        1 => ("P = add L, E; ", "P"),
        _ if inside(&[0.75, 0.5]) => ("", "L, H"),
        _ => ("", "E, L"),
    };
    format!("L = load b0[AT + 8*K]; {make}Q = {} {arguments}; S = add R, Q", op.row().name)
}

/// Returns the kernel with the `times` times repeated work of `row`: each repetition has its own sum `R` over a loop,
/// so that it waits for no other one.
fn kernel(row: &Row, loops: Loops, times: usize) -> Kernel {
    let is_lanes = loops == Loops::Lanes;
    let (at, count, indent) = if is_lanes { ("8*r1 + r0", N / 8, "    ") } else { ("r1", N, "  ") };
    let around = if is_lanes { "for r0 in 0..8 at once\n  " } else { "" };
    let carried: String = (0..times).map(|k| format!(", r{} = r6 then r{}", 400 + k, 500 + k)).collect();
    let mut text = format!(
        "kernel f\ninput x: real[{ROOM}] in b0\ninput t: int[{N}] in b1\noutput y: real[{}] in b2\nr2 = 0.5\nr5 = 1.0\n\
         r6 = -0.0\n{around}for r1 in 0..{count}{carried}\n{indent}r3 = load b0[{at}]\n",
        9 * N + ROOM
    );
    let mut next = 10;
    for k in 0..times {
        let scaled = |by: usize| if is_lanes { format!("{}*r1 + {by}*r0", 8 * by) } else { format!("{by}*r1") };
        let names = ["C", "L", "M", "I", "P", "Q"].map(|name| {
            next += 1;
            (name, format!("r{next}"))
        });
        for code in row.more.split("; ") {
            let mut code = code.replace("3*AT", &scaled(3)).replace("40*AT", &scaled(40)).replace("AT", at);
            code = code.replace("512*K", &(N * k).to_string()).replace("16*K", &(16 * k).to_string());
            code = code.replace("8*K", &(8 * k).to_string());
            code = code.replace('K', &(k + 1).to_string()).replace('S', &format!("r{}", 500 + k));
            code = code.replace('R', &format!("r{}", 400 + k)).replace('H', "r2").replace('X', "r3").replace('E', "r5");
            for (name, reg) in &names {
                code = code.replace(name, reg);
            }
            writeln!(text, "{indent}{code}").unwrap();
        }
    }
    for k in 0..times {
        let (indent, lane) = if is_lanes { ("  ", " + r0") } else { ("", "") };
        writeln!(text, "{indent}store b2[{}{lane}] = r{}", 9 * N + 8 * k, 400 + k).unwrap();
    }
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
    let [sum, product] = ["add", "mul"].map(latency_ns);
    println!("The latency of a sum is {:.2}, that of a product {:.2}.", sum / unit, product / unit);
    let off = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    println!("The model is off by a factor of {off:.2} in geometric mean.");
    let class = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if let Some(class) = class {
        let file = class.replace('-', "_");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../kernel/src/weights/{file}.rs"));
        std::fs::write(&path, table(&class, &rows, &measured, &levels, [sum, product])).unwrap();
        println!("{} is written.", path.display());
    }
}

/// Returns the table of a machine class as Rust code.
fn table(
    class: &str,
    rows: &[Row],
    measured: &[(Option<Times>, Times)],
    levels: &[(f64, f64); 3],
    latencies: [f64; 2],
) -> String {
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
    let check = above(CHECKED_TWICE, of(INDEXED).1);
    // Products take four cycles on all processors with these instructions.
    let [sum, cycle] = [latencies[0] / unit, latencies[1] / 4.0 / unit];
    // In units. A store has a sum beside it, which another part of the processor does.
    let pair = |name: &str, parts: f64| (of(name).0 * plain_unit / unit / parts, of(name).1 / parts);
    let (loads, stores, shared) = (pair(LOADS, 2.0), pair(STORES, 1.0), pair(SHARED, 2.0));
    let (manufacturer, family) = processor().unwrap_or_default();
    let mut text = format!(
        "//! Weights of the machine class {class}. Written by `cargo xtask calibrate {class}`.\n\n\
         use super::{{Operators, Pipeline, Weight, Weights}};\nuse chainrule_ops::Op;\n\n\
         pub(super) const {}: Weights = Weights {{\n    class: \"{class}\",\n    processor: (\"{manufacturer}\", {family}),\n    unit_ns: {unit:.3},\n    \
         plain_unit: {:.2},\n    pipeline: Pipeline {{\n        cycle: {cycle:.2},\n        sum_latency: {sum:.2},\n        \
         load: Weight {{ plain: {:.2}, lanes: {:.2} }},\n        store: Weight {{ plain: {:.2}, lanes: {:.2} }},\n        \
         broadcast: {:.2},\n    }},\n    levels: [{}],\n    cheap: Weight {{ plain: {plain:.2}, lanes: {lanes:.2} }},\n    strided: {strided:.2},\n    \
         strided_far: {:.2},\n    beside: {:.2},\n    index: {:.2},\n    check: {check:.2},\n    indexed: {indexed:.2},\n    operators: Operators::new(&[\n",
        class.to_uppercase().replace('-', "_"),
        plain_unit / unit,
        loads.0,
        loads.1,
        stores.0,
        stores.1,
        shared.1,
        levels.map(|(room, ns)| format!("({room:.1}, {:.1})", ns / unit)).join(", "),
        above(FAR, lanes),
        above(BESIDE, of(STRIDED).1),
        above(INDEXED, indexed + check + lanes),
    );
    for row in ROWS.iter().filter(|row| is_costly(row.op)) {
        let (whole, blocks) = of(row.name);
        let others = if operator(row.op).contains('P') { 2.0 } else { 1.0 };
        let (whole, blocks) = ((whole - others * plain).max(plain), (blocks - others * lanes).max(lanes));
        writeln!(text, "        (Op::{:?}, Weight {{ plain: {whole:.2}, lanes: {blocks:.2} }}),", row.op).unwrap();
    }
    text + "    ]),\n};\n"
}

#[cfg(all(target_arch = "x86_64", unix))]
fn measure(row: &Row, loops: Loops) -> Times {
    // More sums than 14 have no registers.
    let more = row.times.min(6);
    let kernels = [row.times, row.times + more].map(|times| kernel(row, loops, times));
    let model = time(&kernels[1]) - time(&kernels[0]);
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
    let each = (steps * more) as f64;
    Times { model: model / each, ns: (least[1] - least[0]) / each }
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

/// Returns the ns of each of many operations in sequence, of which each has the result of the one before.
#[cfg(all(target_arch = "x86_64", unix))]
fn latency_ns(op: &str) -> f64 {
    let chain: String = (1..8).map(|k| format!("  r{} = {op} r{}, r2\n", k + 10, k + 9)).collect();
    let text = format!(
        "kernel f\ninput x: real[{ROOM}] in b0\ninput t: int[{N}] in b1\noutput y: real[1] in b2\nr2 = load b0[0]\n\
         for r1 in 0..{N}, r3 = r2 then r17\n  r10 = {op} r3, r2\n{chain}store b2[0] = r3\n"
    );
    let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?} in\n{text}"));
    let program = Program::new(Arc::new(kernel), &Options::default()).unwrap();
    let mut bound = bind(&program);
    let runs = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        bound.run().unwrap();
        begin.elapsed().as_secs_f64() * 1e9
    });
    runs.fold(f64::INFINITY, f64::min) / (8 * N) as f64
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
