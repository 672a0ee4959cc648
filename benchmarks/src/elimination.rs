//! `elimination`: what every method makes of the graphs of a folder, beside what is known of them.

use crate::elimination_targets::{Known, known};
use chainrule::accumulate::exchange::{self, Document};
use chainrule::accumulate::metagraph::{Metagraph, Restriction};
use chainrule::accumulate::{Budget, Counting, LinearGraph, Program, VertexId, edge, exact, face, vertex};
use chainrule::{STRATEGIES, eliminate};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// What to run.
#[derive(Args)]
pub struct Options {
    /// The folder of the graphs: JSON files as `chainrule eliminate` reads them.
    folder: PathBuf,
    /// Only these graphs, by name.
    #[arg(long = "graph", value_delimiter = ',')]
    graphs: Vec<String>,
    /// Only these methods: strategies, and annealed, exact, exact-edge, exact-face.
    #[arg(long = "method", value_delimiter = ',')]
    methods: Vec<String>,
    /// How many sets of vertices the exact search looks at, for each graph and counting.
    #[arg(long, default_value_t = exact::SETS)]
    sets: u64,
    /// How many moves annealing tries, for each graph and counting.
    #[arg(long, default_value_t = Budget::EVALUATIONS)]
    moves: u64,
    /// How many vertices a cluster of the exact search's bounds has at most.
    #[arg(long, default_value_t = exact::Options::CLUSTER)]
    cluster: usize,
    /// One JSON object a line: graph, method, counting, mul, add, seconds, status.
    #[arg(long)]
    json: bool,
}

const COUNTINGS: [(Counting, &str); 2] = [(Counting::Plain, "plain"), (Counting::UnitFree, "unit-free")];

/// Graphs of more intermediates are left out of the exact search: hours of bounds that prove nothing.
const SEARCHED: usize = 200;

/// How many edges a graph has at most whose metagraph is made, and whose faces are searched.
const SMALL: usize = 14;

/// One method on one graph in one counting.
struct Measured {
    graph: String,
    method: &'static str,
    counting: (Counting, &'static str),
    /// Multiplications and additions; `None` over budget.
    counts: Option<(u64, u64)>,
    seconds: f64,
    /// Of a search: what its problem takes at least.
    bound: Option<u64>,
}

/// What a method is an instance of: by which a bound or a best known number applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Vertex,
    Edge,
    Face,
    Dstar,
}

fn class(method: &str) -> Class {
    if method.contains("edge") {
        Class::Edge
    } else if method.contains("face") || method.starts_with("chain") || method.starts_with("block") {
        Class::Face
    } else if method.starts_with("dstar") {
        Class::Dstar
    } else {
        Class::Vertex
    }
}

/// Runs all methods on all graphs.
///
/// # Errors
/// When a graph cannot be read, or a program is wrong.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let documents = read(options)?;
    let mut all = Vec::new();
    // Nothing is drawn where standard error is no terminal.
    let bar = ProgressBar::new(documents.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:20} {pos}/{len} {msg} {elapsed}")?);
    for document in &documents {
        let rows = measure(options, document, &bar)?;
        bar.suspend(|| {
            if !options.json {
                println!("\n{}", head(document));
            }
            for row in &rows {
                println!("{}", if options.json { row.json(&rows).to_string() } else { row.line(&rows) });
            }
        });
        all.push(rows);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !options.json {
        println!("\n{}", summary(&documents, &all));
    }
    Ok(())
}

