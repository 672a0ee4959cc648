//! References for the encoder: `iced-x86`'s decoder, the processor, and lengths by hand.

mod append;
mod constants;
mod decode;
mod faults;
mod forms;
mod jumps;
mod lengths;
mod meaning;
mod oracle;
mod run;
mod scalars;
mod speed;
