//! Documentation of a function: its arguments, its workspace, its failures. Formulas of shapes use the names of the
//! parameters.

use crate::body::Written;
use crate::unit::{Code, Unit};
use chainrule_kernel::{Class, Port, SizeSource};
use std::fmt::Write;

/// A paragraph: a title, and the lines below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Title without a colon.
    pub title: &'static str,
    /// Lines, at least one.
    pub lines: Vec<String>,
}

/// Returns `f: computes y from a, b and c.`
#[must_use]
pub fn summary(unit: &Unit<'_>) -> String {
    let list = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    format!("{}: computes {} from {}.", unit.name, list(&unit.outputs), list(&unit.inputs))
}

/// Returns the command that computes the same bits, for kernels with or without fused products, and with sequential or
/// vectorised loops.
#[must_use]
pub fn same_run(fuse: bool, sequential: bool) -> String {
    let (fuse, lanes) = (if fuse { "" } else { " --no-fuse" }, if sequential { " --sequential" } else { "" });
    format!("chainrule run{fuse}{lanes}")
}

/// Returns sections for sizes, arguments and results. `number` is the type of numbers: "double", "f64".
#[must_use]
pub fn arguments(unit: &Unit<'_>, number: &str) -> Vec<Section> {
    let kernel = unit.kernel;
    let extents: Vec<String> = kernel
        .sizes
        .iter()
        .zip(&unit.sizes)
        .filter_map(|(size, name)| match size.source {
            SizeSource::Extent { input, dim } => {
                Some(format!("{name}: extent of dimension {} of {}", dim + 1, unit.inputs[input]))
            }
            SizeSource::Value { .. } | SizeSource::Natural { .. } => None,
        })
        .collect();
    let ports = |ports: &[Port], names: &[String], output: bool| -> Vec<String> {
        ports.iter().zip(names).map(|(port, name)| describe(unit, port, name, output, number)).collect()
    };
    let mut sections = vec![
        Section { title: "Sizes", lines: extents },
        Section { title: "Arguments", lines: ports(&kernel.inputs, &unit.inputs, false) },
        Section { title: "Results", lines: ports(&kernel.outputs, &unit.outputs, true) },
    ];
    sections.retain(|section| !section.lines.is_empty());
    sections
}

/// Returns `x: [n][2*n + 1] doubles, row by row`.
fn describe(unit: &Unit<'_>, port: &Port, name: &str, output: bool, number: &str) -> String {
    let class = unit.kernel.buffers[port.buffer].class;
    let mut text = format!("{name}: ");
    for extent in &port.shape {
        let _ = write!(text, "[{}]", unit.formula(extent));
    }
    match (class, port.shape.is_empty(), output) {
        (Class::Real, true, false) => text.push_str(number),
        (Class::Int, true, false) => text.push_str("integer, or 0 or 1 for a truth value"),
        (Class::Real, true, true) => text.push_str(&format!("one {number}")),
        (Class::Int, true, true) => text.push_str("one integer, or 0 or 1 for a truth value"),
        (Class::Real, false, _) => text.push_str(&format!(" {number}s")),
        (Class::Int, false, _) => text.push_str(" integers, or 0 and 1 for truth values"),
    }
    if port.shape.len() > 1 {
        text.push_str(", row by row");
    }
    if port.name.as_str() != name {
        let _ = write!(text, " (`{}`)", port.name);
    }
    text
}

/// Returns the workspaces: class, and the parameter.
#[must_use]
pub fn workspaces<'u>(unit: &'u Unit<'_>) -> Vec<(Class, &'u str)> {
    let mut found = vec![(Class::Real, unit.work.as_str()), (Class::Int, unit.iwork.as_str())];
    found.retain(|(class, _)| !unit.workspace(*class).is_zero());
    found
}

/// Returns the distinct names of sizes.
#[must_use]
pub fn size_names(unit: &Unit<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (size, name) in unit.kernel.sizes.iter().zip(&unit.sizes) {
        if !matches!(size.source, SizeSource::Natural { .. }) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns whether the size called `name` is an extent; otherwise it is the value of an integer.
#[must_use]
pub fn is_extent(unit: &Unit<'_>, name: &str) -> bool {
    let mut sizes = unit.kernel.sizes.iter().zip(&unit.sizes);
    sizes.any(|(size, n)| n == name && matches!(size.source, SizeSource::Extent { .. }))
}

/// Returns the codes that the function returns, with their numbers from 1.
pub fn codes<'u>(unit: &'u Unit<'_>, written: &Written) -> Vec<(usize, &'u Code)> {
    let used = |i: &usize| written.used_codes[*i];
    unit.codes.iter().enumerate().filter(|(i, _)| used(i)).map(|(i, code)| (i + 1, code)).collect()
}
