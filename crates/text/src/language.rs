//! The interface of a target language.
//!
//! [`Writer`](crate::Writer) determines the order of statements; a [`Language`] determines their spelling. Its methods
//! take and return names and expressions as text, and do not depend on the order.

use crate::unit::{Param, Unit};
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Reg, Signs};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// Address of an element, or a length: an integer expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The expression.
    pub text: String,
    /// Value, if known.
    pub constant: Option<i64>,
}

/// A finished piece, for its definition and its calls.
pub struct Piece<'a> {
    /// Name of its function.
    pub name: &'a str,
    /// Parameters, in order.
    pub params: &'a BTreeSet<Param>,
    /// Declarations of pointers into the workspace.
    pub pointers: &'a [String],
    /// Statements.
    pub lines: &'a str,
    /// Whether it can fail.
    pub can_fail: bool,
}

/// The kernel's own function.
pub struct Whole<'a> {
    /// Used parameters.
    pub used: &'a BTreeSet<Param>,
    /// Checks at entry.
    pub entry: &'a str,
    /// Declarations of pointers into the workspace.
    pub pointers: &'a [String],
    /// Statements.
    pub lines: &'a str,
}

/// A sum of products that may overflow: the factors of each term.
pub type Terms = Vec<Vec<String>>;

/// Kind of a declared variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// Never assigned again.
    Constant,
    /// Assigned later.
    Assigned,
}

/// Spelling of a target language.
pub trait Language {
    /// Whether [`check_lengths`](Self::check_lengths) needs the lengths.
    const CHECKS_LENGTHS: bool = false;

    /// Returns whether `name` has another meaning in the language or in the emitted code.
    fn is_reserved(name: &str) -> bool;

    /// Returns whether emitted code may be linked with another function called `name`, which then cannot be emitted.
    fn is_linked(_name: &str) -> bool {
        false
    }

    /// Returns the names that the function `name` defines at file scope, its own first.
    fn family(name: &str) -> Vec<String>;

    /// Returns whether a parameter or another function may be called `name` in a file with the function `function`,
    /// considering names that are generated later, such as those of pieces.
    fn may_stand_beside(function: &str, name: &str) -> bool;

    /// Returns a number, which may be an argument of any operator.
    fn real(&mut self, value: f64) -> String;

    /// Returns an integer as an atom.
    fn int(&self, value: i64) -> String;

