//! Parts of a listing around statements: parameters, types, polynomials, requirements.

use super::cursor::Cursor;
use super::{Parser, Result};
use crate::{Requirement, Size, Type};
use chainrule_base::Name;
use chainrule_syntax::token::TokenKind as T;

impl<'t> Parser<'t> {
    /// Parses `let f = fun (x : [n]Double) ->`. A name alone in brackets that is no parameter is a size parameter.
    pub(super) fn header(&mut self) -> Result<()> {
        self.cursor.expect(T::Let)?;
        let name = self.cursor.name()?;
        self.b.rename(Name::new(name));
        self.cursor.expect(T::Equals)?;
        if !self.cursor.eat(T::Fun) {
            return Ok(());
        }
        self.entry_integers()?;
        while !self.cursor.eat(T::Arrow) {
            self.cursor.expect(T::LeftParen)?;
            let name = self.cursor.name()?;
            self.cursor.expect(T::Colon)?;
            let ty = self.ty()?;
            let var = match self.vars.get(name) {
                Some(var) => *var,
                None => {
                    let var = self.b.fresh(ty);
                    self.bind(name, var)?;
                    var
                }
            };
            self.b.push_param(var);
            self.cursor.expect(T::RightParen)?;
        }
        Ok(())
    }

    /// Binds the integers of the parameter list before their uses: parameters of type `Int`, then size parameters.
    fn entry_integers(&mut self) -> Result<()> {
        let list = self.cursor.until(T::Arrow);
        let kinds = |at: usize, expected: &[T]| {
            list.get(at..at + expected.len())
                .is_some_and(|part| part.iter().map(|(kind, _)| *kind).eq(expected.iter().copied()))
        };
        for at in 0..list.len() {
            if kinds(at, &[T::LeftParen, T::Name, T::Colon, T::Name, T::RightParen]) && list[at + 3].1 == "Int" {
                let var = self.b.fresh(Type::Int);
                self.bind(list[at + 1].1, var)?;
            }
        }
        for at in 0..list.len() {
            if kinds(at, &[T::LeftBracket, T::Name, T::RightBracket]) && !self.vars.contains_key(list[at + 1].1) {
                let var = self.b.fresh(Type::Int);
                self.b.push_size_param(var);
                self.bind(list[at + 1].1, var)?;
            }
        }
        Ok(())
    }

    /// Parses the comments `// requires n - 1 >= 0: message`.
    pub(super) fn requirements(&mut self, text: &'t str) -> Result<()> {
        for line in text.lines().filter_map(|line| line.strip_prefix("// requires ")) {
            let (condition, message) = line.split_once(": ").ok_or("a requirement has no message")?;
            let (size, exactly_zero) = match (condition.strip_suffix(" = 0"), condition.strip_suffix(" >= 0")) {
                (Some(size), _) => (size, true),
                (_, Some(size)) => (size, false),
                _ => return Err("a requirement has no relation".to_owned()),
            };
            let rest = std::mem::replace(&mut self.cursor, Cursor::new(size)?);
            let size = self.polynomial();
            self.cursor = rest;
            self.b.require(Requirement { size: size?, exactly_zero, message: message.to_owned(), span: None });
        }
        Ok(())
    }

    pub(super) fn ty(&mut self) -> Result<Type> {
        let word = self.cursor.word();
        match self.cursor.next() {
            T::Name if word == "Double" => Ok(Type::Double),
            T::Name if word == "Int" => Ok(Type::Int),
            T::Name if word == "Bool" => Ok(Type::Bool),
            T::LeftBracket => {
                let size = self.polynomial()?;
                self.cursor.expect(T::RightBracket)?;
                Ok(Type::array(size, self.ty()?))
            }
            T::LeftParen => {
                let mut fields = Vec::new();
                while self.cursor.peek() != T::RightParen {
                    fields.push(self.ty()?);
                    if !self.cursor.eat(T::Comma) {
                        break;
                    }
                }
                self.cursor.expect(T::RightParen)?;
                Ok(Type::tuple(fields))
            }
            T::LeftBrace => {
                let (mut names, mut fields) = (Vec::new(), Vec::new());
                loop {
                    names.push(Name::new(self.cursor.name()?));
                    self.cursor.expect(T::Colon)?;
                    fields.push(self.ty()?);
                    if !self.cursor.eat(T::Comma) {
                        break;
                    }
                }
                self.cursor.expect(T::RightBrace)?;
                Ok(Type::Tuple(fields, Some(names.into())))
            }
            _ => Err(format!("`{word}` is no type")),
        }
    }

    /// Parses a polynomial: `2 * n - i + 1`.
    pub(super) fn polynomial(&mut self) -> Result<Size> {
        let mut sum = Size::zero();
        let mut negative = self.cursor.eat(T::Minus);
        loop {
            let mut product = self.factor()?;
            while self.cursor.eat(T::Star) {
                product = product.mul(&self.factor()?);
            }
            sum = if negative { sum.sub(&product) } else { sum.add(&product) };
            negative = match self.cursor.peek() {
                T::Plus => false,
                T::Minus => true,
                _ => return Ok(sum),
            };
            self.cursor.next();
        }
    }

    fn factor(&mut self) -> Result<Size> {
        match self.cursor.peek() {
            T::Integer => Ok(Size::constant(self.cursor.integer()?)),
            _ => {
                let var = self.var()?;
                Ok(self.b.size_of(var))
            }
        }
    }
}
