//! Parser of kernel listings: the inverse of [`print`](mod@crate::print), so that passes can be tested as text.
//!
//! In: one listing. Out: a kernel that prints as the same listing. The classes of registers follow from their
//! definitions. A listing contains neither the messages of failures nor their source spans; failure `k` gets the
//! message `failure k`. External functions have no code.
//!
//! The parser checks the form of each line; [`verify`](crate::verify()) checks the kernel.

mod cursor;
mod header;

use crate::kernel::{Carried, Choice, Class, Instr, Kernel, Order, Reg, Signs, Stmt};
use crate::rebuild::Open;
use chainrule_base::{Arena, Id};
use chainrule_ops::{Op, Type};
use cursor::Cursor;
use std::fmt;

/// Maximum index of a register or a failure.
const MAX_INDEX: usize = 1 << 24;

/// Error in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Reason.
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ParseError {}

/// Parses a listing. Linear in its length.
///
/// # Errors
/// The first line that is not part of a listing, with the reason.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    let mut lines = text.lines().enumerate().map(|(idx, line)| (idx + 1, line));
    let mut lines = lines.by_ref().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let kernel = header::parse(&mut lines)?;
    let mut parser = Parser { kernel, classes: Vec::new(), n_failures: 0 };
    let mut blocks = Blocks::default();
    let sizes: Vec<Reg> = parser.kernel.sizes.iter().map(|size| size.reg).collect();
    let mut last = 1;
    let fail = |line, reason| ParseError { line, reason };
    sizes.into_iter().try_for_each(|reg| parser.set_class(reg, Class::Int)).map_err(|reason| fail(last, reason))?;
    for (number, line) in lines {
        last = number;
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut cursor = Cursor::new(line.trim());
        let parsed = match indent % 2 {
            0 => parser.statement(&mut blocks, indent / 2, &mut cursor).and_then(|()| cursor.end()),
            _ => Err("the indentation is odd".to_owned()),
        };
        parsed.map_err(|reason| fail(last, reason))?;
    }
    blocks.close_to(0).map_err(|reason| fail(last, reason))?;
    Ok(parser.finish(blocks.root))
}

type Result<T, E = String> = std::result::Result<T, E>;

/// The kernel under construction.
struct Parser {
    kernel: Kernel,
    /// Class of each register that is defined so far, by index.
    classes: Vec<Option<Class>>,
    n_failures: usize,
}

/// Nested blocks whose ends are not reached, outermost first, with the statements so far.
#[derive(Default)]
struct Blocks {
    root: Vec<Stmt>,
    open: Vec<(Open, Vec<Stmt>)>,
}

impl Blocks {
    fn current(&mut self) -> &mut Vec<Stmt> {
        self.open.last_mut().map_or(&mut self.root, |(_, block)| block)
    }

    fn push(&mut self, instr: Instr) {
        match self.current().last_mut() {
            Some(Stmt::Straight(code)) => code.push(instr),
            _ => self.current().push(Stmt::Straight(vec![instr])),
        }
    }

    /// Closes the innermost blocks until `depth` are open.
    fn close_to(&mut self, depth: usize) -> Result<()> {
        while self.open.len() > depth {
            let Some((open, body)) = self.open.pop() else { break };
            let stmt = match open {
                Open::For { index, count, carried, order } => Stmt::For { index, count, carried, order, body },
                Open::Condition { .. } => return Err("the line `do if` of a loop is missing".to_owned()),
                Open::While { limit, carried, condition, holds, failure } => {
                    Stmt::While { limit, carried, condition, holds, body, failure }
                }
                Open::Then { condition } => {
                    Stmt::If { condition, then: body, otherwise: Vec::new(), choices: Vec::new() }
                }
                Open::Else { condition, then } => Stmt::If { condition, then, otherwise: body, choices: Vec::new() },
            };
            self.current().push(stmt);
        }
        if self.open.len() < depth { Err("the line is indented too far".to_owned()) } else { Ok(()) }
    }
}

