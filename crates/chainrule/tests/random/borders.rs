//! Programs that read at indices which wrap around, are clamped, reflected or guarded, in one and two dimensions, at
//! extents of none, one, two and more, with offsets beyond the extent. Products of both modes equal those of the
//! evaluator, with the same bits on all backends, for any splitting of loops.

use crate::case::Case;
use crate::compare::products;
use crate::support::run;
use arbitrary::{Result, Unstructured};
use chainrule::Value;
use chainrule_ir::generate::written::Written;

struct Writer<'a, 'u> {
    u: &'a mut Unstructured<'u>,
}

impl Writer<'_, '_> {
    /// Writes steps of a stencil on a vector, or a sum over a matrix.
    fn program(mut self) -> Result<Written> {
        let whole = match self.u.int_in_range(0..=5)? {
            0 | 1 => {
                let step = self.number("v", false, 3)?;
                format!("let v = ifold (fun v s -> build n (fun i -> {step})) x 2 in\n  sum n (fun i -> v[i] * v[i])")
            }
            2 => format!("sum n (fun i -> {})", self.number("x", false, 3)?),
            3 => format!("build n (fun i -> sum m (fun j -> {}))", self.number("x", true, 3)?),
            4 => {
                let (weight, factor) = (self.number("x", false, 1)?, self.number("x", true, 1)?);
                let product = format!("sum m (fun j -> {factor} * a[k][j])");
                format!("sum n (fun i -> {weight} * sum n (fun k -> max 0 ({product} - 0.2)))")
            }
            _ => format!("sum n (fun i -> sum m (fun j -> {}))", self.number("x", true, 3)?),
        };
        let text = format!("let f = fun (x : [n]Double) (a : [n][m]Double) ->\n  {whole}\n");
        let extents = [0, 1, 1, 2, 2, 3, 4, 7, 8, 9, 16, 17, 20, 33];
        let (n, m) = (*self.u.choose(&extents)?, *self.u.choose(&extents[1..])?);
        let numbers = |n: i64, from: f64| (0..n).map(|i| (from + 1.7 * i as f64).sin()).collect::<Vec<_>>();
        let rows: Vec<Value<f64>> = (0..n).map(|i| numbers(m, i as f64 * 0.7).into()).collect();
        Ok(Written { text, args: vec![numbers(n, 1.0).into(), Value::Array(rows)] })
    }

    fn number(&mut self, vector: &str, column: bool, depth: u32) -> Result<String> {
        if depth == 0 || self.u.is_empty() {
            return self.element(vector, column);
        }
        Ok(match self.u.int_in_range(0..=7)? {
            0..=3 => {
                let op = *self.u.choose(&["+", "-", "*"])?;
                let (x, y) = (self.number(vector, column, depth - 1)?, self.number(vector, column, depth - 1)?);
                format!("({x} {op} {y})")
            }
            4 => format!("sin ({})", self.number(vector, column, depth - 1)?),
            5 => {
                let (x, y) = (self.number(vector, column, depth - 1)?, self.number(vector, column, depth - 1)?);
                format!("(if {} then {x} else {y})", self.guard()?)
            }
            _ => self.element(vector, column)?,
        })
    }

    fn guard(&mut self) -> Result<String> {
        let c = self.u.int_in_range(0..=3)?;
        Ok((*self.u.choose(&[
            format!("i == {c}"),
            format!("i == n - 1 - {c}"),
            format!("i < {c}"),
            format!("{c} <= i && i < n - {c}"),
            format!("not (i == {c})"),
        ])?)
        .clone())
    }

    /// Writes an index of `n` elements, from the loop's index `i`.
    fn index(&mut self, i: &str, n: &str) -> Result<String> {
        let c = self.u.int_in_range(0..=9)?.min(self.u.int_in_range(0..=9)?);
        Ok((*self.u.choose(&[
            i.to_owned(),
            format!("mod ({i} + {c}) {n}"),
            format!("mod ({i} - {c}) {n}"),
            format!("mod ({i} + {n} - {c}) {n}"),
            format!("mod ({i} + 2 * {n} + {c}) {n}"),
            format!("mod ({c} - {i}) {n}"),
            format!("mod ({c} * {i}) {n}"),
            format!("mod ({i} + n + m) {n}"),
            format!("max 0 ({i} - {c})"),
            format!("min ({n} - 1) ({i} + {c})"),
            format!("max 0 (min ({n} - 1) ({i} + {c} - 4))"),
            format!("min ({n} - 1) (max 0 ({i} - {c} + 4))"),
            format!("min ({n} - 1) (max {c} ({i} - 1))"),
            format!("min ({n} - 1) (abs ({i} - {c}))"),
            format!("{n} - 1 - abs ({n} - 1 - mod ({i} + {c}) {n})"),
        ])?)
        .clone())
    }

    fn element(&mut self, vector: &str, column: bool) -> Result<String> {
        let c = self.u.int_in_range(0..=2)?;
        Ok(match self.u.int_in_range(0..=9)? {
            8 => {
                let new = format!("(build (max (n - 2) 0) (fun k -> {vector}[k] * {vector}[k + 2] - {vector}[k + 1]))");
                format!("(if 1 <= i && i < n - 1 then {new}[i - 1] else {vector}[i])")
            }
            9 if column => {
                let borders = *self.u.choose(&[
                    "i == 0 || i == n - 1 || j == 0 || j == m - 1",
                    "j == 0 || i == 0 || j == m - 1 || i == n - 1",
                    "not (1 <= i && i < n - 1) || not (1 <= j && j < m - 1)",
                ])?;
                let inner = "sin a[i - 1][j] + a[i + 1][j] * a[i][j - 1] - a[i][j + 1]";
                format!("(if {borders} then a[i][j] else {inner})")
            }
            0 => format!("(if i == 0 then {vector}[n - 1] else {vector}[i - 1])"),
            1 => format!("(if i == n - 1 then {vector}[0] else {vector}[i + 1])"),
            2 => format!("(if i < {c} then 0.5 else {vector}[i - {c}])"),
            3 => format!("(if i + {c} < n then {vector}[i + {c}] else {vector}[i])"),
            4..=6 if column => format!("a[{}][{}]", self.index("i", "n")?, self.index("j", "m")?),
            _ => format!("{vector}[{}]", self.index("i", "n")?),
        })
    }
}

#[test]
fn what_wraps_around_and_stops_at_borders_is_what_the_evaluator_reads() {
    run(90, 120, 100, 300, |bytes| {
        let Ok(written) = (Writer { u: &mut Unstructured::new(bytes) }).program() else { return Ok(false) };
        Case::new(written)?.map_or(Ok(false), |case| products(&case))
    });
}
