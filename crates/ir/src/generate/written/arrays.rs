//! Vectors, matrices, arrays of pairs, records.

use super::{Extent, Kind, Writer, bare};
use arbitrary::Result;

impl Writer<'_, '_> {
    /// Returns an existing value of a kind: a name, or a part of one. Mostly a late one.
    fn old(&mut self, kind: &Kind) -> Result<Option<String>> {
        let mut found = Vec::new();
        for (name, of) in &self.scope {
            if of == kind {
                found.push(name.clone());
            }
            match (of, kind) {
                (Kind::Record(n), Kind::Vector(m)) if n == m => found.push(format!("{name}.w")),
                (Kind::Matrix(rows, n), Kind::Vector(m)) if n == m => {
                    let index = self.indices.iter().rev().find(|(_, extent)| extent == rows);
                    found.extend(index.map(|(index, _)| format!("{name}[{index}]")));
                }
                _ => {}
            }
        }
        Ok(if found.is_empty() { None } else { Some(self.late(&found)?) })
    }

    /// As [`Self::old`] if nothing new should be written: always at the end, otherwise every other time.
    fn old_mostly(&mut self, kind: &Kind, depth: u32) -> Result<Option<String>> {
        let old = self.old(kind)?;
        let stays = old.is_some() && (depth == 0 || self.dry() || self.u.arbitrary()?);
        Ok(old.filter(|_| stays))
    }

    /// Returns an existing vector, or an array of existing numbers.
    fn old_vector(&mut self, n: &Extent) -> Result<String> {
        if let Some(old) = self.old(&Kind::Vector(n.clone()))? {
            return Ok(old);
        }
        self.build(n, 0)
    }

    fn build(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let (index, element) = self.over(n, |w| w.number(depth))?;
        Ok(format!("(build {} (fun {index} -> {}))", n.text(), bare(&element)))
    }

    pub(super) fn vector(&mut self, n: &Extent, depth: u32) -> Result<String> {
        if depth == 0 || self.dry() || !self.room(n.work()) {
            return self.old_vector(n);
        }
        self.fuel -= 1;
        let depth = depth - 1;
        let kind = Kind::Vector(n.clone());
        Ok(match self.u.int_in_range(0..=29)? {
            0..=7 => self.build(n, depth + 1)?,
            8 => {
                let name = self.choose(&["vectorAdd", "vectorSub", "vectorEMul"])?;
                format!("({name} {} {})", self.vector(n, depth)?, self.vector(n, depth)?)
            }
            9 => {
                let v = self.vector(n, depth)?;
                let scale = self.inside(n.work(), |w| w.number(depth.min(1)))?;
                format!("(vectorSMul {v} {scale})")
            }
            10 => {
                let (v, t) = (self.vector(n, depth)?, self.fresh("t"));
                let element = self.inside(n.work(), |w| {
                    w.scope.push((t.clone(), Kind::Number));
                    w.number(depth)
                })?;
                format!("(vectorMap {v} (fun {t} -> {}))", bare(&element))
            }
            11 => {
                let (v, w, s, t) = (self.vector(n, depth)?, self.vector(n, depth)?, self.fresh("s"), self.fresh("t"));
                let element = self.inside(n.work(), |g| {
                    g.scope.extend([(s.clone(), Kind::Number), (t.clone(), Kind::Number)]);
                    g.number(depth)
                })?;
                format!("(vectorMap2 {v} {w} (fun {s} {t} -> {}))", bare(&element))
            }
            12 => {
                let condition = self.condition(depth)?;
                format!("(if {condition} then {} else {})", self.vector(n, depth)?, self.vector(n, depth)?)
            }
            13 | 14 => self.vector_of_loop(n, depth)?,
            15 => {
                let name = self.choose(&["cumsum", "softmax", "logSoftmax", "vectorReverse", "vectorNeg"])?;
                format!("({name} {})", self.vector(n, depth)?)
            }
            16 => self.bound(&kind, depth)?,
            17 | 18 => match self.call(&kind, depth)? {
                Some(call) => call,
                None => self.old_vector(n)?,
            },
            19 | 20 => self.product(n, depth)?,
            21 => self.part_of_matrix(n, depth)?,
            22 | 23 => self.solution(n, depth)?,
            24 => {
                let parts = [self.number(1)?, self.number(1)?, self.number(1)?];
                let v = self.vector(n, depth)?;
                format!("(vectorSlice (convolve {v} [{}]) 1 {})", parts.join(", "), n.text())
            }
            25..=27 => self.vector_of_derivative(n, depth)?,
            28 => match n {
                Extent::Constant(k) => {
                    let parts = (0..*k).map(|_| self.number(depth)).collect::<Result<Vec<_>>>()?;
                    format!("[{}]", parts.join(", "))
                }
                Extent::Named(name) => {
                    let (first, rest) = (self.number(depth)?, self.vector(&Extent::Before(name), depth)?);
                    if self.u.arbitrary()? {
                        format!("(vectorConcat [{first}] {rest})")
                    } else {
                        format!("(vectorConcat {rest} [{first}])")
                    }
                }
                Extent::Before(name) => {
                    let v = self.vector(&Extent::Named(name), depth)?;
                    let (first, last) = if self.u.arbitrary()? { ("0", "2") } else { ("1", "1") };
                    format!("(vectorSlice {v} {first} ({name} - {last}))")
                }
                _ => self.old_vector(n)?,
            },
            _ => {
                let depth = depth.min(2);
                let v = self.vector(n, depth)?;
                self.stated_vector(n, &v, depth)?
            }
        })
    }

