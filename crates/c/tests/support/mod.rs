//! Compiling emitted C and running it: many kernels in one program.
//!
//! The program holds the arguments and prints results bit for bit. It gives each kernel a workspace of
//! exactly the size that it asks for, between guards, and compares the macro of the size with the function.

#![allow(dead_code)]

use chainrule_c::{Options, Source, emit_many};
use chainrule_interpret::{Program, RunError, Slice, SliceMut, Workspace};
use chainrule_ir::{Size, Type, Value};
use chainrule_kernel::{Class, Instr, Kernel, Place, SizeSource, Stmt};
use chainrule_ops::{CostClass, Op};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The flags that emitted code must pass without a word.
pub const FLAGS: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];

/// Elements of one class.
#[derive(Clone, Debug)]
pub enum Data {
    Real(Vec<f64>),
    Int(Vec<i64>),
}

/// Bit for bit; every NaN is as good as another.
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (Self::Int(a), Self::Int(b)) => a == b,
            _ => false,
        }
    }
}

impl Data {
    pub fn new(class: Class, len: usize) -> Self {
        match class {
            Class::Real => Self::Real(vec![0.0; len]),
            Class::Int => Self::Int(vec![0; len]),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Real(data) => data.len(),
            Self::Int(data) => data.len(),
        }
    }

    fn slice(&self) -> Slice<'_> {
        match self {
            Self::Real(data) => Slice::Real(data),
            Self::Int(data) => Slice::Int(data),
        }
    }

    fn bits(&self) -> Vec<u64> {
        match self {
            Self::Real(data) => data.iter().map(|x| x.to_bits()).collect(),
            Self::Int(data) => data.iter().map(|x| *x as u64).collect(),
        }
    }

    fn from_bits(class: Class, bits: &[u64]) -> Self {
        match class {
            Class::Real => Self::Real(bits.iter().map(|b| f64::from_bits(*b)).collect()),
            Class::Int => Self::Int(bits.iter().map(|b| *b as i64).collect()),
        }
    }
}

/// An argument or a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Data,
}

pub fn reals(data: &[f64]) -> Array {
    Array { shape: vec![data.len()], data: Data::Real(data.to_vec()) }
}

pub fn real(x: f64) -> Array {
    Array { shape: vec![], data: Data::Real(vec![x]) }
}

pub fn int(x: i64) -> Array {
    Array { shape: vec![], data: Data::Int(vec![x]) }
}

/// A kernel and arguments that fit it.
#[derive(Clone, Debug)]
pub struct Case {
    pub kernel: Kernel,
    pub inputs: Vec<Array>,
}

/// Results, or the message of a failure.
pub type Outcome = Result<Vec<Data>, String>;

/// What the interpreter says. The outer error is one of arguments that do not fit.
pub fn interpret(case: &Case) -> Result<Outcome, RunError> {
    let program = Program::new(&case.kernel).unwrap();
    let shapes: Vec<&[usize]> = case.inputs.iter().map(|a| a.shape.as_slice()).collect();
    let slices: Vec<Slice<'_>> = case.inputs.iter().map(|a| a.data.slice()).collect();
    let sizes = program.bind_inputs(&shapes, &slices)?;
    let mut results: Vec<Data> = (0..case.kernel.outputs.len())
        .map(|i| Data::new(case.kernel.buffers[case.kernel.outputs[i].buffer].class, sizes.output_len(i)))
        .collect();
    let mut into: Vec<SliceMut<'_>> = results
        .iter_mut()
        .map(|data| match data {
            Data::Real(data) => SliceMut::Real(data),
            Data::Int(data) => SliceMut::Int(data),
        })
        .collect();
    match program.run(&sizes, &slices, &mut into, &mut Workspace::new(&program, &sizes)) {
        Ok(()) => Ok(Ok(results)),
        Err(RunError::Failure { message, .. }) => Ok(Err(message)),
        Err(other) => Err(other),
    }
}

/// The C compiler, or a notice that there is none.
pub fn compiler() -> Option<&'static str> {
    let found = ["gcc", "cc"].into_iter().find(|cc| Command::new(cc).arg("--version").output().is_ok());
    if found.is_none() {
        println!("skipped: there is no C compiler");
    }
    found
}

/// Whether programs can be compiled with these flags and run.
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

pub fn write_source(dir: &Path, source: &Source) {
    std::fs::write(dir.join(format!("{}.h", source.name)), &source.header).unwrap();
    std::fs::write(dir.join(format!("{}.c", source.name)), &source.source).unwrap();
}

