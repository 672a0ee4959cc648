//! Sites where machine code may fail, and the errors that they stand for.

use crate::{Layout, Reason, RunError};
use chainrule_kernel::Reg;
use chainrule_ops::Op;
use std::any::Any;

/// Payload of a user function's panic.
pub type Panic = Box<dyn Any + Send>;

/// Reason why machine code stops. Code returns 0, or one more than the index of its site, and stores the numbers that
/// made it fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Site {
    /// An index out of range; the numbers are the index and the length.
    Index {
        /// Index of the failure in the kernel.
        failure: usize,
    },
    /// Too many iterations of a loop; the number is the limit.
    Limit {
        /// Index of the failure in the kernel.
        failure: usize,
    },
    /// An integer operator without a result; the numbers are its arguments.
    NoResult {
        /// Index of the failure in the kernel.
        failure: usize,
        /// The operator.
        op: Op,
    },
    /// An integer that does not fit, computed in this register.
    Overflow(Option<Reg>),
    /// An element outside its buffer: a bug of the kernel, or an index out of range if checks are omitted.
    Outside,
    /// A panic of a user function.
    Panic,
}

impl Layout {
    /// Returns the error of code that stopped at a site and stored these numbers.
    ///
    /// # Panics
    /// Resumes the panic of a user function.
    #[must_use]
    pub fn failed_at(&self, site: Option<&Site>, numbers: [i64; 3], panic: &mut Option<Panic>) -> RunError {
        match site {
            Some(Site::Index { failure }) => {
                self.failure(*failure, &Reason::Index { index: numbers[0], len: numbers[1] })
            }
            Some(Site::Limit { failure }) => self.failure(*failure, &Reason::Limit(numbers[0])),
            Some(Site::NoResult { failure, op }) => {
                self.failure(*failure, &Reason::NoResult(*op, &numbers[..op.arity()]))
            }
            Some(Site::Overflow(of)) => self.overflow(*of),
            Some(Site::Panic) => match panic.take() {
                Some(panic) => std::panic::resume_unwind(panic),
                None => RunError::Bug(format!("kernel `{}` calls a function that is not there", self.kernel().name)),
            },
            Some(Site::Outside) => self.outside(),
            None => RunError::Bug(format!("kernel `{}` stopped where it cannot", self.kernel().name)),
        }
    }
}