    /// Returns a matrix times a vector.
    fn product(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let k = self.extent()?;
        if !self.room(n.work() + k.work()) {
            return self.old_vector(n);
        }
        Ok(match self.u.int_in_range(0..=2)? {
            0 | 1 => format!("(matrixVectorMul {} {})", self.matrix(n, &k, depth)?, self.vector(&k, depth)?),
            _ => format!("(vectorMatrixMul {} {})", self.vector(&k, depth)?, self.matrix(&k, n, depth)?),
        })
    }

    fn part_of_matrix(&mut self, n: &Extent, depth: u32) -> Result<String> {
        let k = self.extent()?;
        if !self.room(n.work() + k.work()) {
            return self.old_vector(n);
        }
        Ok(match self.u.int_in_range(0..=2)? {
            0 => format!("(matrixRow {} {})", self.matrix(&k, n, depth)?, self.index(&k)?),
            1 => format!("(matrixCol {} {})", self.matrix(n, &k, depth)?, self.index(&k)?),
            _ => format!("(matrixDiag {})", self.matrix(n, n, depth)?),
        })
    }

    /// Returns the solution of a system of equations.
    fn solution(&mut self, n: &Extent, depth: u32) -> Result<String> {
        if !self.room(3 * n.work()) {
            return self.old_vector(n);
        }
        let which = self.u.int_in_range(0..=5)?;
        let (m, b) = (self.conditioned(n, depth)?, self.vector(n, depth)?);
        Ok(match which {
            0 | 1 => format!("(solve {m} {b})"),
            2 => format!("(solveLower {m} {b})"),
            3 => format!("(solveUpper {m} {b})"),
            4 => format!("(solveLowerTransposed {m} {b})"),
            _ => format!("(solveCholesky (cholesky {m}) {b})"),
        })
    }

    fn old_matrix(&mut self, r: &Extent, c: &Extent) -> Result<String> {
        if let Some(old) = self.old(&Kind::Matrix(r.clone(), c.clone()))? {
            return Ok(old);
        }
        if let Some(old) = self.old(&Kind::Matrix(c.clone(), r.clone()))?
            && self.u.arbitrary()?
        {
            return Ok(format!("(matrixTranspose {old})"));
        }
        self.build_matrix(r, c, 0)
    }

