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

/// A random program: in a branch, positions in the cotangent of `v23` take loops over `y`.
const BRANCH: &str = "
let conditioned = fun (a : [n][n]Double) ->
  build n (fun i -> build n (fun j -> (if i == j then 3.0 else 0.0) + 0.1 * tanh a[i][j]))
let g1 = fun (u2 : [p]Double) (t3 : [p]Double) ->
  (sum p (fun i4 -> t3[i4])) + (max u2[(p - 1)] t3[(argmax u2)])
let g5 = fun (u6 : [p]Double) (t7 : Double) ->
  matrixTrace (build 4 (fun i8 -> build 4 (fun i9 -> 0.1 * i9)))
let f = fun (x : [n]Double) (y : [m]Double) (b : [n][n]Double) (r : { a : Double, w : [m]Double }) ->
  let v10 = vectorMap2 (build n (fun i11 -> ifold (fun s12 i13 -> 0.5 * s12 
    + ((sin r.w[(argmax y)]) * (if i11 < 3 then r.w[(argmin y)] else r.a))) (tanh (g5 x (0.1 * i11))) (div n 2))) 
    (vectorMap2 (build n (fun i14 -> vectorNorm (vectorMap (build (m - 1) (fun i15 -> b[i14][i14])) (fun t16 -> r.a)))) x (fun s17 t18 -> t18)) (fun s19 t20 -> x[(argmin x)])
  let v21 = { a = cos ((build m (fun i22 -> y[(mod (i22 + 1) m)] * r.w[(m - 1 - i22)]))[(argmin y)]),
    w = solve (conditioned (if v10[(n - 1)] >= x[0] then b else b)) v10 }
  let v23 = matrixTranspose (vectorOutProd (vectorNeg v10) y)
  let v24 = if (v21.w[(argmax x)] * v21.w[(n - 1)]) >= (vectorVariance (build 4 (fun i25 -> v21.w[(mod i25 n)])))
    then (vectorMap (vectorSlice (convolve (let t27 = v21.w[(argmax x)] in (build 1 (fun i28 -> 0.1 * i28))) 
    [v23[(argmin y)][(n - 1)], (cos v23[(argmin y)][0]), (tanh (sum (div m 2) (fun i26 -> 0.1 * i26)))]) 1 1)
    (fun t29 -> if (sum (n - 1) (fun i30 -> -0.75))
    < (v10[0] * v23[(argmax y)][(n - 1)]) then v23[(m - 1)][0] else t29))
    else (build 1 (fun i31 -> v23[(mod i31 m)][(mod i31 n)]))
  vectorSum v24";

#[test]
fn positions_in_a_branch_are_not_searched_for_each_element() {
    let f = function(BRANCH);
    let derived = f.gradient().by(&["x"]).function().unwrap();
    let [small, large] = [40, 160].map(|m| {
        let operations = |f: &Function| f.counts_at(&[("n", 6), ("m", m)], Rewrite::All).unwrap().weight as f64;
        operations(&derived) / operations(&f)
    });
    assert!(large <= 2.0 * small, "{small} times the function at 40, {large} times at 160");
}

#[test]
fn strict_derivatives_of_several_reads_are_linear() {
    let texts = [
        "let f = fun (x : [n]Double) ->
           vectorSum (ifold (fun (s : [n]Double) i -> build n (fun k -> sin s[k] + 0.5 * s[max 0 (k - 1)])) x 3)",
        "let f = fun (x : [n]Double) (p : [n]Int) (q : [n]Int) -> sum n (fun i -> sin (x[p[i]] * x[q[i]]))",
        "let f = fun (x : [n][2]Double) (p : [n]Int) -> sum n (fun i -> x[p[i]][0] * x[max 0 (i - 1)][1] * x[i][0])",
        "let f = fun (x : [n]Double) ->
           sum n (fun i -> x[i] * x[max 0 (i - 1)] * x[max 0 (i - 2)] / x[min (n - 1) (i + 1)])",
        "let f = fun (x : [n]Double) ->
           vectorSum (ifold (fun (s : [n]Double) i ->
             build n (fun k -> sin s[k] + (if k > 0 then s[k - 1] else 0))) x 3)",
        "let f = fun (x : [n]Double) ->
           vectorSum (ifold (fun (s : [n]Double) i ->
             build n (fun k -> s[k] * ((if k > 0 then s[k - 1] ** 2 else 1) - (if k + 1 < n then s[k + 1] else s[0])))) x 3)",
        "let f = fun (x : [n][2]Double) -> sum n (fun i -> x[i][0] * (if i > 0 then x[i - 1][1] else 0))",
        // Arrays of tuples, as in the directions of second derivatives.
        "let f = fun (x : [n](Double, Double)) ->
           sum n (fun i -> x[i].0 * x[max 0 (i - 1)].1 * sin x[min (n - 1) (i + 1)].0)",
        "let f = fun (x : [n]Double) ->
           let s = ifold (fun (s : [n]((Double, Double), Double)) i ->
             build n (fun k -> let a = s[max 0 (k - 1)] in let b = s[min (n - 1) (k + 1)]
               ((sin a.0.0 + b.1, a.1 * b.0.1), a.0.1 - b.0.0))) (build n (fun k -> ((x[k], 1.0), x[k] ** 2))) 3
           sum n (fun k -> s[k].0.0 * s[k].1)",
    ];
    for text in texts {
        let module = Module::from_text("f.ft", text).unwrap().with_semantics(Semantics::Strict);
        let f = module.function("f").unwrap();
        let gradient = f.gradient().by(&["x"]).function().unwrap();
        let product = f.hvp().by(&["x"]).function().unwrap();
        for derived in [gradient, product] {
            let counts = [100, 200, 400, 800].map(|n| operations(&derived, n));
            // The number of operations added for an element does not grow.
            let added = [counts[1] - counts[0], counts[2] - counts[1], counts[3] - counts[2]];
            assert!(added.windows(2).all(|pair| pair[1] < 2 * pair[0] + 50), "{text}: {counts:?}");
        }
    }
}
