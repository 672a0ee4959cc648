//! Programs at known sizes with loops unrolled always, never, and where that pays: the same values and derivatives
//! within rounding, the same names and types, the same refusals.

use crate::case::Case;
use crate::exact::Exact;
use crate::support::{doubles, limited, program, run};
use arbitrary::Unstructured;
use chainrule::{Derivation, Function, Type, Unroll, Value};
use chainrule_ir::generate::Options;
use chainrule_ir::generate::written;

/// Tolerance relative to the largest number.
const TOLERANCE: f64 = 1e-9;

/// Returns whether `found` is `expected` within rounding. An infinite partial times a zero in memory is NaN where loops
/// are kept.
fn near(found: &[f64], expected: &[f64]) -> bool {
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0, |scale: f64, x| scale.max(x.abs()));
    let is_near = |(a, b): (&f64, &f64)| !b.is_finite() || (a - b).abs() <= TOLERANCE * scale;
    found.len() == expected.len() && found.iter().zip(expected).all(is_near)
}

/// A derivation requested of a function.
type Request = (&'static str, fn(&Function) -> Derivation);

const REQUESTS: [Request; 6] = [
    ("value", Function::value),
    ("jacobian", Function::jacobian),
    ("gradient", |f| f.gradient().with_value()),
    ("hessian", Function::hessian),
    ("by nothing", |f| f.jacobian().by(&["nothing"])),
    ("by an integer", |f| f.jacobian().by(&["n"])),
];

/// Returns names and types of arguments and results.
fn interface(f: &Function) -> String {
    format!("{:?} {:?} {:?}", f.signature(), f.inputs(), f.outputs())
}

/// Compares; returns whether `Unroll::Auto` unrolled the program.
fn compare(case: &Case) -> Result<bool, String> {
    if Exact::new(&case.ir, &case.args).is_none() {
        return Ok(false);
    }
    let Some(sizes) = case.sizes() else { return Ok(false) };
    let base = match case.f.at_sizes(&sizes) {
        Ok(f) => f,
        Err(e) => return Err(format!("at sizes: {e}")),
    };
    let types = case.ir.params.iter().map(|param| case.ir.ty(*param));
    let left = types.zip(&case.args).filter(|(ty, _)| **ty != Type::Int);
    let args: Vec<Value<f64>> = left.map(|(_, arg)| arg.clone()).collect();
    let [auto, always] = [Unroll::Auto, Unroll::Always].map(|unroll| base.clone().unroll(unroll));
    for (what, request) in REQUESTS {
        let kept = request(&base).function();
        for (setting, f) in [("auto", &auto), ("always", &always)] {
            let way = format!("{what}, {setting}");
            let (kept, found) = match (&kept, request(f).function()) {
                (Ok(kept), Ok(found)) => (kept, found),
                // A program that cannot be unrolled is reported on request.
                (_, Err(_)) if setting == "always" && f.unrolled(&[]).is_err() => continue,
                (Err(kept), Err(found)) if kept.to_string() == found.to_string() => continue,
                (kept, found) => {
                    let told = |f: Result<&Function, String>| f.map_or_else(|e| e, |_| "a function".to_owned());
                    let kept = told(kept.as_ref().map_err(ToString::to_string));
                    let found = told(found.as_ref().map_err(ToString::to_string));
                    return Err(format!("{way}: {found}\nwith loops: {kept}"));
                }
            };
            if interface(kept) != interface(&found) {
                return Err(format!("{way}: {}\nwith loops: {}", interface(&found), interface(kept)));
            }
            let run = |f: &Function, args: &[Value<f64>]| f.compile().and_then(|f| f.call(args));
            match (run(kept, &args), run(&found, &args)) {
                (Ok(kept), Ok(found)) => {
                    let (kept, found) = (doubles(&kept), doubles(&found));
                    if !near(&found, &kept) {
                        return Err(format!("{way}: {found:?}\nwith loops: {kept:?}"));
                    }
                }
                // Straight-line code may compute values that no element of a result needs.
                (Err(_), _) => {}
                (Ok(_), Err(e)) if limited(&e) => {}
                (Ok(_), Err(e)) => return Err(format!("{way}: {e}")),
            }
            let refused = |f: &Function| run(f, &[]).err().map(|e| e.to_string());
            if refused(kept) != refused(&found) && !args.is_empty() {
                return Err(format!("{way}: {:?}\nwith loops: {:?}", refused(&found), refused(kept)));
            }
        }
    }
    Ok(!auto.keeps_loops())
}

#[test]
fn settings_of_unrolling_agree() {
    run(81, 150, 40, 900, |bytes| {
        let Some(p) = program(bytes, Options::smooth())? else { return Ok(false) };
        compare(&p).map_err(|e| p.fails(e))
    });
}

#[test]
fn settings_of_unrolling_agree_in_programs_as_people_write_them() {
    run(82, 60, 15, 500, |bytes| {
        let options = written::Options { longest: 5, fuel: 40, orders: 1, smooth: true, ..written::Options::default() };
        let written = written::program(&mut Unstructured::new(bytes), options);
        let Some(case) = written.map_or(Ok(None), Case::new)? else { return Ok(false) };
        compare(&case).map_err(|e| case.fails(e))
    });
}