    fn build_matrix(&mut self, r: &Extent, c: &Extent, depth: u32) -> Result<String> {
        let (i, rows) = self.over(r, |w| if w.u.ratio(4, 5)? { w.build(c, depth) } else { w.vector(c, depth) })?;
        Ok(format!("(build {} (fun {i} -> {}))", r.text(), bare(&rows)))
    }

    pub(super) fn matrix(&mut self, r: &Extent, c: &Extent, depth: u32) -> Result<String> {
        if depth == 0 || self.dry() || !self.room(r.work() + c.work()) {
            return self.old_matrix(r, c);
        }
        self.fuel -= 1;
        let depth = depth - 1;
        Ok(match self.u.int_in_range(0..=19)? {
            0..=6 => self.build_matrix(r, c, depth + 1)?,
            7 => {
                let name = self.choose(&["matrixAdd", "matrixSub", "matrixEMul"])?;
                format!("({name} {} {})", self.matrix(r, c, depth)?, self.matrix(r, c, depth)?)
            }
            8 => {
                let scale = self.inside(r.work() + c.work(), |w| w.number(depth.min(1)))?;
                format!("(matrixSMul {} {scale})", self.matrix(r, c, depth)?)
            }
            9 => {
                let condition = self.condition(depth)?;
                format!("(if {condition} then {} else {})", self.matrix(r, c, depth)?, self.matrix(r, c, depth)?)
            }
            10 => format!("(matrixTranspose {})", self.matrix(c, r, depth)?),
            11 => {
                let name = self.choose(&["outer", "vectorOutProd"])?;
                format!("({name} {} {})", self.vector(r, depth)?, self.vector(c, depth)?)
            }
            12 | 13 => {
                let k = self.extent()?;
                if !self.room(r.work() + c.work() + k.work()) {
                    return self.old_matrix(r, c);
                }
                format!("(matrixSMul (matrixMul {} {}) 0.2)", self.matrix(r, &k, depth)?, self.matrix(&k, c, depth)?)
            }
            14 => self.matrix_of_loop(r, c, depth)?,
            15 | 16 => self.matrix_of_derivative(r, c, depth)?,
            17 => self.bound(&Kind::Matrix(r.clone(), c.clone()), depth)?,
            18 if r == c && self.room(3 * r.work()) => {
                let name = self.choose(&["inverse", "cholesky"])?;
                format!("({name} {})", self.conditioned(r, depth)?)
            }
            18 if self.room(2 * r.work() + c.work()) => {
                let name = self.choose(&["solveMatrix", "solveLowerMatrix"])?;
                format!("({name} {} {})", self.conditioned(r, depth)?, self.matrix(r, c, depth)?)
            }
            _ => self.old_matrix(r, c)?,
        })
    }

    pub(super) fn pairs(&mut self, n: &Extent, depth: u32) -> Result<String> {
        if let Some(old) = self.old_mostly(&Kind::Pairs(n.clone()), depth)? {
            return Ok(old);
        }
        let depth = depth.saturating_sub(1);
        Ok(match if self.dry() { 0 } else { self.u.int_in_range(0..=5)? } {
            0..=2 => {
                let (index, (a, b)) = self.over(n, |w| Ok((w.number(depth)?, w.number(depth)?)))?;
                format!("(build {} (fun {index} -> ({}, {})))", n.text(), bare(&a), bare(&b))
            }
            3 => format!("(vectorZip {} {})", self.vector(n, depth)?, self.vector(n, depth)?),
            _ => self.pairs_of_derivative(n, depth)?,
        })
    }

    pub(super) fn record(&mut self, n: &Extent, depth: u32) -> Result<String> {
        if let Some(old) = self.old_mostly(&Kind::Record(n.clone()), depth)? {
            return Ok(old);
        }
        let depth = depth.saturating_sub(1);
        if !self.dry() && depth > 0 && self.u.ratio(1, 4)? {
            return self.record_of_loop(n, depth);
        }
        let (a, w) = (self.number(depth)?, self.vector(n, depth)?);
        Ok(format!("{{ a = {}, w = {} }}", bare(&a), bare(&w)))
    }
}
