//! The public interface of a module: documentation, signatures, lengths of workspace, failures; and the whole module.

use crate::functions::{ELEMENTARY, Library};
use crate::language::{LEN, Needs, Rust};
use crate::literal;
use crate::reserved::is_reserved;
use crate::{Module, Options};
use chainrule_base::{Diagnostics, Poly};
use chainrule_kernel::{Class, Kernel, Reg, events, with_stored_zeros};
use chainrule_text::describe::{self, is_extent, size_names, workspaces};
use chainrule_text::pattern::lines;
use chainrule_text::{
    Facts, MAX_EXTENT, Pattern, PatternNames, Pieces, Precision, Scope, Unit, Writer, Written, external, facts,
    language, names, unit,
};
use std::borrow::Cow;
use std::fmt::Write;

/// Returns the module for `kernels`.
pub(crate) fn write(
    name: &str,
    kernels: &[&Kernel],
    patterns: &[Vec<Pattern>],
    options: &Options,
) -> Result<Module, Diagnostics> {
    let externals = external::declared(kernels, "Rust", is_reserved, |e| Some(crate::external_name(e)))?;
    let mut errors = Diagnostics::new();
    let stored: Vec<Cow<'_, Kernel>> = kernels.iter().map(|kernel| with_stored_zeros(kernel)).collect();
    let kernels: Vec<&Kernel> = stored.iter().map(|kernel| &**kernel).collect();
    let all_events: Vec<_> = kernels.iter().map(|kernel| events(&kernel.body)).collect();
    for (kernel, events) in kernels.iter().zip(&all_events) {
        if let Err(diagnostic) = facts::check(kernel, events) {
            errors.push(diagnostic);
        }
    }
    errors.into_result(())?;

    let mut file = Scope::new(is_reserved);
    let functions: Vec<String> = kernels.iter().map(|kernel| unit::take_name::<Rust<'_>>(kernel, &mut file)).collect();
    let arrays: Vec<String> = functions
        .iter()
        .enumerate()
        .map(|(k, function)| {
            let own = patterns.get(k).map_or(&[][..], Vec::as_slice);
            let one = |p: &Pattern| {
                let names = PatternNames::take(function, &p.result, own.len(), &mut file, is_reserved);
                pattern_arrays(function, p, &names)
            };
            own.iter().map(one).collect()
        })
        .collect();
    let mut needs = Needs::default();
    let mut body = String::new();
    for (((kernel, events), name), arrays) in kernels.iter().zip(&all_events).zip(&functions).zip(&arrays) {
        let facts = Facts::new(kernel, events);
        let pieces = Pieces::new(kernel, events, &facts, options.chunk, |r| language::space(kernel.regs[r]));
        let unit = Unit::new::<Rust<'_>>(kernel, name.clone(), &file, &facts, pieces.n_slots);
        let mut language =
            Rust { needs: &mut needs, precision: options.precision, library: options.library, lengths: Vec::new() };
        let written = Writer::new(&unit, &facts, &pieces, &mut language).write(events);
        // Functions of pieces come first.
        let (pieces, own) = written.text.split_at(written.text.rfind("pub fn ").unwrap_or(0));
        body.extend([pieces, &document(&unit, &written, options.precision), own]);
        for (class, _) in workspaces(&unit) {
            body.push_str(&work_function(&unit, class, options.precision, &mut needs));
        }
        body.push_str(arrays);
    }
    let name = if name.is_empty() { "chainrule".to_owned() } else { names::spell(name, is_reserved) };
    let text = whole(&body, &needs, &externals, options);
    Ok(Module { name, functions, text, needs_std: needs.std, needs_libm: needs.libm })
}

/// Lints that generated code is exempt from, with the reasons.
const ALLOWED: &str = "\
#![allow(
    // Names come from the source program.
    non_snake_case,
    // A loop-carried variable may be constant, or unused after the loop.
    unused_assignments,
    unused_mut,
    // A size may be computed only to check that it fits.
    unused_variables,
    // Not every function of the module has to be called.
    dead_code,
    // Behind a check that always fails, an index may be out of range.
    unconditional_panic,
    // Numbers and operations are those of the program, in its order.
    invalid_nan_comparisons,
    clippy::approx_constant,
    clippy::eq_op,
    clippy::excessive_precision,
    clippy::manual_clamp,
    clippy::neg_multiply,
    clippy::nonminimal_bool,
    clippy::reversed_empty_ranges,
    clippy::zero_divided_by_zero,
    // So are branches, their results, and all arguments.
    clippy::collapsible_else_if,
    clippy::collapsible_if,
    clippy::if_same_then_else,
    clippy::needless_else,
    clippy::needless_ifs,
    clippy::needless_late_init,
    clippy::too_many_arguments,
    // Not every version of clippy knows all of these.
    unknown_lints
)]
";

