//! Operations of derivatives by source line: counts by hand, and completeness.
#![allow(missing_docs, clippy::unwrap_used)]

use chainrule::{Counts, Derivation, Function, Module, OperationsByLine};

fn function(text: &str, sizes: &[(&str, i64)]) -> Function {
    Module::from_text("f.ft", text).unwrap().function("f").unwrap().unrolled(sizes).unwrap()
}

fn by_line(derivation: &Derivation) -> OperationsByLine {
    derivation.explain().unwrap().function.operations_by_line().unwrap()
}

/// Returns line, multiplications, divisions, calls.
fn told(operations: &OperationsByLine) -> Vec<(usize, u64, u64, u64)> {
    operations.lines.iter().map(|l| (l.line, l.counts.mul, l.counts.div, l.counts.call)).collect()
}

const CHAIN: &str =
    "let f = fun (x : Double) (y : Double) (z : Double) ->\n  let a = x * y\n  let b = sin a\n  in b * exp z\n";

#[test]
fn the_lines_of_a_chain_as_by_hand() {
    let gradient = function(CHAIN, &[]).gradient().without_optimisation();
    // Both compute x y, its sine, exp z and, as the derivative by z, the result; and the cosine on line 3. The
    // cotangent of b is exp z; line 3 multiplies it by the cosine, line 2 the product by y and by x.
    assert_eq!(told(&by_line(&gradient.clone().strategy("reverse"))), [(2, 3, 0, 0), (3, 1, 0, 2), (4, 1, 0, 1)]);
    // The tangents of a are y and x; line 3 multiplies both by the cosine, line 4 the products by exp z.
    assert_eq!(told(&by_line(&gradient.strategy("forward"))), [(2, 1, 0, 0), (3, 2, 0, 2), (4, 3, 0, 1)]);
}

const NORM: &str = "let f = fun (x : [n]Double) ->\n  let s = sum n (fun i -> x[i] * x[i])\n  let r = sqrt s\n  \
                    let e = exp (x[0] * x[1])\n  in r * e + sin r\n";

#[test]
fn statements_of_the_optimiser_have_a_line_too() {
    // The cotangent of r is exp + cos, on line 5; line 3 multiplies it by 1 / r, or by 0 if r is 0; line 2 multiplies
    // that by each x. Line 4 multiplies r e, the cotangent of the exponent and a value of line 5, by x1 and x0.
    let operations = by_line(&function(NORM, &[("n", 3)]).gradient().strategy("reverse"));
    assert_eq!(told(&operations), [(2, 6, 0, 0), (3, 1, 1, 1), (4, 3, 0, 1), (5, 1, 0, 1)]);
    assert_eq!(operations.shared, Counts::default());
}

#[test]
fn all_operations_are_reported_once() {
    for (text, sizes) in [(CHAIN, &[][..]), (NORM, &[("n", 5)])] {
        let f = function(text, sizes);
        for strategy in ["auto", "forward", "reverse", "markowitz", "face", "chains", "dstar", "edge-mixed", "oracle"] {
            let products = [f.hvp(), f.jvp(), f.vjp()].map(|derivation| (derivation, true));
            let others =
                [f.gradient().with_value(), f.hessian(), f.derivatives(3)].map(|derivation| (derivation, false));
            for (derivation, is_product) in products.into_iter().chain(others) {
                for (derivation, is_plain) in [(derivation.clone(), false), (derivation.without_optimisation(), true)] {
                    let derived = derivation.strategy(strategy).explain().unwrap().function;
                    let operations = derived.operations_by_line().unwrap();
                    let total = operations.lines.iter().fold(operations.shared, |sum, line| sum + line.counts);
                    assert_eq!(Some(total), derived.counts(), "{strategy}, {}", derived.name());
                    // Operations on directions alone have no line, nor have some that the optimiser creates.
                    let most = if is_plain && !is_product { 0 } else { total.arithmetic() / 2 };
                    assert!(operations.shared.arithmetic() <= most, "{strategy}, {}: {operations:?}", derived.name());
                }
            }
        }
    }
}

#[test]
fn the_account_changes_nothing() {
    let f = function(NORM, &[("n", 4)]);
    for derivation in [f.gradient(), f.hessian()] {
        let (told, plain) = (derivation.explain().unwrap().function, derivation.function().unwrap());
        assert_eq!(told.listing(), plain.listing());
        assert!(plain.operations_by_line().is_none());
        // Lines persist through derivatives of an explained function.
        let again = told.jvp().explain().unwrap().function;
        assert!(!again.operations_by_line().unwrap().lines.is_empty());
    }
}
