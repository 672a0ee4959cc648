//! Counts of the literature's graphs, which lie beside the repository and not in it.
#![allow(clippy::unwrap_used)]

use chainrule_accumulate::markowitz::Ties;
use chainrule_accumulate::{Budget, Counting, Label, LinearGraph, Program, check, forward, markowitz, reverse};
use chainrule_ops::Counts;
use std::path::Path;

fn load(name: &str) -> Option<LinearGraph> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graphs").join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped {name}: there is no shared/data beside the repository");
        return None;
    };
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let edges: Vec<(usize, usize, Label)> = json["edges"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, e)| {
            let label = match json["edge_kind"].get(i).and_then(|k| k.as_str()) {
                Some("one" | "copy") => Label::One,
                Some("neg1") => Label::MinusOne,
                Some("const") => Label::Const,
                Some("var") | None => Label::Var,
                Some(other) => panic!("edge kind {other}"),
            };
            (number(&e[0]), number(&e[1]), label)
        })
        .collect();
    let graph = LinearGraph::from_edges(
        number(&json["n_inputs"]),
        number(&json["n_intermediates"]),
        number(&json["n_outputs"]),
        &edges,
    );
    Some(graph.unwrap())
}

/// Forward, reverse and Markowitz programs, checked.
fn programs(linear: &LinearGraph) -> [Program; 3] {
    let budget = Budget::default();
    let outcomes =
        [forward::run(linear, &budget), reverse::run(linear, &budget), markowitz::run(linear, &budget, Ties::Lowest)];
    outcomes.map(|outcome| {
        let program = outcome.program.unwrap();
        assert!(check::program(linear, &program, 1).agrees());
        assert!(check::program(linear, &program.tidied(), 1).agrees());
        program
    })
}

#[test]
fn multiplications_of_graphax_examples() {
    // Plain: forward, reverse, Markowitz; unit-free: forward, reverse.
    let table = [
        ("RoeFlux_1d", [620, 364, 407], Some([362, 234])),
        ("RobotArm_6DOF", [397, 301, 288], Some([227, 221])),
        ("HumanHeartDipole", [240, 172, 194], Some([48, 60])),
        ("PropaneCombustion", [151, 90, 111], Some([26, 26])),
        ("g", [632, 566, 451], Some([447, 335])),
        ("BlackScholes_Jacobian", [513, 453, 350], None),
        ("RoeFlux_3d", [1362, 875, 721], None),
    ];
    for (name, plain, unit_free) in table {
        let Some(linear) = load(name) else { continue };
        let programs = programs(&linear);
        assert_eq!(programs.each_ref().map(|p| p.count(Counting::Plain).mul), plain, "{name}, plain");
        if let Some(unit_free) = unit_free {
            let [forward, reverse, _] = programs.each_ref().map(|p| p.count(Counting::UnitFree).mul);
            assert_eq!([forward, reverse], unit_free, "{name}, unit-free");
        }
        for program in &programs {
            assert!(program.tidied().count(Counting::UnitFree).mul <= program.count(Counting::UnitFree).mul);
        }
    }
}

#[test]
fn larger_examples_are_right() {
    for name in ["Encoder", "f"] {
        if let Some(linear) = load(name) {
            programs(&linear);
        }
    }
}

#[test]
fn vertex_elimination_of_the_papers_graphs() {
    // Multiplications and additions of forward, reverse and Markowitz.
    let table = [
        ("lit_lion4", [(12, 2), (12, 1), (12, 2)]),
        ("lit_guenterD_lion5", [(14, 2), (15, 1), (14, 2)]),
        ("lit_guenterC_reconstructed", [(12, 2), (12, 2), (8, 1)]),
        ("lit_bat_reconstructed", [(24, 4), (24, 2), (24, 4)]),
    ];
    for (name, expected) in table {
        let Some(linear) = load(name) else { continue };
        let counts: [Counts; 3] = programs(&linear).each_ref().map(|p| p.count(Counting::Plain));
        assert_eq!(counts.map(|c| (c.mul, c.add)), expected, "{name}");
    }
}
