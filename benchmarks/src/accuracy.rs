//! `accuracy`: errors of values and partial derivatives of all operators in compiled code, against values of 115
//! digits.

#[path = "../../crates/chainrule/tests/accuracy/measure.rs"]
mod measure;
#[path = "../../crates/ops/tests/support/sweep.rs"]
mod sweep;

use chainrule_ops::{Big, Op, Precise};
use clap::Args;
use measure::{Subject, Way, computed, subjects, ways};
use serde_json::json;
use std::collections::HashMap;
use sweep::Of;

/// Extent of the sweep.
#[derive(Args)]
pub struct Options {
    /// Only these operators, by their names in F~.
    #[arg(long = "operator", value_delimiter = ',')]
    operators: Vec<String>,
    /// Points of an operator.
    #[arg(long, default_value_t = 100_000)]
    points: usize,
    /// Only these ways of compiling: native, interpreter, loops, ...
    #[arg(long = "way", value_delimiter = ';')]
    ways: Vec<String>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Largest error of one result in one way.
#[derive(Default)]
struct Worst {
    ulp: f64,
    at: Vec<f64>,
    n_above: usize,
}

/// Exact results.
struct Exact {
    precise: Precise,
    /// Polygamma by order and argument. Its derivatives are those of the next orders, which are swept as well.
    polygamma: HashMap<[u64; 2], Option<Big>>,
}

impl Exact {
    /// Returns the exact result at a point, if it is a normal double.
    fn at(&mut self, op: Op, of: Of, point: &[f64]) -> Option<Big> {
        let more = match of {
            Of::Value => 0.0,
            Of::First(_) => 1.0,
            Of::Second(..) => 2.0,
        };
        match (op, point) {
            (Op::Polygamma, [order, x]) => {
                let point = [order + more, *x];
                let known = self.polygamma.entry(point.map(f64::to_bits));
                known.or_insert_with(|| sweep::exact(&mut self.precise, op, Of::Value, &point)).clone()
            }
            _ => sweep::exact(&mut self.precise, op, of, point),
        }
    }
}

/// Prints the largest errors, one line for each result of each operator.
///
/// # Errors
/// An operator or a way that does not exist, or a function that does not compile.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(unknown) = options.operators.iter().find(|name| Op::by_name(name).is_none()) {
        return Err(format!("there is no operator `{unknown}`").into());
    }
    let ways: Vec<Way> = ways()
        .into_iter()
        .filter(|way| options.ways.is_empty() || options.ways.iter().any(|name| name == way.name))
        .collect();
    if ways.is_empty() {
        return Err("there is no such way of compiling".into());
    }
    if !options.json {
        println!("Largest errors in ulp, against values of 115 digits, where the exact result is a normal number:\n");
        print!("{:<28} {:>7} {:>4}", "", "points", "bar");
        ways.iter().for_each(|way| print!(" {:>20}", way.name));
        println!(" {:>6}  at", "beyond");
    }
    let mut exact = Exact { precise: Precise::new(), polygamma: HashMap::new() };
    for subject in subjects() {
        if options.operators.is_empty() || options.operators.iter().any(|name| name == subject.op.name()) {
            sweep_subject(subject, &ways, options, &mut exact)?;
        }
    }
    Ok(())
}

fn sweep_subject(
    subject: Subject,
    ways: &[Way],
    options: &Options,
    all: &mut Exact,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = subject.points(options.points);
    for of in subject.results() {
        let mut found = Vec::new();
        for way in ways {
            found.push(computed(subject, of, *way, &points)?);
        }
        let bar = sweep::bar(subject.op, of);
        let mut worst: Vec<Worst> = ways.iter().map(|_| Worst::default()).collect();
        let (mut n_checked, mut n_beyond) = (0, 0);
        for (i, point) in points.iter().enumerate() {
            let Some(exact) = all.at(subject.op, of, point) else { continue };
            let precise = &all.precise;
            if sweep::is_beyond(subject.op, of, point) {
                n_beyond += 1;
                continue;
            }
            n_checked += 1;
            let conditioning = sweep::conditioning(subject.op, of, point, precise.as_f64(&exact));
            for (worst, found) in worst.iter_mut().zip(&found) {
                let ulp = sweep::ulps(precise, found[i], &exact) / conditioning;
                worst.n_above += usize::from(ulp > bar);
                if ulp > worst.ulp {
                    worst.ulp = ulp;
                    worst.at.clone_from(point);
                }
            }
        }
        if n_checked == 0 {
            continue;
        }
        let name = name(subject, of);
        if options.json {
            for (way, worst) in ways.iter().zip(&worst) {
                println!(
                    "{}",
                    json!({"result": name, "way": way.name, "points": n_checked, "beyond": n_beyond, "ulp": worst.ulp,
                        "bar": bar, "above": worst.n_above, "at": worst.at})
                );
            }
        } else {
            print!("{name:<28} {n_checked:>7} {bar:>4}");
            for worst in &worst {
                let mark = if worst.n_above > 0 { format!("({}) ", worst.n_above) } else { String::new() };
                print!(" {:>20}", format!("{mark}{:.3}", worst.ulp));
            }
            let at = worst.iter().max_by(|a, b| a.ulp.total_cmp(&b.ulp)).map(|worst| worst.at.clone());
            println!(" {n_beyond:>6}  {:?}", at.unwrap_or_default());
        }
    }
    Ok(())
}

/// Returns `pow(., 0.3) by 0, 0`: the operator, its constants, the arguments differentiated by.
fn name(subject: Subject, of: Of) -> String {
    let name = subject.op.name();
    let called = match (subject.first, subject.second) {
        (None, None) => name.to_owned(),
        (Some(c), _) => format!("{name}({c}, .)"),
        (_, Some(c)) => format!("{name}(., {c})"),
    };
    match of {
        Of::Value => called,
        Of::First(i) => format!("{called} by {i}"),
        Of::Second(i, j) => format!("{called} by {i}, {j}"),
    }
}
