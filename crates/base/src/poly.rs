//! Polynomials with integer coefficients, in normal form: array sizes (`2n + 1`), buffer offsets (`i*n*m + j`).
//!
//! A polynomial is a sorted list of monomials with nonzero coefficients, and a monomial a sorted list of variables
//! (repeated for powers). Equal values therefore have equal representations: `1 + n` and `n + 1` are one size.
//!
//! Arithmetic is exact. A polynomial with a coefficient outside of `i64` is [`Poly::too_large`]: it has no value at any
//! point, every sum and product with it is too large as well, and nothing can be proved about it. The same holds for a
//! product of more than [`MAX_DEGREE`] factors, or with more than [`MAX_PRODUCTS`] terms to collect: squares of
//! squares, `(a + 1)(b + 1)(c + 1)...`.

use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Peekable;
use std::sync::Arc;

/// Maximum degree of a product; arrays have fewer dimensions.
pub const MAX_DEGREE: usize = 1024;

/// Maximum number of products of terms that one multiplication collects.
pub const MAX_PRODUCTS: usize = 1 << 14;

/// A monomial: variables ascending, repeated for powers. Empty for the constant term.
type Monomial<V> = SmallVec<[V; 4]>;

/// A monomial with its coefficient.
type Term<V> = (Monomial<V>, i64);

/// A polynomial over variables `V`. Constants and linear polynomials of one variable, if their coefficients are small,
/// take no memory of their own; most addresses, indices and array sizes are of this form. Copies share the terms of
/// other polynomials.
#[derive(Clone)]
pub struct Poly<V: Ord>(Repr<V>);

#[derive(Clone, PartialEq)]
enum Repr<V> {
    Constant(i64),
    /// `slope * var + offset` with a nonzero slope.
    Linear {
        var: [V; 1],
        slope: i32,
        offset: i32,
    },
    /// Ascending by monomial, without zero coefficients; of neither form above.
    Terms(Arc<SmallVec<[Term<V>; 2]>>),
    /// A coefficient does not fit.
    TooLarge,
}

/// The terms of a polynomial. Made by [`Poly::terms`].
#[derive(Clone, Debug)]
pub struct Terms<'a, V> {
    /// Term of a polynomial without memory of its own; 0 if there is none.
    constant: i64,
    linear: Option<(&'a [V; 1], i32)>,
    /// Terms of other polynomials.
    rest: std::slice::Iter<'a, Term<V>>,
}

impl<'a, V> Iterator for Terms<'a, V> {
    type Item = (&'a [V], i64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some((monomial, c)) = self.rest.next() {
            return Some((monomial.as_slice(), *c));
        }
        if self.constant != 0 {
            return Some((&[], std::mem::take(&mut self.constant)));
        }
        self.linear.take().map(|(var, slope)| (var.as_slice(), i64::from(slope)))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.rest.len() + usize::from(self.constant != 0) + usize::from(self.linear.is_some());
        (n, Some(n))
    }
}

impl<V> ExactSizeIterator for Terms<'_, V> {}

/// The terms of `left + k * right` for `k` = 1 or -1, without zero coefficients; `None` for one that does not fit.
struct Merged<'a, V> {
    left: Peekable<Terms<'a, V>>,
    right: Peekable<Terms<'a, V>>,
    k: i64,
}

impl<'a, V: Ord + Copy> Merged<'a, V> {
    fn new(left: &'a Poly<V>, right: &'a Poly<V>, k: i64) -> Self {
        Self { left: left.terms().peekable(), right: right.terms().peekable(), k }
    }

    /// Returns the maximum number of terms.
    fn most(&self) -> usize {
        self.left.len() + self.right.len()
    }
}

impl<'a, V: Ord + Copy> Iterator for Merged<'a, V> {
    type Item = Option<(&'a [V], i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let first = match (self.left.peek(), self.right.peek()) {
                (Some((a, _)), Some((b, _))) => (*a).cmp(*b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let a = if first.is_le() { self.left.next() } else { None };
            let b = if first.is_ge() { self.right.next() } else { None };
            let (monomial, _) = a.or(b)?;
            let of = |term: Option<(&[V], i64)>| term.map_or(0, |(_, c)| c);
            let sum = if self.k == 1 { of(a).checked_add(of(b)) } else { of(a).checked_sub(of(b)) };
            match sum {
                Some(0) => {}
                Some(c) => return Some(Some((monomial, c))),
                None => return Some(None),
            }
        }
    }
}

