//! The verifier accepts valid functions, and finds each violation.

use chainrule_base::{Id, Kind};
use chainrule_ir::{
    Block, Builder, Expr, Function, Requirement, Size, StateLoop, Stmt, Type, Var, VarId, WhileLoop, verify,
};
use chainrule_ops::Op;

// fun (v : [n]Double) (k : Int) (w : [n + k]Double) -> every construct
fn good() -> Function {
    let mut b = Builder::new("good");
    let n = b.size_param("n");
    let size = b.size_of(n);
    let v = b.param("v", Type::array(size.clone(), Type::Double));
    let k = b.param("k", Type::Int);
    let w = b.param("w", Type::array(size.add(&Size::var(k)), Type::Double));
    b.require(Requirement { size: Size::var(k), exactly_zero: false, message: "k < 0".to_owned(), span: None });
    let doubled = b.build(size.clone(), |b, i| {
        let (x, y) = (b.get(v, i), b.get(w, i));
        b.op(Op::Add, &[x, y])
    });
    let sum = b.sum(size.clone(), |b, i| b.get(doubled, i));
    let pair = b.tuple(&[sum, k]);
    let folded = b.fold(size.clone(), pair, |b, s, i| {
        let (x, j) = (b.component(s, 0), b.component(s, 1));
        let j = b.op(Op::Max, &[i, j]);
        b.tuple(&[x, j])
    });
    let last = b.component(folded, 1);
    let slow = b.while_(Size::constant(3), sum, |b, s| b.op(Op::Lt, &[s, sum]), |b, s| b.op(Op::Mul, &[s, s]));
    let yes = b.bool(true);
    let chosen = b.if_(yes, |_| slow, |b| b.to_real(last));
    let dual = b.jvp(&[chosen], &[sum], |b, p| b.op(Op::Exp, &[p[0]]));
    let both = b.array(&[dual, dual]);
    let m = b.size(size.scale(2));
    let result = b.record(["a".into(), "m".into()].into(), &[both, m]);
    b.finish(result)
}

fn has(function: &Function, phrase: &str) {
    let Err(found) = verify(function) else { panic!("the verifier accepts what breaks: {phrase}") };
    assert!(found.iter().all(|d| d.kind == Kind::Bug));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|d| d.contains(phrase)), "`{phrase}` is not in {found:#?}");
}

// Returns the first top-level statement for which `wanted` holds.
fn find(f: &mut Function, wanted: impl Fn(&Expr) -> bool) -> &mut Stmt {
    f.body.stmts.iter_mut().find(|s| wanted(&s.expr)).unwrap_or_else(|| panic!("no such statement"))
}

fn is_build(e: &Expr) -> bool {
    matches!(e, Expr::Build { .. })
}

fn body(stmt: &mut Stmt) -> &mut Block {
    match &mut stmt.expr {
        Expr::Build { body, .. }
        | Expr::Fold(StateLoop { body, .. })
        | Expr::Sum { body, .. }
        | Expr::Jvp { body, .. } => body,
        other => panic!("{other:?} has no body"),
    }
}

#[test]
fn a_good_function_is_accepted() {
    assert_eq!(verify(&good()), Ok(()));
    // Only a parameter.
    let mut b = Builder::new("id");
    let x = b.param("x", Type::Bool);
    assert_eq!(verify(&b.finish(x)), Ok(()));
}

#[test]
fn scopes() {
    let mut f = good();
    f.body.stmts.swap(0, 1);
    has(&f, "which is not in scope");

    let mut f = good();
    let stmt = f.body.stmts[0].clone();
    f.body.stmts.push(stmt);
    has(&f, "is bound twice");

    let mut f = good();
    let inner = body(find(&mut f, is_build)).result;
    f.body.result = inner;
    has(&f, "of a block is not in scope");

    let mut f = good();
    f.params.push(f.params[0]);
    has(&f, "is bound twice");

    let mut f = good();
    f.body.result = VarId::new(9999);
    has(&f, "does not exist");

    let mut f = good();
    let Expr::Jvp { along, .. } = &mut find(&mut f, |e| matches!(e, Expr::Jvp { .. })).expr else {
        panic!("not found")
    };
    along[0] = VarId::new(9999);
    has(&f, "does not exist");

    // The index of a build used after it.
    let mut f = good();
    let Expr::Build { index, .. } = find(&mut f, is_build).expr else { panic!("a build") };
    let var = f.vars.push(Var { ty: Type::Double, name: None, span: None, value: None });
    f.body.stmts.push(Stmt { var, expr: Expr::ToReal(index), span: None });
    has(&f, "which is not in scope");
}

