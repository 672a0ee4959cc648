//! Sizes, lengths and offsets from the shapes of the arguments.
//!
//! In: the extents of each input, and the values of the integer scalars that are sizes. Out: [`Sizes`], which holds
//! everything that depends on them, computed once; or an error that names the mismatch.

use crate::lines::first_in_line;
use crate::{Elements, RunError, Slice, in_lines};
use chainrule_base::{Id, Poly, count};
use chainrule_kernel::{Buffer, BufferId, Class, Kernel, Place, Port, Reg, SizeSource};
use std::fmt;
use std::sync::Arc;

/// Interface and memory plan of a kernel, which running needs beside the code.
#[derive(Debug)]
pub struct Layout {
    pub(crate) kernel: Arc<Kernel>,
    /// Result of [`first_in_line`]; empty for straight-line code.
    first_in_line: Vec<usize>,
}

/// Sizes of one call, valid for the program that made them.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub(crate) layout: Arc<Layout>,
    /// Value of each size of the kernel.
    values: Vec<i64>,
    /// Offset in the workspace (0 for arguments) and length of each buffer.
    buffers: Vec<(usize, usize)>,
    reals: usize,
    ints: usize,
    /// Numbers of the workspace without padding.
    n_planned: usize,
    outputs: Vec<Vec<usize>>,
}

impl Sizes {
    /// Returns the extents of an output, outermost first; empty for a scalar and for an unknown output.
    #[must_use]
    pub fn output_shape(&self, output: usize) -> &[usize] {
        self.outputs.get(output).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of elements of an output.
    #[must_use]
    pub fn output_len(&self, output: usize) -> usize {
        self.output_shape(output).iter().product()
    }

    /// Returns the offset in the workspace (0 for arguments) and the length of each buffer, in the kernel's order.
    #[must_use]
    #[inline]
    pub fn buffers(&self) -> &[(usize, usize)] {
        &self.buffers
    }

    /// Returns the numbers of doubles and of integers in the workspace.
    #[must_use]
    pub fn workspace_len(&self) -> (usize, usize) {
        (self.reals, self.ints)
    }

    /// Returns the number of elements in the kernel's memory plan: the workspace without padding.
    #[must_use]
    pub fn n_planned(&self) -> usize {
        self.n_planned
    }

    /// Returns whether the workspace of one point is small enough that a block of points fits into the caches.
    #[must_use]
    pub fn allow_lanes(&self) -> bool {
        self.reals.max(self.ints) <= LANE_WORKSPACE_LIMIT
    }

    /// Returns the value of each size, in the kernel's order.
    #[must_use]
    #[inline]
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Returns the number of elements of an input.
    #[must_use]
    pub fn input_len(&self, input: usize) -> usize {
        self.buffers[self.layout.kernel.inputs[input].buffer.index()].1
    }

    /// Returns zeros for each input.
    #[must_use]
    pub fn zero_inputs(&self) -> Vec<Elements> {
        self.zeros(&self.layout.kernel.inputs)
    }

    /// Returns zeros for each output.
    #[must_use]
    pub fn zero_outputs(&self) -> Vec<Elements> {
        self.zeros(&self.layout.kernel.outputs)
    }

    fn zeros(&self, ports: &[Port]) -> Vec<Elements> {
        let class = |port: &Port| self.layout.kernel.buffers[port.buffer].class;
        ports.iter().map(|port| Elements::zeros(class(port), self.buffers[port.buffer.index()].1)).collect()
    }

    /// Returns whether `value` is the value of input `input` for which these sizes were made, if that input is a size.
    pub(crate) fn agrees(&self, input: usize, value: i64) -> bool {
        let sizes = self.layout.kernel.sizes.iter().zip(&self.values);
        sizes.filter(|(s, _)| s.source == SizeSource::Value { input }).all(|(_, bound)| *bound == value)
    }
}

/// Maximum workspace of one point, in numbers, for which a batch runs in blocks of points.
pub const LANE_WORKSPACE_LIMIT: usize = 1 << 16;

/// Name of a size, for printing polynomials.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Layout {
    /// Returns the layout of `kernel`.
    #[must_use]
    pub fn new(kernel: Arc<Kernel>) -> Arc<Self> {
        let first_in_line = first_in_line(&kernel);
        Arc::new(Self { kernel, first_in_line })
    }

    /// Returns the kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the position in a cache line at which a buffer should begin.
    #[must_use]
    pub fn first_in_line(&self, buffer: BufferId) -> usize {
        self.first_in_line.get(buffer.index()).copied().unwrap_or(0)
    }