impl<V: Ord + Copy> Poly<V> {
    /// Returns zero.
    #[must_use]
    #[inline]
    pub const fn zero() -> Self {
        Self(Repr::Constant(0))
    }

    /// Returns a polynomial with a coefficient that does not fit into 64 bits: the result of arithmetic that overflows.
    /// Its only term is the minimum constant, of which no bound and no sign can be proved.
    #[must_use]
    #[inline]
    pub const fn too_large() -> Self {
        Self(Repr::TooLarge)
    }

    /// Returns whether a coefficient does not fit into 64 bits.
    #[must_use]
    #[inline]
    pub const fn is_too_large(&self) -> bool {
        matches!(self.0, Repr::TooLarge)
    }

    /// Returns the constant `c`.
    #[must_use]
    #[inline]
    pub const fn constant(c: i64) -> Self {
        Self(Repr::Constant(c))
    }

    /// Returns the variable `v`.
    #[must_use]
    #[inline]
    pub const fn var(v: V) -> Self {
        Self(Repr::Linear { var: [v], slope: 1, offset: 0 })
    }

    /// Returns `slope * v + offset` with a nonzero slope, if it takes no memory.
    fn small(v: V, slope: i64, offset: i64) -> Option<Self> {
        let (slope, offset) = (i32::try_from(slope).ok()?, i32::try_from(offset).ok()?);
        Some(Self(Repr::Linear { var: [v], slope, offset }))
    }

    /// Returns `slope * v + offset`.
    fn linear(v: V, slope: i64, offset: i64) -> Self {
        if slope == 0 {
            return Self::constant(offset);
        }
        Self::small(v, slope, offset).unwrap_or_else(|| {
            let terms = [(Monomial::new(), offset), (Monomial::from_slice(&[v]), slope)];
            Self(Repr::Terms(Arc::new(terms.into_iter().filter(|(_, c)| *c != 0).collect())))
        })
    }

    /// Returns the polynomial of these terms, which are in normal form.
    fn new(terms: SmallVec<[Term<V>; 2]>) -> Self {
        let (first, linear) = match terms.as_slice() {
            [] => return Self::zero(),
            [(first, c), rest @ ..] if first.is_empty() => (*c, rest),
            all => (0, all),
        };
        let small = match linear {
            [] => Some(Self::constant(first)),
            [(monomial, slope)] if monomial.len() == 1 => Self::small(monomial[0], *slope, first),
            _ => None,
        };
        small.unwrap_or_else(|| Self(Repr::Terms(Arc::new(terms))))
    }

    /// Returns the polynomial as `slope * v + offset` if it takes no memory; a constant gets the variable of `other`.
    fn as_linear(&self, other: &Self) -> Option<(V, i64, i64)> {
        match (&self.0, &other.0) {
            (Repr::Linear { var: [v], slope, offset }, _) => Some((*v, i64::from(*slope), i64::from(*offset))),
            (Repr::Constant(c), Repr::Linear { var: [v], .. }) => Some((*v, 0, *c)),
            _ => None,
        }
    }

    /// Returns the polynomial of these terms; `None` unless they are in normal form: monomials ascending, variables of
    /// each ascending, no zero coefficient.
    #[must_use]
    pub fn from_terms(terms: Vec<(Vec<V>, i64)>) -> Option<Self> {
        let normal = terms.iter().all(|(monomial, c)| *c != 0 && monomial.is_sorted())
            && terms.windows(2).all(|pair| pair[0].0 < pair[1].0);
        normal.then(|| Self::new(terms.into_iter().map(|(m, c)| (m.into(), c)).collect()))
    }

    /// Returns the value of a constant polynomial.
    #[must_use]
    #[inline]
    pub const fn as_constant(&self) -> Option<i64> {
        match self.0 {
            Repr::Constant(c) => Some(c),
            Repr::Linear { .. } | Repr::Terms(_) | Repr::TooLarge => None,
        }
    }

    /// Returns the variable if the polynomial is a single variable.
    #[must_use]
    #[inline]
    pub const fn as_var(&self) -> Option<V> {
        match self.0 {
            Repr::Linear { var: [v], slope: 1, offset: 0 } => Some(v),
            _ => None,
        }
    }

