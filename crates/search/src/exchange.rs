//! Linearised graphs as JSON text, for exchange with other programs and for files.
//!
//! | field | is |
//! | --- | --- |
//! | `n_inputs`, `n_intermediates`, `n_outputs` | numbers of vertices, which are numbered in this order from 0 |
//! | `edges` | `[[argument, function], ...]`, each from a smaller to a larger number |
//! | `edge_kind` | for each edge `one`, `copy` (also 1), `neg1`, `const` or `var`; default: all `var` |
//! | `sizes` | number of scalars of each vertex of a vector graph |
//! | `pairs` | `[[output, input], ...]`, both from 0: the requested derivatives; default: all |
//! | `name` | name for people |
//!
//! In: text ([`from_json`]). Out: a [`Document`], or an error that explains the fault in the text, never a panic.
//! Unknown fields are ignored; other programs may store their data there.
//!
//! Invariant: [`from_json`] reads the output of [`to_json`] as the same graph.

use crate::vector::MAX_SIZE;
use chainrule_accumulate::{Label, LinearGraph, VertexId};
use chainrule_base::{Diagnostic, Id};
use serde_json::{Map, Value, json};

/// Maximum number of vertices of a text, which could claim any number in a few bytes.
pub const MAX_VERTICES: usize = 4_000_000;

/// A graph read from text.
#[derive(Clone, Debug)]
pub struct Document {
    /// Name of the graph; may be empty.
    pub name: String,
    /// Graph without the intermediates that lie on no path from an input to an output.
    pub graph: LinearGraph,
    /// Id of each vertex of the text; `None` for dropped vertices.
    pub vertices: Vec<Option<VertexId>>,
    /// Number of scalars of each vertex of the graph; `None` for one each.
    pub sizes: Option<Vec<u64>>,
}

/// Small graph shown in error messages.
const EXAMPLE: &str = r#"{"n_inputs": 1, "n_intermediates": 1, "n_outputs": 1, "edges": [[0, 1], [1, 2]]}"#;

/// Reads a graph. Linear in the text.
///
/// # Errors
/// Fails if the text is not JSON, a field is missing or has a wrong form, or an edge is impossible. More than
/// [`MAX_VERTICES`] vertices or [`MAX_SIZE`] scalars are a limitation.
///
/// ```
/// use chainrule_search::exchange;
/// let text = r#"{"n_inputs": 1, "n_intermediates": 1, "n_outputs": 1, "edges": [[0, 1], [1, 2]]}"#;
/// let document = exchange::from_json(text)?;
/// assert_eq!(document.graph.n_edges(), 2);
/// assert_eq!(exchange::from_json(&exchange::to_json("", &document.graph, None))?.graph.n_edges(), 2);
/// # Ok::<(), chainrule_base::Diagnostic>(())
/// ```
pub fn from_json(text: &str) -> Result<Document, Diagnostic> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Diagnostic::error("this is no JSON text")
            .with_reason(error.to_string())
            .with_help(format!("a graph is written like {EXAMPLE}"))
    })?;
    let Value::Object(fields) = value else {
        return Err(Diagnostic::error(format!("a graph is an object with fields, not {}", described(&value)))
            .with_reason("the numbers of vertices stand beside the edges, each under its name")
            .with_help(format!("write it like {EXAMPLE}")));
    };
    let n_inputs = number(&fields, "n_inputs")?;
    let n_intermediates = number(&fields, "n_intermediates")?;
    let n_outputs = number(&fields, "n_outputs")?;
    let n_vertices = [n_intermediates, n_outputs].iter().fold(n_inputs, |sum, n| sum.saturating_add(*n));
    if n_vertices > MAX_VERTICES {
        return Err(Diagnostic::limitation("this graph has too many vertices")
            .with_reason(format!("it says that there are {n_vertices}; {MAX_VERTICES} are possible"))
            .with_help("check `n_inputs`, `n_intermediates` and `n_outputs`, or cut the graph into parts"));
    }
    let ends = ends(&fields)?;
    let labels = labels(&fields, ends.len())?;
    let edges: Vec<(usize, usize, Label)> =
        ends.into_iter().zip(labels).map(|((source, target), label)| (source, target, label)).collect();
    let sizes = sizes(&fields, n_vertices)?;
    let name = match fields.get("name") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(name)) => name.clone(),
        Some(other) => return Err(wrong("name", "a text", other)),
    };
    let (mut graph, vertices) = LinearGraph::from_edges_numbered(n_inputs, n_intermediates, n_outputs, &edges)?;
    if let Some(pairs) = pairs(&fields)? {
        graph = graph.ask_only(&pairs).map_err(|error| {
            error.with_help("a pair in `pairs` is [output, input], both counted from 0 among their like")
        })?;
    }
    // `sizes` has one number for each vertex of the text.
    let sizes = sizes.map(|sizes| vertices.iter().zip(sizes).filter_map(|(kept, size)| kept.map(|_| size)).collect());
    Ok(Document { name, graph, vertices, sizes })
}

