//! Kinds of derivatives, and their values where a function is not smooth.

mod coloured;
mod degrees;
mod kinks;
mod matrices;
mod matrix;
mod requests;
mod sparse;
mod zeros;
