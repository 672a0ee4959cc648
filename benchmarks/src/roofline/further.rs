//! Further problems of `roofline`, with their minimum work: other shapes and other kinds of loops.

use super::peaks::Call;
use super::problems::{NONE, Numbers, Problem, Work, work};
use chainrule::Value;

const NO_CALLS: [(Call, f64); 2] = [NONE, NONE];

fn row(name: &str, by: &'static [&'static str], args: Vec<Value<f64>>, value: Work, gradient: Work) -> Problem {
    // Shapes of one function differ after the first dot.
    let function = name.split_once('.').map_or(name, |(function, _)| function);
    let working_set = 2.0 * args.iter().map(doubles).sum::<f64>();
    Problem { name: name.to_owned(), function: function.to_owned(), by, args, working_set, value, gradient }
}

fn doubles(of: &Value<f64>) -> f64 {
    match of {
        Value::Array(elements) => elements.iter().map(doubles).sum(),
        _ => 1.0,
    }
}

/// Returns the problems.
pub(super) fn all(r: &mut Numbers) -> Vec<Problem> {
    let mut all = regressions(r);
    all.extend(products(r));
    all.extend(matrices(r));
    all.extend(stencils(r));
    all.extend(reductions(r));
    all.extend(by_index(r));
    all.extend(systems(r));
    all.extend(elementwise(r));
    all
}

/// Rows times vectors with few and many columns.
fn regressions(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    for (name, n, d) in [("linear.2", 20_000, 2), ("linear.64", 2000, 64), ("linear.512", 500, 512)] {
        let args = vec![r.array(&[d], 0.3), r.array(&[n, d], 0.3), r.array(&[n], 1.0)];
        let (rows, n, d) = ((n * (d + 1)) as f64, n as f64, d as f64);
        let (value, gradient) = (work(rows, n * (d + 2.0), NO_CALLS), work(rows, n * (2.0 * d + 2.0), NO_CALLS));
        all.push(row(name, &["b"], args, value, gradient));
    }
    all
}

fn products(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    for (name, n) in [("layer_product.512", 512usize), ("layer_product.20", 20)] {
        let (size, cube) = ((n * n) as f64, (n * n * n) as f64);
        let args = vec![r.array(&[n, n], 1.0), r.array(&[n, n], 1.0)];
        let (value, gradient) = (work(2.0 * size, cube, NO_CALLS), work(4.0 * size, 3.0 * cube, NO_CALLS));
        all.push(row(name, &["a", "b"], args, value, gradient));
    }
    let (n, m, k, l) = (16, 24, 32, 48);
    let args = vec![r.array(&[n, m, k], 1.0), r.array(&[k, l], 1.0)];
    let (all_terms, size) = ((n * m * k * l) as f64, (n * m * k + k * l) as f64);
    let (value, gradient) = (work(size, all_terms, NO_CALLS), work(2.0 * size, 3.0 * all_terms, NO_CALLS));
    all.push(row("einsum", &["a", "b"], args, value, gradient));
    let (n, d) = (128, 32);
    let args = (0..3).map(|_| r.array(&[n, d], 1.0)).collect();
    let (size, terms, pairs) = ((3 * n * d) as f64, (n * n * d) as f64, (n * n) as f64);
    let calls = [(Call::Exp, pairs), NONE];
    let (value, gradient) = (work(size, 2.0 * terms, calls), work(2.0 * size, 6.0 * terms, calls));
    all.push(row("attention", &["q", "k", "v"], args, value, gradient));
    let (n, k) = (256, 100);
    let args = vec![r.array(&[n], 1.0), r.array(&[k], 1.0)];
    let terms = (n * k) as f64;
    // Sine and cosine of one argument cost as much as one of them.
    let (value, gradient) =
        (work(356.0, 2.0 * terms, [(Call::Cos, terms), NONE]), work(612.0, 4.0 * terms, [(Call::Cos, terms), NONE]));
    all.push(row("spectral", &["x"], args, value, gradient));
    let (n, k) = (8192, 32);
    let args = vec![r.array(&[k], 1.0), r.array(&[n], 1.0)];
    let terms = ((n - k + 1) * k) as f64;
    let (value, gradient) = (work(8192.0, terms, NO_CALLS), work(16_384.0, 3.0 * terms, NO_CALLS));
    all.push(row("filtered", &["w", "x"], args, value, gradient));
    all
}

