//! Support for tests of vectorised loops: native code at every level against the interpreter.

use chainrule::{Backend, CompileOptions, Compiled, Function, Level, Value};

/// Returns numbers, each different from the previous one.
pub fn reals(n: usize, from: usize) -> Value<f64> {
    Value::Array((from..from + n).map(|i| Value::Real((i as f64 * 0.7 + 0.3).sin())).collect())
}

/// Returns rows of such numbers.
pub fn matrix(n: usize, m: usize) -> Value<f64> {
    Value::Array((0..n).map(|i| reals(m, i * m)).collect())
}

/// Checks every engine at every level against the interpreter; returns its result or message.
pub fn check(function: &Function, args: &[Value<f64>]) -> String {
    let compile = |backend: Backend, level: Option<Level>| {
        function.compile_with(&CompileOptions { backend, level, ..CompileOptions::default() })
    };
    let run = |compiled: &Compiled| match compiled.call(args) {
        // Different numbers are printed differently, and none of these is NaN.
        Ok(values) => format!("{values:?}"),
        Err(e) => e.to_string(),
    };
    let expected = run(&compile(Backend::Interpreter, None).unwrap());
    for level in [Level::Avx2, Level::Avx512] {
        match compile(Backend::Native, Some(level)) {
            Ok(native) => assert_eq!(run(&native), expected, "{} {level:?} {args:?}", function.name()),
            Err(why) => println!("skipped: {why}"),
        }
    }
    expected
}
