//! Statements: a kernel's events as the text of functions.
//!
//! In: events, [`Facts`], [`Pieces`], a [`Unit`], a [`Language`]. Out: the text of the functions of pieces and of the
//! kernel's own function.
//!
//! A register is a variable of the block that defines it: `r_7` a number, `i_7` an integer. A value from another
//! function is read from its slot in the workspace before its first use, once for each block. Functions of pieces
//! precede the functions that call them.

use crate::facts::{Facts, Origin, can_fail, number};
use crate::language::{At, Binding, Language, Piece, Terms, Whole};
use crate::pieces::Pieces;
use crate::unit::{Param, Unit};
use chainrule_base::{Id, Poly};
use chainrule_kernel::{BufferId, Carried, Choice, Class, Event, Instr, Place, Reg};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A function under construction.
struct Function {
    /// 0 for the kernel's own function, `k + 1` for piece `k`.
    id: usize,
    /// End of its events.
    end: usize,
    lines: String,
    depth: usize,
    params: BTreeSet<Param>,
    /// Buffers of the workspace that have a pointer.
    buffers: BTreeSet<BufferId>,
    /// Values of other functions that have a variable here, with the block of the variable.
    loaded: BTreeSet<Reg>,
    blocks: Vec<Vec<Reg>>,
    can_fail: bool,
}

impl Function {
    fn new(id: usize, end: usize) -> Self {
        Self {
            id,
            end,
            lines: String::new(),
            depth: 1,
            params: BTreeSet::new(),
            buffers: BTreeSet::new(),
            loaded: BTreeSet::new(),
            blocks: vec![Vec::new()],
            can_fail: false,
        }
    }
}

/// Writer of the functions of one kernel.
pub struct Writer<'a, L> {
    unit: &'a Unit<'a>,
    facts: &'a Facts,
    pieces: &'a Pieces,
    language: &'a mut L,
    /// Open functions, the kernel's own first; text is written to the last one.
    open: Vec<Function>,
    current: Function,
    /// Whether each code is returned.
    used_codes: Vec<bool>,
    counter: usize,
    /// Checks at entry; no address may be computed until they have passed.
    entry: String,
    /// Limits and counters of open `while` loops.
    whiles: Vec<(String, String)>,
    done: String,
}

/// Text of a kernel.
pub struct Written {
    /// Text of all functions.
    pub text: String,
    /// Whether each code of the unit is returned.
    pub used_codes: Vec<bool>,
}

impl<'a, L: Language> Writer<'a, L> {
    /// Returns a writer of the kernel of `unit`, cut into `pieces`.
    pub fn new(unit: &'a Unit<'a>, facts: &'a Facts, pieces: &'a Pieces, language: &'a mut L) -> Self {
        Self {
            unit,
            facts,
            pieces,
            language,
            open: Vec::new(),
            current: Function::new(0, usize::MAX),
            used_codes: vec![false; unit.codes.len()],
            counter: 0,
            entry: String::new(),
            whiles: Vec::new(),
            done: String::new(),
        }
    }

