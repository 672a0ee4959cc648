//! Elements that go backwards with the lanes: the bits of sequential execution, at each number of leftover lanes.

use super::support::{check, reals};
use chainrule::{Module, Semantics};

const TEXT: &str = "
let flipped = fun (x : [n]Double) -> build n (fun i -> x[n - i - 1] * x[i])
let written = fun (x : [n]Double) -> (build n (fun i -> 3.0 - x[i]), sum n (fun i -> x[n - i - 1] * x[i]))
let filtered = fun (x : [n]Double) (k : [m]Double) ->
  build m (fun j -> sum (n - m + 1) (fun i -> x[m - 1 - j + i] * x[i]))
let chosen = fun (x : [n]Double) -> build n (fun i -> if x[n - i - 1] < 0.3 then sin (x[n - i - 1]) else x[i])
let down = fun (x : [n]Double) -> build n (fun i -> let t = x[n - i - 1] in (t * x[i], t + x[i]))
";

#[test]
fn reversed_elements_keep_their_bits() {
    let module = Module::from_text("reversed.ft", TEXT).unwrap();
    for strictly in [Semantics::Algebraic, Semantics::Strict] {
        let module = module.clone().with_semantics(strictly);
        for n in (0..=40).chain([63, 64, 65, 200]) {
            for name in ["flipped", "written", "chosen", "down"] {
                let shown = check(&module.function(name).unwrap(), &[reals(n, 0)]);
                assert!(!shown.contains("Error"), "{name}: {shown}");
            }
            for m in [1, 3, 7, 8, 9, 13, 16, 31].into_iter().filter(|m| *m <= n) {
                let shown = check(&module.function("filtered").unwrap(), &[reals(n, 0), reals(m, 1)]);
                assert!(!shown.contains("Error"), "filtered: {shown}");
            }
        }
    }
}
