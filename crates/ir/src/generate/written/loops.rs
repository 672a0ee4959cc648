//! Values of loops. Carried values are halved at each step, and terms that depend on them stay small.

use super::{Extent, Kind, Writer, bare};
use arbitrary::Result;

impl Writer<'_, '_> {
    /// Returns a number that a loop carries, alone or with others.
    pub(super) fn number_of_loop(&mut self, depth: u32) -> Result<String> {
        let n = self.count()?;
        if !self.room(n.work() + 2) {
            return self.number(0);
        }
        let (s, first) = (self.fresh("s"), self.number(depth)?);
        Ok(match self.u.int_in_range(0..=9)? {
            0..=2 => {
                let (i, next) = self.over(&n, |w| {
                    w.scope.push((s.clone(), Kind::Number));
                    Ok(tame(&s, w.number(depth)?))
                })?;
                format!("(ifold (fun {s} {i} -> 0.5 * {s} + {next}) {first} {})", n.text())
            }
            3 => {
                // Only depends on the carried value.
                let (i, next) = self.over(&n, |w| {
                    w.scope.push((s.clone(), Kind::Number));
                    w.number(depth)
                })?;
                format!("(ifold (fun {s} {i} -> sin {next}) {first} {})", n.text())
            }
            4 | 5 => {
                let (t, second) = (self.fresh("t"), self.number(depth)?);
                let (i, (a, b)) = self.over(&n, |w| {
                    w.scope.extend([(s.clone(), Kind::Number), (t.clone(), Kind::Number)]);
                    Ok((format!("(sin {})", w.number(depth)?), format!("(sin {})", w.number(depth)?)))
                })?;
                let next = if self.u.arbitrary()? {
                    format!("({t}, 0.5 * {s} + {b})")
                } else {
                    format!("(0.5 * {s} + {a}, 0.5 * {t} + {b})")
                };
                let part = self.choose(&["fst", "snd"])?;
                format!("({part} (ifold (fun ({s}, {t}) {i} -> {next}) ({first}, {second}) {}))", n.text())
            }
            6 => {
                // A number and an array.
                let k = self.extent()?;
                if !self.room(n.work() + k.work()) {
                    return Ok(first);
                }
                let (v, start) = (self.fresh("w"), self.vector(&k, depth.min(1))?);
                let (i, (next, moved)) = self.over(&n, |w| {
                    w.scope.extend([(s.clone(), Kind::Number), (v.clone(), Kind::Vector(k.clone()))]);
                    Ok((format!("(sin {})", w.number(depth)?), w.vector(&k, depth)?))
                })?;
                let carried = format!("(({s}, {v}) : (Double, {}))", Kind::Vector(k).ty());
                let step = format!("(0.5 * {s} + {next}, {})", tame_vector(&v, &moved));
                let part = self.choose(&["fst", "vectorSum (snd"])?;
                let end = if part == "fst" { "" } else { ")" };
                format!("({part} (ifold (fun {carried} {i} -> {step}) ({first}, {start}) {}){end})", n.text())
            }
            7 => self.while_counted(&s, &first, depth)?,
            8 if !self.options.smooth => {
                let next = self.inside(2, |w| {
                    w.scope.push((s.clone(), Kind::Number));
                    w.number(depth)
                })?;
                format!("(while (fun {s} -> abs {s} > 0.3) (fun {s} -> 0.5 * {s} + 0.1 * tanh {next}) {first} 60)")
            }
            _ => {
                let k = self.extent()?;
                let record = self.record_of_loop(&k, depth)?;
                let field = format!("vectorSum {record}.w");
                if self.u.arbitrary()? { format!("({record}.a)") } else { format!("({field})") }
            }
        })
    }

    /// Returns a while over a number and a count of its steps.
    fn while_counted(&mut self, s: &str, first: &str, depth: u32) -> Result<String> {
        let k = self.fresh("k");
        let steps = self.u.int_in_range(0..=5)?;
        let next = self.inside(1, |w| {
            w.scope.push((s.to_owned(), Kind::Number));
            w.indices.push((k.clone(), Extent::Constant(steps.max(1))));
            Ok(tame(s, w.number(depth)?))
        })?;
        let condition =
            if self.options.smooth { format!("{k} < {steps}") } else { format!("{k} < {steps} && {s} < 20.0") };
        let step = format!("(0.5 * {s} + {next}, {k} + 1)");
        Ok(format!("(fst (while (fun ({s}, {k}) -> {condition}) (fun ({s}, {k}) -> {step}) ({first}, 0) 8))"))
    }

