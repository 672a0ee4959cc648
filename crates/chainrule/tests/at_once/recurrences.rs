//! Recurrences whose costly work runs in lanes: the bits of sequential execution.

use super::support::{check, reals};
use chainrule::{Module, Semantics, Value};

const TEXT: &str = "
let average = fun (x : [n]Double) ->
  ifold (fun s i -> let (a, t) = s in let b = 0.9 * a + exp (x[i]) * sin (x[i]) in (b, t + b * b)) (0.0, 0.0) n
let running = fun (x : [n]Double) -> snd (scan (fun s i -> let t = s * 0.5 + tanh (x[i]) in (t, t * x[i])) 0.0 n)
let backwards = fun (x : [n]Double) ->
  ifold (fun s i -> max (s * cos (x[n - i - 1])) (exp (x[n - i - 1]) - s)) 0.25 n
let gathered = fun (x : [n]Double) (k : [n]Int) ->
  ifold (fun s i -> (if s < 2.0 then s * 0.5 else 0.25) + log (1.5 + x[k[i]]) * s) 1.0 n
let added = fun (x : [n]Double) -> sum n (fun i -> exp (x[i]))
";

#[test]
fn recurrences_keep_their_bits() {
    let module = Module::from_text("recurrences.ft", TEXT).unwrap();
    for strictly in [Semantics::Algebraic, Semantics::Strict] {
        let module = module.clone().with_semantics(strictly);
        for n in [0_usize, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 71, 127, 128, 129, 200] {
            for name in ["average", "running", "backwards", "added"] {
                let shown = check(&module.function(name).unwrap(), &[reals(n, 0)]);
                assert!(!shown.contains("Error"), "{name}: {shown}");
            }
            let k: Vec<Value<f64>> = (0..n).map(|i| Value::Int((i * i) as i64 % n.max(1) as i64)).collect();
            let shown = check(&module.function("gathered").unwrap(), &[reals(n, 0), Value::Array(k)]);
            assert!(!shown.contains("Error"), "gathered: {shown}");
        }
    }
}

#[test]
fn a_wrong_index_in_a_recurrence_is_told() {
    let gathered = Module::from_text("recurrences.ft", TEXT).unwrap().function("gathered").unwrap();
    for n in [1_usize, 8, 20, 64, 100] {
        for wrong in [0, n / 2, n - 1] {
            let k = (0..n).map(|i| Value::Int(if i == wrong { -3 } else { i as i64 }));
            let shown = check(&gathered, &[reals(n, 0), Value::Array(k.collect())]);
            assert!(shown.contains(&format!("the index is -3, the length {n}")), "{shown}");
        }
    }
}

#[test]
fn costly_work_leaves_recurrences() {
    let module = Module::from_text("recurrences.ft", TEXT).unwrap();
    let listing = |name: &str| module.function(name).unwrap().compile().unwrap().listing();
    for name in ["average", "running", "backwards", "gathered"] {
        assert!(listing(name).contains("at once"), "{name}: {}", listing(name));
    }
}
