//! Helpers of the frontend's tests: programs from a text, evaluated.
#![allow(dead_code)] // each test file uses a part

use chainrule_base::{Diagnostics, Sources};
use chainrule_ir::{Function, Program, Value, evaluate, verify};
use chainrule_ops::F64;

/// Figure 4 of the dF~ paper.
pub const FIGURE_4: &str = include_str!("../../../syntax/tests/figure4.ft");

/// Returns the program of one file.
pub fn load(text: &str) -> Result<Program, (Sources, Diagnostics)> {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}"))).map_err(|d| (sources, d))
}

/// Returns the function `name` of a valid program.
pub fn function(text: &str, name: &str) -> Function {
    let program = load(text).unwrap_or_else(|(_, d)| panic!("{d}\n{text}"));
    let function = program.elaborate(name).unwrap_or_else(|d| panic!("{d}\n{text}"));
    if let Err(found) = verify(&function) {
        panic!("{found:#?}\n{function:#?}");
    }
    function
}

/// Returns the value of `name`.
pub fn run(text: &str, name: &str, args: &[Value<f64>]) -> Value<f64> {
    let function = function(text, name);
    evaluate(&function, &mut F64, args).unwrap_or_else(|why| panic!("{why:?}\n{text}"))
}

/// Returns the value of `f`, the last definition.
pub fn f(text: &str, args: &[Value<f64>]) -> Value<f64> {
    run(text, "f", args)
}

pub fn real(x: f64) -> Value<f64> {
    Value::Real(x)
}

pub fn int(i: i64) -> Value<f64> {
    Value::Int(i)
}

pub fn vector(xs: &[f64]) -> Value<f64> {
    Value::from(xs.to_vec())
}

pub fn matrix(rows: &[&[f64]]) -> Value<f64> {
    Value::Array(rows.iter().map(|r| vector(r)).collect())
}

pub fn pair(a: Value<f64>, b: Value<f64>) -> Value<f64> {
    Value::Tuple(vec![a, b])
}
