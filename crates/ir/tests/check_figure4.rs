//! The programs of the paper: they type-check unchanged, and have the paper's meaning.

mod frontend;
use frontend::*;

#[test]
fn figure_4_has_the_types_that_one_expects() {
    let program = load(FIGURE_4).unwrap_or_else(|(_, d)| panic!("{d}"));
    let types: Vec<String> = program.definitions().map(|d| format!("{} : {}", d.name, d.ty)).collect();
    insta::assert_snapshot!(types.join("\n"));
}

#[test]
fn the_library_has_the_types_that_one_expects() {
    // A name of each module.
    let program = load("// matrixMul, cholesky, argsort").unwrap_or_else(|(_, d)| panic!("{d}"));
    let types: Vec<String> =
        program.library().filter(|d| !d.name.starts_with('_')).map(|d| format!("{} : {}", d.name, d.ty)).collect();
    insta::assert_snapshot!(types.join("\n"));
}

#[test]
fn figure_4_elaborates() {
    let program = load(FIGURE_4).unwrap_or_else(|(_, d)| panic!("{d}"));
    let mut said = Vec::new();
    for def in program.definitions() {
        match program.elaborate(&def.name) {
            Ok(function) => {
                chainrule_ir::verify(&function).unwrap_or_else(|d| panic!("{}: {d:#?}", def.name));
                let vars = &function.vars;
                let params: Vec<String> = function
                    .params
                    .iter()
                    .map(|p| {
                        let name = vars[*p].name.clone().unwrap();
                        format!("({name} : {})", chainrule_ir::value::named_type(&vars[*p].ty, vars))
                    })
                    .collect();
                let result = chainrule_ir::value::named_type(function.result_type(), vars);
                said.push(format!("{} {} : {result}", def.name, params.join(" ")));
                said.extend(function.requires.iter().map(|r| format!("    unless: {}", r.message)));
            }
            Err(d) => said.push(format!("{}: {d}", def.name)),
        }
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn example_1_is_a_bilinear_form() {
    let text = "let f = fun u M v ->
  let um = vectorToMatrix u
  let vt = matrixTranspose (vectorToMatrix v)
  let m = matrixMult um (matrixMult M vt)
  m[0][0]";
    let m = matrix(&[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]]);
    assert_eq!(f(text, &[vector(&[1.0, 10.0]), m, vector(&[1.0, 0.5, 2.0])]), real(8.0 + 10.0 * 18.5));
}

#[test]
fn example_2_is_the_derivative_of_the_cosine() {
    let expected = -(0.7_f64).sin();
    assert_eq!(f("let f = fun a -> snd (deriv (cos a) a)", &[real(0.7)]), real(expected));
    assert_eq!(f("let g = fun x -> cos(x)\nlet f = fun a -> snd ((diff g) a)", &[real(0.7)]), real(expected));
}

#[test]
fn example_3_differentiates_by_one_of_two() {
    assert_eq!(f("let f = fun a b -> snd (deriv (a * b) a)", &[real(3.0), real(5.0)]), real(5.0));
    assert_eq!(f("let f = fun a b -> deriv (a * b) b", &[real(3.0), real(5.0)]), pair(real(15.0), real(3.0)));
}

#[test]
fn section_3_3_gives_1() {
    let text = "let f = fun x y ->
    snd (
    deriv (x * (snd (
        deriv (x + y) y
     ))) x
)";
    assert_eq!(f(text, &[real(7.0), real(11.0)]), real(1.0));
}

#[test]
fn example_4_has_a_gradient_that_is_the_other_vector() {
    let text = "let f = fun v1 v2 -> vectorMap (deriv (vectorDot v1 v2) v1) snd";
    assert_eq!(f(text, &[vector(&[1.0, 2.0, 3.0]), vector(&[4.0, 5.0, 6.0])]), vector(&[4.0, 5.0, 6.0]));
}
