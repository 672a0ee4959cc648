//! Kernels as bytes, and back: what a compiled function is saved as.
//!
//! In: a [`Kernel`]. Out: bytes in a [`frame`], which another machine reads back as the same kernel:
//! the same registers, the same instructions in the same order, every double bit for bit. In again:
//! any bytes at all. They are refused with an error that says why, or they are a kernel that
//! [`verify`](crate::verify()) accepts.
//!
//! | module | owns |
//! | --- | --- |
//! | [`frame`] | what stands around the content: version, length, checksum |
//! | [`wire`] | numbers and texts |
//! | `encode` | from a kernel to bytes |
//! | `decode` | from bytes to a kernel |
//!
//! # The format
//!
//! Operators are written by their names, in a table before the body, in the order in which the body
//! first uses them; so operators can be added to Chainrule and old files stay readable. A register is
//! written as its distance from the register that was defined last, a definition that follows the last
//! one as one bit: most operations take three to five bytes.
//!
//! | kernel | is written as |
//! | --- | --- |
//! | its name | text |
//! | registers | how many; a bit each, set where the class is `Int` |
//! | sizes | name, register, 0 and input and dimension, or 1 and input |
//! | inputs, then outputs | name, extents, buffer |
//! | buffers | class and kind of place in a byte, length, place |
//! | requirements | size, whether exactly zero, message, span |
//! | workspaces | two sizes |
//! | users' functions | name, arity, flags, the name in C |
//! | failures | message, span |
//! | operators | their names |
//! | the body | what is zero when it begins, statements, each with its code; 0 ends a block |
//!
//! # What is refused
//!
//! Everything that [`to_bytes`] does not write: there is one form for each kernel, so what is read and
//! written again is the same bytes. Lists are no longer than the bytes that are left, blocks nest
//! [`MAX_NESTING`] deep at most, and time and memory are bounded by the length of the bytes.

mod decode;
mod encode;
pub mod frame;
pub mod wire;

use crate::kernel::{External, ExternalFn, Kernel, Signs};
use chainrule_base::{Diagnostic, Span};
pub use frame::{Content, is_sealed, open, seal};
pub use wire::{Damage, Reader, Writer, damage};

/// How deep blocks may nest. What drops or copies a kernel recurses on it.
pub const MAX_NESTING: usize = 2_000;

/// What computes the user's function of this name and number of arguments.
pub type Functions<'a> = dyn Fn(&str, usize) -> Option<ExternalFn> + 'a;

/// The form in which a message and its place are saved.
pub type Say<'a> = dyn FnMut(&str, Option<Span>) -> (String, Option<Span>) + 'a;

/// `kernel` as the bytes of a file. The same kernel gives the same bytes. Linear in its size.
///
/// Users' functions are written by name and number of arguments; what computes them is asked for when
/// the bytes are read. Places in the program are written as they are, and say nothing without its text.
///
/// # Errors
/// Two users' functions of one name that are computed by different means; blocks that nest more than [`MAX_NESTING`] deep (a limitation).
pub fn to_bytes(kernel: &Kernel) -> Result<Vec<u8>, Diagnostic> {
    let mut writer = Writer::new();
    write(kernel, &mut writer, &mut |message, span| (message.to_owned(), span))?;
    Ok(seal(Content::Kernel, &writer.into_bytes()))
}

/// The kernel that [`to_bytes`] wrote, verified. Linear in the length of `bytes`.
///
/// # Errors
/// No Chainrule file; one of a newer version, truncated or damaged; a user's function or an operator
/// that is not there.
pub fn from_bytes(bytes: &[u8], functions: &Functions<'_>) -> Result<Kernel, Diagnostic> {
    let mut reader = Reader::new(open(Content::Kernel, bytes)?);
    let kernel = read(&mut reader, functions)?;
    reader.end().map_err(|damage| *damage)?;
    Ok(kernel)
}

