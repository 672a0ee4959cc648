//! Sparse derivatives of array programs, compiled: known patterns, and random programs against the reference evaluator.

// A failing test stops.
#![allow(clippy::unwrap_used)]

use arbitrary::Unstructured;
use chainrule::{Module, PreparedSparse, Sparse, SparseForm, Value};
use chainrule_autodiff::{Mode, sparse};
use chainrule_ir::generate::gathers;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::collections::BTreeMap;

fn jacobian(text: &str, by: &[&str]) -> Sparse {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap().sparse_jacobian(by).unwrap()
}

fn hessian(text: &str) -> Sparse {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap().sparse_hessian(&[]).unwrap()
}

fn ints(items: &[i64]) -> Value<f64> {
    Value::Array(items.iter().map(|i| Value::Int(*i)).collect())
}

fn entries(at: &PreparedSparse<'_>) -> Vec<(usize, usize, f64)> {
    at.pattern().coo().iter().zip(at.values()).map(|(place, x)| (place.0, place.1, *x)).collect()
}

fn run(sparse: &Sparse, args: &[Value<f64>]) -> Vec<(usize, usize, f64)> {
    let mut at = sparse.prepare(args).unwrap();
    at.run().unwrap();
    entries(&at)
}

#[test]
fn a_block_that_is_read_twice_in_a_row_is_one_entry() {
    let sparse = jacobian(
        "let f = fun (x : [n]Double) (a : [m]Index) (b : [m]Index) ->
        build m (fun i -> x[a[i]] * x[b[i]])",
        &[],
    );
    let x = vec![2.0, 3.0, 5.0];
    let found = run(&sparse, &[x.clone().into(), ints(&[0, 1, 2]), ints(&[1, 1, 0])]);
    assert_eq!(found, [(0, 0, 3.0), (0, 1, 2.0), (1, 1, 6.0), (2, 0, 5.0), (2, 2, 2.0)]);
    // Other integers, another pattern, the same code; no rows at all.
    assert_eq!(run(&sparse, &[x.clone().into(), ints(&[2]), ints(&[2])]), [(0, 2, 10.0)]);
    assert_eq!(run(&sparse, &[x.into(), ints(&[]), ints(&[])]), []);
}

#[test]
fn an_index_that_a_loop_guards_is_read_where_it_runs() {
    let first = jacobian("let f = fun (v : [n]Double) (at : [k]Int) -> sum k (fun i -> v[at[0]])", &[]);
    let v = || -> Value<f64> { vec![1.0, 2.0].into() };
    assert_eq!(run(&first, &[v(), ints(&[])]), []);
    assert_eq!(run(&first, &[Value::Array(vec![]), ints(&[])]), []);
    assert_eq!(run(&first, &[v(), ints(&[1, 0])]), [(0, 1, 2.0)]);
    let failure = first.prepare(&[v(), ints(&[2])]).map(|_| ()).unwrap_err().to_string();
    assert!(failure.contains("an index lies outside of the array `v`"), "{failure}");
    let last = jacobian(
        "let f = fun (v : [n]Double) (at : [k]Int) ->
        build n (fun j -> v[j] * sum k (fun i -> if at[k - 1] == j then v[at[k - 1]] else v[at[i]]))",
        &[],
    );
    assert_eq!(run(&last, &[v(), ints(&[])]), [(0, 0, 0.0), (1, 1, 0.0)]);
    assert_eq!(run(&last, &[v(), ints(&[1])]), [(0, 0, 2.0), (0, 1, 1.0), (1, 1, 4.0)]);
    let squared = hessian("let f = fun (v : [n]Double) (at : [k]Int) -> sum k (fun i -> v[at[0]] * v[at[i]])");
    assert_eq!(run(&squared, &[v(), ints(&[])]), []);
    assert_eq!(run(&squared, &[v(), ints(&[1, 0])]), [(0, 0, 0.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 2.0)]);
}

#[test]
fn loops_that_never_run_have_no_entries() {
    for body in ["sum 0 (fun i -> v[i])", "ifold (fun s i -> s * v[i]) 0.3 0", "build 0 (fun i -> v[i])"] {
        let text = format!("let f = fun (v : [n]Double) -> {body}");
        for n in 0..3 {
            assert_eq!(run(&jacobian(&text, &[]), &[vec![1.0; n].into()]), [], "{body}");
        }
    }
    let of_none = "let f = fun (v : [n][0]Double) -> sum n (fun i -> sum 0 (fun j -> v[i][j] ** 2))";
    assert_eq!(run(&hessian(of_none), &[Value::Array(vec![Value::Array(vec![]), Value::Array(vec![])])]), []);
}

