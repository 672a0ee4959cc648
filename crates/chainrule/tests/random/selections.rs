//! Maxima, minima and other choices of one number in loops: with ties, in nests, with terms that contain loops of the
//! length of the index, at counts of none, one and more. Products of both modes and Hessians equal those of the
//! evaluator, with the same bits on all backends.

use crate::case::Case;
use crate::compare::{products, second_derivatives};
use crate::support::run;
use arbitrary::{Result, Unstructured};

use chainrule_ir::generate::written::Written;

struct Writer<'a, 'u> {
    u: &'a mut Unstructured<'u>,
}

impl Writer<'_, '_> {
    fn program(mut self, is_scalar: bool) -> Result<Written> {
        let most = if is_scalar { 4 } else { 6 };
        let whole = match self.u.int_in_range(0..=most)? {
            0 | 1 => self.selection("n", 2)?,
            2 => format!("sum m (fun k -> a[k] * {} ** 2)", self.selection("n", 2)?),
            3 => format!("({} * {})", self.selection("n", 2)?, self.selection("n", 1)?),
            4 => format!("ifold (fun q k -> q * 0.5 + a[k] * {}) a[0] m", self.selection("n", 1)?),
            5 => format!("build m (fun k -> a[k] * {})", self.selection("n", 2)?),
            _ => format!(
                "build m (fun k -> (a[k] + {}) / (2 + {} ** 2))",
                self.selection("k", 1)?,
                self.selection("n", 1)?
            ),
        };
        let text = format!("let f = fun (x : [n]Double) (a : [m]Double) ->\n  {whole}\n");
        // Hessians have few elements; the kernel searches more than 128 numbers by blocks.
        let extents: &[i64] = if is_scalar { &[1, 2, 3, 5, 9] } else { &[1, 1, 2, 3, 5, 9, 17, 33, 40, 129, 200] };
        let n = *self.u.choose(extents)?;
        let m = *self.u.choose(&[1, 2, 3, 9])?;
        // Equal numbers among them.
        let equal = self.u.int_in_range(1..=4)?;
        let from = f64::from(self.u.int_in_range(0..=7_u8)?);
        let numbers = |n: i64, from: f64| (0..n).map(|i| (from + 1.7 * (i / equal) as f64).sin()).collect::<Vec<_>>();
        Ok(Written { text, args: vec![numbers(n, from).into(), numbers(m, 0.3).into()] })
    }

    /// Writes a number chosen by a loop of `count` steps, and by further ones in its terms.
    fn selection(&mut self, count: &str, depth: u32) -> Result<String> {
        let (s, i) = (format!("s{depth}"), format!("i{depth}"));
        let term = self.number(&i, depth)?;
        let step = match self.u.int_in_range(0..=9)? {
            0..=2 => format!("max {s} {term}"),
            3 => format!("min {s} {term}"),
            4 => format!("max {term} {s}"),
            5 => format!("min {term} {s}"),
            6 => format!("(if {s} < {term} then {} else {s})", self.number(&i, depth)?),
            7 => format!("(if {s} * {s} < {term} then {s} else {term})"),
            8 => format!("(let t = {term} in if {s} + 0.5 <= t then t * x[{i}] else {s})"),
            // None: the term depends on the state.
            _ => format!("max {s} ({term} - 0.1 * {s})"),
        };
        let init = *self.u.choose(&["x[0]", "a[0]", "(0.3 * x[n - 1])", "(-2)", "0"])?;
        // The index of an inner array of `count` elements is in range of `x`.
        let count = if count == "k" { "(min k n)" } else { count };
        Ok(format!("(ifold (fun {s} {i} -> {step}) {init} {count})"))
    }