const FAILURE: &str = "\
/// Reason why results are unspecified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The argument, result or workspace of this name does not have its documented length.
    Length(&'static str),
    /// A size is above LIMIT, or the arguments are too large.
    Size,
    /// An integer does not fit into 64 bits.
    Overflow,
    /// A requirement on the sizes does not hold, with its message.
    Require(&'static str),
    /// A check failed at run time, with its message.
    Check(&'static str),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length(name) => write!(f, \"`{name}` has the wrong length\"),
            Self::Size => f.write_str(\"a size is above LIMIT, or the arguments are too large\"),
            Self::Overflow => f.write_str(\"an integer does not fit into 64 bits\"),
            Self::Require(message) | Self::Check(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for Failure {}
";

fn whole(body: &str, needs: &Needs, externals: &[(String, usize)], options: &Options) -> String {
    let ty = literal::type_name(options.precision);
    let mut text = String::from("//! Written by Chainrule; do not edit.\n//!\n");
    text.push_str(
        "//! Nothing is allocated; workspace comes from the caller, of any content. Lengths are checked at entry.\n",
    );
    if options.precision == Precision::Single {
        text.push_str("//! All arithmetic is in `f32`: constants are rounded to it, and so is each operation.\n");
    }
    text.push_str("//!\n");
    text.push_str(match (needs.std, needs.libm) {
        (false, false) => "//! Needs nothing but `core`.\n",
        (false, true) => "//! Needs `core`, and the crate `libm`.\n",
        (true, false) => "//! Needs `std`, for the functions of its numbers.\n",
        (true, true) => "//! Needs `std`, for the functions of its numbers, and the crate `libm`.\n",
    });
    if matches!(options.library, Library::Own(_)) {
        let run = describe::same_run(options.fuse, options.sequential);
        let _ = write!(text, "//! Results are those of `{run}`, for the same request, bit for bit");
        text.push_str(if needs.libm { ", with the version of `libm` that it uses.\n" } else { ".\n" });
    }
    if !externals.is_empty() {
        text.push_str("//!\n//! The module around this one has to provide:\n");
        for (name, arity) in externals {
            let params = vec![ty; *arity].join(", ");
            let _ = writeln!(text, "//! - `fn {name}({params}) -> {ty}`");
        }
    }
    let limit = MAX_EXTENT.to_string();
    let _ = write!(text, "\n{ALLOWED}\n{}\n", FAILURE.replace("LIMIT", &limit));
    for helper in &needs.helpers {
        text.push_str(helper);
        text.push('\n');
    }
    text.push_str(body.trim_end());
    text.push('\n');
    if let (Library::Own(fma), [_, ..]) = (options.library, needs.elementary.as_slice()) {
        let functions = chainrule_mathfun::source::module(&needs.elementary, fma);
        let _ = write!(text, "\nmod {ELEMENTARY} {{\n{functions}}}\n");
    }
    text
}

/// Returns the arrays of a pattern.
fn pattern_arrays(function: &str, pattern: &Pattern, names: &PatternNames) -> String {
    let [rows, columns, nnz] = [&names.rows, &names.columns, &names.nnz].map(|name| name.to_ascii_uppercase());
    let (n, shape) = (pattern.rows.len(), format!("{} rows and {} columns", pattern.n_rows, pattern.n_columns));
    let result = literal::comment(&pattern.result);
    let mut text = format!(
        "/// Number of entries of `{result}` of [`{function}`], a matrix of {shape}.\npub const {nnz}: usize = {n};\n\n"
    );
    for (name, what, items) in [(rows, "Row", &pattern.rows), (columns, "Column", &pattern.columns)] {
        let _ = write!(
            text,
            "/// {what} of each entry of `{result}` of [`{function}`], counted from 0, row by row.\n\
             pub static {name}: [usize; {n}] = [\n{}];\n\n",
            lines(items)
        );
    }
    text
}

/// Returns the documentation of a kernel's function.
fn document(unit: &Unit<'_>, written: &Written, precision: Precision) -> String {
    const FENCE: &str = "/// ```";
    let summary = describe::summary(unit);
    let summary = summary.split_once(": computes ").map_or(summary.as_str(), |(_, rest)| rest);
    let mut lines =
        vec![format!("/// Computes {}", literal::comment(summary)), "///".to_owned(), format!("{FENCE}text")];
    let mut line = |content: &str| lines.push(format!("/// {}", literal::comment(content)));
    for section in describe::arguments(unit, literal::type_name(precision)) {
        line(&format!("{}:", section.title));
        section.lines.iter().for_each(|content| line(&format!("  {content}")));
    }
    if !workspaces(unit).is_empty() {
        line("Workspace:");
    }
    for (class, name) in workspaces(unit) {
        let formula = unit.formula(&unit.workspace(class));
        line(&format!("  {name}: at least {formula} {}", plural(class, precision)));
    }
    lines.extend([FENCE, "///", "/// # Errors"].map(str::to_owned));
    let codes = describe::codes(unit, written);
    if codes.is_empty() {
        lines.push("/// A wrong length.".to_owned());
    } else {
        lines.extend(["/// A wrong length, or:".to_owned(), format!("{FENCE}text")]);
        lines.extend(codes.iter().map(|(_, code)| format!("/// {}", literal::comment(&code.message))));
        lines.push(FENCE.to_owned());
    }
    lines.join("\n") + "\n"
}

fn plural(class: Class, precision: Precision) -> String {
    match class {
        Class::Real => format!("{}s", literal::type_name(precision)),
        Class::Int => "i64s".to_owned(),
    }
}

/// Returns the function for the length of a workspace.
fn work_function(unit: &Unit<'_>, class: Class, precision: Precision, needs: &mut Needs) -> String {
    let total = unit.workspace(class);
    let function = match class {
        Class::Real => format!("{}_work_len", unit.name),
        Class::Int => format!("{}_iwork_len", unit.name),
    };
    let what = plural(class, precision);
    let mut text = format!("/// Returns the number of {what} of workspace that [`{}`] needs", unit.name);
    if let Some(total) = total.as_constant() {
        let _ = write!(text, ".\n#[must_use]\npub const fn {function}() -> usize {{\n    {}\n}}\n\n", total.max(0));
        return text;
    }
    let params: Vec<String> = size_names(unit)
        .into_iter()
        .map(|name| if is_extent(unit, &name) { format!("{name}: usize") } else { format!("{name}: i64") })
        .collect();
    let _ = write!(
        text,
        "; `None` for sizes that are too large.\n#[must_use]\npub fn {function}({}) -> Option<usize> {{\n",
        params.join(", ")
    );
    let used: Vec<String> = unit.given(&total).into_iter().map(|i| unit.sizes[i].clone()).collect();
    for name in size_names(unit) {
        if is_extent(unit, &name) {
            let _ = writeln!(text, "    let {name} = i64::try_from({name}).ok().filter(|n| *n <= {MAX_EXTENT})?;");
        }
        if !used.contains(&name) {
            let _ = writeln!(text, "    let _ = {name};");
        }
    }
    needs.helper(LEN);
    for of in unit.naturals_in(&total) {
        checked_total(&mut text, unit, of);
        text.push_str("    let _ = cr_total;\n");
    }
    checked_total(&mut text, unit, &total);
    text.push_str("    (cr_total <= i64::MAX / 16).then(|| cr_len(cr_total))\n}\n\n");
    text
}

/// The sum `total` as `cr_total`; ends the function where it does not fit.
fn checked_total(text: &mut String, unit: &Unit<'_>, total: &Poly<Reg>) {
    text.push_str("    let cr_total = 0_i64;\n");
    for (monomial, c) in total.terms() {
        let term = term(unit, monomial, c);
        let _ = writeln!(text, "    let cr_total = cr_total.checked_add({term})?;");
    }
}

/// Returns a product as an expression that returns from the function if it does not fit.
fn term(unit: &Unit<'_>, monomial: &[Reg], c: i64) -> String {
    let mut text = literal::int(c);
    for (k, r) in monomial.iter().enumerate() {
        let name = unit.formula(&Poly::var(*r));
        text = match k {
            0 if c == 1 => name,
            0 if c < 0 => format!("({text}_i64).checked_mul({name})?"),
            0 => format!("{text}_i64.checked_mul({name})?"),
            _ => format!("{text}.checked_mul({name})?"),
        };
    }
    text
}
