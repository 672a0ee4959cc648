//! Programs of loops with equal counts that read elements of each other's results: at their own index, at others,
//! whole. They are fused if possible, and dead arrays share memory; values and gradients must not change.

use crate::exact::Exact;
use crate::support::{reread, run, same};
use arbitrary::{Result, Unstructured};
use chainrule::{CompileOptions, Function, Module, Semantics, Value};
use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_rewrite::{Options, check};
use std::cell::Cell;
use std::fmt::Write;

/// Kind of a statement's result.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Vector,
    /// Array of pairs.
    Pairs,
    Matrix,
}

struct Writer<'a, 'u> {
    u: &'a mut Unstructured<'u>,
    /// Earlier results, by name.
    made: Vec<(String, Kind)>,
}

impl Writer<'_, '_> {
    /// Writes a program with arguments, of up to `longest` rows; its value is a number if `scalar`.
    fn program(mut self, longest: i64, scalar: bool) -> Result<(String, Vec<Value<f64>>)> {
        let mut text = "let f = fun (x : [n]Double) (a : [n][m]Double) ->\n".to_owned();
        for k in 0..self.u.int_in_range(2..=9)? {
            let kind = *self.u.choose(&[Kind::Number, Kind::Vector, Kind::Vector, Kind::Pairs, Kind::Matrix])?;
            let line = match kind {
                Kind::Number if self.u.ratio(1, 3)? => {
                    format!("ifold (fun c i -> 0.5 * c + {}) 1.0 n", self.number("i", 2)?)
                }
                Kind::Number => format!("sum n (fun i -> {})", self.number("i", 2)?),
                Kind::Vector => format!("build n (fun i -> {})", self.number("i", 2)?),
                Kind::Pairs => format!("build n (fun i -> ({}, {}))", self.number("i", 2)?, self.number("i", 1)?),
                Kind::Matrix => format!("build n (fun i -> build m (fun j -> {}))", self.number("j", 2)?),
            };
            let _ = writeln!(text, "  let v{k} = {line}");
            self.made.push((format!("v{k}"), kind));
        }
        // Recent ones preferably.
        let mut parts = Vec::new();
        for _ in 0..self.u.int_in_range(1..=3)? {
            let back = self.u.int_in_range(0..=self.made.len().min(4) - 1)?;
            let (name, kind) = &self.made[self.made.len() - 1 - back];
            parts.push(if scalar { total(name, *kind) } else { name.clone() });
        }
        let result = match parts.as_slice() {
            [one] => one.clone(),
            _ if scalar => parts.join(" + "),
            _ => format!("({})", parts.join(", ")),
        };
        let _ = write!(text, "  {result}");
        let (n, m) = (self.u.int_in_range(0..=longest)?, self.u.int_in_range(1..=4)?);
        let numbers = |n: i64, from: f64| (0..n).map(|i| (from + i as f64).sin()).collect::<Vec<_>>();
        let rows = (0..n).map(|i| numbers(m, i as f64 * 0.7).into()).collect();
        Ok((text, vec![numbers(n, 1.0).into(), Value::Array(rows)]))
    }

    /// Writes a number in a loop over `i`, inside of one over `j` if `at` is that.
    fn number(&mut self, at: &str, depth: u32) -> Result<String> {
        if depth == 0 || self.u.is_empty() {
            return self.element(at);
        }
        Ok(match self.u.int_in_range(0..=7)? {
            0..=2 => {
                let op = *self.u.choose(&["+", "-", "*"])?;
                format!("({} {op} {})", self.number(at, depth - 1)?, self.number(at, depth - 1)?)
            }
            3 | 4 => format!("{} ({})", self.u.choose(&["sin", "cos", "tanh"])?, self.number(at, depth - 1)?),
            5 if at == "i" => format!("sum m (fun j -> {})", self.number("j", depth - 1)?),
            6 => {
                let (then, otherwise) = (self.number(at, depth - 1)?, self.number(at, depth - 1)?);
                format!("(if {at} < 2 then {then} else {otherwise})")
            }
            _ => self.element(at)?,
        })
    }

    /// Writes an element of an earlier result, mostly at the index of the loop.
    fn element(&mut self, at: &str) -> Result<String> {
        let row = match self.u.int_in_range(0..=9)? {
            0 => "n - 1 - i",
            1 => "0",
            2 => "div i 2",
            _ => "i",
        };
        // Recent ones preferably.
        let all = self.made.len();
        let which = if self.u.ratio(1, 4)? { self.u.int_in_range(0..=all - 1)? } else { all - 1 };
        let (name, kind) = &self.made[which];
        Ok(match kind {
            Kind::Number => name.clone(),
            Kind::Vector => format!("{name}[{row}]"),
            Kind::Pairs => format!("{} {name}[{row}]", self.u.choose(&["fst", "snd"])?),
            Kind::Matrix if at == "j" => format!("{name}[{row}][j]"),
            Kind::Matrix => format!("sum m (fun k -> {name}[{row}][k])"),
        })
    }
}

