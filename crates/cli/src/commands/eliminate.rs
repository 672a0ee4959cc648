//! `chainrule eliminate`.

use crate::data;
use crate::{Outcome, print, progress};
use chainrule::accumulate::{Budget, Counting, Id, LinearGraph, Program, Score, StopReason, VertexId};
use chainrule::accumulate::{greedy, vertex};
use chainrule::search::draw::Picture;
use chainrule::search::exchange::{self, Document};
use chainrule::search::vector::{self, VectorGraph};
use chainrule::search::{Objective, annealing, exact};
use chainrule::{Counts, Diagnostic, STRATEGIES, Sources, Strategy, eliminate, report};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Accumulate the Jacobian of a graph given by its edges, and count operations
#[derive(Args)]
#[command(after_help = "The graph is JSON text, vertices numbered inputs, intermediates, outputs from 0:
  {\"n_inputs\": 2, \"n_intermediates\": 2, \"n_outputs\": 4,
   \"edges\": [[0, 2], [1, 2], [2, 3], [2, 4], [3, 4], [3, 5], [3, 6], [3, 7]]}
with \"edge_kind\" (for each edge one, neg1, const or var) and \"sizes\" where they are known.

Examples:
  chainrule eliminate graph.json
  chainrule eliminate graph.json --method all --prove
  chainrule eliminate graph.json --order 3,2 --show program
  chainrule eliminate graph.json --method dstar --json
  chainrule eliminate graph.json --svg graph.svg
  cat graph.json | chainrule eliminate - --method markowitz")]
pub struct Options {
    /// File with the graph; -: standard input
    file: PathBuf,
    /// Strategy: auto, forward, reverse, markowitz, face, dstar, ...; annealed: simulated annealing; or all
    #[arg(long, default_value = "auto")]
    method: String,
    /// Eliminate these vertices first, in this order, then the others in ascending order
    #[arg(long, value_name = "VERTEX", value_delimiter = ',', conflicts_with = "method")]
    order: Vec<usize>,
    /// Counting of multiplications in searches and auto
    #[arg(long, value_enum, default_value = "plain")]
    counting: Way,
    /// Search for the vertex order of fewest multiplications; report whether it is proved, or the gap
    #[arg(long)]
    prove: bool,
    /// With --prove: maximum number of sets of vertices in the search
    #[arg(long, value_name = "NUMBER", default_value_t = exact::SETS)]
    sets: u64,
    /// With --prove and --method annealed: approximate time of each search; counted in work, so that results do not
    /// depend on the machine
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds: u64,
    /// Output besides the counts
    #[arg(long, value_enum)]
    show: Option<Show>,
    /// Print one JSON object a line: graph, method, counting, mul, add, seconds, status
    #[arg(long)]
    json: bool,
    /// File for a drawing of the graph
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Counting of multiplications.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Every product of two labels, as in the literature
    Plain,
    /// All but multiplications by 1 and -1
    UnitFree,
    /// As `unit-free`, with free arithmetic on constants, as in generated code
    Folded,
}

impl Way {
    fn counting(self) -> Counting {
        match self {
            Self::Plain => Counting::Plain,
            Self::UnitFree => Counting::UnitFree,
            Self::Folded => Counting::Folded,
        }
    }
}

/// Printed output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Show {
    /// The accumulation program, one step a line: e is the label of an edge, t the result of a step
    Program,
}

/// Row of the table.
struct Row {
    method: String,
    /// `None` if there is none, or none to be shown.
    program: Option<Program>,
    /// Counts of all products, and with those by 1 and -1 free.
    counted: Option<(Counts, Counts)>,
    seconds: f64,
    status: &'static str,
}

/// Reads, eliminates, prints.
pub fn run(options: &Options) -> Outcome {
    if options.prove && options.counting == Way::Folded {
        return Err(
            "error: the search counts plain or unit-free, not folded: a proof is of the literature's problem\n  \
                    help: leave --counting out, or take --counting unit-free"
                .into(),
        );
    }
    let (name, text) = read(&options.file)?;
    let document = exchange::from_json(&text)
        .map_err(|error| explain(Diagnostic { title: format!("{name}: {}", error.title), ..error }))?;
    data::check_keys(&text, &name)?;
    let graph = &document.graph;
    let title = if document.name.is_empty() { name } else { report::printable(&document.name) };
    if let Some(path) = &options.svg {
        let picture = Picture { title: title.clone(), ..Picture::of(graph) };
        data::write_file(path, picture.svg().as_bytes())?;
        crate::tell(&format!("wrote {}", path.display()));
    }
    if let Some(sizes) = &document.sizes {
        if options.prove || options.show.is_some() || !matches!(options.method.as_str(), "auto" | "all") {
            return Err("error: for vector graphs, vertex orders are counted and nothing else\n  \
                        help: leave --method, --prove and --show out, or `sizes`"
                .into());
        }
        return vector_graph(options, &title, &document, sizes);
    }
    let rows = rows(options, &document)?;
    let mut text = String::new();
    if options.json {
        rows.iter().for_each(|row| text.push_str(&row.json(&title)));
    } else {
        text.push_str(&head(&title, &document));
        rows.iter().for_each(|row| text.push_str(&row.line()));
    }
    if options.prove {
        let start = Instant::now();
        let exact_options = exact::Options::new(options.counting.counting());
        let best =
            progress::during("searching", || eliminate::fewest(graph, &budget(options), options.sets, &exact_options));
        text.push_str(&proof(options, &title, &document, &best, start.elapsed().as_secs_f64()));
    }
    if options.show == Some(Show::Program) {
        let [Row { program: Some(program), .. }] = rows.as_slice() else {
            return Err("error: there is not one program to be shown\n  help: choose one --method that ends".into());
        };
        text.push_str(&program.to_string());
    }
    print(&text)
}

