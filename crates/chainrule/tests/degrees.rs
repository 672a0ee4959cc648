//! Growth of the operations of derivatives with the sizes of arguments.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule::{Function, Module, Rewrite, Semantics};

fn function(text: &str) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap()
}

/// Returns the operations at size `n`.
fn operations(function: &Function, n: i64) -> u64 {
    function.counts_at(&[("n", n)], Rewrite::All).unwrap().weight
}

/// Functions whose loops read elements under conditions, or elements that do not depend on the direction.
const READS: [&str; 6] = [
    "let f = fun (v : [n]Double) ->
       sum 8 (fun b -> sum n (fun j -> if mod j 8 == b then v[j] ** 2 else 0))",
    "let f = fun (v : [n]Double) ->
       sum 8 (fun b -> sum n (fun j -> if mod j 8 == b then v[j] * v[max 0 (j - 1)] else sin v[j]))",
    "let f = fun (v : [n]Double) ->
       let a = build n (fun i -> (if 0 < i then v[i - 1] else 0) - 2 * v[i] * v[i] + (if i < n - 1 then v[i + 1] else 0))
       sum n (fun i -> (if 0 < i then a[i - 1] else 0) * a[i] + (if i < n - 1 then a[i + 1] else 0))",
    "let f = fun (v : [n]Double) ->
       sum 3 (fun k -> sum n (fun j -> if mod j 3 == k then (if mod j 2 == 0 then v[j] else v[n - 1 - j] ** 3) else 0))",
    "let f = fun (v : [n](Double, Double)) ->
       sum 4 (fun b -> sum n (fun j -> if mod j 4 == b then v[j].0 * v[j].1 ** 2 else v[j].0))",
    "let f = fun (v : [n][2]Double) ->
       sum 4 (fun b -> sum n (fun j -> if mod j 4 == b then v[j][0] * v[j][1] ** 2 else v[j][1]))",
];

#[test]
fn second_derivatives_along_directions_of_reads_under_conditions_are_linear() {
    for text in READS {
        let f = function(text);
        for derived in [f.gradient().function().unwrap(), f.hvp().function().unwrap()] {
            let [small, large] = [100, 800].map(|n| operations(&derived, n));
            assert!(large <= 9 * small, "{text}: {small} operations at 100, {large} at 800");
        }
    }
}

/// Functions of several arrays that one loop reads, with loops inside of it.
const MIXTURES: [&str; 4] = [
    "let f = fun (b : [n][2]Double) (c : [n][2]Double) (x : [3][2]Double) ->
       sum 3 (fun i -> logSumExp (build n (fun j ->
         let z = build 2 (fun l -> x[i][l] - b[j][l])
         let y = build 2 (fun l -> exp c[j][l] * z[l] + sum l (fun m -> z[m]))
         vectorSum c[j] - vectorDot y y)))",
    "let f = fun (a : [n]Double) (b : [n][3]Double) (c : [n][3]Double) (x : [4][3]Double) ->
       sum 4 (fun i -> logSumExp (build n (fun j ->
         let z = build 3 (fun l -> (x[i][l] - b[j][l]) * c[j][l])
         let y = build 3 (fun l -> z[l] + sum l (fun m -> sin z[m] * c[j][l]))
         a[j] - vectorDot y y)))",
    "let f = fun (b : [n][2]Double) (c : [2][n]Double) ->
       sum n (fun j -> sum 2 (fun l -> b[j][l] * exp (c[l][j] * sum l (fun m -> b[j][m] * c[m][j]))))",
    "let f = fun (b : [n][2]Double) (c : [n][2]Double) (d : [n]Double) ->
       ifold (fun y j -> y * (d[j] + sum 2 (fun l -> sin b[j][l] * sum (l + 1) (fun m -> cos c[j][m] * b[j][m])))) 1 n",
];