#[test]
fn reads_guarded_by_integers_are_not_in_the_pattern() {
    let sparse = jacobian(
        "let f = fun (x : [n]Double) ->
        build n (fun i -> if 0 < i then x[i] * x[max 0 (i - 1)] else x[i])",
        &[],
    );
    let found = run(&sparse, &[vec![2.0, 3.0, 5.0].into()]);
    assert_eq!(found, [(0, 0, 1.0), (1, 0, 3.0), (1, 1, 2.0), (2, 1, 5.0), (2, 2, 3.0)]);
    assert_eq!(sparse.notes(), [""; 0]);
}

#[test]
fn sums_over_neighbours_may_stand_inside_of_anything() {
    let sparse = jacobian(
        "let f = fun (x : [n]Double) (near : [n][k]Index) ->
        build n (fun i -> (sum k (fun j -> x[near[i][j]])) ** 2)",
        &[],
    );
    let near = Value::Array(vec![ints(&[1, 1]), ints(&[0, 2]), ints(&[2, 1])]);
    let found = run(&sparse, &[vec![2.0, 3.0, 5.0].into(), near]);
    assert_eq!(found, [(0, 1, 24.0), (1, 0, 14.0), (1, 2, 14.0), (2, 1, 16.0), (2, 2, 16.0)]);
}

#[test]
fn arrays_in_between_are_read_through() {
    // A chain of differences: each array reads the previous one twice, which must not double the work each time.
    let mut text = String::from("let f = fun (x : [n]Double) ->\n  let y0 = x\n");
    for k in 1..=12 {
        let before = k - 1;
        text.push_str(&format!("  let y{k} = build n (fun i -> y{before}[i] * y{before}[min (i + 1) (n - 1)])\n"));
    }
    text.push_str("  y12");
    let sparse = jacobian(&text, &[]);
    let n = 40;
    let args = [vec![1.0; n].into()];
    let mut at = sparse.prepare(&args).unwrap();
    at.run().unwrap();
    assert_eq!(sparse.notes(), [""; 0]);
    // Row 0 has the binomial coefficients.
    let first: Vec<f64> = entries(&at).into_iter().filter(|entry| entry.0 == 0).map(|entry| entry.2).collect();
    assert_eq!(first, [1.0, 12.0, 66.0, 220.0, 495.0, 792.0, 924.0, 792.0, 495.0, 220.0, 66.0, 12.0, 1.0]);
}

#[test]
fn a_product_of_matrix_and_vector_by_either() {
    let sparse = jacobian(
        "let f = fun (a : [n][m]Double) (x : [m]Double) ->
        build n (fun i -> sum m (fun j -> a[i][j] * x[j]))",
        &["a"],
    );
    let a = vec![vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]];
    let found = run(&sparse, &[a.into(), vec![7.0, 8.0, 9.0].into()]);
    assert_eq!(found, [(0, 0, 7.0), (0, 1, 8.0), (0, 2, 9.0), (1, 3, 7.0), (1, 4, 8.0), (1, 5, 9.0)]);
}

#[test]
fn records_with_integers_and_small_arrays_make_blocks() {
    let sparse = jacobian(
        "let f = fun (edge : [m]{ from : Index, weight : Double }) (x : [n][2]Double) ->
        build m (fun i -> vectorSMul x[edge[i].from] edge[i].weight)",
        &[],
    );
    let edge = |from, weight| Value::Tuple(vec![Value::Int(from), Value::Real(weight)]);
    let args = [Value::Array(vec![edge(1, 3.0), edge(0, 5.0)]), vec![vec![7.0, 8.0], vec![9.0, 10.0]].into()];
    let mut at = sparse.prepare(&args).unwrap();
    at.run().unwrap();
    // Columns 0 and 1 are the weights; each row has one of them and a block of x.
    let blocks: Vec<[usize; 4]> =
        at.blocks().unwrap().into_iter().map(|b| [b.row, b.column, b.n_rows, b.n_columns]).collect();
    assert_eq!(blocks, [[0, 0, 2, 1], [2, 1, 2, 1], [0, 4, 2, 2], [2, 2, 2, 2]]);
    let first = at.blocks().unwrap()[2];
    let element = |i: usize, j: usize| at.computed()[first.start + i * first.stride + j];
    assert_eq!([element(0, 0), element(0, 1), element(1, 0), element(1, 1)], [3.0, 0.0, 0.0, 3.0]);
    assert_eq!(entries(&at)[..3], [(0, 0, 9.0), (0, 4, 3.0), (0, 5, 0.0)]);
}

