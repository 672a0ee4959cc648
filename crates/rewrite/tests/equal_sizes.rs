//! Sizes that are required to be equal: one stands for both, as if the program had one size.

mod support;

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_ir::{Function, print, verify};
use chainrule_rewrite::{Options, optimise};
use support::function;

/// Optimises the gradient of `text`, written with the sizes `n` and `m`.
fn gradient(text: &str) -> Function {
    let by = vec!["v".into(), "w".into()];
    let request = Request { parts: vec![Part::Gradient], by, mode: Mode::Auto, checkpoints: None };
    let derived = derive(&function(text), &request).unwrap_or_else(|e| panic!("{e}"));
    let (optimised, _) = optimise(&derived, &Options::default());
    verify(&optimised).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&optimised)));
    optimised
}

/// Returns the number of statements with blocks.
fn loops(f: &Function) -> usize {
    print(f).matches("(fun").count()
}

#[test]
fn loops_over_equal_sizes_are_as_loops_over_one() {
    let text = "let f = fun (v : [n]Double) (w : [m][n]Double) (u : [k]Double) ->
        let weighted = fun (a : [l]Double) (b : [l]Double) -> build l (fun i -> a[i] * exp b[i])
        sum m (fun i -> vectorSum (weighted (weighted v w[i]) u))";
    let one = text.replace("[k]", "[n]");
    let [two, one] = [text, &one].map(gradient);
    assert_eq!(two.equal_sizes().pairs().len(), 1);
    assert!(one.equal_sizes().pairs().is_empty());
    assert_eq!(loops(&two), loops(&one), "{}\n{}", print(&two), print(&one));
    // Parameters keep their own extents, which are compared at entry.
    let (sizes, body) = (two.equal_sizes(), print(&two));
    let body = body.split_once(" ->\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    let name = two.vars[sizes.pairs()[0].0].name.clone().unwrap_or_else(|| panic!("a size has a name"));
    assert!(!body.split(|c: char| !c.is_alphanumeric()).any(|word| word == name.as_str()), "{name}: {body}");
}

#[test]
fn sizes_that_equal_numbers_are_numbers() {
    let text = "let f = fun (v : [n]Double) (w : [m][n]Double) ->
        let weighted = fun (a : [3]Double) (b : [3]Double) -> build 3 (fun i -> a[i] * exp b[i])
        sum m (fun i -> vectorSum (weighted v w[i]))";
    let one = text.replace("[n]", "[3]");
    let [two, one] = [text, &one].map(gradient);
    assert_eq!(two.equal_sizes().numbers(), [(two.sizes[0], 3)]);
    assert!(one.equal_sizes().is_empty());
    assert_eq!(loops(&two), loops(&one), "{}\n{}", print(&two), print(&one));
}
