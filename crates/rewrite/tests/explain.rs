//! Reports: they belong to their run, and contain spans and savings.

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_base::Sources;
use chainrule_ir::{Function, Program};
use chainrule_rewrite::{Options, Report, explain, optimise};
use std::collections::BTreeMap;

const TEXT: &str = "let f = fun (a : [n][m]Double) (x : [m]Double) ->
  let y = matrixVectorMul a x
  let z = build n (fun i -> sin y[i])
  let unused = vectorSum z
  vectorDot z y";

fn gradient(sources: &mut Sources) -> Function {
    let root = sources.add("main.ft", TEXT);
    let program = Program::load(sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    let f = program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}"));
    let request = Request {
        parts: vec![Part::Value, Part::Gradient],
        by: vec!["x".into()],
        mode: Mode::Reverse,
        checkpoints: None,
    };
    derive(&f, &request).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn an_account_is_of_the_same_run() {
    let f = gradient(&mut Sources::new());
    let ((plain, report), (explained, account)) = (optimise(&f, &Options::default()), explain(&f, &Options::default()));
    assert_eq!(plain, explained);
    let without = |report: &Report| {
        let passes =
            report.passes.iter().map(|pass| (pass.name, pass.applied, pass.before, pass.after)).collect::<Vec<_>>();
        (report.applied.clone(), passes, report.symbolic.clone(), report.work)
    };
    assert_eq!(without(&report), without(&account));
    assert!(report.places.is_empty() && report.passes.iter().all(|pass| pass.measures.is_none()));
}

#[test]
fn places_add_up_to_the_applications() {
    let mut sources = Sources::new();
    let f = gradient(&mut sources);
    let (_, report) = explain(&f, &Options::default());
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for place in &report.places {
        *by_name.entry(place.name).or_insert(0) += place.times;
    }
    let applied: BTreeMap<&str, u64> = report.applied.iter().copied().collect();
    assert_eq!(by_name, applied);
    // The cotangents of the elements of z are an array; other applications are on the library's lines.
    let own = |name: &str| -> Vec<usize> {
        let of = report.places.iter().filter(|place| place.name == name).filter_map(|place| place.span);
        of.filter(|span| sources.file(span.file).name == "main.ft").map(|span| sources.line_column(span).0).collect()
    };
    assert_eq!(own("sum-of-one-hot"), [3], "{report}");
}

#[test]
fn savings_of_passes_add_up() {
    let f = gradient(&mut Sources::new());
    let (found, report) = explain(&f, &Options::default());
    let measures: Vec<_> = report.passes.iter().filter_map(|pass| pass.measures.as_ref()).collect();
    assert_eq!(measures.len(), report.passes.len());
    assert_eq!(measures[0].0, chainrule_rewrite::engine::measure(&f));
    for pair in measures.windows(2) {
        assert_eq!(pair[0].1, pair[1].0);
    }
    let last = chainrule_rewrite::engine::measure(&found);
    assert_eq!(measures.last().map(|(_, after)| &after.cost), Some(&last.cost));
    assert_eq!(
        (last.cost.as_str(), report.symbolic.0.as_str()),
        (report.symbolic.1.as_str(), measures[0].0.cost.as_str())
    );
    assert!(last.loops < measures[0].0.loops);
}
