//! Derivatives inside programs.

use super::{Extent, Kind, Writer, bare};
use arbitrary::Result;

impl Writer<'_, '_> {
    /// Returns the result of `make` inside `orders` derivatives, each of so much `work`; `None` if that is too much.
    fn derived<T>(&mut self, orders: u32, work: u32, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.orders + orders > self.options.orders || !self.room(work) {
            return Ok(None);
        }
        self.orders += orders;
        let made = self.inside(work, make);
        self.orders -= orders;
        made.map(Some)
    }

    /// Returns `fun (t : ...) -> ...`, from one kind to another.
    fn lambda(&mut self, from: &Kind, to: &Kind, depth: u32) -> Result<String> {
        let t = self.fresh(if *from == Kind::Number { "t" } else { "u" });
        self.block(|w| {
            w.scope.push((t.clone(), from.clone()));
            let value = w.term(to, depth.max(1))?;
            Ok(format!("(fun ({t} : {}) -> {})", from.ty(), bare(&value)))
        })
    }

    pub(super) fn number_of_derivative(&mut self, depth: u32) -> Result<String> {
        let n = self.extent()?;
        let (number, vector, record) = (Kind::Number, Kind::Vector(n.clone()), Kind::Record(n.clone()));
        let made = match self.u.int_in_range(0..=9)? {
            0 | 1 => self.derived(1, 0, |w| {
                Ok(format!("(derivative {} {})", w.lambda(&number, &number, depth)?, w.number(depth)?))
            })?,
            2 => self.derived(2, 0, |w| {
                Ok(format!("(derivative (derivative {}) {})", w.lambda(&number, &number, depth)?, w.number(depth)?))
            })?,
            3 => self.derived(1, 0, |w| {
                let part = w.choose(&["snd", "fst"])?;
                Ok(format!("({part} (diff {} {}))", w.lambda(&number, &number, depth)?, w.number(depth)?))
            })?,
            4 => self.derived(1, n.work(), |w| {
                let f = w.lambda(&vector, &number, depth)?;
                Ok(format!("(jvp {f} {} {})", w.vector(&n, depth)?, w.vector(&n, depth)?))
            })?,
            5 => self.derived(2, n.work(), |w| {
                let f = w.lambda(&vector, &number, depth)?;
                Ok(format!("(vectorSum (hvp {f} {} {}))", w.vector(&n, depth)?, w.vector(&n, depth)?))
            })?,
            6 => self.derived(1, n.work(), |w| {
                let f = w.lambda(&record, &number, depth)?;
                Ok(format!("((gradient {f} {}).a)", w.record(&n, depth)?))
            })?,
            7 => self.derived(1, 0, |w| {
                let (s, t) = (w.fresh("s"), w.fresh("t"));
                let value = w.block(|w| {
                    w.scope.extend([(s.clone(), Kind::Number), (t.clone(), Kind::Number)]);
                    w.number(depth)
                })?;
                let (a, b) = (w.number(depth)?, w.number(depth)?);
                let part = w.choose(&["fst", "snd"])?;
                if w.u.arbitrary()? {
                    return Ok(format!("({part} (forward (fun {s} {t} -> {}) ({a}, 0.5) ({b}, 1.0)))", bare(&value)));
                }
                let pair = w.fresh("p");
                let of = format!("fun ({pair} : (Double, Double)) -> let ({s}, {t}) = {pair} in {value}");
                Ok(format!("({part} (gradient ({of}) ({a}, {b})))"))
            })?,
            8 => self.derived(1, n.work(), |w| {
                Ok(format!("(vectorSum (derivative {} {}))", w.lambda(&number, &vector, depth)?, w.number(depth)?))
            })?,
            _ => self.derived(1, n.work(), |w| {
                Ok(format!(
                    "(vjp {} {} {})",
                    w.lambda(&number, &vector, depth)?,
                    w.number(depth)?,
                    w.vector(&n, depth)?
                ))
            })?,
        };
        made.map_or_else(|| self.number(depth), Ok)
    }

    pub(super) fn vector_of_derivative(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let k = self.extent()?;
        let (number, here, there) = (Kind::Number, Kind::Vector(n.clone()), Kind::Vector(k.clone()));
        let both = n.work() + k.work();
        let made = match self.u.int_in_range(0..=8)? {
            0..=2 => self.derived(1, n.work(), |w| {
                Ok(format!("(gradient {} {})", w.lambda(&here, &number, depth)?, w.vector(n, depth)?))
            })?,
            3 => self.derived(1, n.work(), |w| {
                Ok(format!("(derivative {} {})", w.lambda(&number, &here, depth)?, w.number(depth)?))
            })?,
            4 => self.derived(1, both, |w| {
                let f = w.lambda(&there, &here, depth)?;
                Ok(format!("(jvp {f} {} {})", w.vector(&k, depth)?, w.vector(&k, depth)?))
            })?,
            5 => self.derived(1, both, |w| {
                let f = w.lambda(&here, &there, depth)?;
                Ok(format!("(vjp {f} {} {})", w.vector(n, depth)?, w.vector(&k, depth)?))
            })?,
            6 => self.derived(2, 2 * n.work(), |w| {
                let f = w.lambda(&here, &number, depth)?;
                Ok(format!("(hvp {f} {} {})", w.vector(n, depth)?, w.vector(n, depth)?))
            })?,
            7 => self.derived(2, 2 * n.work(), |w| {
                Ok(format!("(hessianDiagonal {} {})", w.lambda(&here, &number, depth)?, w.vector(n, depth)?))
            })?,
            _ => self.derived(1, n.work(), |w| {
                let record = Kind::Record(n.clone());
                Ok(format!("((gradient {} {}).w)", w.lambda(&record, &number, depth)?, w.record(n, depth)?))
            })?,
        };
        made.map_or_else(|| self.vector(n, depth), Ok)
    }

    pub(super) fn matrix_of_derivative(&mut self, r: &Extent, c: &Extent, depth: u32) -> Result<String> {
        let (rows, columns) = (Kind::Vector(r.clone()), Kind::Vector(c.clone()));
        let made = match self.u.int_in_range(0..=3)? {
            0 if r == c => self.derived(2, 2 * r.work(), |w| {
                Ok(format!("(hessian {} {})", w.lambda(&rows, &Kind::Number, depth)?, w.vector(r, depth)?))
            })?,
            1 => self.derived(1, r.work() + c.work(), |w| {
                let whole = Kind::Matrix(r.clone(), c.clone());
                Ok(format!("(gradient {} {})", w.lambda(&whole, &Kind::Number, depth)?, w.matrix(r, c, depth)?))
            })?,
            _ => self.derived(1, r.work() + c.work(), |w| {
                Ok(format!("(jacobian {} {})", w.lambda(&columns, &rows, depth)?, w.vector(c, depth)?))
            })?,
        };
        made.map_or_else(|| self.matrix(r, c, depth), Ok)
    }

    pub(super) fn pairs_of_derivative(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let vector = Kind::Vector(n.clone());
        let made = self.derived(1, n.work(), |w| {
            if w.u.arbitrary()? {
                return Ok(format!("(vdiff {} {})", w.lambda(&Kind::Number, &vector, depth)?, w.number(depth)?));
            }
            Ok(format!("(grad {} {})", w.lambda(&vector, &Kind::Number, depth)?, w.vector(n, depth)?))
        })?;
        made.map_or_else(|| self.pairs(n, 0), Ok)
    }
}
