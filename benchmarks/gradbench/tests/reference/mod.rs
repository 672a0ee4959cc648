//! GradBench's functions in plain Rust, and their derivatives by differences, as a reference for recorded answers.

use serde_json::{Value as Json, json};

/// Returns the numbers of `json` in order; those of an object in the order of `names`.
pub fn numbers(json: &Json, names: &[&str]) -> Vec<f64> {
    match json {
        Json::Array(items) => items.iter().flat_map(|item| numbers(item, names)).collect(),
        Json::Object(_) => names.iter().flat_map(|name| numbers(&json[name], names)).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

fn vector(input: &Json, name: &str) -> Vec<f64> {
    numbers(&input[name], &[])
}

fn matrix(input: &Json, name: &str) -> Vec<Vec<f64>> {
    input[name].as_array().unwrap().iter().map(|row| numbers(row, &[])).collect()
}

fn integer(input: &Json, name: &str) -> usize {
    usize::try_from(input[name].as_u64().unwrap()).unwrap()
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::MIN, f64::max);
    top + x.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
}

fn llsq(input: &Json) -> f64 {
    let (x, n) = (vector(input, "x"), integer(input, "n"));
    let left = |i: usize| {
        let t = -1.0 + 2.0 * i as f64 / (n - 1) as f64;
        let sign = if t == 0.0 { 0.0 } else { t.signum() };
        sign - x.iter().enumerate().map(|(j, x)| x * t.powi(j as i32)).sum::<f64>()
    };
    (0..n).map(|i| left(i).powi(2) / 2.0).sum()
}

fn ode(input: &Json) -> Vec<f64> {
    let (x, s) = (vector(input, "x"), integer(input, "s"));
    let h = 2.0 / s as f64;
    let slope = |y: &[f64]| -> Vec<f64> { (0..x.len()).map(|i| x[i] * if i == 0 { 1.0 } else { y[i - 1] }).collect() };
    let plus = |y: &[f64], k: &[f64], by: f64| -> Vec<f64> { y.iter().zip(k).map(|(y, k)| y + by * k).collect() };
    let mut y = vec![0.0; x.len()];
    for _ in 0..s {
        let a = slope(&y);
        let b = slope(&plus(&y, &a, h / 2.0));
        let c = slope(&plus(&y, &b, h / 2.0));
        let d = slope(&plus(&y, &c, h));
        y = (0..y.len()).map(|i| y[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i])).collect();
    }
    y
}

/// Computes the determinant by elimination with pivoting.
fn det(input: &Json) -> f64 {
    let n = integer(input, "ell");
    let mut a: Vec<Vec<f64>> = vector(input, "A").chunks(n).map(<[f64]>::to_vec).collect();
    let mut det = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs())).unwrap();
        if pivot != k {
            a.swap(k, pivot);
            det = -det;
        }
        det *= a[k][k];
        let row = a[k].clone();
        for below in &mut a[k + 1..] {
            let factor = below[k] / row[k];
            below.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    det
}

fn kmeans(input: &Json) -> f64 {
    let centroids = matrix(input, "centroids");
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let nearest = |p: &Vec<f64>| centroids.iter().map(|c| distance(p, c)).fold(f64::MAX, f64::min);
    matrix(input, "points").iter().map(nearest).sum()
}

/// Returns the logarithm of the gamma function at half-integers.
fn ln_gamma_of_half(twice: usize) -> f64 {
    match twice {
        1 => std::f64::consts::PI.sqrt().ln(),
        2 => 0.0,
        k => ((k - 2) as f64 / 2.0).ln() + ln_gamma_of_half(k - 2),
    }
}