/// Compiles; panics with what the compiler says.
pub fn compile(cc: &str, flags: &[&str], dir: &Path, files: &[&str], exe: &str) {
    let output = Command::new(cc).args(flags).args(files).args(["-o", exe, "-lm"]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles all kernels as one program, runs it, and gives each kernel's results or message.
pub fn run_c(cc: &str, flags: &[&str], cases: &[Case], options: &Options) -> Vec<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    let named: Vec<Kernel> = cases
        .iter()
        .enumerate()
        .map(|(i, case)| Kernel { name: format!("k{i}").into(), ..case.kernel.clone() })
        .collect();
    let source = emit_many("kernels", &named.iter().collect::<Vec<_>>(), options).unwrap();
    write_source(dir.path(), &source);
    std::fs::write(dir.path().join("main.c"), main_text(&source, cases)).unwrap();
    // The caller's own code is not what is tested for warnings.
    let mut quiet: Vec<&str> = flags.to_vec();
    compile(cc, &quiet, dir.path(), &["-c", "kernels.c"], "kernels.o");
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
    parse(&text, cases)
}

fn parse(text: &str, cases: &[Case]) -> Vec<Outcome> {
    let mut lines = text.lines();
    let mut outcomes = Vec::new();
    for case in cases {
        let head = lines.next().expect("one line a case");
        if let Some(message) = head.strip_prefix("error ") {
            outcomes.push(Err(message.to_owned()));
            continue;
        }
        assert_eq!(head, "ok");
        let results = case.kernel.outputs.iter().map(|port| {
            let bits: Vec<u64> =
                lines.next().expect("a line").split_whitespace().map(|w| u64::from_str_radix(w, 16).unwrap()).collect();
            Data::from_bits(case.kernel.buffers[port.buffer].class, &bits)
        });
        outcomes.push(Ok(results.collect()));
    }
    assert_eq!(lines.next(), None);
    outcomes
}

/// The sizes of a case, in the order of the kernel.
fn size_values(case: &Case) -> Vec<i64> {
    let value = |source: &SizeSource| match source {
        SizeSource::Extent { input, dim } => case.inputs[*input].shape[*dim] as i64,
        SizeSource::Value { input } => match &case.inputs[*input].data {
            Data::Int(data) => data[0],
            Data::Real(_) => panic!("a size is a double"),
        },
    };
    case.kernel.sizes.iter().map(|size| value(&size.source)).collect()
}

fn main_text(source: &Source, cases: &[Case]) -> String {
    let mut text = format!(
        "#include <inttypes.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"{}.h\"\n\n{}",
        source.name, HELPERS
    );
    for (i, case) in cases.iter().enumerate() {
        let name = &source.functions[i];
        let upper = name.to_ascii_uppercase();
        let sizes = size_values(case);
        let kernel = &case.kernel;
        let _ = writeln!(text, "static void run{i}(void)\n{{");
        let mut arguments: Vec<String> = Vec::new();
        for (size, value) in kernel.sizes.iter().zip(&sizes) {
            if let SizeSource::Extent { .. } = size.source {
                arguments.push(value.to_string());
            }
        }
        for (j, (port, array)) in kernel.inputs.iter().zip(&case.inputs).enumerate() {
            let ty = if kernel.buffers[port.buffer].class == Class::Real { "double" } else { "int64_t" };
            let words: Vec<String> = array.data.bits().iter().map(|b| format!("UINT64_C(0x{b:x})")).collect();
            let words = if words.is_empty() { "0".to_owned() } else { words.join(", ") };
            let n = array.data.len().max(1);
            let _ = writeln!(text, "    static const uint64_t bits{j}[{n}] = {{{words}}};");
            let _ = writeln!(
                text,
                "    {ty} *in{j} = fresh({});\n    memcpy(in{j}, bits{j}, 8 * {});",
                array.data.len(),
                array.data.len()
            );
            arguments.push(if port.shape.is_empty() { format!("*in{j}") } else { format!("in{j}") });
        }
        let eval = |poly: &chainrule_base::Poly<chainrule_kernel::Reg>| {
            poly.eval(|r| kernel.sizes.iter().position(|s| s.reg == r).map_or(0, |k| sizes[k])).unwrap().max(0)
        };
        for (j, port) in kernel.outputs.iter().enumerate() {
            let ty = if kernel.buffers[port.buffer].class == Class::Real { "double" } else { "int64_t" };
            let _ = writeln!(text, "    {ty} *out{j} = fresh({});", eval(&kernel.buffers[port.buffer].len));
            arguments.push(format!("out{j}"));
        }
        let mut names: Vec<i64> = Vec::new();
        let mut seen: Vec<SizeSource> = Vec::new();
        for (size, value) in kernel.sizes.iter().zip(&sizes) {
            if !seen.contains(&size.source) {
                seen.push(size.source);
                names.push(*value);
            }
        }
        let list = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        for (ty, var, what) in [("double", "work", "WORK_SIZE"), ("int64_t", "iwork", "IWORK_SIZE")] {
            if !source.header.contains(&format!("#define {upper}_{what}")) {
                continue;
            }
            let of_macro = if names.is_empty() { format!("{upper}_{what}") } else { format!("{upper}_{what}({list})") };
            let function = format!("{name}_{}({list})", what.to_ascii_lowercase());
            let _ = writeln!(text, "    if ({of_macro} != {function}) die({i}, \"macro and function differ\");");
            let _ = writeln!(text, "    {ty} *{var} = fresh({function});");
            arguments.push(var.to_owned());
        }
        let _ = writeln!(text, "    int code = {name}({});", arguments.join(", "));
        let _ =
            writeln!(text, "    if (code != 0) printf(\"error %s\\n\", {name}_error(code));\n    else puts(\"ok\");");
        for (j, port) in kernel.outputs.iter().enumerate() {
            let len = eval(&kernel.buffers[port.buffer].len);
            let _ = writeln!(text, "    if (code == 0) show(out{j}, {len});");
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

const HELPERS: &str = r#"
static uint64_t *blocks[64];
static size_t lengths[64];
static int n_blocks;

static void die(int kernel, const char *why)
{
    printf("kernel %d: %s\n", kernel, why);
    exit(1);
}

/* Memory of n words between guards, full of what is neither a good double nor a good index. */
static void *fresh(size_t n)
{
    uint64_t *block = malloc(8 * (n + 2));
    for (size_t i = 0; i < n + 2; i++) block[i] = UINT64_C(0x7ff4dead00000000) + i;
    blocks[n_blocks] = block;
    lengths[n_blocks++] = n;
    return block + 1;
}

static void release(int kernel)
{
    while (n_blocks > 0) {
        uint64_t *block = blocks[--n_blocks];
        size_t n = lengths[n_blocks];
        if (block[0] != UINT64_C(0x7ff4dead00000000) || block[n + 1] != UINT64_C(0x7ff4dead00000000) + n + 1)
            die(kernel, "memory outside was written");
        free(block);
    }
}

static void show(const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, (const char *)data + 8 * i, 8);
        printf("%" PRIx64 " ", bits);
    }
    puts("");
}

"#;

/// Whether the value may differ from one `math.h` to another.
pub fn is_inexact(op: Op) -> bool {
    op.row().cost == CostClass::Call && op != Op::Sqrt
}

/// `kernel` with another operator in the place of each whose value depends on `math.h`, so that results can be
/// compared bit for bit.
pub fn exact(kernel: &Kernel) -> Kernel {
    fn block(stmts: &mut [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Straight(instrs) => {
                    for instr in instrs {
                        if let Instr::Op { op, .. } = instr
                            && is_inexact(*op)
                        {
                            *op = match op.arity() {
                                1 => [Op::Sqrt, Op::Abs, Op::Neg, Op::Floor][*op as usize % 4],
                                _ => [Op::Max, Op::Sub, Op::Div][*op as usize % 3],
                            };
                        }
                    }
                }
                Stmt::For { body, .. } => block(body),
                Stmt::While { condition, body, .. } => {
                    block(condition);
                    block(body);
                }
                Stmt::If { then, otherwise, .. } => {
                    block(then);
                    block(otherwise);
                }
                Stmt::Copy { .. } => {}
            }
        }
    }
    let mut kernel = kernel.clone();
    block(&mut kernel.body);
    kernel
}

/// The leaves of a value of type `ty`, in the order of a kernel's ports.
pub fn flatten(ty: &Type, value: &Value<f64>, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match (ty, value) {
        (Type::Double, Value::Real(x)) => vec![real(*x)],
        (Type::Int, Value::Int(i)) => vec![int(*i)],
        (Type::Bool, Value::Bool(b)) => vec![int(i64::from(*b))],
        (Type::Tuple(fields, _), Value::Tuple(items)) => {
            fields.iter().zip(items).flat_map(|(ty, value)| flatten(ty, value, size)).collect()
        }
        (Type::Array(_, element), Value::Array(items)) => {
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, items.len()));
            for item in items {
                for (leaf, part) in leaves.iter_mut().zip(flatten(element, item, size)) {
                    match (&mut leaf.data, part.data) {
                        (Data::Real(a), Data::Real(b)) => a.extend(b),
                        (Data::Int(a), Data::Int(b)) => a.extend(b),
                        _ => panic!("arrays of two classes"),
                    }
                }
            }
            leaves
        }
        _ => panic!("{value:?} is not of type {ty:?}"),
    }
}

fn empty(ty: &Type, size: &dyn Fn(&Size) -> usize) -> Vec<Array> {
    match ty {
        Type::Double => vec![Array { shape: vec![], data: Data::Real(vec![]) }],
        Type::Int | Type::Bool => vec![Array { shape: vec![], data: Data::Int(vec![]) }],
        Type::Tuple(fields, _) => fields.iter().flat_map(|ty| empty(ty, size)).collect(),
        Type::Array(n, element) => {
            let mut leaves = empty(element, size);
            leaves.iter_mut().for_each(|leaf| leaf.shape.insert(0, size(n)));
            leaves
        }
    }
}

/// Whether a place of the kernel is in its workspace.
pub fn uses_workspace(kernel: &Kernel) -> bool {
    kernel.buffers.as_slice().iter().any(|b| matches!(b.place, Place::Workspace(_)))
}