/// Functions whose loops compute the same in every iteration.
const INVARIANTS: [&str; 12] = [
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> sin z[i] * ifold (fun s k -> sin (s + y[k])) 0 n)",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       ifold (fun a i -> sin (a * z[i] + ifold (fun s k -> sin (s + y[k])) 0 n)) 0 n",
    // An unused part of the state depends on the outer loop.
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> sin z[i] * fst (ifold (fun (s, t) k -> (sin (s + y[k]), t * z[i])) (0, z[i]) n))",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> if z[i] > 0 then z[i] * ifold (fun s k -> sin (s + y[k])) 0 n else z[i])",
    "let f = fun (y : [n]Double) (z : [n]Double) -> sum n (fun i -> z[i] * logSumExp (build n (fun k -> y[k] * y[k])))",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       let g = fun (x : [n]Double) -> ifold (fun s k -> tanh (s * x[k] + x[n - 1 - k])) 1 n
       vectorSum (build n (fun i -> z[i] / g y))",
    // Invariant in the inner loop, in the outer one, in both.
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> sum n (fun j -> z[i] * z[j] * ifold (fun s k -> sin (s + z[i] * y[k])) 0 4))",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum 4 (fun i -> ifold (fun s j -> sin (s + z[i] * ifold (fun t k -> sin (t * y[k] + y[j])) 0 4)) 0 n)",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> sum 3 (fun j -> z[i] * sin z[j] * ifold (fun s k -> sin (s + y[k])) 0 n))",
    "let f = fun (y : [n]Double) (z : [n]Double) ->
       sum n (fun i -> let c = ifold (fun (c : [3]Double) k -> build 3 (fun l -> sin (c[l] + y[k]))) [1, 2, 3] n
                       c[mod i 3] * z[i])",
    "let f = fun (y : [n]Double) (r : { a : Double, w : [n]Double }) ->
       sum n (fun i -> r.w[i] * ifold (fun s k -> sin (s + r.a * y[k])) 0 n)",
    "let f = fun (y : [n]Double) (p : [n](Double, Double)) ->
       sum n (fun i -> fst p[i] * fst (ifold (fun (s, t) k -> (s * snd p[k] + t, sin (t + y[k]))) (1, 1) n))",
];

#[test]
fn gradients_by_every_subset_of_arguments_have_the_degree_of_the_function() {
    for text in MIXTURES.iter().chain(&INVARIANTS) {
        let f = function(text);
        let names: Vec<String> = f.signature().params.iter().map(|(name, _)| name.to_string()).collect();
        for subset in 1_usize..1 << names.len() {
            let by = (0..names.len()).filter(|k| subset >> k & 1 == 1).map(|k| names[k].as_str());
            let by: Vec<&str> = by.collect();
            let derived = f.gradient().by(&by).function().unwrap();
            let cost_ratio = |n: i64| operations(&derived, n) as f64 / (operations(&f, n) + n.unsigned_abs()) as f64;
            let [small, large] = [100, 800].map(cost_ratio);
            assert!(large <= 1.1 * small, "{text} by {by:?}: {small} times the function at 100, {large} times at 800");
            assert!(large <= 5.0, "{text} by {by:?}: {large} times the function");
        }
    }
}

#[test]
fn strict_gradients_of_several_reads_are_linear() {
    let texts = [
        "let f = fun (x : [n]Double) ->
           vectorSum (ifold (fun (s : [n]Double) i -> build n (fun k -> sin s[k] + 0.5 * s[max 0 (k - 1)])) x 3)",
        "let f = fun (x : [n]Double) (p : [n]Int) (q : [n]Int) -> sum n (fun i -> sin (x[p[i]] * x[q[i]]))",
        "let f = fun (x : [n][2]Double) (p : [n]Int) -> sum n (fun i -> x[p[i]][0] * x[max 0 (i - 1)][1] * x[i][0])",
        "let f = fun (x : [n]Double) ->
           sum n (fun i -> x[i] * x[max 0 (i - 1)] * x[max 0 (i - 2)] / x[min (n - 1) (i + 1)])",
    ];
    for text in texts {
        let module = Module::from_text("f.ft", text).unwrap().with_semantics(Semantics::Strict);
        let derived = module.function("f").unwrap().gradient().by(&["x"]).function().unwrap();
        let counts = [100, 200, 400, 800].map(|n| operations(&derived, n));
        for pair in counts.windows(2) {
            assert!(pair[1] < 2 * pair[0] + 50, "{text}: {counts:?}");
        }
    }
}
