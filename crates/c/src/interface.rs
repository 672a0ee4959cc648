//! What the caller sees: documentation, signatures, sizes of workspace, messages; and the two files.
//!
//! In: kernels. Out: the whole [`Source`]. Formulas of shapes and workspace are written in the names of
//! the parameters, once for people and once for the compiler, from the same polynomials.

use crate::body::{Needs, Writer, Written};
use crate::facts::{self, Facts, MAX_EXTENT};
use crate::names::{self, Scope};
use crate::pieces::Pieces;
use crate::unit::{self, Named, Unit};
use crate::{Options, Source, guard, literal};
use chainrule_base::{Diagnostics, Poly};
use chainrule_kernel::{Class, Kernel, Port, Reg, SizeSource, events};
use std::fmt::Write;

/// The pair of files for `kernels`.
pub(crate) fn write(name: &str, kernels: &[&Kernel], options: &Options) -> Result<Source, Diagnostics> {
    let externals = unit::externals(kernels)?;
    let mut errors = Diagnostics::new();
    let all_events: Vec<_> = kernels.iter().map(|kernel| events(&kernel.body)).collect();
    for (kernel, events) in kernels.iter().zip(&all_events) {
        if let Err(diagnostic) = facts::check(kernel, events) {
            errors.push(diagnostic);
        }
    }
    errors.into_result(())?;

    let mut file = Scope::default();
    externals.iter().for_each(|(name, _)| file.reserve(name.as_str()));
    let functions: Vec<String> = kernels.iter().map(|kernel| unit::take_name(kernel, &mut file)).collect();
    let (mut header, mut body) = (String::new(), String::new());
    let (mut needs, mut header_needs) = (Needs::default(), HeaderNeeds::default());
    for ((kernel, events), name) in kernels.iter().zip(&all_events).zip(&functions) {
        let facts = Facts::new(kernel, events);
        let pieces = Pieces::new(kernel, events, &facts, options.chunk);
        let unit = Unit::new(kernel, name.clone(), &file, &facts, pieces.n_slots);
        let written = Writer::new(&unit, &facts, &pieces, &mut needs).write(events);
        let sizes = work_functions(&unit, &facts, &mut needs);
        header_needs.look_at(&unit);
        declare(&unit, &written, &mut header);
        body.push_str(&written.text);
        body.push_str(&sizes);
        body.push_str(&messages(&unit, &written));
    }
    let name = if name.is_empty() { "chainrule".to_owned() } else { names::spell(name) };
    let header = whole_header(&name, &header, &header_needs, &externals);
    let source = whole_source(&name, &body, &needs, &externals);
    Ok(Source { name, functions, header, source })
}

/// What the header needs of others.
#[derive(Default)]
struct HeaderNeeds {
    int: bool,
    size: bool,
}

impl HeaderNeeds {
    fn look_at(&mut self, unit: &Unit<'_>) {
        let works = [Class::Real, Class::Int].map(|class| !unit.workspace(class).is_zero());
        self.size |= works[0] || works[1];
        self.int |= works[1] || unit.params().iter().any(|p| unit.declaration(*p, false).contains("int64_t"));
        self.int |= self.size;
    }
}

const NOTE: &str = "\
/*
 * Written by Chainrule; do not edit.
 *
 * Compile as C99 (-std=c99), so that multiplications and additions are not contracted: results are then
 * those of Chainrule's interpreter, up to the last places of the functions of math.h. Options that let
 * the compiler change arithmetic, such as -ffast-math, change what the functions mean.
 */
";

