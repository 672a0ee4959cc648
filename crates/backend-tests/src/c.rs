//! Compilation and execution of emitted C: many kernels in one program.
//!
//! The program contains the arguments and prints results bit for bit. It gives each kernel a workspace of exactly the
//! required size, between guards, and compares the macro of the size with the function.

use crate::case::{Case, Outcome};
use chainrule_kernel::{Class, SizeSource};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Flags with which emitted code must compile without warnings.
pub const FLAGS: [&str; 7] = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-fno-builtin"];

/// Returns the C compiler, or prints that there is none.
#[must_use]
pub fn compiler() -> Option<&'static str> {
    let found = ["gcc", "cc"].into_iter().find(|cc| Command::new(cc).arg("--version").output().is_ok());
    if found.is_none() {
        println!("skipped: there is no C compiler");
    }
    found
}

/// Flags with which a program stops at the first access outside memory and at undefined behaviour.
pub const SANITIZED: [&str; 4] = ["-std=c99", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"];

/// Returns the C compiler if it has the sanitizers of [`SANITIZED`], or prints that it has not.
#[must_use]
pub fn sanitizing_compiler() -> Option<&'static str> {
    let found = compiler()?;
    if !supports(found, &SANITIZED) {
        println!("skipped: the C compiler has no sanitizers");
        return None;
    }
    Some(found)
}

/// Returns whether programs can be compiled with these flags and run.
///
/// # Panics
/// Panics if temporary files cannot be written.
#[must_use]
pub fn supports(cc: &str, flags: &[&str]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.c"), "int main(void) { return 0; }\n").unwrap();
    let exe = dir.path().join("t");
    Command::new(cc)
        .args(flags)
        .arg("t.c")
        .arg("-o")
        .arg(&exe)
        .current_dir(&dir)
        .output()
        .is_ok_and(|o| o.status.success())
        && Command::new(&exe).output().is_ok_and(|o| o.status.success())
}

/// Emitted files.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// File name without `.h` and `.c`.
    pub name: &'a str,
    /// Function of each case.
    pub functions: &'a [String],
    /// Text of the header.
    pub header: &'a str,
    /// Text of the source.
    pub source: &'a str,
    /// Type of numbers: `double` or `float`.
    pub number: &'a str,
}

/// Writes the files.
///
/// # Panics
/// Panics if that fails.
pub fn write(dir: &Path, files: &Files<'_>) {
    std::fs::write(dir.join(format!("{}.h", files.name)), files.header).unwrap();
    std::fs::write(dir.join(format!("{}.c", files.name)), files.source).unwrap();
}

