//! Selection of arguments and results by name or by element: `q`, `q[3]`, `J[0][2]`.

use crate::function::{Port, indices};
use crate::leaves::leaves;
use crate::{Error, Result};
use chainrule_base::Name;
use chainrule_graph::NodeId;
use chainrule_ir::Type;

/// Port or element of one.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) name: Name,
    pub(crate) shape: Vec<usize>,
    pub(crate) nodes: Vec<NodeId>,
}

/// Returns the entries that `names` select, if each name is an entry's; without names all entries that contain numbers.
pub(crate) fn whole_entries(entries: &[(Name, Type)], names: Option<&[String]>) -> Option<Vec<(Name, Type)>> {
    let Some(names) = names else {
        return Some(entries.iter().filter(|(_, ty)| ty.has_double()).cloned().collect());
    };
    names.iter().map(|name| entries.iter().find(|(known, _)| **known == **name).cloned()).collect()
}

/// Returns the ports that are the leaves of the entry `name`; empty if there is no such entry.
fn leaves_of<'p>(ports: &'p [Port], entries: &[(Name, Type)], name: &str) -> &'p [Port] {
    let mut first = 0;
    for (entry, ty) in entries {
        let n = leaves(ty, "").len();
        if **entry == *name {
            return ports.get(first..first + n).unwrap_or_default();
        }
        first += n;
    }
    &[]
}

/// Returns the ports or elements that `names` select; all ports without names. A name of `entries`, of which the ports
/// are the leaves, selects all its leaves. `role` is `argument` or `result`.
pub(crate) fn select(
    ports: &[Port],
    entries: &[(Name, Type)],
    names: Option<&[String]>,
    function: &str,
    role: &str,
) -> Result<Vec<Selected>> {
    let whole =
        |port: &Port| Selected { name: port.name.clone(), shape: port.shape.clone(), nodes: port.nodes.clone() };
    let Some(names) = names else { return Ok(ports.iter().map(whole).collect()) };
    let mut selected: Vec<Selected> = Vec::new();
    for name in names {
        let own = leaves_of(ports, entries, name);
        let found: Vec<Selected> = match ports.iter().find(|port| *port.name == **name) {
            Some(port) => vec![whole(port)],
            None if !own.is_empty() => own.iter().map(whole).collect(),
            None => vec![element(ports, name).ok_or_else(|| {
                let message = format!("`{function}` has no {role} `{name}`");
                let bare = name.split_once('[').map_or(name.as_str(), |(bare, _)| bare);
                if let Some(port) = ports.iter().find(|port| *port.name == *bare && !port.shape.is_empty()) {
                    let shape: String = port.shape.iter().map(|n| format!("[{n}]")).collect();
                    let zeros = "[0]".repeat(port.shape.len());
                    let help = format!("`{bare}` is an array {shape}; its first element is `{bare}{zeros}`");
                    return Error::request(message, help);
                }
                let known: Vec<String> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
                Error::request(message, format!("its {role}s: {}", known.join(", ")))
            })?],
        };
        let overlaps = |s: &&Selected| s.nodes.iter().any(|n| found.iter().any(|found| found.nodes.contains(n)));
        if let Some(twice) = selected.iter().find(|s| role == "argument" && overlaps(s)) {
            return Err(Error::request(
                format!("`{}` and `{name}` are chosen both, and overlap", twice.name),
                format!("name each {role} once"),
            ));
        }
        selected.extend(found);
    }
    Ok(selected)
}

fn element(ports: &[Port], name: &str) -> Option<Selected> {
    let open = name.find('[')?;
    let port = ports.iter().find(|port| *port.name == name[..open])?;
    let position = indices(&port.shape).position(|index| index == name[open..])?;
    // `q[3]` is written as q3 in names of results.
    let spelt: String = name.chars().map(|c| if c == '[' { '_' } else { c }).filter(|c| *c != ']').collect();
    Some(Selected { name: Name::from(spelt), shape: vec![], nodes: vec![port.nodes[position]] })
}
