//! Many points at once: any layout, threads, progress, an end before the end.

use crate::{Compiled, Error, Result, Workspace};
use chainrule_runtime::{Strided, StridedMut};
use std::fmt;
use std::ops::ControlFlow;

/// What is called from time to time with the number of points that are done.
pub type Observer<'a> = &'a dyn Fn(usize) -> ControlFlow<()>;

/// How a batch runs.
#[derive(Clone, Copy)]
pub struct BatchOptions<'a> {
    /// On how many threads; 0 for as many as the machine runs at once. Results are the same bit for bit.
    /// Cranelift's code and the interpreter always use one.
    pub threads: usize,
    /// Called with the number of points that are done, every [`Self::every`] points; where it answers `Break`,
    /// the batch ends there.
    pub observe: Option<Observer<'a>>,
    /// How many points there are between two calls of [`Self::observe`].
    pub every: usize,
}

impl Default for BatchOptions<'_> {
    fn default() -> Self {
        Self { threads: 1, observe: None, every: 1 << 16 }
    }
}

/// So many threads; for 0 as many as the machine runs at once.
pub(crate) fn n_threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

impl fmt::Debug for BatchOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchOptions")
            .field("threads", &self.threads)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    /// The results at many points at once, in any layout: element `k` of point `p` is at
    /// `p * point + k * element` of its array. Code without branches that depend on the data runs several
    /// points in the lanes of vectors, on as many threads as the options say.
    ///
    /// # Errors
    /// When an array is too short for its strides, two results lie at one place, the program fails (then with
    /// the first point that did), or the observer ends the batch ([`Error::Interrupted`], with the number of points
    /// that are done).
    ///
    /// ```
    /// use chainrule::{BatchOptions, Function, Slice, SliceMut, Strided, StridedMut, vars};
    /// let x = vars("x", 2);
    /// let f = Function::new("f", &x, &x.dot(&x))?.compile()?;
    /// // A structure of arrays: first the first element of all points, then the second.
    /// let x = Strided { data: Slice::Real(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]), point: 1, element: 3 };
    /// let mut y = [0.0; 3];
    /// let result = StridedMut { data: SliceMut::Real(&mut y), point: 1, element: 3 };
    /// let mut workspace = f.workspace(&[&[2]])?;
    /// let options = BatchOptions { threads: 2, ..BatchOptions::default() };
    /// f.eval_batch_with(3, &[x], &mut [result], &mut workspace, &options)?;
    /// assert_eq!(y, [5.0, 25.0, 61.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn eval_batch_with(
        &self,
        points: usize,
        inputs: &[Strided<'_>],
        outputs: &mut [StridedMut<'_>],
        workspace: &mut Workspace,
        options: &BatchOptions<'_>,
    ) -> Result<()> {
        let threads = n_threads(options.threads);
        let Workspace { sizes, batch, .. } = workspace;
        if batch.as_ref().is_none_or(|memory| memory.threads() != threads) {
            *batch = Some(self.engine().batch_memory(sizes, threads));
        }
        let Some(memory) = batch else { return Ok(()) };
        let Some(observe) = options.observe else {
            return self.engine().run_batch(sizes, points, inputs, outputs, memory).map_err(|e| self.failed(e));
        };
        let mut done = 0;
        while done < points {
            let n = options.every.max(1).min(points - done);
            let ins: Vec<Strided<'_>> = inputs.iter().map(|x| x.from_point(done)).collect();
            let mut outs: Vec<StridedMut<'_>> = outputs.iter_mut().map(|y| y.from_point(done)).collect();
            let run = self.engine().run_batch(sizes, n, &ins, &mut outs, memory);
            run.map_err(|e| self.failed(e.after(done)))?;
            done += n;
            if observe(done).is_break() && done < points {
                return Err(Error::Interrupted { done, points });
            }
        }
        Ok(())
    }

    /// How many points run at once in a batch with this workspace's extents: the lanes of a vector, or 1 where
    /// what is done differs from point to point.
    #[must_use]
    pub fn lanes(&self, workspace: &Workspace) -> usize {
        self.engine().lanes(&workspace.sizes)
    }
}