/// Returns the limits of searches.
fn budget(options: &Options) -> Budget {
    Budget { work: options.seconds.saturating_mul(Budget::WORK_PER_SECOND), ..Budget::default() }
}

/// Returns a name for users, and the text.
fn read(path: &Path) -> Result<(String, String), String> {
    Ok((data::shown(path), data::read_source(path)?))
}

fn explain(diagnostic: Diagnostic) -> String {
    report::render(&diagnostic.into(), &Sources::default(), report::Style::Plain)
}

fn rows(options: &Options, document: &Document) -> Result<Vec<Row>, String> {
    let (graph, counting) = (&document.graph, options.counting.counting());
    if !options.order.is_empty() {
        let order = order(document, &options.order)?;
        return Ok(vec![by_order("order", graph, || (order, StopReason::Done))?]);
    }
    let by_strategy = |strategy: &'static Strategy| -> Result<Row, String> {
        let start = Instant::now();
        let made = progress::during(strategy.name, || eliminate::run(strategy, graph, &Budget::default(), counting));
        let made = made.map_err(explain)?;
        let method = if made.strategy == strategy.name {
            made.strategy.into()
        } else {
            format!("{} ({})", strategy.name, made.strategy)
        };
        let status = match (made.stop, &made.program) {
            (StopReason::Done, _) => "done",
            (_, Some(_)) => "budget used up",
            (_, None) => "over budget",
        };
        Ok(Row::new(method, made.program, start, status))
    };
    let annealed = || by_order("annealed", graph, || eliminate::annealed(graph, &budget(options), counting));
    match options.method.as_str() {
        "all" => {
            let mut rows = STRATEGIES.iter().map(by_strategy).collect::<Result<Vec<Row>, String>>()?;
            rows.push(annealed()?);
            Ok(rows)
        }
        "annealed" => Ok(vec![annealed()?]),
        name => {
            let unknown = |error: Diagnostic| {
                let help = error.help.as_deref().map_or(String::new(), |help| format!("{help}, annealed, all"));
                explain(error.clone().with_help(help))
            };
            Ok(vec![by_strategy(chainrule::strategy(name).map_err(unknown)?)?])
        }
    }
}

fn by_order(
    method: &str,
    graph: &LinearGraph,
    order: impl FnOnce() -> (Vec<VertexId>, StopReason),
) -> Result<Row, String> {
    let start = Instant::now();
    let (order, stop) = progress::during(method, order);
    let outcome = vertex::run(graph, &Budget::default(), &order);
    if let Some(program) = &outcome.program {
        eliminate::accept(method, graph, program).map_err(explain)?;
    }
    let status = match stop {
        _ if outcome.program.is_none() => "over budget",
        StopReason::WorkBudget => "time used up: more --seconds may find a better order",
        _ => "done",
    };
    Ok(Row::new(method.into(), outcome.program, start, status))
}

/// Returns the vertices with these numbers in the text, without those on no path.
fn order(document: &Document, numbers: &[usize]) -> Result<Vec<VertexId>, String> {
    let first = document.graph.sources().len();
    let end = document.vertices.len() - document.graph.sinks().len();
    let mut order = Vec::new();
    for (idx, &number) in numbers.iter().enumerate() {
        if number < first || number >= end {
            let what = if number < document.vertices.len() { "no intermediate" } else { "no vertex of the graph" };
            let help = if first < end {
                format!("intermediates are numbered {first} to {}", end - 1)
            } else {
                "this graph has no intermediates: leave --order out".into()
            };
            return Err(format!("error: {number} is {what}: only intermediates are eliminated\n  help: {help}"));
        }
        if numbers[..idx].contains(&number) {
            return Err(format!("error: vertex {number} is twice in the order\n  help: eliminate each vertex once"));
        }
        order.extend(document.vertices[number]);
    }
    Ok(order)
}

fn head(title: &str, document: &Document) -> String {
    let graph = &document.graph;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let counts = [
        plural(graph.sources().len(), "input"),
        plural(graph.intermediates().len(), "intermediate"),
        plural(graph.sinks().len(), "output"),
        plural(graph.n_edges(), "edge"),
    ];
    let n_left_out = document.vertices.iter().filter(|v| v.is_none()).count();
    let left_out = if n_left_out == 0 { String::new() } else { format!("; {n_left_out} on no path left out") };
    format!(
        "{title}: {}{left_out}\n{:<34} {:>13} {:>15}\n{:<34} {:>7} {:>5} {:>9} {:>5} {:>9}\n",
        counts.join(", "),
        "",
        "all products",
        "1 and -1 free",
        "method",
        "mul",
        "add",
        "mul",
        "add",
        "seconds"
    )
}