fn gmm(input: &Json) -> f64 {
    let (x, mu, q, l) = (matrix(input, "x"), matrix(input, "mu"), matrix(input, "q"), matrix(input, "l"));
    let (alpha, gamma, m) = (vector(input, "alpha"), input["gamma"].as_f64().unwrap(), integer(input, "m"));
    let (d, k, n) = (mu[0].len(), alpha.len(), x.len());
    // Factor Q of each Gaussian, as a matrix.
    let factor = |c: usize| {
        let mut rows = vec![vec![0.0; d]; d];
        let mut next = l[c].iter();
        for j in 0..d {
            rows[j][j] = q[c][j].exp();
            for row in &mut rows[j + 1..] {
                row[j] = *next.next().unwrap();
            }
        }
        rows
    };
    let factors: Vec<Vec<Vec<f64>>> = (0..k).map(factor).collect();
    let square = |c: usize, point: &[f64]| -> f64 {
        let row = |row: &Vec<f64>| (0..d).map(|j| row[j] * (point[j] - mu[c][j])).sum::<f64>();
        factors[c].iter().map(|r| row(r).powi(2)).sum()
    };
    let sum_q = |c: usize| q[c].iter().sum::<f64>();
    let of_point = |point: &Vec<f64>| {
        let terms: Vec<f64> = (0..k).map(|c| alpha[c] - 0.5 * square(c, point) + sum_q(c)).collect();
        log_sum_exp(&terms)
    };
    let likelihood: f64 = x.iter().map(of_point).sum();
    let norm = |c: usize| factors[c].iter().flatten().map(|x| x * x).sum::<f64>();
    let prior: f64 = (0..k).map(|c| m as f64 * sum_q(c) - gamma * gamma / 2.0 * norm(c)).sum();
    let (degrees, dim) = ((d + m + 1) as f64, d as f64);
    let gammas = dim * (dim - 1.0) / 4.0 * std::f64::consts::PI.ln()
        + (0..d).map(|j| ln_gamma_of_half(d + m + 1 - j)).sum::<f64>();
    let constant = degrees * dim * gamma.ln() - degrees * dim / 2.0 * 2.0_f64.ln() - gammas;
    let points = n as f64 * (dim / 2.0 * std::f64::consts::TAU.ln() + log_sum_exp(&alpha));
    likelihood - points + prior + k as f64 * constant
}

/// Returns the two residuals of an observation.
fn residuals(input: &Json) -> [f64; 2] {
    let (cam, x, w, feat) =
        (vector(input, "cam"), vector(input, "x"), input["w"].as_f64().unwrap(), vector(input, "feat"));
    let angle = cam[..3].iter().map(|r| r * r).sum::<f64>().sqrt();
    let unit: Vec<f64> = cam[..3].iter().map(|r| r / angle).collect();
    let from: Vec<f64> = (0..3).map(|k| x[k] - cam[3 + k]).collect();
    let along: f64 = (0..3).map(|k| unit[k] * from[k]).sum();
    let at: Vec<f64> = (0..3)
        .map(|r| {
            let (a, b) = ((r + 1) % 3, (r + 2) % 3);
            let across = unit[a] * from[b] - unit[b] * from[a];
            from[r] * angle.cos() + across * angle.sin() + unit[r] * along * (1.0 - angle.cos())
        })
        .collect();
    let plane = [at[0] / at[2], at[1] / at[2]];
    let square = plane[0] * plane[0] + plane[1] * plane[1];
    let factor = cam[6] * (1.0 + cam[9] * square + cam[10] * square * square);
    [0, 1].map(|r| w * (plane[r] * factor + cam[7 + r] - feat[r]))
}

fn lstm(input: &Json) -> f64 {
    let (main, extra) = (matrix(input, "main_params"), matrix(input, "extra_params"));
    let (mut state, text) = (matrix(input, "state"), matrix(input, "sequence"));
    let b = text[0].len();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut total = 0.0;
    for t in 0..text.len() - 1 {
        let mut x: Vec<f64> = (0..b).map(|i| text[t][i] * extra[0][i]).collect();
        for layer in 0..main.len() / 2 {
            let (weights, biases) = (&main[2 * layer], &main[2 * layer + 1]);
            let gate = |k: usize, i: usize, x: f64| x * weights[k * b + i] + biases[k * b + i];
            for i in 0..b {
                let (hidden, cell) = (state[2 * layer][i], state[2 * layer + 1][i]);
                let next = cell * sigmoid(gate(0, i, x[i])) + sigmoid(gate(1, i, hidden)) * gate(3, i, hidden).tanh();
                state[2 * layer + 1][i] = next;
                state[2 * layer][i] = sigmoid(gate(2, i, x[i])) * next.tanh();
            }
            x = state[2 * layer].clone();
        }
        let guess: Vec<f64> = (0..b).map(|i| x[i] * extra[1][i] + extra[2][i]).collect();
        let norm = (guess.iter().map(|g| g.exp()).sum::<f64>() + 2.0).ln();
        total += (0..b).map(|i| text[t + 1][i] * (guess[i] - norm)).sum::<f64>();
    }
    -total / ((text.len() - 1) * b) as f64
}

/// Returns the value of `module`, without derivatives.
fn value(module: &str, input: &Json) -> Vec<f64> {
    match module {
        "hello" => vec![input.as_f64().unwrap().powi(2)],
        "llsq" => vec![llsq(input)],
        "lse" => vec![log_sum_exp(&vector(input, "x"))],
        "ode" => ode(input),
        "det" => vec![det(input)],
        "kmeans" => vec![kmeans(input)],
        "gmm" => vec![gmm(input)],
        "ba" => residuals(input).to_vec(),
        "lstm" => vec![lstm(input)],
        _ => panic!("there is no {module}"),
    }
}

