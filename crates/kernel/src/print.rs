//! A readable listing of a kernel: one line a statement, loops and branches indented. What a branch
//! chooses stands after it: `r3 = r1 | r2`.
//!
//! The same kernel always prints the same bytes. [`parse`](crate::parse()) reads a listing.

use crate::events::{Event, events};
use crate::kernel::{Buffer, BufferId, Carried, Class, Instr, Kernel, Order, Place, Port, Reg, SizeSource};
use chainrule_base::Poly;
use std::fmt::{self, Display, Write};

impl Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {}", self.name)?;
        for size in &self.sizes {
            let input = |idx: usize| self.inputs.get(idx).map_or("?", |port| port.name.as_str());
            match &size.source {
                SizeSource::Extent { input: idx, dim } => {
                    writeln!(f, "size {} {} = extent {dim} of {}", size.name, size.reg, input(*idx))?;
                }
                SizeSource::Value { input: idx } => {
                    writeln!(f, "size {} {} = value of {}", size.name, size.reg, input(*idx))?;
                }
                SizeSource::Natural { of } => {
                    writeln!(f, "size {} {} = larger of {of} and 0", size.name, size.reg)?;
                }
            }
        }
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            for port in ports {
                self.port(f, what, port)?;
            }
        }
        for (id, buffer) in self.buffers.iter() {
            if let Buffer { class, len, place: Place::Workspace(offset) } = buffer {
                writeln!(f, "buffer {id}: {}[{len}] at {offset}", class_name(*class))?;
            }
        }
        if !self.workspace_reals.is_zero() || !self.workspace_ints.is_zero() {
            writeln!(f, "workspace: {} real, {} int", self.workspace_reals, self.workspace_ints)?;
        }
        for external in &self.externals {
            writeln!(f, "external {}/{}", external.name, external.arity)?;
        }
        for condition in &self.requires {
            let relation = if condition.exactly_zero { "==" } else { ">=" };
            writeln!(f, "require {} {relation} 0: {}", condition.size, condition.message)?;
        }
        for zeros in &self.zeros {
            let elements: Vec<String> = zeros.elements().map(|element| element.to_string()).collect();
            writeln!(f, "zeros {}[{}]", zeros.buffer, elements.join(", "))?;
        }
        self.body(f)
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Real => "real",
        Class::Int => "int",
    }
}

struct Element<'a>(BufferId, &'a Poly<Reg>);

impl Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.0, self.1)
    }
}

impl Kernel {
    fn port(&self, f: &mut fmt::Formatter<'_>, what: &str, port: &Port) -> fmt::Result {
        let class = self.buffers.get(port.buffer).map_or("?", |buffer| class_name(buffer.class));
        write!(f, "{what} {}: {class}", port.name)?;
        for extent in &port.shape {
            write!(f, "[{extent}]")?;
        }
        writeln!(f, " in {}", port.buffer)
    }

    fn body(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = events(&self.body);
        let mut depth = 0usize;
        for (idx, event) in events.iter().enumerate() {
            let line = |f: &mut fmt::Formatter<'_>, depth: usize| write!(f, "{:width$}", "", width = 2 * depth);
            match event {
                Event::Instr(instr) => {
                    line(f, depth)?;
                    self.instr(f, instr)?;
                    f.write_char('\n')?;
                }
                Event::Copy { to, from, len, is_move } => {
                    line(f, depth)?;
                    let how = if *is_move { "move" } else { "copy" };
                    writeln!(f, "{how} {len} to {} from {}", Element(to.0, &to.1), Element(from.0, &from.1))?;
                }
                Event::For { index, count, carried, order } => {
                    line(f, depth)?;
                    let at_once = match order {
                        Order::InOrder => "",
                        Order::Lanes => " at once",
                        Order::Parts => " in parts",
                    };
                    writeln!(f, "for {index} in 0..{count}{at_once}{}", Carry(carried))?;
                    depth += 1;
                }
                Event::While { carried, limit } => {
                    line(f, depth)?;
                    writeln!(f, "while at most {limit}{}", Carry(carried))?;
                    depth += 1;
                }
                Event::Test { holds, failure } => {
                    line(f, depth - 1)?;
                    writeln!(f, "do if {holds} else {failure}")?;
                }
                Event::If { condition } => {
                    line(f, depth)?;
                    writeln!(f, "if {condition}")?;
                    depth += 1;
                }
                Event::Else { .. } if matches!(events.get(idx + 1), Some(Event::EndIf { .. })) => {}
                Event::Else { .. } => {
                    line(f, depth - 1)?;
                    writeln!(f, "else")?;
                }
                Event::EndIf { choices } => {
                    depth -= 1;
                    for c in *choices {
                        line(f, depth)?;
                        writeln!(f, "{} = {} | {}", c.var, c.then, c.otherwise)?;
                    }
                }
                Event::EndFor { .. } | Event::EndWhile { .. } => depth -= 1,
            }
        }
        Ok(())
    }

    fn instr(&self, f: &mut fmt::Formatter<'_>, instr: &Instr) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, args: &[Reg]| {
            args.iter().enumerate().try_for_each(|(i, arg)| write!(f, "{}{arg}", if i == 0 { "" } else { ", " }))
        };
        match instr {
            Instr::Const { dst, value } => write!(f, "{dst} = {value:?}"),
            Instr::Int { dst, value } => write!(f, "{dst} = int {value}"),
            Instr::Op { dst, op, args } => {
                write!(f, "{dst} = {} ", op.name())?;
                list(f, &args[..op.arity()])
            }
            Instr::IntOp { dst, op, args, failure } => {
                write!(f, "{dst} = int {} ", op.name())?;
                list(f, &args[..op.arity()])?;
                write!(f, " else {failure}")
            }
            Instr::MulAdd { dst, signs, args } => {
                write!(f, "{dst} = {} ", signs.name())?;
                list(f, args)
            }
            Instr::ToReal { dst, src } => write!(f, "{dst} = real {src}"),
            Instr::ToInt { dst, src } => write!(f, "{dst} = int truncate {src}"),
            Instr::External { dst, function, args } => {
                let name = self.externals.get(*function).map_or("?", |external| external.name.as_str());
                write!(f, "{dst} = call {name} ")?;
                list(f, args)
            }
            Instr::Load { dst, buffer, at } => write!(f, "{dst} = load {}", Element(*buffer, at)),
            Instr::Store { buffer, at, value } => write!(f, "store {} = {value}", Element(*buffer, at)),
            Instr::CheckIndex { index, len, failure } => write!(f, "check {index} < {len} else {failure}"),
        }
    }
}

struct Carry<'a>(&'a [Carried]);

impl Display for Carry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, ", {} = {} then {}", c.var, c.init, c.next))
    }
}
