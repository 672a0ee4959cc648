//! erf(x), the error function.
//!
//! Up to 1 it is x and x times a polynomial in x^2. Above, it is 1 - exp(-x^2) f(1 / (x + 3)) with a polynomial f; the
//! rounding error of x^2 is carried. Arguments are clamped to 6, where the result is 1, and no argument is rare.

use super::exp::{of_reduced, power_of_two, reduce};
use super::lanes::{Lanes, polynomial, two_product};

/// erf(x) / x - 1 by x^2 for |x| <= 1: error 2^-56.3, relative to erf(x).
const NEAR: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318409,
    0.1128379167097071,
    -0.026866170647953033,
    0.005223977651942662,
    -0.00085483284949073,
    0.00012055384817281495,
    -1.4926851698219433e-05,
    1.6480639877841647e-06,
    -1.6553345363243033e-07,
    1.5992352617042748e-08,
    -1.640205810069662e-09,
    1.4268166772058684e-10,
];

/// exp(x^2) erfc(x) by v = 1 / (x + 3) - [`CENTRE`] for 1 <= x <= 6: error 2^-61.2, relative to erf(x).
const FAR: [f64; 13] = [
    0.2239293576314102,
    2.3715697251251897,
    11.127869360555009,
    41.02269138530329,
    113.85751703589776,
    212.25321784407512,
    157.9143940403972,
    -367.94970387851777,
    -1007.5236258850017,
    423.3551247805723,
    4457.968973379128,
    -1259.8216516588263,
    -14267.555489630739,
];

const CENTRE: f64 = 0.1875;

/// erf(x) in lanes.
#[inline(always)]
pub fn erf<L: Lanes>(x: L) -> L {
    let one = L::splat(1.0);
    let magnitude = x.abs();
    let near = x.fma(polynomial(x * x, &NEAR), x);
    let cut = L::select(L::splat(6.0).less(magnitude), L::splat(6.0), magnitude);
    let (square, lost) = two_product(cut, cut);
    let (t, r, r_lo) = reduce(-square);
    let vanishing = of_reduced(r, r_lo - lost) * power_of_two(t, 0);
    let v = one / (cut + L::splat(3.0)) - L::splat(CENTRE);
    let far = (-vanishing).fma(polynomial(v, &FAR), one).bits_or(x.sign());
    L::select(magnitude.at_most(one), near, far)
}