impl Parser {
    fn statement(&mut self, blocks: &mut Blocks, depth: usize, c: &mut Cursor<'_>) -> Result<()> {
        if c.eat("do if ") {
            blocks.close_to(depth + 1)?;
            let Some((Open::Condition { limit, carried }, condition)) = blocks.open.pop() else {
                return Err("`do if` has no loop".to_owned());
            };
            let (holds, failure) = (c.reg()?, self.failure(c)?);
            blocks.open.push((Open::While { limit, carried, condition, holds, failure }, Vec::new()));
            return Ok(());
        }
        if c.rest() == "else" {
            c.eat("else");
            blocks.close_to(depth + 1)?;
            let Some((Open::Then { condition }, then)) = blocks.open.pop() else {
                return Err("`else` has no `if`".to_owned());
            };
            blocks.open.push((Open::Else { condition, then }, Vec::new()));
            return Ok(());
        }
        blocks.close_to(depth)?;
        if c.eat("for ") {
            let index = self.define(c, Class::Int)?;
            c.expect(" in 0..")?;
            let count = c.poly()?;
            let order = match () {
                () if c.eat(" at once") => Order::Lanes,
                () if c.eat(" in parts") => Order::Parts,
                () => Order::InOrder,
            };
            let carried = self.carried(c)?;
            blocks.open.push((Open::For { index, count, carried, order }, Vec::new()));
        } else if c.eat("while at most ") {
            let (limit, carried) = (c.poly()?, self.carried(c)?);
            blocks.open.push((Open::Condition { limit, carried }, Vec::new()));
        } else if c.eat("if ") {
            blocks.open.push((Open::Then { condition: c.reg()? }, Vec::new()));
        } else if c.rest().starts_with("copy ") || c.rest().starts_with("move ") {
            let is_move = !c.eat("copy ") && c.eat("move ");
            let len = c.poly()?;
            c.expect(" to ")?;
            let to = c.element()?;
            c.expect(" from ")?;
            let from = c.element()?;
            blocks.current().push(Stmt::Copy { to, from, len, is_move });
        } else if c.eat("store ") {
            let (buffer, at) = c.element()?;
            c.expect(" = ")?;
            blocks.push(Instr::Store { buffer, at, value: c.reg()? });
        } else if c.eat("check ") {
            let index = c.reg()?;
            c.expect(" < ")?;
            let len = c.poly()?;
            blocks.push(Instr::CheckIndex { index, len, failure: self.failure(c)? });
        } else if c.rest().contains(" | ") {
            let choice = self.choice(c)?;
            match blocks.current().last_mut() {
                Some(Stmt::If { choices, .. }) => choices.push(choice),
                _ => return Err("no branch precedes its result".to_owned()),
            }
        } else {
            let instr = self.definition(c)?;
            blocks.push(instr);
        }
        Ok(())
    }

    /// Parses an instruction that defines a register.
    fn definition(&mut self, c: &mut Cursor<'_>) -> Result<Instr> {
        let dst = c.reg()?;
        c.expect(" = ")?;
        let (class, instr) = if c.eat("int truncate ") {
            (Class::Int, Instr::ToInt { dst, src: c.reg()? })
        } else if c.eat("int ") {
            let instr = match c.word() {
                Some(word) if Op::by_name(word).is_some() => {
                    let (op, args) = operation(c, word)?;
                    Instr::IntOp { dst, op, args, failure: self.failure(c)? }
                }
                _ => Instr::Int { dst, value: c.poly()? },
            };
            (Class::Int, instr)
        } else if c.eat("real ") {
            (Class::Real, Instr::ToReal { dst, src: c.reg()? })
        } else if c.eat("load ") {
            let (buffer, at) = c.element()?;
            let class = self.kernel.buffers.get(buffer).map(|buffer| buffer.class);
            (class.ok_or_else(|| format!("there is no buffer {buffer}"))?, Instr::Load { dst, buffer, at })
        } else if c.eat("call ") {
            let name = c.name()?;
            let function = self.kernel.externals.iter().position(|external| external.name.as_str() == name);
            let function = function.ok_or_else(|| format!("there is no external function {name}"))?;
            c.eat(" ");
            let args = if c.rest().is_empty() { Vec::new() } else { c.regs()? };
            (Class::Real, Instr::External { dst, function, args: args.into() })
        } else if let Some(signs) = signs(c.word()) {
            c.eat(signs.name());
            c.expect(" ")?;
            let args = c.regs()?.try_into().map_err(|_| "a fused multiply-add has three arguments".to_owned())?;
            (Class::Real, Instr::MulAdd { dst, signs, args })
        } else if let Some(word) = c.word().filter(|word| Op::by_name(word).is_some()) {
            let (op, args) = operation(c, word)?;
            let class = if op.row().result == Type::Bool { Class::Int } else { Class::Real };
            (class, Instr::Op { dst, op, args })
        } else {
            let value = c.take_rest();
            let number = value.parse().map_err(|_| format!("`{value}` is no instruction and no number"))?;
            (Class::Real, Instr::Const { dst, value: number })
        };
        self.set_class(dst, class)?;
        Ok(instr)
    }

    fn choice(&mut self, c: &mut Cursor<'_>) -> Result<Choice> {
        let var = c.reg()?;
        c.expect(" = ")?;
        let then = c.reg()?;
        c.expect(" | ")?;
        let otherwise = c.reg()?;
        self.set_class(var, self.class(then)?)?;
        Ok(Choice { var, then, otherwise })
    }

    fn carried(&mut self, c: &mut Cursor<'_>) -> Result<Vec<Carried>> {
        let mut all = Vec::new();
        while c.eat(", ") {
            let var = c.reg()?;
            c.expect(" = ")?;
            let init = c.reg()?;
            c.expect(" then ")?;
            all.push(Carried { var, init, next: c.reg()? });
            self.set_class(var, self.class(init)?)?;
        }
        Ok(all)
    }

