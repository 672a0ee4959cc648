//! The interpreter: a backend that runs any kernel