/// Returns a graph as one line of text; `sizes` are those of a vector graph. Outputs and inputs are the graph's sinks
/// and sources, each once, even if they serve several rows and columns. Linear in the graph.
#[must_use]
pub fn to_json(name: &str, graph: &LinearGraph, sizes: Option<&[u64]>) -> String {
    let mut fields = Map::new();
    if !name.is_empty() {
        fields.insert("name".into(), json!(name));
    }
    fields.insert("n_inputs".into(), json!(graph.sources().len()));
    fields.insert("n_intermediates".into(), json!(graph.intermediates().len()));
    fields.insert("n_outputs".into(), json!(graph.sinks().len()));
    let ends = graph.edges().map(|(_, edge)| json!([edge.source.index(), edge.target.index()]));
    fields.insert("edges".into(), ends.collect());
    let kinds = graph.edges().map(|(_, edge)| match edge.label {
        Label::One => json!("one"),
        Label::MinusOne => json!("neg1"),
        Label::Const => json!("const"),
        Label::Var => json!("var"),
    });
    fields.insert("edge_kind".into(), kinds.collect());
    if let Some(sizes) = sizes {
        fields.insert("sizes".into(), json!(sizes));
    }
    let wanted = graph.wanted();
    if graph.pairs().is_some() {
        let first_sink = graph.n_vertices() - graph.sinks().len();
        let mut pairs: Vec<Value> = Vec::new();
        for sink in graph.sinks() {
            let sources = wanted.sources(sink).unwrap_or_default();
            pairs.extend(sources.iter().map(|source| json!([sink.index() - first_sink, source.index()])));
        }
        fields.insert("pairs".into(), pairs.into());
    }
    Value::Object(fields).to_string()
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Diagnostic> {
    fields.get(name).ok_or_else(|| {
        Diagnostic::error(format!("the graph has no `{name}`"))
            .with_reason("`n_inputs`, `n_intermediates`, `n_outputs` and `edges` are in every graph")
            .with_help(format!("a graph is written like {EXAMPLE}"))
    })
}

fn number(fields: &Map<String, Value>, name: &str) -> Result<usize, Diagnostic> {
    let value = field(fields, name)?;
    whole(value).ok_or_else(|| wrong(name, "a whole number, 0 or more", value))
}

/// Returns a number as an index; larger whole numbers become the largest index.
fn whole(value: &Value) -> Option<usize> {
    match (value.as_u64(), value.as_f64()) {
        (Some(number), _) => Some(usize::try_from(number).unwrap_or(usize::MAX)),
        // JSON numbers above 64 bits are read as doubles.
        (None, Some(number)) if number >= 18_446_744_073_709_551_615.0 => Some(usize::MAX),
        _ => None,
    }
}

fn list<'a>(value: &'a Value, name: &str, of: &str) -> Result<&'a [Value], Diagnostic> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(name, &format!("a list of {of}"), value))
}

/// Returns two whole numbers.
fn pair(value: &Value, what: &str, idx: usize) -> Result<(usize, usize), Diagnostic> {
    let two = match value.as_array().map(Vec::as_slice) {
        Some([first, second]) => whole(first).zip(whole(second)),
        _ => None,
    };
    two.ok_or_else(|| {
        let (list, form) =
            if what == "edge" { ("edges", "[argument, function]") } else { ("pairs", "[output, input]") };
        Diagnostic::error(format!("{what} {idx} is {}", described(value)))
            .with_reason(format!("each of `{list}` is {form}, two whole numbers from 0 on"))
            .with_help(format!("write it as in {EXAMPLE}"))
    })
}