/// Products with a transposed operand, and losses over products: small, in the second cache, and large.
fn matrices(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    for (names, [n, k, m]) in [
        (["by_transposed.64", "transposed_by.64", "fitted.64.w", "fitted.64.x"], [64; 3]),
        (["by_transposed.200", "transposed_by.200", "fitted.200.w", "fitted.200.x"], [200; 3]),
        (["by_transposed.1000", "transposed_by.1000", "fitted.1000.w", "fitted.1000.x"], [1000, 1100, 1200]),
    ] {
        let (a, b, c) = ((n * k) as f64, (k * m) as f64, (n * m) as f64);
        let terms = (n * k * m) as f64;
        let value = work(a + b + c, terms + c, NO_CALLS);
        let gradient = work(2.0 * (a + b) + c, 3.0 * terms + c, NO_CALLS);
        let args = vec![r.array(&[n, k], 1.0), r.array(&[m, k], 1.0)];
        all.push(row(names[0], &["a", "b"], args, value, gradient));
        let args = vec![r.array(&[k, n], 1.0), r.array(&[k, m], 1.0)];
        all.push(row(names[1], &["a", "b"], args, value, gradient));
        let args = vec![r.array(&[n, k], 1.0), r.array(&[k, m], 1.0), r.array(&[n, m], 1.0)];
        let value = work(a + b + c, terms + 2.0 * c, NO_CALLS);
        for (name, by, size) in [(names[2], &["w"], b), (names[3], &["x"], a)] {
            let gradient = work(a + b + c + size, 2.0 * terms + 2.0 * c, NO_CALLS);
            all.push(row(name, by, args.clone(), value, gradient));
        }
    }
    all
}

fn stencils(r: &mut Numbers) -> Vec<Problem> {
    let (n, steps) = (32usize, 20.0);
    let size = (n * n * n) as f64;
    let mut all = vec![row(
        "diffusion",
        &["u"],
        vec![r.array(&[n, n, n], 1.0), Value::Int(20)],
        work(2.0 * size * steps, 7.0 * size * steps, NO_CALLS),
        work(4.0 * size * steps, 14.0 * size * steps, NO_CALLS),
    )];
    let size = 128.0 * 128.0;
    all.push(row(
        "reflecting",
        &["u"],
        vec![r.array(&[128, 128], 0.5), Value::Int(20)],
        work(2.0 * size * steps, 7.0 * size * steps, NO_CALLS),
        work(5.0 * size * steps, 18.0 * size * steps, NO_CALLS),
    ));
    for n in [150usize, 500, 1300] {
        let (size, steps) = ((n * n) as f64, 40.0);
        all.push(row(
            &format!("jacobi.{n}"),
            &["u"],
            vec![r.array(&[n, n], 1.0), Value::Int(40)],
            work(2.0 * size * steps, 5.0 * size * steps, NO_CALLS),
            work(4.0 * size * steps, 10.0 * size * steps, NO_CALLS),
        ));
    }
    all
}

/// Sums and maxima by any axis, and statistics of rows.
fn reductions(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    let size = 40.0 * 50.0 * 60.0;
    let args = vec![r.array(&[40, 50, 60], 1.0)];
    all.push(row("middle", &["x"], args, work(size, size, NO_CALLS), work(2.0 * size, 2.0 * size, NO_CALLS)));
    let size = 1000.0 * 50.0;
    let args = vec![r.array(&[1000, 50], 1.0)];
    all.push(row("row_max", &["x"], args, work(size, size, NO_CALLS), work(2.0 * size, size, NO_CALLS)));
    let args = vec![r.array(&[1000, 50], 1.0), r.array(&[1000, 50], 1.0)];
    all.push(row("row_argmax", &["x"], args, work(size, size, NO_CALLS), work(2.0 * size, size, NO_CALLS)));
    let size = 5000.0 * 12.0;
    let args = vec![r.array(&[5000, 12], 1.0)];
    let (value, gradient) = (work(size, 3.0 * size, NO_CALLS), work(2.0 * size, 4.0 * size, NO_CALLS));
    all.push(row("variances", &["x"], args, value, gradient));
    let (n, k, d) = (2000, 16, 4);
    let args = vec![r.array(&[k], 1.0), r.array(&[k, d], 1.0), r.array(&[k, d], 0.3), r.array(&[n, d], 1.0)];
    let (pairs, terms) = ((n * k) as f64, (n * k * d) as f64);
    let calls = [(Call::Exp, pairs), (Call::Log, n as f64)];
    let (value, gradient) =
        (work((n * d) as f64, 3.0 * terms, calls), work((n * d) as f64, 6.0 * terms, [calls[0], NONE]));
    all.push(row("mixture", &["w", "m", "s"], args, value, gradient));
    let n = 50_000.0;
    let args = vec![r.array(&[50_000], 1.0), r.array(&[50_000], 1.0)];
    let (value, gradient) = (work(2.0 * n, 2.0 * n, NO_CALLS), work(3.0 * n, 2.0 * n, NO_CALLS));
    all.push(row("masked", &["x"], args, value, gradient));
    all
}