    /// Declares the variable `name` of the type of register `r`.
    fn declare(&self, unit: &Unit<'_>, r: Reg, name: &str, value: Option<&str>, binding: Binding) -> String;

    /// Returns the larger of an integer and 0, as an atom.
    fn natural(value: &str) -> String;

    /// Declares a constant integer.
    fn declare_int(&self, name: &str, value: &str) -> String;

    /// Converts the value of register `of`, whose text is `value`, to the type of register `to`.
    fn converted(&mut self, _unit: &Unit<'_>, _of: Reg, _to: Reg, value: String) -> String {
        value
    }

    /// Declares the integer `name` as a sum of products whose steps may overflow; runs `fail` if one does. `fresh` is a
    /// name for intermediate results.
    fn checked_sum(&mut self, name: &str, terms: &Terms, fresh: &str, fail: &str) -> Vec<String>;

    /// Fails with a code of the unit.
    fn fail(&self, unit: &Unit<'_>, code: usize) -> String;

    /// Runs `fail` if `condition` holds.
    fn fail_if(&self, condition: &str, fail: &str) -> String;

    /// At entry, fails unless a size parameter is between 0 and `limit`.
    fn check_size(&self, name: &str, limit: i64, fail: &str) -> Vec<String>;

    /// Checks lengths at entry, after all other checks. `lengths` are those of inputs, outputs, then workspaces, as
    /// expressions that are at most `i64::MAX / 16`.
    fn check_lengths(&mut self, _unit: &Unit<'_>, _lengths: &[At]) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of elements for which addresses do not overflow: `i64::MAX / 16`.
    fn greatest_length(&self) -> &'static str;

    /// Returns which of the two workspaces contains a register's slot.
    fn space(&self, unit: &Unit<'_>, r: Reg) -> usize {
        space(unit.kernel.regs[r])
    }

    /// Returns the condition that an index is out of range.
    fn out_of_range(&mut self, index: &str, len: &str) -> String;

    /// Returns a slot of the workspace of a class.
    fn slot(&self, unit: &Unit<'_>, r: Reg, slot: usize) -> String;

    /// Declares the pointer to a buffer in the workspace; `offset` is over sizes. `None` if it is not declared.
    fn pointer(&self, unit: &Unit<'_>, buffer: BufferId, name: &str, offset: &Poly<Reg>) -> Option<String>;

    /// Returns the value of an element.
    fn load(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At) -> String;

    /// Stores an element: the value of register `value`, whose text is `text`.
    fn store(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At, value: Reg, text: &str) -> String;

    /// Copies `len` elements; a constant `len` is positive.
    fn copy(&mut self, unit: &Unit<'_>, to: (BufferId, &At), from: (BufferId, &At), len: &At) -> String;

    /// Opens `for name from 0 to bound`, up to the opening of the block. `is_used` tells whether the body uses `name`.
    fn open_for(&self, name: &str, is_used: bool, bound: &str) -> String;

    /// Opens a loop that counts `counter` from 0 and ends by a break, up to the opening of the block.
    fn open_while(&self, counter: &str) -> String;

    /// Leaves the loop if `holds` is 0.
    fn break_unless(&self, holds: &str) -> String;

    /// Opens a conditional, up to the opening of the block.
    fn open_if(&self, condition: &str) -> String;

    /// Applies an operator on numbers, for register `dst`.
    fn op(&mut self, unit: &Unit<'_>, dst: Reg, op: Op, args: &[(Reg, String)]) -> String;

    /// Returns a fused multiply-add.
    fn mul_add(&mut self, signs: Signs, args: &[String; 3]) -> String;

    /// Applies an operator on integers: returns preceding statements and its value. `fail` is present if it can fail;
    /// `fresh` is an unused name; if it is not `needed`, the value is not used.
    fn int_op(
        &mut self,
        op: Op,
        args: &[String],
        fail: Option<&str>,
        fresh: &str,
        needed: bool,
    ) -> (Vec<String>, String);

    /// Converts an integer to a number.
    fn to_real(&mut self, unit: &Unit<'_>, src: Reg, text: &str) -> String;

    /// Converts a number to an integer, as [`chainrule_ops::truncate`] does.
    fn to_int(&mut self, text: &str) -> String;

    /// Calls a user function.
    fn external(&mut self, unit: &Unit<'_>, function: usize, args: &[String]) -> String;

    /// Returns the definition of a piece.
    fn piece(&mut self, unit: &Unit<'_>, piece: &Piece<'_>) -> String;

    /// Returns the lines that call a piece; `fresh` is an unused name.
    fn call(&self, unit: &Unit<'_>, piece: &Piece<'_>, fresh: &str) -> Vec<String>;

    /// Returns the definition of the kernel's own function.
    fn whole(&mut self, unit: &Unit<'_>, whole: &Whole<'_>) -> String;
}

/// Returns `template` with `write` applied at its arguments. `write` gets the text before and after the argument, and
/// the argument's number.
pub fn fill(template: &str, mut write: impl FnMut(&str, &str, usize) -> String) -> String {
    let mut text = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        // A brace of the language itself.
        let Some((place, after_place)) = after.split_once('}').and_then(|(n, after)| Some((n.parse().ok()?, after)))
        else {
            text.push_str(before);
            text.push('{');
            rest = after;
            continue;
        };
        text.push_str(before);
        let argument = write(&text, after_place, place);
        text.push_str(&argument);
        rest = after_place;
    }
    text.push_str(rest);
    text
}

/// Returns the workspace of a class: 0 for doubles, 1 for integers.
#[must_use]
pub fn space(class: Class) -> usize {
    match class {
        Class::Real => 0,
        Class::Int => 1,
    }
}
