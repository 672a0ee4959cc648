//! `chainrule emit`.

use crate::request::{Derivative, Which};
use crate::{Outcome, explain, print, progress};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Write code in another language.
#[derive(Args)]
#[command(
    subcommand_value_name = "LANGUAGE",
    subcommand_help_heading = "Languages",
    disable_help_subcommand = true,
    after_help = "Examples:\n  chainrule emit c model.ft --what gradient --out model_gradient\n  chainrule emit c --help"
)]
pub struct Options {
    #[command(subcommand)]
    language: Language,
}

#[derive(Subcommand)]
enum Language {
    C(C),
}

/// A self-contained .c and .h: C99, no allocation, workspace from the caller.
#[derive(Args)]
#[command(after_help = "Examples:
  chainrule emit c model.ft --what gradient --out model_gradient     (writes .c and .h)
  chainrule emit c model.ft --what value --what jacobian --size n=8 --name model
  chainrule emit c model.ft --what value --what gradient --apart --out model
  cc -O2 -c model_gradient.c")]
struct C {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    derivative: Derivative,
    /// The name of the C function; made from the function and the derivative when it is not said.
    #[arg(long, conflicts_with = "apart")]
    name: Option<String>,
    /// A C function for each `--what`, instead of one that computes all of them.
    #[arg(long)]
    apart: bool,
    /// Where to write: this path with .c and .h. Without it, both go to standard output.
    #[arg(long, short)]
    out: Option<PathBuf>,
}

/// Writes code.
pub fn run(options: &Options) -> Outcome {
    let Language::C(options) = &options.language;
    let function = options.which.load()?;
    let requests: Vec<Derivative> = if options.apart {
        options
            .derivative
            .what
            .iter()
            .map(|what| Derivative { what: vec![*what], ..options.derivative.clone() })
            .collect()
    } else {
        vec![options.derivative.clone()]
    };
    let derive = || requests.iter().map(|request| request.derive(&function)).collect::<Result<Vec<_>, _>>();
    let mut derived = progress::during("deriving", derive)?;
    if let (Some(name), [one]) = (&options.name, derived.as_mut_slice()) {
        *one = one.clone().named(name);
    }
    // The source includes its header by the name of the file.
    let file = match &options.out {
        Some(out) => out
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_string)
            .ok_or("error: --out names no file\n  help: give a name without extension, such as --out model")?,
        None => derived.first().map_or_else(|| function.name().to_string(), |f| f.name().to_string()),
    };
    let functions: Vec<&chainrule::Function> = derived.iter().collect();
    let c = progress::during("writing", || chainrule::emit_c(&file, &functions)).map_err(|e| explain(&e))?;
    if let (Some(name), [made]) = (&options.name, c.functions.as_slice())
        && name != made
    {
        let help = format!("name it --name {made}, or by other letters, digits and underscores");
        return Err(format!("error: `{name}` cannot be the name of a C function\n  help: {help}"));
    }
    let Some(out) = &options.out else {
        return print(&format!("{}\n{}", c.header, c.source));
    };
    for (extension, text) in [("h", &c.header), ("c", &c.source)] {
        let mut path = out.clone().into_os_string();
        path.push(format!(".{extension}"));
        let path = PathBuf::from(path);
        std::fs::write(&path, text).map_err(|e| crate::data::unwritable(&path, &e))?;
        crate::tell(&format!("wrote {}", path.display()));
    }
    Ok(())
}