impl Row {
    fn new(method: String, program: Option<Program>, start: Instant, status: &'static str) -> Self {
        let counted = program.as_ref().map(|p| (p.count(Counting::Plain), p.count(Counting::UnitFree)));
        Self { method, program, counted, seconds: start.elapsed().as_secs_f64(), status }
    }

    fn line(&self) -> String {
        let Some((plain, free)) = self.counted else {
            return format!("{:<34} {:>39} {:>9.3}\n", self.method, self.status, self.seconds);
        };
        let status = if self.status == "done" { String::new() } else { format!("  {}", self.status) };
        format!(
            "{:<34} {:>7} {:>5} {:>9} {:>5} {:>9.3}{status}\n",
            self.method, plain.mul, plain.add, free.mul, free.add, self.seconds
        )
    }

    fn json(&self, graph: &str) -> String {
        let line = |counts: Option<Counts>, name: &str| {
            json!({"graph": graph, "method": self.method, "counting": name, "mul": counts.map(|c| c.mul),
                "add": counts.map(|c| c.add), "seconds": self.seconds, "status": self.status})
        };
        let (plain, free) = self.counted.unzip();
        format!("{}\n{}\n", line(plain, "plain"), line(free, "unit-free"))
    }
}

/// Describes the known bounds of the best vertex order.
fn proof(options: &Options, title: &str, document: &Document, best: &exact::Optimum, seconds: f64) -> String {
    let graph = &document.graph;
    let numbers: Vec<usize> = document.vertices.iter().enumerate().filter_map(|(n, v)| v.map(|_| n)).collect();
    let order: Vec<usize> = best.order.iter().map(|v| numbers[v.index()]).collect();
    let name = if options.counting == Way::Plain { "plain" } else { "unit-free" };
    if options.json {
        let add = vertex::run(graph, &Budget::default(), &best.order)
            .program
            .map(|program| program.count(options.counting.counting()).add);
        let status = if best.is_proved() { "proved".into() } else { format!("gap {}..{}", best.bound, best.cost) };
        let line = json!({"graph": title, "method": "exact", "counting": name, "mul": best.cost, "add": add,
            "seconds": seconds, "status": status, "bound": best.bound, "order": order});
        return format!("{line}\n");
    }
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let known = if best.is_proved() {
        format!("{}, proved", best.cost)
    } else {
        let why = match best.stop {
            StopReason::WorkBudget => "time used up: more --seconds may tell".to_owned(),
            StopReason::EvaluationBudget => "more --sets may tell".to_owned(),
            _ => format!("searched are graphs of at most {} such vertices", exact::MAX_VERTICES),
        };
        format!("between {} and {}, not proved: {why}", best.bound, best.cost)
    };
    format!(
        "fewest multiplications of vertex orders ({name}): {known}\n  {} vertices after safe eliminations, {} sets, {seconds:.3} s\n  \
         best order: {}\n",
        best.hard,
        best.evaluations,
        order.join(",")
    )
}

/// Handles vector graphs: labels are matrices, and vertex orders are counted.
fn vector_graph(options: &Options, title: &str, document: &Document, sizes: &[u64]) -> Outcome {
    let graph = VectorGraph::new(document.graph.clone(), sizes).map_err(explain)?;
    let budget = Budget::default();
    let counting = options.counting.counting();
    let mut orders: Vec<(&str, Vec<VertexId>)> = Vec::new();
    if options.order.is_empty() {
        orders.push(("forward", graph.linear().intermediates().collect()));
        orders.push(("reverse", graph.linear().intermediates().rev().collect()));
        let score = greedy::Options { counting, ..greedy::Options::new(Score::Markowitz) };
        orders.extend(vector::order(&graph, &budget, &score).ok().map(|order| ("markowitz", order)));
        let search = annealing::Options { counting, objective: Objective::Multiplications, seed: 1 };
        orders.push(("annealed", progress::during("annealing", || vector::anneal(&graph, &budget, &search)).order));
    } else {
        orders.push(("order", order(document, &options.order)?));
    }
    let mut text = if options.json { String::new() } else { head(title, document) };
    for (method, order) in orders {
        let start = Instant::now();
        let program = vector::run(&graph, &budget, &order).program;
        let status = if program.is_some() { "done" } else { "over budget" };
        let counts = |counting| program.as_ref().map(|program| graph.count(program, counting));
        let counted = counts(Counting::Plain).zip(counts(Counting::UnitFree));
        let row = Row { method: method.into(), program: None, counted, seconds: start.elapsed().as_secs_f64(), status };
        text.push_str(&if options.json { row.json(title) } else { row.line() });
    }
    print(&text)
}
