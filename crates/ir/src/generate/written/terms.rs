//! Numbers, conditions and indices.

use super::{Extent, Kind, Writer};
use arbitrary::Result;

impl Writer<'_, '_> {
    pub(super) fn number(&mut self, depth: u32) -> Result<String> {
        if depth == 0 || self.dry() {
            return self.leaf();
        }
        self.fuel -= 1;
        let depth = depth - 1;
        Ok(match self.u.int_in_range(0..=27)? {
            0..=4 => {
                let op = self.choose(&["+", "-", "*", "*"])?;
                format!("({} {op} {})", self.number(depth)?, self.number(depth)?)
            }
            5..=7 => self.function(depth)?,
            8 | 9 => self.sum(depth)?,
            10 | 11 => self.number_of_loop(depth)?,
            12 | 13 => {
                let condition = self.condition(depth)?;
                format!("(if {condition} then {} else {})", self.number(depth)?, self.number(depth)?)
            }
            14 => self.bound(&Kind::Number, depth)?,
            15 | 16 => match self.call(&Kind::Number, depth)? {
                Some(call) => format!("(tanh {call})"),
                None => self.leaf()?,
            },
            17..=19 => self.of_vector(depth)?,
            20 | 21 => self.of_matrix(depth)?,
            22..=24 => self.number_of_derivative(depth)?,
            25 if !self.options.smooth => {
                let name = self.choose(&["min", "max"])?;
                format!("({name} {} {})", self.number(depth)?, self.number(depth)?)
            }
            26 => {
                let n = self.extent()?;
                let index = self.index(&n)?;
                let pairs = self.pairs(&n, depth.min(1))?;
                format!("({} {pairs}[{index}])", self.choose(&["fst", "snd"])?)
            }
            _ => self.leaf()?,
        })
    }

    /// Returns an existing number.
    fn leaf(&mut self) -> Result<String> {
        if self.scope.is_empty() || (!self.u.is_empty() && self.u.ratio(1, 10)?) {
            let indices = self.indices.clone();
            return Ok(match indices.last() {
                Some((index, _)) if self.u.arbitrary()? => format!("(0.1 * {index})"),
                _ => self.choose(&["0.5", "1.0", "(-0.75)", "0.0", "2.0"])?.to_owned(),
            });
        }
        let scope = self.scope.clone();
        let (name, kind) = self.late(&scope)?;
        Ok(match kind {
            Kind::Number => name,
            Kind::Vector(n) => format!("{name}[{}]", self.index(&n)?),
            Kind::Matrix(r, c) => format!("{name}[{}][{}]", self.index(&r)?, self.index(&c)?),
            Kind::Pairs(n) => {
                let part = self.choose(&["fst", "snd"])?;
                format!("({part} {name}[{}])", self.index(&n)?)
            }
            Kind::Record(_) if self.u.arbitrary()? => format!("{name}.a"),
            Kind::Record(n) => format!("{name}.w[{}]", self.index(&n)?),
            Kind::Indices(n, _) => format!("(0.1 * {name}[{}])", self.index(&n)?),
        })
    }

