//! Lowered functions against the reference evaluator of the array IR.

use super::{Array, Scalar, flatten, run};
use chainrule_base::Diagnostics;
use chainrule_ir::{Function, Size, Value, bind_sizes, evaluate};
use chainrule_kernel::{Kernel, lower_function_with, verify};
use chainrule_ops::{F64, Semantics};

/// The kernel of `function`, which is verified and comes out the same twice.
pub fn lower(function: &Function) -> Result<Kernel, Diagnostics> {
    lower_with(function, Semantics::Algebraic)
}

/// As [`lower`], under these semantics.
pub fn lower_with(function: &Function, semantics: Semantics) -> Result<Kernel, Diagnostics> {
    let kernel = lower_function_with(function, semantics)?;
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let again = lower_function_with(function, semantics)?;
    assert_eq!(again.to_string(), kernel.to_string(), "lowering is deterministic");
    Ok(kernel)
}

/// Returns the largest difference of results under these semantics, relative to the largest result.
pub fn tolerance(semantics: Semantics) -> f64 {
    match semantics {
        Semantics::Strict => 0.0,
        Semantics::Algebraic => 1e-9,
    }
}

/// Compares results bit for bit; returns whether the arguments fit.
pub fn compare(function: &Function, kernel: &Kernel, args: &[Value<f64>]) -> bool {
    compare_within(function, kernel, args, 0.0)
}

/// As [`compare`], for functions whose terms are added in an order that says nothing: finite doubles may differ by
/// `close` of the largest of them.
pub fn compare_within(function: &Function, kernel: &Kernel, args: &[Value<f64>], close: f64) -> bool {
    let Ok(sizes) = bind_sizes(function, args) else { return false };
    let size = |size: &Size| sizes.eval(size).unwrap();
    let inputs: Vec<Array> =
        function.params.iter().zip(args).flat_map(|(p, arg)| flatten(function.ty(*p), arg, &size)).collect();
    let expected = evaluate(function, &mut F64, args);
    let found = run(kernel, &inputs);
    match expected {
        Ok(value) => {
            let expected = flatten(function.result_type(), &value, &size);
            let found = found.unwrap_or_else(|error| panic!("{error}\n{function:?}\n{kernel}"));
            let scale = close * largest(&expected);
            assert!(
                same(&found, &expected, scale),
                "{found:?} is not {expected:?}\n{}\n{kernel}",
                chainrule_ir::print(function)
            );
        }
        // What the result does not need may fail in one and not be computed in the other.
        Err(_) => assert!(!found.is_err_and(|error| error.starts_with("bug")), "{kernel}"),
    }
    true
}

fn largest(arrays: &[Array]) -> f64 {
    let real = |x: &Scalar| if let Scalar::Real(x) = x { x.abs() } else { 0.0 };
    let reals = arrays.iter().flat_map(|array| array.data.iter().map(real));
    reals.filter(|x| x.is_finite()).fold(1.0, f64::max)
}

fn same(found: &[Array], expected: &[Array], scale: f64) -> bool {
    let close = |(a, b): (&Scalar, &Scalar)| match (a, b) {
        (Scalar::Real(x), Scalar::Real(y)) if scale > 0.0 => a == b || !y.is_finite() || (x - y).abs() <= scale,
        _ => a == b,
    };
    let array = |(a, b): (&Array, &Array)| {
        a.shape == b.shape && a.data.len() == b.data.len() && a.data.iter().zip(&b.data).all(close)
    };
    found.len() == expected.len() && found.iter().zip(expected).all(array)
}
