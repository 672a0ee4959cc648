//! `chainrule emit`.

use crate::pipeline::Pipeline;
use crate::request::{Derivative, Which};
use crate::{Outcome, explain, print, progress};
use chainrule::{CBatch, COptions, CompileOptions, Precision, RustFma, RustLibrary, RustOptions};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Write code in another language
#[derive(Args)]
#[command(
    subcommand_value_name = "LANGUAGE",
    subcommand_help_heading = "Languages",
    disable_help_subcommand = true,
    after_help = "Examples:
  chainrule emit c model.ft --what gradient --out model_gradient
  chainrule emit rust model.ft --what gradient --out src/model_gradient
  chainrule emit c --help"
)]
pub struct Options {
    #[command(subcommand)]
    language: Language,
}

#[derive(Subcommand)]
enum Language {
    C(C),
    Rust(Rust),
}

/// Options for every language.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Name of the emitted function (default: from the function and the derivative). All names in the files begin with
    /// it; several functions are called NAME_value, NAME_gradient, and so on
    #[arg(long)]
    name: Option<String>,
    /// Emit a function for each `--what` instead of one that computes all of them
    #[arg(long)]
    apart: bool,
    /// Fuse products with sums. Faster if the compiler may use the processor's instructions for that (-mfma,
    /// -march=native, -C target-cpu=native), slow otherwise
    #[arg(long, conflicts_with = "strict")]
    fuse: bool,
    /// Emit loops over blocks of eight iterations, which compilers can vectorise; sums are added in eight parts
    #[arg(long)]
    lanes: bool,
    /// Omit index checks. You promise that every index is in range; otherwise C code reads or writes arbitrary memory,
    /// and Rust code panics
    #[arg(long, alias = "no-checks")]
    promise_in_range: bool,
    /// Use 32-bit numbers: constants and the result of each operation are rounded to them
    #[arg(long)]
    f32: bool,
}

/// A self-contained .c and .h: C99, no allocation, workspace from the caller
#[derive(Args)]
#[command(after_help = "Examples:
  chainrule emit c model.ft --what gradient --out model_gradient     (writes .c and .h)
  chainrule emit c model.ft --what value --what jacobian --size n=8 --name model
  chainrule emit c model.ft --what value --what gradient --apart --out model
  chainrule emit c model.ft --what gradient --batch 8 --threads --out model_gradient
  cc -std=c99 -O2 -c model_gradient.c")]
struct C {
    #[command(flatten)]
    common: Common,
    /// Also emit a function over many points, in vectors of GNU C of this many lanes: 2, 4, 8 or 16
    #[arg(long, value_name = "LANES", num_args = 0..=1, default_missing_value = "4")]
    batch: Option<usize>,
    /// Use OpenMP threads: for the points of --batch; without it, for the iterations of outermost loops that are
    /// independent or only add
    #[arg(long)]
    threads: bool,
    /// Include Chainrule's own sin, cos, exp, log and other elementary functions instead of using math.h. The bits of
    /// results are then those of `chainrule run --no-fuse --sequential`; with --fuse, without --no-fuse there; with
    /// --lanes, without --sequential; with --threads, with --threads 1
    #[arg(long, conflicts_with = "f32")]
    inline_math: bool,
    /// Path of the output, without .c and .h (default: standard output)
    #[arg(long, short)]
    out: Option<PathBuf>,
}

/// A self-contained module: no allocation, no unsafe code, workspace from the caller
#[derive(Args)]
#[command(after_help = "Examples:
  chainrule emit rust model.ft --what gradient --out src/model_gradient     (writes .rs)
  chainrule emit rust model.ft --what value --what jacobian --size n=8 --name model --f32
  chainrule emit rust model.ft --what gradient --library libm --out src/model_gradient     (for no_std)")]
struct Rust {
    #[command(flatten)]
    common: Common,
    /// Source of elementary functions such as the sine
    #[arg(long, value_enum, default_value_t = Library::Std)]
    library: Library,
    /// Path of the output, without .rs (default: standard output)
    #[arg(long, short)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Library {
    /// Methods of the standard library
    Std,
    /// The crate `libm`: for `no_std`, with equal bits everywhere
    Libm,
    /// Chainrule's own, included as text: everywhere the bits of `chainrule run --no-fuse --sequential`; with --fuse,
    /// without --no-fuse there; with --lanes, without --sequential. Not for --f32
    Own,
    /// As `own`, for `no_std`: slower
    OwnCore,
}

/// Writes code.
pub fn run(options: &Options) -> Outcome {
    match &options.language {
        Language::C(options) => options.common.pipeline.watch(|| c(options)),
        Language::Rust(options) => options.common.pipeline.watch(|| rust(options)),
    }
}

fn c(options: &C) -> Outcome {
    let (file, derived) = derive(&options.common, options.out.as_ref())?;
    let functions: Vec<&chainrule::Function> = derived.iter().collect();
    let settings = COptions {
        fuse: options.common.fuse,
        sequential: !options.common.lanes,
        precision: precision(&options.common),
        batch: options.batch.map(|lanes| CBatch { lanes, threads: options.threads }),
        inline_math: options.inline_math,
        unchecked: options.common.promise_in_range,
        threads: options.threads && options.batch.is_none(),
        ..COptions::default()
    };
    if let Some(outcome) = stop(&options.common, &functions, settings.threads.then_some(1)) {
        return outcome;
    }
    let write = || chainrule::emit_c_with(&file, &functions, &settings);
    let c = progress::during("writing", write).map_err(|e| explain(&e))?;
    check_names(&options.common, &derived, &c.functions, "C")?;
    let Some(out) = &options.out else {
        return print(&format!("{}\n{}", c.header, c.source));
    };
    save(out, "h", &c.header)?;
    save(out, "c", &c.source)
}

