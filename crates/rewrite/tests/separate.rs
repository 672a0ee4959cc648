//! Random loops that write to elements of a matrix, in rows, columns, triangles and pairs, forwards and backwards, with
//! reads of elements that earlier steps have or have not written: values and derivatives without the loop's state equal
//! those with it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_cases::Xorshift;
use chainrule_ir::{Function, Value};
use chainrule_ops::Semantics;
use chainrule_rewrite::{Options, check, hoisted, optimise};
use support::function;

/// Number of programs.
const PROGRAMS: u32 = 400;

struct Writer {
    numbers: Xorshift,
    /// Whether the steps of the current loop have a row `q` of a product of matrices.
    multiplies: bool,
}

impl Writer {
    fn draw(&mut self, bound: u64) -> u64 {
        self.numbers.below(bound)
    }

    fn choose(&mut self, from: &[&str]) -> String {
        from[self.draw(from.len() as u64) as usize].to_owned()
    }

    /// Writes a condition on the index `own` of an element.
    fn condition(&mut self, own: &str) -> String {
        let form = self.choose(&[
            "_ == i",
            "_ == i",
            "_ == i",
            "_ == i + 1",
            "_ == n - 1 - i",
            "_ == n - 2 - i",
            "_ == i - 1",
            "_ == 1",
            "_ == j",
            "_ < i",
            "_ <= i",
            "i + 1 <= _",
            "_ < n",
            "_ == i && 1 <= _",
            "not (_ == i)",
        ]);
        form.replace('_', own)
    }

    /// Writes a number read from the version `s` of the matrix, at row `r` and column `c` or elsewhere.
    fn read(&mut self, s: &str) -> String {
        let at = |e: &str, read: String| format!("(if 0 <= {e} && {e} < n then {read} else 0.5)");
        let e = self.choose(&["i", "i", "i + 1", "i - 1", "n - 1 - i", "r + 1", "r - 1", "c", "c + 1", "j", "0"]);
        match self.draw(8) {
            0 | 1 => format!("{s}[r][c]"),
            2 => at(&e, format!("{s}[{e}][c]")),
            3 => at(&e, format!("{s}[r][{e}]")),
            4 => format!("sum (min i n) (fun k -> {s}[k][c])"),
            5 => format!("sum (max (n - 1 - i) 0) (fun k -> if i + 1 + k < n then {s}[i + 1 + k][c] else 0)"),
            6 => format!("sum (max (n - i) 0) (fun k -> if i + k < n then {s}[r][i + k] * x[k] else 0)"),
            _ => at(&e, format!("{s}[{e}][{e}]")),
        }
    }

    fn number(&mut self, version: u64) -> String {
        let mut terms = Vec::new();
        for _ in 0..=self.draw(2) {
            let s = format!("s{}", self.draw(version + 1));
            terms.push(match self.draw(if self.multiplies { 3 } else { 5 }) {
                0 | 1 if self.multiplies => self.choose(&["q[r]", "q[c]"]),
                0 => "x[r]".to_owned(),
                1 => "sin (w[c] + real i)".to_owned(),
                2 => "x[c] * w[r]".to_owned(),
                _ => self.read(&s),
            });
        }
        terms.join(&self.choose(&[" + ", " * ", " - "]))
    }

    /// Writes a loop with one to three writes to the matrix in each step.
    fn program(&mut self) -> String {
        let n_writes = 1 + self.draw(3) * self.draw(2);
        self.multiplies = self.draw(3) == 0;
        let mut steps = String::new();
        if self.multiplies {
            steps += "    let q = build n (fun k -> sum n (fun m -> a[m][mod i n] * a[m][k])) in\n";
        }
        for version in 0..n_writes {
            let (rows, columns) = (self.condition("r"), self.condition("c"));
            let value = match self.draw(3) {
                0 => format!("s{version}[r][c] + x[r] * w[c]"),
                _ => self.number(version),
            };
            let element = match self.draw(2) {
                0 => format!("build n (fun c -> if {rows} && {columns} then {value} else s{version}[r][c])"),
                _ => format!(
                    "if {rows} then build n (fun c -> if {columns} then {value} else s{version}[r][c]) else s{version}[r]"
                ),
            };
            steps += &format!("    let s{} = build n (fun r -> {element}) in\n", version + 1);
        }
        let count = self.choose(&["n", "n", "n - 1", "n + 1", "2"]);
        let body = match self.draw(3) {
            0 => format!("ifold (fun s0 i ->\n{steps}    s{n_writes}) a ({count})"),
            1 => format!("ifold (fun t j -> ifold (fun s0 i ->\n{steps}    s{n_writes}) t ({count})) a n"),
            _ => format!(
                "(ifold (fun p i -> let s0 = p.0 in\n{steps}    (s{n_writes}, p.1 * 1.5 + x[mod i n])) (a, 1.0) ({count})).0"
            ),
        };
        let outer = if body.contains("fun t j") { "" } else { "let j = 0 in " };
        format!("let f = fun (a : [n][n]Double) (x : [n]Double) (w : [n]Double) -> {outer}{body}\n")
    }
}

fn arguments(n: usize, seed: f64) -> Vec<Value<f64>> {
    let numbers = |from: f64| (0..n).map(|i| (from + 1.7 * i as f64).sin()).collect::<Vec<_>>();
    let rows: Vec<Value<f64>> = (0..n).map(|i| numbers(seed + i as f64 * 0.7).into()).collect();
    vec![Value::Array(rows), numbers(seed + 0.1).into(), numbers(seed + 0.2).into()]
}

fn derivative(f: &Function) -> Function {
    let request = Request { parts: vec![Part::Value, Part::Vjp], by: vec![], mode: Mode::Reverse, checkpoints: None };
    derive(f, &request).unwrap()
}

#[test]
fn values_and_derivatives_without_states_are_those_with_states() {
    let mut writer = Writer { numbers: Xorshift::new(5), multiplies: false };
    let (mut n_separate, mut n_sums, mut n_kept) = (0, 0, 0);
    for _ in 0..chainrule_cases::cases(PROGRAMS) {
        let text = writer.program();
        let f = function(&text);
        let (_, report) = optimise(&f, &Options::default());
        let n_found = report.times("fold-of-writes") + report.times("separate");
        n_separate += u32::from(n_found > 0);
        n_sums += u32::from(report.times("fold-of-terms") > 0);
        n_kept += u32::from(n_found == 0);
        for n in [0, 1, 2, 3, 5] {
            let args = arguments(n, 1.0);
            for semantics in [Semantics::Strict, Semantics::Algebraic] {
                let options = Options { semantics, ..Options::default() };
                check::optimised(&f, &args, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            }
        }
        let separate = hoisted(&f);
        if *separate == f {
            continue;
        }
        let (with, without) = (derivative(&f), derivative(&separate));
        for n in [1, 2, 4] {
            let mut args = arguments(n, 1.0);
            args.push(arguments(n, 3.0).swap_remove(0));
            check::compare(&with, &without, &args, Semantics::Algebraic).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
    }
    assert!(
        n_separate > PROGRAMS / 20 && n_sums > PROGRAMS / 100 && n_kept > PROGRAMS / 4,
        "{n_separate} {n_sums} {n_kept}"
    );
}
