//! Tape of expensive values, kept beside the states of a loop instead of recomputed in the reverse sweep.
//!
//! In: the body of a loop whose states are kept. Out: the numbers of it to keep (`Tape`): results of functions with a
//! cost of at least [`MIN_WEIGHT`], in the body and in the builds and sums in it. A row of the tape is the tuple of
//! them; the tape of a loop is the array of its rows.
//!
//! Holds: an iteration keeps no more than a constant factor of the size of its state, because nested loops are taped
//! only if the state has an array of their counts. Values that a nested loop carries from step to step are kept by that
//! loop, for its own iterations alone.

use super::Reverse;
use chainrule_ir::{Block, Expr, Size, StateLoop, Stmt, Type, VarId};

/// Minimum cost of a taped value; cheaper values are recomputed.
const MIN_WEIGHT: u32 = 20;

/// Taped values of a block, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    items: Vec<Item>,
}

#[derive(Clone, Debug)]
enum Item {
    /// Number that the block binds.
    Number(VarId),
    /// Build or sum that the block binds, with the tape of each iteration.
    Loop(VarId, Tape),
}

impl Tape {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn item(&self, var: VarId) -> Option<&Item> {
        self.items.iter().find(|item| matches!(item, Item::Number(v) | Item::Loop(v, _) if *v == var))
    }
}

/// Returns whether `ty` contains a nested array whose dimensions include `counts`, in this order.
fn has_array_of(ty: &Type, counts: &[&Size]) -> bool {
    match (ty, counts.split_first()) {
        (Type::Double, None) => true,
        (Type::Array(size, element), Some((first, rest))) if size == *first => {
            has_array_of(element, rest) || has_array_of(element, counts)
        }
        (Type::Array(_, element), _) => has_array_of(element, counts),
        (Type::Tuple(fields, _), _) => fields.iter().any(|field| has_array_of(field, counts)),
        _ => false,
    }
}

