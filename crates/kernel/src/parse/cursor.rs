//! A position in a line of a listing.

use super::{MAX_INDEX, Result};
use crate::kernel::{BufferId, Reg};
use chainrule_base::{Id, Poly};
use std::collections::BTreeMap;

/// The part of a line that is not parsed yet.
pub(super) struct Cursor<'t> {
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    pub fn new(line: &'t str) -> Self {
        Self { rest: line }
    }

    pub fn rest(&self) -> &'t str {
        self.rest
    }

    pub fn take_rest(&mut self) -> &'t str {
        std::mem::take(&mut self.rest)
    }

    /// Skips `text` if it comes next; returns whether it does.
    pub fn eat(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { Err(format!("expected `{text}` at `{}`", self.rest)) }
    }

    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("unexpected `{}`", self.rest)) }
    }

    /// Returns the next letters, digits and underscores, which it does not skip.
    pub fn word(&self) -> Option<&'t str> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        (end > 0).then(|| &self.rest[..end])
    }

    /// Parses a name: everything up to a space, a colon, a slash or the end of the line.
    pub fn name(&mut self) -> Result<&'t str> {
        let end = self.rest.find([' ', ':', '/']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        if name.is_empty() { Err(format!("expected a name at `{rest}`")) } else { Ok(name) }
    }

    fn digits(&mut self) -> Option<&'t str> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        (end > 0).then_some(digits)
    }

    /// Parses an index of at most `limit`.
    pub fn index(&mut self, limit: usize) -> Result<usize> {
        let before = self.rest;
        let index = self.digits().and_then(|digits| digits.parse().ok()).filter(|index| *index <= limit);
        index.ok_or_else(|| format!("expected an index of at most {limit} at `{before}`"))
    }

    fn id(&mut self, prefix: &str) -> Option<usize> {
        let index: u32 = self.eat(prefix).then(|| self.digits())??.parse().ok()?;
        usize::try_from(index).ok()
    }

    pub fn reg(&mut self) -> Result<Reg> {
        let before = self.rest;
        self.id("r").map(Reg::new).ok_or_else(|| format!("expected a register at `{before}`"))
    }

    pub fn buffer(&mut self) -> Result<BufferId> {
        let before = self.rest;
        let index = self.id("b").filter(|index| *index <= MAX_INDEX);
        index.map(BufferId::new).ok_or_else(|| format!("expected a buffer at `{before}`"))
    }

    pub fn regs(&mut self) -> Result<Vec<Reg>> {
        let mut regs = vec![self.reg()?];
        while self.eat(", ") {
            regs.push(self.reg()?);
        }
        Ok(regs)
    }

    /// Parses `b3[2*r1 + 1]`.
    pub fn element(&mut self) -> Result<(BufferId, Poly<Reg>)> {
        let buffer = self.buffer()?;
        self.expect("[")?;
        let at = self.poly()?;
        self.expect("]")?;
        Ok((buffer, at))
    }

    /// Parses a polynomial: `2*r1*r2 - r3 + 1`.
    pub fn poly(&mut self) -> Result<Poly<Reg>> {
        let mut terms: BTreeMap<Vec<Reg>, i128> = BTreeMap::new();
        let mut negative = self.eat("-");
        loop {
            let (monomial, magnitude) = self.term()?;
            let coefficient = terms.entry(monomial).or_default();
            *coefficient += if negative { -magnitude } else { magnitude };
            negative = match () {
                () if self.eat(" + ") => false,
                () if self.eat(" - ") => true,
                () => break,
            };
        }
        let narrow = |(monomial, c): (Vec<Reg>, i128)| Some((monomial, i64::try_from(c).ok()?));
        let terms: Option<Vec<_>> = terms.into_iter().filter(|(_, c)| *c != 0).map(narrow).collect();
        terms.and_then(Poly::from_terms).ok_or_else(|| "a coefficient does not fit into 64 bits".to_owned())
    }

    fn term(&mut self) -> Result<(Vec<Reg>, i128)> {
        let magnitude = match self.digits() {
            Some(digits) => match digits.parse::<u64>() {
                Ok(value) if !self.eat("*") => return Ok((Vec::new(), value.into())),
                Ok(value) => value.into(),
                Err(_) => return Err("a coefficient does not fit into 64 bits".to_owned()),
            },
            None => 1,
        };
        let mut monomial = vec![self.reg()?];
        while self.eat("*") {
            monomial.push(self.reg()?);
        }
        monomial.sort_unstable();
        Ok((monomial, magnitude))
    }
}
