//! A C compiler on the C that Chainrule emits, loaded into this process.

use chainrule::Function;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Code of a C compiler.
pub struct Rival {
    /// The compiler and its flags.
    pub flags: String,
    /// How long it took to compile.
    pub seconds: f64,
    run: unsafe extern "C" fn(),
    /// What `run` is in.
    _library: libloading::Library,
}

impl Rival {
    /// The function at this point, as `flags` compiles it; `None` where there is no such compiler.
    ///
    /// # Errors
    /// When the C does not compile.
    pub fn compile(
        function: &Function,
        flags: &str,
        point: &[Vec<f64>],
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut words = flags.split_whitespace();
        let Some(compiler) = words.next() else { return Ok(None) };
        if Command::new(compiler).arg("--version").output().is_err() {
            return Ok(None);
        }
        let dir = tempfile::tempdir()?;
        let c = function.emit_c()?;
        let name = function.name().to_string();
        std::fs::write(dir.path().join(format!("{name}.h")), &c.header)?;
        std::fs::write(dir.path().join(format!("{name}.c")), &c.source)?;
        std::fs::write(dir.path().join("run.c"), caller(&name, &c.functions[0], function, point))?;
        let library = dir.path().join("run.so");
        let words: Vec<&str> = words.collect();
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
        Ok(Some(Self::load(&library, flags, seconds)?))
    }

    #[allow(unsafe_code)]
    fn load(library: &Path, flags: &str, seconds: f64) -> Result<Self, libloading::Error> {
        // SAFETY: the library was just made from C that has nothing that runs when it is loaded.
        let library = unsafe { libloading::Library::new(library)? };
        // SAFETY: `caller` defines `run` with this type.
        let run = unsafe { *library.get::<unsafe extern "C" fn()>(b"run\0")? };
        Ok(Self { flags: flags.to_owned(), seconds, run, _library: library })
    }

    /// One point.
    #[allow(unsafe_code)]
    pub fn run(&self) {
        // SAFETY: it reads and writes its own arrays only, and is called by one thread.
        unsafe { (self.run)() }
    }
}

/// C that calls the function on arrays of its own.
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
