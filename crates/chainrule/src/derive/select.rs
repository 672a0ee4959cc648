//! Selection of arguments and results by name, and of parts of them: `q`, `q[3]`, `q[0..3]`, `J[0][2]`, `p.a`.
//!
//! In: text, and the names and types of arguments or results. Out: [`Chosen`] parts; of straight-line code their
//! nodes ([`selected`]). Each bracket selects in the next dimension; `.field` of an array of records selects the field
//! of every element.

use crate::function::Port;
use crate::{Error, Result};
use chainrule_autodiff::parts::{PartOf, Step, overlap, part_type};
use chainrule_base::Name;
use chainrule_graph::NodeId;
use chainrule_ir::Type;
use chainrule_scalarise::leaves::leaves;

/// Array of doubles that is an argument, a result, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) name: Name,
    pub(crate) shape: Vec<usize>,
    pub(crate) nodes: Vec<NodeId>,
}

/// Argument or result, or part of one, with its type.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The number of the argument or result, and the steps from there.
    pub(crate) part: PartOf,
    pub(crate) ty: Type,
}

/// Name of the result of a program.
const RESULT: &str = "result";

/// Returns whether `name` is the text of a part of an argument or a result.
pub(crate) fn is_part(name: &str) -> bool {
    name.contains(['[', '.'])
}

/// Returns what `names` select of `entries`; without names all that contain numbers. `role` is `argument` or `result`.
pub(crate) fn choose(
    entries: &[(Name, Type)],
    names: Option<&[String]>,
    function: &str,
    role: &str,
) -> Result<Vec<Chosen>> {
    let Some(names) = names else {
        let whole = |(k, (name, ty)): (usize, &(Name, Type))| {
            let part = PartOf { param: k, steps: Vec::new(), name: name.clone(), text: name.to_string() };
            ty.has_double().then(|| Chosen { part, ty: ty.clone() })
        };
        return Ok(entries.iter().enumerate().filter_map(whole).collect());
    };
    let mut chosen: Vec<Chosen> = Vec::new();
    for name in names {
        let found = chosen_one(entries, name).ok_or_else(|| absent(entries, name, function, role))?;
        let overlaps =
            |other: &&Chosen| other.part.param == found.part.param && overlap(&other.part.steps, &found.part.steps);
        if let Some(twice) = chosen.iter().find(|other| role == "argument" && overlaps(other)) {
            return Err(Error::request(
                format!("`{}` and `{name}` are chosen both, and overlap", twice.part.text),
                format!("name each {role} once"),
            ));
        }
        if let Some(same) = chosen.iter().find(|other| other.part.name == found.part.name) {
            return Err(Error::request(
                format!("`{}` and `{name}` would both be called `{}`", same.part.text, found.part.name),
                "request them one at a time",
            ));
        }
        chosen.push(found);
    }
    Ok(chosen)
}

fn chosen_one(entries: &[(Name, Type)], text: &str) -> Option<Chosen> {
    let is_of = |name: &str| text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(['[', '.']));
    let by_name = entries.iter().enumerate().filter_map(|(k, (name, _))| Some((k, name.len(), is_of(name)?)));
    // The longest name: names of results of Rust expressions may contain dots.
    let (param, rest) = match by_name.max_by_key(|(_, length, _)| *length) {
        Some((k, _, rest)) => (k, rest.to_owned()),
        // The result of a program need not be named.
        None if matches!(entries, [(name, _)] if **name == *RESULT) => {
            (0, if text.starts_with('[') { text.to_owned() } else { format!(".{text}") })
        }
        None => return None,
    };
    let (name, ty) = &entries[param];
    let steps = steps(&rest, ty)?;
    let ty = part_type(ty, &steps)?;
    let text = if text.starts_with('[') { format!("{RESULT}{text}") } else { text.to_owned() };
    let name = if steps.is_empty() { name.clone() } else { Name::from(label(&text)) };
    Some(Chosen { part: PartOf { param, steps, name, text }, ty })
}

/// Returns the name of a part: `q_3` for `q[3]`, `q_0_to_3` for `q[0..3]`, `p_a` for `p.a`, `a` for `result.a`.
fn label(text: &str) -> String {
    let text = text.strip_prefix("result.").unwrap_or(text).replace("..", "_to_");
    text.chars().map(|c| if matches!(c, '[' | '.') { '_' } else { c }).filter(|c| *c != ']').collect()
}

