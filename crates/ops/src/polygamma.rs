// Digamma and its derivatives in doubles, by `libm`.

// The derivative of digamma of this order at x: NaN for an order that is not a natural number up to 60 and at the poles
// 0, -1, -2, ...
//
// Right of 0 sums of terms of one sign are accurate: recurrences lead to where a series converges. Left of 0 they
// cancel, so the reflection formula leads to the right: with d the distance to the nearest integer,
//   psi_n(x) = (-1)^n (psi_n(1 - x) - T(d)), T(d) = sum over all integers m of n! / (d + m)^(n + 1).
fn cr_polygamma(order: f64, x: f64) -> f64 {
    let is_order = (0.0..=60.0).contains(&order) && order == libm::floor(order);
    if !is_order || x.is_nan() || (x <= 0.0 && x == libm::floor(x)) {
        return f64::NAN;
    }
    if x > 0.0 {
        return if order == 0.0 { cr_digamma(x, 0.0) } else { cr_polygamma_right(order, x, 0.0) };
    }
    let distance = x - libm::rint(x);
    let size = libm::fabs(distance);
    let sign = if order % 2.0 == 0.0 { 1.0 } else { -1.0 };
    // The cotangent of pi d, by the tangent of the smaller angle.
    let pi = core::f64::consts::PI;
    let cotangent = if size < 0.25 { 1.0 / libm::tan(pi * size) } else { libm::tan(pi * (0.5 - size)) };
    // 1 - x, and its rounding error.
    let mirrored = 1.0 - x;
    let rest = (1.0 - mirrored) - x;
    let (right, mut all) = if order == 0.0 {
        (cr_digamma(mirrored, rest), pi * cotangent)
    } else if size < 0.35 || sign < 0.0 {
        // Of two series, both of one sign, the left one counts, or they are added.
        let near = cr_polygamma_right(order, size, 0.0);
        let far = 1.0 - size;
        let far = cr_polygamma_right(order, far, (1.0 - far) - size);
        (cr_polygamma_right(order, mirrored, rest), far - sign * near)
    } else {
        // The error of pi as a double, once a factor.
        let n = order + 1.0;
        let power = libm::pow(pi, n);
        let power = power + power * n * 3.898_171_832_519_376e-17;
        (cr_polygamma_right(order, mirrored, rest), power * cr_cotangent_derivative(order, cotangent))
    };
    if distance < 0.0 && sign > 0.0 {
        all = -all;
    }
    sign * (right - all)
}

// Digamma right of 0, at x + x_rest. Between 1 and 3 its distance from its zero, which is a sum of two doubles, times a
// polynomial over x.
fn cr_digamma(x: f64, x_rest: f64) -> f64 {
    const POLYNOMIAL: [f64; 23] = [
        -8.421727789790498e-12,
        2.5277193345902156e-11,
        -2.7454834591163855e-11,
        8.248895838712431e-11,
        -3.6902998974805616e-10,
        1.109280756041948e-09,
        -3.164170368309569e-09,
        9.528036002813641e-09,
        -2.888263327609327e-08,
        8.72355285667876e-08,
        -2.640230601689581e-07,
        8.019905185881828e-07,
        -2.447270352088076e-06,
        7.51545354249834e-06,
        -2.3288647418421456e-05,
        7.310840459364593e-05,
        -0.000_233_924_201_237_063_7,
        0.000_770_444_491_092_241_9,
        -0.002_656_413_722_542_593_7,
        0.009_897_851_182_279_094,
        -0.042_739_120_647_744_59,
        0.263_829_629_238_102_5,
        1.570_615_077_208_210_6,
    ];
    const SERIES: [f64; 12] = [
        236_364_091.0 / 65520.0,
        -77683.0 / 276.0,
        174_611.0 / 6600.0,
        -43867.0 / 14364.0,
        3617.0 / 8160.0,
        -1.0 / 12.0,
        691.0 / 32760.0,
        -1.0 / 132.0,
        1.0 / 240.0,
        -1.0 / 252.0,
        1.0 / 120.0,
        -1.0 / 12.0,
    ];
    let mut z = x;
    let mut shift = 0.0;
    if z < 1.0 {
        shift = -1.0 / z;
        z += 1.0;
    }
    while z > 3.0 && z < 10.0 {
        z -= 1.0;
        shift += 1.0 / z;
    }
    let mut sum = 0.0;
    if z <= 3.0 {
        for coefficient in POLYNOMIAL {
            sum = sum * (z - 2.0) + coefficient;
        }
        return ((z - 1.461_632_144_968_362_2) - (9.549995429965697e-17 - x_rest)) * sum / z + shift;
    }
    let w = 1.0 / (z * z);
    for coefficient in SERIES {
        sum = sum * w + coefficient;
    }
    libm::log(z) - 0.5 / z + sum * w
}

