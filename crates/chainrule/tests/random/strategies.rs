//! Programs in F~ unrolled: every strategy of accumulation against forward mode with loops, products with vectors,
//! Hessians, patterns.

use crate::case::Case;
use crate::exact::Exact;
use crate::support::{columns, doubles, fields, limited, matrix, places, program, run, slopes};
use chainrule::{Derivation, Function, Report, STRATEGIES, Type, Value};
use chainrule_accumulate::check::Verdict;
use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::generate::Options;
use chainrule_ops::Precise;
use std::cell::RefCell;

/// Relative to the largest element: the programs are tame, and have at most a few hundred operations.
const TOLERANCE: f64 = 1e-10;

type Matrix = Vec<Vec<f64>>;

/// Unrolled program.
struct Straight {
    function: Function,
    /// Remaining arguments.
    args: Vec<Value<f64>>,
    /// Numbers of doubles of each field of the arguments, in order.
    counts: Vec<usize>,
    /// One list per argument.
    inputs: Vec<Vec<f64>>,
    /// Positions of its arguments' and results' elements in those of the program.
    columns: Vec<usize>,
    rows: Vec<usize>,
    /// The lengths of its results.
    results: Vec<usize>,
}

/// Returns `None` if the program cannot be unrolled: it has integer arrays, or results that are not doubles.
fn straight(p: &Case, result: &Value<f64>) -> Result<Option<Straight>, String> {
    let Some(sizes) = p.sizes() else { return Ok(None) };
    let function = match p.f.unrolled(&sizes) {
        Ok(function) => function,
        Err(e) if e.to_string().contains("integers") || limited(&e) => return Ok(None),
        Err(e) if e.to_string().contains("does not fit into 64 bits") => return Ok(None),
        Err(e) => return Err(format!("does not unroll: {e}")),
    };
    let types: Vec<Type> = p.ir.params.iter().map(|param| p.ir.ty(*param).clone()).collect();
    let left = || types.iter().zip(&p.args).filter(|(ty, _)| **ty != Type::Int);
    let inputs: Vec<Vec<f64>> = left().flat_map(|(ty, arg)| columns(ty, arg)).collect();
    let args = left().map(|(_, arg)| arg.clone()).collect();
    let mut counts = Vec::new();
    left().for_each(|(ty, arg)| fields(ty, arg, &mut counts));
    let result_type = p.ir.result_type().clone();
    let results = columns(&result_type, result).iter().map(Vec::len).collect();
    let rows = places(&[result_type], std::slice::from_ref(result));
    Ok(Some(Straight { function, args, counts, inputs, columns: places(&types, &p.args), rows, results }))
}

fn eval(function: &Function, inputs: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, String> {
    let slices: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    function.compile().and_then(|f| f.eval(&slices)).map_err(|e| e.to_string())
}

impl Straight {
    /// Returns the result of `derivation`, a dense Jacobian; checks that none of its programs was rejected.
    fn jacobian(&self, derivation: &Derivation) -> Result<Matrix, String> {
        let derived = derivation.explain().map_err(|e| e.to_string())?;
        if let Some(report) = derived.reports.iter().find(|report| rejected(report)) {
            return Err(format!("a program was rejected: {report}"));
        }
        let found = self.call(&derived.function)?;
        matrix(&doubles(&found), self.rows.len(), &self.counts).ok_or_else(|| "the Jacobian has another size".into())
    }

    fn call(&self, function: &Function) -> Result<Vec<Value<f64>>, String> {
        function.compile().and_then(|f| f.call(&self.args)).map_err(|e| e.to_string())
    }

    /// Returns the sparse Jacobian with zeros filled in.
    fn sparse(&self) -> Result<Matrix, String> {
        let derived = self.function.jacobian().sparse().function().map_err(|e| e.to_string())?;
        let found = eval(&derived, &self.inputs)?;
        let mut matrix = vec![vec![0.0; self.columns.len()]; self.rows.len()];
        let [shape] = derived.outputs() else { return Err("there is not one matrix".into()) };
        let (pattern, values) = (derived.pattern(&shape.name).ok_or("there is no pattern")?, found.concat());
        if pattern.coo().len() != values.len() {
            return Err("pattern and values have different lengths".into());
        }
        pattern.coo().iter().zip(values).for_each(|((r, c), x)| matrix[self.rows[*r]][self.columns[*c]] = x);
        Ok(matrix)
    }
}

fn rejected(report: &Report) -> bool {
    report.attempts.iter().any(|attempt| matches!(attempt.verdict, Some(Verdict::Differs(_))))
}

fn close(way: &str, found: &[f64], expected: &[f64]) -> Result<(), String> {
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0, |scale: f64, x| scale.max(x.abs()));
    let same = |(a, b): (&f64, &f64)| !b.is_finite() || (a - b).abs() <= TOLERANCE * scale;
    if found.len() == expected.len() && found.iter().zip(expected).all(same) {
        return Ok(());
    }
    Err(format!("{way}: {found:?} is not {expected:?}"))
}