    /// Returns the variables `a` and `b` if the polynomial is `a - b`.
    #[must_use]
    pub fn as_difference(&self) -> Option<(V, V)> {
        let Repr::Terms(terms) = &self.0 else { return None };
        let ([(a, 1), (b, -1)] | [(b, -1), (a, 1)]) = terms.as_slice() else { return None };
        match (a.as_slice(), b.as_slice()) {
            ([a], [b]) => Some((*a, *b)),
            _ => None,
        }
    }

    /// Returns whether the polynomial is zero.
    #[must_use]
    #[inline]
    pub const fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Constant(0))
    }

    /// Returns monomials (variables ascending, repeated for powers) with their coefficients.
    #[inline]
    pub fn terms(&self) -> Terms<'_, V> {
        match &self.0 {
            Repr::Constant(c) => Terms { constant: *c, linear: None, rest: [].iter() },
            Repr::Linear { var, slope, offset } => {
                Terms { constant: i64::from(*offset), linear: Some((var, *slope)), rest: [].iter() }
            }
            Repr::Terms(terms) => Terms { constant: 0, linear: None, rest: terms.iter() },
            Repr::TooLarge => Terms { constant: i64::MIN, linear: None, rest: [].iter() },
        }
    }

    /// Returns the number of factors of the longest monomial.
    #[must_use]
    pub fn degree(&self) -> usize {
        match &self.0 {
            Repr::Constant(_) | Repr::TooLarge => 0,
            Repr::Linear { .. } => 1,
            Repr::Terms(terms) => terms.iter().map(|(monomial, _)| monomial.len()).max().unwrap_or(0),
        }
    }

    /// Returns the distinct variables, ascending.
    #[must_use]
    pub fn vars(&self) -> SmallVec<[V; 4]> {
        let mut vars: SmallVec<[V; 4]> = self.terms().flat_map(|(m, _)| m.iter().copied()).collect();
        vars.sort_unstable();
        vars.dedup();
        vars
    }

    /// Returns `self + k * other` for `k` = 1 or -1.
    fn add_scaled(&self, other: &Self, k: i64) -> Self {
        self.checked_add_scaled(other, k).unwrap_or(Self::too_large())
    }

    fn checked_add_scaled(&self, other: &Self, k: i64) -> Option<Self> {
        let sum = |a: i64, b: i64| if k == 1 { a.checked_add(b) } else { a.checked_sub(b) };
        if let (Repr::Constant(a), Repr::Constant(b)) = (&self.0, &other.0) {
            return Some(Self::constant(sum(*a, *b)?));
        }
        if self.is_too_large() || other.is_too_large() {
            return None;
        }
        if let (Some((v, slope, offset)), Some((w, by, more))) = (self.as_linear(other), other.as_linear(self))
            && v == w
        {
            return Some(Self::linear(v, sum(slope, by)?, sum(offset, more)?));
        }
        let terms = Merged::new(self, other, k);
        let mut all = SmallVec::with_capacity(terms.most());
        for term in terms {
            let (monomial, c) = term?;
            all.push((Monomial::from_slice(monomial), c));
        }
        Some(Self::new(all))
    }

    /// Returns the terms of `self - other`, which is not made; `None` for a coefficient that does not fit.
    pub fn terms_of_difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Option<(&'a [V], i64)>> {
        Merged::new(self, other, -1)
    }

    /// Returns `self + other`.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        self.add_scaled(other, 1)
    }

    /// Returns `-self`.
    #[must_use]
    pub fn neg(&self) -> Self {
        self.scale(-1)
    }

    /// Returns `self - other`.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.add_scaled(other, -1)
    }

    /// Returns `k * self`.
    #[must_use]
    pub fn scale(&self, k: i64) -> Self {
        self.checked_scale(k).unwrap_or(Self::too_large())
    }

    fn checked_scale(&self, k: i64) -> Option<Self> {
        Some(match (&self.0, k) {
            (_, 1) => self.clone(),
            (_, 0) => Self::zero(),
            (Repr::TooLarge, _) => return None,
            (Repr::Constant(c), _) => Self::constant(c.checked_mul(k)?),
            (Repr::Linear { var: [v], slope, offset }, _) => {
                Self::linear(*v, i64::from(*slope).checked_mul(k)?, i64::from(*offset).checked_mul(k)?)
            }
            (Repr::Terms(terms), _) => {
                let scaled = terms.iter().map(|(m, c)| Some((m.clone(), c.checked_mul(k)?)));
                Self::new(scaled.collect::<Option<_>>()?)
            }
        })
    }

    /// Returns `self * other`. Quadratic in the number of terms.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        if let Some(k) = self.as_constant() {
            return other.scale(k);
        }
        if let Some(k) = other.as_constant() {
            return self.scale(k);
        }
        self.checked_mul(other).unwrap_or(Self::too_large())
    }

    fn checked_mul(&self, other: &Self) -> Option<Self> {
        let n_products = self.terms().len() * other.terms().len();
        let is_long = n_products > MAX_PRODUCTS || self.degree() + other.degree() > MAX_DEGREE;
        if is_long || self.is_too_large() || other.is_too_large() {
            return None;
        }
        let mut all: SmallVec<[Term<V>; 4]> = SmallVec::new();
        for (m1, c1) in self.terms() {
            for (m2, c2) in other.terms() {
                let mut m: Monomial<V> = m1.iter().chain(m2).copied().collect();
                m.sort_unstable();
                all.push((m, c1.checked_mul(c2)?));
            }
        }
        Self::collected(all)
    }

    /// Returns the sum of these terms, in any order; `None` if a coefficient does not fit.
    fn collected(mut all: SmallVec<[Term<V>; 4]>) -> Option<Self> {
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut terms: SmallVec<[Term<V>; 2]> = SmallVec::new();
        for (m, c) in all {
            match terms.last_mut() {
                Some((last, sum)) if *last == m => *sum = sum.checked_add(c)?,
                _ => terms.push((m, c)),
            }
        }
        terms.retain(|(_, c)| *c != 0);
        Some(Self::new(terms))
    }

    /// Evaluates the polynomial for the values of variables; `None` on overflow.
    pub fn eval(&self, mut value: impl FnMut(V) -> i64) -> Option<i64> {
        if self.is_too_large() {
            return None;
        }
        let mut sum = 0i64;
        for (m, c) in self.terms() {
            let mut product = c;
            for v in m {
                product = product.checked_mul(value(*v))?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// Replaces each variable by a polynomial, possibly over variables of another type.
    pub fn substitute<W: Ord + Copy>(&self, mut by: impl FnMut(V) -> Poly<W>) -> Poly<W> {
        match &self.0 {
            Repr::Constant(c) => Poly::constant(*c),
            Repr::TooLarge => Poly::too_large(),
            Repr::Linear { var: [v], slope, offset } => {
                let scaled = by(*v).scale(i64::from(*slope));
                if *offset == 0 { scaled } else { scaled.add(&Poly::constant(i64::from(*offset))) }
            }
            Repr::Terms(terms) => {
                let mut sum = Poly::zero();
                for (m, c) in terms.iter() {
                    let product = m.iter().fold(Poly::constant(*c), |product, v| product.mul(&by(*v)));
                    sum = sum.add(&product);
                }
                sum
            }
        }
    }

    /// Returns `(p, c)` with `self = p + c` and no constant term in `p`.
    #[must_use]
    pub fn split_constant(&self) -> (Self, i64) {
        match &self.0 {
            Repr::Constant(c) => (Self::zero(), *c),
            Repr::TooLarge => (self.clone(), 0),
            Repr::Linear { var, slope, offset } => {
                (Self(Repr::Linear { var: *var, slope: *slope, offset: 0 }), i64::from(*offset))
            }
            // The constant term comes first.
            Repr::Terms(terms) => match terms.split_first() {
                Some(((monomial, c), rest)) if monomial.is_empty() => (Self::new(rest.into()), *c),
                _ => (self.clone(), 0),
            },
        }
    }

    /// Returns `(a, b)` with `self = a*v + b` and `v` in neither; `None` if `v` occurs with a higher power, or a
    /// coefficient does not fit.
    #[must_use]
    pub fn split_linear(&self, v: V) -> Option<(Self, Self)> {
        let terms = match &self.0 {
            Repr::Linear { var: [w], slope, offset } if *w == v => {
                return Some((Self::constant(i64::from(*slope)), Self::constant(i64::from(*offset))));
            }
            Repr::TooLarge => return None,
            Repr::Constant(_) | Repr::Linear { .. } => return Some((Self::zero(), self.clone())),
            Repr::Terms(terms) => terms,
        };
        let (mut a, mut b) = (SmallVec::new(), SmallVec::new());
        for (m, c) in terms.iter() {
            match m.iter().filter(|w| **w == v).count() {
                0 => b.push((m.clone(), *c)),
                1 => a.push((m.iter().copied().filter(|w| *w != v).collect(), *c)),
                _ => return None,
            }
        }
        // Without `v` their order may differ.
        Some((Self::collected(a)?, Self::new(b)))
    }

    /// Returns `(q, r)` with `self = q*divisor + r`, where the coefficient of each monomial of `r` that the longest
    /// monomial of `divisor` divides is at least 0 and below that monomial's; `None` if its coefficient is not
    /// positive, or the division takes more than `MAX_STEPS` steps.
    #[must_use]
    pub fn divide(&self, divisor: &Self) -> Option<(Self, Self)> {
        const MAX_STEPS: usize = 16;
        let (leading, by) = divisor.terms().max_by_key(|(m, _)| (m.len(), *m))?;
        if by <= 0 || self.is_too_large() {
            return None;
        }
        let (mut quotient, mut rest) = (Self::zero(), self.clone());
        for _ in 0..MAX_STEPS {
            let next = rest.terms().find_map(|(m, c)| {
                let c = c.div_euclid(by);
                let monomial = if c == 0 { None } else { without(m, leading) }?;
                Some(Self::new(SmallVec::from_iter([(monomial, c)])))
            });
            let Some(next) = next else { return Some((quotient, rest)) };
            quotient = quotient.add(&next);
            rest = rest.sub(&next.mul(divisor));
            if rest.is_too_large() {
                return None;
            }
        }
        None
    }
}

/// Returns the monomial `m` divided by `other`, if that divides it.
fn without<V: Ord + Copy>(m: &[V], other: &[V]) -> Option<Monomial<V>> {
    let mut left = Monomial::from_slice(m);
    for v in other {
        left.remove(left.binary_search(v).ok()?);
    }
    Some(left)
}

// By their terms in order; all polynomials that are too large are equal.
impl<V: Ord + Copy> PartialEq for Poly<V> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V: Ord + Copy> Eq for Poly<V> {}

impl<V: Ord + Copy> Ord for Poly<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.terms().cmp(other.terms()).then(self.is_too_large().cmp(&other.is_too_large()))
    }
}