#[test]
fn the_hessian_of_a_separable_sum_has_its_blocks() {
    let sparse = hessian(
        "let f = fun (x : [n]Double) ->
        0.5 * sum (n - 1) (fun i -> x[i] * x[i] * x[i + 1]) + sin (x[0])",
    );
    let mut at = sparse.prepare(&[vec![0.0, 3.0, 5.0, 7.0].into()]).unwrap();
    at.run().unwrap();
    let expected = [
        (0, 0, 3.0),
        (0, 1, 0.0),
        (1, 0, 0.0),
        (1, 1, 5.0),
        (1, 2, 3.0),
        (2, 1, 3.0),
        (2, 2, 7.0),
        (2, 3, 5.0),
        (3, 2, 5.0),
    ];
    let found: Vec<(usize, usize, f64)> =
        entries(&at).into_iter().filter(|entry| entry.0 != entry.1 || entry.2 != 0.0).collect();
    assert_eq!(found, expected);
    // An empty sum.
    assert_eq!(run(&sparse, &[vec![0.0].into()]), [(0, 0, 0.0)]);
}

#[test]
fn indices_that_depend_on_doubles_make_dense_columns_and_are_told() {
    let sparse = jacobian(
        "let f = fun (x : [n]Double) (w : [n]Double) ->
        build n (fun i ->
          let k = if x[i] > 0 then i else 0
          w[k] * x[i])",
        &[],
    );
    assert_eq!(sparse.notes(), ["`w` is used as a whole, or at indices that are not known before"]);
    let found = run(&sparse, &[vec![2.0, 3.0].into(), vec![5.0, 7.0].into()]);
    let expected = [(0, 0, 5.0), (0, 2, 2.0), (0, 3, 0.0), (1, 1, 7.0), (1, 2, 0.0), (1, 3, 3.0)];
    assert_eq!(found, expected);
}

#[test]
fn what_is_held_constant_and_rules_of_functions_are_respected() {
    let sparse = jacobian(
        "let f = fun (x : [n]Double) ->
        let c = constant x
        build n (fun i -> x[i] * c[max 0 (i - 1)])",
        &[],
    );
    assert_eq!(run(&sparse, &[vec![2.0, 3.0].into()]), [(0, 0, 2.0), (1, 1, 2.0)]);
    // A rule that is not the derivative shows that it is used.
    let sparse = jacobian(
        "let twice = fun (x : Double) ->
        withDerivative (fun x -> 2 * x) (fun self x y t -> 7 * t) (fun self x y w -> 7 * w) x
\nlet f = fun (x : [n]Double) -> build n (fun i -> twice x[i])",
        &[],
    );
    assert_eq!(run(&sparse, &[vec![2.0, 3.0].into()]), [(0, 0, 7.0), (1, 1, 7.0)]);
    // A rule has no derivative by captured variables.
    let captures = "let f = fun (x : [n]Double) ->
      build n (fun i -> withDerivative (fun a -> a * x[0]) (fun _ _ _ t -> t) (fun _ _ _ w -> w) x[i])";
    let function = Module::from_text("f.ft", captures).unwrap().function("f").unwrap();
    let error = function.sparse_jacobian(&[]).unwrap_err().to_string();
    assert!(error.contains("a derivative would be lost"), "{error}");
}

#[test]
fn an_index_out_of_range_is_an_error() {
    let sparse = jacobian("let f = fun (x : [n]Double) (a : [m]Index) -> build m (fun i -> x[a[i]])", &[]);
    let error = sparse.prepare(&[vec![2.0, 3.0].into(), ints(&[0, 2])]).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("an index lies outside of the array `x`"), "{error}");
    assert!(error.contains("x[a[i]]") && error.contains("the index is 2, the length 2"), "{error}");
    let x = chainrule::vars("x", 2);
    let straight = chainrule::Function::new("g", &x, &x.norm()).unwrap();
    assert!(straight.sparse_jacobian(&[]).unwrap_err().to_string().contains("straight-line"));
}

#[test]
fn arrays_of_less_than_no_elements_are_refused_where_there_are_any() {
    let text = "let f = fun (x : [n]Double) (y : [m]Double) -> build n (fun i -> build (m - 1) (fun j -> x[i] * y[j]))";
    let sparse = jacobian(text, &["x", "y"]);
    let doubles = |n: usize| Value::from(vec![1.5; n]);
    for (n, m) in [(0, 0), (0, 3), (1, 1)] {
        assert_eq!(run(&sparse, &[doubles(n), doubles(m)]), [], "{n} {m}");
    }
    assert_eq!(run(&sparse, &[doubles(1), doubles(2)]), [(0, 0, 1.5), (0, 1, 1.5)]);
    // Like the function itself, which has no value there.
    let refused = sparse.prepare(&[doubles(2), doubles(0)]).unwrap_err().to_string();
    assert!(refused.contains("m*n - n must not be negative, but it is -2"), "{refused}");
}

