//! What the encoder is held against: `iced-x86`'s decoder, the processor, and lengths by hand.

mod decode;
mod forms;
mod oracle;
