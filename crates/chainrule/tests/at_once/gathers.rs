//! Reads at indices from memory, and at indices computed from such or from numbers: the same bits as the interpreter's,
//! the same failures.

use super::support::{check, matrix, reals};
use chainrule::{Module, Value};

const TEXT: &str = "
let fields = fun (a : [m][5]Double) (x : [m]Double) (at : [n]Int) ->
  build n (fun i -> exp (a[at[i]][0]) * a[at[i]][4] + x[at[i]] - a[at[i]][3])
let pairs = fun (a : [m][k]Double) (at : [n][2]Int) ->
  build n (fun i -> [tanh (a[at[i][0]][k - 1]), exp (a[at[i][1]][0])])
let rows = fun (a : [m][k]Double) (at : [n]Int) -> build n (fun i -> sum k (fun j -> exp (a[at[i]][j])))
let total = fun (x : [m]Double) (at : [n]Int) -> sum n (fun i -> exp (x[at[i]]) * real (at[i]))
let branch = fun (a : [m][l]Double) (at : [n]Int) (b : [k]Int) ->
  build n (fun i -> sum k (fun j -> (if b[j] > 0 then exp (a[at[i]][j]) else 0.5) + tanh (a[at[i]][j + 1])))
let thirteen = fun (x : [m]Double) (at : [13]Int) -> build 13 (fun i -> exp (x[at[i]]) + tanh (x[at[i]]))
let made = fun (x : [m]Double) (at : [n]Int) ->
  let y = build m (fun i -> sin (x[i])) in build n (fun i -> exp (y[at[i]]))
let own = fun (x : [m]Double) (at : [n]Int) ->
  build n (fun i -> let y = build 4 (fun j -> x[i] * real j) in exp (y[at[i]]))
let written = fun (x : [m]Double) (at : [n]Int) ->
  ifold (fun s i -> build m (fun j -> if j == i then exp (s[at[j]]) else s[j])) x m
";

const COMPUTED: &str = "
let next = fun (c : [m]Double) (y : [n]Int) -> build n (fun i -> exp (c[y[i] + 1]) - exp (c[y[i]]))
let before = fun (c : [m]Double) (y : [n]Int) -> build n (fun i -> exp (c[y[i] - 1]) * sin (c[y[i] - 1]))
let turned = fun (c : [m]Double) (y : [n]Int) -> build n (fun i -> exp (c[mod (3 * y[i] + i) m]))
let clamped = fun (c : [m]Double) (y : [n]Int) -> build n (fun i -> exp (c[min (max (y[i] - 2) 0) (m - 1)]))
let parts = fun (c : [m]Double) (y : [n]Int) -> build n (fun i -> exp (c[div 12 (y[i] + 1) - y[i] * y[i]]))
let whole = fun (c : [m]Double) (x : [n]Double) ->
  build n (fun i -> let k = truncate (4.0 * x[i]) in exp (c[k]) * (4.0 * x[i] - real k) + c[k + 1])
let far = fun (c : [m]Double) (x : [n]Double) -> build n (fun i -> exp (c[div (3000000000 * i) 3000000000]) * x[i])
let own = fun (a : [n][m]Double) (y : [n]Int) -> build n (fun i -> exp (a[i][y[i]]) + tanh (a[i][0]))
let chosen = fun (c : [m]Double) (x : [n]Double) -> build n (fun i -> exp (c[if x[i] < 0.5 then 0 else 3]))
";

fn ints(values: impl Iterator<Item = i64>) -> Value<f64> {
    Value::Array(values.map(Value::Int).collect())
}

#[test]
fn what_integers_point_at_has_the_bits_of_the_interpreter() {
    let module = Module::from_text("gathers.ft", TEXT).unwrap();
    for n in 0..=20_usize {
        for m in [1, 4, 9] {
            // Repeated indices.
            let at = |times: usize| (0..n * times).map(move |i| (i * i + 3 * i) as i64 % m as i64);
            let value = |name: &str, args: &[Value<f64>]| {
                let shown = check(&module.function(name).unwrap(), args);
                assert!(shown.starts_with('['), "{name} fails: {shown}");
            };
            let pairs = at(2).collect::<Vec<_>>();
            let pairs = Value::Array(pairs.chunks(2).map(|pair| ints(pair.iter().copied())).collect());
            value("fields", &[matrix(m, 5), reals(m, 0), ints(at(1))]);
            value("branch", &[matrix(m, 5), ints(at(1)), ints([1, 0, 0, 1].into_iter())]);
            value("branch", &[matrix(m, 5), ints(at(1)), ints([0, 1, 0, 0].into_iter())]);
            if n == 13 {
                value("thirteen", &[reals(m, 0), ints(at(1))]);
            }
            value("rows", &[matrix(m, 3), ints(at(1))]);
            value("total", &[reals(m, 0), ints(at(1))]);
            value("made", &[reals(m, 0), ints(at(1))]);
            value("own", &[reals(n, 0), ints(at(1).map(|i| i % 4))]);
            value("written", &[reals(n, 0), ints(at(1).map(|i| i % n as i64))]);
            if n > 0 {
                value("pairs", &[matrix(m, 3), pairs]);
            }
        }
    }
}