    fn failure(&mut self, c: &mut Cursor<'_>) -> Result<usize> {
        c.expect(" else ")?;
        let failure = c.index(MAX_INDEX)?;
        self.n_failures = self.n_failures.max(failure + 1);
        Ok(failure)
    }

    fn define(&mut self, c: &mut Cursor<'_>, class: Class) -> Result<Reg> {
        let reg = c.reg()?;
        self.set_class(reg, class)?;
        Ok(reg)
    }

    fn set_class(&mut self, reg: Reg, class: Class) -> Result<()> {
        let idx = reg.index();
        if idx > MAX_INDEX {
            return Err(format!("{reg} is beyond r{MAX_INDEX}"));
        }
        if idx >= self.classes.len() {
            self.classes.resize(idx + 1, None);
        }
        match self.classes[idx].replace(class) {
            None => Ok(()),
            Some(_) => Err(format!("{reg} is defined twice")),
        }
    }

    fn class(&self, reg: Reg) -> Result<Class> {
        self.classes.get(reg.index()).copied().flatten().ok_or_else(|| format!("{reg} is used before its definition"))
    }

    fn finish(mut self, body: Vec<Stmt>) -> Kernel {
        self.kernel.regs =
            self.classes.into_iter().map(|class| class.unwrap_or(Class::Real)).collect::<Arena<Reg, Class>>().into();
        self.kernel.failures = (0..self.n_failures).map(|k| (format!("failure {k}"), None)).collect();
        self.kernel.body = body;
        self.kernel
    }
}

fn signs(word: Option<&str>) -> Option<Signs> {
    [Signs::Plus, Signs::MinusSummand, Signs::MinusProduct].into_iter().find(|signs| Some(signs.name()) == word)
}

/// Parses an operator and its arguments.
fn operation(c: &mut Cursor<'_>, word: &str) -> Result<(Op, [Reg; 3])> {
    let op = Op::by_name(word).ok_or_else(|| format!("there is no operator {word}"))?;
    c.eat(word);
    c.expect(" ")?;
    let args = c.regs()?;
    let (Some(first), true) = (args.first(), args.len() == op.arity()) else {
        return Err(format!("{word} has {} arguments", op.arity()));
    };
    Ok((op, std::array::from_fn(|i| *args.get(i).unwrap_or(first))))
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn error(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn errors_name_the_line_and_the_reason() {
        let kernel = "kernel f\ninput x: real in b0\noutput y: real in b1\n";
        let cases = [
            ("", "line 1: the line `kernel NAME` is missing"),
            ("kernel f\nr0 = real", "line 2: `real` is no instruction and no number"),
            ("kernel f\nr0 = 1.0 2", "line 2: `1.0 2` is no instruction and no number"),
            ("kernel f\nr0 = int 1\nr0 = int 2", "line 3: r0 is defined twice"),
            ("kernel f\n r0 = int 1", "line 2: the indentation is odd"),
            ("kernel f\n  r0 = int 1", "line 2: the line is indented too far"),
            ("kernel f\nfor r0 in 0..3\nelse", "line 3: `else` has no `if`"),
            ("kernel f\ndo if r0 else 0", "line 2: the line is indented too far"),
            ("kernel f\nwhile at most 3\n", "line 2: the line `do if` of a loop is missing"),
            ("kernel f\nr1 = r0 | r0", "line 2: r0 is used before its definition"),
            ("kernel f\nr0 = int 1\nr1 = r0 | r0", "line 3: no branch precedes its result"),
            (
                "kernel f\nr99999999999999999999 = int 1",
                "line 2: expected a register at `r99999999999999999999 = int 1`",
            ),
            ("kernel f\nr99999999 = int 1", "line 2: r99999999 is beyond r16777216"),
            ("kernel f\nr0 = int 99999999999999999999", "line 2: a coefficient does not fit into 64 bits"),
            ("kernel f\nr0 = load b7[0]", "line 2: there is no buffer b7"),
            ("kernel f\nr0 = call g r1", "line 2: there is no external function g"),
            ("kernel f\ninput x: real in b1", "line 2: buffer b0 is missing"),
            ("kernel f\nsize n r0 = value of k", "line 2: there is no input k"),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected, "{text}");
        }
        for (line, expected) in [
            ("r0 = add r1", "line 4: add has 2 arguments"),
            ("r0 = mul_add r1, r2", "line 4: a fused multiply-add has three arguments"),
            ("store b1[0] = r0 r1", "line 4: unexpected ` r1`"),
            ("store b1[r0*] = r0", "line 4: expected a register at `] = r0`"),
            ("for r0 in 0..3 sometimes", "line 4: unexpected ` sometimes`"),
        ] {
            assert_eq!(error(&format!("{kernel}{line}")), expected, "{line}");
        }
    }
}