fn whole_header(name: &str, body: &str, needs: &HeaderNeeds, externals: &[(String, usize)]) -> String {
    let guard = format!("CHAINRULE_{}_H", name.to_ascii_uppercase());
    let mut text = format!("{NOTE}#ifndef {guard}\n#define {guard}\n\n");
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
        let _ = write!(text, "/* To be provided, functions of doubles: {}. */\n\n", names.join(", "));
    }
    let _ = write!(text, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{body}");
    text.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

fn whole_source(name: &str, body: &str, needs: &Needs, externals: &[(String, usize)]) -> String {
    let mut text = format!("{NOTE}#include \"{name}.h\"\n\n");
    if needs.math || needs.helpers.iter().any(|helper| helper.contains("double")) {
        text.push_str("#include <math.h>\n");
    }
    if needs.string {
        text.push_str("#include <string.h>\n");
    }
    if body.contains("int64_t") || body.contains("INT64_") || needs.helpers.iter().any(|h| h.contains("int64_t")) {
        text.push_str("#include <stdint.h>\n");
    }
    text.push_str("\n#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n\n");
    if needs.pieces {
        text.push_str(
            "/* Inlining pieces into one another would make the long functions that they were cut from. */\n\
             #ifdef __GNUC__\n#define CR_PIECE __attribute__((noinline))\n#else\n#define CR_PIECE\n#endif\n\n",
        );
    }
    for (name, arity) in externals {
        let params = if *arity == 0 { "void".to_owned() } else { vec!["double"; *arity].join(", ") };
        let _ = writeln!(text, "extern double {name}({params});");
    }
    if !externals.is_empty() {
        text.push('\n');
    }
    for helper in &needs.helpers {
        text.push_str(helper);
        text.push('\n');
    }
    text.push_str(body.trim_end());
    text.push('\n');
    text
}

/// The header's part for one kernel.
fn declare(unit: &Unit<'_>, written: &Written, out: &mut String) {
    let kernel = unit.kernel;
    let list = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    let _ = write!(out, "/*\n * {}: computes {} from {}.\n", unit.name, list(&unit.outputs), list(&unit.inputs));
    let extents: Vec<String> = kernel
        .sizes
        .iter()
        .zip(&unit.sizes)
        .filter_map(|(size, name)| match size.source {
            SizeSource::Extent { input, dim } => {
                Some(format!("{name}: extent of dimension {} of {}", dim + 1, unit.inputs[input]))
            }
            SizeSource::Value { .. } => None,
        })
        .collect();
    section(out, "Sizes", &extents);
    let ports = |ports: &[Port], names: &[String], output: bool| -> Vec<String> {
        ports.iter().zip(names).map(|(port, name)| describe(unit, port, name, output)).collect()
    };
    section(out, "Arguments", &ports(&kernel.inputs, &unit.inputs, false));
    section(out, "Results", &ports(&kernel.outputs, &unit.outputs, true));
    let mut work = Vec::new();
    for (class, name, what, size) in workspaces(unit) {
        let formula = unit.formula(&unit.workspace(class));
        work.push(format!("{name}: {size} = {formula} {what}, of any content"));
    }
    section(out, "Workspace", &work);
    out.push_str(if work.is_empty() {
        " *\n * Needs no workspace. Results must not overlap one another, nor the arguments.\n"
    } else {
        " *\n * Results and workspace must not overlap one another, nor the arguments.\n"
    });
    let codes: Vec<(usize, &unit::Code)> =
        unit.codes.iter().enumerate().filter(|(i, _)| written.used_codes[*i]).map(|(i, code)| (i + 1, code)).collect();
    if codes.is_empty() {
        let _ = write!(out, " *\n * Returns 0.\n */\n");
    } else {
        let lines: Vec<String> = codes.iter().map(|(_, code)| format!("{}: {}", code.name, code.message)).collect();
        section(out, "Returns 0, or where the results are not defined", &lines);
        out.push_str(" */\n");
    }
    let params: Vec<String> = unit.params().iter().map(|p| unit.declaration(*p, false)).collect();
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    let _ = write!(out, "int {}({params});\n\n", unit.name);
    for (number, code) in &codes {
        let _ = writeln!(out, "#define {} {number}", code.name);
    }
    if !codes.is_empty() {
        out.push('\n');
    }
    let _ = write!(
        out,
        "/* What a code returned by {} means. */\nconst char *{}_error(int code);\n\n",
        unit.name, unit.name
    );
    for (class, _, what, _) in workspaces(unit) {
        let (_, params) = size_params(unit);
        let function = size_function(unit, class);
        let arguments = macro_arguments(unit);
        let formula = macro_formula(unit, &unit.workspace(class));
        let _ = write!(
            out,
            "/* How many {what} of workspace {} needs; the function gives SIZE_MAX for sizes that are too large. */\n\
             #define {}{arguments} ((size_t)({formula}))\nsize_t {function}({params});\n\n",
            unit.name,
            macro_name(unit, class),
        );
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

/// `x: [n][2*n + 1] doubles, row by row`
fn describe(unit: &Unit<'_>, port: &Port, name: &str, output: bool) -> String {
    let class = unit.kernel.buffers[port.buffer].class;
    let mut text = format!("{name}: ");
    for extent in &port.shape {
        let _ = write!(text, "[{}]", unit.formula(extent));
    }
    let what = match (class, port.shape.is_empty(), output) {
        (Class::Real, true, false) => "double",
        (Class::Int, true, false) => "integer, or 0 or 1 for a truth value",
        (Class::Real, true, true) => "one double",
        (Class::Int, true, true) => "one integer, or 0 or 1 for a truth value",
        (Class::Real, false, _) => " doubles",
        (Class::Int, false, _) => " integers, or 0 and 1 for truth values",
    };
    text.push_str(what);
    if port.shape.len() > 1 {
        text.push_str(", row by row");
    }
    if port.name.as_str() != name {
        let _ = write!(text, " (`{}`)", port.name);
    }
    text
}

/// The workspaces that there are: class, parameter, what it holds, its size as the caller writes it.
fn workspaces<'u>(unit: &'u Unit<'_>) -> Vec<(Class, &'u str, &'static str, String)> {
    [(Class::Real, unit.work.as_str(), "doubles"), (Class::Int, unit.iwork.as_str(), "integers")]
        .into_iter()
        .filter(|(class, ..)| !unit.workspace(*class).is_zero())
        .map(|(class, name, what)| (class, name, what, format!("{}{}", macro_name(unit, class), macro_arguments(unit))))
        .collect()
}

fn macro_name(unit: &Unit<'_>, class: Class) -> String {
    match class {
        Class::Real => format!("{}_WORK_SIZE", unit.upper),
        Class::Int => format!("{}_IWORK_SIZE", unit.upper),
    }
}

fn size_function(unit: &Unit<'_>, class: Class) -> String {
    match class {
        Class::Real => format!("{}_work_size", unit.name),
        Class::Int => format!("{}_iwork_size", unit.name),
    }
}

/// The names of all sizes, each once, and their declarations.
fn size_params(unit: &Unit<'_>) -> (Vec<String>, String) {
    let mut names: Vec<String> = Vec::new();
    for name in &unit.sizes {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let declarations: Vec<String> = names.iter().map(|name| format!("int64_t {name}")).collect();
    let declarations = if names.is_empty() { "void".to_owned() } else { declarations.join(", ") };
    (names, declarations)
}

fn macro_arguments(unit: &Unit<'_>) -> String {
    let (names, _) = size_params(unit);
    if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) }
}

/// `poly` with each size in parentheses, as 64-bit arithmetic whatever the arguments of the macro are.
fn macro_formula(unit: &Unit<'_>, poly: &Poly<Reg>) -> String {
    let texts: Vec<String> = unit.sizes.iter().map(|name| format!("(int64_t)({name})")).collect();
    let text = |r: Reg| unit.kernel.sizes.iter().position(|s| s.reg == r).map_or("0", |i| texts[i].as_str());
    poly.substitute(|r| Poly::var(Named(text(r)))).to_string()
}

/// The functions that tell the sizes of the workspace.
fn work_functions(unit: &Unit<'_>, facts: &Facts, needs: &mut Needs) -> String {
    let mut text = String::new();
    for (class, ..) in workspaces(unit) {
        let (names, params) = size_params(unit);
        let total = unit.workspace(class);
        let used: Vec<String> = total
            .vars()
            .into_iter()
            .filter_map(|r| unit.kernel.sizes.iter().position(|s| s.reg == r).map(|i| unit.sizes[i].clone()))
            .collect();
        let _ = write!(text, "size_t {}({params})\n{{\n", size_function(unit, class));
        for name in &names {
            let is_extent = unit
                .kernel
                .sizes
                .iter()
                .zip(&unit.sizes)
                .any(|(size, n)| n == name && matches!(size.source, SizeSource::Extent { .. }));
            if is_extent {
                let _ = writeln!(text, "    if ({name} < 0 || {name} > {MAX_EXTENT}) return SIZE_MAX;");
            } else if !used.contains(name) {
                let _ = writeln!(text, "    (void){name};");
            }
        }
        if facts.may_overflow(&total) {
            needs.helper(guard::ADD);
            needs.helper(guard::MUL);
            needs.helper(guard::INTO);
            text.push_str("    int64_t total = 0, term;\n");
            for (monomial, c) in total.terms() {
                let _ = writeln!(text, "    term = {};", literal::int(c));
                for r in monomial {
                    let name = unit.formula(&Poly::var(*r));
                    let _ = writeln!(text, "    if (cr_mul(term, {name}, &term)) return SIZE_MAX;");
                }
                text.push_str("    if (cr_add(total, term, &total)) return SIZE_MAX;\n");
            }
        } else {
            let _ = writeln!(text, "    const int64_t total = {};", unit.formula(&total));
        }
        text.push_str("    if (total > INT64_MAX / 16) return SIZE_MAX;\n");
        text.push_str("    return total < 0 ? 0 : (size_t)total;\n}\n\n");
    }
    text
}

/// The function that tells messages.
fn messages(unit: &Unit<'_>, written: &Written) -> String {
    let mut text = format!("const char *{}_error(int code)\n{{\n    switch (code) {{\n", unit.name);
    text.push_str("    case 0: return \"no error\";\n");
    for (code, _) in unit.codes.iter().zip(&written.used_codes).filter(|(_, used)| **used) {
        let _ = writeln!(text, "    case {}: return {};", code.name, literal::string(&code.message));
    }
    text.push_str("    default: return \"unknown error code\";\n    }\n}\n\n");
    text
}