/// Returns the steps that `text` describes in a value of type `ty`: `[3]`, `.a[0..2]`.
fn steps(text: &str, ty: &Type) -> Option<Vec<Step>> {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let (mut rest, mut ty, mut steps) = (text, ty, Vec::new());
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            let Type::Array(_, element) = ty else { return None };
            steps.push(match index.split_once("..") {
                Some((begin, end)) => Step::Range(number(begin)?, number(end)?),
                None => Step::Index(number(index)?),
            });
            (ty, rest) = (element, after);
        } else {
            let inner = rest.strip_prefix('.')?;
            let (field, after) = inner.split_at(inner.find(['[', '.']).unwrap_or(inner.len()));
            while let Type::Array(_, element) = ty {
                steps.push(Step::Each);
                ty = element;
            }
            let Type::Tuple(fields, names) = ty else { return None };
            let k = match names {
                Some(names) => names.iter().position(|name| **name == *field),
                None => field.parse().ok(),
            }?;
            steps.push(Step::Field(k));
            (ty, rest) = (fields.get(k)?, after);
        }
    }
    Some(steps)
}

fn absent(entries: &[(Name, Type)], name: &str, function: &str, role: &str) -> Error {
    let message = format!("`{function}` has no {role} `{name}`");
    let bare = name.split_once('[').map_or(name, |(bare, _)| bare);
    if let Some(chosen) = chosen_one(entries, bare)
        && let Type::Array(..) = chosen.ty
        && let [leaf] = leaves(&chosen.ty, bare).as_slice()
    {
        let extent = |size: &chainrule_ir::Size| size.as_constant().map_or("[n]".to_owned(), |n| format!("[{n}]"));
        let shape: String = leaf.extents.iter().map(extent).collect();
        let zeros = "[0]".repeat(leaf.extents.len());
        let help = format!("`{bare}` is an array {shape}; its first element is `{bare}{zeros}`");
        return Error::request(message, help);
    }
    let known: Vec<String> =
        entries.iter().flat_map(|(name, ty)| leaves(ty, name)).map(|leaf| format!("`{}`", leaf.name)).collect();
    Error::request(message, format!("its {role}s: {}", known.join(", ")))
}

/// Returns the arrays of doubles of `chosen` parts of `entries`, of which `ports` are the leaves.
pub(crate) fn selected(ports: &[Port], entries: &[(Name, Type)], chosen: &[Chosen]) -> Vec<Selected> {
    let mut found = Vec::new();
    for Chosen { part, ty } in chosen {
        let first: usize = entries.iter().take(part.param).map(|(name, ty)| leaves(ty, name).len()).sum();
        let Some((name, entry)) = entries.get(part.param) else { continue };
        let mut places = Vec::new();
        walk(entry, &part.steps, first, vec![0], &mut places);
        let name = if part.steps.is_empty() { name } else { &part.name };
        for ((leaf, positions), named) in places.into_iter().zip(leaves(ty, name)) {
            let Some(port) = ports.get(leaf) else { continue };
            let shape = named.extents.iter().map(extent).collect();
            let nodes = positions.iter().filter_map(|position| port.nodes.get(*position).copied()).collect();
            found.push(Selected { name: named.name, shape, nodes });
        }
    }
    found
}

fn extent(size: &chainrule_ir::Size) -> usize {
    size.as_constant().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

/// Adds the leaves of the part at `steps` of a value of type `ty`, whose first leaf is number `leaf`, and its elements
/// there. `positions` are those of the value in arrays around it.
// Recursive on the nesting of types only.
fn walk(ty: &Type, steps: &[Step], leaf: usize, positions: Vec<usize>, found: &mut Vec<(usize, Vec<usize>)>) {
    let inside = |indices: std::ops::Range<usize>, n: usize| -> Vec<usize> {
        positions.iter().flat_map(|position| indices.clone().map(move |i| position * n + i)).collect()
    };
    let of = |number: i64| usize::try_from(number).unwrap_or(0);
    let (step, rest) = match steps.split_first() {
        Some((step, rest)) => (Some(*step), rest),
        None => (None, steps),
    };
    match (step, ty) {
        (Some(Step::Field(at)), Type::Tuple(fields, _)) => {
            let before: usize = fields.iter().take(at).map(|field| leaves(field, "").len()).sum();
            if let Some(field) = fields.get(at) {
                walk(field, rest, leaf + before, positions, found);
            }
        }
        (None, Type::Tuple(fields, _)) => {
            let mut leaf = leaf;
            for field in fields {
                walk(field, rest, leaf, positions.clone(), found);
                leaf += leaves(field, "").len();
            }
        }
        (step, Type::Array(size, element)) => {
            let n = extent(size);
            let indices = match step {
                Some(Step::Index(k)) => of(k)..of(k) + 1,
                Some(Step::Range(begin, end)) => of(begin)..of(end),
                _ => 0..n,
            };
            let positions = inside(indices, n);
            walk(element, rest, leaf, positions, found);
        }
        _ => found.push((leaf, positions)),
    }
}
