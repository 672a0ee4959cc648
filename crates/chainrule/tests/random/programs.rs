//! Programs in F~: printed, parsed, differentiated with their loops, run.

use crate::case::Case;
use crate::exact::{Exact, seen};
use crate::support::{doubles, fields, limited, matrix, program, run, same, slopes, with_doubles};
use chainrule::{Checks, CompileOptions, Error, Function, InRange, Rewrite, Value};
use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::evaluate;
use chainrule_ir::generate::Options;
use chainrule_ops::{F64, Precise};
use chainrule_runtime::RunError;
use std::cell::RefCell;

/// Maximum number: larger ones may leave no digit in a difference quotient: steps are 2^-100, digits 115.
const LARGEST: f64 = 1e30;

/// Runs `function`, under strict semantics, as native code, if the machine supports it, and in the reference evaluator,
/// which must agree bit for bit, without fused products: in values, and in their existence. So must code without checks
/// of indices if there is a value. Returns whether there is one; a program that cannot be lowered has none.
#[allow(unsafe_code)]
fn agree(function: &Function, ir: &chainrule_ir::Function, args: &[Value<f64>]) -> Result<bool, String> {
    let expanded = chainrule_autodiff::expand(ir).map_err(|e| e.to_string())?;
    // Bit for bit: no fusion, no reordering.
    let unfused =
        CompileOptions { fuse: Some(false), rewrite: Rewrite::Off, sequential: true, ..CompileOptions::default() };
    let compiled = match function.compile_with(&unfused) {
        Ok(compiled) => compiled,
        Err(e) if limited(&e) => return Ok(false),
        Err(e) => return Err(format!("does not compile: {e}")),
    };
    let expected = evaluate(&expanded, &mut F64, args);
    let with = |checks| function.compile_with(&CompileOptions { checks, ..unfused }).map_err(|e| e.to_string());
    let loose = with(Checks::Memory)?.call(args);
    match (&expected, compiled.call(args)) {
        (Ok(expected), Ok(found)) if found.len() == 1 && same(expected, &found[0]) => {}
        (Err(_), Err(_)) if !matches!(loose, Err(Error::Bug(_) | Error::Run(RunError::Bug(_)))) => return Ok(false),
        (expected, found) => return Err(format!("the evaluator says {expected:?}, running code {found:?}")),
    }
    // SAFETY: with these arguments no index is out of range: the evaluator has a value.
    let free = with(Checks::None(unsafe { InRange::promised() }))?.call(args);
    for found in [loose, free] {
        match (&expected, found) {
            (Ok(expected), Ok(found)) if found.len() == 1 && same(expected, &found[0]) => {}
            (_, found) => return Err(format!("the evaluator says {expected:?}, code without checks {found:?}")),
        }
    }
    Ok(true)
}

#[test]
fn code_agrees_with_the_evaluator() {
    run(1, 1200, 900, 1200, |bytes| {
        let Some(p) = program(bytes, Options::default())? else { return Ok(false) };
        agree(&p.strict, &p.ir, &p.args).map_err(|e| p.fails(e))
    });
}

/// Compares the Jacobian of a program in the interpreter, in the evaluator, and by differences in extended precision.
/// The derived program, too, is evaluated in extended precision, so that rounding is no excuse. If the program is not
/// `smooth`, differences are meaningless at kinks, and an infinite partial times zero is NaN.
fn compare(p: &Case, precise: &mut Precise, smooth: bool) -> Result<bool, String> {
    let value = match seen(&p.ir, &p.args) {
        Some((value, seen)) if p.ir.result_type().has_double() && (smooth || seen.largest <= LARGEST) => value,
        _ => return Ok(false),
    };
    let derived = |f: &Function| f.jacobian().function().map_err(|e| e.to_string());
    let strict = derived(&p.strict)?;
    let text = strict.listing();
    let request = Request { parts: vec![Part::Jacobian], by: vec![], mode: Mode::Auto, checkpoints: None };
    let ir = derive(&p.ir, &request).map_err(|e| e.to_string())?;
    if !agree(&strict, &ir, &p.args).map_err(|e| format!("{e}\n{text}"))? {
        return Ok(false);
    }
    let mut counts = Vec::new();
    p.ir.params.iter().zip(&p.args).for_each(|(param, arg)| fields(p.ir.ty(*param), arg, &mut counts));
    let exact: Vec<_> = doubles(&p.args).iter().map(|x| precise.from_f64(*x)).collect();
    let Ok(found) = evaluate(&ir, precise, &with_doubles(&p.args, &exact)) else { return Ok(false) };
    let found: Vec<f64> = doubles(&[found]).iter().map(|x| precise.as_f64(x)).collect();
    if smooth {
        // Compiled with default options: optimised, with scalar regions, in lanes.
        let compiled = derived(&p.f)?.compile().and_then(|f| f.call(&p.args)).map_err(|e| e.to_string())?;
        match Exact::new(&ir, &p.args) {
            Some(exact) => exact.near(&compiled).map_err(|e| format!("as compiled: {e}\n{text}"))?,
            None => return Ok(false),
        }
    }
    let found = matrix(&found, value.reals().len(), &counts).ok_or("the Jacobian has another size")?;
    let Some(expected) = slopes(&p.ir, &p.args, precise) else { return Ok(false) };
    let mut told = false;
    for (column, slopes) in expected.iter().enumerate() {
        for (row, slope) in slopes.iter().enumerate() {
            let element = found[row][column];
            // Some partials contain constants that are rounded to doubles.
            let close = (element - slope.value).abs() <= 1e-11 * (1.0 + slope.value.abs());
            if (smooth || (slope.smooth && !element.is_nan())) && !close {
                return Err(format!("d{row}/d{column} is {element:e}, by differences {:e}\n{text}", slope.value));
            }
            told |= slope.smooth && close && element != 0.0;
        }
    }
    Ok(told)
}

#[test]
fn jacobians_of_smooth_programs_are_differences() {
    let precise = RefCell::new(Precise::new());
    run(2, 600, 250, 1200, |bytes| {
        let Some(p) = program(bytes, Options::smooth())? else { return Ok(false) };
        compare(&p, &mut precise.borrow_mut(), true).map_err(|e| p.fails(e))
    });
}

#[test]
fn jacobians_of_any_programs_are_differences_where_these_tell_something() {
    let precise = RefCell::new(Precise::new());
    run(3, 600, 150, 1200, |bytes| {
        let Some(mut p) = program(bytes, Options::default())? else { return Ok(false) };
        p.move_aside();
        compare(&p, &mut precise.borrow_mut(), false).map_err(|e| p.fails(e))
    });
}
