//! The Cranelift backend: machine code in memory for processors without a native backend, aarch64 first.
//!
//! In: a [`Kernel`](chainrule_kernel::Kernel). Out: a [`Program`], which checks and runs it one point at a time.
//! Results are those of the interpreter bit for bit, and failures have the same messages: elementary functions are our
//! own, other operators are called by their rows, and products are only fused if the kernel says so.
//!
//! | module | owns |
//! | --- | --- |
//! | `program` | a compiled kernel; its memory |
//! | `lower` | lowering of a kernel's events to Cranelift instructions |
//! | `arithmetic` | operators on doubles and integers |
//! | `frame` | the frame between the code and its caller |
//! | `code` | compilation; executable memory |
//! | `support` | runtime calls |
//!
//! Every address is either a constant inside a buffer of constant length, or checked at run time, so no kernel that the
//! verifier accepts can touch other memory. `opt_level=none`: Chainrule's optimiser has already found everything that
//! Cranelift's would find, and the latter takes more time than it saves.

#![allow(unsafe_code)]

mod arithmetic;
mod code;
mod frame;
mod lower;
mod program;
mod support;

pub use program::{Options, Program, Workspace};