#[test]
fn types() {
    let retyped = |wanted: fn(&Expr) -> bool, phrase: &str| {
        let mut f = good();
        let var = find(&mut f, wanted).var;
        f.vars[var].ty = Type::tuple(vec![Type::Bool]);
        has(&f, phrase);
    };
    retyped(is_build, "is bound to [v0]Double");
    retyped(|e| matches!(e, Expr::Sum { .. }), "is bound to Double");
    retyped(|e| matches!(e, Expr::Bool(_)), "is bound to Bool");
    retyped(|e| matches!(e, Expr::Size(_)), "is bound to Int");
    retyped(|e| matches!(e, Expr::Component(..)), "is bound to Int");
    retyped(|e| matches!(e, Expr::Jvp { .. }), "is bound to (Double, Double)");

    let replaced = |wanted: fn(&Expr) -> bool, by: fn(&Function) -> Expr, phrase: &str| {
        let mut f = good();
        let expr = by(&f);
        find(&mut f, wanted).expr = expr;
        has(&f, phrase);
    };
    let boolean = |e: &Expr| matches!(e, Expr::Bool(_));
    replaced(boolean, |f| Expr::op(Op::Lt, &[f.params[1]]), "takes 2 arguments and is given 1");
    replaced(boolean, |f| Expr::op(Op::Lt, &[f.params[1], f.params[0]]), "`lt` is applied to [v0]Double");
    replaced(boolean, |f| Expr::op(Op::Sin, &[f.params[1]]), "not defined for Int");
    replaced(boolean, |f| Expr::ToReal(f.params[0]), "the operand of a conversion");
    replaced(boolean, |f| Expr::ToInt(f.params[0]), "the operand of a conversion");
    replaced(boolean, |f| Expr::Get { array: f.params[1], index: f.params[1], proved: false }, "which is no array");
    replaced(boolean, |f| Expr::Get { array: f.params[0], index: f.params[0], proved: false }, "an index is");
    replaced(boolean, |_| Expr::Array(Vec::new()), "has no element");
    replaced(boolean, |f| Expr::Array(vec![f.params[0], f.params[1]]), "an element of an array");
    replaced(boolean, |f| Expr::Component(f.params[0], 0), "which is no tuple");
    let record = |e: &Expr| matches!(e, Expr::Tuple(fields) if fields.len() == 2);
    replaced(record, |f| Expr::Tuple(vec![f.params[1]]), "is bound to (Int)");

    let mixed = |f: &mut Function| {
        let Expr::Op(_, args) = &mut body(find(f, is_build)).stmts[2].expr else { panic!("an addition") };
        args[1] = VarId::new(0);
    };
    let mut f = good();
    mixed(&mut f);
    has(&f, "mixes Double and Int");
}