    /// Returns an index of an array of `into` elements.
    pub(super) fn index(&mut self, into: &Extent) -> Result<String> {
        let mut found = Vec::new();
        for (index, extent) in &self.indices {
            if reaches(extent, into) {
                found.extend([index.clone(), index.clone(), index.clone()]);
                found.push(format!("({} - 1 - {index})", into.text()));
                found.push(format!("(div {index} 2)"));
                found.push(format!("(mod ({index} + 1) {})", into.text()));
            }
            match (extent, into) {
                (Extent::Before(a), Extent::Named(b)) if a == b => {
                    found.extend([index.clone(), format!("({index} + 1)")]);
                }
                (Extent::Half(a), Extent::Named(b)) if a == b => {
                    found.extend([format!("(2 * {index})"), format!("(2 * {index} + 1)")]);
                }
                _ => {}
            }
        }
        let given = !found.is_empty();
        // The last element, or the first, exists if the outer loops run.
        let is_end = self.options.empty && self.u.ratio(1, 3)?;
        if given && !is_end && self.u.ratio(5, 6)? {
            return self.choose(&found);
        }
        // A given index, or that of a maximum.
        let fits = |(_, kind): &&(String, Kind)| match kind {
            Kind::Indices(_, of) => of == into,
            Kind::Vector(n) => n == into && !self.options.smooth,
            _ => false,
        };
        let fitting: Vec<_> = self.scope.iter().filter(fits).cloned().collect();
        if !is_end && !fitting.is_empty() && self.u.arbitrary()? {
            return Ok(match self.choose(&fitting)? {
                (name, Kind::Indices(n, _)) => format!("{name}[{}]", self.index(&n)?),
                (name, _) => format!("({} {name})", self.choose(&["argmax", "argmin"])?),
            });
        }
        if !self.indices.is_empty() && !given && self.u.ratio(2, 3)? {
            let indices = self.indices.clone();
            let (index, _) = self.late(&indices)?;
            return Ok(format!("(mod {index} {})", into.text()));
        }
        Ok(match into {
            Extent::Constant(n) => self.u.int_in_range(0..=n - 1)?.to_string(),
            Extent::Named(n) if self.u.arbitrary()? => format!("({n} - 1)"),
            _ => "0".to_owned(),
        })
    }

    pub(super) fn condition(&mut self, depth: u32) -> Result<String> {
        let indices = self.indices.clone();
        if !indices.is_empty() && (self.options.smooth || self.u.ratio(3, 4)?) {
            let (index, extent) = self.late(&indices)?;
            return Ok(match self.u.int_in_range(0..=7)? {
                0 | 1 => format!("{index} < {}", self.u.int_in_range(1..=3)?),
                2 => format!("mod {index} 2 == 0"),
                3 => format!("{index} > 0"),
                4 => format!("{index} == {} - 1", extent.text()),
                5 => {
                    let (other, _) = self.choose(&indices)?;
                    format!("{index} {} {other}", self.choose(&["<", "<=", "==", "<>"])?)
                }
                6 => format!("{} && {index} <> 2", self.condition(0)?),
                _ => format!("not ({index} == 1 || {index} > 4)"),
            });
        }
        if self.options.smooth {
            let n = self.sizes[0];
            return Ok(format!("{n} > {}", self.u.int_in_range(1..=5)?));
        }
        let op = self.choose(&["<", ">", "<=", ">="])?;
        Ok(format!("{} {op} {}", self.number(depth.min(1))?, self.number(depth.min(1))?))
    }

    /// Returns a function of one number, or of two.
    fn function(&mut self, depth: u32) -> Result<String> {
        let most = if self.options.smooth { 14 } else { 16 };
        let which = self.u.int_in_range(0..=most)?;
        let x = self.number(depth)?;
        Ok(match which {
            0..=2 => format!("(sin {x})"),
            3 | 4 => format!("(cos {x})"),
            5 | 6 => format!("(tanh {x})"),
            7 => format!("(exp (0.5 * tanh {x}))"),
            8 => format!("(sqrt (1.0 + {x} * {x}))"),
            9 => format!("(log (1.5 + sin {x}))"),
            10 => format!("(1.0 / (2.0 + cos {x}))"),
            11 => format!("({x} ** {})", self.choose(&["2", "3", "2.0"])?),
            12 => format!("(atan2 {x} (2.0 + {} ** 2))", self.number(depth)?),
            13 => format!("({} {x})", self.choose(&["atan", "erf", "erfc", "asinh"])?),
            // With a derivative of its own, or without a part of it.
            14 if self.u.arbitrary()? => format!("({x} * constant {})", self.number(depth)?),
            14 => self.stated_number(&x, depth.min(2))?,
            15 => format!("(abs {x})"),
            _ => format!("(clip {x} (-0.5) 0.5)"),
        })
    }