// Polygamma of order 1 to 60 right of 0, at x + x_rest: terms of the recurrence up to where the asymptotic series
// converges, whose first terms and numbers B(2), B(4), ..., B(24) follow (Abramowitz and Stegun, 6.4.6 and 6.4.11).
fn cr_polygamma_right(n: f64, x: f64, x_rest: f64) -> f64 {
    const BERNOULLI: [f64; 12] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
        43867.0 / 798.0,
        -174_611.0 / 330.0,
        854_513.0 / 138.0,
        -236_364_091.0 / 2730.0,
    ];
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    let factorial = libm::tgamma(n + 1.0);
    // The sum and its rounding errors; z and its rounding error.
    let mut sum = 0.0;
    let mut rest = 0.0;
    let mut steps = 0.0;
    let mut z = x;
    let mut z_rest = x_rest;
    while z < 16.0 + n {
        let term = cr_over_power(factorial, z, n + 1.0);
        if term > f64::MAX {
            return sign * term;
        }
        let next = sum + term;
        rest += if sum > term { (sum - next) + term } else { (term - next) + sum };
        rest -= term * ((n + 1.0) * z_rest / z);
        sum = next;
        steps += 1.0;
        z = x + steps;
        let added = z - x;
        z_rest = ((x - (z - added)) + (steps - added)) + x_rest;
    }
    let main = cr_over_power(factorial / n, z, n);
    let mut series = main * n / (2.0 * z) - main * (n * z_rest / z);
    let mut term = main * n * (n + 1.0) / 2.0 / z / z;
    let mut two_k = 2.0;
    for b in BERNOULLI {
        series += b * term;
        term = term * ((two_k + n) * (two_k + n + 1.0) / ((two_k + 1.0) * (two_k + 2.0))) / z / z;
        two_k += 2.0;
    }
    sign * (sum + (main + (series + rest)))
}

// c / z^k, where z^k may be too large or too small for a double.
fn cr_over_power(c: f64, z: f64, k: f64) -> f64 {
    let power = libm::pow(z, k);
    if power > 1e-30 && power < 1e30 {
        return c / power;
    }
    let half = libm::floor(k / 2.0);
    c / libm::pow(z, half) / libm::pow(z, k - half)
}

// The derivative of this order of the cotangent, without its sign, as a polynomial in the cotangent c: the first is 1 +
// c^2, and all coefficients are positive.
fn cr_cotangent_derivative(n: f64, c: f64) -> f64 {
    let mut polynomial = [0.0; 64];
    polynomial[1] = 1.0;
    let mut order = 0.0;
    while order < n {
        let mut next = [0.0; 64];
        let mut power = 0.0;
        for i in 1..62 {
            power += 1.0;
            next[i - 1] += power * polynomial[i];
            next[i + 1] += power * polynomial[i];
        }
        polynomial = next;
        order += 1.0;
    }
    let mut value = 0.0;
    for coefficient in polynomial.iter().rev() {
        value = value * c + coefficient;
    }
    value
}
