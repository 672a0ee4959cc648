//! Functions with their own derivative.
//!
//! The stated derivative is any linear map, equal in both modes, and seldom the derivative of the function, so that a
//! stage that differentiates the function itself is detected.

use super::{Extent, Kind, Writer, bare};
use arbitrary::Result;

impl Writer<'_, '_> {
    /// Returns the result of `make` with only these names in scope: such functions may not use outer numbers.
    fn alone(&mut self, names: &[(&str, &Kind)], make: impl FnOnce(&mut Self) -> Result<String>) -> Result<String> {
        let scope = names.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).clone())).collect();
        let around = std::mem::replace(&mut self.scope, scope);
        let made = make(self);
        self.scope = around;
        Ok(bare(&made?).to_owned())
    }

    /// Returns a function from `from` to `to` with a stated derivative, applied to `x`. `slope` writes the derivative
    /// in terms of the function, its argument and its value, `along` and `against` its application to a direction.
    fn stated(
        &mut self,
        [from, to]: [&Kind; 2],
        x: &str,
        depth: u32,
        slope: impl FnOnce(&mut Self, &str, &str) -> Result<String>,
        [along, against]: [fn(&str, &str) -> String; 2],
    ) -> Result<String> {
        let [f, t, y, d] = ["f", "t", "y", "d"].map(|letter| self.fresh(letter));
        let value = self.alone(&[(&t, from)], |w| w.term(to, depth))?;
        // Tests of smooth functions use Hessians, which must be symmetric: that of a function of vectors with an
        // arbitrary stated derivative is not, unless it is constant.
        let is_constant = self.options.smooth && *from != Kind::Number;
        let of = if is_constant { vec![] } else { vec![(t.as_str(), from), (&y, to)] };
        let slope = self.alone(&of, |w| slope(w, &f, &t))?;
        let (along, against) = (along(&slope, &d), against(&slope, &d));
        let function = format!("(fun ({t} : {}) -> {value})", from.ty());
        Ok(format!(
            "(withDerivative {function} (fun {f} {t} {y} {d} -> {along}) (fun {f} {t} {y} {d} -> {against}) {x})"
        ))
    }

    /// Writes one of a number.
    pub(super) fn stated_number(&mut self, x: &str, depth: u32) -> Result<String> {
        let slope = |w: &mut Self, f: &str, t: &str| {
            let slope = w.number(depth)?;
            // The function at another point, with its derivative.
            Ok(if w.u.ratio(1, 4)? { format!("({slope} + 0.3 * tanh ({f} (0.5 * {t})))") } else { slope })
        };
        let product = |slope: &str, d: &str| format!("{d} * ({slope})");
        self.stated([&Kind::Number, &Kind::Number], x, depth, slope, [product, product])
    }

    /// Writes one of all elements of a vector.
    pub(super) fn stated_sum(&mut self, n: &Extent, x: &str, depth: u32) -> Result<String> {
        let kind = Kind::Vector(n.clone());
        let along = |slope: &str, d: &str| format!("vectorDot ({slope}) {d}");
        let against = |slope: &str, d: &str| format!("vectorSMul ({slope}) {d}");
        self.stated([&kind, &Kind::Number], x, depth, |w, _, _| w.vector(n, depth), [along, against])
    }

    /// Writes one from vectors to vectors.
    pub(super) fn stated_vector(&mut self, n: &Extent, x: &str, depth: u32) -> Result<String> {
        let kind = Kind::Vector(n.clone());
        if self.room(2 * n.work()) && self.u.arbitrary()? {
            let along = |slope: &str, d: &str| format!("matrixVectorMul ({slope}) {d}");
            let against = |slope: &str, d: &str| format!("vectorMatrixMul {d} ({slope})");
            return self.stated([&kind, &kind], x, depth, |w, _, _| w.matrix(n, n, depth), [along, against]);
        }
        let product = |slope: &str, d: &str| format!("vectorEMul ({slope}) {d}");
        self.stated([&kind, &kind], x, depth, |w, _, _| w.vector(n, depth), [product, product])
    }
}
