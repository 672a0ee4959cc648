//! Parser of listings: the inverse of [`print::listing`](crate::print::listing), so that passes can be tested as text.
//!
//! In: one listing. Out: a function that lists as the same text. Types follow from the statements, as in the builder;
//! only binders state theirs. Variables keep their names except `v12` and the
//! like, which are printed for variables without a name. No statement has a span.
//!
//! The parser checks the form of the text and that names are bound; [`verify`](crate::verify()) checks the function.
//!
//! Only recursive on nesting.

mod cursor;
mod header;

use crate::custom::{Custom, Rule, RuleBlock};
use crate::print::words;
use crate::{Block, Builder, Expr, Function, Size, StateLoop, Type, VarId, WhileLoop};
use chainrule_base::Name;
use chainrule_ops::Op;
use chainrule_syntax::token::TokenKind as T;
use cursor::Cursor;
use rustc_hash::FxHashMap;

type Result<R> = std::result::Result<R, String>;

/// Maximum nesting of blocks.
const MAX_DEPTH: usize = 200;

/// Parses a listing.
///
/// # Errors
/// The first line that is not part of a listing, with the reason.
pub fn parse(text: &str) -> Result<Function> {
    let cursor = Cursor::new(text)?;
    let mut parser = Parser { cursor, b: Builder::new("f"), vars: FxHashMap::default(), depth: 0 };
    let parsed = parser.item(text);
    parsed.map_err(|reason| format!("line {}: {reason}", parser.cursor.line()))
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    b: Builder,
    vars: FxHashMap<&'t str, VarId>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn item(&mut self, text: &'t str) -> Result<Function> {
        self.header()?;
        self.requirements(text)?;
        let result = self.stmts()?;
        self.cursor.expect(T::End)?;
        Ok(std::mem::replace(&mut self.b, Builder::new("f")).finish(result))
    }

    /// Parses statements and the result of a block into the open block.
    fn stmts(&mut self) -> Result<VarId> {
        while self.cursor.eat(T::Let) {
            let name = self.cursor.name()?;
            let is_int = self.cursor.eat(T::Colon);
            if is_int {
                self.cursor.expect_word("Int")?;
            }
            self.cursor.expect(T::Equals)?;
            let var = self.statement(is_int)?;
            self.bind(name, var)?;
        }
        self.var()
    }

    fn block(&mut self) -> Result<Block> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("blocks are nested too deeply".to_owned());
        }
        self.b.push_block();
        let result = self.stmts()?;
        self.depth -= 1;
        Ok(self.b.pop_block(result))
    }

    fn bind(&mut self, name: &'t str, var: VarId) -> Result<()> {
        // `v12` is how a variable without a name is printed.
        let is_anonymous = name.strip_prefix('v').is_some_and(|number| number.parse::<usize>().is_ok());
        if !is_anonymous {
            self.b.name(var, &Name::new(name));
        }
        match self.vars.insert(name, var) {
            None => Ok(()),
            Some(_) => Err(format!("`{name}` is bound twice")),
        }
    }

    fn var(&mut self) -> Result<VarId> {
        let name = self.cursor.name()?;
        self.vars.get(name).copied().ok_or_else(|| format!("`{name}` is not bound"))
    }

    /// Emits the expression of a statement. One of type `Int` is a polynomial unless it starts like another form.
    fn statement(&mut self, is_int: bool) -> Result<VarId> {
        let expr = match self.cursor.peek() {
            T::True | T::False => Expr::Bool(self.cursor.next() == T::True),
            T::Real => Expr::Real(self.cursor.real()?),
            T::Minus if self.cursor.peek_second() == T::Real => {
                self.cursor.next();
                Expr::Real(-self.cursor.real()?)
            }
            T::LeftParen if matches!(self.cursor.peek_second(), T::Real | T::Minus) => self.quotient()?,
            T::LeftParen => Expr::Tuple(self.list(T::LeftParen, T::RightParen)?),
            T::LeftBracket => Expr::Array(self.list(T::LeftBracket, T::RightBracket)?),
            T::LeftBrace => return self.record(),
            T::If => self.branch()?,
            T::Minus if !is_int => {
                self.cursor.next();
                Expr::op(Op::Neg, &[self.var()?])
            }
            T::Name => return self.named(is_int),
            _ => Expr::Size(self.polynomial()?),
        };
        Ok(self.b.compute(expr))
    }

    /// Parses `(0.0 / 0.0)` and the like: numbers without a literal.
    fn quotient(&mut self) -> Result<Expr> {
        self.cursor.expect(T::LeftParen)?;
        let sign = if self.cursor.eat(T::Minus) { -1.0 } else { 1.0 };
        let dividend = sign * self.cursor.real()?;
        self.cursor.expect(T::Slash)?;
        let divisor = self.cursor.real()?;
        self.cursor.expect(T::RightParen)?;
        let quotient = dividend / divisor;
        Ok(Expr::Real(if quotient.is_nan() { f64::NAN } else { quotient }))
    }

    fn list(&mut self, open: T, close: T) -> Result<Vec<VarId>> {
        self.cursor.expect(open)?;
        let mut vars = Vec::new();
        while self.cursor.peek() != close {
            vars.push(self.var()?);
            if !self.cursor.eat(T::Comma) {
                break;
            }
        }
        self.cursor.expect(close)?;
        Ok(vars)
    }

    fn record(&mut self) -> Result<VarId> {
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        self.cursor.expect(T::LeftBrace)?;
        loop {
            names.push(Name::new(self.cursor.name()?));
            self.cursor.expect(T::Equals)?;
            fields.push(self.var()?);
            if !self.cursor.eat(T::Comma) {
                break;
            }
        }
        self.cursor.expect(T::RightBrace)?;
        Ok(self.b.record(names.into(), &fields))
    }

    fn branch(&mut self) -> Result<Expr> {
        self.cursor.expect(T::If)?;
        let condition = self.var()?;
        self.cursor.expect(T::Then)?;
        let then = self.side()?;
        self.cursor.expect(T::Else)?;
        Ok(Expr::If { condition, then, otherwise: self.side()? })
    }

    /// Parses one side of a branch: a block in parentheses, or a variable.
    fn side(&mut self) -> Result<Block> {
        if self.cursor.peek() != T::LeftParen {
            return Ok(Block { stmts: Vec::new(), result: self.var()? });
        }
        self.cursor.expect(T::LeftParen)?;
        let block = self.block()?;
        self.cursor.expect(T::RightParen)?;
        Ok(block)
    }

    /// Emits an expression that starts with a name: a construct, an operator, or a form with a variable first.
    fn named(&mut self, is_int: bool) -> Result<VarId> {
        let word = self.cursor.word();
        if let Some(keyword) = words::ALL.iter().find(|keyword| **keyword == word) {
            self.cursor.next();
            return self.construct(keyword);
        }
        if let Some(op) = Op::by_name(word)
            && !self.vars.contains_key(word)
        {
            self.cursor.next();
            let args: Vec<VarId> = (0..op.arity()).map(|_| self.var()).collect::<Result<_>>()?;
            return Ok(self.b.compute(Expr::op(op, &args)));
        }
        let second = self.cursor.peek_second();
        if is_int && !matches!(second, T::LeftBracket | T::Dot | T::Name) {
            let size = self.polynomial()?;
            return Ok(self.b.compute(Expr::Size(size)));
        }
        let first = self.var()?;
        let expr = match second {
            T::LeftBracket => {
                self.cursor.expect(T::LeftBracket)?;
                let proved = !self.checked();
                let index = self.var()?;
                self.cursor.expect(T::RightBracket)?;
                Expr::Get { array: first, index, proved }
            }
            T::Dot => {
                self.cursor.expect(T::Dot)?;
                Expr::Component(first, self.field(first)?)
            }
            T::Name => Expr::Again { me: first, at: self.var()? },
            _ => {
                let symbol = self.cursor.word();
                let op = Op::all().find(|op| op.arity() == 2 && op.row().symbol == Some(symbol));
                let op = op.ok_or_else(|| format!("`{symbol}` is no operator"))?;
                self.cursor.next();
                let second = self.var()?;
                match (op, self.b.ty(first)) {
                    (Op::Add, Type::Array(..) | Type::Tuple(..)) => Expr::Plus(first, second),
                    _ => Expr::op(op, &[first, second]),
                }
            }
        };
        Ok(self.b.compute(expr))
    }

    /// Skips the word before an index that is checked at run time; returns whether it was there.
    fn checked(&mut self) -> bool {
        let is_checked = self.cursor.word() == words::CHECK && self.cursor.peek_second() == T::Name;
        if is_checked {
            self.cursor.next();
        }
        is_checked
    }

    fn field(&mut self, tuple: VarId) -> Result<usize> {
        if self.cursor.peek() == T::Integer {
            return usize::try_from(self.cursor.integer()?).map_err(|_| "a component is negative".to_owned());
        }
        let name = self.cursor.name()?;
        let Type::Tuple(_, Some(names)) = self.b.ty(tuple) else { return Err(format!("there is no field `{name}`")) };
        names.iter().position(|field| **field == *name).ok_or_else(|| format!("there is no field `{name}`"))
    }

    fn construct(&mut self, word: &str) -> Result<VarId> {
        let expr = match word {
            words::REAL => Expr::ToReal(self.var()?),
            words::TRUNCATE => Expr::ToInt(self.var()?),
            words::BUILD => {
                let (size, ([index], body)) = (self.size()?, self.function()?);
                Expr::Build { size, index, body }
            }
            words::SUM => {
                let (count, ([index], body)) = (self.size()?, self.function()?);
                Expr::Sum { count, index, body }
            }
            words::FOLD => Expr::Fold(self.steps()?),
            words::LOOP => Expr::Loop(self.steps()?),
            words::WHILE => {
                let ([state], condition) = self.function()?;
                // Both blocks bind the same variable.
                self.cursor.expect(T::LeftParen)?;
                self.cursor.expect(T::Fun)?;
                self.binder(Some(state))?;
                self.cursor.expect(T::Arrow)?;
                let body = self.block()?;
                self.cursor.expect(T::RightParen)?;
                Expr::While(WhileLoop { state, condition, body, init: self.var()?, limit: self.size()? })
            }
            words::ZERO => {
                self.cursor.expect(T::Colon)?;
                let ty = self.ty()?;
                return Ok(self.b.zero(ty));
            }
            words::ONE_HOT => {
                let size = self.size()?;
                let in_parens = self.cursor.eat(T::LeftParen);
                let proved = !self.checked();
                let index = self.var()?;
                if in_parens {
                    self.cursor.expect(T::RightParen)?;
                }
                let value = self.var()?;
                let ty = Type::array(size, self.b.ty(value).clone());
                return Ok(self.b.emit(Expr::OneHot { index, value, proved }, ty));
            }
            words::FORWARD => {
                let (params, body) = self.function_of_any()?;
                let (mut at, mut along) = (Vec::new(), Vec::new());
                for _ in &params {
                    let [point, direction] = self.list(T::LeftParen, T::RightParen)?[..] else {
                        return Err("a parameter has no pair of a point and a direction".to_owned());
                    };
                    at.push(point);
                    along.push(direction);
                }
                Expr::Jvp { params, body, at, along }
            }
            words::BACKWARD => {
                let (params, body) = self.function_of_any()?;
                let at = params.iter().map(|_| self.var()).collect::<Result<_>>()?;
                Expr::Vjp { params, body, at, cotangent: self.var()? }
            }
            _ => Expr::Custom(Box::new(self.custom(word)?)),
        };
        Ok(self.b.compute(expr))
    }

    fn steps(&mut self) -> Result<StateLoop> {
        let ([state, index], body) = self.function()?;
        let (init, count) = (self.var()?, self.size()?);
        Ok(StateLoop { count, index, state, init, body })
    }

    fn custom(&mut self, word: &str) -> Result<Custom> {
        let promised = matches!(word, words::PROMISED_CONSTANT | words::PROMISED_DERIVATIVE);
        let ([param], body) = self.function()?;
        let rule = if matches!(word, words::CONSTANT | words::PROMISED_CONSTANT) {
            None
        } else {
            let me = self.b.fresh(self.b.ty(body.result).clone());
            let forward = self.rule(me)?;
            Some(Rule { me, forward, reverse: self.rule(me)? })
        };
        Ok(Custom { at: self.var()?, param, body, rule, promised })
    }

    /// Parses one rule of the function `me`; the first one binds its name.
    fn rule(&mut self, me: VarId) -> Result<RuleBlock> {
        self.cursor.expect(T::LeftParen)?;
        self.cursor.expect(T::Fun)?;
        let name = self.cursor.name()?;
        if self.vars.get(name) != Some(&me) {
            self.bind(name, me)?;
        }
        let (params, body) = self.rest_of_function()?;
        let params = params.try_into().map_err(|_| "a rule does not have three parameters".to_owned())?;
        Ok(RuleBlock { params, body })
    }

    /// Parses a function of `N` parameters.
    fn function<const N: usize>(&mut self) -> Result<([VarId; N], Block)> {
        let (params, body) = self.function_of_any()?;
        let params = params.try_into().map_err(|_| format!("a function does not have {N} parameters"))?;
        Ok((params, body))
    }

    fn function_of_any(&mut self) -> Result<(Vec<VarId>, Block)> {
        self.cursor.expect(T::LeftParen)?;
        self.cursor.expect(T::Fun)?;
        self.rest_of_function()
    }

    fn rest_of_function(&mut self) -> Result<(Vec<VarId>, Block)> {
        let mut params = Vec::new();
        while !self.cursor.eat(T::Arrow) {
            params.push(self.binder(None)?);
        }
        let body = self.block()?;
        self.cursor.expect(T::RightParen)?;
        Ok((params, body))
    }

    /// Parses a bound variable: `i` is an `Int`, others state their type. It may be `again`, bound before.
    fn binder(&mut self, again: Option<VarId>) -> Result<VarId> {
        let in_parens = self.cursor.eat(T::LeftParen);
        let name = self.cursor.name()?;
        let mut ty = Type::Int;
        if in_parens {
            self.cursor.expect(T::Colon)?;
            ty = self.ty()?;
            self.cursor.expect(T::RightParen)?;
        }
        match again {
            Some(var) if self.vars.get(name) == Some(&var) => Ok(var),
            Some(_) => Err(format!("`{name}` is not the state of the condition")),
            None => {
                let var = self.b.fresh(ty);
                self.bind(name, var)?;
                Ok(var)
            }
        }
    }

    /// Parses a size as an argument: a name, a number, or a polynomial in parentheses.
    fn size(&mut self) -> Result<Size> {
        match self.cursor.peek() {
            T::Name => {
                let var = self.var()?;
                Ok(self.b.size_of(var))
            }
            T::Integer => Ok(Size::constant(self.cursor.integer()?)),
            _ => {
                self.cursor.expect(T::LeftParen)?;
                let size = self.polynomial()?;
                self.cursor.expect(T::RightParen)?;
                Ok(size)
            }
        }
    }
}
