//! Checks of arguments at entry, and the messages of failures.
//!
//! In: bound sizes and arguments. Out: success, or an error that names the argument. Nothing is written before the
//! checks.

use crate::error::Reason;
use crate::{Layout, RunError, Sizes, Slice, SliceMut, Strided, StridedMut};
use chainrule_base::{Diagnostic, count};
use chainrule_kernel::registers::OVERFLOW;
use chainrule_kernel::{Class, NEGATIVE_SIZE, Reg, SizeSource};
use std::sync::Arc;

impl Layout {
    /// Returns whether this layout made `sizes`.
    #[must_use]
    #[inline]
    pub fn made(self: &Arc<Self>, sizes: &Sizes) -> bool {
        Arc::ptr_eq(&sizes.layout, self)
    }

    /// Checks that this layout made `sizes`.
    ///
    /// # Errors
    /// The sizes belong to another program.
    pub fn check_made_here(self: &Arc<Self>, sizes: &Sizes) -> Result<(), RunError> {
        if !self.made(sizes) {
            return Err(RunError::argument("the sizes were made by another program; make them with this one's `bind`"));
        }
        Ok(())
    }

    /// Checks the arguments of one point.
    ///
    /// # Errors
    /// Too many or too few arguments, another class, another length, a size of another value.
    pub fn check_point(&self, sizes: &Sizes, inputs: &[Slice<'_>], outputs: &[SliceMut<'_>]) -> Result<(), RunError> {
        self.check_counts(inputs.len(), outputs.len())?;
        let kernel = &self.kernel;
        for (i, (port, input)) in kernel.inputs.iter().zip(inputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            check_slice("argument", &port.name, *input, class, sizes.input_len(i))?;
            if let Slice::Int([value]) = input {
                check_bound(sizes, i, &port.name, *value)?;
            }
        }
        for (i, (port, output)) in kernel.outputs.iter().zip(outputs.iter()).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            check_slice("result", &port.name, output.as_slice(), class, sizes.output_len(i))?;
        }
        Ok(())
    }

    fn check_counts(&self, n_inputs: usize, n_outputs: usize) -> Result<(), RunError> {
        let kernel = &self.kernel;
        if n_inputs != kernel.inputs.len() || n_outputs != kernel.outputs.len() {
            return Err(RunError::argument(format!(
                "{} and {} given, but {} and {} expected",
                count(n_inputs, "input"),
                count(n_outputs, "output"),
                kernel.inputs.len(),
                kernel.outputs.len()
            )));
        }
        Ok(())
    }

    /// Checks the arguments of `n_points` points.
    ///
    /// # Errors
    /// Those of [`check_point`](Self::check_point); two output elements with the same address; an integer scalar that
    /// is a size and differs from point to point.
    pub fn check_batch(
        &self,
        sizes: &Sizes,
        n_points: usize,
        inputs: &[Strided<'_>],
        outputs: &[StridedMut<'_>],
    ) -> Result<(), RunError> {
        self.check_counts(inputs.len(), outputs.len())?;
        let kernel = &self.kernel;
        for (i, (port, input)) in kernel.inputs.iter().zip(inputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            let shape = Shape { len: sizes.input_len(i), n_points, point: input.point, element: input.element };
            check_strides("argument", &port.name, input.data, class, shape)?;
            let is_size = kernel.sizes.iter().any(|s| s.source == SizeSource::Value { input: i });
            if let (true, Slice::Int(data)) = (is_size, input.data) {
                (0..n_points).try_for_each(|p| check_bound(sizes, i, &port.name, data[p * input.point]))?;
            }
        }
        for (i, (port, output)) in kernel.outputs.iter().zip(outputs).enumerate() {
            let class = kernel.buffers[port.buffer].class;
            let len = sizes.output_len(i);
            let shape = Shape { len, n_points, point: output.point, element: output.element };
            check_strides("result", &port.name, output.data.as_slice(), class, shape)?;
            // The check of the strides computes larger products without overflow.
            let one_dimension = len == 0 || n_points == 0 || (len == 1 && (n_points == 1 || output.point > 0));
            let apart = one_dimension
                || (n_points == 1 && output.element > 0)
                || (output.element > 0 && output.point > (len - 1) * output.element)
                || (output.point > 0 && output.element > (n_points - 1) * output.point);
            if !apart {
                return Err(RunError::argument(format!(
                    "the strides of result `{}` put two of its elements at one place",
                    port.name
                )));
            }
        }
        Ok(())
    }

    /// Checks that all external functions can be called inside the process.
    ///
    /// # Errors
    /// The first external function without an address.
    pub fn check_externals(&self) -> Result<(), Diagnostic> {
        match self.kernel.externals.iter().find(|external| external.call.is_none()) {
            None => Ok(()),
            Some(external) => Err(Diagnostic::error(format!("the function `{}` cannot be called here", external.name))
                .with_reason("it has a C name, but nothing that computes it inside the process")
                .with_help("give it a Rust function as well, or emit C and link it there")),
        }
    }

    /// Returns the error for an address outside its buffer: an index out of range in a program without checks,
    /// otherwise a bug.
    #[must_use]
    pub fn outside(&self) -> RunError {
        match self.kernel.unchecked_failure() {
            Some((message, reason)) => RunError::Failure {
                message: message.to_owned(),
                reason: Some(reason.to_owned()),
                span: None,
                point: None,
            },
            None => RunError::Bug(format!("kernel `{}` reads or writes outside a buffer", self.kernel.name)),
        }
    }

    /// Returns the error for an integer that does not fit into 64 bits: the value of `of`, or the trip count of the
    /// loop that it counts.
    #[must_use]
    pub fn overflow(&self, of: Option<Reg>) -> RunError {
        let found = of.and_then(|r| self.kernel.regs.overflow(r)).cloned();
        let (message, span) = found.unwrap_or_else(|| (OVERFLOW.to_owned(), None));
        RunError::Failure { message, reason: None, span, point: None }
    }

    /// Returns the error for failure `idx` of the kernel, with the numbers that caused it.
    #[must_use]
    pub fn failure(&self, idx: usize, reason: &Reason<'_>) -> RunError {
        match self.kernel.failures.get(idx) {
            Some((message, span)) => RunError::Failure {
                message: message.clone(),
                reason: Some(match reason {
                    Reason::Index { index, .. } if message == NEGATIVE_SIZE => format!("the size is {index}"),
                    _ => reason.to_string(),
                }),
                span: *span,
                point: None,
            },
            None => RunError::Bug(format!("failure {idx} of kernel `{}` has no message", self.kernel.name)),
        }
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Real => "doubles",
        Class::Int => "integers",
    }
}

fn check_slice(what: &str, name: &str, slice: Slice<'_>, class: Class, len: usize) -> Result<(), RunError> {
    check_class(what, name, slice, class)?;
    if slice.len() != len {
        return Err(RunError::argument(format!(
            "{what} `{name}` has {}, but {len} expected",
            count(slice.len(), "element")
        )));
    }
    Ok(())
}

fn check_class(what: &str, name: &str, slice: Slice<'_>, class: Class) -> Result<(), RunError> {
    if slice.class() != class {
        return Err(RunError::argument(format!(
            "{what} `{name}` holds {}, but {} are expected",
            class_name(slice.class()),
            class_name(class)
        )));
    }
    Ok(())
}

/// Numbers of elements and points of a batch, and the strides between them.
#[derive(Clone, Copy)]
struct Shape {
    len: usize,
    n_points: usize,
    /// Stride of points.
    point: usize,
    /// Stride of elements.
    element: usize,
}

/// Checks that a slice has all elements at the strides of `shape`.
fn check_strides(what: &str, name: &str, slice: Slice<'_>, class: Class, shape: Shape) -> Result<(), RunError> {
    check_class(what, name, slice, class)?;
    let Shape { len, n_points, point, element } = shape;
    if len == 0 || n_points == 0 {
        return Ok(());
    }
    let last = (n_points - 1)
        .checked_mul(point)
        .and_then(|p| Some((p, (len - 1).checked_mul(element)?)))
        .and_then(|(p, e)| p.checked_add(e));
    if last.is_none_or(|last| last >= slice.len()) {
        return Err(RunError::argument(format!(
            "{what} `{name}` has {}, too few for {} of {} at strides {point} and {element}",
            count(slice.len(), "element"),
            count(n_points, "point"),
            count(len, "element")
        )));
    }
    Ok(())
}

fn check_bound(sizes: &Sizes, input: usize, name: &str, value: i64) -> Result<(), RunError> {
    if sizes.agrees(input, value) {
        return Ok(());
    }
    Err(RunError::argument(format!("argument `{name}` is {value}, but the sizes were made for another value of it")))
}
