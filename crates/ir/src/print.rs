//! Printing of functions as F~ text that elaborates back to them, and as listings that parse back.
//!
//! One statement a line, in `let`s without nesting; the variables of the program keep their names if those are unique
//! and not reserved. Elaborating the text yields the same function up to names ([`crate::alpha::alpha_equal`]), if
//! elaboration made it in the first place: elaboration resolves components of known tuples, and decided branches, and
//! parses `-0.5` as a negation. Requirements are printed as comments: elaboration finds them again. Tuples of fewer
//! than two fields without names, and operators without F~ syntax, do not occur in elaborated functions; nor do
//! constructs of reverse mode without F~ syntax: `loop`, `zero`, `oneHot`, `backward`, sums of arrays. The module
//! [`crate::express`] expresses all except `backward` in F~. A `scan` is a loop without terms.
//!
//! A [`listing`] has the same form and covers every function: binders state their types with sizes, indices that are
//! checked at run time are marked, and operators on `Int` are written as functions. [`crate::parse()`] reads it back.
//!
//! Only recursive on nesting.

use crate::check::builtin;
use crate::custom::RuleBlock;
use crate::{Block, Expr, Function, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_base::{Arena, Id};
use chainrule_ops::Op;
use chainrule_syntax::token::TokenKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// Words that the parser treats as those of other languages, and a name without a meaning yet.
const RESERVED: &[&str] = &["lambda", "return", "elif", "elseif", "elsif", "def", "end"];

/// Returns `function` as an item of an F~ file, with a final line break. Linear.
#[must_use]
pub fn print(function: &Function) -> String {
    print_as(function, Form::Source)
}

/// Returns `function` as a listing, which [`parse`](crate::parse()) reads back. Linear.
#[must_use]
pub fn listing(function: &Function) -> String {
    print_as(function, Form::Listing)
}

fn print_as(function: &Function, form: Form) -> String {
    let names = names(function, form);
    let mut printer = Printer { function, form, names, known: FxHashMap::default(), out: String::new() };
    printer.item();
    printer.out
}

/// Sizes in a printed type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    Written,
    Omitted,
}

/// Form of a printed function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// F~.
    Source,
    /// All that the function contains.
    Listing,
}

/// Words of listings that are not names of operators.
pub(crate) mod words {
    pub(crate) const REAL: &str = "real";
    pub(crate) const TRUNCATE: &str = "truncate";
    pub(crate) const BUILD: &str = "build";
    pub(crate) const SUM: &str = "sum";
    pub(crate) const FOLD: &str = "ifold";
    pub(crate) const LOOP: &str = "loop";
    pub(crate) const WHILE: &str = "while";
    pub(crate) const ZERO: &str = "zero";
    pub(crate) const ONE_HOT: &str = "oneHot";
    pub(crate) const FORWARD: &str = "forward";
    pub(crate) const BACKWARD: &str = "backward";
    pub(crate) const CONSTANT: &str = "constant";
    pub(crate) const DERIVATIVE: &str = "withDerivative";
    /// As `CONSTANT` and `DERIVATIVE`, with a rule that is known to be the derivative.
    pub(crate) const PROMISED_CONSTANT: &str = "promisedConstant";
    pub(crate) const PROMISED_DERIVATIVE: &str = "promisedDerivative";
    /// Marks an index that is checked at run time.
    pub(crate) const CHECK: &str = "check";

    /// Words that start a construct.
    pub(crate) const ALL: &[&str] = &[
        REAL,
        TRUNCATE,
        BUILD,
        SUM,
        FOLD,
        LOOP,
        WHILE,
        ZERO,
        ONE_HOT,
        FORWARD,
        BACKWARD,
        CONSTANT,
        DERIVATIVE,
        PROMISED_CONSTANT,
        PROMISED_DERIVATIVE,
    ];
}

/// Returns a number that reads back as the same double: `0.1`, `1e300`, `-2.0`, `(0.0 / 0.0)`.
#[must_use]
pub fn real(x: f64) -> String {
    if x.is_nan() {
        // F~ has no literal for it; IEEE 754 defines 0 / 0 as NaN.
        "(0.0 / 0.0)".to_owned()
    } else if x.is_infinite() {
        // Likewise, a division by 0.
        if x > 0.0 { "(1.0 / 0.0)" } else { "(-1.0 / 0.0)" }.to_owned()
    } else {
        format!("{x:?}")
    }
}

