//! `elimination`: counts of every method on the graphs of a folder, compared with the best known counts.

use crate::elimination_targets::known;
use chainrule::accumulate::{Budget, Counting, LinearGraph, Program, VertexId};
use chainrule::accumulate::{edge, vertex};
use chainrule::search::exchange::{self, Document};
use chainrule::search::{annealing, edge_annealing, edge_exact, exact, face_exact};
use chainrule::{STRATEGIES, eliminate};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Options of the benchmark.
#[derive(Args)]
pub struct Options {
    /// Folder of the graphs: JSON files as `chainrule eliminate` reads them.
    folder: PathBuf,
    /// Only these graphs, by name.
    #[arg(long = "graph", value_delimiter = ',')]
    graphs: Vec<String>,
    /// Only these methods: strategies, and annealed, annealed-edge, exact, exact-edge, exact-face.
    #[arg(long = "method", value_delimiter = ',')]
    methods: Vec<String>,
    /// Only this counting: plain (every product) or unit-free (products by 1 and -1 are free).
    #[arg(long, value_parser = ["plain", "unit-free"])]
    counting: Option<String>,
    /// Sets of vertices for the exact search if every product counts; a twentieth if products by 1 and -1 are free, and
    /// in graphs of more than a hundred intermediates, where bounds are weaker.
    #[arg(long, default_value_t = 3_500_000)]
    sets: u64,
    /// Moves of annealing for each graph and counting.
    #[arg(long, default_value_t = Budget::EVALUATIONS)]
    moves: u64,
    /// Maximum number of vertices in a cluster of the exact search's bounds.
    #[arg(long, default_value_t = exact::Options::CLUSTER)]
    cluster: usize,
    /// Print one JSON object a line: graph, method, counting, mul, add, seconds, status.
    #[arg(long)]
    json: bool,
}

const COUNTINGS: [(Counting, &str); 2] = [(Counting::Plain, "plain"), (Counting::UnitFree, "unit-free")];

/// Maximum number of intermediates for the exact search: beyond, hours of bounds prove nothing.
const SEARCHED: usize = 200;

/// Maximum number of intermediates for the full search effort.
const HARD: usize = 100;

/// Maximum number of edges of graphs for the face search.
const SMALL: usize = 14;

/// Maximum number of stages of a search over edges.
const STAGES: u64 = 2_000_000;

/// Result of one method on one graph in one counting.
struct Measured {
    graph: String,
    method: &'static str,
    counting: (Counting, &'static str),
    /// Multiplications and additions; `None` over budget.
    counts: Option<(u64, u64)>,
    seconds: f64,
    /// Lower bound of the problem, for a search.
    bound: Option<u64>,
}

/// Class of a method, to which a bound or a best known count applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Vertex,
    Edge,
    Face,
    Dstar,
    /// Several classes, or none.
    Other,
}

fn class(method: &str) -> Class {
    if method.contains("edge") {
        Class::Edge
    } else if method.contains("face") || method.starts_with("chain") {
        Class::Face
    } else if method.starts_with("dstar") {
        Class::Dstar
    } else if method == "auto" || method == "oracle" {
        Class::Other
    } else {
        Class::Vertex
    }
}

/// Runs all methods on all graphs, and prints each result immediately.
///
/// # Errors
/// Fails if a graph cannot be read, or a program is wrong.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let documents = read(options)?;
    let mut all = Vec::new();
    // Nothing is drawn if standard error is no terminal.
    let bar = ProgressBar::new(documents.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:20} {pos}/{len} {msg} {elapsed}")?);
    for document in &documents {
        if !options.json {
            bar.suspend(|| println!("{}", head(document)));
        }
        let mut work = Work { options, document, bar: &bar, rows: Vec::new() };
        work.searches()?;
        work.strategies()?;
        if !options.json {
            bar.suspend(|| println!());
        }
        all.push(work.rows);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !options.json {
        println!("{}", summary(&documents, &all));
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
    // Small graphs first.
    documents.sort_by_key(|document| document.graph.n_edges());
    if documents.is_empty() {
        return Err(format!("there are no such graphs in {folder}: files that end in .json").into());
    }
    Ok(documents)
}

/// All methods on one graph.
struct Work<'a> {
    options: &'a Options,
    document: &'a Document,
    bar: &'a ProgressBar,
    rows: Vec<Measured>,
}

