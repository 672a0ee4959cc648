//! The public interface: documentation, signatures, workspace sizes, messages; and the two files.
//!
//! In: kernels. Out: the whole [`Source`]. Formulas of shapes and workspace use the parameter names, once for people
//! and once for the compiler, from the same polynomials.

use crate::language::{C, File, Needs, code_name, declaration, parameter_list};
use crate::parts::Cut;
use crate::precision::InC;
use crate::reserved::is_reserved;
use crate::{Options, Source, batch, lanes, literal};
use chainrule_base::{Diagnostics, Poly};
use chainrule_kernel::{Class, Kernel, Reg, SizeSource, events, with_stored_zeros};
use chainrule_text::describe::{self, size_names, workspaces};
use chainrule_text::pattern::lines;
use chainrule_text::unit::Named;
use chainrule_text::{
    Facts, Language, MAX_EXTENT, Pattern, PatternNames, Pieces, Precision, Scope, Unit, Writer, Written, external,
    facts, language, names, unit,
};
use std::borrow::Cow;
use std::fmt::Write;

/// Returns the pair of files for `kernels`.
pub(crate) fn write(
    name: &str,
    kernels: &[&Kernel],
    patterns: &[Vec<Pattern>],
    options: &Options,
) -> Result<Source, Diagnostics> {
    options.check()?;
    let externals = external::declared(kernels, "C", is_reserved, |e| e.c_name.as_ref())?;
    let mut errors = Diagnostics::new();
    let stored: Vec<Cow<'_, Kernel>> = kernels.iter().map(|kernel| with_stored_zeros(kernel)).collect();
    let kernels: Vec<&Kernel> = stored.iter().map(|kernel| &**kernel).collect();
    let cuts: Vec<Option<Cut>> =
        kernels.iter().map(|kernel| options.threads.then(|| Cut::new(kernel)).flatten()).collect();
    let wholes = kernels.iter().zip(&cuts).map(|(kernel, cut)| cut.as_ref().map_or(*kernel, |cut| &cut.whole));
    let kernels: Vec<&Kernel> = wholes.collect();
    let all_events: Vec<_> = kernels.iter().map(|kernel| events(&kernel.body)).collect();
    for (kernel, events) in kernels.iter().zip(&all_events) {
        if let Err(diagnostic) = facts::check(kernel, events) {
            errors.push(diagnostic);
        }
    }
    errors.into_result(())?;

    let mut file = Scope::new(is_reserved);
    externals.iter().for_each(|(name, _)| file.reserve(name.as_str()));
    let functions: Vec<String> = kernels.iter().map(|kernel| unit::take_name::<C<'_>>(kernel, &mut file)).collect();
    let arrays: Vec<Vec<(&Pattern, PatternNames)>> = functions
        .iter()
        .enumerate()
        .map(|(k, function)| {
            let own = patterns.get(k).map_or(&[][..], Vec::as_slice);
            let names = |p: &Pattern| PatternNames::take(function, &p.result, own.len(), &mut file, is_reserved);
            own.iter().zip(own.iter().map(names).collect::<Vec<_>>()).collect()
        })
        .collect();
    let (mut header, mut body) = (String::new(), String::new());
    let precision = options.precision;
    let (mut needs, mut header_needs) = (Needs::default(), HeaderNeeds::default());
    for ((((kernel, events), name), cut), arrays) in
        kernels.iter().zip(&all_events).zip(&functions).zip(&cuts).zip(&arrays)
    {
        let mut facts = Facts::new(kernel, events);
        if let Some(cut) = cut {
            cut.join_failures(&mut facts);
        }
        let chunk = if cut.is_some() { usize::MAX } else { options.chunk };
        let pieces = Pieces::new(kernel, events, &facts, chunk, |r| language::space(kernel.regs[r]));
        let unit = Unit::new::<C<'_>>(kernel, name.clone(), &file, &facts, pieces.n_slots);
        let mut language = C { needs: &mut needs, precision, own_functions: options.inline_math };
        let mut written = match cut {
            Some(cut) => cut.write(&unit, &file, options, &mut needs),
            None => Writer::new(&unit, &facts, &pieces, &mut language).write(events),
        };
        // The function over many points always checks the sizes.
        written.used_codes[0] |= options.batch.is_some();
        let sizes = work_functions(&unit, &facts, &mut needs);
        header_needs.look_at(&unit, precision);
        declare(&unit, &written, precision, &mut header);
        body.push_str(&written.text);
        body.push_str(&sizes);
        body.push_str(&messages(&unit, &written));
        for (pattern, names) in arrays {
            declare_pattern(&unit, pattern, names, &mut header, &mut body);
            header_needs.int = true;
        }
        if let Some(more) = batch::write(events, &facts, &unit, &file, options, &mut needs) {
            header.push_str(&more.header);
            body.push_str(&more.source);
            (header_needs.int, header_needs.size) = (true, true);
        }
    }
    let name = if name.is_empty() { "chainrule".to_owned() } else { names::spell(name, is_reserved) };
    let header = whole_header(&name, &header, &header_needs, &externals, options);
    let source = whole_source(&name, &body, &needs, &externals, options);
    Ok(Source { name, functions, header, source })
}

/// Requirements of the header.
#[derive(Default)]
struct HeaderNeeds {
    int: bool,
    size: bool,
}

impl HeaderNeeds {
    fn look_at(&mut self, unit: &Unit<'_>, precision: Precision) {
        let works = [Class::Real, Class::Int].map(|class| !unit.workspace(class).is_zero());
        self.size |= works[0] || works[1];
        self.int |= works[1]
            || unit.params().iter().any(|p| declaration(unit, *p, File::Header, precision).contains("int64_t"));
        self.int |= self.size;
    }
}

/// Returns the comment at the beginning of both files.
fn note(options: &Options) -> String {
    let functions = match options.precision {
        Precision::Single => SINGLE,
        Precision::Double if options.inline_math => OWN,
        Precision::Double => DOUBLE,
    };
    let threads = if options.threads { " --threads 1" } else { "" };
    let same = format!("{}{threads}", describe::same_run(options.fuse, options.sequential));
    NOTE.replace("FUNCTIONS", functions).replace("RUN", &same)
}

const DOUBLE: &str = "\
those of `RUN`, for the same request,
 * up to the last places of the functions of math.h. Options that let the compiler change arithmetic, such as
 * -ffast-math, change what the functions mean.";

const OWN: &str = "\
those of `RUN`, for the same request,
 * bit for bit: sin, cos, tan, exp, expm1, log, log1p, cbrt, sinh, cosh, tanh, asinh, acosh, atanh, atan, erf, atan2,
 * hypot and pow are its own. Only other functions of math.h may differ from it in their last places. Options that let
 * the compiler change arithmetic, such as -ffast-math, change what the functions mean.";

const SINGLE: &str = "\
the same wherever floats are those of IEEE 754, up to the last places of the functions of math.h.
 * All arithmetic is in float; each operation rounds to 24 bits. Options that let the compiler change
 * arithmetic, such as -ffast-math, change what the functions mean.";

const NOTE: &str = "\
/*
 * Written by Chainrule; do not edit.
 *
 * Compile as C99 (-std=c99), so that multiplications and additions are not contracted: results are then
 * FUNCTIONS
 */
";

fn whole_header(
    name: &str,
    body: &str,
    needs: &HeaderNeeds,
    externals: &[(String, usize)],
    options: &Options,
) -> String {
    let precision = options.precision;
    let guard = format!("CHAINRULE_{}_H", name.to_ascii_uppercase());
    let mut text = format!("{}#ifndef {guard}\n#define {guard}\n\n", note(options));
    if needs.size {
        text.push_str("#include <stddef.h>\n");
    }
    if needs.int {
        text.push_str("#include <stdint.h>\n");
    }
    if needs.size || needs.int {
        text.push('\n');
    }
    if !externals.is_empty() {
        let names: Vec<&str> = externals.iter().map(|e| e.0.as_str()).collect();
        let _ = write!(text, "/* To be provided, functions of {}s: {}. */\n\n", precision.c_type(), names.join(", "));
    }
    let _ = write!(text, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{body}");
    text.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

fn whole_source(name: &str, body: &str, needs: &Needs, externals: &[(String, usize)], options: &Options) -> String {
    let precision = options.precision;
    let mut text = format!("{}#include \"{name}.h\"\n\n", note(options));
    let real = precision.c_type();
    if needs.math || needs.helpers.iter().any(|helper| helper.contains(real)) {
        text.push_str("#include <math.h>\n");
    }
    if needs.string {
        text.push_str("#include <string.h>\n");
    }
    if body.contains("int64_t") || body.contains("INT64_") || needs.helpers.iter().any(|h| h.contains("int64_t")) {
        text.push_str("#include <stdint.h>\n");
    }
    if options.batch.as_ref().is_some_and(|batch| batch.threads) {
        text.push_str("#ifdef _OPENMP\n#include <omp.h>\n#endif\n");
    }
    text.push_str("\n#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n\n");
    if needs.pieces {
        text.push_str(
            "/* Inlining pieces into one another would make the long functions that they were cut from. */\n\
             #ifdef __GNUC__\n#define CR_PIECE __attribute__((noinline))\n#else\n#define CR_PIECE\n#endif\n\n",
        );
    }
    for (name, arity) in externals {
        let params = if *arity == 0 { "void".to_owned() } else { vec![real; *arity].join(", ") };
        let _ = writeln!(text, "extern {real} {name}({params});");
    }
    if !externals.is_empty() {
        text.push('\n');
    }
    if let Some(batch) = &options.batch {
        text.push_str(&lanes::definitions(batch.lanes, precision));
    }
    for helper in &needs.helpers {
        text.push_str(helper);
        text.push('\n');
    }
    text.push_str(body.trim_end());
    text.push('\n');
    text
}

/// Writes the header's part for one kernel.
fn declare(unit: &Unit<'_>, written: &Written, precision: Precision, out: &mut String) {
    let _ = write!(out, "/*\n * {}\n", describe::summary(unit));
    for part in describe::arguments(unit, precision.c_type()) {
        section(out, part.title, &part.lines);
    }
    let work: Vec<String> = workspaces(unit)
        .into_iter()
        .map(|(class, name)| {
            let formula = unit.formula(&unit.workspace(class));
            let size = format!("{}{}", macro_name(unit, class), macro_arguments(unit));
            format!("{name}: {size} = {formula} {}, of any content", plural(class, precision))
        })
        .collect();
    section(out, "Workspace", &work);
    out.push_str(if work.is_empty() {
        " *\n * Needs no workspace. Results must not overlap one another, nor the arguments.\n"
    } else {
        " *\n * Results and workspace must not overlap one another, nor the arguments.\n"
    });
    let codes = describe::codes(unit, written);
    if codes.is_empty() {
        let _ = write!(out, " *\n * Returns 0.\n */\n");
    } else {
        let line = |(_, code): &(usize, &unit::Code)| format!("{}: {}", code_name(unit, code), code.message);
        let lines: Vec<String> = codes.iter().map(line).collect();
        section(out, "Returns 0, or where the results are not defined", &lines);
        out.push_str(" */\n");
    }
    let params: Vec<String> = unit.params().iter().map(|p| declaration(unit, *p, File::Header, precision)).collect();
    let _ = write!(out, "int {}({});\n\n", unit.name, parameter_list(&params));
    for (number, code) in &codes {
        let _ = writeln!(out, "#define {} {number}", code_name(unit, code));
    }
    if !codes.is_empty() {
        out.push('\n');
    }
    let _ = write!(
        out,
        "/* What a code returned by {} means. */\nconst char *{}_error(int code);\n\n",
        unit.name, unit.name
    );
    for (class, _) in workspaces(unit) {
        let params = size_params(unit);
        let function = size_function(unit, class);
        let arguments = macro_arguments(unit);
        let formula = macro_formula(unit, &unit.workspace(class));
        let _ = write!(
            out,
            "/* Number of {} of workspace that {} needs; the function returns SIZE_MAX for sizes that are too large. */\n\
             #define {}{arguments} ((size_t)({formula}))\nsize_t {function}({params});\n\n",
            plural(class, precision),
            unit.name,
            macro_name(unit, class),
        );
    }
}

/// The arrays of a pattern, declared in the header and defined in the source. C has no empty arrays.
fn declare_pattern(unit: &Unit<'_>, pattern: &Pattern, names: &PatternNames, header: &mut String, source: &mut String) {
    let PatternNames { rows, columns, nnz } = names;
    let (n, nnz) = (pattern.rows.len(), nnz.to_ascii_uppercase());
    let len = n.max(1);
    let _ = write!(
        header,
        "/*\n * Entries of `{}` of {}, a matrix of {} rows and {} columns: entry k is in row\n \
         * {rows}[k] and column {columns}[k], counted from 0, row by row.\n */\n\
         #define {nnz} {n}\nextern const int64_t {rows}[{len}];\nextern const int64_t {columns}[{len}];\n\n",
        literal::comment(&pattern.result),
        unit.name,
        pattern.n_rows,
        pattern.n_columns
    );
    for (name, items) in [(rows, &pattern.rows), (columns, &pattern.columns)] {
        let items = if items.is_empty() { "    0,\n".to_owned() } else { lines(items) };
        let _ = write!(source, "const int64_t {name}[{len}] = {{\n{items}}};\n\n");
    }
}

fn section(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, " *\n * {title}:\n");
    for line in lines {
        let _ = writeln!(out, " *   {}", literal::comment(line));
    }
}

/// Returns the name of a class's elements.
fn plural(class: Class, precision: Precision) -> &'static str {
    match (class, precision) {
        (Class::Int, _) => "integers",
        (Class::Real, Precision::Double) => "doubles",
        (Class::Real, Precision::Single) => "floats",
    }
}

fn macro_name(unit: &Unit<'_>, class: Class) -> String {
    match class {
        Class::Real => format!("{}_WORK_SIZE", unit.name.to_ascii_uppercase()),
        Class::Int => format!("{}_IWORK_SIZE", unit.name.to_ascii_uppercase()),
    }
}

fn size_function(unit: &Unit<'_>, class: Class) -> String {
    match class {
        Class::Real => format!("{}_work_size", unit.name),
        Class::Int => format!("{}_iwork_size", unit.name),
    }
}

/// Returns the declarations of all sizes.
fn size_params(unit: &Unit<'_>) -> String {
    let declarations: Vec<String> = size_names(unit).iter().map(|name| format!("int64_t {name}")).collect();
    parameter_list(&declarations)
}

fn macro_arguments(unit: &Unit<'_>) -> String {
    let names = size_names(unit);
    if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) }
}

