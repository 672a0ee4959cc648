//! The Cranelift backend: machine code in memory for processors that the native backend does not know, aarch64 first.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel). Out: a [`Program`], which checks and runs it one point at a time. Results are those of the
//! interpreter bit for bit, and so are failures, word for word: elementary functions are our own, other operators are
//! called by their rows, products are fused where the kernel says so and nowhere else.
//!
//! | module | owns |
//! | --- | --- |
//! | `program` | a kernel that is ready to run; its memory |
//! | `lower` | from the events of a kernel to Cranelift's instructions |
//! | `arithmetic` | what operators are in them, for doubles and integers |
//! | `frame` | the words between the code and its caller |
//! | `code` | compiling; memory that is executable |
//! | `support` | what code calls back |
//!
//! Every element is either constant and inside a buffer of constant length, or checked while running, so no kernel
//! that the verifier accepts can touch other memory. `opt_level=none`: what Cranelift's optimiser finds, Chainrule's has found
//! before, and it takes more time than it saves.

#![allow(unsafe_code)]

mod arithmetic;
mod code;
mod frame;
mod lower;
mod program;
mod support;

pub use program::{Options, Program, Workspace};