/// Gathers, scatters and recurrences.
fn by_index(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    let n = 20_000;
    for (name, bins) in [("scattered.many", 16), ("scattered.few", 20_000)] {
        let args = vec![r.array(&[n], 1.0), r.indices(n, bins), Value::Int(bins as i64)];
        let (n, bins) = (n as f64, bins as f64);
        let (value, gradient) = (work(2.0 * n + bins, n + bins, NO_CALLS), work(3.0 * n + bins, n + bins, NO_CALLS));
        all.push(row(name, &["w"], args, value, gradient));
    }
    let args = vec![r.array(&[100], 1.0), r.array(&[n], 1.0), r.indices(n, 99)];
    let size = n as f64;
    let (value, gradient) = (work(2.0 * size, 3.0 * size, NO_CALLS), work(3.0 * size, 6.0 * size, NO_CALLS));
    all.push(row("table", &["t", "f"], args, value, gradient));
    let (n, d) = (5000, 32);
    let args = vec![r.array(&[1000, d], 1.0), r.array(&[d], 1.0), r.indices(n, 1000)];
    let (rows, table) = ((n * d) as f64, 1000.0 * d as f64);
    let (value, gradient) = (work(table + n as f64, rows, NO_CALLS), work(2.0 * table, 3.0 * rows, NO_CALLS));
    all.push(row("embedded", &["e", "w"], args, value, gradient));
    let n = 20_000.0;
    let args = vec![r.array(&[20_000], 0.1)];
    all.push(row("prefix", &["x"], args, work(n, 2.0 * n, NO_CALLS), work(3.0 * n, 4.0 * n, NO_CALLS)));
    all
}

/// Triangular, symmetric and general systems.
fn systems(r: &mut Numbers) -> Vec<Problem> {
    let mut all = Vec::new();
    for (names, n) in [
        (["triangular.64", "likelihood.64", "solution.64"], 64),
        (["triangular.500", "likelihood.500", "solution.500"], 500),
        (["triangular.8", "likelihood.8", "solution.8"], 8),
        (["triangular.1000", "likelihood.1000", "solution.1000"], 1000),
    ] {
        let (b, size) = (r.array(&[n], 1.0), (n * n) as f64);
        let cube = size * n as f64;
        let matrix = r.dominant(n);
        let args = vec![matrix.clone(), b.clone()];
        let (value, gradient) = (work(size / 2.0, size / 2.0, NO_CALLS), work(1.5 * size, 1.5 * size, NO_CALLS));
        all.push(row(names[0], &["l", "b"], args.clone(), value, gradient));
        let (value, gradient) = (work(2.0 * size, cube / 6.0, NO_CALLS), work(4.0 * size, cube / 2.0, NO_CALLS));
        all.push(row(names[1], &["a", "b"], args.clone(), value, gradient));
        let (value, gradient) =
            (work(2.0 * size, cube / 3.0, NO_CALLS), work(3.0 * size, cube / 3.0 + 3.0 * size, NO_CALLS));
        all.push(row(names[2], &["a", "b"], args, value, gradient));
    }
    let n = 10_000;
    let args = vec![r.array(&[n], 0.1), r.shifted(n, 0.3, 2.0), r.array(&[n], 0.1), r.array(&[n], 1.0)];
    let n = n as f64;
    // Divisions count as square roots.
    let (value, gradient) = (
        work(6.0 * n, 4.0 * n, [(Call::Sqrt, 2.0 * n), NONE]),
        work(14.0 * n, 12.0 * n, [(Call::Sqrt, 2.0 * n), NONE]),
    );
    all.push(row("tridiagonal", &["a", "b", "c", "y"], args, value, gradient));
    all
}

/// Long chains of elementary functions, and sums over pairs.
fn elementwise(r: &mut Numbers) -> Vec<Problem> {
    let n = 20_000.0;
    let calls = [(Call::Tanh, n), (Call::Cos, 4.0 * n)];
    let args = vec![r.array(&[20_000], 1.0)];
    let mut all = vec![row("deep", &["x"], args, work(n, 12.0 * n, calls), work(2.0 * n, 30.0 * n, calls))];
    let n = 400;
    let pairs = (n * n) as f64;
    let args = vec![r.array(&[n, 3], 3.0)];
    let calls = [(Call::Sqrt, pairs), NONE];
    all.push(row("molecule", &["p"], args, work(1200.0, 11.0 * pairs, calls), work(2400.0, 18.0 * pairs, calls)));
    all
}
