//! Statements: a kernel's events as the text of C functions.
//!
//! In: events, [`Facts`], [`Pieces`], a [`Unit`]. Out: the text of static functions and of the kernel's
//! own, with what they need of helpers and headers.
//!
//! A register is a variable of the C block that its definition stands in: `r_7` a double, `i_7` an
//! integer. A value from another function is read from its slot of the workspace before its first use,
//! once a block. Functions of pieces are written before the functions that call them.

use crate::facts::{Facts, Origin, number};
use crate::pieces::Pieces;
use crate::unit::{Param, Unit};
use crate::{guard, literal};
use chainrule_base::{Id, Poly};
use chainrule_kernel::{BufferId, Carried, Choice, Class, Event, Instr, Place, Reg};
use chainrule_ops::Spelling;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What the text needs from outside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Needs {
    /// Definitions of helpers, each once, in the order of their first use.
    pub helpers: Vec<&'static str>,
    /// `math.h`.
    pub math: bool,
    /// `string.h`.
    pub string: bool,
    /// Whether there are pieces.
    pub pieces: bool,
}

impl Needs {
    pub fn helper(&mut self, helper: &'static str) {
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }

    /// What `spelling` needs.
    fn spelling(&mut self, spelling: Spelling) {
        if let Some(helper) = spelling.helper {
            self.helper(helper);
        }
    }
}

/// A function that is being written.
struct Function {
    /// 0 for the kernel's own, `k + 1` for piece `k`.
    id: usize,
    /// Where its events end.
    end: usize,
    lines: String,
    depth: usize,
    params: BTreeSet<Param>,
    /// Buffers of the workspace that have a pointer.
    buffers: BTreeSet<BufferId>,
    /// Values of other functions that have a variable here, and in which block.
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

/// Writes the functions of one kernel.
pub(crate) struct Writer<'a> {
    unit: &'a Unit<'a>,
    facts: &'a Facts,
    pieces: &'a Pieces,
    needs: &'a mut Needs,
    /// The functions that are open, the kernel's own first; the last one is being written.
    open: Vec<Function>,
    current: Function,
    /// Which codes are returned.
    used_codes: Vec<bool>,
    counter: usize,
    /// The checks at entry: as long as they have not passed, no address may be computed.
    entry: String,
    /// Limits and counters of `while` loops that are open.
    whiles: Vec<(String, String)>,
    done: String,
}

/// What was written of a kernel.
pub(crate) struct Written {
    /// The text of all functions.
    pub text: String,
    /// For each code of the unit whether it is returned.
    pub used_codes: Vec<bool>,
}

impl<'a> Writer<'a> {
    pub fn new(unit: &'a Unit<'a>, facts: &'a Facts, pieces: &'a Pieces, needs: &'a mut Needs) -> Self {
        Self {
            unit,
            facts,
            pieces,
            needs,
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
                    self.line(format_args!("{} {};", self.type_of(c.var), self.variable(c.var)));
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
            let (result, end) = if piece.can_fail { ("int", "    return 0;\n") } else { ("void", "") };
            let pointers = self.pointers(&piece);
            // The pointers use sizes and workspace.
            let params = self.with_pointers(&piece);
            let declarations: Vec<String> = params.iter().map(|p| self.unit.declaration(*p, true)).collect();
            let declarations = if declarations.is_empty() { "void".to_owned() } else { declarations.join(", ") };
            let lines = &piece.lines;
            let _ =
                write!(self.done, "static CR_PIECE {result} {name}({declarations})\n{{\n{pointers}{lines}{end}}}\n\n");
            self.needs.pieces = true;
            let arguments: Vec<&str> = params.iter().map(|p| self.unit.param_name(*p)).collect();
            let call = format!("{name}({})", arguments.join(", "));
            self.current.params.extend(params);
            if piece.can_fail {
                self.current.can_fail = true;
                let error = self.fresh();
                self.line(format_args!("const int {error} = {call};"));
                self.line(format_args!("if ({error} != 0) return {error};"));
            } else {
                self.line(format_args!("{call};"));
            }
        }
    }

