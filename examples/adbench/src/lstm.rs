//! A recurrent network: its loss and the gradient.

use crate::{ReadError, Words, text};
use chainrule::{Compiled, Error, Module, Value};
use std::path::Path;

/// The F~ program.
pub const SOURCE: &str = include_str!("../programs/lstm.ft");

/// Weights, state and text.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// A row of weights and a row of biases for each layer, 4 b numbers each.
    pub main: Vec<Vec<f64>>,
    /// Three rows of b numbers.
    pub extra: Vec<Vec<f64>>,
    /// Hidden state and cells of each layer, b numbers each.
    pub state: Vec<Vec<f64>>,
    /// One row of b numbers for each character.
    pub text: Vec<Vec<f64>>,
}

/// Returns the problem in the file `path`.
///
/// # Errors
/// Fails if the file cannot be read, or is not an ADBench file.
pub fn read(path: &Path) -> Result<Problem, ReadError> {
    let text = text(path)?;
    let mut words = Words::new(path, &text);
    let (l, c, b) = (words.size()?, words.size()?, words.size()?);
    Ok(Problem {
        main: words.rows(2 * l, 4 * b)?,
        extra: words.rows(3, b)?,
        state: words.rows(2 * l, b)?,
        text: words.rows(c, b)?,
    })
}

impl Problem {
    /// Returns the arguments of the function `lstm`.
    #[must_use]
    pub fn args(&self) -> Vec<Value<f64>> {
        [&self.main, &self.extra, &self.state, &self.text].map(|rows| rows.clone().into()).to_vec()
    }
}

/// Compiles the loss and its gradient by the weights, in one call.
///
/// # Errors
/// Never: the program is valid.
pub fn compile() -> Result<Compiled, Error> {
    let lstm = Module::from_text("lstm.ft", SOURCE)?.function("lstm")?;
    lstm.gradient().by(&["main", "extra"]).with_value().compile()
}