/// Returns numbers that depend on the position.
fn direction(n: usize) -> Vec<f64> {
    (0..n).map(|k| ((k * 7 + 3) % 11) as f64 / 4.0 - 1.25).collect()
}

/// Returns `values` in the order of `places`, cut into lists of these lengths.
fn cut(values: &[f64], places: &[usize], lengths: impl Iterator<Item = usize>) -> Vec<Vec<f64>> {
    let mut rest = places.iter().map(|place| values[*place]);
    lengths.map(|n| rest.by_ref().take(n).collect()).collect()
}

/// Returns the inverse of `cut`.
fn join(lists: &[Vec<f64>], places: &[usize]) -> Result<Vec<f64>, String> {
    let flat = lists.concat();
    if flat.len() != places.len() {
        return Err(format!("{} numbers, not {}", flat.len(), places.len()));
    }
    let mut values = vec![0.0; flat.len()];
    places.iter().zip(flat).for_each(|(place, x)| values[*place] = x);
    Ok(values)
}

fn times(matrix: &Matrix, v: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
}

fn transposed_times(matrix: &Matrix, w: &[f64], n: usize) -> Vec<f64> {
    (0..n).map(|c| matrix.iter().zip(w).map(|(row, b)| row[c] * b).sum()).collect()
}

/// Compares the Jacobian with loops with everything that is available without them.
pub fn compare(p: &Case) -> Result<bool, String> {
    // If an intermediate number is infinite, its product with zero depends on the interpretation.
    if Exact::new(&p.ir, &p.args).is_none() {
        return Ok(false);
    }
    // Loops that exceed their bound have no value, sizes that depend on data cannot be lowered.
    let Ok(value) = p.f.compile().and_then(|f| f.call(&p.args)) else { return Ok(false) };
    let expected = doubles(&value);
    let n = doubles(&p.args).len();
    let Some(s) = straight(p, &value[0])? else { return Ok(false) };
    close("the value unrolled", &join(&eval(&s.function, &s.inputs)?, &s.rows)?, &expected)?;

    let mut counts = Vec::new();
    p.ir.params.iter().zip(&p.args).for_each(|(param, arg)| fields(p.ir.ty(*param), arg, &mut counts));
    let loops = match p.f.jacobian().compile().and_then(|f| f.call(&p.args)) {
        // An array whose size depends on data may be eliminated from the value, but remain in its derivative.
        Err(e) if limited(&e) => return Ok(false),
        loops => loops.map_err(|e| e.to_string())?,
    };
    let j = matrix(&doubles(&loops), expected.len(), &counts).ok_or("the Jacobian has another size")?;
    for strategy in STRATEGIES {
        let found = match s.jacobian(&s.function.jacobian().strategy(strategy.name)) {
            // The sum over all paths stops at its budget.
            Err(e) if strategy.name == "oracle" && limited(&e) => continue,
            found => found.map_err(|e| format!("{}: {e}", strategy.name))?,
        };
        close(strategy.name, &found.concat(), &j.concat())?;
    }
    close("sparse", &s.sparse()?.concat(), &j.concat())?;

    let v = direction(n);
    let lengths = || s.inputs.iter().map(Vec::len);
    let mut along = s.inputs.clone();
    along.extend(cut(&v, &s.columns, lengths()));
    let jvp = s.function.jvp().function().map_err(|e| e.to_string())?;
    close("jvp", &join(&eval(&jvp, &along)?, &s.rows)?, &times(&j, &v))?;
    let w = direction(expected.len());
    let mut against = s.inputs.clone();
    against.extend(cut(&w, &s.rows, s.results.iter().copied()));
    let vjp = s.function.vjp().function().map_err(|e| e.to_string())?;
    close("vjp", &join(&eval(&vjp, &against)?, &s.columns)?, &transposed_times(&j, &w, n))?;
    Ok(j.concat().iter().any(|x| *x != 0.0))
}