    fn finish(&mut self) {
        let main = std::mem::replace(&mut self.current, Function::new(0, usize::MAX));
        let pointers = self.pointers(&main);
        let used = self.with_pointers(&main);
        let params = self.unit.params();
        let declarations: Vec<String> = params.iter().map(|p| self.unit.declaration(*p, true)).collect();
        let declarations = if declarations.is_empty() { "void".to_owned() } else { declarations.join(", ") };
        let _ = write!(self.done, "int {}({declarations})\n{{\n", self.unit.name);
        for param in params.iter().filter(|param| !used.contains(param)) {
            let _ = writeln!(self.done, "    (void){};", self.unit.param_name(*param));
        }
        let _ = write!(self.done, "{}{pointers}{}    return 0;\n}}\n\n", self.entry, main.lines);
    }

    /// The declarations of the pointers into the workspace.
    fn pointers(&self, function: &Function) -> String {
        let mut text = String::new();
        for id in &function.buffers {
            let buffer = &self.unit.kernel.buffers[*id];
            let Place::Workspace(offset) = &buffer.place else { continue };
            let (ty, slots, work) = match buffer.class {
                Class::Real => ("double", self.unit.n_slots[0], &self.unit.work),
                Class::Int => ("int64_t", self.unit.n_slots[1], &self.unit.iwork),
            };
            let name = buffer_name(*id);
            if self.unit.workspace(buffer.class).is_zero() {
                // All buffers are empty, and nothing that reads or writes them runs.
                let _ = writeln!(text, "    {ty} *const {name} = ({ty}[1]){{0}};");
                continue;
            }
            let offset = offset.add(&Poly::constant(i64::try_from(slots).unwrap_or(i64::MAX)));
            let _ = match offset.is_zero() {
                true => writeln!(text, "    {ty} *const {name} = {work};"),
                false => writeln!(text, "    {ty} *const {name} = {work} + ({});", self.unit.formula(&offset)),
            };
        }
        text
    }