    fn number(&mut self, i: &str, depth: u32) -> Result<String> {
        if self.u.is_empty() {
            return Ok(format!("x[{i}]"));
        }
        Ok(match self.u.int_in_range(0..=9)? {
            0..=2 => format!("x[{i}]"),
            3 => format!("(sin (3 * x[{i}]))"),
            4 => format!("(x[{i}] * a[mod {i} m])"),
            5 => format!("(x[n - 1 - {i}] ** 2 - a[0])"),
            6 => format!("(abs x[{i}])"),
            7 => format!("(sum {i} (fun j -> x[j] * a[0]) + x[{i}])"),
            8 => format!("(ifold (fun q j -> q * (0.5 + x[j])) a[0] {i})"),
            _ if depth > 1 => {
                let count = if self.u.arbitrary()? { "n" } else { i };
                format!("(x[{i}] * {})", self.selection(count, depth - 1)?)
            }
            _ => format!("(2 * x[{i}])"),
        })
    }
}

#[test]
fn choices_have_the_derivatives_of_the_evaluator() {
    run(91, 160, 120, 300, |bytes| {
        let Ok(written) = (Writer { u: &mut Unstructured::new(bytes) }).program(false) else { return Ok(false) };
        Case::new(written)?.map_or(Ok(false), |case| products(&case))
    });
}

#[test]
fn choices_have_the_second_derivatives_of_the_evaluator() {
    run(92, 40, 25, 300, |bytes| {
        let Ok(written) = (Writer { u: &mut Unstructured::new(bytes) }).program(true) else { return Ok(false) };
        Case::new(written)?.map_or(Ok(false), |case| second_derivatives(&case))
    });
}

/// Gradients at numbers that random programs lack: NaN, infinities, zeros of both signs, and no step.
#[test]
fn gradients_go_to_the_step_that_decides() {
    let nan = f64::NAN;
    let inf = f64::INFINITY;
    let cases: &[(&str, &[f64], &[f64])] = &[
        ("vectorMax x", &[1.0, 3.0, 3.0, 2.0], &[0.0, 1.0, 0.0, 0.0]),
        ("vectorMin x", &[1.0, 3.0, 1.0, 2.0], &[1.0, 0.0, 0.0, 0.0]),
        ("ifold (fun s i -> max x[i] s) x[0] n", &[1.0, 3.0, 3.0, 2.0], &[0.0, 0.0, 1.0, 0.0]),
        ("ifold (fun s i -> min x[i] s) x[0] n", &[1.0, 3.0, 1.0, 2.0], &[0.0, 0.0, 1.0, 0.0]),
        ("vectorMax x", &[-0.0, 0.0, -0.0], &[1.0, 0.0, 0.0]),
        ("vectorMax x", &[0.0, nan, 1.0, nan], &[0.0, 0.0, 1.0, 0.0]),
        ("vectorMax x", &[nan, 2.0, 1.0], &[1.0, 0.0, 0.0]),
        ("vectorMax x", &[-inf, -inf], &[1.0, 0.0]),
        ("vectorMax x", &[1.0, inf, inf], &[0.0, 1.0, 0.0]),
        ("vectorMin x", &[inf, -inf, -inf], &[0.0, 1.0, 0.0]),
        ("ifold (fun s i -> max x[i] s) x[0] n", &[1.0, nan, 0.5], &[0.0, 0.0, 1.0]),
        ("ifold (fun s i -> max s x[i + 1]) x[0] (n - 1)", &[4.0], &[1.0]),
        ("ifold (fun s i -> max s x[i]) 5 n", &[4.0, 3.0], &[0.0, 0.0]),
        ("ifold (fun s i -> max s (sqrt x[i])) (2 * x[0]) n", &[0.0, 0.0], &[2.0, 0.0]),
        ("sqrt (ifold (fun s i -> max s x[i]) 0 n)", &[-1.0, 4.0], &[0.0, 0.25]),
    ];
    for (body, at, expected) in cases {
        let module = chainrule::Module::from_text("f.ft", &format!("let f = fun (x : [n]Double) -> {body}")).unwrap();
        let f = module.function("f").unwrap();
        for strategy in ["reverse", "forward"] {
            let gradient = f.gradient().strategy(strategy).compile().unwrap();
            let found = gradient.call(&[at.to_vec().into()]).unwrap();
            let found: Vec<f64> = found[0].reals().into_iter().copied().collect();
            assert_eq!(found, *expected, "{body} at {at:?}, {strategy}");
        }
    }
}