/// Returns the body of the loop `var` with empty terms as that of a `scan`, which ends with a pair.
fn without_term(function: &Function, var: VarId, body: &Block) -> Option<Block> {
    let Type::Tuple(parts, _) = function.ty(var) else { return None };
    if parts.get(2) != Some(&Type::tuple(Vec::new())) {
        return None;
    }
    let mut body = body.clone();
    let Some(Stmt { var, expr: Expr::Tuple(triple), .. }) = body.stmts.last_mut() else { return None };
    let nothing = triple.pop()?;
    if *var != body.result {
        return None;
    }
    // It may have other uses.
    if !body.stmts.iter().any(|stmt| uses(&stmt.expr, nothing)) {
        body.stmts.retain(|stmt| stmt.var != nothing);
    }
    Some(body)
}

/// Returns whether `var` is an operand of `expr`, or of its content.
fn uses(expr: &Expr, var: VarId) -> bool {
    let inside = |block: &Block| block.result == var || block.stmts.iter().any(|stmt| uses(&stmt.expr, var));
    expr.operands().contains(&var) || expr.blocks().into_iter().any(inside)
}

struct Printer<'a> {
    function: &'a Function,
    form: Form,
    names: Arena<VarId, String>,
    // Integers in scope, by their values.
    known: FxHashMap<Size, Vec<VarId>>,
    out: String,
}