#[test]
fn all_strategies_agree_with_forward_mode() {
    run(11, 400, 90, 1200, |bytes| {
        let Some(p) = program(bytes, Options::smooth())? else { return Ok(false) };
        if !p.ir.result_type().has_double() {
            return Ok(false);
        }
        compare(&p).map_err(|e| p.fails(e))
    });
}

/// Checks that all ways select the same derivative at kinks, too, where differences are meaningless.
#[test]
fn all_strategies_agree_with_forward_mode_in_any_program() {
    run(13, 600, 60, 1200, |bytes| {
        let Some(p) = program(bytes, Options::default())? else { return Ok(false) };
        if !p.ir.result_type().has_double() {
            return Ok(false);
        }
        compare(&p).map_err(|e| p.fails(e))
    });
}

/// Returns a Hessian by all arguments, whose fields have these numbers of doubles, `n` in all.
fn symmetric(hessian: &[Value<f64>], counts: &[usize], n: usize) -> Matrix {
    let mut flat = doubles(hessian).into_iter();
    let mut h = vec![Vec::new(); n];
    let mut first = 0;
    for rows in counts {
        for columns in counts {
            h[first..first + rows].iter_mut().for_each(|row| row.extend(flat.by_ref().take(*columns)));
        }
        first += rows;
    }
    h
}

/// Compares second derivatives of a scalar result: with loops and without, by every strategy, along a direction,
/// against differences of the gradient.
fn compare_second(p: &Case, precise: &mut Precise) -> Result<bool, String> {
    let n = doubles(&p.args).len();
    if *p.ir.result_type() != Type::Double || n > 8 {
        return Ok(false);
    }
    let request = Request { parts: vec![Part::Gradient], by: vec![], mode: Mode::Auto, checkpoints: None };
    let gradient = derive(&p.ir, &request).map_err(|e| e.to_string())?;
    let Some(slopes) = slopes(&gradient, &p.args, precise) else { return Ok(false) };
    if slopes.iter().flatten().any(|slope| !slope.smooth) {
        return Ok(false);
    }
    // The gradient's parts are in the order of the arguments' doubles.
    let differences: Matrix = slopes.iter().map(|row| row.iter().map(|slope| slope.value).collect()).collect();
    let mut counts = Vec::new();
    p.ir.params.iter().zip(&p.args).for_each(|(param, arg)| fields(p.ir.ty(*param), arg, &mut counts));
    let loops = p.f.hessian().compile().and_then(|f| f.call(&p.args)).map_err(|e| e.to_string())?;
    let h = symmetric(&loops, &counts, n);
    close("the Hessian with loops", &h.concat(), &differences.concat())?;

    let diagonal: Vec<f64> = (0..n).map(|i| differences[i][i]).collect();
    let loops = p.f.hessian_diagonal().compile().and_then(|f| f.call(&p.args)).map_err(|e| e.to_string())?;
    close("the diagonal with loops", &doubles(&loops), &diagonal)?;

    let value = [Value::Real(0.0)];
    let Some(s) = straight(p, &value[0])? else { return Ok(true) };
    for strategy in STRATEGIES {
        let derived = match s.function.hessian().strategy(strategy.name).explain() {
            Err(e) if strategy.name == "oracle" && limited(&e) => continue,
            derived => derived.map_err(|e| format!("{}: {e}", strategy.name))?,
        };
        let found = symmetric(&s.call(&derived.function)?, &s.counts, n);
        close(&format!("the Hessian by {}", strategy.name), &found.concat(), &differences.concat())?;
    }
    let straight = s.function.hessian_diagonal().function().map_err(|e| e.to_string())?;
    close("the diagonal", &join(&eval(&straight, &s.inputs)?, &s.columns)?, &diagonal)?;
    let v = direction(n);
    let mut along = s.inputs.clone();
    along.extend(cut(&v, &s.columns, s.inputs.iter().map(Vec::len)));
    let hvp = s.function.hvp().function().map_err(|e| e.to_string())?;
    close("hvp", &join(&eval(&hvp, &along)?, &s.columns)?, &times(&differences, &v))?;
    Ok(differences.concat().iter().any(|x| *x != 0.0))
}

#[test]
fn hessians_are_differences_of_gradients() {
    let precise = RefCell::new(Precise::new());
    run(12, 300, 60, 1200, |bytes| {
        let Some(p) = program(bytes, Options { fuel: 30, ..Options::smooth() })? else { return Ok(false) };
        compare_second(&p, &mut precise.borrow_mut()).map_err(|e| p.fails(e))
    });
}