impl Work<'_> {
    fn asks(&self, method: &str) -> bool {
        self.options.methods.is_empty() || self.options.methods.iter().any(|m| m == method)
    }

    fn countings(&self) -> impl Iterator<Item = (Counting, &'static str)> + use<> {
        let only = self.options.counting.clone();
        COUNTINGS.into_iter().filter(move |(_, name)| only.as_ref().is_none_or(|only| only == name))
    }

    /// Returns whether a method is requested; shows it as the current one.
    fn begins(&self, method: &str) -> bool {
        self.bar.set_message(format!("{} {method}", self.document.name));
        self.asks(method)
    }

    fn push(
        &mut self,
        method: &'static str,
        counting: Counting,
        made: Option<&Program>,
        seconds: f64,
        bound: Option<u64>,
    ) {
        let counts = made.map(|program| program.count(counting)).map(|counts| (counts.mul, counts.add));
        let name = COUNTINGS.iter().find(|c| c.0 == counting).map_or("", |c| c.1);
        let graph = self.document.name.clone();
        let row = Measured { graph, method, counting: (counting, name), counts, seconds, bound };
        let status = row.status(&self.rows);
        let text = if self.options.json { row.json(&status).to_string() } else { row.line(&status) };
        self.bar.suspend(|| println!("{text}"));
        self.rows.push(row);
    }

    /// Runs the searches for few multiplications in one counting, with bounds if they have any. They come first,
    /// because their proofs apply to the strategies.
    fn searches(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let graph = &self.document.graph;
        // Records are for a number of moves, however long they take.
        let budget = Budget { evaluations: self.options.moves, work: u64::MAX, ..Budget::default() };
        for (counting, _) in self.countings() {
            let start = Instant::now();
            let mut order = Vec::new();
            if self.begins("annealed") || self.asks("exact") {
                order = eliminate::annealed(graph, &budget, counting).0;
            }
            if self.asks("annealed") {
                let program = by_order("annealed", graph, &order)?;
                self.push("annealed", counting, program.as_ref(), start.elapsed().as_secs_f64(), None);
            }
            if self.begins("exact") && graph.intermediates().len() <= SEARCHED {
                let search = exact::Options { counting, cluster: self.options.cluster };
                let is_hard = counting != Counting::Plain || graph.intermediates().len() > HARD;
                let sets = Budget { evaluations: self.options.sets / if is_hard { 20 } else { 1 }, ..budget };
                let best = exact::vertex_order(graph, &sets, &search, &order);
                let program = by_order("exact", graph, &best.order)?;
                self.push("exact", counting, program.as_ref(), start.elapsed().as_secs_f64(), Some(best.bound));
            }
            let start = Instant::now();
            let mut edges = None;
            if self.begins("annealed-edge") || self.asks("exact-edge") {
                edges = by_edges(graph, &budget, counting)?;
            }
            if self.asks("annealed-edge") {
                self.push("annealed-edge", counting, edges.as_ref(), start.elapsed().as_secs_f64(), None);
            }
            if self.begins("exact-edge")
                && counting == Counting::Plain
                && let Some(program) = &edges
            {
                let stages = Budget { evaluations: STAGES, ..budget };
                if let Some(least) = edge_exact::least(graph, &stages, program.count(counting).mul) {
                    self.push("exact-edge", counting, Some(program), start.elapsed().as_secs_f64(), Some(least));
                }
            }
        }
        let plain = self.countings().any(|(counting, _)| counting == Counting::Plain);
        if self.begins("exact-face") && plain && graph.n_edges() <= SMALL {
            let start = Instant::now();
            if let Ok(found) = face_exact::search(graph, &budget, &face_exact::Options::default()) {
                eliminate::accept("exact-face", graph, &found.program)?;
                let seconds = start.elapsed().as_secs_f64();
                self.push("exact-face", Counting::Plain, Some(&found.program), seconds, Some(found.lower_bound));
            }
        }
        Ok(())
    }

    fn strategies(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        // Records are for a number of moves, however long they take.
        let budget = Budget { evaluations: self.options.moves, work: u64::MAX, ..Budget::default() };
        for strategy in STRATEGIES {
            if !self.begins(strategy.name) {
                continue;
            }
            let start = Instant::now();
            let mut made = None;
            for (counting, _) in self.countings() {
                // Most methods make the same program in both countings.
                if made.is_none() || strategy.name == "auto" || class(strategy.name) == Class::Dstar {
                    made = eliminate::run(strategy, &self.document.graph, &budget, counting)?.program;
                }
                self.push(strategy.name, counting, made.as_ref(), start.elapsed().as_secs_f64(), None);
            }
        }
        Ok(())
    }
}

