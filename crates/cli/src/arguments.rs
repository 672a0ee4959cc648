//! `--arg` and `--args`: arguments of the function that runs.

use crate::data;
use chainrule::report::printable;
use chainrule::{Name, Type, Value};
use clap::Args;
use std::path::PathBuf;

/// The arguments of a function.
#[derive(Args)]
pub struct Arguments {
    /// Value of an argument, or `@` and a file that contains it
    #[arg(long = "arg", id = "arg", value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// JSON file with an object of all arguments
    #[arg(long = "args", id = "args_file", value_name = "FILE")]
    args_file: Option<PathBuf>,
}

impl Given {
    /// Returns the values in order.
    pub fn values(&self) -> Vec<Value<f64>> {
        self.values.iter().map(|(_, value)| value.clone()).collect()
    }
}

type Object = serde_json::Map<String, serde_json::Value>;

/// Arguments that were read already.
#[derive(Clone, Default)]
pub struct Given {
    /// Values by name.
    values: Vec<(Name, Value<f64>)>,
    /// The rest of the file of arguments, if it was read.
    object: Option<Object>,
}

impl Arguments {
    /// Returns the values of the parameters of a function to be differentiated. Directions may also be given, and are
    /// not read.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn early(&self, params: &[(Name, Type)]) -> Result<Given, String> {
        let mut object = self.object()?;
        let names = self.args.iter().filter_map(|text| text.split_once('=')).map(|(name, _)| name.trim().to_owned());
        let directions =
            names.chain(object.keys().cloned()).filter(|name| name.ends_with("_tan") || name.ends_with("_adj"));
        let directions: Vec<(Name, Type)> = directions
            .filter(|name| !params.iter().any(|(param, _)| **param == **name))
            .map(|name| (Name::from(name), Type::Double))
            .collect();
        let values = self.values(params, &directions, Vec::new(), &mut object)?;
        let values = params.iter().map(|(name, _)| name.clone()).zip(values).collect();
        Ok(Given { values, object: Some(object) })
    }

    fn object(&self) -> Result<Object, String> {
        self.args_file.as_ref().map_or_else(|| Ok(Object::new()), |path| data::read_object(path))
    }

    /// Returns whether any argument is given.
    pub fn are_given(&self) -> bool {
        !self.args.is_empty() || self.args_file.is_some()
    }

    /// Returns the values of these parameters.
    ///
    /// # Errors
    /// Fails if an argument is missing, matches no parameter, is given twice, or has another type.
    pub fn read(&self, params: &[(Name, Type)], given: Given) -> Result<Vec<Value<f64>>, String> {
        let Given { values, object } = given;
        let others: Vec<(Name, Type)> = values.iter().map(|(name, _)| (name.clone(), Type::Double)).collect();
        let mut object = object.map_or_else(|| self.object(), Ok)?;
        self.values(params, &others, values, &mut object)
    }

    /// Returns the values of `params`, those in `given` as they are; `others` may be given and are not read.
    fn values(
        &self,
        params: &[(Name, Type)],
        others: &[(Name, Type)],
        mut given: Vec<(Name, Value<f64>)>,
        object: &mut Object,
    ) -> Result<Vec<Value<f64>>, String> {
        let listed = || params.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let is_known = |name: &str| params.iter().chain(others).any(|(known, _)| **known == *name);
        if let Some(name) = object.keys().find(|key| !is_known(key)) {
            let name = printable(name);
            return Err(format!("error: there is no argument `{name}`\n  help: the arguments are {}", listed()));
        }
        let mut inline = Vec::new();
        for text in &self.args {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                format!("error: `--arg {text}` names no argument\n  help: write NAME=VALUE, such as x='[1, 2]'")
            })?;
            let name = name.trim();
            if !is_known(name) {
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
                if let Some(at) = given.iter().position(|(known, _)| known == name) {
                    return Ok(given.swap_remove(at).1);
                }
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
