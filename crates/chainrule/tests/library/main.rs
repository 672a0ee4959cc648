//! The library from a user's perspective.

mod array;
mod derivations;
mod graph_passes;
mod robust;
mod source_lines;