    /// The parameters that a function uses, its pointers included.
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
                if let Origin::Size(size) = self.facts.origin[r] {
                    params.insert(self.unit.size_param(size));
                }
            }
        }
        params
    }

    /// The checks at entry.
    fn entry(&mut self) {
        let unit = self.unit;
        for param in unit.params() {
            if let Param::Size(size) = param {
                let name = &unit.sizes[size];
                self.current.params.insert(param);
                let fail = self.fail(SIZE);
                self.line(format_args!("if ({name} < 0 || {name} > {}) {fail}", crate::facts::MAX_EXTENT));
            }
        }
        for extent in unit.kernel.inputs.iter().flat_map(|port| &port.shape) {
            if self.facts.poly(extent).is_none_or(|(lo, _)| lo < 0) {
                let value = self.checked(extent, SIZE);
                let fail = self.fail(SIZE);
                self.line(format_args!("if ({value} < 0) {fail}"));
            }
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
            self.line(format_args!("if ({value} {relation} 0) {fail}"));
        }
        let ports = unit.kernel.inputs.iter().chain(&unit.kernel.outputs);
        let mut lengths: Vec<Poly<Reg>> = ports.map(|port| unit.kernel.buffers[port.buffer].len.clone()).collect();
        lengths.extend([unit.workspace(Class::Real), unit.workspace(Class::Int)]);
        let mut seen: BTreeSet<Poly<Reg>> = BTreeSet::new();
        for len in lengths {
            // Short sums of extents and small multiples of them are no news.
            let small = self.facts.poly(&len).is_some_and(|(lo, hi)| lo > -MEMORY && hi <= MEMORY);
            if !small && seen.insert(len.clone()) {
                let value = self.checked(&len, SIZE);
                let fail = self.fail(SIZE);
                self.line(format_args!("if ({value} > INT64_MAX / 16) {fail}"));
            }
        }
    }

    fn line(&mut self, text: impl std::fmt::Display) {
        /// Indentation stops here, so that deep nesting does not make text quadratic.
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

    /// `return F_E_...;`
    fn fail(&mut self, code: usize) -> String {
        self.current.can_fail = true;
        self.used_codes[code] = true;
        format!("return {};", self.unit.codes[code].name)
    }

    fn failure(&mut self, failure: usize) -> String {
        self.fail(self.unit.failure_codes[failure])
    }

    fn fresh(&mut self) -> String {
        self.counter += 1;
        format!("c_{}", self.counter)
    }

    /// The name of a register's variable.
    fn variable(&self, r: Reg) -> String {
        match self.unit.kernel.regs[r] {
            Class::Real => format!("r_{}", number(r)),
            Class::Int => format!("i_{}", number(r)),
        }
    }

    fn type_of(&self, r: Reg) -> &'static str {
        match self.unit.kernel.regs[r] {
            Class::Real => "double",
            Class::Int => "int64_t",
        }
    }

    /// The slot of a register, when it is used in another function.
    fn slot(&mut self, r: Reg) -> Option<String> {
        let slot = self.pieces.slot[r]?;
        let (param, work) = match self.unit.kernel.regs[r] {
            Class::Real => (Param::Work, &self.unit.work),
            Class::Int => (Param::IntWork, &self.unit.iwork),
        };
        self.current.params.insert(param);
        Some(format!("{work}[{slot}]"))
    }

    /// An expression for the value of a register, an atom. May write a line that reads it from elsewhere.
    fn atom(&mut self, r: Reg) -> String {
        match &self.facts.origin[r] {
            Origin::Const(value) => {
                self.needs.math |= literal::needs_math(*value);
                return literal::double(*value);
            }
            Origin::Size(size) => return self.param(self.unit.size_param(*size)),
            Origin::Scalar(input) => return self.param(Param::Input(*input)),
            Origin::Element(..) | Origin::Computed => {}
        }
        let variable = self.variable(r);
        if self.pieces.home[r] == self.current.id || self.current.loaded.contains(&r) {
            return variable;
        }
        let from = match self.facts.origin[r] {
            Origin::Element(buffer, at) => self.element(buffer, &Poly::constant(at)),
            _ => self.slot(r).unwrap_or_else(|| "0".to_owned()),
        };
        self.line(format_args!("const {} {variable} = {from};", self.type_of(r)));
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

    /// `poly` as an expression that does not overflow.
    fn poly(&mut self, poly: &Poly<Reg>) -> String {
        if let Some(value) = poly.as_constant() {
            return literal::int(value);
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

    /// `poly` as an expression; where it may overflow, computed step by step before, in the order in
    /// which the interpreter does, with `code` for what does not fit.
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
        self.needs.helper(guard::ADD);
        self.needs.helper(guard::MUL);
        self.needs.helper(guard::INTO);
        let product = self.fresh();
        let mut first = "0".to_owned();
        let mut steps: Vec<String> = Vec::new();
        let mut needs_product = false;
        for (idx, (monomial, c)) in poly.terms().enumerate() {
            let mut factors: Vec<String> = Vec::new();
            if c != 1 || monomial.is_empty() {
                factors.push(literal::int(c));
            }
            for r in monomial {
                factors.push(self.atom(*r));
            }
            let target = if idx == 0 { name } else { product.as_str() };
            let mut value = factors[0].clone();
            for factor in &factors[1..] {
                steps.push(format!("cr_mul({value}, {factor}, &{target})"));
                target.clone_into(&mut value);
                needs_product |= idx > 0;
            }
            if idx > 0 {
                steps.push(format!("cr_add({name}, {value}, &{name})"));
            } else if factors.len() == 1 {
                first = value;
            }
        }
        let second = if needs_product { format!(", {product} = 0") } else { String::new() };
        self.line(format_args!("int64_t {name} = {first}{second};"));
        if !steps.is_empty() {
            let fail = self.fail(code);
            self.line(format_args!("if ({}) {fail}", steps.join(" || ")));
        }
    }

    /// The pointer to a buffer.
    fn base(&mut self, buffer: BufferId) -> String {
        match &self.unit.kernel.buffers[buffer].place {
            Place::Input(input) => {
                let name = self.param(Param::Input(*input));
                if self.unit.kernel.inputs[*input].shape.is_empty() { format!("(&{name})") } else { name }
            }
            Place::Output(output) => self.param(Param::Output(*output)),
            Place::Workspace(_) => {
                self.current.buffers.insert(buffer);
                buffer_name(buffer)
            }
        }
    }

    fn element(&mut self, buffer: BufferId, at: &Poly<Reg>) -> String {
        let at = self.poly(at);
        let base = self.base(buffer);
        format!("{base}[{at}]")
    }

    /// Declares `dst` with a value, and keeps it in its slot.
    fn define(&mut self, dst: Reg, value: &str) {
        let remote = matches!(self.facts.origin[dst], Origin::Element(..)) && !self.pieces.used_at_home[dst];
        if remote {
            return;
        }
        let variable = self.variable(dst);
        match self.slot(dst) {
            Some(slot) if !self.pieces.used_at_home[dst] => self.line(format_args!("{slot} = {value};")),
            slot => {
                self.line(format_args!("const {} {variable} = {value};", self.type_of(dst)));
                if let Some(slot) = slot {
                    self.line(format_args!("{slot} = {variable};"));
                }
            }
        }
    }

    /// Writes the values of variables to their slots, after they have changed.
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
            Event::Copy { to, from, len } => self.copy(to, from, len),
            Event::For { index, count, carried } => {
                let bound = self.checked(count, OVERFLOW);
                let bound = if count.as_constant().is_some() || count.as_var().is_some() || bound.starts_with("c_") {
                    bound
                } else {
                    let name = self.fresh();
                    self.line(format_args!("const int64_t {name} = {bound};"));
                    name
                };
                self.enter(carried);
                let i = self.variable(*index);
                self.line(format_args!("for (int64_t {i} = 0; {i} < {bound}; {i}++) {{"));
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
                self.line(format_args!("for (int64_t {counter} = 0;; {counter}++) {{"));
                self.whiles.push((counter, bound));
                self.open_block();
            }
            Event::Test { holds, failure } => {
                let holds = self.atom(*holds);
                self.line(format_args!("if ({holds} == 0) break;"));
                let fail = self.failure(*failure);
                if let Some((counter, bound)) = self.whiles.pop() {
                    self.line(format_args!("if ({counter} >= {bound}) {fail}"));
                }
            }
            Event::EndWhile { carried } => {
                self.advance(carried);
                self.close_block();
                self.line("}");
            }
            Event::If { condition } => {
                let condition = self.atom(*condition);
                self.line(format_args!("if ({condition} != 0) {{"));
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
        let mut place = |(buffer, at): &(BufferId, Poly<Reg>)| {
            let at = if at.is_zero() { String::new() } else { format!(" + ({})", self.poly(at)) };
            format!("{}{at}", self.base(*buffer))
        };
        let (to, from) = (place(to), place(from));
        let n = self.poly(len);
        self.needs.string = true;
        let guard = if len.as_constant().is_some() { String::new() } else { format!("if ({n} > 0) ") };
        // All elements have eight bytes.
        self.line(format_args!("{guard}memcpy({to}, {from}, (size_t)({n}) * 8);"));
    }

    /// Declares what a loop carries.
    fn enter(&mut self, carried: &[Carried]) {
        for c in carried.iter().filter(|c| self.facts.needed[c.var]) {
            let init = self.atom(c.init);
            let (ty, variable) = (self.type_of(c.var), self.variable(c.var));
            self.line(format_args!("{ty} {variable} = {init};"));
            self.keep(std::iter::once(c.var));
        }
    }

    /// Lets what a loop carries change, all at once.
    fn advance(&mut self, carried: &[Carried]) {
        let needed: Vec<Carried> =
            carried.iter().filter(|c| self.facts.needed[c.var] && c.next != c.var).copied().collect();
        let vars: BTreeSet<Reg> = needed.iter().map(|c| c.var).collect();
        let mut next: Vec<String> = Vec::new();
        for c in &needed {
            let mut value = self.atom(c.next);
            if vars.contains(&c.next) {
                let name = self.fresh();
                self.line(format_args!("const {} {name} = {value};", self.type_of(c.next)));
                value = name;
            }
            next.push(value);
        }
        for (c, value) in needed.iter().zip(next) {
            let variable = self.variable(c.var);
            self.line(format_args!("{variable} = {value};"));
            self.keep(std::iter::once(c.var));
        }
    }

    /// Assigns what a branch results in.
    fn choose(&mut self, choices: &[Choice], branch: impl Fn(&Choice) -> Reg) {
        for c in choices.iter().filter(|c| self.facts.needed[c.var]) {
            let value = self.atom(branch(c));
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
                let row = op.row();
                let args: Vec<String> = args[..op.arity()].iter().map(|r| self.atom(*r)).collect();
                self.needs.spelling(row.c);
                self.needs.math |= row.c.template.contains('(');
                let value = fill(row.c.template, &args);
                self.define(*dst, &value);
            }
            Instr::IntOp { dst, op, args, failure } => {
                let Some(spelling) = op.row().c_int else { return };
                let mut args: Vec<String> = args[..op.arity()].iter().map(|r| self.atom(*r)).collect();
                if let Some(guard) = guard::fails(*op) {
                    self.needs.spelling(guard);
                    let fail = self.failure(*failure);
                    self.line(format_args!("if ({}) {fail}", fill(guard.template, &args)));
                }
                if !self.facts.needed[*dst] {
                    return;
                }
                // Compilers warn of `i < i`.
                if args.len() == 2 && args[0] == args[1] && spelling.template.contains(['<', '>', '=']) {
                    let copy = self.fresh();
                    self.line(format_args!("const int64_t {copy} = {};", args[1]));
                    args[1] = copy;
                }
                self.needs.spelling(spelling);
                let value = fill(spelling.template, &args);
                self.define(*dst, &value);
            }
            Instr::ToReal { dst, src } => {
                let value = format!("(double){}", self.atom(*src));
                self.define(*dst, &value);
            }
            Instr::External { dst, function, args } => {
                let name = self.unit.kernel.externals[*function].c_name.clone();
                let args: Vec<String> = args.iter().map(|r| self.atom(*r)).collect();
                let value = format!("{}({})", name.as_deref().unwrap_or("0.0"), args.join(", "));
                self.define(*dst, &value);
            }
            Instr::Load { dst, buffer, at } => {
                if self.pieces.used_at_home[*dst] || !matches!(self.facts.origin[*dst], Origin::Element(..)) {
                    let value = self.element(*buffer, at);
                    self.define(*dst, &value);
                }
            }
            Instr::Store { buffer, at, value } => {
                let value = self.atom(*value);
                let element = self.element(*buffer, at);
                self.line(format_args!("{element} = {value};"));
            }
            Instr::CheckIndex { index, len, failure } => {
                let len = self.checked(len, OVERFLOW);
                let index = self.atom(*index);
                self.needs.helper(guard::WITHIN);
                let fail = self.failure(*failure);
                self.line(format_args!("if (!cr_within({index}, {len})) {fail}"));
            }
        }
    }
}

/// The codes that are always there: indices into [`Unit::codes`].
const SIZE: usize = 0;
const OVERFLOW: usize = 1;

/// How many elements surely do not make addresses overflow.
const MEMORY: i128 = (i64::MAX / 16) as i128;

/// What each branch results in, by its opening event; branches without results left out.
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

fn buffer_name(buffer: BufferId) -> String {
    format!("b_{}", buffer.index())
}

/// `template` with its arguments.
fn fill(template: &str, args: &[String]) -> String {
    let mut text = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((place, after)) = after.split_once('}') else { break };
        if let Some(arg) = place.parse().ok().and_then(|place: usize| args.get(place)) {
            text.push_str(arg);
        }
        rest = after;
    }
    text.push_str(rest);
    text
}
