//! `--arg` and `--args`: at which arguments a function runs.

use crate::data;
use chainrule::report::printable;
use chainrule::{Name, Type, Value};
use clap::Args;
use std::path::PathBuf;

/// The arguments of a function.
#[derive(Args)]
pub struct Arguments {
    /// An argument's value, or `@` and the file that has it.
    #[arg(long = "arg", id = "arg", value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// A JSON file with an object of all arguments.
    #[arg(long = "args", id = "args_file", value_name = "FILE")]
    args_file: Option<PathBuf>,
}

impl Arguments {
    /// Whether any is given.
    pub fn are_given(&self) -> bool {
        !self.args.is_empty() || self.args_file.is_some()
    }

    /// The values of these parameters.
    ///
    /// # Errors
    /// An argument that is missing, of no parameter, given twice, or not of its type.
    pub fn read(&self, params: &[(Name, Type)]) -> Result<Vec<Value<f64>>, String> {
        let listed = || params.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let mut object = match &self.args_file {
            Some(path) => data::read_object(path)?,
            None => serde_json::Map::new(),
        };
        if let Some(name) = object.keys().find(|key| !params.iter().any(|(name, _)| **name == ***key)) {
            let name = printable(name);
            return Err(format!("error: there is no argument `{name}`\n  help: the arguments are {}", listed()));
        }
        let mut inline = Vec::new();
        for text in &self.args {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                format!("error: `--arg {text}` names no argument\n  help: write NAME=VALUE, such as x='[1, 2]'")
            })?;
            let name = name.trim();
            if !params.iter().any(|(param, _)| **param == *name) {
                let name = printable(name);
                return Err(format!("error: there is no argument `{name}`\n  help: the arguments are {}", listed()));
            }
            if inline.iter().any(|(other, _)| *other == name) {
                return Err(format!("error: the argument `{name}` is given twice\n  help: give it once"));
            }
            inline.push((name, value));
        }
        params
            .iter()
            .map(|(name, ty)| {
                if let Some((_, value)) = inline.iter().find(|(other, _)| **name == **other) {
                    return data::read_argument(name, ty, value);
                }
                match object.remove(name.as_str()) {
                    Some(json) => data::from_json(name, ty, &json),
                    None => Err(format!(
                        "error: the argument `{name}` is missing\n  help: give it with --arg {name}='{}'; it is {}",
                        data::example(ty),
                        data::describe(ty)
                    )),
                }
            })
            .collect()
    }
}
