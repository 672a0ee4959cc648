//! Batches of points: any layout, threads, progress, early termination.

use crate::{Compiled, Error, Result, Workspace};
use chainrule_runtime::{Batch, Slice, SliceMut, Strided, StridedMut};
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Callback that is called periodically with the number of finished points.
pub type Observer<'a> = &'a dyn Fn(usize) -> ControlFlow<()>;

/// Options of a batch.
#[derive(Clone, Copy)]
pub struct BatchOptions<'a> {
    /// Number of threads, at most 1024; 0 for the number that the machine runs at once. Results are the same bit for
    /// bit.
    pub threads: usize,
    /// Called with the number of finished points, every [`Self::every`] points; `Break` ends the batch.
    pub observe: Option<Observer<'a>>,
    /// Number of points between two calls of [`Self::observe`]; with an interval, up to the first call.
    pub every: usize,
    /// Target time between two calls of [`Self::observe`]: the number of points is adapted to the time of the previous
    /// ones.
    pub interval: Option<Duration>,
}

impl Default for BatchOptions<'_> {
    fn default() -> Self {
        Self { threads: 1, observe: None, every: 1 << 16, interval: None }
    }
}

/// Maximum number of threads. Each has its own memory.
const MAX_THREADS: usize = 1024;

/// Returns the number of threads for a request; for 0 the number that the machine runs at once.
pub(crate) fn n_threads(requested: usize) -> usize {
    match requested {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads.min(MAX_THREADS),
    }
}

/// Returns the number of points that take the time `interval`, if `n` took `elapsed`: at most eight times as many.
fn fitting(n: usize, elapsed: Duration, interval: Duration) -> usize {
    let (elapsed, interval) = (elapsed.as_nanos().max(1), interval.as_nanos());
    let fit = (n as u128).saturating_mul(interval) / elapsed;
    usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, n.saturating_mul(8).max(1))
}

impl fmt::Debug for BatchOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchOptions")
            .field("threads", &self.threads)
            .field("every", &self.every)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    /// Computes the results at many points at once: each argument and each result is an array of points, one after the
    /// other, each point's elements row-major. Straight-line code runs in blocks of points, each operation for all of
    /// them, several times as fast as point after point; results are the same bit for bit. [`Self::eval_batch_with`]
    /// supports any layout, and threads.
    ///
    /// # Errors
    /// Fails if a length is not that of `points` points of the workspace's extents, if the number of arguments or
    /// results is not the function's, or if the program fails.
    ///
    /// ```
    /// use chainrule::{Function, vars};
    /// let x = vars("x", 2);
    /// let f = Function::new("f", &x, &x.dot(&x))?.compile()?;
    /// let mut y = [0.0; 3];
    /// let mut workspace = f.workspace(&[&[2]])?;
    /// f.eval_batch(3, &[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], &mut [&mut y], &mut workspace)?;
    /// assert_eq!(y, [5.0, 25.0, 61.0]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn eval_batch(
        &self,
        points: usize,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Workspace,
    ) -> Result<()> {
        let sizes = &workspace.sizes;
        self.engine().layout().check_made_here(sizes).map_err(|e| self.failed(e))?;
        self.check_lengths(sizes, points, inputs, outputs)?;
        let inputs: Vec<Strided<'_>> = (inputs.iter().enumerate())
            .map(|(i, x)| Strided { data: Slice::Real(x), point: sizes.input_len(i), element: 1 })
            .collect();
        let mut outputs: Vec<StridedMut<'_>> = (outputs.iter_mut().enumerate())
            .map(|(i, y)| StridedMut { data: SliceMut::Real(y), point: sizes.output_len(i), element: 1 })
            .collect();
        self.eval_batch_with(points, &inputs, &mut outputs, workspace, &BatchOptions::default())
    }

    /// Computes the results at many points at once, in any layout: element `k` of point `p` is at `p * point + k *
    /// element` of its array. Code without branches that depend on the data runs several points in vector lanes, on the
    /// number of threads in the options.
    ///
    /// # Errors
    /// Fails if an array is too short for its strides, or two results share a position, for any points (nothing is
    /// written then); if the program fails (then with the first point that did); or if the observer ends the batch
    /// ([`Error::Interrupted`], with the number of finished points).
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
        let Workspace { sizes, batch: memory, .. } = workspace;
        let checked = Batch::new(self.engine().layout(), sizes, points, inputs, outputs);
        let mut batch = checked.map_err(|e| self.failed(e))?;
        if memory.as_ref().is_none_or(|memory| memory.threads() != threads) {
            *memory = Some(self.engine().batch_memory(sizes, threads));
        }
        let Some(memory) = memory else { return Ok(()) };
        let mut every = options.observe.map_or(points, |_| options.every).max(1);
        let mut done = 0;
        while done < points {
            let start = options.interval.map(|interval| (interval, Instant::now()));
            let end = done.saturating_add(every).min(points);
            self.engine().run_points(&mut batch, done..end, memory).map_err(|e| self.failed(e))?;
            if let Some((interval, start)) = start {
                every = fitting(end - done, start.elapsed(), interval);
            }
            done = end;
            if options.observe.is_some_and(|observe| observe(done).is_break()) && done < points {
                return Err(Error::Interrupted { done, points });
            }
        }
        Ok(())
    }

    /// Returns the number of points that run at once in a batch with this workspace's extents: the number of vector
    /// lanes, or 1 if the operations differ from point to point.
    #[must_use]
    pub fn lanes(&self, workspace: &Workspace) -> usize {
        self.engine().lanes(&workspace.sizes)
    }
}