/// Compiles the files.
///
/// # Panics
/// Panics with the compiler's output if it fails.
pub fn compile(cc: &str, flags: &[&str], dir: &Path, files: &[&str], exe: &str) {
    // Some compilers warn about a library that is not linked.
    let library = if files.contains(&"-c") { None } else { Some("-lm") };
    let output = Command::new(cc).args(flags).args(files).args(["-o", exe]).args(library).current_dir(dir).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles all kernels as one program, runs it, and returns each kernel's results or message. Floats are returned as
/// doubles.
///
/// # Panics
/// Panics if the compiler prints anything, or the program does not exit normally.
#[must_use]
pub fn run(cc: &str, flags: &[&str], cases: &[Case], files: &Files<'_>) -> Vec<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), files);
    std::fs::write(dir.path().join("main.c"), main_text(files, cases)).unwrap();
    // The generated caller is not tested for warnings.
    let mut quiet: Vec<&str> = flags.to_vec();
    compile(cc, &quiet, dir.path(), &["-c", &format!("{}.c", files.name)], "kernels.o");
    quiet.retain(|flag| !flag.starts_with("-W") && *flag != "-pedantic" && *flag != "-O1");
    compile(cc, &quiet, dir.path(), &["main.c", "kernels.o"], "main");
    let output = Command::new(dir.path().join("main")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        text.lines().last().unwrap_or(""),
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines = text.lines();
    let outcomes = cases.iter().map(|case| case.parse(&mut lines)).collect();
    assert_eq!(lines.next(), None);
    outcomes
}

fn main_text(source: &Files<'_>, cases: &[Case]) -> String {
    let mut text = format!(
        "#include <inttypes.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"{}.h\"\n\n{MEMORY}{}",
        source.name,
        SHOW.replace("NUMBER", source.number)
    );
    for (i, case) in cases.iter().enumerate() {
        let name = &source.functions[i];
        let upper = name.to_ascii_uppercase();
        let sizes = case.sizes();
        let kernel = &case.kernel;
        let _ = writeln!(text, "static void run{i}(void)\n{{");
        let mut arguments: Vec<String> = Vec::new();
        for (size, value) in kernel.sizes.iter().zip(&sizes) {
            if let SizeSource::Extent { .. } = size.source {
                arguments.push(value.to_string());
            }
        }
        for (j, (port, array)) in kernel.inputs.iter().zip(&case.inputs).enumerate() {
            let ty = if kernel.buffers[port.buffer].class == Class::Real { source.number } else { "int64_t" };
            let words: Vec<String> = array.data.bits().iter().map(|b| format!("UINT64_C(0x{b:x})")).collect();
            let words = if words.is_empty() { "0".to_owned() } else { words.join(", ") };
            let (len, read) = (array.data.len(), if ty == "int64_t" { "(int64_t)" } else { "number" });
            let _ = writeln!(
                text,
                "    static const uint64_t bits{j}[{}] = {{{words}}};\n    {ty} *in{j} = fresh({len}, sizeof({ty}));\n    \
                 for (size_t k = 0; k < {len}; k++) in{j}[k] = ({ty}){read}(bits{j}[k]);",
                len.max(1)
            );
            arguments.push(if port.shape.is_empty() { format!("*in{j}") } else { format!("in{j}") });
        }
        for (j, port) in kernel.outputs.iter().enumerate() {
            let ty = if kernel.buffers[port.buffer].class == Class::Real { source.number } else { "int64_t" };
            let _ = writeln!(text, "    {ty} *out{j} = fresh({}, sizeof({ty}));", case.output_len(j));
            arguments.push(format!("out{j}"));
        }
        let names: Vec<i64> = case.distinct_sizes().into_iter().map(|(_, value)| value).collect();
        let list = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        for (ty, var, what) in [(source.number, "work", "WORK_SIZE"), ("int64_t", "iwork", "IWORK_SIZE")] {
            if !source.header.contains(&format!("#define {upper}_{what}")) {
                continue;
            }
            let of_macro = if names.is_empty() { format!("{upper}_{what}") } else { format!("{upper}_{what}({list})") };
            let function = format!("{name}_{}({list})", what.to_ascii_lowercase());
            let _ = writeln!(text, "    if ({of_macro} != {function}) die({i}, \"macro and function differ\");");
            let _ = writeln!(text, "    {ty} *{var} = fresh({function}, sizeof({ty}));");
            arguments.push(var.to_owned());
        }
        let _ = writeln!(text, "    int code = {name}({});", arguments.join(", "));
        let _ =
            writeln!(text, "    if (code != 0) printf(\"error %s\\n\", {name}_error(code));\n    else puts(\"ok\");");
        for (j, port) in kernel.outputs.iter().enumerate() {
            let show = if case.class(port) == Class::Real { "show" } else { "show_ints" };
            let _ = writeln!(text, "    if (code == 0) {show}(out{j}, {});", case.output_len(j));
        }
        let _ = writeln!(text, "    release({i});\n}}\n");
    }
    let _ = writeln!(text, "int main(void)\n{{");
    for i in 0..cases.len() {
        let _ = writeln!(text, "    run{i}();");
    }
    text.push_str("    return 0;\n}\n");
    text
}

/// C for memory between guards: `fresh` allocates, `release` checks the guards and frees, `die` ends the program;
/// `number` makes a double from its bits. It needs `inttypes.h`, `stdio.h`, `stdlib.h` and `string.h`.
pub const MEMORY: &str = r#"
static uint64_t *blocks[64];
static size_t lengths[64];
static int n_blocks;

static void die(int kernel, const char *why)
{
    printf("kernel %d: %s\n", kernel, why);
    exit(1);
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer sees what is read beside n elements only where these are all of the block. */
static void *fresh(size_t n, size_t size)
{
    unsigned char *block = malloc(n * size);
    for (size_t i = 0; i < n * size; i++) block[i] = 0x7f;
    blocks[n_blocks++] = (uint64_t *)block;
    return block;
}
#else
/* Memory of n elements between guards, full of what is neither a good number nor a good index. */
static void *fresh(size_t n, size_t size)
{
    n = (n * size + 7) / 8;
    uint64_t *block = malloc(8 * (n + 2));
    for (size_t i = 0; i < n + 2; i++) block[i] = UINT64_C(0x7ff4dead7fa00000) + i;
    blocks[n_blocks] = block;
    lengths[n_blocks++] = n;
    return block + 1;
}
#endif

static double number(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

static void release(int kernel)
{
    while (n_blocks > 0) {
        uint64_t *block = blocks[--n_blocks];
#ifndef __SANITIZE_ADDRESS__
        size_t n = lengths[n_blocks];
        if (block[0] != UINT64_C(0x7ff4dead7fa00000) || block[n + 1] != UINT64_C(0x7ff4dead7fa00000) + n + 1)
            die(kernel, "memory outside was written");
#endif
        free(block);
    }
}
"#;

const SHOW: &str = r#"
static void show(const NUMBER *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = data[i];
        uint64_t bits;
        memcpy(&bits, &x, 8);
        printf("%" PRIx64 " ", bits);
    }
    puts("");
}

static void show_ints(const int64_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%" PRIx64 " ", (uint64_t)data[i]);
    puts("");
}

"#;