/// Reconstructs the matrix from results in any form, with entries at the same position added.
fn told(
    results: &[(chainrule::Name, chainrule::Type, Value<f64>)],
    shape: (usize, usize),
) -> Result<BTreeMap<(usize, usize), f64>, String> {
    let list = |name: &str| -> Option<Vec<usize>> {
        let Value::Array(items) = &results.iter().find(|(other, ..)| other.as_str() == name)?.2 else { return None };
        items.iter().map(|item| if let Value::Int(i) = item { usize::try_from(*i).ok() } else { None }).collect()
    };
    if list("shape") != Some(vec![shape.0, shape.1]) {
        return Err(format!("{results:?} is not of the shape {shape:?}"));
    }
    // The line of each entry of compressed lines.
    let line = |starts: Vec<usize>| -> Vec<usize> {
        starts.windows(2).enumerate().flat_map(|(line, ends)| vec![line; ends[1] - ends[0]]).collect()
    };
    let extents = list("n_rows").zip(list("n_columns"));
    let ((Some(rows), Some(columns), None) | (Some(rows), None, Some(columns)) | (None, Some(columns), Some(rows))) =
        (list("rows"), list("columns"), list("starts").map(line))
    else {
        return Err(format!("{results:?} is in no form"));
    };
    let mut values = results.last().map(|(.., values)| values.reals()).unwrap_or_default().into_iter();
    let mut told = BTreeMap::new();
    for (k, (row, column)) in rows.iter().zip(&columns).enumerate() {
        let (n_rows, n_columns) = extents.as_ref().map_or((1, 1), |(rows, columns)| (rows[k], columns[k]));
        for i in 0..n_rows {
            for j in 0..n_columns {
                *told.entry((row + i, column + j)).or_insert(0.0) += values.next().ok_or("too few values")?;
            }
        }
    }
    if values.next().is_some() || rows.len() != columns.len() { Err("too many values".to_owned()) } else { Ok(told) }
}

#[test]
fn compiled_derivatives_of_random_programs_are_those_of_the_evaluator() {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(150),
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let bytes = proptest::collection::vec(any::<u8>(), 50..400);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let Ok((function, args)) = gathers::rows(&mut Unstructured::new(&bytes)) else { return Ok(()) };
        let text = chainrule_ir::print(&function);
        let wrong = |what: String| TestCaseError::fail(format!("{what}\n{text}\n{args:?}"));
        let expected = sparse::jacobian(&function, &[], Mode::Auto).map_err(|e| wrong(format!("{e:?}")))?;
        let (expected, _) = sparse::check::entries(&expected, &args).map_err(wrong)?;
        let program = Module::from_text("random.ft", &text).and_then(|module| module.function("gathers"));
        let compiled = program.and_then(|f| f.sparse_jacobian(&[])).map_err(|e| wrong(e.to_string()))?;
        let mut at = compiled.prepare(&args).map_err(|e| wrong(e.to_string()))?;
        at.run().map_err(|e| wrong(e.to_string()))?;
        let found: BTreeMap<(usize, usize), f64> = entries(&at).into_iter().map(|(r, c, x)| ((r, c), x)).collect();
        for form in [SparseForm::Coo, SparseForm::Csr, SparseForm::Csc] {
            let told = told(&at.results(form), at.pattern().shape()).map_err(wrong)?;
            if told.len() != found.len() || found.iter().any(|(place, x)| told.get(place) != Some(x)) {
                return Err(wrong(format!("{form:?}: {told:?} is not {found:?}")));
            }
        }
        let blocks = at.block_results().map_err(|e| wrong(e.to_string()))?;
        let blocks = told(&blocks, at.pattern().shape()).map_err(wrong)?;
        for place in found.keys().chain(blocks.keys()) {
            let of = |entries: &BTreeMap<(usize, usize), f64>| entries.get(place).copied().unwrap_or(0.0);
            let (x, y) = (of(&blocks), of(&found));
            if x != y && (x - y).abs() > 1e-11 * y.abs().max(1.0) {
                return Err(wrong(format!("blocks at {place:?}: {x} is not {y}")));
            }
        }
        // When elaborated from text, more indices are proved to be in range, so that the pattern may be smaller.
        let at = |entries: &BTreeMap<(usize, usize), f64>, place| entries.get(place).copied().unwrap_or(0.0);
        for place in found.keys().chain(expected.keys()) {
            let (x, y) = (at(&found, place), at(&expected, place));
            if (x - y).abs() > 1e-11 * y.abs().max(1.0) {
                return Err(wrong(format!("at {place:?}: {x} is not {y}")));
            }
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
