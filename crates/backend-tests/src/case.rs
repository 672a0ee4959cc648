//! A kernel with arguments, and the interpreter's results.

use crate::data::{Array, Data};
use chainrule_base::Poly;
use chainrule_interpret::{Program, Workspace};
use chainrule_kernel::{Class, Event, Kernel, Order, Place, Port, Reg, SizeSource, events};
use chainrule_runtime::{Backend, RunError, Slice, SliceMut};

/// A kernel and arguments that fit it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel.
    pub kernel: Kernel,
    /// One for each input of the kernel.
    pub inputs: Vec<Array>,
}

/// Results, or the message of a failure.
pub type Outcome = Result<Vec<Data>, String>;

/// Returns the interpreter's results, or the message of its failure.
///
/// # Errors
/// Arguments that do not fit.
///
/// # Panics
/// Panics if the kernel does not compile.
pub fn interpret(case: &Case) -> Result<Outcome, RunError> {
    match results(case) {
        Ok(results) => Ok(Ok(results)),
        Err(RunError::Failure { message, .. }) => Ok(Err(message)),
        Err(other) => Err(other),
    }
}

/// Returns the interpreter's results, computed in poisoned memory.
///
/// # Errors
/// Arguments that do not fit, or a failure.
///
/// # Panics
/// Panics if the kernel does not compile.
pub fn results(case: &Case) -> Result<Vec<Data>, RunError> {
    let program = Program::new(&case.kernel).unwrap();
    let slices = case.slices();
    let sizes = program.bind_inputs(&case.shapes(), &slices)?;
    let mut results: Vec<Data> = (0..case.kernel.outputs.len())
        .map(|i| Data::new(case.class(&case.kernel.outputs[i]), sizes.output_len(i)))
        .collect();
    let mut into: Vec<SliceMut<'_>> = results.iter_mut().map(Data::slice_mut).collect();
    program.run(&sizes, &slices, &mut into, &mut Workspace::new(&program, &sizes).poisoned())?;
    Ok(results)
}

impl Case {
    /// Returns the shapes of the arguments.
    #[must_use]
    pub fn shapes(&self) -> Vec<&[usize]> {
        self.inputs.iter().map(|a| a.shape.as_slice()).collect()
    }

    /// Returns the arguments for reading.
    #[must_use]
    pub fn slices(&self) -> Vec<Slice<'_>> {
        self.inputs.iter().map(|a| a.data.slice()).collect()
    }

    /// Returns another point: the same integers and sizes, other doubles.
    #[must_use]
    pub fn moved(&self, point: usize) -> Self {
        let inputs = self.inputs.iter().map(|array| array.moved(point)).collect();
        Self { kernel: self.kernel.clone(), inputs }
    }

    /// Returns the class of an argument or a result.
    #[must_use]
    pub fn class(&self, port: &Port) -> Class {
        self.kernel.buffers[port.buffer].class
    }

    /// Returns the values of the kernel's sizes.
    ///
    /// # Panics
    /// Panics if a size is the value of a double.
    #[must_use]
    pub fn sizes(&self) -> Vec<i64> {
        let mut values: Vec<i64> = Vec::new();
        for size in &self.kernel.sizes {
            let value = match &size.source {
                SizeSource::Extent { input, dim } => self.inputs[*input].shape[*dim] as i64,
                SizeSource::Value { input } => match &self.inputs[*input].data {
                    Data::Int(data) => data[0],
                    Data::Real(_) => panic!("a size is a double"),
                },
                SizeSource::Natural { of } => {
                    let before = |r| self.kernel.sizes.iter().position(|s| s.reg == r).map_or(0, |k| values[k]);
                    of.eval(before).unwrap().max(0)
                }
            };
            values.push(value);
        }
        values
    }

    /// Returns the value of a length over sizes; 0 if it would be negative.
    ///
    /// # Panics
    /// Panics if it does not fit.
    #[must_use]
    pub fn len(&self, poly: &Poly<Reg>) -> usize {
        let sizes = self.sizes();
        let size = |r| self.kernel.sizes.iter().position(|s| s.reg == r).map_or(0, |k| sizes[k]);
        usize::try_from(poly.eval(size).unwrap().max(0)).unwrap()
    }

    /// Returns the number of elements of a result.
    #[must_use]
    pub fn output_len(&self, output: usize) -> usize {
        self.len(&self.kernel.buffers[self.kernel.outputs[output].buffer].len)
    }

    /// Returns the distinct sizes, as parameters of a function: `(is it an extent, value)`.
    #[must_use]
    pub fn distinct_sizes(&self) -> Vec<(bool, i64)> {
        let mut seen: Vec<SizeSource> = Vec::new();
        let mut found = Vec::new();
        for (size, value) in self.kernel.sizes.iter().zip(self.sizes()) {
            if !matches!(size.source, SizeSource::Natural { .. }) && !seen.contains(&size.source) {
                seen.push(size.source.clone());
                found.push((matches!(size.source, SizeSource::Extent { .. }), value));
            }
        }
        found
    }

    /// Returns whether a buffer of the kernel is in its workspace.
    #[must_use]
    pub fn uses_workspace(&self) -> bool {
        self.kernel.buffers.as_slice().iter().any(|b| matches!(b.place, Place::Workspace(_)))
    }

    /// Returns whether the kernel has lane loops.
    #[must_use]
    pub fn has_lanes(&self) -> bool {
        let lanes = |event: &Event<'_>| matches!(event, Event::For { order: Order::Lanes, .. });
        events(&self.kernel.body).iter().any(lanes)
    }

    /// Parses a backend's output for one case: `ok` and a line of hexadecimal words for each result, or `error` and a
    /// message.
    ///
    /// # Panics
    /// Panics if the output has another form.
    pub fn parse<'t>(&self, lines: &mut impl Iterator<Item = &'t str>) -> Outcome {
        let head = lines.next().expect("a line a case");
        if let Some(message) = head.strip_prefix("error ") {
            return Err(message.to_owned());
        }
        assert_eq!(head, "ok");
        let mut words = || -> Vec<u64> {
            let line = lines.next().expect("a line a result");
            line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
        };
        Ok(self.kernel.outputs.iter().map(|port| Data::from_bits(self.class(port), &words())).collect())
    }
}

/// Compares a backend's results with the interpreter, case by case.
///
/// # Panics
/// Panics if they differ.
pub fn assert_same(cases: &[Case], found: &[Outcome]) {
    assert_eq!(cases.len(), found.len());
    for (case, found) in cases.iter().zip(found) {
        let expected = interpret(case).unwrap();
        assert_eq!(found, &expected, "{}\n{:?}", case.kernel, case.inputs);
    }
}

/// Returns the kernels under the names `k0`, `k1`, ...
#[must_use]
pub fn named(cases: &[Case]) -> Vec<Kernel> {
    let name = |(i, case): (usize, &Case)| Kernel { name: format!("k{i}").into(), ..case.kernel.clone() };
    cases.iter().enumerate().map(name).collect()
}