impl Reverse<'_> {
    /// Returns the tape of a loop with this body and a state of this type.
    pub(super) fn tape(&self, body: &Block, state: &Type) -> Tape {
        // Values that are recomputed from checkpoints are not taped.
        if self.out.keeping.asked.is_some() { Tape::default() } else { self.tape_in(body, state, &mut Vec::new()) }
    }

    // Recursive on nesting.
    fn tape_in<'b>(&self, block: &'b Block, state: &Type, counts: &mut Vec<&'b Size>) -> Tape {
        let mut tape = Tape::default();
        if !has_array_of(state, counts) {
            return tape;
        }
        for stmt in &block.stmts {
            match &stmt.expr {
                Expr::Op(op, _) if op.row().weight >= MIN_WEIGHT && *self.out.ty(stmt.var) == Type::Double => {
                    tape.items.push(Item::Number(stmt.var));
                }
                Expr::Build { size: count, body, .. } | Expr::Sum { count, body, .. } => {
                    counts.push(count);
                    let inner = self.tape_in(body, state, counts);
                    counts.pop();
                    if !inner.is_empty() {
                        tape.items.push(Item::Loop(stmt.var, inner));
                    }
                }
                _ => {}
            }
        }
        tape
    }

    /// Emits the statements of `block` into the open block; returns its result and the row of `tape`.
    pub(super) fn taping(&mut self, block: &Block, tape: &Tape) -> (VarId, VarId) {
        let mut row = Vec::with_capacity(tape.items.len());
        for stmt in &block.stmts {
            self.out.set_span(stmt.span);
            match tape.item(stmt.var) {
                Some(Item::Loop(_, inner)) => row.push(self.taping_loop(stmt, inner)),
                item => {
                    self.alone(stmt);
                    if item.is_some() {
                        row.push(self.copies.get(stmt.var));
                    }
                }
            }
        }
        (self.copies.get(block.result), self.out.builder.tuple(&row))
    }

    /// Emits a build or a sum; returns the rows of its tape.
    fn taping_loop(&mut self, stmt: &Stmt, tape: &Tape) -> VarId {
        let (Expr::Build { size: count, index, body } | Expr::Sum { count, index, body }) = &stmt.expr else {
            return stmt.var;
        };
        let is_build = matches!(stmt.expr, Expr::Build { .. });
        // Not negative, because the state has an array of this extent (`has_array_of`).
        let count = self.size(count);
        let i = self.out.builder.fresh(Type::Int);
        self.naturals.insert(i);
        self.copies.insert(*index, i);
        let nothing = self.out.builder.tuple(&[]);
        self.out.open();
        let (value, row) = self.taping(body, tape);
        if is_build {
            let pair = self.out.builder.tuple(&[value, row]);
            let body = self.out.close(pair);
            self.out.set_span(stmt.span);
            let whole = self.out.builder.compute(Expr::Build { size: count.clone(), index: i, body });
            let [value, rows] = [0, 1].map(|k| {
                self.out.build(count.clone(), &mut |out, i| {
                    let pair = out.element(whole, i);
                    out.component(pair, k)
                })
            });
            self.copies.insert(stmt.var, value);
            return rows;
        }
        let triple = self.out.builder.tuple(&[nothing, row, value]);
        let body = self.out.close(triple);
        self.out.set_span(stmt.span);
        let state = self.out.builder.fresh(Type::tuple(Vec::new()));
        let whole = self.out.builder.compute(Expr::Loop(StateLoop { count, index: i, state, init: nothing, body }));
        let value = self.out.component(whole, 2);
        self.copies.insert(stmt.var, value);
        self.out.component(whole, 1)
    }

    /// Takes the numbers of `tape` from `row` from here on.
    pub(super) fn enter_tape(&mut self, tape: &Tape, row: VarId) {
        for (k, item) in tape.items.iter().enumerate() {
            let part = self.out.component(row, k);
            match item {
                Item::Number(var) => {
                    self.copies.insert(*var, part);
                    self.numbers.insert(*var);
                }
                Item::Loop(var, inner) => {
                    self.tapes.insert(*var, (inner.clone(), part));
                }
            }
        }
    }

    /// Recomputes the numbers of `tape` from here on.
    pub(super) fn leave_tape(&mut self, tape: &Tape) {
        for item in &tape.items {
            match item {
                Item::Number(var) => {
                    self.numbers.remove(var);
                }
                Item::Loop(var, _) => {
                    self.tapes.remove(var);
                }
            }
        }
    }

    /// Returns the tape of the loop that is bound to `var`, and enters the row of iteration `i`.
    pub(super) fn enter_iteration(&mut self, var: VarId, i: VarId) -> Option<Tape> {
        let (tape, rows) = self.tapes.get(&var).cloned()?;
        let row = self.out.element(rows, i);
        self.enter_tape(&tape, row);
        Some(tape)
    }

    /// Emits `stmt`, part of which is taped, into the open block.
    pub(super) fn again(&mut self, stmt: &Stmt) {
        let (Expr::Build { size: count, index, body } | Expr::Sum { count, index, body }) = &stmt.expr else { return };
        let count = self.size(count);
        let i = self.out.builder.fresh(Type::Int);
        self.copies.insert(*index, i);
        self.out.open();
        let tape = self.enter_iteration(stmt.var, i);
        for inner in &body.stmts {
            self.out.set_span(inner.span);
            if self.tapes.contains_key(&inner.var) {
                self.again(inner);
            } else if !self.numbers.contains(&inner.var) {
                self.alone(inner);
            }
        }
        tape.iter().for_each(|tape| self.leave_tape(tape));
        let body = self.out.close(self.copies.get(body.result));
        self.out.set_span(stmt.span);
        let whole = match stmt.expr {
            Expr::Build { .. } => Expr::Build { size: count, index: i, body },
            _ => Expr::Sum { count, index: i, body },
        };
        let copy = self.out.builder.compute(whole);
        self.copies.insert(stmt.var, copy);
    }

    /// Emits `stmt` into the open block.
    pub(super) fn alone(&mut self, stmt: &Stmt) {
        match &stmt.expr {
            Expr::Real(c) => {
                let copy = self.out.real(*c);
                self.copies.insert(stmt.var, copy);
            }
            _ => {
                let alone = Block { stmts: vec![stmt.clone()], result: stmt.var };
                self.out.builder.inline(&alone, &mut self.copies);
            }
        }
    }
}
