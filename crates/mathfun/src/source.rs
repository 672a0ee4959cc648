//! Source text of the functions for emitted Rust: the files that this crate is compiled from, so that emitted code
//! gives the same bits.
//!
//! The text only uses `core`; with [`Fma::Standard`] also the method `f64::mul_add`, which is in `std`. That method is
//! an instruction if compiled for a processor with FMA, otherwise a call. [`Fma::Exact`] uses integer code instead.

use crate::Function;
use std::fmt::Write as _;

/// Implementation of fused multiply-add. The bits are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fma {
    /// `f64::mul_add` of the standard library.
    Standard,
    /// Integer arithmetic with only `core`: several times slower.
    Exact,
}

/// A file: the body of a module of this name. It imports other pieces by `super::`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Name of the module.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:ident)*) => {
        &[$(Piece { name: stringify!($name), text: include_str!(concat!("functions/", stringify!($name), ".rs")) }),*]
    };
}

const FILES: &[Piece] = files! {
    acosh angle asinh atan atan2 atanh cbrt circle cos cosh erf exp expm1 huge hypot lanes log log1p one pow sin
    sin_cos sinh tan tanh
};
const STANDARD: Piece = Piece { name: "fma", text: include_str!("functions/fma.rs") };
const EXACT: Piece = Piece { name: "fma", text: include_str!("functions/fma_exact.rs") };

/// Returns the distinct pieces that these functions need, ordered by name.
#[must_use]
pub fn pieces(functions: &[Function], fma: Fma) -> Vec<Piece> {
    let mut wanted: Vec<&str> = vec!["one"];
    wanted.extend(functions.iter().map(|f| module_of(*f)));
    let mut found: Vec<Piece> = Vec::new();
    while let Some(name) = wanted.pop() {
        if found.iter().any(|piece| piece.name == name) {
            continue;
        }
        let piece = match name {
            "fma" if fma == Fma::Standard => STANDARD,
            "fma" => EXACT,
            _ => match FILES.iter().find(|piece| piece.name == name) {
                Some(piece) => *piece,
                None => continue,
            },
        };
        found.push(piece);
        wanted.extend(used_by(piece.text));
    }
    found.sort_by_key(|piece| piece.name);
    found
}

/// Returns the file of a function.
pub(crate) fn text_of(function: Function) -> &'static str {
    FILES.iter().find(|piece| piece.name == module_of(function)).map_or("", |piece| piece.text)
}

/// Returns the pieces that a text imports: `use super::name...` at the start of a line.
fn used_by(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter_map(|line| line.strip_prefix("use super::")?.split([':', ';']).next())
}

/// Returns the body of a module with these functions of `f64` under their names, `sin_cos` for [`Function::SinCos`].
///
/// It belongs inside `mod name { ... }` or in a file of its own.
#[must_use]
pub fn module(functions: &[Function], fma: Fma) -> String {
    let mut text = String::from(
        "//! Elementary functions, at most 2 ulp from the truth, the same bits on every processor.\n\n\
         #![allow(dead_code, clippy::all)]\n",
    );
    let mut done = Vec::new();
    for function in functions {
        let name = module_of(*function);
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        let (arguments, names) = if function.arity() == 2 { ("a: f64, b: f64", "a, b") } else { ("x: f64", "x") };
        let result = if *function == Function::SinCos { "(f64, f64)" } else { "f64" };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n#[inline]\n#[must_use]\npub fn {name}({arguments}) -> {result} {{\n    {name}::{name}({names})\n}}\n"
        );
    }
    for piece in pieces(functions, fma) {
        let _ = write!(text, "\nmod {} {{\n{}}}\n", piece.name, indented(piece.text));
    }
    text
}

fn indented(text: &str) -> String {
    let mut result = String::with_capacity(text.len() * 5 / 4);
    for line in text.lines() {
        if !line.is_empty() {
            result.push_str("    ");
            result.push_str(line);
        }
        result.push('\n');
    }
    result
}

fn module_of(function: Function) -> &'static str {
    match function {
        Function::SinCos => "sin_cos",
        other => other.name(),
    }
}