/// Writes `kernel` as a part of something larger. `say` gives the message and the place of a failure or a
/// requirement the form that is saved.
///
/// # Errors
/// As [`to_bytes`].
pub fn write(kernel: &Kernel, writer: &mut Writer, say: &mut Say<'_>) -> Result<(), Diagnostic> {
    for (idx, external) in kernel.externals.iter().enumerate() {
        let is_same = |call: &Option<ExternalFn>| match (call, &external.call) {
            (Some(call), Some(own)) => std::sync::Arc::ptr_eq(call, own),
            (call, own) => call.is_none() && own.is_none(),
        };
        let mixed_up =
            |other: &External| other.name == external.name && !(other.arity == external.arity && is_same(&other.call));
        if kernel.externals[..idx].iter().any(mixed_up) {
            return Err(Diagnostic::error(format!("`{}` cannot be saved", kernel.name))
                .with_reason(format!("it calls two users' functions that are both called `{}`", external.name))
                .with_help("give each a name of its own: they are told apart by it when the file is loaded"));
        }
    }
    encode::kernel(kernel, writer, say)
}

/// Reads what [`write()`] wrote, and verifies it.
///
/// # Errors
/// As [`from_bytes`].
pub fn read(reader: &mut Reader<'_>, functions: &Functions<'_>) -> Result<Kernel, Diagnostic> {
    let kernel = decode::kernel(reader, functions).map_err(|damage| *damage)?;
    crate::verify(&kernel).map_err(|faults| {
        let fault = faults.into_iter().next().and_then(|fault| fault.reason).unwrap_or_default();
        *damage(format!("its parts do not fit each other: {fault}"))
    })?;
    Ok(kernel)
}

/// The integer that `x` is, where a double counts by ones.
fn whole(x: f64) -> Option<i64> {
    const LIMIT: f64 = (1u64 << 53) as f64;
    let i = x as i64;
    (x.abs() < LIMIT && (i as f64).to_bits() == x.to_bits()).then_some(i)
}

/// In the order of their codes.
const SIGNS: [Signs; 3] = [Signs::Plus, Signs::MinusSummand, Signs::MinusProduct];

/// The codes of statements and instructions.
mod code {
    /// The end of a block.
    pub const END: u8 = 0;
    /// Instructions one after the other: how many, and each.
    pub const STRAIGHT: u8 = 1;
    /// `init` and `var` of what is carried, the count, the index; the body; `next` of what is carried.
    pub const FOR: u8 = 2;
    /// `init` and `var` of what is carried, the limit; the condition; `holds`, the failure; the body; `next`.
    pub const WHILE: u8 = 3;
    /// The condition; both branches; the choices.
    pub const IF: u8 = 4;
    /// Two buffers with places, the length.
    pub const COPY: u8 = 5;
    /// As [`FOR`], of iterations that may run at once.
    pub const LANES: u8 = 6;
    /// As [`FOR`], of iterations that may run on threads.
    pub const PARTS: u8 = 7;
    /// Before all statements: a buffer, the first element that is zero, which of those from it on are.
    pub const ZEROS: u8 = 8;

    // Of instructions, in pairs: the odd one of a pair defines the register after the last one.
    /// A double.
    pub const CONST: u64 = 0;
    /// A double that is an integer.
    pub const WHOLE: u64 = 1;
    pub const INT: u64 = 2;
    pub const INT_OP: u64 = 3;
    pub const TO_REAL: u64 = 4;
    pub const EXTERNAL: u64 = 5;
    pub const LOAD: u64 = 6;
    pub const STORE: u64 = 7;
    pub const CHECK_INDEX: u64 = 8;
    /// With each of the signs, in the order of [`SIGNS`](super::SIGNS).
    pub const MUL_ADD: u64 = 9;
    pub const MUL_ADD_END: u64 = MUL_ADD + super::SIGNS.len() as u64;
    /// The first operator of the table; its followers have the codes after it.
    pub const OP: u64 = 16;
}