/// Eliminates along the best edge history found by annealing.
fn by_edges(
    graph: &LinearGraph,
    budget: &Budget,
    counting: Counting,
) -> Result<Option<Program>, Box<dyn std::error::Error>> {
    let options = annealing::Options { counting, ..annealing::Options::plain(1) };
    let history = edge_annealing::history(graph, budget, &options).history;
    let program = edge::run(graph, &Budget::default(), &history).program;
    if let Some(program) = &program {
        eliminate::accept("annealed-edge", graph, program)?;
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
    /// Returns whether the count is proved by its own bound, or by that of a search for the same problem; otherwise the
    /// comparison with the best known count.
    fn status(&self, rows: &[Self]) -> String {
        let Some((mul, _)) = self.counts else { return "over budget".into() };
        if let Some(bound) = self.bound {
            return if bound >= mul { "proved".into() } else { format!("gap {bound}..{mul}") };
        }
        let same = |row: &&Self| row.counting == self.counting && class(row.method) == class(self.method);
        if rows.iter().filter(same).filter_map(|row| row.bound).any(|bound| bound >= mul) {
            return "proved".into();
        }
        let unit_free = self.counting.0 != Counting::Plain;
        let known = known(&self.graph);
        let best = match class(self.method) {
            Class::Edge if !unit_free && known.edge.is_some() => known.edge,
            Class::Vertex => known.vertex_best(unit_free),
            _ => known.best(unit_free),
        };
        let alphagrad = if unit_free { known.alphagrad_unit_free } else { known.alphagrad };
        match (best, alphagrad) {
            (Some(best), _) if mul < best => format!("below best known {best}"),
            (Some(best), _) if mul == best => "best known".into(),
            (Some(best), Some(alphagrad)) if mul < alphagrad => {
                format!("below AlphaGrad {alphagrad}, best known {best}")
            }
            (Some(best), _) => format!("best known {best}"),
            (None, _) => "nothing known".into(),
        }
    }

    fn line(&self, status: &str) -> String {
        let (mul, add) = self.counts.map_or_else(Default::default, |(m, a)| (m.to_string(), a.to_string()));
        format!("{:<20} {:<10} {mul:>7} {add:>6} {:>9.3}  {status}", self.method, self.counting.1, self.seconds)
    }

    fn json(&self, status: &str) -> serde_json::Value {
        json!({"graph": self.graph, "method": self.method, "counting": self.counting.1,
            "mul": self.counts.map(|c| c.0), "add": self.counts.map(|c| c.1), "seconds": self.seconds,
            "status": status})
    }
}

/// Returns a line for each graph: our best count of each class and the best known one.
fn summary(documents: &[Document], all: &[Vec<Measured>]) -> String {
    let row = |cells: [String; 13], known: [String; 2]| {
        let [graph, vertex, proof, edge, face, dstar, alphagrad, best, cells @ ..] = cells;
        let [free_vertex, free_proof, free_edge, free_face, free_dstar] = cells;
        format!(
            "{graph:<23} | {vertex:>6} {proof:<8}{edge:>6} {face:>6} {dstar:>6}  | {alphagrad:>9} {best:>6} | \
             {free_vertex:>6} {free_proof:<8}{free_edge:>6} {free_face:>6} {free_dstar:>6}  | {:>9} {:>5}",
            known[0], known[1]
        )
    };
    let names = ["graph", "vertex", "", "edge", "face", "D*", "AlphaGrad", "best", "vertex", "", "edge", "face", "D*"];
    let mut text = format!(
        "{:<23} | {:<36} | {:<16} | {:<36} | known\n",
        "multiplications", "every product: ours", "known", "1 and -1 free: ours"
    );
    text.push_str(&row(names.map(String::from), ["AlphaGrad".into(), "best".into()]));
    for (document, rows) in documents.iter().zip(all) {
        let number = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string());
        let best = |counting: Counting, of: Class| {
            let of = rows.iter().filter(|row| row.counting.0 == counting && class(row.method) == of);
            of.filter_map(|row| row.counts.map(|c| c.0)).min()
        };
        // With a star if a search of this class has proved it.
        let starred = |counting: Counting, of: Class| {
            let least = best(counting, of);
            let proved = |row: &&Measured| row.counting.0 == counting && class(row.method) == of && row.bound >= least;
            let star = if least.is_some() && rows.iter().any(|row| proved(&row)) { "*" } else { "" };
            format!("{}{star}", number(least))
        };
        let fewest = |counting: Counting| {
            let exact = rows.iter().find(|row| row.counting.0 == counting && row.method == "exact")?;
            let (bound, least) = (exact.bound?, best(counting, Class::Vertex)?);
            Some(if bound >= least { "proved".to_string() } else { format!(">={bound}") })
        };
        let known = known(&document.name);
        text.push('\n');
        let ours = |counting: Counting| {
            [
                number(best(counting, Class::Vertex)),
                fewest(counting).unwrap_or_default(),
                starred(counting, Class::Edge),
                starred(counting, Class::Face),
                number(best(counting, Class::Dstar)),
            ]
        };
        let [vertex, proof, edge, face, dstar] = ours(Counting::Plain);
        let [free_vertex, free_proof, free_edge, free_face, free_dstar] = ours(Counting::UnitFree);
        let [alphagrad, most] = [number(known.alphagrad), number(known.best(false))];
        text.push_str(&row(
            [
                document.name.clone(),
                vertex,
                proof,
                edge,
                face,
                dstar,
                alphagrad,
                most,
                free_vertex,
                free_proof,
                free_edge,
                free_face,
                free_dstar,
            ],
            [number(known.alphagrad_unit_free), number(known.best(true))],
        ));
    }
    text.push_str(
        "\nproved: no vertex order takes fewer; >=n: none takes fewer than n; *: proved by a search over edges or faces.\n\
         edge: edge histories; face: faces, chains and blocks; known: AlphaGrad's orders, and the best number of any class.",
    );
    text
}
