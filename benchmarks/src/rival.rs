//! Emitted C, compiled by a C compiler and loaded into this process.

use chainrule::{CBatch, COptions, CSource, Function, emit_c_with};
use std::mem::ManuallyDrop;
use std::process::Command;
use std::time::Instant;

/// Code of a C compiler.
pub struct Rival {
    /// The compiler and its flags.
    pub flags: String,
    /// Compile time in seconds.
    pub seconds: f64,
    run: unsafe extern "C" fn(),
    /// Library of `run`. It stays loaded: the threads of OpenMP outlive a call, and wait in its code.
    library: ManuallyDrop<libloading::Library>,
}

/// Options of a run over many points.
pub struct Many<'a> {
    /// Number of points.
    pub points: usize,
    /// Number of threads; more than one by OpenMP.
    pub threads: usize,
    /// Number of points in a vector.
    pub lanes: usize,
    /// Points, repeated.
    pub samples: &'a [Vec<Vec<f64>>],
}

impl Rival {
    /// Compiles the function at this point with `flags`; `None` if there is no such compiler.
    ///
    /// # Errors
    /// Fails if the C does not compile.
    pub fn compile(
        function: &Function,
        flags: &str,
        point: &[Vec<f64>],
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let c = function.emit_c()?;
        let caller = caller(function.name(), &c.functions[0], function, point);
        Self::build(function.name(), &c, flags, &caller)
    }

    /// Compiles the function over many points with `flags`; `None` if there is no such compiler.
    ///
    /// # Errors
    /// Fails if the C does not compile.
    pub fn compile_batch(
        function: &Function,
        flags: &str,
        many: &Many<'_>,
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let batch = Some(CBatch { lanes: many.lanes, threads: many.threads > 1 });
        let c = emit_c_with(function.name(), &[function], &COptions { batch, ..COptions::default() })?;
        let extra = if many.threads > 1 { " -fopenmp" } else { "" };
        let caller = batch_caller(function.name(), &c.functions[0], function, many);
        let rival = Self::build(function.name(), &c, &format!("{flags}{extra}"), &caller)?;
        Ok(rival.map(|rival| Self { flags: flags.to_owned(), ..rival }))
    }

    #[allow(unsafe_code)]
    fn build(name: &str, c: &CSource, flags: &str, caller: &str) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let Some((library, seconds)) = compile_c(name, c, flags, caller)? else { return Ok(None) };
        // SAFETY: `caller` defines `run` with this type.
        let run = unsafe { *library.get::<unsafe extern "C" fn()>(b"run\0")? };
        Ok(Some(Self { flags: flags.to_owned(), seconds, run, library: ManuallyDrop::new(library) }))
    }

    /// Runs one point, or all of a batch.
    #[allow(unsafe_code)]
    pub fn run(&self) {
        // SAFETY: it only accesses its own arrays, and is called by one thread.
        unsafe { (self.run)() }
    }

    /// Returns result `i` of all points, `len` elements, for code of [`Self::compile_batch`].
    ///
    /// # Errors
    /// Fails if there is no such result.
    #[allow(unsafe_code)]
    pub fn results(&self, i: usize, len: usize) -> Result<Vec<f64>, libloading::Error> {
        // SAFETY: `batch_caller` defines `results` with this type.
        let results = unsafe { *self.library.get::<unsafe extern "C" fn(i32, i64) -> *const f64>(b"results\0")? };
        let index = i32::try_from(i).unwrap_or(-1);
        // SAFETY: it checks its arguments, and returns null unless result `i` has `len` elements.
        let data = unsafe { results(index, i64::try_from(len).unwrap_or(-1)) };
        // SAFETY: an array of `len` doubles that lives as long as the library and is not written meanwhile.
        Ok(if data.is_null() { Vec::new() } else { unsafe { std::slice::from_raw_parts(data, len) }.to_vec() })
    }
}

/// Compiles and loads emitted C, whose header is called `name`, and C that calls it, with `flags`; returns the library
/// and the compile time. `None` if there is no such compiler.
///
/// # Errors
/// Fails if the C does not compile.
#[allow(unsafe_code)]
pub fn compile_c(
    name: &str,
    c: &CSource,
    flags: &str,
    caller: &str,
) -> Result<Option<(libloading::Library, f64)>, Box<dyn std::error::Error>> {
    let mut words = flags.split_whitespace();
    let Some(compiler) = words.next() else { return Ok(None) };
    if Command::new(compiler).arg("--version").output().is_err() {
        return Ok(None);
    }
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join(format!("{name}.h")), &c.header)?;
    std::fs::write(dir.path().join(format!("{name}.c")), &c.source)?;
    std::fs::write(dir.path().join("run.c"), caller)?;
    let library = dir.path().join("run.so");
    let start = Instant::now();
    let output = Command::new(compiler)
        .args(words)
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .args([dir.path().join(format!("{name}.c")), dir.path().join("run.c")])
        .arg("-lm")
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    // SAFETY: the library was just compiled from C without code at load time.
    Ok(Some((unsafe { libloading::Library::new(&library)? }, seconds)))
}

