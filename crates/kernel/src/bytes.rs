//! Serialisation of kernels, for saved functions.
//!
//! Writing takes a [`Kernel`] and returns bytes in a [`frame`]. Any machine reads them back as the same kernel: the
//! same registers, the same instructions in the same order, every double bit for bit. Reading takes any bytes. It
//! either returns a kernel that [`verify`](crate::verify()) accepts, or an error with the reason.
//!
//! | module | owns |
//! | --- | --- |
//! | [`frame`] | the frame around the content: version, length, checksum |
//! | [`wire`] | numbers and texts |
//! | `encode` | from a kernel to bytes |
//! | `decode` | from bytes to a kernel |
//!
//! # The format
//!
//! Operators are written by name, in a table before the body in the order of their first use, so that old files stay
//! readable when operators are added. A register is written as its distance from the register defined last; a
//! definition of the next register takes one bit. Most operations take three to five bytes.
//!
//! | kernel | is written as |
//! | --- | --- |
//! | its name | text |
//! | registers | their number; a bit each, set if the class is `Int` |
//! | sizes | name, register, 0 and input and dimension, or 1 and input |
//! | inputs, then outputs | name, extents, buffer |
//! | buffers | class and kind of place in a byte, length, place |
//! | requirements | size, whether exactly zero, message, span |
//! | workspaces | two sizes |
//! | external functions | name, arity, flags, the name in C |
//! | failures | message, span |
//! | operators | their names |
//! | the body | messages about integers that do not fit; elements that begin as zeros; coded statements; 0 at the end |
//!
//! # Rejected input
//!
//! Reading rejects everything that [`to_bytes`] does not write. Each kernel has one form, so that reading and writing
//! again returns the same bytes. Lists are no longer than the remaining bytes, blocks nest at most [`MAX_NESTING`]
//! deep, and time and memory are bounded by the length of the bytes.

mod decode;
mod encode;
pub mod frame;
pub mod wire;

use crate::kernel::{External, ExternalFn, Kernel, Signs};
use chainrule_base::{Diagnostic, Span};
pub use frame::{Content, is_sealed, open, seal};
pub use wire::{Damage, Reader, Writer, damage};

/// Maximum nesting of blocks. Dropping and copying a kernel recurse on it.
pub const MAX_NESTING: usize = 2_000;

/// Lookup of an external function by name and number of arguments.
pub type Functions<'a> = dyn Fn(&str, usize) -> Option<ExternalFn> + 'a;

/// Conversion of a message and its span into their saved form.
pub type Say<'a> = dyn FnMut(&str, Option<Span>) -> (String, Option<Span>) + 'a;

/// Writes `kernel` as the bytes of a file. The same kernel gives the same bytes. Linear in its size.
///
/// External functions are written by name and number of arguments; the reader looks up their code. Spans are written
/// unchanged; they need the program's text to be shown.
///
/// # Errors
/// Two external functions with one name and different code; blocks that nest deeper than [`MAX_NESTING`] (a
/// limitation).
pub fn to_bytes(kernel: &Kernel) -> Result<Vec<u8>, Diagnostic> {
    let mut writer = Writer::new();
    write(kernel, &mut writer, &mut |message, span| (message.to_owned(), span))?;
    Ok(seal(Content::Kernel, &writer.into_bytes()))
}

/// Reads and verifies a kernel that [`to_bytes`] wrote. Linear in the length of `bytes`.
///
/// # Errors
/// A file that is not Chainrule's, of a newer version, truncated or damaged; an unknown external function or operator.
pub fn from_bytes(bytes: &[u8], functions: &Functions<'_>) -> Result<Kernel, Diagnostic> {
    let mut reader = Reader::new(open(Content::Kernel, bytes)?);
    let kernel = read(&mut reader, functions)?;
    reader.end().map_err(|damage| *damage)?;
    Ok(kernel)
}

/// Writes `kernel` as part of a larger file. `say` converts messages and spans of failures and requirements into their
/// saved form.
///
/// # Errors
/// Those of [`to_bytes`].
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

/// Reads and verifies a kernel that [`write()`] wrote.
///
/// # Errors
/// Those of [`from_bytes`].
pub fn read(reader: &mut Reader<'_>, functions: &Functions<'_>) -> Result<Kernel, Diagnostic> {
    let kernel = decode::kernel(reader, functions).map_err(|damage| *damage)?;
    crate::verify(&kernel).map_err(|faults| {
        let fault = faults.into_iter().next().and_then(|fault| fault.reason).unwrap_or_default();
        *damage(format!("its parts do not fit each other: {fault}"))
    })?;
    Ok(kernel)
}

/// Returns the integer value of `x`, if `x` is an integer small enough that doubles represent its neighbours.
fn whole(x: f64) -> Option<i64> {
    const LIMIT: f64 = (1u64 << 53) as f64;
    let i = x as i64;
    (x.abs() < LIMIT && (i as f64).to_bits() == x.to_bits()).then_some(i)
}

/// Signs in the order of their codes.
const SIGNS: [Signs; 3] = [Signs::Plus, Signs::MinusSummand, Signs::MinusProduct];

/// Codes of statements and instructions.
mod code {
    /// End of a block.
    pub const END: u8 = 0;
    /// Straight-line code: number of instructions, then each.
    pub const STRAIGHT: u8 = 1;
    /// `init` and `var` of the carried values, count, index; body; `next` of the carried values.
    pub const FOR: u8 = 2;
    /// `init` and `var` of the carried values, limit; condition; `holds`, failure; body; `next`.
    pub const WHILE: u8 = 3;
    /// Condition; both branches; choices.
    pub const IF: u8 = 4;
    /// Two buffers with offsets, length.
    pub const COPY: u8 = 5;
    /// Like [`FOR`], with iterations that may run in lanes.
    pub const LANES: u8 = 6;
    /// Like [`FOR`], with iterations that may run on threads.
    pub const PARTS: u8 = 7;
    /// Before all statements: buffer, first zero element, mask of zero elements from there on.
    pub const ZEROS: u8 = 8;
    /// Messages about integers that do not fit: before all statements, from version 6 on.
    pub const OVERFLOWS: u8 = 9;
    /// Like [`COPY`], with a source that is dead afterwards; from version 7 on.
    pub const MOVE: u8 = 10;

    // Codes of instructions come in pairs: the odd one defines the register after the last one.
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
    /// One code for each of [`SIGNS`](super::SIGNS), in order.
    pub const MUL_ADD: u64 = 9;
    pub const MUL_ADD_END: u64 = MUL_ADD + super::SIGNS.len() as u64;
    /// From version 8 on.
    pub const TO_INT: u64 = 15;
    /// Code of the first operator of the table; the others follow.
    pub const OP: u64 = 16;
}