    fn sum(&mut self, depth: u32) -> Result<String> {
        let n = self.count()?;
        if !self.room(n.work()) {
            return self.leaf();
        }
        let (index, element) = self.over(&n, |w| w.number(depth))?;
        let sum = format!("(sum {} (fun {index} -> {}))", n.text(), super::bare(&element));
        Ok(match self.u.int_in_range(0..=3)? {
            0 => format!("(tanh {sum})"),
            1 => format!("(0.2 * {sum})"),
            _ => sum,
        })
    }

    /// `let t = ... in ...`.
    pub(super) fn bound(&mut self, kind: &Kind, depth: u32) -> Result<String> {
        let made = if self.u.ratio(2, 3)? { Kind::Number } else { Kind::Vector(self.extent()?) };
        if !self.room(made.work()) {
            return self.term(kind, depth);
        }
        let (t, value) = (self.fresh("t"), self.term(&made, depth)?);
        self.block(|w| {
            w.scope.push((t.clone(), made));
            Ok(format!("(let {t} = {} in {})", super::bare(&value), w.term(kind, depth)?))
        })
    }

    /// Returns a number that depends on all elements of vectors.
    fn of_vector(&mut self, depth: u32) -> Result<String> {
        let n = self.extent()?;
        if !self.room(n.work()) {
            return self.leaf();
        }
        let most = if self.options.smooth { 9 } else { 13 };
        let which = self.u.int_in_range(0..=most)?;
        let v = self.vector(&n, depth)?;
        Ok(match which {
            0 | 1 => format!("(vectorSum {v})"),
            2 | 3 => format!("(0.3 * vectorDot {v} {})", self.vector(&n, depth)?),
            4 => format!("(sqrt (0.5 + vectorNorm2 {v}))"),
            5 => format!("(logSumExp {v})"),
            6 => format!("(vectorMean {v})"),
            7 => format!("(vectorVariance {v})"),
            8 => format!("({v}[{}])", self.index(&n)?),
            9 => self.stated_sum(&n, &v, depth)?,
            10 => format!("(vectorMax {v})"),
            11 => format!("(vectorMin {v})"),
            12 => format!("(vectorNormInf {v} - vectorNorm1 {v})"),
            _ => format!("(vectorNorm {v})"),
        })
    }

    /// Returns a number that depends on all elements of matrices.
    fn of_matrix(&mut self, depth: u32) -> Result<String> {
        let (r, c) = (self.extent()?, self.extent()?);
        if !self.room(r.work() + c.work()) {
            return self.leaf();
        }
        let solved = self.room(2 * r.work() + 2);
        Ok(match self.u.int_in_range(0..=6)? {
            0 => format!("(0.2 * matrixSum {})", self.matrix(&r, &c, depth)?),
            1 => format!("(sqrt (1.0 + matrixNorm2 {}))", self.matrix(&r, &c, depth)?),
            2 => format!("(matrixTrace {})", self.matrix(&r, &r, depth)?),
            3 => {
                let (v, m) = (self.vector(&r, depth.min(1))?, self.matrix(&r, &c, depth)?);
                format!("(0.1 * vectorMatrixVector {v} {m} {})", self.vector(&c, depth.min(1))?)
            }
            4 if solved => format!("(logdet {})", self.conditioned(&r, depth)?),
            // At most three rows: with many rows it is a large number.
            5 if solved => format!("(0.1 * det {})", self.conditioned(&Extent::Constant(3), depth)?),
            4 | 5 => self.leaf()?,
            _ => format!("(0.1 * matrixDot {} {})", self.matrix(&r, &c, depth)?, self.matrix(&r, &c, depth)?),
        })
    }

    /// Returns a matrix that is far from singular, with a positive definite symmetric part.
    pub(super) fn conditioned(&mut self, n: &Extent, depth: u32) -> Result<String> {
        self.conditioned = true;
        Ok(format!("(conditioned {})", self.matrix(n, n, depth)?))
    }
}

/// Returns whether an index below `extent` is also below `into`.
fn reaches(extent: &Extent, into: &Extent) -> bool {
    match (extent, into) {
        (Extent::UpTo(_, of, _), _) => reaches(of, into),
        (Extent::Constant(a), Extent::Constant(b)) => a <= b,
        _ => extent == into,
    }
}
