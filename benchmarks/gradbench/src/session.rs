//! Messages and their answers.
//!
//! | message | answer |
//! | --- | --- |
//! | `start` | the tool's name |
//! | `define` | compiles all functions of the module; `compile`: time from their texts to running code |
//! | | functions compiled for the sizes of their arguments are compiled by `evaluate` |
//! | `evaluate` | the output; `evaluate`, the time of each run of the function; before them `compile` for new sizes |
//! | any other | its number |

use crate::input::Input;
use crate::modules::TASKS;
use crate::task::{Failure, Ready, Task};
use serde_json::{Map, Value as Json, json};
use std::time::{Duration, Instant};

/// State of a session: the defined modules.
#[derive(Default)]
pub struct Session {
    defined: Vec<Defined>,
}

/// A function of a defined module.
struct Defined {
    task: &'static Task,
    /// Code for all sizes, or for each of some.
    ready: Vec<(Option<i64>, Ready)>,
}

fn timing(name: &str, time: Duration) -> Json {
    json!({"name": name, "nanoseconds": u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)})
}

/// Returns names as a list in words.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn text<'m>(message: &'m Map<String, Json>, name: &str) -> Result<&'m str, Failure> {
    let field = message.get(name).ok_or_else(|| format!("the message has no `{name}`"))?;
    field.as_str().ok_or_else(|| format!("the message's `{name}` is not a text").into())
}

impl Session {
    /// Returns the answer to the message in `line`.
    ///
    /// # Errors
    /// A message for standard error, if the line is no message: no JSON object, or without `id` or `kind`.
    pub fn answer(&mut self, line: &[u8]) -> Result<Json, String> {
        let message: Json = serde_json::from_slice(line).map_err(|e| format!("this is not JSON: {e}"))?;
        let Json::Object(message) = message else { return Err("a message is a JSON object".to_owned()) };
        let id = message.get("id").ok_or("the message has no `id`")?.clone();
        let kind = message.get("kind").ok_or("the message has no `kind`")?;
        let outcome = match kind.as_str().ok_or("the message's `kind` is not a text")? {
            "start" => return Ok(json!({"id": id, "tool": "chainrule"})),
            "define" => self.define(&message).map(|timings| (None, timings)),
            "evaluate" => self.evaluate(&message).map(|(output, timings)| (Some(output), timings)),
            _ => return Ok(json!({ "id": id })),
        };
        Ok(match outcome {
            Ok((None, timings)) => json!({"id": id, "success": true, "timings": timings}),
            Ok((Some(output), timings)) => json!({"id": id, "success": true, "output": output, "timings": timings}),
            Err(Failure(message)) => json!({"id": id, "success": false, "error": message}),
        })
    }

    fn define(&mut self, message: &Map<String, Json>) -> Result<Vec<Json>, Failure> {
        let module = text(message, "module")?;
        let tasks: Vec<&'static Task> = TASKS.iter().filter(|task| task.module == module).collect();
        if tasks.is_empty() {
            let mut modules: Vec<&str> = TASKS.iter().map(|task| task.module).collect();
            modules.dedup();
            return Err(format!("there is no module `{module}`; there are {}", listed(&modules)).into());
        }
        self.defined.retain(|defined| defined.task.module != module);
        let mut timings = Vec::new();
        for task in tasks {
            let mut ready = Vec::new();
            if task.size.is_none() {
                let start = Instant::now();
                ready.push((None, task.compile(None)?));
                timings.push(timing("compile", start.elapsed()));
            }
            self.defined.push(Defined { task, ready });
        }
        Ok(timings)
    }

    fn evaluate(&mut self, message: &Map<String, Json>) -> Result<(Json, Vec<Json>), Failure> {
        let (module, name) = (text(message, "module")?, text(message, "function")?);
        let of_module = self.defined.iter_mut().filter(|defined| defined.task.module == module);
        let mut of_module: Vec<&mut Defined> = of_module.collect();
        if of_module.is_empty() {
            return Err(format!("the module `{module}` is not defined").into());
        }
        let names: Vec<&str> = of_module.iter().map(|defined| defined.task.name).collect();
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(format!("`{module}` has no function `{name}`; it has {}", listed(&names)).into());
        };
        let Defined { task, ready } = &mut *of_module[at];
        let input = Input::new(message.get("input").ok_or_else(|| "the message has no `input`".to_owned())?);
        let mut timings = Vec::new();
        let size = task.size.map(|size| size(&input)).transpose()?;
        let args = (task.args)(&input)?;
        let known = ready.iter().position(|(of, _)| *of == size);
        let known = match known {
            Some(known) => known,
            None => {
                let start = Instant::now();
                ready.push((size, task.compile(size)?));
                timings.push(timing("compile", start.elapsed()));
                ready.len() - 1
            }
        };
        let (output, runs) = ready[known].1.run(task, &input, args)?;
        timings.extend(runs.into_iter().map(|time| timing("evaluate", time)));
        Ok((output, timings))
    }
}