/// Writes the sum of all numbers of a statement's result.
fn total(name: &str, kind: Kind) -> String {
    match kind {
        Kind::Number => name.to_owned(),
        Kind::Vector => format!("vectorSum {name}"),
        Kind::Pairs => format!("sum n (fun i -> fst {name}[i] * snd {name}[i])"),
        Kind::Matrix => format!("matrixSum {name}"),
    }
}

/// Returns a random program with arguments, as [`Writer::program`].
fn program(bytes: &[u8], longest: i64, scalar: bool) -> Option<(String, Vec<Value<f64>>)> {
    let made = vec![("x".to_owned(), Kind::Vector), ("a".to_owned(), Kind::Matrix)];
    Writer { u: &mut Unstructured::new(bytes), made }.program(longest, scalar).ok()
}

#[test]
fn loops_that_take_of_each_other_compute_what_they_did() {
    let merged = Cell::new(0);
    run(51, 200, 180, 600, |bytes| {
        let Some((text, args)) = program(bytes, 19, false) else { return Ok(false) };
        let fails = |what: &dyn std::fmt::Display| format!("{what}\n{text}\nat {args:?}");
        let ir = reread(&text, "f")?;
        let Some(exact) = Exact::new(&ir, &args) else { return Ok(false) };
        let optimised = |function: &chainrule_ir::Function, semantics: Semantics| {
            let options = Options { semantics, ..Options::default() };
            check::optimised(function, &args, &options).map_err(|e| fails(&e))
        };
        optimised(&ir, Semantics::Strict)?;
        merged.set(merged.get() + optimised(&ir, Semantics::Algebraic)?.1.times("merge"));
        let read = |semantics: Semantics| {
            let module = Module::from_text("<random>", &text).map(|module| module.with_semantics(semantics));
            module.and_then(|module| module.function("f")).map_err(|e| fails(&e))
        };
        let (f, strict) = (read(Semantics::Algebraic)?, read(Semantics::Strict)?);
        let call = |f: &Function, options: &CompileOptions| {
            f.compile_with(options).and_then(|f| f.call(&args)).map_err(|e| fails(&e))
        };
        let unfused = CompileOptions { fuse: Some(false), sequential: true, ..CompileOptions::default() };
        match call(&strict, &unfused)?.as_slice() {
            [found] if same(found, &exact.value) => {}
            found => return Err(fails(&format!("{found:?} where no bit may change, not {:?}", exact.value))),
        }
        exact.near(&call(&f, &CompileOptions::default())?).map_err(|e| fails(&e))?;
        // All in reverse mode.
        let derived = |mode: Mode| {
            let request = Request { parts: vec![Part::Jacobian], by: vec![], mode, checkpoints: None };
            derive(&ir, &request).map_err(|e| fails(&e))
        };
        optimised(&derived(Mode::Reverse)?, Semantics::Strict)?;
        let Some(exact) = Exact::new(&derived(Mode::Forward)?, &args) else { return Ok(false) };
        let reverse = f.jacobian().strategy("reverse").function().map_err(|e| fails(&e))?;
        exact.near(&call(&reverse, &CompileOptions::default())?).map_err(|e| fails(&e))?;
        Ok(true)
    });
    chainrule_cases::covers!(merged.get() > 40, "{} loops became one with others", merged.get());
}

#[test]
fn second_derivatives_of_such_loops_are_those_in_forward_mode() {
    run(52, 100, 90, 600, |bytes| {
        let Some((text, args)) = program(bytes, 6, true) else { return Ok(false) };
        let fails = |what: &dyn std::fmt::Display| format!("{what}\n{text}\nat {args:?}");
        let f = Module::from_text("<random>", &text).and_then(|m| m.function("f")).map_err(|e| fails(&e))?;
        let request =
            Request { parts: vec![Part::Hessian], by: vec!["x".into()], mode: Mode::Forward, checkpoints: None };
        let forward = derive(&reread(&text, "f")?, &request).map_err(|e| fails(&e))?;
        let Some(exact) = Exact::new(&forward, &args) else { return Ok(false) };
        for strategy in ["auto", "reverse"] {
            let hessian = f.hessian().by(&["x"]).strategy(strategy).function().map_err(|e| fails(&e))?;
            for sequential in [false, true] {
                let options = CompileOptions { sequential, ..CompileOptions::default() };
                let found = hessian.compile_with(&options).and_then(|h| h.call(&args)).map_err(|e| fails(&e))?;
                exact.near(&found).map_err(|e| fails(&format!("{strategy}: {e}")))?;
            }
        }
        Ok(true)
    });
}