#[test]
fn each_lane_has_its_index_checked() {
    let module = Module::from_text("gathers.ft", TEXT).unwrap();
    let fields = module.function("fields").unwrap();
    for n in 1..=18_usize {
        for wrong in 0..n {
            for index in [-1, 4, i64::MIN, i64::MAX] {
                let at = (0..n).map(|i| if i == wrong { index } else { i as i64 % 4 });
                let shown = check(&fields, &[matrix(4, 5), reals(4, 0), ints(at)]);
                assert!(shown.contains(&format!("the index is {index}, the length 4")), "{shown}");
            }
        }
    }
}

/// Checks that arrays that a loop only reads are read at once; the others read arrays that the loop writes.
#[test]
fn arrays_that_a_loop_only_reads_are_read_in_lanes() {
    let module = Module::from_text("gathers.ft", TEXT).unwrap();
    let listing = |name: &str| module.function(name).unwrap().compile().unwrap().listing();
    for name in ["fields", "pairs", "branch", "thirteen", "rows", "total", "made"] {
        assert!(listing(name).contains("at once"), "{name}: {}", listing(name));
    }
}

#[test]
fn computed_indices_have_the_bits_of_the_interpreter() {
    let module = Module::from_text("computed.ft", COMPUTED).unwrap();
    let value = |name: &str, args: &[Value<f64>]| {
        let shown = check(&module.function(name).unwrap(), args);
        assert!(shown.starts_with('['), "{name} fails: {shown}");
    };
    for n in 0..=20_usize {
        let at = |least: i64, below: i64| ints((0..n as i64).map(move |i| least + (i * i + 3 * i) % (below - least)));
        let c = reals(6, 0);
        value("next", &[c.clone(), at(0, 5)]);
        value("before", &[c.clone(), at(1, 7)]);
        value("turned", &[c.clone(), at(-40, 90)]);
        value("clamped", &[c.clone(), at(-40, 90)]);
        value("parts", &[reals(13, 0), at(0, 2)]);
        value("chosen", &[c.clone(), reals(n, 0)]);
        value("far", &[reals(n, 0), reals(n, 0)]);
        let places = (0..n).map(|i| Value::Real((i as f64 * 0.37).fract()));
        value("whole", &[c, Value::Array(places.collect())]);
        value("own", &[matrix(n, 4), at(0, 4)]);
    }
}

#[test]
fn each_lane_has_its_computed_index_checked() {
    let module = Module::from_text("computed.ft", COMPUTED).unwrap();
    let fails = |name: &str, args: &[Value<f64>], how: &str| {
        let shown = check(&module.function(name).unwrap(), args);
        assert!(shown.contains(how), "{name}: {shown}");
    };
    for n in 1..=18_usize {
        for wrong in 0..n {
            let at = |index: i64, other: i64| ints((0..n).map(|i| if i == wrong { index } else { other }));
            let outside = |index: i64| format!("the index is {index}, the length 5");
            fails("next", &[reals(5, 0), at(4, 1)], &outside(5));
            fails("next", &[reals(5, 0), at(-7, 1)], &outside(-6));
            fails("next", &[reals(5, 0), at(i64::MAX, 1)], "64 bits");
            fails("before", &[reals(5, 0), at(0, 1)], &outside(-1));
            fails("before", &[reals(5, 0), at(i64::MIN, 1)], "64 bits");
            fails("turned", &[reals(5, 0), at(i64::MAX / 2, 1)], "64 bits");
            fails("parts", &[reals(13, 0), at(-1, 1)], "by zero");
            let places = (0..n).map(|i| Value::Real(if i == wrong { f64::NAN } else { 0.3 }));
            fails("whole", &[reals(5, 0), Value::Array(places.collect())], &outside(i64::MIN));
        }
    }
}

#[test]
fn integers_that_lanes_compute_keep_no_loop_in_sequence() {
    let module = Module::from_text("computed.ft", COMPUTED).unwrap();
    for name in ["next", "before", "turned", "clamped", "parts", "whole", "own", "chosen"] {
        let listing = module.function(name).unwrap().compile().unwrap().listing();
        assert!(listing.contains("at once"), "{name}: {listing}");
    }
}