    /// Returns the sizes for arguments of these shapes (outermost extent first; empty for a scalar). `value` returns
    /// the integer scalars on which sizes depend, by the index of the input.
    ///
    /// # Errors
    /// Shapes that do not fit one another or the program, or sizes that break a condition at entry;
    /// the message names the argument, the dimension, what is expected and what is given.
    pub fn bind(
        self: &Arc<Self>,
        shapes: &[&[usize]],
        value: impl Fn(usize) -> Option<i64>,
    ) -> Result<Sizes, RunError> {
        let kernel = &self.kernel;
        self.check_ranks(shapes)?;
        let mut values = Vec::with_capacity(kernel.sizes.len());
        for size in &kernel.sizes {
            values.push(match &size.source {
                SizeSource::Extent { input, dim } => extent(shapes[*input][*dim])?,
                SizeSource::Value { input } => value(*input).ok_or_else(|| {
                    let name = &kernel.inputs[*input].name;
                    RunError::argument(format!("the value of argument `{name}` is needed: sizes depend on it"))
                })?,
                SizeSource::Natural { of } => self.eval(of, &values)?.max(0),
            });
        }
        self.check_extents(shapes, &values)?;
        self.check_conditions(&values)?;
        let eval = |poly: &Poly<Reg>| self.eval(poly, &values);
        let (reals, ints) = (length(eval(&kernel.workspace_reals)?)?, length(eval(&kernel.workspace_ints)?)?);
        let mut buffers = Vec::with_capacity(kernel.buffers.len());
        for buffer in kernel.buffers.as_slice() {
            let len = length(eval(&buffer.len)?)?;
            let offset = match &buffer.place {
                Place::Workspace(offset) if len > 0 => length(eval(offset)?)?,
                _ => 0,
            };
            buffers.push((offset, len));
        }
        let mut outputs = Vec::with_capacity(kernel.outputs.len());
        for port in &kernel.outputs {
            outputs.push(port.shape.iter().map(|e| length(eval(e)?)).collect::<Result<Vec<usize>, _>>()?);
        }
        let n_planned = reals.saturating_add(ints);
        let mut sizes = Sizes { layout: Arc::clone(self), values, buffers, reals, ints, n_planned, outputs };
        self.check_plan(&sizes, shapes)?;
        sizes.reals = self.place(Class::Real, &mut sizes.buffers);
        sizes.ints = self.place(Class::Int, &mut sizes.buffers);
        Ok(sizes)
    }

    /// Aligns the workspace buffers of a class to cache lines; returns the number of elements that they take.
    fn place(&self, class: Class, buffers: &mut [(usize, usize)]) -> usize {
        let is_of = |b: &Buffer| b.class == class && matches!(b.place, Place::Workspace(_));
        let all = self.kernel.buffers.as_slice();
        let of_class: Vec<usize> = (0..buffers.len()).filter(|i| is_of(&all[*i])).collect();
        let ranges: Vec<(usize, usize)> = of_class.iter().map(|i| buffers[*i]).collect();
        let (offsets, n) = in_lines(&ranges, |i| self.first_in_line(BufferId::new(of_class[i])));
        of_class.into_iter().zip(offsets).for_each(|(i, offset)| buffers[i].0 = offset);
        n
    }

    fn eval(&self, poly: &Poly<Reg>, values: &[i64]) -> Result<i64, RunError> {
        let value = |r: Reg| self.kernel.sizes.iter().position(|s| s.reg == r).map_or(0, |i| values[i]);
        poly.eval(value).ok_or_else(|| {
            RunError::argument(format!(
                "the arguments are too large: {} does not fit into 64 bits{}",
                self.formula(poly),
                self.bindings(poly, values)
            ))
        })
    }

    /// Formats `poly` with the names of sizes.
    fn formula(&self, poly: &Poly<Reg>) -> String {
        let name = |r: Reg| self.kernel.sizes.iter().find(|s| s.reg == r).map_or("?", |s| s.name.as_str());
        poly.substitute(|r| Poly::var(Named(name(r)))).to_string()
    }

    /// Formats the sizes in `poly` as ` (n = 4, the extent of dimension 1 of `x`)`; empty for a constant.
    fn bindings(&self, poly: &Poly<Reg>, values: &[i64]) -> String {
        let mut parts = Vec::new();
        for r in poly.vars() {
            let Some(i) = self.kernel.sizes.iter().position(|s| s.reg == r) else { continue };
            let origin = match &self.kernel.sizes[i].source {
                SizeSource::Extent { input, dim } => {
                    format!("the extent of dimension {} of `{}`", dim + 1, self.kernel.inputs[*input].name)
                }
                SizeSource::Value { input } => format!("the value of `{}`", self.kernel.inputs[*input].name),
                SizeSource::Natural { of } => format!("the larger of {} and 0", self.formula(of)),
            };
            parts.push(format!("{} = {}, {origin}", self.kernel.sizes[i].name, values[i]));
        }
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
    }

