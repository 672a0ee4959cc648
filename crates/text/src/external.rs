//! User functions called by emitted code.

use crate::names::is_identifier;
use chainrule_base::{Diagnostic, Diagnostics, Name};
use chainrule_kernel::{External, Kernel};

/// Returns the distinct user functions with their numbers of arguments, in the order of their first calls. `name_of`
/// returns the name in `language`.
///
/// # Errors
/// A function without a name in the language, or with an invalid one.
pub fn declared<'k>(
    kernels: &[&'k Kernel],
    language: &str,
    is_reserved: fn(&str) -> bool,
    name_of: impl Fn(&'k External) -> Option<&'k Name>,
) -> Result<Vec<(String, usize)>, Diagnostics> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut errors = Diagnostics::new();
    for external in kernels.iter().flat_map(|kernel| &kernel.externals) {
        let Some(name) = name_of(external) else {
            errors.push(
                Diagnostic::error(format!("the function `{}` has no name in {language}", external.name))
                    .with_reason("emitted code calls it, and only its author can say what it is called there")
                    .with_help(format!(
                        "register it with the name of a {language} function of doubles that computes it"
                    )),
            );
            continue;
        };
        let refuse = |why: &str| {
            Diagnostic::error(format!("the function `{}` cannot be called `{name}` in {language}", external.name))
                .with_reason(why.to_owned())
                .with_help("give it another name")
        };
        match found.iter().find(|(other, _)| other.as_str() == name.as_str()) {
            _ if !is_identifier(name) => errors.push(refuse("that is not an identifier")),
            _ if is_reserved(name) => {
                errors.push(refuse(&format!("that name has a meaning in {language} or in the emitted code")));
            }
            Some((_, arity)) if *arity != external.arity => {
                let s = if *arity == 1 { "" } else { "s" };
                errors.push(refuse(&format!("another function of that name takes {arity} argument{s}")));
            }
            Some(_) => {}
            None => found.push((name.to_string(), external.arity)),
        }
    }
    errors.into_result(found)
}