/// Returns `poly` with each size in parentheses, in 64-bit arithmetic for any arguments of the macro.
fn macro_formula(unit: &Unit<'_>, poly: &Poly<Reg>) -> String {
    let mut texts: Vec<String> = Vec::new();
    let formula = |texts: &[String], poly: &Poly<Reg>| {
        let text = |r: Reg| unit.kernel.sizes.iter().position(|s| s.reg == r).map_or("0", |i| texts[i].as_str());
        poly.substitute(|r| Poly::var(Named(text(r)))).to_string()
    };
    for (size, name) in unit.kernel.sizes.iter().zip(&unit.sizes) {
        texts.push(match &size.source {
            SizeSource::Natural { of } => <C<'_> as Language>::natural(&formula(&texts, of)),
            _ => format!("(int64_t)({name})"),
        });
    }
    formula(&texts, poly)
}

/// Adds `total` to `cr_total`, or returns that it is too large.
fn checked_total(text: &mut String, unit: &Unit<'_>, total: &Poly<Reg>) {
    for (monomial, c) in total.terms() {
        let _ = writeln!(text, "    cr_term = {};", literal::int(c));
        for r in monomial {
            let name = unit.formula(&Poly::var(*r));
            let _ = writeln!(text, "    if (cr_mul(cr_term, {name}, &cr_term)) return SIZE_MAX;");
        }
        text.push_str("    if (cr_add(cr_total, cr_term, &cr_total)) return SIZE_MAX;\n");
    }
}

