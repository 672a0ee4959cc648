//! Counts of the literature's graphs, which are stored outside the repository.
#![allow(clippy::unwrap_used)]

mod support;

use chainrule_accumulate::markowitz::Ties;
use chainrule_accumulate::{Budget, Counting, LinearGraph, Program, check, forward, markowitz, reverse};
use chainrule_ops::Counts;
use support::graphs::load;

/// Returns the checked forward, reverse and Markowitz programs.
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

/// D*'s figures 18 and 19 count a multiplication for every edge that a sweep visits, also those by the seed's 1.
#[test]
fn sweeps_as_figures_18_and_19_count_them() {
    let table = [
        ("lit_guenterD_lion5", [(16, 2), (21, 1)]),
        ("lit_guenterC_reconstructed", [(14, 2), (14, 2)]),
        ("lit_bat_reconstructed", [(28, 4), (30, 2)]),
    ];
    for (name, expected) in table {
        let Some(linear) = load(name) else { continue };
        let [forward, reverse, _] = programs(&linear).map(|program| program.count(Counting::Plain));
        let from_sources: usize = linear.sources().map(|v| linear.out_edges(v).len()).sum();
        let to_sinks: usize = linear.sinks().map(|v| linear.in_edges(v).len()).sum();
        let sweeps = [(forward.mul + from_sources as u64, forward.add), (reverse.mul + to_sinks as u64, reverse.add)];
        assert_eq!(sweeps, expected, "{name}");
    }
}
