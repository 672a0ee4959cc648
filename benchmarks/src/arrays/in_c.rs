//! Emitted C of a function that keeps its loops, compiled by a C compiler and loaded into this process.

use crate::rival::compile_c;
use chainrule::{Function, Prepared, Slice};
use std::ffi::c_void;
use std::mem::ManuallyDrop;

type Run = unsafe extern "C" fn(*const i64, *const *const c_void, *const *mut c_void) -> i32;

/// Code of a C compiler, with its own memory for results and workspace.
pub struct InC {
    run: Run,
    _library: ManuallyDrop<libloading::Library>,
    extents: Vec<i64>,
    arguments: Vec<Vec<u64>>,
    results: Vec<Vec<u64>>,
}

impl InC {
    /// Compiles `function` for the arguments of `at` with `flags`; `None` if there is no such compiler.
    ///
    /// # Errors
    /// Fails if the C does not compile.
    #[allow(unsafe_code)]
    pub fn compile(
        function: &Function,
        at: &Prepared<'_>,
        flags: &str,
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let c = function.emit_c()?;
        let (extents, arguments) = (at.extents(), at.arguments());
        let caller = caller(function.name(), &c.functions[0], &c.header, extents.len(), arguments.len())?;
        let Some((library, _)) = compile_c(function.name(), &c, flags, &caller)? else { return Ok(None) };
        // SAFETY: `caller` defines `run` with this type.
        let run = unsafe { *library.get::<Run>(b"run\0")? };
        let bits = |slice: Slice<'_>| match slice {
            Slice::Real(x) => x.iter().map(|x| x.to_bits()).collect(),
            Slice::Int(i) => i.iter().map(|i| *i as u64).collect(),
        };
        let results = (0..function.outputs().len()).map(|i| vec![0; at.result(i).len().max(at.integers(i).len())]);
        Ok(Some(Self {
            run,
            _library: ManuallyDrop::new(library),
            extents,
            arguments: arguments.into_iter().map(bits).collect(),
            results: results.collect(),
        }))
    }

    /// Runs the code.
    ///
    /// # Errors
    /// The code's failure code.
    #[allow(unsafe_code)]
    pub fn run(&mut self) -> Result<(), i32> {
        let arguments: Vec<*const c_void> = self.arguments.iter().map(|x| x.as_ptr().cast()).collect();
        let results: Vec<*mut c_void> = self.results.iter_mut().map(|x| x.as_mut_ptr().cast()).collect();
        // SAFETY: number and lengths of arguments and results are those of the function at these extents, taken from a
        // prepared evaluation of it.
        match unsafe { (self.run)(self.extents.as_ptr(), arguments.as_ptr(), results.as_ptr()) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Returns the doubles of result `i`.
    pub fn result(&self, i: usize) -> Vec<f64> {
        self.results[i].iter().map(|bits| f64::from_bits(*bits)).collect()
    }
}

/// Returns C that calls the function with its arguments as declared in the header: extents, arguments, results,
/// workspaces.
fn caller(
    file: &str,
    c_function: &str,
    header: &str,
    n_extents: usize,
    n_arguments: usize,
) -> Result<String, Box<dyn std::error::Error>> {
    let start = header.find(&format!("int {c_function}(")).ok_or("the header does not declare the function")?;
    let list = header[start..].split_once('(').and_then(|(_, rest)| rest.split_once(')')).ok_or("no parameters")?.0;
    let mut passed = Vec::new();
    let mut works = String::new();
    let (mut argument, mut result) = (0, 0);
    let mut sizes_passed: Vec<String> = (0..n_extents).map(|i| format!("extents[{i}]")).collect();
    for (i, parameter) in list.split(", ").enumerate() {
        let name = parameter.rsplit([' ', '*']).next().unwrap_or_default();
        let ty = if parameter.contains("int64_t") { "int64_t" } else { "double" };
        let is_pointer = parameter.contains('*');
        if i < n_extents {
            passed.push(sizes_passed[i].clone());
        } else if argument < n_arguments {
            let star = if is_pointer { "" } else { "*" };
            passed.push(format!("{star}(const {ty} *)arguments[{argument}]"));
            if !is_pointer && ty == "int64_t" {
                sizes_passed.push(format!("*(const int64_t *)arguments[{argument}]"));
            }
            argument += 1;
        } else if name == "work" || name == "iwork" {
            // A size that depends on extents is a function, a constant one a number.
            let function = format!("{c_function}_{name}_size");
            let size = if header.contains(&format!("{function}(")) {
                format!("{function}({})", sizes_passed.join(", "))
            } else {
                function.to_ascii_uppercase()
            };
            works += &format!(
                "    static {ty} *{name};\n    if (!{name}) {name} = aligned_alloc(64, ({size} / 8 + 1) * 64);\n"
            );
            passed.push(name.to_owned());
        } else {
            passed.push(format!("({ty} *)results[{result}]"));
            result += 1;
        }
    }
    Ok(format!(
        // Declared explicitly, because the library's header may conflict with the function's name.
        "#include <stddef.h>\n#include <stdint.h>\n#include \"{file}.h\"\nvoid *aligned_alloc(size_t, size_t);\n\
         int run(const int64_t *extents, const void *const *arguments, void *const *results)\n{{\n    (void)extents;\n{works}    \
         return {c_function}({});\n}}\n",
        passed.join(", ")
    ))
}