/// Returns C that calls the function on arrays of its own.
fn caller(file: &str, c_function: &str, function: &Function, point: &[Vec<f64>]) -> String {
    let mut text = format!("#include \"{file}.h\"\n");
    let mut arguments = Vec::new();
    for (i, x) in point.iter().enumerate() {
        let numbers: Vec<String> = x.iter().map(|x| format!("{x:?}")).collect();
        text += &format!("static double argument{i}[{}] = {{{}}};\n", x.len().max(1), numbers.join(", "));
        // A scalar is passed as a number.
        let is_scalar = function.inputs().get(i).is_some_and(|shape| shape.extents.is_empty());
        arguments.push(if is_scalar { format!("argument{i}[0]") } else { format!("argument{i}") });
    }
    for (i, shape) in function.outputs().iter().enumerate() {
        let len: usize = shape.extents.iter().map(|e| e.unwrap_or(1)).product();
        text += &format!("static double result{i}[{}];\n", len.max(1));
        arguments.push(format!("result{i}"));
    }
    let size = format!("{}_WORK_SIZE", c_function.to_ascii_uppercase());
    let call = |extra: &str| format!("    {c_function}({}{extra});\n", arguments.join(", "));
    text += &format!("#ifdef {size}\nstatic double work[{size}];\n#endif\nvoid run(void) {{\n");
    text += &format!("#ifdef {size}\n{}#else\n{}#endif\n}}\n", call(", work"), call(""));
    text
}

/// Returns C that calls the function over many points on arrays of its own, which it allocates at its first call.
fn batch_caller(file: &str, c_function: &str, function: &Function, many: &Many<'_>) -> String {
    let mut text = format!("#include \"{file}.h\"\n#include <stdlib.h>\n#define POINTS {}\n", many.points);
    // Aligned to cache lines, so that no vector crosses one.
    text += "static void *fresh(size_t bytes)\n{\n    return aligned_alloc(64, (bytes / 64 + 1) * 64);\n}\n";
    let (mut arguments, mut prepare, mut results) = (String::new(), String::new(), String::new());
    for (i, shape) in function.inputs().iter().enumerate() {
        let rows: Vec<String> = (many.samples.iter())
            .map(|sample| format!("{{{}}}", sample[i].iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ")))
            .collect();
        let (n, len) = (rows.len(), many.samples.first().map_or(0, |sample| sample[i].len()));
        text += &format!("static const double samples{i}[{n}][{}] = {{{}}};\n", len.max(1), rows.join(", "));
        text += &format!("static double *argument{i};\n");
        prepare += &format!(
            "    argument{i} = fresh(sizeof(double) * POINTS * {len});\n    for (int64_t p = 0; p < POINTS; p++)\n        \
             for (int k = 0; k < {len}; k++) argument{i}[p * {len} + k] = samples{i}[p % {n}][k];\n"
        );
        let element = if shape.extents.is_empty() { "" } else { ", 1" };
        arguments += &format!("argument{i}, {len}{element}, ");
    }
    for (i, shape) in function.outputs().iter().enumerate() {
        let len: usize = shape.extents.iter().map(|e| e.unwrap_or(1)).product();
        text += &format!("static double *result{i};\n");
        prepare += &format!("    result{i} = fresh(sizeof(double) * POINTS * {len});\n");
        results += &format!("    if (i == {i} && len == (int64_t)POINTS * {len}) return result{i};\n");
        let element = if shape.extents.is_empty() { "" } else { ", 1" };
        arguments += &format!("result{i}, {len}{element}, ");
    }
    let threads = if many.threads > 1 { format!("{}, ", many.threads) } else { String::new() };
    text += &format!(
        "static double *work;\nstatic int64_t *iwork;\n\
         const double *results(int i, int64_t len)\n{{\n{results}    return 0;\n}}\n\
         void run(void)\n{{\n    if (!work) {{\n    work = fresh(sizeof(double) * {0} * {c_function}_batch_work_size());\n    \
         iwork = fresh(sizeof(int64_t) * {0} * {c_function}_batch_iwork_size());\n{prepare}    }}\n    \
         {c_function}_batch(POINTS, {arguments}work, iwork, {threads}0);\n}}\n",
        many.threads
    );
    text
}
