//! Constructs without F~ syntax, expressed in F~, so that derived programs have a text.
//!
//! | construct | F~ |
//! | --- | --- |
//! | `zero` | builds and tuples of 0 |
//! | `oneHot i v` | `build n (fun j -> if j = i then v else 0)` |
//! | `a + b` of arrays | builds and tuples of sums |
//! | `loop` | `scan`, with the sum in its state, or `ifold` if it makes no array |
//! | `loop` | `scan`, with the sum in its state, or `ifold` where it makes no array |
//!
//! In: a function without derivatives. Out: one of the same value. Empty tuples, which F~ lacks too, remain for dead
//! code elimination. The result is slower: arrays are added where an element would suffice.

use crate::{Block, Builder, Expr, Function, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_ops::Op;

/// Returns `function` in F~ constructs. Linear, except for the types of added values.
#[must_use]
pub fn express(function: &Function) -> Function {
    let mut b = Builder::rewriting(function);
    for stmt in &function.body.stmts {
        statement(&mut b, stmt);
    }
    b.finish(function.body.result)
}

/// Returns whether `function` contains a construct without F~ syntax.
#[must_use]
pub fn is_needed(function: &Function) -> bool {
    fn in_block(function: &Function, block: &Block) -> bool {
        block.stmts.iter().any(|stmt| {
            let here = match &stmt.expr {
                Expr::Zero | Expr::OneHot { .. } | Expr::Plus(..) => true,
                Expr::Sum { .. } | Expr::Loop(_) => *function.ty(stmt.var) != Type::Double,
                _ => false,
            };
            here || stmt.expr.blocks().into_iter().any(|inner| in_block(function, inner))
        })
    }
    in_block(function, &function.body)
}

// Writes the statements of `block` into the open block.
fn statements(b: &mut Builder, block: &Block) -> VarId {
    for stmt in &block.stmts {
        statement(b, stmt);
    }
    block.result
}

fn statement(b: &mut Builder, stmt: &Stmt) {
    b.set_span(stmt.span);
    let ty = b.ty(stmt.var).clone();
    let expr = match &stmt.expr {
        Expr::Zero => zero(b, &ty),
        Expr::OneHot { index, value, .. } => one_hot(b, &ty, *index, *value),
        Expr::Plus(x, y) => plus(b, &ty, *x, *y),
        Expr::Sum { count, index, body } if ty != Type::Double => {
            let init = variable(b, &ty, zero);
            let state = b.fresh(ty.clone());
            let body = b.block(|b| {
                let term = statements(b, body);
                let next = plus(b, &ty, state, term);
                b.emit(next, ty.clone())
            });
            Expr::Fold(StateLoop { count: count.clone(), index: *index, state, init, body })
        }
        Expr::Loop(steps) => Expr::Tuple(general(b, &ty, steps)),
        Expr::Build { size, index, body } => {
            Expr::Build { size: size.clone(), index: *index, body: b.block(|b| statements(b, body)) }
        }
        Expr::Sum { count, index, body } => {
            Expr::Sum { count: count.clone(), index: *index, body: b.block(|b| statements(b, body)) }
        }
        Expr::Fold(StateLoop { count, index, state, init, body }) => {
            let body = b.block(|b| statements(b, body));
            Expr::Fold(StateLoop { count: count.clone(), index: *index, state: *state, init: *init, body })
        }
        Expr::While(WhileLoop { limit, state, init, condition, body }) => {
            let condition = b.block(|b| statements(b, condition));
            let body = b.block(|b| statements(b, body));
            Expr::While(WhileLoop { limit: limit.clone(), state: *state, init: *init, condition, body })
        }
        Expr::If { condition, then, otherwise } => {
            let then = b.block(|b| statements(b, then));
            Expr::If { condition: *condition, then, otherwise: b.block(|b| statements(b, otherwise)) }
        }
        other => other.clone(),
    };
    b.push(Stmt { var: stmt.var, expr, span: stmt.span });
}

// Returns the variable of the result of `make`.
fn variable(b: &mut Builder, ty: &Type, make: impl FnOnce(&mut Builder, &Type) -> Expr) -> VarId {
    let expr = make(b, ty);
    b.emit(expr, ty.clone())
}

fn zero(b: &mut Builder, ty: &Type) -> Expr {
    match ty {
        Type::Array(size, element) => {
            let index = b.fresh(Type::Int);
            Expr::Build { size: size.clone(), index, body: b.block(|b| variable(b, element, zero)) }
        }
        Type::Tuple(fields, _) => Expr::Tuple(fields.iter().map(|field| variable(b, field, zero)).collect()),
        Type::Double | Type::Int | Type::Bool => Expr::Real(0.0),
    }
}

fn one_hot(b: &mut Builder, ty: &Type, at: VarId, value: VarId) -> Expr {
    let Type::Array(size, element) = ty else { return Expr::Real(0.0) };
    let index = b.fresh(Type::Int);
    let body = b.block(|b| {
        let condition = b.op(Op::Eq, &[index, at]);
        let then = Block { stmts: Vec::new(), result: value };
        let otherwise = b.block(|b| variable(b, element, zero));
        b.emit(Expr::If { condition, then, otherwise }, (**element).clone())
    });
    Expr::Build { size: size.clone(), index, body }
}

fn plus(b: &mut Builder, ty: &Type, x: VarId, y: VarId) -> Expr {
    match ty {
        Type::Array(size, element) => {
            let index = b.fresh(Type::Int);
            let body = b.block(|b| {
                let (x, y) = (b.get_proved(x, index), b.get_proved(y, index));
                variable(b, element, |b, ty| plus(b, ty, x, y))
            });
            Expr::Build { size: size.clone(), index, body }
        }
        Type::Tuple(fields, _) => {
            let part = |b: &mut Builder, k: usize, field: &Type| {
                let (x, y) = (b.component(x, k), b.component(y, k));
                variable(b, field, |b, ty| plus(b, ty, x, y))
            };
            Expr::Tuple(fields.iter().enumerate().map(|(k, field)| part(b, k, field)).collect())
        }
        Type::Double | Type::Int | Type::Bool => Expr::op(Op::Add, &[x, y]),
    }
}

// Writes a loop with value of type `ty`; returns the last state, the array and the sum.
fn general(b: &mut Builder, ty: &Type, steps: &StateLoop) -> Vec<VarId> {
    let StateLoop { count, index, state, init, body } = steps;
    let (index, state, init) = (*index, *state, *init);
    let nothing = Type::tuple(Vec::new());
    let (elements, term) = match ty {
        Type::Tuple(parts, _) if parts.len() == 3 => (parts[1].clone(), parts[2].clone()),
        _ => (nothing.clone(), nothing.clone()),
    };
    let (has_state, has_term) = (*b.ty(state) != nothing, term != nothing);
    let has_elements = !matches!(&elements, Type::Array(_, element) if **element == nothing);
    // A state of the existing parts: the loop's, the sum so far; a number if there is neither.
    let mut starts = Vec::new();
    if has_state {
        starts.push(init);
    }
    if has_term {
        starts.push(variable(b, &term, zero));
    }
    let both = has_state && has_term;
    let start = match starts.as_slice() {
        [] => b.real(0.0),
        [one] => *one,
        several => b.tuple(several),
    };
    let loop_state = if has_state && !has_term { state } else { b.fresh(b.ty(start).clone()) };
    let body = b.block(|b| {
        if loop_state != state {
            let expr = if has_state { Expr::Component(loop_state, 0) } else { Expr::Tuple(Vec::new()) };
            b.push(Stmt { var: state, expr, span: None });
        }
        let triple = statements(b, body);
        let [next, element, term_var] = [0, 1, 2].map(|k| b.component(triple, k));
        let mut parts = Vec::new();
        if has_state {
            parts.push(next);
        }
        if has_term {
            let before = if both { b.component(loop_state, 1) } else { loop_state };
            parts.push(variable(b, &term, |b, ty| plus(b, ty, before, term_var)));
        }
        let next = match parts.as_slice() {
            [] => loop_state,
            [one] => *one,
            several => b.tuple(several),
        };
        if !has_elements {
            return next;
        }
        let nothing = b.tuple(&[]);
        b.tuple(&[next, element, nothing])
    });
    let (count, state, init) = (count.clone(), loop_state, start);
    let (last, array) = if has_elements {
        let whole = b.compute(Expr::Loop(StateLoop { count, index, state, init, body }));
        (b.component(whole, 0), b.component(whole, 1))
    } else {
        let last = b.compute(Expr::Fold(StateLoop { count, index, state, init, body }));
        (last, b.emit(Expr::Zero, elements))
    };
    let own = match (has_state, both) {
        (false, _) => b.tuple(&[]),
        (true, true) => b.component(last, 0),
        (true, false) => last,
    };
    let sum = match (has_term, both) {
        (false, _) => b.tuple(&[]),
        (true, true) => b.component(last, 1),
        (true, false) => last,
    };
    vec![own, array, sum]
}
