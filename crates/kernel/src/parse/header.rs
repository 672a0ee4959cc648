//! The lines of a listing before its statements.

use super::{Cursor, ParseError, Result};
use crate::kernel::{Buffer, BufferId, Class, Condition, External, Kernel, Place, Port, Reg, SizeParam, SizeSource};
use crate::zeros::Zeros;
use chainrule_base::{Id, Name, Poly};
use std::collections::BTreeMap;
use std::iter::Peekable;

/// The header so far.
struct Header<'t> {
    kernel: Kernel,
    /// Origin of each size whose input is known by name only, with its index and the dimension of an extent.
    sources: Vec<(usize, &'t str, Option<usize>)>,
    buffers: BTreeMap<BufferId, Buffer>,
}

/// Parses the lines of the header. Returns a kernel without registers and statements.
pub(super) fn parse<'t>(lines: &mut Peekable<impl Iterator<Item = (usize, &'t str)>>) -> Result<Kernel, ParseError> {
    let name = lines.next().and_then(|(line, text)| Some((line, text.strip_prefix("kernel ")?)));
    let Some((mut line, name)) = name else {
        return Err(ParseError { line: 1, reason: "the line `kernel NAME` is missing".to_owned() });
    };
    let mut header =
        Header { kernel: Kernel::empty(Name::new(name.trim())), sources: Vec::new(), buffers: BTreeMap::new() };
    while let Some((number, text)) = lines.next_if(|(_, text)| keyword(text).is_some()) {
        line = number;
        let mut cursor = Cursor::new(text.trim());
        let parsed = header.line(keyword(text).unwrap_or_default(), &mut cursor).and_then(|()| cursor.end());
        parsed.map_err(|reason| ParseError { line, reason })?;
    }
    header.finish().map_err(|reason| ParseError { line, reason })
}

fn keyword(line: &str) -> Option<&'static str> {
    ["size ", "input ", "output ", "buffer ", "workspace: ", "external ", "require ", "zeros "]
        .into_iter()
        .find(|keyword| line.starts_with(keyword))
}

impl<'t> Header<'t> {
    fn line(&mut self, keyword: &str, c: &mut Cursor<'t>) -> Result<()> {
        c.expect(keyword)?;
        match keyword {
            "size " => self.size(c),
            "input " => {
                let port = self.port(c, Place::Input(self.kernel.inputs.len()))?;
                self.kernel.inputs.push(port);
                Ok(())
            }
            "output " => {
                let port = self.port(c, Place::Output(self.kernel.outputs.len()))?;
                self.kernel.outputs.push(port);
                Ok(())
            }
            "buffer " => self.memory(c),
            "workspace: " => {
                self.kernel.workspace_reals = c.poly()?;
                c.expect(" real, ")?;
                self.kernel.workspace_ints = c.poly()?;
                c.expect(" int")
            }
            "external " => {
                let name = Name::new(c.name()?);
                c.expect("/")?;
                let arity = c.index(super::MAX_INDEX)?;
                self.kernel.externals.push(External { name, arity, call: None, c_name: None });
                Ok(())
            }
            "require " => {
                let size = c.poly()?;
                let exactly_zero = c.eat(" == 0: ");
                if !exactly_zero {
                    c.expect(" >= 0: ")?;
                }
                let message = c.take_rest().to_owned();
                self.kernel.requires.push(Condition { size, exactly_zero, message, span: None });
                Ok(())
            }
            _ => self.zeros(c),
        }
    }

    fn size(&mut self, c: &mut Cursor<'t>) -> Result<()> {
        let name = Name::new(c.name()?);
        c.expect(" ")?;
        let reg: Reg = c.reg()?;
        c.expect(" = ")?;
        let mut source = SizeSource::Value { input: 0 };
        if c.eat("larger of ") {
            source = SizeSource::Natural { of: c.poly()? };
            c.expect(" and 0")?;
        } else {
            let dim = if c.eat("extent ") { Some(c.index(super::MAX_INDEX)?) } else { None };
            c.expect(if dim.is_some() { " of " } else { "value of " })?;
            self.sources.push((self.kernel.sizes.len(), c.take_rest(), dim));
        }
        self.kernel.sizes.push(SizeParam { name, reg, source });
        Ok(())
    }

    fn port(&mut self, c: &mut Cursor<'t>, place: Place) -> Result<Port> {
        let name = Name::new(c.name()?);
        c.expect(": ")?;
        let class = class(c)?;
        let mut shape = Vec::new();
        while c.eat("[") {
            shape.push(c.poly()?);
            c.expect("]")?;
        }
        c.expect(" in ")?;
        let buffer = c.buffer()?;
        let len = shape.iter().fold(Poly::constant(1), |len, extent| len.mul(extent));
        self.add(buffer, Buffer { class, len, place })?;
        Ok(Port { name, shape, buffer })
    }

    fn memory(&mut self, c: &mut Cursor<'t>) -> Result<()> {
        let buffer = c.buffer()?;
        c.expect(": ")?;
        let class = class(c)?;
        c.expect("[")?;
        let len = c.poly()?;
        c.expect("] at ")?;
        let place = Place::Workspace(c.poly()?);
        self.add(buffer, Buffer { class, len, place })
    }

    fn zeros(&mut self, c: &mut Cursor<'t>) -> Result<()> {
        let buffer = c.buffer()?;
        c.expect("[")?;
        let mut before = -1;
        loop {
            let element = i64::try_from(c.index(super::MAX_INDEX)?).unwrap_or(i64::MAX);
            if element <= before {
                return Err("the zeros are not in ascending order".to_owned());
            }
            Zeros::add(&mut self.kernel.zeros, buffer, element);
            before = element;
            if !c.eat(", ") {
                return c.expect("]");
            }
        }
    }

    fn add(&mut self, id: BufferId, buffer: Buffer) -> Result<()> {
        match self.buffers.insert(id, buffer) {
            None => Ok(()),
            Some(_) => Err(format!("buffer {id} is defined twice")),
        }
    }

    fn finish(mut self) -> Result<Kernel> {
        for (size, name, dim) in &self.sources {
            let input = self.kernel.inputs.iter().position(|port| port.name.as_str() == *name);
            let input = input.ok_or_else(|| format!("there is no input {name}"))?;
            self.kernel.sizes[*size].source =
                dim.map_or(SizeSource::Value { input }, |dim| SizeSource::Extent { input, dim });
        }
        for (expected, (id, buffer)) in self.buffers.into_iter().enumerate() {
            if id.index() != expected {
                return Err(format!("buffer {} is missing", BufferId::new(expected)));
            }
            self.kernel.buffers.push(buffer);
        }
        Ok(self.kernel)
    }
}

fn class(c: &mut Cursor<'_>) -> Result<Class> {
    match () {
        () if c.eat("real") => Ok(Class::Real),
        () if c.eat("int") => Ok(Class::Int),
        () => Err(format!("expected `real` or `int` at `{}`", c.rest())),
    }
}
