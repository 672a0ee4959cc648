//! NIST's data files.

use std::path::Path;

/// A data set with its certified results.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The response.
    pub y: Vec<f64>,
    /// The predictor.
    pub x: Vec<f64>,
    /// Both starting points.
    pub starts: [Vec<f64>; 2],
    /// The certified parameters, to 11 digits.
    pub certified: Vec<f64>,
    /// The certified residual sum of squares.
    pub sum_of_squares: f64,
}

/// Returns the data set in the file `path`.
///
/// # Errors
/// Fails if the file cannot be read, or lacks a part.
pub fn read(path: &Path) -> Result<Dataset, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let mut data = Dataset { y: vec![], x: vec![], starts: [vec![], vec![]], certified: vec![], sum_of_squares: 0.0 };
    let mut in_data = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `  b1 =   500         250           2.3894212918E+02  2.7070075241E+00`
        if let [parameter, "=", first, second, certified, _deviation] = words[..]
            && parameter.starts_with('b')
        {
            data.starts[0].push(first.parse()?);
            data.starts[1].push(second.parse()?);
            data.certified.push(certified.parse()?);
        } else if let Some(rest) = line.strip_prefix("Residual Sum of Squares:") {
            data.sum_of_squares = rest.trim().parse()?;
        } else if line.starts_with("Data:") && words.len() == 3 {
            in_data = true;
        } else if in_data && words.len() == 2 {
            data.y.push(words[0].parse()?);
            data.x.push(words[1].parse()?);
        }
    }
    if data.y.is_empty() || data.certified.is_empty() {
        return Err(format!("{} is not a data set of one predictor", path.display()).into());
    }
    Ok(data)
}