fn rust(options: &Rust) -> Outcome {
    let (file, derived) = derive(&options.common, options.out.as_ref())?;
    let functions: Vec<&chainrule::Function> = derived.iter().collect();
    let library = match options.library {
        Library::Std => RustLibrary::Std,
        Library::Libm => RustLibrary::Libm,
        Library::Own => RustLibrary::Own(RustFma::Standard),
        Library::OwnCore => RustLibrary::Own(RustFma::Exact),
    };
    let settings = RustOptions {
        fuse: options.common.fuse,
        sequential: !options.common.lanes,
        precision: precision(&options.common),
        library,
        unchecked: options.common.promise_in_range,
        ..RustOptions::default()
    };
    if let Some(outcome) = stop(&options.common, &functions, None) {
        return outcome;
    }
    let write = || chainrule::emit_rust(&file, &functions, &settings);
    let rust = progress::during("writing", write).map_err(|e| explain(&e))?;
    check_names(&options.common, &derived, &rust.functions, "Rust")?;
    match &options.out {
        Some(out) => save(out, "rs", &rust.text),
        None => print(&rust.text),
    }
}

/// Prints the programs after the pass of `--stop-after`, if it is given. The passes are those of emission.
fn stop(options: &Common, functions: &[&chainrule::Function], threads: Option<usize>) -> Option<Outcome> {
    let settings =
        CompileOptions { fuse: Some(options.fuse), sequential: !options.lanes, threads, ..CompileOptions::default() };
    options.pipeline.stop(functions, &settings)
}

fn precision(options: &Common) -> Precision {
    if options.f32 { Precision::Single } else { Precision::Double }
}

/// Derives the requested functions; returns them with the name of their file.
fn derive(options: &Common, out: Option<&PathBuf>) -> Result<(String, Vec<chainrule::Function>), String> {
    let function = options.which.load()?;
    // The sparse matrix of a function that keeps its loops is two functions.
    let is_split = options.apart
        || (options.derivative.is_sparse() && options.derivative.what.len() > 1 && function.keeps_loops());
    let requests: Vec<Derivative> = if is_split {
        options
            .derivative
            .what
            .iter()
            .map(|what| Derivative { what: vec![*what], ..options.derivative.clone() })
            .collect()
    } else {
        vec![options.derivative.clone()]
    };
    let derive = || {
        let one = |request: &Derivative| match request.sparse_loops(&function)? {
            // Two functions: indices, and values.
            Some(sparse) => Ok(vec![("pattern", sparse.pattern_program()), ("values", sparse.values_program())]),
            None => request.derive(&function).map(|derived| vec![("", derived)]),
        };
        let mut all = Vec::new();
        for request in &requests {
            let part = request.what.first().filter(|_| is_split).and_then(ValueEnum::to_possible_value);
            let part = part.map_or_else(String::new, |value| value.get_name().replace('-', "_"));
            for (program, derived) in one(request)? {
                let derived = match options.derivative.checkpoints {
                    // Derivatives inside of the program are still to be expanded.
                    Some(n) => derived.with_checkpoints(n).map_err(|e| explain(&e))?,
                    None => derived,
                };
                all.push(match &options.name {
                    Some(name) => {
                        let parts = [name.as_str(), &part, program].into_iter().filter(|part| !part.is_empty());
                        derived.named(&parts.collect::<Vec<_>>().join("_"))
                    }
                    None => derived,
                });
            }
        }
        Ok::<_, String>(all)
    };
    let derived = progress::during("deriving", derive)?;
    // The C source includes its header by the name of the file.
    let file = match out {
        Some(out) => out
            .file_name()
            .and_then(|name| name.to_str())
            // `dir/` and `dir/.` have the file name `dir`.
            .filter(|name| out.as_os_str().as_encoded_bytes().ends_with(name.as_bytes()))
            .map(str::to_string)
            .ok_or("error: --out names no file\n  help: give a name without extension, such as --out model")?,
        None => derived.first().map_or_else(|| function.name().to_string(), |f| f.name().to_string()),
    };
    Ok((file, derived))
}

/// Fails if a function cannot have the name of `--name`; warns if another function cannot keep its own.
fn check_names(options: &Common, functions: &[chainrule::Function], made: &[String], language: &str) -> Outcome {
    for (function, made) in
        functions.iter().zip(made).filter(|(function, made)| function.name().as_str() != made.as_str())
    {
        let name = function.name();
        if options.name.is_some() {
            let help = format!("name it --name {made}, or by other letters, digits and underscores");
            return Err(format!("error: `{name}` cannot be the name of a {language} function\n  help: {help}"));
        }
        let other = if functions.len() == 1 { "--name gives it another name" } else { "rename it in the program" };
        crate::tell(&format!(
            "warning: `{name}` is called `{made}` in {language}, where that name, or one made from it, is reserved, taken or no \
             identifier\n  help: {other}"
        ));
    }
    Ok(())
}

fn save(out: &std::path::Path, extension: &str, text: &str) -> Outcome {
    let mut path = out.as_os_str().to_owned();
    path.push(format!(".{extension}"));
    let path = PathBuf::from(path);
    crate::data::write_file(&path, text.as_bytes())?;
    crate::tell(&format!("wrote {}", path.display()));
    Ok(())
}
