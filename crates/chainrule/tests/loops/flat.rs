//! Flat indices into arrays of other shapes: the same values and gradients as with an index for each dimension, without
//! divisions.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::values::{array, numbers};
use chainrule::{Function, Module, Value};

/// Pairs of programs: with digits of a flat index, and with an index for each dimension.
const PROGRAMS: &str = "
let flat = fun (a : [n][m]Double) (w : [n * m]Double) -> sum (n * m) (fun k -> w[k] * sin a[div k m][mod k m])
let flatPlain = fun (a : [n][m]Double) (w : [n * m]Double) -> sum n (fun i -> sum m (fun j -> w[m * i + j] * sin a[i][j]))

let deep = fun (a : [l][n][m]Double) (w : [l * n * m]Double) ->
  sum (l * n * m) (fun k -> w[k] * exp a[div (div k m) n][mod (div k m) n][mod k m])
let deepPlain = fun (a : [l][n][m]Double) (w : [l * n * m]Double) ->
  sum l (fun h -> sum n (fun i -> sum m (fun j -> w[n * m * h + m * i + j] * exp a[h][i][j])))

let there = fun (a : [n][m]Double) (w : [n][m]Double) ->
  let b = build (n * m) (fun k -> sin a[div k m][mod k m])
  sum n (fun i -> sum m (fun j -> w[i][j] * b[m * i + j] * b[m * i + j]))
let therePlain = fun (a : [n][m]Double) (w : [n][m]Double) ->
  sum n (fun i -> sum m (fun j -> w[i][j] * sin a[i][j] * sin a[i][j]))

let backwards = fun (a : [n][m]Double) (w : [m]Double) ->
  sum n (fun i -> sum m (fun j -> let k = m * i + m - 1 - j in w[j] * a[div k m][mod k m] * a[n - 1 - div k m][j]))
let backwardsPlain = fun (a : [n][m]Double) (w : [m]Double) ->
  sum n (fun i -> sum m (fun j -> w[j] * a[i][m - 1 - j] * a[n - 1 - i][j]))

let groups = fun (a : [n][2 * m]Double) (w : [n][m]Double) ->
  sum n (fun i -> sum m (fun j -> w[i][j] * (sum 2 (fun k ->
    let e = 2 * m * i + 2 * j + k in a[div e (2 * m)][mod e (2 * m)])) ** 2.0))
let groupsPlain = fun (a : [n][2 * m]Double) (w : [n][m]Double) ->
  sum n (fun i -> sum m (fun j -> w[i][j] * (a[i][2 * j] + a[i][2 * j + 1]) ** 2.0))

let turned = fun (a : [n][m]Double) (w : [n * m]Double) -> sum (n * m) (fun k -> w[k] * a[mod k n][div k n])
let turnedPlain = fun (a : [n][m]Double) (w : [n * m]Double) -> sum m (fun j -> sum n (fun i -> w[n * j + i] * a[i][j]))
";

fn gradient(name: &str) -> Function {
    let function = Module::from_text("flat.ft", PROGRAMS).unwrap().function(name).unwrap();
    function.gradient().with_value().function().unwrap()
}

#[test]
fn digits_of_flat_indices_are_elements() {
    for (name, shapes) in [
        ("flat", ["nm", "N"]),
        ("deep", ["lnm", "L"]),
        ("there", ["nm", "nm"]),
        ("backwards", ["nm", "m"]),
        ("groups", ["nM", "nm"]),
        ("turned", ["nm", "N"]),
    ] {
        let [found, plain] = [name.to_owned(), format!("{name}Plain")].map(|name| gradient(&name).compile().unwrap());
        for (n, m, l) in [(1, 1, 1), (3, 5, 2), (7, 1, 4), (1, 9, 3), (12, 40, 5), (0, 3, 2), (3, 0, 2)] {
            let extent = |letter: char| match letter {
                'n' => n,
                'm' => m,
                'l' => l,
                'M' => 2 * m,
                'N' => n * m,
                _ => l * n * m,
            };
            let mut seed = 0;
            let args = shapes.map(|s| array(&s.chars().map(extent).collect::<Vec<_>>(), &mut seed));
            let [found, plain] =
                [&found, &plain].map(|f| f.call(&args).unwrap().iter().flat_map(numbers).collect::<Vec<f64>>());
            assert_eq!(found.len(), plain.len(), "{name}");
            for (x, y) in found.iter().zip(&plain) {
                assert!((x - y).abs() <= 1e-13 * y.abs().max(1.0), "{name} at {n}, {m}, {l}: {x} and {y}");
            }
        }
        if name != "turned" {
            assert!(!found.listing().contains("= int mod r"), "{name}\n{}", found.listing());
        }
    }
}

#[test]
fn digits_of_indices_outside_fail() {
    let text = "let f = fun (a : [n][m]Double) (k : Int) -> a[div k m][mod k m]";
    let f = Module::from_text("outside.ft", text).unwrap().function("f").unwrap().compile().unwrap();
    let at = |n: usize, m: usize, k: i64| f.call(&[array(&[n, m], &mut 0), Value::Int(k)]);
    assert_eq!(at(3, 4, 7).unwrap(), vec![Value::Real((8 * 7919 % 1013) as f64 / 1013.0 - 0.3)]);
    for (n, m, k) in [(3, 4, 12), (3, 4, -1), (3, 0, 0), (0, 4, 0)] {
        assert!(at(n, m, k).is_err(), "{n}, {m}, {k}");
    }
}
