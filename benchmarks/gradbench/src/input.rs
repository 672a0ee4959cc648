//! Fields of the input of an evaluation, with messages for invalid ones.

use crate::task::Failure;
use serde_json::Value as Json;

/// The input of an evaluation.
pub struct Input<'j> {
    json: &'j Json,
}

fn reals(json: &Json, name: &str) -> Result<Vec<f64>, Failure> {
    let items = json.as_array().ok_or_else(|| format!("`{name}` is not an array of numbers"))?;
    let real =
        |item: &Json| item.as_f64().ok_or_else(|| format!("`{name}` has an element that is not a number").into());
    items.iter().map(real).collect()
}

impl<'j> Input<'j> {
    pub fn new(json: &'j Json) -> Self {
        Self { json }
    }

    fn field(&self, name: &str) -> Result<&'j Json, Failure> {
        let json = self.json.get(name);
        json.ok_or_else(|| format!("the input has no `{name}`").into())
    }

    /// Returns the input itself as a number.
    pub fn itself(&self) -> Result<f64, Failure> {
        self.json.as_f64().ok_or_else(|| "the input is not a number".to_owned().into())
    }

    pub fn real(&self, name: &str) -> Result<f64, Failure> {
        self.field(name)?.as_f64().ok_or_else(|| format!("`{name}` is not a number").into())
    }

    pub fn vector(&self, name: &str) -> Result<Vec<f64>, Failure> {
        reals(self.field(name)?, name)
    }

    /// Returns rows of equal length.
    pub fn matrix(&self, name: &str) -> Result<Vec<Vec<f64>>, Failure> {
        let rows = self.field(name)?.as_array().ok_or_else(|| format!("`{name}` is not an array of rows"))?;
        rows.iter().map(|row| reals(row, name)).collect()
    }

    pub fn integer(&self, name: &str) -> Result<i64, Failure> {
        self.field(name)?.as_i64().ok_or_else(|| format!("`{name}` is not a whole number").into())
    }

    /// Returns a whole number from `least` to `greatest`.
    pub fn size(&self, name: &str, least: i64, greatest: i64) -> Result<i64, Failure> {
        let size = self.integer(name)?;
        if (least..=greatest).contains(&size) {
            Ok(size)
        } else if size < least {
            Err(format!("`{name}` is {size}, and should be {least} at least").into())
        } else {
            Err(format!("`{name}` is {size}, and can be {greatest} at most").into())
        }
    }

    /// Returns the minimum number of runs; default 1.
    pub fn at_least(&self, name: &str) -> Result<i64, Failure> {
        if self.json.get(name).is_none() { Ok(1) } else { self.size(name, 0, i64::MAX) }
    }

    /// Returns the minimum duration; default 0.
    pub fn seconds(&self, name: &str) -> Result<f64, Failure> {
        if self.json.get(name).is_none() { Ok(0.0) } else { self.real(name) }
    }
}
