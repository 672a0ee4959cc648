//! Arbitrary bytes as a saved kernel and as a saved function: refused, or valid and saved again as the same bytes. The
//! first byte selects whether the rest is a whole file, or content that gets a frame with the right checksum.

use chainrule::{Backend, CompileOptions, Compiled};
use chainrule_kernel::bytes::{Content, from_bytes, seal, to_bytes};
use chainrule_kernel::verify;

/// Runs the checks of the module.
///
/// # Panics
/// Panics if they fail.
pub fn run(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    match how % 4 {
        0 => kernel(rest),
        1 => kernel(&seal(Content::Kernel, rest)),
        2 => function(rest),
        _ => function(&seal(Content::Function, rest)),
    }
}

fn kernel(bytes: &[u8]) {
    if let Ok(kernel) = from_bytes(bytes, &|_, _| None) {
        assert!(verify(&kernel).is_ok());
        let _ = kernel.to_string();
        assert_eq!(to_bytes(&kernel).as_deref(), Ok(bytes));
    }
}

fn function(bytes: &[u8]) {
    for backend in [Backend::Interpreter, Backend::default()] {
        let options = CompileOptions { backend, ..CompileOptions::default() };
        if let Ok(function) = Compiled::from_bytes_with(bytes, &[], &options) {
            let again = function.to_bytes_with_sources().expect("what was loaded can be saved");
            assert!(Compiled::from_bytes_with(&again, &[], &options).is_ok());
        }
    }
}
