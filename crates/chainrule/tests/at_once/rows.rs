//! Rows that are long enough for lanes along them, several at once.

use super::support::{check, matrix, reals};
use chainrule::Module;

const TEXT: &str = "
let loss = fun (w : [m]Double) (x : [n][m]Double) (y : [n]Double) ->
  sum n (fun i -> let z = vectorDot x[i] w in log (1.0 + exp z) - y[i] * z)
let squares = fun (w : [m]Double) (x : [n][m]Double) (y : [n]Double) ->
  sum n (fun i -> let r = vectorDot x[i] w - y[i] in r * r)
let both = fun (w : [m]Double) (x : [n][m]Double) (y : [n]Double) ->
  let z = build n (fun i -> vectorDot x[i] w) in
  (sum n (fun i -> exp (z[i]) * y[i]), build m (fun j -> sum n (fun i -> tanh (z[i]) * x[i][j])))
";

#[test]
fn rows_have_the_bits_of_the_interpreter() {
    let module = Module::from_text("rows.ft", TEXT).unwrap();
    for name in ["loss", "squares"] {
        let value = module.function(name).unwrap();
        let gradient = value.gradient().by(&["w"]).function().unwrap();
        for (n, m) in [(1, 64), (3, 70), (4, 63), (5, 64), (8, 65), (9, 100), (15, 71), (16, 64), (23, 130), (1000, 66)]
        {
            let args = [reals(m, 0), matrix(n, m), reals(n, 5)];
            for function in [&value, &gradient] {
                let shown = check(function, &args);
                assert!(!shown.contains("Error"), "{name} {n} {m}: {shown}");
            }
        }
    }
    let both = module.function("both").unwrap();
    for (n, m) in [(1, 64), (7, 80), (8, 64), (20, 65), (1000, 66)] {
        let shown = check(&both, &[reals(m, 0), matrix(n, m), reals(n, 5)]);
        assert!(!shown.contains("Error"), "both {n} {m}: {shown}");
    }
}
