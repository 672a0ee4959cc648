//! Repeated evaluation at single points, in preallocated memory.

use crate::compiled::Workspace;
use crate::engine::BoundEngine;
use crate::{Compiled, Error, Result};
use chainrule_runtime::Elements;

/// Function with memory for the arguments and results of one point: checks run only once, so that small functions cost
/// little more than their operations. [`Compiled::bound`] creates it.
#[derive(Debug)]
pub struct Bound<'f> {
    compiled: &'f Compiled,
    engine: BoundEngine<'f>,
}

impl Compiled {
    /// Returns the function with preallocated memory for arguments of these extents, one list per argument leaf, all of
    /// doubles, and for the results.
    ///
    /// ```
    /// use chainrule::{Function, vars};
    /// let x = vars("x", 2);
    /// let f = Function::new("f", &x, &x.dot(&x))?.compile()?;
    /// let mut f = f.bound(&[&[2]])?;
    /// let mut sum = 0.0;
    /// for i in 0..4 {
    ///     f.input_mut(0).copy_from_slice(&[f64::from(i), 1.0]);
    ///     f.eval()?;
    ///     sum += f.output(0)[0];
    /// }
    /// assert_eq!(sum, 18.0);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`workspace`](Self::workspace); further, an argument or a result that is not of doubles.
    pub fn bound(&self, extents: &[&[usize]]) -> Result<Bound<'_>> {
        let Workspace { sizes, memory, .. } = self.workspace(extents)?;
        let inputs = sizes.zero_inputs();
        let engine = self.engine().bound(sizes, inputs, memory).map_err(|e| self.failed(e))?;
        if engine.inputs().iter().chain(engine.outputs()).any(|leaf| matches!(leaf, Elements::Int(_))) {
            return Err(Error::request(
                "an argument or a result is not of doubles",
                "use `prepare`, which takes integers and truth values with the other arguments",
            ));
        }
        Ok(Bound { compiled: self, engine })
    }
}

impl Bound<'_> {
    /// Returns an argument leaf for writing, in row-major order; initially zeros.
    ///
    /// # Panics
    /// Panics if there is no such argument.
    #[inline]
    pub fn input_mut(&mut self, input: usize) -> &mut [f64] {
        self.engine.input_mut(input)
    }

    /// Returns an argument leaf.
    ///
    /// # Panics
    /// Panics if there is no such argument.
    #[must_use]
    pub fn input(&self, input: usize) -> &[f64] {
        self.engine.inputs()[input].reals()
    }

    /// Returns a result leaf of the last evaluation, in row-major order; unspecified if it failed.
    ///
    /// # Panics
    /// Panics if there is no such result.
    #[must_use]
    #[inline]
    pub fn output(&self, output: usize) -> &[f64] {
        self.engine.outputs()[output].reals()
    }

    /// Evaluates at the arguments. Native code allocates nothing.
    ///
    /// # Errors
    /// Fails if the program fails.
    #[inline]
    pub fn eval(&mut self) -> Result<()> {
        match self.engine.run() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.compiled.failed(error)),
        }
    }
}
