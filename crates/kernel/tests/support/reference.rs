//! Lowered functions against the reference evaluator of the array IR.

use super::{Array, flatten, run};
use chainrule_base::Diagnostics;
use chainrule_ir::{Function, Size, Value, bind_sizes, evaluate};
use chainrule_kernel::{Kernel, lower_function, verify};
use chainrule_ops::F64;

/// The kernel of `function`, which is verified and comes out the same twice.
pub fn lower(function: &Function) -> Result<Kernel, Diagnostics> {
    let kernel = lower_function(function)?;
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    assert_eq!(lower_function(function)?.to_string(), kernel.to_string(), "lowering is deterministic");
    Ok(kernel)
}

/// Whether the arguments fit; where they do, the results must be the same bit for bit.
pub fn compare(function: &Function, kernel: &Kernel, args: &[Value<f64>]) -> bool {
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
            assert_eq!(found, expected, "{function:?}\n{kernel}");
        }
        // What the result does not need may fail in one and not be computed in the other.
        Err(_) => assert!(!found.is_err_and(|error| error.starts_with("bug")), "{kernel}"),
    }
    true
}
