//! sin, cos and tan of arguments that `circle` does not reduce: |x| above 2^30, infinity and NaN.
//!
//! x = m 2^e with a 53-bit integer m. Only x * 2/pi modulo 4 matters, so the bits of 2/pi before 2^-(e-2) may be
//! omitted (Payne and Hanek 1983). The product of m with the next 256 bits of 2/pi has two bits of n and 201 exact bits
//! behind the point. No double is closer than a relative distance of 2^-62 to a multiple of pi/2 (Muller, Elementary
//! Functions, 11.3.2), so at least 139 bits remain for r.

use super::circle::{HALF_PI, HALF_PI_2, rotate, tangent};
use super::lanes::{ROUNDER, fast_two_sum, two_product};

/// 2/pi in words of 64 bits; the first bit is worth 1/2. 1280 bits: at most 1024 - 53 to skip, 256 to use.
pub const TWO_OVER_PI: [u64; 20] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// sin(x) for |x| > 2^30, infinity and NaN.
#[cold]
#[inline(never)]
pub fn sin(x: f64) -> f64 {
    both(x).0
}

/// cos(x) for |x| > 2^30, infinity and NaN.
#[cold]
#[inline(never)]
pub fn cos(x: f64) -> f64 {
    both(x).1
}

/// tan(x) for |x| > 2^30, infinity and NaN.
#[cold]
#[inline(never)]
pub fn tan(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (n, r, r_lo) = reduce(x.abs());
    let y = tangent(ROUNDER + n as f64, r, r_lo);
    if x < 0.0 { -y } else { y }
}

fn both(x: f64) -> (f64, f64) {
    if !x.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    let (n, r, r_lo) = reduce(x.abs());
    // n in the low bits, as in `circle`.
    let (s, c) = rotate(ROUNDER + n as f64, r, r_lo);
    (if x < 0.0 { -s } else { s }, c)
}

/// (n modulo 4, r, r_lo) for x > 2^30.
fn reduce(x: f64) -> (u64, f64, f64) {
    let m = x.to_bits() & ((1 << 52) - 1) | 1 << 52;
    // x = m 2^e; e is at least 30 - 52.
    let e = (x.to_bits() >> 52) as i64 - 1075;
    // Bit i of 2/pi (from bit 1) times m is worth m 2^(e - i): a multiple of 4 while e - i >= 2.
    let skip = (e - 2).max(0) as u64;
    let word = |i: u64| {
        let (at, by) = (((skip + 64 * i) / 64) as usize, skip % 64);
        let low = if by == 0 { 0 } else { TWO_OVER_PI[at + 1] >> (64 - by) };
        TWO_OVER_PI[at] << by | low
    };
    // m times four words: five words, lowest first.
    let mut product = [0u64; 5];
    let mut carry = 0u128;
    for i in 0..4 {
        let sum = u128::from(m) * u128::from(word(3 - i)) + carry;
        product[i as usize] = sum as u64;
        carry = sum >> 64;
    }
    product[4] = carry as u64;
    // The product is worth product * 2^(e - skip - 256): the point is above this many bits.
    let point = 256 - (e - skip as i64);
    // Shift so that the point is above the three words `fraction`, with n above it.
    let by = point - 192;
    let (words, bits) = ((by / 64) as usize, by % 64);
    let at = |i: usize| {
        let low = product.get(i + words).copied().unwrap_or(0);
        let high = product.get(i + words + 1).copied().unwrap_or(0);
        if bits == 0 { low } else { low >> bits | high << (64 - bits) }
    };
    let mut fraction = [at(0), at(1), at(2)];
    let mut n = at(3);
    // To the nearest multiple: the fraction is in -1/2 .. 1/2.
    let negative = fraction[2] >> 63 == 1;
    if negative {
        n = n.wrapping_add(1);
        let mut carry = true;
        for word in &mut fraction {
            (*word, carry) = (!*word).overflowing_add(u64::from(carry));
        }
    }
    let (high, low) = fraction_as_doubles(fraction);
    // Times pi/2.
    let (product, lost) = two_product(high, HALF_PI);
    let (r, r_lo) = fast_two_sum(product, lost + (high * HALF_PI_2 + low * HALF_PI));
    if negative { (n & 3, -r, -r_lo) } else { (n & 3, r, r_lo) }
}

/// Returns the fraction of 192 bits, lowest word first, as a sum of two doubles: its first 53 bits and the next 53.
fn fraction_as_doubles(fraction: [u64; 3]) -> (f64, f64) {
    let zeros = if fraction[2] != 0 {
        fraction[2].leading_zeros()
    } else if fraction[1] != 0 {
        64 + fraction[1].leading_zeros()
    } else {
        128 + fraction[0].leading_zeros()
    };
    // 53 bits from bit `from` on, counted from the top.
    let bits = |from: u32| {
        let mut value = 0u64;
        for i in from..(from + 53).min(192) {
            let bit = 191 - i;
            value = value << 1 | fraction[(bit / 64) as usize] >> (bit % 64) & 1;
        }
        (value, (from + 53).min(192))
    };
    let part = |from: u32| {
        if from >= 192 {
            return (0.0, 192);
        }
        let (value, end) = bits(from);
        // value * 2^-end; end is at most 192.
        (value as f64 * f64::from_bits(u64::from(1023 - end) << 52), end)
    };
    let (high, end) = part(zeros);
    let (low, _) = part(end);
    (high, low)
}
