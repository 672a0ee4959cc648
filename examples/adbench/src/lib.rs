//! Problems of ADBench (Šrajer, Kukelova and Fitzgibbon, 2018) in F~, on ADBench's files: bundle adjustment ([`ba`]), a
//! hand model ([`hand`]) and a recurrent network ([`lstm`]). The Gaussian mixture is a separate example.

pub mod ba;
pub mod hand;
pub mod lstm;

use std::path::Path;

/// Error of reading a file.
pub type ReadError = Box<dyn std::error::Error>;

/// Words of a file, read as numbers.
struct Words<'t> {
    name: String,
    words: std::str::SplitWhitespace<'t>,
}

impl<'t> Words<'t> {
    fn new(path: &Path, text: &'t str) -> Self {
        Self { name: path.display().to_string(), words: text.split_whitespace() }
    }

    fn word(&mut self) -> Result<&'t str, ReadError> {
        self.words.next().ok_or_else(|| format!("{} ends too early", self.name).into())
    }

    /// Returns the number of remaining words.
    fn left(&self) -> usize {
        self.words.clone().count()
    }

    fn size(&mut self) -> Result<usize, ReadError> {
        let word = self.word()?;
        word.parse().map_err(|e| format!("{}: `{word}` is no size: {e}", self.name).into())
    }

    fn integer(&mut self) -> Result<i64, ReadError> {
        let word = self.word()?;
        word.parse().map_err(|e| format!("{}: `{word}` is no integer: {e}", self.name).into())
    }

    fn integers(&mut self, n: usize) -> Result<Vec<i64>, ReadError> {
        (0..n).map(|_| self.integer()).collect()
    }

    fn numbers(&mut self, n: usize) -> Result<Vec<f64>, ReadError> {
        let number = |_| {
            let word = self.word()?;
            word.parse().map_err(|e| format!("{}: `{word}` is no number: {e}", self.name).into())
        };
        (0..n).map(number).collect()
    }

    fn rows(&mut self, n: usize, m: usize) -> Result<Vec<Vec<f64>>, ReadError> {
        (0..n).map(|_| self.numbers(m)).collect()
    }
}

fn text(path: &Path) -> Result<String, ReadError> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()).into())
}