/// Returns the functions for workspace sizes.
fn work_functions(unit: &Unit<'_>, facts: &Facts, needs: &mut Needs) -> String {
    let mut text = String::new();
    for (class, _) in workspaces(unit) {
        let (names, params) = (size_names(unit), size_params(unit));
        let total = unit.workspace(class);
        let used: Vec<String> = unit.given(&total).into_iter().map(|i| unit.sizes[i].clone()).collect();
        let _ = write!(text, "size_t {}({params})\n{{\n", size_function(unit, class));
        for name in &names {
            if describe::is_extent(unit, name) {
                let _ = writeln!(text, "    if ({name} < 0 || {name} > {MAX_EXTENT}) return SIZE_MAX;");
            } else if !used.contains(name) {
                let _ = writeln!(text, "    (void){name};");
            }
        }
        if facts.may_overflow(&total) {
            needs.checked();
            text.push_str("    int64_t cr_total = 0, cr_term;\n");
            for of in unit.naturals_in(&total) {
                checked_total(&mut text, unit, of);
                text.push_str("    cr_total = 0;\n");
            }
            checked_total(&mut text, unit, &total);
        } else {
            let _ = writeln!(text, "    const int64_t cr_total = {};", unit.formula(&total));
        }
        text.push_str("    if (cr_total > INT64_MAX / 16) return SIZE_MAX;\n");
        text.push_str("    return cr_total < 0 ? 0 : (size_t)cr_total;\n}\n\n");
    }
    text
}

/// Returns the function for messages.
fn messages(unit: &Unit<'_>, written: &Written) -> String {
    let mut text = format!("const char *{}_error(int code)\n{{\n    switch (code) {{\n", unit.name);
    text.push_str("    case 0: return \"no error\";\n");
    for (_, code) in describe::codes(unit, written) {
        let _ = writeln!(text, "    case {}: return {};", code_name(unit, code), literal::string(&code.message));
    }
    text.push_str("    default: return \"unknown error code\";\n    }\n}\n\n");
    text
}
