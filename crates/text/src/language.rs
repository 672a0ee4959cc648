//! What differs from one language to another.
//!
//! [`Writer`](crate::Writer) knows in which order things are said; a [`Language`] knows how each is
//! spelt. Its methods get names and expressions as text and give text; none of them looks at the order.

use crate::unit::{Param, Unit};
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Class, Reg, Signs};
use chainrule_ops::Op;
use std::collections::BTreeSet;

/// The address of an element, or a length: an expression for an integer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The expression.
    pub text: String,
    /// Its value, if that is known.
    pub constant: Option<i64>,
}

/// A piece that has been written: what its definition and its call need.
pub struct Piece<'a> {
    /// The name of its function.
    pub name: &'a str,
    /// Its parameters, in order.
    pub params: &'a BTreeSet<Param>,
    /// The declarations of places in the workspace.
    pub pointers: &'a [String],
    /// Its statements.
    pub lines: &'a str,
    /// Whether it can fail.
    pub can_fail: bool,
}

/// The kernel's own function.
pub struct Whole<'a> {
    /// The parameters that are used.
    pub used: &'a BTreeSet<Param>,
    /// The checks at entry.
    pub entry: &'a str,
    /// The declarations of places in the workspace.
    pub pointers: &'a [String],
    /// Its statements.
    pub lines: &'a str,
}

/// The steps of a sum of products that may overflow: the factors of each term.
pub type Terms = Vec<Vec<String>>;

/// How one language spells what a [`Writer`](crate::Writer) says.
pub trait Language {
    /// Whether [`check_lengths`](Self::check_lengths) wants to know them.
    const CHECKS_LENGTHS: bool = false;

    /// Whether `name` means something else in the language or in the emitted code.
    fn is_reserved(name: &str) -> bool;

    /// Whether emitted code may be linked with another function called `name`, so that no function of ours is.
    fn is_linked(_name: &str) -> bool {
        false
    }

    /// The names that the function `name` brings with it at file scope, its own first.
    fn family(name: &str) -> Vec<String>;

    /// Whether a parameter or another function may be called `name` in a file with the function `function`, as far as names
    /// go that are made later, such as those of pieces.
    fn may_stand_beside(function: &str, name: &str) -> bool;

    /// A number. It may stand wherever an argument of an operator stands.
    fn real(&mut self, value: f64) -> String;

    /// An integer; an atom.
    fn int(&self, value: i64) -> String;

    /// Declares the variable `name` of the type of register `r`. It `changes` later, or does not.
    fn declare(&self, unit: &Unit<'_>, r: Reg, name: &str, value: Option<&str>, changes: bool) -> String;

    /// Declares an integer that does not change.
    fn declare_int(&self, name: &str, value: &str) -> String;

    /// The value of register `of`, whose text is `value`, as one of the type of register `to`.
    fn converted(&mut self, _unit: &Unit<'_>, _of: Reg, _to: Reg, value: String) -> String {
        value
    }

    /// Declares the integer `name`, a sum of products each step of which may overflow; then `fail`.
    /// `fresh` is a name for what lies between.
    fn checked_sum(&mut self, name: &str, terms: &Terms, fresh: &str, fail: &str) -> Vec<String>;

    /// Fails with a code of the unit.
    fn fail(&self, unit: &Unit<'_>, code: usize) -> String;

    /// Runs `fail` where `condition` holds.
    fn fail_if(&self, condition: &str, fail: &str) -> String;

    /// At entry, for a size that is a parameter: fails unless it lies between 0 and `limit`.
    fn check_size(&self, name: &str, limit: i64, fail: &str) -> Vec<String>;

    /// At entry, after all other checks: `lengths` are those of inputs, outputs, then the workspaces, as
    /// expressions that are at most `i64::MAX / 16` by now.
    fn check_lengths(&mut self, _unit: &Unit<'_>, _lengths: &[At]) -> Vec<String> {
        Vec::new()
    }

    /// How many elements surely do not make addresses overflow: `i64::MAX / 16`.
    fn greatest_length(&self) -> &'static str;

    /// In which of the two workspaces a register's slot lies.
    fn space(&self, unit: &Unit<'_>, r: Reg) -> usize {
        space(unit.kernel.regs[r])
    }

    /// The condition that an index is out of range.
    fn out_of_range(&mut self, index: &str, len: &str) -> String;

    /// A slot of the workspace of a class.
    fn slot(&self, unit: &Unit<'_>, r: Reg, slot: usize) -> String;

    /// Declares where a buffer lies in the workspace; `offset` is over sizes. `None` where it is not declared.
    fn pointer(&self, unit: &Unit<'_>, buffer: BufferId, name: &str, offset: &Poly<Reg>) -> Option<String>;

    /// The value of an element, for register `to`.
    fn load(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At) -> String;

    /// Writes an element: the value of register `value`, whose text is `text`.
    fn store(&mut self, unit: &Unit<'_>, buffer: BufferId, at: &At, value: Reg, text: &str) -> String;

    /// Copies `len` elements, more than none if `len` is a constant.
    fn copy(&mut self, unit: &Unit<'_>, to: (BufferId, &At), from: (BufferId, &At), len: &At) -> String;

    /// `for name from 0 to bound`, up to where the block opens. Where `name` is `None` it is not used.
    fn open_for(&self, name: &str, is_used: bool, bound: &str) -> String;

    /// A loop that counts `counter` from 0 on and ends by a break, up to where the block opens.
    fn open_while(&self, counter: &str) -> String;

    /// Leaves the loop where `holds` is 0.
    fn break_unless(&self, holds: &str) -> String;

    /// Up to where the block opens.
    fn open_if(&self, condition: &str) -> String;

    /// An operator on numbers, as a value for register `dst`.
    fn op(&mut self, unit: &Unit<'_>, dst: Reg, op: Op, args: &[(Reg, String)]) -> String;

    /// A product and a sum, rounded once.
    fn mul_add(&mut self, signs: Signs, args: &[String; 3]) -> String;

    /// An operator on integers: what is to be done before, and its value. `fail` is there where it can
    /// fail; `fresh` is a name that is not taken; where it is not `needed` the value is not used.
    fn int_op(
        &mut self,
        op: Op,
        args: &[String],
        fail: Option<&str>,
        fresh: &str,
        needed: bool,
    ) -> (Vec<String>, String);

    /// An integer as a number.
    fn to_real(&mut self, unit: &Unit<'_>, src: Reg, text: &str) -> String;

    /// A call of a user's function.
    fn external(&mut self, unit: &Unit<'_>, function: usize, args: &[String]) -> String;

    /// The definition of a piece.
    fn piece(&mut self, unit: &Unit<'_>, piece: &Piece<'_>) -> String;

    /// The lines that call a piece; `fresh` is a name that is not taken.
    fn call(&self, unit: &Unit<'_>, piece: &Piece<'_>, fresh: &str) -> Vec<String>;

    /// The definition of the kernel's own function.
    fn whole(&mut self, unit: &Unit<'_>, whole: &Whole<'_>) -> String;
}

/// `template` with `write` in the places of its arguments: it gets what stands before and after the
/// place, and the argument's number.
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

/// The class of a register's values as a space of the workspace: 0 and 1.
#[must_use]
pub fn space(class: Class) -> usize {
    match class {
        Class::Real => 0,
        Class::Int => 1,
    }
}
