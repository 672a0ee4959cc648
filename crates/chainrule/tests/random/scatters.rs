//! Programs whose gradients add to elements shared between iterations: stencils, convolutions, elements by indices from
//! data. Products of both modes equal those of the evaluator, with the same bits on all backends, for loops in lanes,
//! in pieces, or in order.

use crate::case::Case;
use crate::compare::products;
use crate::support::run;
use arbitrary::{Result, Unstructured};
use chainrule::Value;
use chainrule_ir::generate::written::Written;

struct Writer<'a, 'u> {
    u: &'a mut Unstructured<'u>,
}

/// Variables in scope: the index of rows, those of columns and of the window, if there are any.
#[derive(Clone, Copy)]
struct Scope {
    column: bool,
    window: bool,
}

impl Writer<'_, '_> {
    /// Writes a sum over rows, or an array of them, of a program on vectors, a matrix, weights and indices.
    fn program(mut self) -> Result<Written> {
        let scope = Scope { column: false, window: false };
        let term = match self.u.int_in_range(0..=2)? {
            0 => self.number(scope, 3)?,
            1 => format!("sum (m - 3) (fun j -> {})", self.number(Scope { column: true, ..scope }, 3)?),
            _ => format!("{} * {}", self.number(scope, 2)?, self.number(scope, 2)?),
        };
        let whole = match self.u.int_in_range(0..=3)? {
            0 => format!("build (n - 3) (fun i -> {term})"),
            1 => format!("ifold (fun s i -> 0.5 * s + {term}) 0.0 (n - 3)"),
            _ => format!("sum (n - 3) (fun i -> {term})"),
        };
        let text = format!(
            "let f = fun (x : [n]Double) (a : [n][m]Double) (w : [3]Double) (at : [n]Int) ->\n  let y = build n (fun i -> x[i] * x[i] + 1) in\n  {whole}\n"
        );
        let (n, m) = (self.u.int_in_range(3..=45)?, self.u.int_in_range(3..=20)?);
        let numbers = |n: i64, from: f64| (0..n).map(|i| (from + 1.7 * i as f64).sin()).collect::<Vec<_>>();
        let rows: Vec<Value<f64>> = (0..n).map(|i| numbers(m, i as f64 * 0.7).into()).collect();
        let step = self.u.int_in_range(0..=12)?;
        let at: Vec<Value<f64>> = (0..n).map(|i| Value::Int(i * step % n)).collect();
        let args = vec![numbers(n, 1.0).into(), Value::Array(rows), numbers(3, 2.0).into(), Value::Array(at)];
        Ok(Written { text, args })
    }

    fn number(&mut self, scope: Scope, depth: u32) -> Result<String> {
        if depth == 0 || self.u.is_empty() {
            return self.element(scope);
        }
        Ok(match self.u.int_in_range(0..=9)? {
            0..=3 => {
                let op = *self.u.choose(&["+", "-", "*"])?;
                format!("({} {op} {})", self.number(scope, depth - 1)?, self.number(scope, depth - 1)?)
            }
            4 => format!("{} {}", self.u.choose(&["sin", "tanh"])?, self.parenthesised(scope, depth - 1)?),
            5 => format!("sqrt (1 + {} ** 2)", self.parenthesised(scope, depth - 1)?),
            6 | 7 if !scope.window => {
                let inside = self.number(Scope { window: true, ..scope }, depth - 1)?;
                format!("(sum 3 (fun k -> w[k] * {inside}))")
            }
            8 if !scope.column => {
                let inside = self.number(Scope { column: true, ..scope }, depth - 1)?;
                format!("(sum (m - 3) (fun j -> {inside}))")
            }
            8 => {
                let (then, otherwise) = (self.number(scope, depth - 1)?, self.number(scope, depth - 1)?);
                format!("(if {} < 0.3 then {then} else {otherwise})", self.element(scope)?)
            }
            _ => self.element(scope)?,
        })
    }

    fn parenthesised(&mut self, scope: Scope, depth: u32) -> Result<String> {
        Ok(format!("({})", self.number(scope, depth)?))
    }

    fn element(&mut self, scope: Scope) -> Result<String> {
        let beside = |index: &str, u: &mut Unstructured<'_>| -> Result<String> {
            Ok(match u.int_in_range(0..=3)? {
                0 => index.to_owned(),
                _ if scope.window && u.ratio(1, 2)? => format!("{index} + k"),
                by => format!("{index} + {by}"),
            })
        };
        let row = match self.u.int_in_range(0..=8)? {
            0 => "at[i]".to_owned(),
            1 => "n - 1 - i".to_owned(),
            2 => "div i 2".to_owned(),
            3 => "at[i + 1]".to_owned(),
            // An element shared by all iterations, which does not exist if there are none.
            4 => "n - 4".to_owned(),
            _ => beside("i", self.u)?,
        };
        let array = *self.u.choose(&["x", "y", "a"])?;
        Ok(match array {
            "a" if scope.column => format!("a[{row}][{}]", beside("j", self.u)?),
            "a" => format!("a[{row}][{}]", self.u.int_in_range(0..=2)?),
            vector => format!("{vector}[{row}]"),
        })
    }
}

#[test]
fn what_is_added_to_elements_of_others_is_what_the_evaluator_adds() {
    run(70, 120, 100, 300, |bytes| {
        let Ok(written) = (Writer { u: &mut Unstructured::new(bytes) }).program() else { return Ok(false) };
        Case::new(written)?.map_or(Ok(false), |case| products(&case))
    });
}

/// Iterations of the inner loop add to one element after their own inner loop, several at once: each must add to the
/// result of the previous one.
#[test]
fn iterations_at_once_add_to_what_those_before_have_written() {
    let numbers = |n: i64, from: f64| (0..n).map(|i| (from + 1.7 * i as f64).sin()).collect::<Vec<_>>();
    let (n, m) = (21, 10);
    for term in ["(x[i + 2] - sum 3 (fun k -> x[i + k])) * x[i + 1]", "sum 3 (fun k -> w[k] * x[i + k]) * x[i + 1]"] {
        let text = format!(
            "let f = fun (x : [n]Double) (a : [n][m]Double) (w : [3]Double) ->\n  sum (n - 3) (fun i -> sum m (fun j -> {term}))\n"
        );
        let rows: Vec<Value<f64>> = (0..n).map(|i| numbers(m, i as f64 * 0.7).into()).collect();
        let args = vec![numbers(n, 1.0).into(), Value::Array(rows), numbers(3, 2.0).into()];
        let case = Case::new(Written { text, args });
        assert_eq!(case.and_then(|case| products(&case.unwrap())), Ok(true));
    }
}