    /// Writes all functions.
    #[must_use]
    pub fn write(mut self, events: &[Event<'_>]) -> Written {
        self.entry();
        self.entry = std::mem::take(&mut self.current.lines);
        let choices = choices(events);
        let mut next_piece = 0;
        for (at, event) in events.iter().enumerate() {
            self.close_pieces(at);
            if let Some((_, end)) = self.pieces.ranges.get(next_piece).filter(|range| range.0 == at) {
                next_piece += 1;
                let outer = std::mem::replace(&mut self.current, Function::new(next_piece, *end));
                self.open.push(outer);
            }
            if let Some(choices) = choices.get(&at) {
                for c in choices.iter().filter(|c| self.facts.needed[c.var]) {
                    let variable = self.variable(c.var);
                    self.line(self.language.declare(self.unit, c.var, &variable, None, Binding::Assigned));
                }
            }
            if self.facts.is_written(event) {
                self.event(event);
            }
        }
        self.close_pieces(events.len());
        self.finish();
        Written { text: self.done, used_codes: self.used_codes }
    }

    fn close_pieces(&mut self, at: usize) {
        while self.current.end == at {
            let Some(outer) = self.open.pop() else { return };
            let piece = std::mem::replace(&mut self.current, outer);
            let name = format!("{}_part{}", self.unit.name, piece.id);
            let pointers = self.pointers(&piece);
            // Pointers use sizes and workspace.
            let params = self.with_pointers(&piece);
            let (lines, can_fail) = (&piece.lines, piece.can_fail);
            let piece = Piece { name: &name, params: &params, pointers: &pointers, lines, can_fail };
            let text = self.language.piece(self.unit, &piece);
            self.done.push_str(&text);
            self.current.can_fail |= can_fail;
            let fresh = if can_fail { self.fresh() } else { String::new() };
            for line in self.language.call(self.unit, &piece, &fresh) {
                self.line(line);
            }
            self.current.params.extend(params);
        }
    }

    fn finish(&mut self) {
        let main = std::mem::replace(&mut self.current, Function::new(0, usize::MAX));
        let pointers = self.pointers(&main);
        let used = self.with_pointers(&main);
        let whole = Whole { used: &used, entry: &self.entry, pointers: &pointers, lines: &main.lines };
        let text = self.language.whole(self.unit, &whole);
        self.done.push_str(&text);
    }

    /// Returns the declarations of pointers into the workspace.
    fn pointers(&self, function: &Function) -> Vec<String> {
        let mut lines = Vec::new();
        for id in &function.buffers {
            let buffer = &self.unit.kernel.buffers[*id];
            let Place::Workspace(offset) = &buffer.place else { continue };
            let offset = offset.add(&self.unit.slots(buffer.class));
            lines.extend(self.language.pointer(self.unit, *id, &buffer_name(*id), &offset));
        }
        lines
    }

    /// Returns the parameters that a function uses, including those of its pointers.
    fn with_pointers(&self, function: &Function) -> BTreeSet<Param> {
        let mut params = function.params.clone();
        for id in &function.buffers {
            let buffer = &self.unit.kernel.buffers[*id];
            let Place::Workspace(offset) = &buffer.place else { continue };
            if self.unit.workspace(buffer.class).is_zero() {
                continue;
            }
            params.insert(if buffer.class == Class::Real { Param::Work } else { Param::IntWork });
            for r in offset.vars() {
                if let Origin::Size(_) = self.facts.origin[r] {
                    params.extend(self.unit.size_params(r));
                }
            }
        }
        params
    }

    /// Writes the checks at entry.
    fn entry(&mut self) {
        let unit = self.unit;
        for param in unit.params() {
            if let Param::Size(size) = param {
                let name = &unit.sizes[size];
                self.current.params.insert(param);
                let fail = self.fail(SIZE);
                for line in self.language.check_size(name, crate::facts::MAX_EXTENT, &fail) {
                    self.line(line);
                }
            }
        }
        for extent in unit.kernel.inputs.iter().flat_map(|port| &port.shape) {
            if self.facts.poly(extent).is_none_or(|(lo, _)| lo < 0) {
                let value = self.checked(extent, SIZE);
                let fail = self.fail(SIZE);
                self.line(self.language.fail_if(&format!("{value} < 0"), &fail));
            }
        }
        for of in unit.naturals() {
            self.checked(of, SIZE);
        }
        for (condition, code) in unit.kernel.requires.iter().zip(&unit.condition_codes) {
            if let Some(value) = condition.size.as_constant() {
                if value < 0 || (condition.exactly_zero && value != 0) {
                    let fail = self.fail(*code);
                    self.line(format_args!("{fail}"));
                }
                continue;
            }
            let value = self.checked(&condition.size, SIZE);
            let fail = self.fail(*code);
            let relation = if condition.exactly_zero { "!=" } else { "<" };
            self.line(self.language.fail_if(&format!("{value} {relation} 0"), &fail));
        }
        let ports = unit.kernel.inputs.iter().chain(&unit.kernel.outputs);
        let mut lengths: Vec<Poly<Reg>> = ports.map(|port| unit.kernel.buffers[port.buffer].len.clone()).collect();
        lengths.extend([unit.workspace(Class::Real), unit.workspace(Class::Int)]);
        let mut seen: BTreeMap<Poly<Reg>, String> = BTreeMap::new();
        let mut values = Vec::new();
        for len in lengths {
            // Short sums of extents and small multiples of them need no check.
            let small = self.facts.poly(&len).is_some_and(|(lo, hi)| lo > -MEMORY && hi <= MEMORY);
            let mut text = seen.get(&len).cloned();
            if !small && text.is_none() {
                let value = self.checked(&len, SIZE);
                let fail = self.fail(SIZE);
                let limit = self.language.greatest_length();
                self.line(self.language.fail_if(&format!("{value} > {limit}"), &fail));
                seen.insert(len.clone(), value.clone());
                text = Some(value);
            }
            if L::CHECKS_LENGTHS {
                let text = text.unwrap_or_else(|| self.poly(&len));
                values.push(At { text, constant: len.as_constant() });
            }
        }
        for line in self.language.check_lengths(unit, &values) {
            self.line(line);
        }
    }

    fn line(&mut self, text: impl std::fmt::Display) {
        /// Maximum indentation, so that deep nesting does not make the text quadratic.
        const DEEPEST: usize = 24;
        let width = 4 * self.current.depth.min(DEEPEST);
        let _ = writeln!(self.current.lines, "{:width$}{text}", "");
    }

    fn open_block(&mut self) {
        self.current.depth += 1;
        self.current.blocks.push(Vec::new());
    }

    fn close_block(&mut self) {
        self.current.depth -= 1;
        for r in self.current.blocks.pop().unwrap_or_default() {
            self.current.loaded.remove(&r);
        }
    }

    /// Returns `return F_E_...;`.
    fn fail(&mut self, code: usize) -> String {
        self.current.can_fail = true;
        self.used_codes[code] = true;
        self.language.fail(self.unit, code)
    }

    fn failure(&mut self, failure: usize) -> String {
        self.fail(self.unit.failure_codes[failure])
    }

    fn fresh(&mut self) -> String {
        self.counter += 1;
        format!("c_{}", self.counter)
    }

    /// Returns the name of a register's variable.
    fn variable(&self, r: Reg) -> String {
        match self.unit.kernel.regs[r] {
            Class::Real => format!("r_{}", number(r)),
            Class::Int => format!("i_{}", number(r)),
        }
    }

    /// Returns the slot of a register that another function uses.
    fn slot(&mut self, r: Reg) -> Option<String> {
        let slot = self.pieces.slot[r]?;
        self.current.params.insert(if self.language.space(self.unit, r) == 0 { Param::Work } else { Param::IntWork });
        Some(self.language.slot(self.unit, r, slot))
    }

    /// Returns an atomic expression for the value of a register. May write a line that loads the value.
    fn atom(&mut self, r: Reg) -> String {
        match &self.facts.origin[r] {
            Origin::Const(value) => return self.language.real(*value),
            Origin::Size(size) => {
                self.current.params.extend(self.unit.size_params(r));
                return self.unit.sizes[*size].clone();
            }
            Origin::Scalar(input) => return self.param(Param::Input(*input)),
            Origin::Element(..) | Origin::Computed => {}
        }
        let variable = self.variable(r);
        if self.pieces.home[r] == self.current.id || self.current.loaded.contains(&r) {
            return variable;
        }
        let from = match self.facts.origin[r] {
            Origin::Element(buffer, at) => self.load(buffer, &Poly::constant(at)),
            _ => self.slot(r).unwrap_or_else(|| "0".to_owned()),
        };
        self.line(self.language.declare(self.unit, r, &variable, Some(&from), Binding::Constant));
        self.current.loaded.insert(r);
        if let Some(block) = self.current.blocks.last_mut() {
            block.push(r);
        }
        variable
    }

    fn param(&mut self, param: Param) -> String {
        self.current.params.insert(param);
        self.unit.param_name(param).to_owned()
    }

    /// Returns `poly` as an expression that does not overflow.
    fn poly(&mut self, poly: &Poly<Reg>) -> String {
        if let Some(value) = poly.as_constant() {
            return self.language.int(value);
        }
        let mut text = String::new();
        let (constant, rest): (Vec<_>, Vec<_>) = poly.terms().partition(|(monomial, _)| monomial.is_empty());
        for (idx, (monomial, c)) in rest.into_iter().chain(constant).enumerate() {
            text.push_str(match (idx, c < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            });
            let magnitude = c.unsigned_abs();
            if magnitude != 1 || monomial.is_empty() {
                let _ = write!(text, "{magnitude}");
                if !monomial.is_empty() {
                    text.push('*');
                }
            }
            for (place, r) in monomial.iter().enumerate() {
                if place > 0 {
                    text.push('*');
                }
                text.push_str(&self.atom(*r));
            }
        }
        text
    }

    /// Returns `poly` as an expression. If it may overflow, it is computed step by step in the interpreter's order, and
    /// fails with `code`.
    fn checked(&mut self, poly: &Poly<Reg>, code: usize) -> String {
        if !self.facts.may_overflow(poly) {
            return self.poly(poly);
        }
        let name = self.fresh();
        self.checked_into(&name, poly, code);
        name
    }

    /// Declares `name` with the value of `poly`, which may overflow.
    fn checked_into(&mut self, name: &str, poly: &Poly<Reg>, code: usize) {
        let fresh = self.fresh();
        let mut terms: Terms = Vec::new();
        for (monomial, c) in poly.terms() {
            let mut factors: Vec<String> = Vec::new();
            if c != 1 || monomial.is_empty() {
                factors.push(self.language.int(c));
            }
            for r in monomial {
                factors.push(self.atom(*r));
            }
            terms.push(factors);
        }
        let can_fail = terms.len() > 1 || terms.iter().any(|factors| factors.len() > 1);
        let fail = if can_fail { self.fail(code) } else { String::new() };
        for line in self.language.checked_sum(name, &terms, &fresh, &fail) {
            self.line(line);
        }
    }

    /// Returns the address of an element, or a length. For elements, records the use of their buffer.
    fn at(&mut self, poly: &Poly<Reg>) -> At {
        At { text: self.poly(poly), constant: poly.as_constant() }
    }

    fn uses_buffer(&mut self, buffer: BufferId) {
        match &self.unit.kernel.buffers[buffer].place {
            Place::Input(input) => drop(self.param(Param::Input(*input))),
            Place::Output(output) => drop(self.param(Param::Output(*output))),
            Place::Workspace(_) => drop(self.current.buffers.insert(buffer)),
        }
    }

    fn load(&mut self, buffer: BufferId, at: &Poly<Reg>) -> String {
        let at = self.at(at);
        self.uses_buffer(buffer);
        self.language.load(self.unit, buffer, &at)
    }

    /// Declares `dst` with a value, and stores it in its slot.
    fn define(&mut self, dst: Reg, value: &str) {
        let remote = matches!(self.facts.origin[dst], Origin::Element(..)) && !self.pieces.used_at_home[dst];
        if remote {
            return;
        }
        let variable = self.variable(dst);
        match self.slot(dst) {
            Some(slot) if !self.pieces.used_at_home[dst] => self.line(format_args!("{slot} = {value};")),
            slot => {
                self.line(self.language.declare(self.unit, dst, &variable, Some(value), Binding::Constant));
                if let Some(slot) = slot {
                    self.line(format_args!("{slot} = {variable};"));
                }
            }
        }
    }

    /// Stores changed variables in their slots.
    fn keep(&mut self, regs: impl Iterator<Item = Reg>) {
        for r in regs {
            if let Some(slot) = self.slot(r) {
                let variable = self.variable(r);
                self.line(format_args!("{slot} = {variable};"));
            }
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Instr(instr) => self.instr(instr),
            Event::Copy { to, from, len, .. } => self.copy(to, from, len),
            Event::For { index, count, carried, .. } => {
                let bound = self.checked(count, OVERFLOW);
                let bound = if count.as_constant().is_some() || count.as_var().is_some() || bound.starts_with("c_") {
                    bound
                } else {
                    let name = self.fresh();
                    self.line(self.language.declare_int(&name, &bound));
                    name
                };
                self.enter(carried);
                let i = self.variable(*index);
                self.line(self.language.open_for(&i, self.facts.needed[*index], &bound));
                self.open_block();
                if self.facts.needed[*index] {
                    self.keep(std::iter::once(*index));
                }
            }
            Event::EndFor { carried, .. } => {
                self.advance(carried);
                self.close_block();
                self.line("}");
            }
            Event::While { carried, limit } => {
                let bound = self.checked(limit, OVERFLOW);
                self.enter(carried);
                let counter = self.fresh();
                self.line(self.language.open_while(&counter));
                self.whiles.push((counter, bound));
                self.open_block();
            }
            Event::Test { holds, failure } => {
                let holds = self.atom(*holds);
                self.line(self.language.break_unless(&holds));
                let fail = self.failure(*failure);
                if let Some((counter, bound)) = self.whiles.pop() {
                    self.line(self.language.fail_if(&format!("{counter} >= {bound}"), &fail));
                }
            }
            Event::EndWhile { carried } => {
                self.advance(carried);
                self.close_block();
                self.line("}");
            }
            Event::If { condition } => {
                let condition = self.atom(*condition);
                self.line(self.language.open_if(&format!("{condition} != 0")));
                self.open_block();
            }
            Event::Else { choices } => {
                self.choose(choices, |c| c.then);
                self.close_block();
                self.line("} else {");
                self.open_block();
            }
            Event::EndIf { choices } => {
                self.choose(choices, |c| c.otherwise);
                self.close_block();
                self.line("}");
                let facts = self.facts;
                self.keep(choices.iter().map(|c| c.var).filter(|var| facts.needed[*var]));
            }
        }
    }

    fn copy(&mut self, to: &(BufferId, Poly<Reg>), from: &(BufferId, Poly<Reg>), len: &Poly<Reg>) {
        if len.as_constant().is_some_and(|len| len <= 0) {
            return;
        }
        let (to_at, from_at, len) = (self.at(&to.1), self.at(&from.1), self.at(len));
        self.uses_buffer(to.0);
        self.uses_buffer(from.0);
        let line = self.language.copy(self.unit, (to.0, &to_at), (from.0, &from_at), &len);
        self.line(line);
    }

    /// Declares the loop-carried variables.
    fn enter(&mut self, carried: &[Carried]) {
        for c in carried.iter().filter(|c| self.facts.needed[c.var]) {
            let init = self.atom(c.init);
            let init = self.language.converted(self.unit, c.init, c.var, init);
            let variable = self.variable(c.var);
            self.line(self.language.declare(self.unit, c.var, &variable, Some(&init), Binding::Assigned));
            self.keep(std::iter::once(c.var));
        }
    }

    /// Updates the loop-carried variables in parallel.
    fn advance(&mut self, carried: &[Carried]) {
        let needed: Vec<Carried> =
            carried.iter().filter(|c| self.facts.needed[c.var] && c.next != c.var).copied().collect();
        let vars: BTreeSet<Reg> = needed.iter().map(|c| c.var).collect();
        let mut next: Vec<String> = Vec::new();
        for c in &needed {
            let mut value = self.atom(c.next);
            if vars.contains(&c.next) {
                let name = self.fresh();
                self.line(self.language.declare(self.unit, c.next, &name, Some(&value), Binding::Constant));
                value = name;
            }
            next.push(self.language.converted(self.unit, c.next, c.var, value));
        }
        for (c, value) in needed.iter().zip(next) {
            let variable = self.variable(c.var);
            self.line(format_args!("{variable} = {value};"));
            self.keep(std::iter::once(c.var));
        }
    }

    /// Assigns the results of a branch.
    fn choose(&mut self, choices: &[Choice], branch: impl Fn(&Choice) -> Reg) {
        for c in choices.iter().filter(|c| self.facts.needed[c.var]) {
            let value = self.atom(branch(c));
            let value = self.language.converted(self.unit, branch(c), c.var, value);
            let variable = self.variable(c.var);
            self.line(format_args!("{variable} = {value};"));
        }
    }

    fn instr(&mut self, instr: &Instr) {
        match instr {
            Instr::Const { .. } => {}
            Instr::Int { dst, value } => {
                if self.facts.may_overflow(value) {
                    let variable = self.variable(*dst);
                    self.checked_into(&variable, value, OVERFLOW);
                    self.keep(std::iter::once(*dst));
                } else {
                    let value = self.poly(value);
                    self.define(*dst, &value);
                }
            }
            Instr::Op { dst, op, args } => {
                let args: Vec<(Reg, String)> = args[..op.arity()].iter().map(|r| (*r, self.atom(*r))).collect();
                let value = self.language.op(self.unit, *dst, *op, &args);
                self.define(*dst, &value);
            }
            Instr::MulAdd { dst, signs, args } => {
                let args = args.map(|r| self.atom(r));
                let value = self.language.mul_add(*signs, &args);
                self.define(*dst, &value);
            }
            Instr::IntOp { dst, op, args, failure } => {
                let args: Vec<String> = args[..op.arity()].iter().map(|r| self.atom(*r)).collect();
                let fail = can_fail(*op).then(|| self.failure(*failure));
                let (fresh, needed) = (self.fresh(), self.facts.needed[*dst]);
                let (before, value) = self.language.int_op(*op, &args, fail.as_deref(), &fresh, needed);
                before.into_iter().for_each(|line| self.line(line));
                if needed {
                    self.define(*dst, &value);
                }
            }
            Instr::ToReal { dst, src } => {
                let text = self.atom(*src);
                let value = self.language.to_real(self.unit, *src, &text);
                self.define(*dst, &value);
            }
            Instr::ToInt { dst, src } => {
                let text = self.atom(*src);
                let value = self.language.to_int(&text);
                self.define(*dst, &value);
            }
            Instr::External { dst, function, args } => {
                let args: Vec<String> = args.iter().map(|r| self.atom(*r)).collect();
                let value = self.language.external(self.unit, *function, &args);
                self.define(*dst, &value);
            }
            Instr::Load { dst, buffer, at } => {
                if self.pieces.used_at_home[*dst] || !matches!(self.facts.origin[*dst], Origin::Element(..)) {
                    let value = self.load(*buffer, at);
                    self.define(*dst, &value);
                }
            }
            Instr::Store { buffer, at, value } => {
                let text = self.atom(*value);
                let at = self.at(at);
                self.uses_buffer(*buffer);
                let line = self.language.store(self.unit, *buffer, &at, *value, &text);
                self.line(line);
            }
            Instr::CheckIndex { index, len, failure } => {
                let len = self.checked(len, OVERFLOW);
                let index = self.atom(*index);
                let outside = self.language.out_of_range(&index, &len);
                let fail = self.failure(*failure);
                self.line(self.language.fail_if(&outside, &fail));
            }
        }
    }
}

/// Codes that always exist: indices into [`Unit::codes`].
const SIZE: usize = 0;
const OVERFLOW: usize = 1;

/// Number of elements for which addresses do not overflow.
const MEMORY: i128 = (i64::MAX / 16) as i128;

/// Returns the results of each branch by its opening event, without branches that have none.
fn choices<'k>(events: &[Event<'k>]) -> BTreeMap<usize, &'k [Choice]> {
    let (mut found, mut open) = (BTreeMap::new(), Vec::new());
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::If { .. } => open.push(at),
            Event::EndIf { choices } => {
                if let Some(start) = open.pop().filter(|_| !choices.is_empty()) {
                    found.insert(start, *choices);
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the name of a buffer in the workspace.
#[must_use]
pub fn buffer_name(buffer: BufferId) -> String {
    format!("b_{}", buffer.index())
}