impl Printer<'_> {
    fn item(&mut self) {
        let function = self.function;
        for requirement in &function.requires {
            let relation = if requirement.exactly_zero { "= 0" } else { ">= 0" };
            let size = self.polynomial(&requirement.size);
            let message = requirement.message.replace(['\n', '\r'], " ");
            let _ = writeln!(self.out, "// requires {size} {relation}: {message}");
        }
        let _ = write!(self.out, "let {} =", identifier(&function.name).unwrap_or("f"));
        if !function.params.is_empty() {
            self.out.push_str(" fun");
            for param in &function.params {
                let ty = self.ty(function.ty(*param), Sizes::Written);
                let _ = write!(self.out, " ({} : {ty})", self.names[*param]);
            }
            self.out.push_str(" ->");
        }
        self.block(&function.body, 1);
        self.out.push('\n');
    }

    // Prints statements and result on separate lines.
    fn block(&mut self, block: &Block, depth: usize) {
        for stmt in &block.stmts {
            self.line(depth);
            self.stmt(stmt, depth);
        }
        self.line(depth);
        self.out.push_str(&self.names[block.result]);
        for stmt in &block.stmts {
            if let Expr::Size(size) = &stmt.expr
                && let Some(bound) = self.known.get_mut(size)
            {
                bound.pop();
            }
        }
    }

    // Prints `(fun <binders> -> block)`.
    fn function(&mut self, binders: &[VarId], block: &Block, depth: usize) {
        self.out.push_str("(fun");
        self.binders_and_body(binders, block, depth);
    }

    // Prints `<binders> -> block)`.
    fn binders_and_body(&mut self, binders: &[VarId], block: &Block, depth: usize) {
        for binder in binders {
            let name = &self.names[*binder];
            match self.function.ty(*binder) {
                Type::Int => {
                    let _ = write!(self.out, " {name}");
                }
                Type::Double if self.form == Form::Source => {
                    let _ = write!(self.out, " {name}");
                }
                ty => {
                    let sizes = if self.form == Form::Listing { Sizes::Written } else { Sizes::Omitted };
                    let ty = self.ty(ty, sizes);
                    let _ = write!(self.out, " ({name} : {ty})");
                }
            }
        }
        self.out.push_str(" ->");
        self.inner(block, depth);
        self.out.push(')');
    }

    // Prints a block that is only a variable on the same line.
    fn inner(&mut self, block: &Block, depth: usize) {
        if block.stmts.is_empty() {
            self.out.push(' ');
            self.out.push_str(&self.names[block.result]);
        } else {
            self.block(block, depth + 1);
        }
    }

    fn branch(&mut self, block: &Block, depth: usize) {
        if block.stmts.is_empty() {
            self.out.push_str(&self.names[block.result]);
        } else {
            self.out.push('(');
            self.block(block, depth + 1);
            self.out.push(')');
        }
    }

    fn line(&mut self, depth: usize) {
        self.out.push('\n');
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) {
        let _ = write!(self.out, "let {}", self.names[stmt.var]);
        if *self.function.ty(stmt.var) == Type::Int {
            // A bare number would be a Double without other information.
            self.out.push_str(" : Int");
        }
        self.out.push_str(" = ");
        self.expr(stmt, depth);
        if let Expr::Size(size) = &stmt.expr {
            self.known.entry(size.clone()).or_default().push(stmt.var);
        }
    }

    fn expr(&mut self, stmt: &Stmt, depth: usize) {
        match &stmt.expr {
            Expr::Real(x) => self.out.push_str(&real(*x)),
            Expr::Bool(b) => {
                let _ = write!(self.out, "{b}");
            }
            Expr::Size(size) => {
                let text = self.polynomial(size);
                self.out.push_str(&text);
            }
            Expr::Op(op, args) => self.operator(stmt.var, *op, args),
            Expr::ToReal(arg) => {
                let _ = write!(self.out, "real {}", self.names[*arg]);
            }
            Expr::ToInt(arg) => {
                let _ = write!(self.out, "truncate {}", self.names[*arg]);
            }
            Expr::Build { size, index, body } => {
                let size = self.size(size);
                let _ = write!(self.out, "build {size} ");
                self.function(&[*index], body, depth);
            }
            Expr::Sum { count, index, body } => {
                let count = self.size(count);
                let _ = write!(self.out, "sum {count} ");
                self.function(&[*index], body, depth);
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                self.out.push_str("ifold ");
                self.function(&[*state, *index], body, depth);
                let count = self.size(count);
                let _ = write!(self.out, " {} {count}", self.names[*init]);
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let is_source = self.form == Form::Source;
                let scanned = is_source.then(|| without_term(self.function, stmt.var, body)).flatten();
                self.out.push_str(if scanned.is_some() { "scan " } else { "loop " });
                self.function(&[*state, *index], scanned.as_ref().unwrap_or(body), depth);
                let count = self.size(count);
                let _ = write!(self.out, " {} {count}", self.names[*init]);
            }
            Expr::Zero => {
                let ty = self.ty(self.function.ty(stmt.var), Sizes::Written);
                let _ = write!(self.out, "zero : {ty}");
            }
            Expr::OneHot { index, value, proved } => {
                let n = match self.function.ty(stmt.var) {
                    Type::Array(size, _) => self.size(size),
                    _ => String::new(),
                };
                let index = self.index(*index, *proved);
                let index = if index.contains(' ') { format!("({index})") } else { index };
                let _ = write!(self.out, "oneHot {n} {index} {}", self.names[*value]);
            }
            Expr::Plus(a, b) => {
                let _ = write!(self.out, "{} + {}", self.names[*a], self.names[*b]);
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                self.out.push_str("while ");
                self.function(&[*state], condition, depth);
                self.out.push(' ');
                self.function(&[*state], body, depth);
                let limit = self.size(limit);
                let _ = write!(self.out, " {} {limit}", self.names[*init]);
            }
            Expr::If { condition, then, otherwise } => {
                let _ = write!(self.out, "if {} then ", self.names[*condition]);
                self.branch(then, depth);
                self.out.push_str(" else ");
                self.branch(otherwise, depth);
            }
            Expr::Get { array, index, proved } => {
                let _ = write!(self.out, "{}[{}]", self.names[*array], self.index(*index, *proved));
            }
            Expr::Array(elements) => self.list("[", elements, "]"),
            Expr::Tuple(fields) => match self.function.ty(stmt.var) {
                Type::Tuple(_, Some(names)) => {
                    let fields: Vec<String> =
                        names.iter().zip(fields).map(|(n, v)| format!("{n} = {}", self.names[*v])).collect();
                    let _ = write!(self.out, "{{ {} }}", fields.join(", "));
                }
                _ => self.list("(", fields, ")"),
            },
            Expr::Component(tuple, idx) => {
                let field = match self.function.ty(*tuple) {
                    Type::Tuple(_, Some(names)) => names.get(*idx).map(ToString::to_string),
                    _ => None,
                };
                let field = field.unwrap_or_else(|| idx.to_string());
                let _ = write!(self.out, "{}.{field}", self.names[*tuple]);
            }
            Expr::Jvp { params, body, at, along } => {
                self.out.push_str("forward ");
                self.function(params, body, depth);
                for (at, along) in at.iter().zip(along) {
                    let _ = write!(self.out, " ({}, {})", self.names[*at], self.names[*along]);
                }
            }
            Expr::Vjp { params, body, at, cotangent } => {
                self.out.push_str("backward ");
                self.function(params, body, depth);
                for at in at {
                    let _ = write!(self.out, " {}", self.names[*at]);
                }
                let _ = write!(self.out, " {}", self.names[*cotangent]);
            }
            Expr::Custom(custom) => {
                let is_listing = self.form == Form::Listing;
                self.out.push_str(match (&custom.rule, is_listing && custom.promised) {
                    (None, false) => words::CONSTANT,
                    (None, true) => words::PROMISED_CONSTANT,
                    (Some(_), false) => words::DERIVATIVE,
                    (Some(_), true) => words::PROMISED_DERIVATIVE,
                });
                if custom.rule.is_some() || is_listing {
                    self.out.push(' ');
                    self.function(&[custom.param], &custom.body, depth);
                }
                if let Some(rule) = &custom.rule {
                    for RuleBlock { params, body } in [&rule.forward, &rule.reverse] {
                        let _ = write!(self.out, " (fun {}", self.names[rule.me]);
                        self.binders_and_body(params, body, depth);
                    }
                }
                let _ = write!(self.out, " {}", self.names[custom.at]);
            }
            Expr::Again { me, at } => {
                let _ = write!(self.out, "{} {}", self.names[*me], self.names[*at]);
            }
        }
    }

    /// Returns `index`, marked in listings if it is checked at run time.
    fn index(&self, index: VarId, proved: bool) -> String {
        let name = &self.names[index];
        if proved || self.form == Form::Source { name.clone() } else { format!("{} {name}", words::CHECK) }
    }

    fn operator(&mut self, result: VarId, op: Op, args: &[VarId]) {
        let row = op.row();
        // An operator on integers is no polynomial.
        let is_plain = self.form == Form::Source || *self.function.ty(result) != Type::Int;
        match (row.symbol.filter(|_| is_plain), args) {
            (Some(symbol), [a]) => {
                let _ = write!(self.out, "{symbol}{}", self.names[*a]);
            }
            (Some(symbol), [a, b]) => {
                let _ = write!(self.out, "{} {symbol} {}", self.names[*a], self.names[*b]);
            }
            _ => {
                self.out.push_str(row.name);
                for arg in args {
                    let _ = write!(self.out, " {}", self.names[*arg]);
                }
            }
        }
    }

    fn list(&mut self, open: &str, vars: &[VarId], close: &str) {
        self.out.push_str(open);
        for (i, var) in vars.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.out.push_str(&self.names[*var]);
        }
        self.out.push_str(close);
    }

    // Prints a size as an argument: by a name if there is one.
    fn size(&self, size: &Size) -> String {
        if let Some(var) = self.known.get(size).and_then(|bound| bound.last()) {
            return self.names[*var].clone();
        }
        match (size.as_var(), size.as_constant()) {
            (Some(var), _) => self.names[var].clone(),
            (_, Some(n)) if n >= 0 => n.to_string(),
            _ => format!("({})", self.polynomial(size)),
        }
    }

    // Prints `2 * n - i + 1`: terms with variables first.
    fn polynomial(&self, size: &Size) -> String {
        let mut out = String::new();
        let constant_last = size.terms().filter(|t| !t.0.is_empty()).chain(size.terms().filter(|t| t.0.is_empty()));
        // The minimum integer has no literal; it is written as a sum.
        let terms = constant_last.flat_map(|(monomial, c)| match c {
            i64::MIN => vec![(monomial, -i64::MAX), (monomial, -1)],
            _ => vec![(monomial, c)],
        });
        for (monomial, coefficient) in terms {
            match (out.is_empty(), coefficient < 0) {
                (true, false) => {}
                (true, true) => out.push('-'),
                (false, false) => out.push_str(" + "),
                (false, true) => out.push_str(" - "),
            }
            let magnitude = coefficient.unsigned_abs();
            let mut factors: Vec<&str> = monomial.iter().map(|v| self.names[*v].as_str()).collect();
            let text = magnitude.to_string();
            if magnitude != 1 || factors.is_empty() {
                factors.insert(0, &text);
            }
            out.push_str(&factors.join(" * "));
        }
        if out.is_empty() { "0".to_owned() } else { out }
    }

    // Prints a type as annotation: with its sizes at entry, without them inside, where they are known.
    fn ty(&self, ty: &Type, sizes: Sizes) -> String {
        match ty {
            Type::Double => "Double".to_owned(),
            Type::Int => "Int".to_owned(),
            Type::Bool => "Bool".to_owned(),
            Type::Array(size, element) => {
                let size = match sizes {
                    Sizes::Written => self.annotated_size(size),
                    Sizes::Omitted => String::new(),
                };
                format!("[{size}]{}", self.ty(element, sizes))
            }
            Type::Tuple(fields, None) => {
                let fields: Vec<String> = fields.iter().map(|f| self.ty(f, sizes)).collect();
                format!("({})", fields.join(", "))
            }
            Type::Tuple(fields, Some(names)) => {
                let fields: Vec<String> =
                    names.iter().zip(fields).map(|(n, f)| format!("{n} : {}", self.ty(f, sizes))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
        }
    }

    // Sizes have no leading sign.
    fn annotated_size(&self, size: &Size) -> String {
        let text = self.polynomial(size);
        match text.strip_prefix('-') {
            Some(rest) => format!("0 - {rest}"),
            None => text,
        }
    }
}

// Returns a distinct name for each variable.
fn names(function: &Function, form: Form) -> Arena<VarId, String> {
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let mut names: Arena<VarId, String> = Arena::filled(function.vars.len(), String::new());
    // Names at entry are visible outside, so they are chosen first.
    let entry = function.sizes.iter().chain(&function.params).copied();
    for var in entry.chain(function.vars.ids()) {
        let Some(data) = function.vars.get(var) else { continue };
        if !names[var].is_empty() {
            continue;
        }
        let base = data.name.as_deref().and_then(identifier);
        let mut name = base.map_or_else(|| var.to_string(), ToOwned::to_owned);
        let mut suffix = var.index();
        let is_word = |name: &str| form == Form::Listing && words::ALL.contains(&name);
        while taken.contains(&name) || is_reserved(&name) || is_word(&name) {
            name = format!("{}_{suffix}", base.unwrap_or("v"));
            suffix += function.vars.len();
        }
        taken.insert(name.clone());
        names[var] = name;
    }
    names
}

// Returns `name` if F~ can read it.
fn identifier(name: &str) -> Option<&str> {
    let mut chars = name.trim_end_matches('\'').chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    (starts && goes_on && !name.trim_matches('_').is_empty() && TokenKind::keyword(name).is_none()).then_some(name)
}

fn is_reserved(name: &str) -> bool {
    TokenKind::keyword(name).is_some() || builtin::names().chain(RESERVED.iter().copied()).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    #[test]
    fn reals_read_back() {
        for x in [0.1, -0.0, 1e300, 5e-324, -2.0, 1.0 / 3.0, 1e16, 123_456_789.0, f64::MAX] {
            let text = real(x);
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(x.to_bits()), "{text}");
            assert!(text.contains(['.', 'e']), "{text} would be an integer");
        }
        assert_eq!(real(f64::NAN), "(0.0 / 0.0)");
        assert_eq!(real(f64::NEG_INFINITY), "(-1.0 / 0.0)");
    }

    #[test]
    fn one_statement_a_line() {
        let mut b = Builder::new("norm");
        let n = b.size_param("n");
        let size = b.size_of(n);
        let v = b.param("v", Type::array(size.clone(), Type::Double));
        let k = b.param("sin", Type::Int);
        let sum = b.sum(size.sub(&b.size_of(k)).scale(2), |b, i| {
            let x = b.get(v, i);
            b.op(Op::Mul, &[x, x])
        });
        let zero = b.real(0.0);
        let positive = b.op(Op::Lt, &[zero, sum]);
        let dual = b.jvp(&[sum], &[zero], |b, p| b.op(Op::Sqrt, &[p[0]]));
        let root = b.component(dual, 0);
        let result = b.if_(positive, |_| root, |b| b.op(Op::Neg, &[sum]));
        insta::assert_snapshot!(print(&b.finish(result)), @r"
        let norm = fun (v : [n]Double) (sin_2 : Int) ->
          let v6 = sum (2 * n - 2 * sin_2) (fun v3 ->
            let v4 = v[v3]
            let v5 = v4 * v4
            v5)
          let v7 = 0.0
          let v8 = v7 < v6
          let v11 = forward (fun v9 ->
            let v10 = sqrt v9
            v10) (v6, v7)
          let v12 = v11.0
          let v14 = if v8 then v12 else (
            let v13 = -v6
            v13)
          v14
        ");
    }
}