fn read(options: &Options) -> Result<Vec<Document>, Box<dyn std::error::Error>> {
    let folder = options.folder.display();
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&options.folder).map_err(|e| format!("cannot read the folder {folder}: {e}"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut documents = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let mut document = exchange::from_json(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        if document.name.is_empty() {
            document.name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        }
        if options.graphs.is_empty() || options.graphs.contains(&document.name) {
            documents.push(document);
        }
    }
    if documents.is_empty() {
        return Err(format!("there are no such graphs in {folder}: files that end in .json").into());
    }
    Ok(documents)
}

fn measure(
    options: &Options,
    document: &Document,
    bar: &ProgressBar,
) -> Result<Vec<Measured>, Box<dyn std::error::Error>> {
    let graph = &document.graph;
    let mut rows = Vec::new();
    let budget = Budget { evaluations: options.moves, ..Budget::default() };
    let asked = |method: &str| options.methods.is_empty() || options.methods.iter().any(|m| m == method);
    let mut push = |method, counting, made: Option<&Program>, seconds, bound| {
        let counts = made.map(|program| program.count(counting)).map(|counts| (counts.mul, counts.add));
        let name = COUNTINGS.iter().find(|c| c.0 == counting).map_or("", |c| c.1);
        rows.push(Measured {
            graph: document.name.clone(),
            method,
            counting: (counting, name),
            counts,
            seconds,
            bound,
        });
    };
    for strategy in STRATEGIES.iter().filter(|s| asked(s.name)) {
        bar.set_message(format!("{} {}", document.name, strategy.name));
        let start = Instant::now();
        let made = eliminate::run(strategy, graph, &budget, Counting::Plain)?;
        let seconds = start.elapsed().as_secs_f64();
        for (counting, _) in COUNTINGS {
            push(strategy.name, counting, made.program.as_ref(), seconds, None);
        }
    }
    for (counting, name) in COUNTINGS {
        bar.set_message(format!("{} by searches, {name}", document.name));
        let start = Instant::now();
        let annealed = asked("annealed") || asked("exact");
        let order = if annealed { eliminate::annealed(graph, &budget, counting) } else { Vec::new() };
        if asked("annealed") {
            let program = by_order("annealed", graph, &order)?;
            push("annealed", counting, program.as_ref(), start.elapsed().as_secs_f64(), None);
        }
        if asked("exact") && graph.intermediates().len() <= SEARCHED {
            let search = exact::Options { counting, cluster: options.cluster };
            let best = exact::vertex_order(graph, &Budget { evaluations: options.sets, ..budget }, &search, &order);
            let program = by_order("exact", graph, &best.order)?;
            push("exact", counting, program.as_ref(), start.elapsed().as_secs_f64(), Some(best.bound));
        }
    }
    if asked("exact-edge") {
        bar.set_message(format!("{} by edges", document.name));
        let start = Instant::now();
        if let Some(program) = by_metagraph(graph)? {
            let mul = program.count(Counting::Plain).mul;
            push("exact-edge", Counting::Plain, Some(&program), start.elapsed().as_secs_f64(), Some(mul));
        }
    }
    if asked("exact-face") && graph.n_edges() <= SMALL {
        bar.set_message(format!("{} by faces", document.name));
        let start = Instant::now();
        if let Ok(found) = face::exact::search(graph, &budget, &face::exact::Options::default()) {
            eliminate::accept("exact-face", graph, &found.program)?;
            let seconds = start.elapsed().as_secs_f64();
            push("exact-face", Counting::Plain, Some(&found.program), seconds, Some(found.lower_bound));
        }
    }
    Ok(rows)
}

/// The fewest multiplications of edge elimination, on graphs whose metagraph is small.
fn by_metagraph(graph: &LinearGraph) -> Result<Option<Program>, Box<dyn std::error::Error>> {
    if graph.n_edges() > SMALL {
        return Ok(None);
    }
    let Some(metagraph) = Metagraph::new(graph, &Budget::default(), Restriction::Edges) else { return Ok(None) };
    let program = edge::run(graph, &Budget::default(), &metagraph.shortest_path().0).program;
    if let Some(program) = &program {
        eliminate::accept("exact-edge", graph, program)?;
    }
    Ok(program)
}

fn by_order(
    name: &str,
    graph: &LinearGraph,
    order: &[VertexId],
) -> Result<Option<Program>, Box<dyn std::error::Error>> {
    let program = vertex::run(graph, &Budget::default(), order).program;
    if let Some(program) = &program {
        eliminate::accept(name, graph, program)?;
    }
    Ok(program)
}

fn head(document: &Document) -> String {
    let graph = &document.graph;
    format!(
        "{} {}/{}/{}, {} edges\n{:<20} {:<10} {:>7} {:>6} {:>9}  status",
        document.name,
        graph.sources().len(),
        graph.intermediates().len(),
        graph.sinks().len(),
        graph.n_edges(),
        "method",
        "counting",
        "mul",
        "add",
        "seconds"
    )
}

impl Measured {
    /// Proved by its own bound, or by that of a search for the same problem; compared with what is known otherwise.
    fn status(&self, rows: &[Self]) -> String {
        let Some((mul, _)) = self.counts else { return "over budget".into() };
        if let Some(bound) = self.bound {
            return if bound >= mul { "proved".into() } else { format!("gap {bound}..{mul}") };
        }
        let same = |row: &&Self| row.counting == self.counting && class(row.method) == class(self.method);
        if rows.iter().filter(same).filter_map(|row| row.bound).any(|bound| bound >= mul) {
            return "proved".into();
        }
        let Known { alphagrad, alphagrad_unit_free, .. } = known(&self.graph);
        let unit_free = self.counting.0 != Counting::Plain;
        let alphagrad = if unit_free { alphagrad_unit_free } else { alphagrad };
        match (known(&self.graph).best(unit_free), alphagrad) {
            (Some(best), _) if mul < best => format!("below best known {best}"),
            (Some(best), _) if mul == best => "best known".into(),
            (Some(best), Some(alphagrad)) if mul < alphagrad => {
                format!("below AlphaGrad {alphagrad}, best known {best}")
            }
            (Some(best), _) => format!("best known {best}"),
            (None, _) => "nothing known".into(),
        }
    }

    fn line(&self, rows: &[Self]) -> String {
        let (mul, add) = self.counts.map_or_else(Default::default, |(m, a)| (m.to_string(), a.to_string()));
        format!(
            "{:<20} {:<10} {mul:>7} {add:>6} {:>9.3}  {}",
            self.method,
            self.counting.1,
            self.seconds,
            self.status(rows)
        )
    }

    fn json(&self, rows: &[Self]) -> serde_json::Value {
        json!({"graph": self.graph, "method": self.method, "counting": self.counting.1,
            "mul": self.counts.map(|c| c.0), "add": self.counts.map(|c| c.1), "seconds": self.seconds,
            "status": self.status(rows)})
    }
}

/// A line for each graph: our best of each class beside what is known.
fn summary(documents: &[Document], all: &[Vec<Measured>]) -> String {
    let mut text = format!(
        "multiplications         | plain: ours                                 | known               | 1 and -1 free: ours        | known\n\
         {:<23} | {:>7} {:>7} {:>7} {:>7}  {:<12} | {:>9} {:>9} | {:>7} {:>7} {:<10} | {:>9} {:>6}",
        "graph",
        "vertex",
        "edge",
        "face",
        "D*",
        "fewest",
        "AlphaGrad",
        "best",
        "vertex",
        "other",
        "fewest",
        "AlphaGrad",
        "best"
    );
    for (document, rows) in documents.iter().zip(all) {
        let best = |counting: Counting, of: &dyn Fn(Class) -> bool| {
            let of = rows.iter().filter(|row| row.counting.0 == counting && of(class(row.method)));
            of.filter_map(|row| row.counts.map(|c| c.0)).min()
        };
        let bound = |counting: Counting| {
            let row = rows.iter().find(|row| row.counting.0 == counting && row.method == "exact")?;
            let (bound, (cost, _)) = (row.bound?, row.counts?);
            Some(if bound >= cost { "proved".to_string() } else { format!(">= {bound}") })
        };
        let number = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string());
        let of_class = |class: Class| number(best(Counting::Plain, &|c| c == class));
        let known = known(&document.name);
        text.push_str(&format!(
            "\n{:<23} | {:>7} {:>7} {:>7} {:>7}  {:<12} | {:>9} {:>9} | {:>7} {:>7} {:<10} | {:>9} {:>6}",
            document.name,
            of_class(Class::Vertex),
            of_class(Class::Edge),
            of_class(Class::Face),
            of_class(Class::Dstar),
            bound(Counting::Plain).unwrap_or_default(),
            number(known.alphagrad),
            number(known.best(false)),
            number(best(Counting::UnitFree, &|c| c == Class::Vertex)),
            number(best(Counting::UnitFree, &|c| c != Class::Vertex)),
            bound(Counting::UnitFree).unwrap_or_default(),
            number(known.alphagrad_unit_free),
            number(known.best(true)),
        ));
    }
    text.push_str("\nfewest: of all vertex orders; proved by exact search, or a lower bound");
    text
}
