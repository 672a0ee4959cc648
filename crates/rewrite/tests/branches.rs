//! Functions that choose by their sizes: each branch becomes what it would become alone.

use chainrule_autodiff::{Mode, Part, Request, derive};
use chainrule_base::Sources;
use chainrule_ir::{Block, Expr, Function, Program, Value, alpha_equal, evaluate, print, verify};
use chainrule_ops::F64;
use chainrule_rewrite::{Options, Report, engine, explain, optimise};

fn function(text: &str) -> Function {
    let mut sources = Sources::new();
    let root = sources.add("main.ft", text);
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn jacobian(text: &str, mode: Mode) -> Function {
    let request = Request { parts: vec![Part::Jacobian], by: vec!["x".into()], mode, checkpoints: None };
    derive(&function(text), &request).unwrap_or_else(|e| panic!("{e}"))
}

fn optimised(f: &Function) -> (Function, Report) {
    let (g, report) = optimise(f, &Options::default());
    verify(&g).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&g)));
    (g, report)
}

/// The branches of a function that is an `if`.
fn branches(f: &Function) -> Option<[&Block; 2]> {
    match &f.body.stmts.last()?.expr {
        Expr::If { then, otherwise, .. } => Some([then, otherwise]),
        _ => None,
    }
}

#[test]
fn a_branch_becomes_what_it_becomes_alone() {
    // Taken for one function, it would stay as it was: the columns, dearer, do not become cheaper.
    let text = "let f = fun (x : [n]Double) (a : [m][n]Double) (s : Card) ->
      ifold (fun (y : [m]Double) k -> vectorMap (vectorAdd y (matrixVectorMul a x)) sin) (vectorZeros m) s";
    let open = jacobian(text, Mode::Auto);
    let (both, report) = optimised(&open);
    let [rows, columns] = [Mode::Reverse, Mode::Forward].map(|mode| optimised(&jacobian(text, mode)));
    let found = branches(&both).unwrap_or_else(|| panic!("no branches\n{}", print(&both)));
    for (block, (alone, _)) in found.into_iter().zip([&rows, &columns]) {
        let found = Function { body: block.clone(), ..both.clone() };
        assert!(alpha_equal(&found, alone), "{}\n{}", print(&found), print(alone));
    }
    assert_eq!(report.work, rows.1.work + columns.1.work);
    // An account is of the same run.
    let (explained, account) = explain(&open, &Options::default());
    assert_eq!((&explained, &account.applied), (&both, &report.applied));
    assert_eq!(
        account.places.iter().map(|place| place.times).sum::<u64>(),
        report.applied.iter().map(|(_, n)| n).sum()
    );
    assert!(engine::branches(&open).is_some() && engine::branches(&jacobian(text, Mode::Reverse)).is_none());
}

#[test]
fn branches_that_become_the_same_are_one() {
    let text = "let f = fun (x : [n]Double) (a : [m][n]Double) -> vectorMap (matrixVectorMul a x) sin";
    let open = jacobian(text, Mode::Auto);
    assert!(branches(&open).is_some());
    let (one, _) = optimised(&open);
    assert!(branches(&one).is_none(), "{}", print(&one));
    assert!(alpha_equal(&one, &optimised(&jacobian(text, Mode::Reverse)).0));
}

#[test]
fn conditions_of_doubles_and_numbers_stay_in_one_function() {
    for text in [
        "let f = fun (x : [n]Double) (t : Double) -> if t > 0.0 then vectorMap x sin else x",
        "let f = fun (x : [n]Double) (k : Int) -> if k > 2 then vectorSum x else vectorNorm x",
        "let f = fun (x : [n]Double) (k : Int) -> vectorAdd x (if k > 2 then vectorMap x sin else x)",
    ] {
        assert!(engine::branches(&function(text)).is_none(), "{text}");
    }
    let f = function("let f = fun (x : [n]Double) (k : Int) -> if k > n then vectorMap x sin else vectorSMul x 2.0");
    assert!(engine::branches(&f).is_some());
    let (g, _) = optimised(&f);
    for k in [1, 2, 3] {
        let args: [Value<f64>; 2] = [vec![0.5, 2.0].into(), Value::Int(k)];
        let values = [&f, &g].map(|f| evaluate(f, &mut F64, &args).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(values[0], values[1], "{k}");
    }
}