    fn check_ranks(&self, shapes: &[&[usize]]) -> Result<(), RunError> {
        let inputs = &self.kernel.inputs;
        if shapes.len() != inputs.len() {
            let names: Vec<String> = inputs.iter().map(|p| format!("`{}`", p.name)).collect();
            return Err(RunError::argument(format!(
                "{} given, but {} expected: {}",
                count(shapes.len(), "argument"),
                inputs.len(),
                names.join(", ")
            )));
        }
        for (port, shape) in inputs.iter().zip(shapes) {
            if port.shape.len() != shape.len() {
                return Err(RunError::argument(format!(
                    "argument `{}` has {}, but {} expected: {}",
                    port.name,
                    count(shape.len(), "dimension"),
                    port.shape.len(),
                    self.shape(port)
                )));
            }
        }
        Ok(())
    }

    /// Formats a shape as `[n][2*n + 1]` or `a scalar`.
    fn shape(&self, port: &Port) -> String {
        if port.shape.is_empty() {
            return "a scalar".to_owned();
        }
        port.shape.iter().map(|e| format!("[{}]", self.formula(e))).collect()
    }

    fn check_extents(&self, shapes: &[&[usize]], values: &[i64]) -> Result<(), RunError> {
        for (port, shape) in self.kernel.inputs.iter().zip(shapes) {
            for (dim, (expected, given)) in port.shape.iter().zip(*shape).enumerate() {
                let value = self.eval(expected, values)?;
                // A negative row length is allowed if there are no rows.
                let is_empty = value < 0 && shape[..dim].contains(&0);
                if extent(*given)? != if is_empty { 0 } else { value } {
                    let formula = match expected.as_constant() {
                        Some(_) => value.to_string(),
                        None => format!("{} = {value}", self.formula(expected)),
                    };
                    return Err(RunError::argument(format!(
                        "argument `{}` has extent {given} in dimension {}, but {formula} is expected{}",
                        port.name,
                        dim + 1,
                        self.bindings(expected, values)
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_conditions(&self, values: &[i64]) -> Result<(), RunError> {
        for condition in &self.kernel.requires {
            let value = self.eval(&condition.size, values)?;
            let holds = if condition.exactly_zero { value == 0 } else { value >= 0 };
            if !holds {
                let bindings = self.bindings(&condition.size, values);
                let bindings = bindings.trim().trim_start_matches('(').trim_end_matches(')');
                let relation = if condition.exactly_zero { "must be 0" } else { "must not be negative" };
                let reason = match condition.size.as_var() {
                    Some(_) => bindings.to_owned(),
                    None => format!("{} {relation}, but it is {value}: {bindings}", self.formula(&condition.size)),
                };
                return Err(RunError::Argument {
                    message: condition.message.clone(),
                    reason: Some(reason),
                    span: condition.span,
                });
            }
        }
        Ok(())
    }

    /// Checks that buffers lie inside the workspace and that ports have the length of their shapes.
    fn check_plan(&self, sizes: &Sizes, shapes: &[&[usize]]) -> Result<(), RunError> {
        let product = |shape: &[usize]| shape.iter().try_fold(1usize, |p, e| p.checked_mul(*e));
        for (buffer, (offset, len)) in self.kernel.buffers.as_slice().iter().zip(&sizes.buffers) {
            let room = match buffer.class {
                Class::Real => sizes.reals,
                Class::Int => sizes.ints,
            };
            let fits = match buffer.place {
                Place::Workspace(_) => offset.checked_add(*len).is_some_and(|end| end <= room),
                Place::Input(i) => shapes.get(i).and_then(|s| product(s)) == Some(*len),
                Place::Output(i) => sizes.outputs.get(i).and_then(|s| product(s)) == Some(*len),
            };
            if !fits {
                return Err(RunError::Bug(format!(
                    "a buffer of kernel `{}` does not fit its place ({len} elements at {:?})",
                    self.kernel.name, buffer.place
                )));
            }
        }
        Ok(())
    }
}

fn extent(given: usize) -> Result<i64, RunError> {
    i64::try_from(given).map_err(|_| RunError::argument(format!("an extent of {given} is too large")))
}

/// Returns a length in memory; 0 for a negative value, which belongs to a loop that does not run.
fn length(value: i64) -> Result<usize, RunError> {
    const LIMIT: i64 = i64::MAX / 16;
    if value > LIMIT {
        return Err(RunError::argument(format!("the arguments are too large: {value} numbers of memory are needed")));
    }
    usize::try_from(value.max(0)).map_err(|_| RunError::argument(format!("{value} numbers do not fit into memory")))
}

/// Returns the value of an integer scalar among the inputs, for [`Layout::bind`].
#[must_use]
pub fn scalar(inputs: &[Slice<'_>], input: usize) -> Option<i64> {
    if let Some(Slice::Int([value])) = inputs.get(input) { Some(*value) } else { None }
}