/// Returns `input` with the number at `path` shifted by `by`.
fn moved(input: &Json, path: &[Step], by: f64) -> Json {
    let mut all = input.clone();
    let place = path.iter().fold(&mut all, |json, step| match step {
        Step::Name(name) => &mut json[name.as_str()],
        Step::At(i) => &mut json[*i],
    });
    *place = json!(place.as_f64().unwrap() + by);
    all
}

#[derive(Clone)]
enum Step {
    Name(String),
    At(usize),
}

fn paths(json: &Json, path: &mut Vec<Step>, all: &mut Vec<Vec<Step>>) {
    match json {
        Json::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                path.push(Step::At(i));
                paths(item, path, all);
                path.pop();
            }
        }
        _ => all.push(path.clone()),
    }
}

/// Returns first and second derivatives by each number of the parts `by` of the input, by differences of sixth order.
fn slopes(module: &str, input: &Json, by: &[&str]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut all = Vec::new();
    for name in by {
        let (mut path, part) =
            if name.is_empty() { (Vec::new(), input) } else { (vec![Step::Name((*name).to_owned())], &input[name]) };
        paths(part, &mut path, &mut all);
    }
    let step = 3e-3;
    let here = value(module, input);
    let slope = |path: &Vec<Step>| {
        let at = |k: i32| value(module, &moved(input, path, f64::from(k) * step));
        let (ahead, behind) = ([at(1), at(2), at(3)], [at(-1), at(-2), at(-3)]);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for i in 0..here.len() {
            let odd = [0, 1, 2].map(|k| (ahead[k][i] - behind[k][i]) / (2.0 * (k + 1) as f64 * step));
            let even =
                [0, 1, 2].map(|k| (ahead[k][i] - 2.0 * here[i] + behind[k][i]) / ((k + 1) as f64 * step).powi(2));
            first.push(1.5 * odd[0] - 0.6 * odd[1] + 0.1 * odd[2]);
            second.push(1.5 * even[0] - 0.6 * even[1] + 0.1 * even[2]);
        }
        (first, second)
    };
    all.iter().map(slope).collect()
}

/// Returns the parts of the input that a module's derivative is taken by.
fn by(module: &str) -> &'static [&'static str] {
    match module {
        "hello" => &[""],
        "det" => &["A"],
        "kmeans" => &["centroids"],
        "gmm" => &["alpha", "mu", "q", "l"],
        "ba" => &["cam", "x", "w"],
        "lstm" => &["main_params", "extra_params"],
        _ => &["x"],
    }
}

/// Returns the first 30 and the last.
fn shortened<T: Copy>(all: &[T]) -> Vec<T> {
    all.iter().take(30).chain(all.last()).copied().collect()
}

/// Returns the sparse Jacobian: rows, columns, values.
fn compressed(input: &Json) -> Vec<f64> {
    let [n, m, p] = ["n", "m", "p"].map(|name| integer(input, name));
    let slopes = slopes("ba", input, by("ba"));
    let (mut rows, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..p {
        for r in 0..2 {
            columns.extend((0..11).map(|k| 11 * (i % n) + k));
            columns.extend((0..3).map(|k| 11 * n + 3 * (i % m) + k));
            columns.push(11 * n + 3 * m + i);
            values.extend(slopes.iter().map(|(first, _)| first[r]));
            rows.push(columns.len());
        }
    }
    for i in 0..p {
        columns.push(11 * n + 3 * m + i);
        values.push(-2.0 * input["w"].as_f64().unwrap());
        rows.push(columns.len());
    }
    let real = |all: Vec<usize>| shortened(&all).into_iter().map(|k| k as f64).collect::<Vec<_>>();
    [real(rows), real(columns), shortened(&values)].concat()
}

/// Returns the numbers of the output of a function, and their accuracy relative to the largest.
pub fn output(module: &str, function: &str, input: &Json) -> (Vec<f64>, f64) {
    match (module, function) {
        ("ba", "objective") => {
            let (p, w) = (integer(input, "p") as f64, input["w"].as_f64().unwrap());
            let [a, b] = residuals(input);
            (vec![a, b, p, 1.0 - w * w, p], 1e-12)
        }
        ("ba", "jacobian") => (compressed(input), 1e-10),
        ("kmeans", "dir") => {
            (slopes(module, input, by(module)).into_iter().map(|(first, second)| first[0] / second[0]).collect(), 1e-7)
        }
        (_, "square" | "primal" | "objective" | "cost") => (value(module, input), 1e-12),
        _ => {
            let last = |all: &[f64]| *all.last().unwrap();
            (slopes(module, input, by(module)).iter().map(|(first, _)| last(first)).collect(), 1e-9)
        }
    }
}