impl<V: Ord + Copy> PartialOrd for Poly<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Ord + Copy + Hash> Hash for Poly<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.terms().len());
        self.terms().for_each(|term| term.hash(state));
    }
}

impl<V: Ord + Copy> From<i64> for Poly<V> {
    fn from(c: i64) -> Self {
        Self::constant(c)
    }
}

/// Prints `2*n + 1`: variables as they display, the constant term last.
impl<V: Ord + Copy + fmt::Display> fmt::Display for Poly<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.is_too_large() {
            return f.write_str("a number beyond 64 bits");
        }
        let constant_last = self.terms().filter(|t| !t.0.is_empty()).chain(self.terms().filter(|t| t.0.is_empty()));
        for (i, (m, c)) in constant_last.enumerate() {
            let magnitude = c.unsigned_abs();
            match (i, c < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            if magnitude != 1 || m.is_empty() {
                write!(f, "{magnitude}")?;
                if !m.is_empty() {
                    f.write_str("*")?;
                }
            }
            for (j, v) in m.iter().enumerate() {
                if j > 0 {
                    f.write_str("*")?;
                }
                write!(f, "{v}")?;
            }
        }
        Ok(())
    }
}

impl<V: Ord + Copy + fmt::Debug> fmt::Debug for Poly<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.terms().map(|(m, c)| (c, m))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_normal_form() {
        let (n, m) = (Poly::var('n'), Poly::var('m'));
        let one = Poly::constant(1);
        assert_eq!(n.add(&one), one.add(&n));
        assert_eq!(n.add(&one).mul(&n.sub(&one)), n.mul(&n).sub(&one));
        assert_eq!(n.mul(&m), m.mul(&n));
        assert!(n.sub(&n).is_zero());
        assert_eq!(n.scale(2).add(&one).to_string(), "2*n + 1");
        assert_eq!(m.neg().sub(&one).to_string(), "-m - 1");
    }

    #[test]
    fn terms_make_a_polynomial_when_they_are_in_normal_form() {
        let p = Poly::var('i').mul(&Poly::var('j')).scale(3).add(&Poly::constant(2));
        let terms = |p: &Poly<char>| p.terms().map(|(m, c)| (m.to_vec(), c)).collect::<Vec<_>>();
        assert_eq!(Poly::from_terms(terms(&p)), Some(p));
        assert_eq!(Poly::from_terms(vec![(vec!['j', 'i'], 1)]), None);
        assert_eq!(Poly::from_terms(vec![(vec!['i'], 1), (vec![], 1)]), None);
        assert_eq!(Poly::from_terms(vec![(vec!['i'], 1), (vec!['i'], 1)]), None);
        assert_eq!(Poly::from_terms(vec![(vec!['i'], 0)]), None);
    }

    #[test]
    fn a_constant_term_is_split_off() {
        let n = Poly::var('n');
        for (p, c) in
            [(n.clone(), 0), (n.clone(), -3), (n.mul(&n).scale(2), 5), (n.mul(&n).add(&n), 0), (Poly::zero(), 4)]
        {
            assert_eq!(p.add(&Poly::constant(c)).split_constant(), (p, c));
        }
    }

    #[test]
    fn division_leaves_a_remainder_of_terms() {
        let [i, j, n, m] = ['i', 'j', 'n', 'm'].map(Poly::var);
        let c = Poly::constant;
        let less = n.sub(&c(2));
        for (q, d, r) in [
            (i.clone(), n.clone(), j.clone()),
            (i.mul(&n).add(&j), m.clone(), n.clone()),
            (i.clone(), n.mul(&m), j.mul(&m).add(&n)),
            (i.add(&j).sub(&c(3)), less.clone(), i.add(&c(7))),
            (i.scale(2).sub(&c(1)), c(3), i.add(&c(2))),
            (i.add(&n), c(1), Poly::zero()),
            (i.scale(-1).add(&j), n.add(&m), j.neg()),
        ] {
            assert_eq!(q.mul(&d).add(&r).divide(&d), Some((q, r)));
        }
        assert_eq!(i.divide(&Poly::zero()), None);
        assert_eq!(i.divide(&n.neg()), None);
        assert_eq!(Poly::too_large().divide(&n), None);
        assert_eq!(n.divide(&Poly::too_large()), None);
    }

    #[test]
    fn order_and_size_are_those_of_the_terms() {
        let (n, one) = (Poly::var('n'), Poly::constant(1));
        let mut all = [n.clone(), n.add(&one), one.clone(), Poly::zero(), Poly::constant(-2), n.scale(-1)];
        all.sort();
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["0", "-2", "1", "n + 1", "-n", "n"]);
        assert_eq!(Poly::from_terms(vec![(vec![], 1)]), Some(one.clone()));
        assert_eq!(n.add(&one).sub(&n), one);
        assert_eq!(size_of::<Poly<char>>(), 16);
    }

    #[test]
    fn values_without_memory_are_their_terms() {
        let (n, m) = (Poly::var('n'), Poly::var('m'));
        let numbers =
            [0, 1, -1, 7, i64::from(i32::MAX), i64::from(i32::MIN), i64::from(i32::MAX) + 1, i64::MAX, i64::MIN];
        let by_terms = |v: char, slope: i64, offset: i64| {
            let terms = [(vec![], offset), (vec![v], slope)].into_iter().filter(|(_, c)| *c != 0).collect();
            Poly::from_terms(terms).unwrap_or_else(Poly::zero)
        };
        let by_checked = |v: char, slope: Option<i64>, offset: Option<i64>| {
            slope.zip(offset).map_or(Poly::too_large(), |(slope, offset)| by_terms(v, slope, offset))
        };
        for slope in numbers {
            for offset in numbers {
                let p = by_terms('n', slope, offset);
                assert_eq!(Poly::linear('n', slope, offset), p);
                assert_eq!(n.scale(slope).add(&Poly::constant(offset)), p);
                assert_eq!(p.split_constant(), (by_terms('n', slope, 0), offset));
                assert_eq!(p.split_linear('n'), Some((Poly::constant(slope), Poly::constant(offset))));
                assert_eq!(p.split_linear('m'), Some((Poly::zero(), p.clone())));
                assert_eq!(p.as_var().is_some(), (slope, offset) == (1, 0));
                assert_eq!(p.as_constant(), (slope == 0).then_some(offset));
                assert_eq!(p.substitute(|_| m.clone()), by_terms('m', slope, offset));
                for k in [0, 1, -1, 3, i64::MAX] {
                    let scaled = by_checked('n', slope.checked_mul(k), offset.checked_mul(k));
                    assert_eq!(p.scale(k), scaled);
                    assert_eq!(m.mul(&m).add(&p.scale(k)).sub(&m.mul(&m)), scaled);
                }
                for other in numbers {
                    let (sum, shifted) = (slope.checked_add(other), offset.checked_add(other));
                    assert_eq!(p.add(&Poly::linear('n', other, other)), by_checked('n', sum, shifted));
                    assert_eq!(p.add(&Poly::constant(other)), by_checked('n', Some(slope), shifted));
                    assert_eq!(Poly::constant(other).add(&p), by_checked('n', Some(slope), shifted));
                    let both = p.add(&by_terms('m', other, 0));
                    assert_eq!(both.sub(&p), by_terms('m', other, 0));
                    assert_eq!(both.terms().len(), [offset, slope, other].into_iter().filter(|c| *c != 0).count());
                }
            }
        }
    }

    #[test]
    fn a_coefficient_beyond_64_bits_makes_no_other_number() {
        let (n, most) = (Poly::var('n'), Poly::constant(i64::MAX));
        let large = [
            most.add(&Poly::constant(1)),
            most.neg().sub(&Poly::constant(2)),
            Poly::constant(i64::MIN).neg(),
            n.scale(i64::MAX).add(&n),
            n.scale(i64::MAX).mul(&n.scale(2)),
            n.add(&most).mul(&n.add(&most)),
            n.mul(&n).scale(3).substitute(|_| most.clone()),
            n.scale(i64::MIN).add(&n.mul(&n)).neg(),
        ];
        for p in large {
            assert!(p.is_too_large(), "{p}");
            assert_eq!((p.as_constant(), p.as_var(), p.eval(|_| 0)), (None, None, None));
            assert_ne!(p, Poly::constant(i64::MIN));
            for sticky in [p.sub(&p), p.add(&n), n.sub(&p), p.mul(&n), p.neg(), p.substitute(Poly::var)] {
                assert!(sticky.is_too_large());
            }
            assert!(p.scale(0).is_zero());
            assert_eq!(p.split_linear('n'), None);
        }
    }

    #[test]
    fn products_stay_short() {
        let mut power = Poly::var(0);
        for _ in 0..40 {
            power = power.mul(&power);
            assert!(power.degree() <= MAX_DEGREE);
        }
        assert!(power.is_too_large());
        let sums = (0..40).map(|v| Poly::var(v).add(&Poly::constant(1)));
        let product = sums.fold(Poly::constant(1), |product, sum| product.mul(&sum));
        assert!(product.is_too_large());
        let extents = (0..40).fold(Poly::constant(1), |product, v| product.mul(&Poly::var(v)));
        assert_eq!((extents.degree(), extents.terms().len()), (40, 1));
    }

    #[test]
    fn differences_of_two_variables_are_found() {
        let (m, n) = (Poly::var('m'), Poly::var('n'));
        assert_eq!(m.sub(&n).as_difference(), Some(('m', 'n')));
        assert_eq!(n.sub(&m).as_difference(), Some(('n', 'm')));
        for other in [m.add(&n), m.sub(&n.scale(2)), m.sub(&n).add(&Poly::constant(1)), m.mul(&m).sub(&n), m] {
            assert_eq!(other.as_difference(), None);
        }
    }

    #[test]
    fn split_linear_takes_out_one_variable() {
        let (i, n) = (Poly::var('i'), Poly::var('n'));
        let offset = i.mul(&n).add(&Poly::constant(3));
        assert_eq!(offset.split_linear('i'), Some((n.clone(), Poly::constant(3))));
        assert_eq!(i.mul(&i).split_linear('i'), None);
    }

    #[test]
    fn substitution_and_evaluation_agree() {
        let p = Poly::var('i').mul(&Poly::var('j')).scale(3).add(&Poly::constant(2));
        let q: Poly<char> = p.substitute(|v| Poly::var(v).add(&Poly::constant(1)));
        let value = |v| if v == 'i' { 4 } else { 5 };
        assert_eq!(q.eval(value), p.eval(|v| value(v) + 1));
        assert_eq!(Poly::var('i').mul(&Poly::var('i')).eval(|_| i64::MAX), None);
    }
}
