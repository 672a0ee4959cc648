//! Remainder iterations of loops, fewer than fill a vector, with strided elements: the same bits as the interpreter's,
//! the same failures, and no access beyond the last element.

use super::support::{check, matrix, reals};
use chainrule::{Module, Value};

const TEXT: &str = "
let rows = fun (w : [n][4]Double) (x : [n]Double) -> build n (fun i -> exp (w[i][1] * x[i]) + tanh (w[i][3]))
let columns = fun (a : [n][m]Double) (j : Int) -> build n (fun i -> exp (a[i][j]) + tanh (a[n - 1 - i][j]))
let pairs = fun (x : [n]Double) -> build n (fun i -> [exp (x[i]), tanh (x[i])])
let transposed = fun (a : [n][m]Double) -> build m (fun i -> build n (fun j -> tanh (exp (a[j][i]))))
let window = fun (x : [m]Double) (y : [n]Double) (k : Int) -> build n (fun i -> exp (x[i + k]) + tanh (y[i]))
let mirror = fun (x : [m]Double) (y : [n]Double) (k : Int) -> build n (fun i -> exp (x[k - i]) + tanh (y[i]))
let total = fun (w : [n][3]Double) -> sum n (fun i -> exp (w[i][0]) * tanh (w[i][2]))
";

#[test]
fn elements_far_apart_have_the_bits_of_the_interpreter() {
    let module = Module::from_text("rests.ft", TEXT).unwrap();
    let function = |name: &str| module.function(name).unwrap();
    for n in 0..=20 {
        let value = |name: &str, args: &[Value<f64>]| {
            let values = check(&function(name), args);
            assert!(values.starts_with('['), "{name} fails: {values}");
        };
        value("rows", &[matrix(n, 4), reals(n, 5)]);
        value("pairs", &[reals(n, 0)]);
        value("total", &[matrix(n, 3)]);
        for m in [1, 3, 9] {
            value("transposed", &[matrix(n, m)]);
            if n > 0 {
                value("columns", &[matrix(n, m), Value::Int(m as i64 - 1)]);
            }
        }
    }
}

#[test]
fn indices_are_checked_for_as_many_lanes_as_are_active() {
    let module = Module::from_text("rests.ft", TEXT).unwrap();
    let (window, mirror) = (module.function("window").unwrap(), module.function("mirror").unwrap());
    for n in 1..=18_i64 {
        for more in 0..3 {
            let args = |k| [reals((n + more) as usize, 0), reals(n as usize, 7), Value::Int(k)];
            for k in -1..=more + 1 {
                let (shown, fits) = (check(&window, &args(k)), (0..=more).contains(&k));
                assert_eq!(shown.starts_with('['), fits, "{shown}");
                let (shown, fits) = (check(&mirror, &args(n - 1 + k)), (0..=more).contains(&k));
                assert_eq!(shown.starts_with('['), fits, "{shown}");
            }
        }
    }
}
