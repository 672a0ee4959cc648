//! Fused multiply-add and square root in integers, for emitted Rust without the standard library.

/// `a * b + c`, rounded once, to nearest, ties to even.
#[must_use]
pub fn fma(a: f64, b: f64, c: f64) -> f64 {
    if !(a.is_finite() && b.is_finite()) || a == 0.0 || b == 0.0 {
        return a * b + c;
    }
    if !c.is_finite() {
        return c;
    }
    if c == 0.0 {
        // Not a * b + c: an underflowing product keeps its sign.
        return a * b;
    }
    // Each is m 2^e with the top bit of m at bit 126; their sum fits into 128 bits.
    let ((a_m, a_e), (b_m, b_e), (c_m, c_e)) = (parts(a), parts(b), parts(c));
    let product = u128::from(a_m) * u128::from(b_m);
    let up = product.leading_zeros() as i32 - 1;
    let (p_m, p_e) = (product << up, a_e + b_e - up);
    let (c_m, c_e) = (u128::from(c_m) << 74, c_e - 74);
    let p_negative = a.is_sign_negative() != b.is_sign_negative();
    let c_negative = c.is_sign_negative();
    // The number with the smaller exponent is shifted down; lost bits leave a sticky 1 in the last bit. There are more
    // than 70 bits below those of a double, so the last bit decides rounding as the lost bits would. If many bits
    // cancel, none were lost.
    let (e, p_m, c_m) = if p_e >= c_e { (p_e, p_m, down(c_m, p_e - c_e)) } else { (c_e, down(p_m, c_e - p_e), c_m) };
    let (m, negative) = if p_negative == c_negative {
        (p_m + c_m, p_negative)
    } else if p_m >= c_m {
        (p_m - c_m, p_negative)
    } else {
        (c_m - p_m, c_negative)
    };
    if m == 0 {
        return 0.0;
    }
    let magnitude = f64::from_bits(rounded(m, e));
    if negative { -magnitude } else { magnitude }
}

/// The square root, rounded to nearest.
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    if x == 0.0 || x == f64::INFINITY {
        return x;
    }
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    let (m, e) = parts(x);
    // An even exponent, and a root of 54 bits; the last of its doubled bits says whether it is not exact.
    let (m, e) = (u128::from(m) << (54 + (e & 1)), e - 54 - (e & 1));
    let root = m.isqrt();
    f64::from_bits(rounded(root << 1 | u128::from(root * root != m), e / 2 - 1))
}

/// (m, e) with |x| = m 2^e and bit 52 the top of m, for finite x other than 0.
fn parts(x: f64) -> (u64, i32) {
    let biased = (x.to_bits() >> 52 & 0x7ff) as i32;
    let fraction = x.to_bits() & ((1 << 52) - 1);
    if biased == 0 {
        let up = fraction.leading_zeros() as i32 - 11;
        (fraction << up, -1074 - up)
    } else {
        (fraction | 1 << 52, biased - 1075)
    }
}

/// m / 2^by, with the last bit set if bits were lost.
fn down(m: u128, by: i32) -> u128 {
    if by >= 128 {
        return 1;
    }
    let kept = m >> by;
    if kept << by == m { kept } else { kept | 1 }
}

/// Returns the bits of the double nearest to m 2^e, for m > 0.
fn rounded(m: u128, e: i32) -> u64 {
    let top = 127 - m.leading_zeros() as i32;
    // m 2^e is in 2^exponent .. 2^(exponent + 1).
    let exponent = e + top;
    if exponent > 1023 {
        return f64::INFINITY.to_bits();
    }
    // The lowest kept bit is at least 2^-1074.
    let drop = if exponent >= -1022 { top - 52 } else { -1074 - e };
    let kept = if drop <= 0 {
        (m << -drop) as u64
    } else if drop >= 128 {
        0
    } else {
        let kept = (m >> drop) as u64;
        let rest = m & ((1 << drop) - 1);
        let half = 1 << (drop - 1);
        kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
    };
    // A carry out of the fraction increments the exponent, possibly to infinity.
    if exponent >= -1022 { (((exponent + 1022) as u64) << 52) + kept } else { kept }
}