    /// Returns a vector that a loop carries, or the elements of a loop.
    pub(super) fn vector_of_loop(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let which = self.u.int_in_range(0..=6)?;
        if which < 3 {
            // The elements of the steps.
            let (s, first) = (self.fresh("s"), self.number(depth)?);
            let (i, (next, element)) = self.over(n, |w| {
                w.scope.push((s.clone(), Kind::Number));
                Ok((tame(&s, w.number(depth)?), w.number(depth)?))
            })?;
            let scan = format!("scan (fun {s} {i} -> (0.5 * {s} + {next}, {})) {first} {}", bare(&element), n.text());
            return Ok(format!("(snd ({scan}))"));
        }
        let count = self.count()?;
        if !self.room(n.work() + count.work()) {
            return self.vector(n, 0);
        }
        let (v, first) = (self.fresh("w"), self.vector(n, depth)?);
        let kind = Kind::Vector(n.clone());
        let (i, next) = self.over(&count, |w| {
            w.scope.push((v.clone(), kind.clone()));
            if which == 3 {
                // One element of it changes.
                let at = w.index(n)?;
                let (j, element) = w.over(n, |w| Ok(tame(&v, w.number(depth)?)))?;
                let kept = format!("if {j} == {at} then 0.5 * {v}[{j}] + {element} else {v}[{j}]");
                return Ok(format!("build {} (fun {j} -> {kept})", n.text()));
            }
            if which == 4 {
                let (j, element) = w.over(n, |w| Ok(tame(&v, w.number(depth)?)))?;
                return Ok(format!("build {} (fun {j} -> 0.5 * {v}[{j}] + {element})", n.text()));
            }
            Ok(tame_vector(&v, &w.vector(n, depth)?))
        })?;
        Ok(format!("(ifold (fun ({v} : {}) {i} -> {next}) {first} {})", kind.ty(), count.text()))
    }

    /// Returns a matrix that a loop carries, or whose rows are the elements of one.
    pub(super) fn matrix_of_loop(&mut self, r: &Extent, c: &Extent, depth: u32) -> Result<String> {
        let v = self.fresh("w");
        if self.u.arbitrary()? {
            let (kind, first) = (Kind::Vector(c.clone()), self.vector(c, depth)?);
            let (i, (next, row)) = self.over(r, |w| {
                w.scope.push((v.clone(), kind.clone()));
                Ok((tame_vector(&v, &w.vector(c, depth)?), w.vector(c, depth)?))
            })?;
            let step = format!("fun ({v} : {}) {i} -> ({next}, {})", kind.ty(), bare(&row));
            return Ok(format!("(snd (scan ({step}) {first} {}))", r.text()));
        }
        let count = self.count()?;
        if !self.room(count.work() + r.work() + c.work()) {
            return self.matrix(r, c, 0);
        }
        let (kind, first) = (Kind::Matrix(r.clone(), c.clone()), self.matrix(r, c, depth)?);
        let (i, next) = self.over(&count, |w| {
            w.scope.push((v.clone(), kind.clone()));
            w.matrix(r, c, depth)
        })?;
        let next = if next.contains(&v) {
            format!("matrixMap {next} (fun row -> vectorMap row (fun e -> 0.5 * sin e))")
        } else {
            format!("matrixSMul {next} 0.5")
        };
        let step = format!("fun ({v} : {}) {i} -> {next}", kind.ty());
        Ok(format!("(ifold ({step}) {first} {})", count.text()))
    }

    /// Returns a record that a loop carries.
    pub(super) fn record_of_loop(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let count = self.count()?;
        let (s, kind) = (self.fresh("s"), Kind::Record(n.clone()));
        let (a, w) = (self.number(depth)?, self.vector(n, depth)?);
        let first = format!("{{ a = {}, w = {} }}", bare(&a), bare(&w));
        if !self.room(count.work() + n.work()) {
            return Ok(first);
        }
        let (i, (b, v)) = self.over(&count, |w| {
            w.scope.push((s.clone(), kind.clone()));
            Ok((tame(&s, w.number(depth)?), tame_vector(&s, &w.vector(n, depth)?)))
        })?;
        let step = format!("{{ a = 0.5 * {s}.a + {b}, w = {v} }}");
        Ok(format!("(ifold (fun ({s} : {}) {i} -> {step}) {first} {})", kind.ty(), count.text()))
    }
}

/// Returns `next`, bounded by 1 if it depends on `carried`.
fn tame(carried: &str, next: String) -> String {
    if next.contains(carried) { format!("(sin {next})") } else { next }
}

/// As [`tame`] for a vector, and halved.
fn tame_vector(carried: &str, next: &str) -> String {
    if next.contains(carried) {
        format!("vectorMap {next} (fun e -> 0.5 * sin e)")
    } else {
        format!("vectorSMul {next} 0.5")
    }
}
