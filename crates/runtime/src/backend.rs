//! The interface of backends that run a kernel in this process, and the checks and batches that they share.
//!
//! In: a [`Layout`] and code made from its kernel. Out: calls of single points and batches, whose arguments and memory
//! have been checked.

use crate::{Batch, Layout, RunError, Share, Sizes, Slice, SliceMut, Strided, StridedMut, scalar};
use std::ops::Range;
use std::sync::Arc;

/// A kernel compiled by a backend. Threads share one, each with its own workspace.
///
/// Results do not depend on the backend, on the number of threads, or on whether points run in a batch: all are equal
/// bit for bit.
pub trait Backend: Sync + Sized {
    /// Memory of one running program. Make one for each thread, and reuse it.
    type Workspace: Send;

    /// Number of points that a share of a batch is a multiple of, so that only the last share has a remainder.
    const BLOCK: usize;

    /// Returns the layout of arguments and workspace.
    fn layout(&self) -> &Arc<Layout>;

    /// Returns a workspace for single points of these sizes, on up to this number of threads.
    fn workspace(&self, sizes: &Sizes, threads: usize) -> Self::Workspace;

    /// Returns a workspace for a thread of a batch.
    fn batch_workspace(&self, sizes: &Sizes) -> Self::Workspace;

    /// Returns whether a workspace may serve this program if it is large enough.
    fn is_own(&self, workspace: &Self::Workspace) -> bool;

    /// Returns whether an own workspace is large enough for these sizes.
    fn is_large_enough(&self, workspace: &Self::Workspace, sizes: &Sizes) -> bool;

    /// Runs one point.
    ///
    /// # Errors
    /// Arguments or a workspace that do not fit `sizes` (nothing is written then), or a check of the program that fails
    /// at run time (the outputs are unspecified then).
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    fn run(
        &self,
        sizes: &Sizes,
        inputs: &[Slice<'_>],
        outputs: &mut [SliceMut<'_>],
        workspace: &mut Self::Workspace,
    ) -> Result<(), RunError>;

    /// Runs a share of a batch of this program, after checks of sizes and workspace.
    ///
    /// # Errors
    /// As [`run`](Self::run), for the first point that fails.
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    fn run_share(&self, share: &mut Share<'_>, workspace: &mut Self::Workspace) -> Result<(), RunError> {
        let sizes = share.sizes;
        self.check(sizes, workspace)?;
        share.one_by_one(|inputs, outputs| self.run(sizes, inputs, outputs, workspace))
    }

    /// Returns the number of points that run at the same time in a batch: 1 if control differs between points, or if
    /// the workspace of several points is excessive.
    fn lanes_for(&self, _sizes: &Sizes) -> usize {
        1
    }

    /// Returns the machine code for one point, if there is any.
    fn machine_code(&self) -> Option<&[u8]> {
        None
    }

    /// Does the same as [`run`](Self::run) for arguments and results that are all doubles.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    fn run_reals(
        &self,
        sizes: &Sizes,
        inputs: &[&[f64]],
        outputs: &mut [&mut [f64]],
        workspace: &mut Self::Workspace,
    ) -> Result<(), RunError> {
        let inputs: Vec<Slice<'_>> = inputs.iter().map(|x| Slice::Real(x)).collect();
        let mut outputs: Vec<SliceMut<'_>> = outputs.iter_mut().map(|y| SliceMut::Real(y)).collect();
        self.run(sizes, &inputs, &mut outputs, workspace)
    }

    /// Returns the kernel's name.
    fn name(&self) -> &str {
        &self.layout().kernel().name
    }

    /// Returns the numbers of inputs and outputs.
    fn n_ports(&self) -> (usize, usize) {
        (self.layout().kernel().inputs.len(), self.layout().kernel().outputs.len())
    }

    /// Returns the sizes for arguments of these shapes (outermost extent first; empty for a scalar). `values` are the
    /// integer scalars on which sizes depend: the input's index and its value.
    ///
    /// # Errors
    /// Shapes that do not fit one another or the program, or sizes that violate a condition at entry. The message names
    /// the argument, the dimension, the expected and the given extent.
    fn bind(&self, shapes: &[&[usize]], values: &[(usize, i64)]) -> Result<Sizes, RunError> {
        self.layout().bind(shapes, |input| values.iter().find(|(i, _)| *i == input).map(|(_, v)| *v))
    }

    /// As [`bind`](Self::bind), with the values of integer scalars taken from the inputs.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    fn bind_inputs(&self, shapes: &[&[usize]], inputs: &[Slice<'_>]) -> Result<Sizes, RunError> {
        self.layout().bind(shapes, |input| scalar(inputs, input))
    }

    /// Checks that sizes and workspace are this program's.
    ///
    /// # Errors
    /// Sizes or a workspace of another program; a workspace that is too small.
    fn check(&self, sizes: &Sizes, workspace: &Self::Workspace) -> Result<(), RunError> {
        self.layout().check_made_here(sizes)?;
        if !self.is_own(workspace) {
            return Err(RunError::argument(
                "the workspace was made for another program; make it with `Workspace::new` of this one",
            ));
        }
        if !self.is_large_enough(workspace, sizes) {
            let (reals, ints) = sizes.workspace_len();
            return Err(RunError::argument(format!(
                "the workspace is too small for these sizes ({reals} doubles and {ints} integers); make it with `Workspace::new`"
            )));
        }
        Ok(())
    }

    /// Runs points `0..n_points` on as many threads as there are workspaces, in lanes if [`lanes_for`](Self::lanes_for)
    /// and the workspaces permit it.
    ///
    /// # Errors
    /// As [`run`](Self::run), for the first point that fails; also overlapping outputs, an integer scalar that is a
    /// size and differs between points, and an empty list of workspaces.
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    fn run_batch(
        &self,
        sizes: &Sizes,
        n_points: usize,
        inputs: &[Strided<'_>],
        outputs: &mut [StridedMut<'_>],
        workspaces: &mut [Self::Workspace],
    ) -> Result<(), RunError> {
        let mut batch = Batch::new(self.layout(), sizes, n_points, inputs, outputs)?;
        self.run_points(&mut batch, 0..n_points, workspaces)
    }

    /// As [`run_batch`](Self::run_batch), for some points of a batch.
    ///
    /// # Errors
    /// As [`run_batch`](Self::run_batch); a batch of another program.
    ///
    /// # Panics
    /// Panics if a user function does: its panic is resumed.
    fn run_points(
        &self,
        batch: &mut Batch<'_>,
        points: Range<usize>,
        workspaces: &mut [Self::Workspace],
    ) -> Result<(), RunError> {
        // All are checked before anything is written; `run_share` checks one itself.
        if workspaces.len() > 1 {
            workspaces.iter().try_for_each(|workspace| self.check(batch.sizes(), workspace))?;
        }
        batch.share_out(points, Self::BLOCK, workspaces, |share, workspace| self.run_share(share, workspace))
    }
}