fn ends(fields: &Map<String, Value>) -> Result<Vec<(usize, usize)>, Diagnostic> {
    let edges = list(field(fields, "edges")?, "edges", "edges, each [argument, function]")?;
    edges.iter().enumerate().map(|(idx, edge)| pair(edge, "edge", idx)).collect()
}

fn pairs(fields: &Map<String, Value>) -> Result<Option<Vec<(usize, usize)>>, Diagnostic> {
    let Some(value) = fields.get("pairs").filter(|value| !value.is_null()) else { return Ok(None) };
    let pairs = list(value, "pairs", "pairs, each [output, input]")?;
    pairs.iter().enumerate().map(|(idx, value)| pair(value, "pair", idx)).collect::<Result<_, _>>().map(Some)
}

fn labels(fields: &Map<String, Value>, n_edges: usize) -> Result<Vec<Label>, Diagnostic> {
    let Some(value) = fields.get("edge_kind").filter(|value| !value.is_null()) else {
        return Ok(vec![Label::Var; n_edges]);
    };
    let kinds = list(value, "edge_kind", "kinds, one for each edge")?;
    if kinds.len() != n_edges {
        return Err(Diagnostic::error(format!("there are {n_edges} edges and {} kinds", kinds.len()))
            .with_reason("`edge_kind` has one kind for each edge, in the same order")
            .with_help("give every edge a kind, or leave `edge_kind` out: then all labels are `var`"));
    }
    let label = |(idx, kind): (usize, &Value)| match kind.as_str() {
        Some("one" | "copy") => Ok(Label::One),
        Some("neg1") => Ok(Label::MinusOne),
        Some("const") => Ok(Label::Const),
        Some("var") => Ok(Label::Var),
        _ => Err(Diagnostic::error(format!("the kind of edge {idx} is {}", described(kind)))
            .with_reason("a kind tells what is known of a partial derivative: that it is 1, -1, or a number")
            .with_help("choose one of \"one\", \"copy\", \"neg1\", \"const\", \"var\"")),
    };
    kinds.iter().enumerate().map(label).collect()
}

fn sizes(fields: &Map<String, Value>, n_vertices: usize) -> Result<Option<Vec<u64>>, Diagnostic> {
    let Some(value) = fields.get("sizes").filter(|value| !value.is_null()) else { return Ok(None) };
    let given = list(value, "sizes", "sizes, one for each vertex")?;
    if given.len() != n_vertices {
        return Err(Diagnostic::error(format!("there are {n_vertices} vertices and {} sizes", given.len()))
            .with_reason("`sizes` has the number of scalars of each vertex: inputs, intermediates, outputs")
            .with_help("give every vertex a size, or leave `sizes` out: then each is one scalar"));
    }
    let mut sizes = Vec::with_capacity(given.len());
    let mut left = MAX_SIZE;
    for (v, size) in given.iter().enumerate() {
        let Some(number) = whole(size).map(|n| n as u64).filter(|n| *n > 0) else {
            return Err(Diagnostic::error(format!("the size of vertex {v} is {}", described(size)))
                .with_reason("a size is a whole number, 1 or more")
                .with_help("leave vertices without scalars out of the graph"));
        };
        left = left.checked_sub(number).ok_or_else(|| {
            Diagnostic::limitation("the vertices of this graph are too large")
                .with_reason(format!("up to vertex {v} there are more than {MAX_SIZE} scalars"))
                .with_help("check `sizes`, or cut the graph into parts")
        })?;
        sizes.push(number);
    }
    Ok(Some(sizes))
}

fn wrong(name: &str, expected: &str, found: &Value) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is {}", described(found)))
        .with_reason(format!("it has to be {expected}"))
        .with_help(format!("write it as in {EXAMPLE}"))
}

/// Returns a short description of a JSON value.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("the text {text:?}"),
        Value::String(_) => "a long text".into(),
        Value::Array(items) if items.len() <= 4 && items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            let items: Vec<String> = items.iter().map(described).collect();
            format!("the list [{}]", items.join(", "))
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".into(),
    }
}