#[test]
fn loops_and_branches() {
    let result_becomes = |wanted: fn(&Expr) -> bool, phrase: &str| {
        let mut f = good();
        let k = f.params[1];
        body(find(&mut f, wanted)).result = k;
        has(&f, phrase);
    };
    result_becomes(|e| matches!(e, Expr::Sum { .. }), "the term of a sum is Int");
    result_becomes(|e| matches!(e, Expr::Fold(_)), "the step of a fold is Int");

    let mut f = good();
    let k = f.params[1];
    let Expr::While(WhileLoop { condition, body, .. }) = &mut find(&mut f, |e| matches!(e, Expr::While(_))).expr else {
        panic!("not found")
    };
    (condition.result, body.result) = (k, k);
    has(&f, "the condition of a while");

    let mut f = good();
    let Expr::If { otherwise, .. } = &mut find(&mut f, |e| matches!(e, Expr::If { .. })).expr else { panic!("an if") };
    otherwise.result = k;
    has(&f, "the other branch is Int");
    let mut f = good();
    let Expr::If { condition, .. } = &mut find(&mut f, |e| matches!(e, Expr::If { .. })).expr else { panic!("an if") };
    *condition = k;
    has(&f, "a condition is Int");

    let mut f = good();
    let Expr::Jvp { at, .. } = &mut find(&mut f, |e| matches!(e, Expr::Jvp { .. })).expr else { panic!("not found") };
    at.push(k);
    has(&f, "is differentiated at 2 values");
    let mut f = good();
    let Expr::Jvp { along, .. } = &mut find(&mut f, |e| matches!(e, Expr::Jvp { .. })).expr else {
        panic!("not found")
    };
    along[0] = k;
    has(&f, "a coordinate of the direction");

    let mut f = good();
    let Expr::Fold(StateLoop { index, .. }) = find(&mut f, |e| matches!(e, Expr::Fold(_))).expr else {
        panic!("not found")
    };
    f.vars[index].ty = Type::Double;
    has(&f, "an index is Double");
}

#[test]
fn sizes() {
    // A size that is no base variable.
    let mut f = good();
    let m = find(&mut f, |e| matches!(e, Expr::Size(_))).var;
    let var = f.vars.push(Var { ty: Type::Int, name: None, span: None, value: Some(Size::var(m)) });
    f.body.stmts.push(Stmt { var, expr: Expr::Size(Size::var(m)), span: None });
    has(&f, "which is no base variable");

    // A size over a Double.
    let mut f = good();
    let sum = find(&mut f, |e| matches!(e, Expr::Sum { .. })).var;
    let var = f.vars.push(Var { ty: Type::Int, name: None, span: None, value: Some(Size::var(sum)) });
    f.body.stmts.push(Stmt { var, expr: Expr::Size(Size::var(sum)), span: None });
    has(&f, "in a size, which is Double");

    // Values that differ from the statement.
    let mut f = good();
    let m = find(&mut f, |e| matches!(e, Expr::Size(_))).var;
    f.vars[m].value = None;
    has(&f, "is not that of the integer");
    let mut f = good();
    let k = f.params[1];
    f.vars[k].value = Some(Size::constant(3));
    has(&f, "is bound by no computation");

    // A size parameter that no dimension binds.
    let mut f = good();
    let lost = f.fresh(Type::Int);
    f.sizes.push(lost);
    has(&f, "is no dimension of a parameter");
    let lost = f.fresh(Type::Double);
    f.sizes.push(lost);
    has(&f, "is Double where Int is needed");

    // A requirement over a computed variable.
    let mut f = good();
    let last = f.body.stmts.iter().find(|s| f.vars[s.var].ty == Type::Int).map(|s| s.var);
    f.requires[0].size = Size::var(last.unwrap_or(VarId::new(0)));
    has(&f, "a requirement has");

    // build n (fun i -> build i ...): an array type leaves the scope of its size.
    let mut b = Builder::new("ragged");
    let n = b.param("n", Type::Int);
    let ragged = b.build(Size::var(n), |b, i| b.build(Size::var(i), Builder::to_real));
    has(&b.finish(ragged), "which is not in scope");

    // The type of a result has a size that the body computes.
    let mut b = Builder::new("late");
    let n = b.param("n", Type::Int);
    let half = b.op(Op::Quot, &[n, n]);
    let array = b.build(Size::var(half), Builder::to_real);
    has(&b.finish(array), "which is not in scope");

    // The type of a parameter that only its own body knows.
    let mut f = good();
    let Expr::Build { index, .. } = find(&mut f, is_build).expr else { panic!("a build") };
    let v = f.params[0];
    f.vars[v].ty = Type::array(Size::var(index), Type::Double);
    has(&f, "which is not in scope");
}

#[test]
fn records() {
    let mut f = good();
    let Type::Tuple(_, names) = &mut f.vars[f.body.result].ty else { panic!("a record") };
    *names = Some(["a".into(), "a".into()].into());
    has(&f, "the names of the fields");
    let Type::Tuple(_, names) = &mut f.vars[f.body.result].ty else { panic!("a record") };
    *names = Some(["a".into()].into());
    has(&f, "the names of the fields");
}
