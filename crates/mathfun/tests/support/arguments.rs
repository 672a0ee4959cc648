//! Test arguments of functions: everywhere, and at hard cases.

use chainrule_cases::Xorshift;

/// Returns special doubles: zeros, subnormals, ones, powers of two, largest, each with neighbours.
pub fn special() -> Vec<f64> {
    let mut centres = vec![0.0, 1.0, f64::MIN_POSITIVE, f64::MAX, 5e-324, 2.0, 0.5, 1e-300, 1e300, 3.0, 10.0];
    for e in [-1074, -1060, -1023, -1021, -500, -100, -60, -55, -54, -53, -52, -30, -28, -27, -26, -3, -2, 4, 10] {
        centres.push(power_of_two(e));
    }
    for e in [20, 29, 30, 31, 51, 52, 53, 54, 60, 61, 62, 63, 64, 100, 500, 999, 1000, 1001, 1022, 1023] {
        centres.push(power_of_two(e));
    }
    let mut all = Vec::new();
    for centre in centres {
        for step in -2..=2i64 {
            let x = f64::from_bits(centre.to_bits().saturating_add_signed(step));
            if x.is_finite() {
                all.extend([x, -x]);
            }
        }
    }
    all
}

/// Returns doubles around the points at which a function changes its algorithm.
pub fn around(centres: &[f64]) -> Vec<f64> {
    let mut all = Vec::new();
    for centre in centres {
        for step in -40..=40i64 {
            all.push(f64::from_bits(centre.to_bits().saturating_add_signed(step)));
        }
    }
    all
}

/// Returns 2^e, subnormal or not.
pub fn power_of_two(e: i32) -> f64 {
    if e < -1022 { f64::from_bits(1 << (e + 1074)) } else { f64::from_bits(((e + 1023) as u64) << 52) }
}

/// Returns about `many` arguments of a function of one argument.
pub fn of(name: &str, many: usize) -> Vec<f64> {
    let mut random = Xorshift::new(name.bytes().map(u64::from).sum::<u64>() + 1);
    let mut all = special();
    let (low, high): (f64, f64) = match name {
        "sin" | "cos" | "tan" => (-100.0, 100.0),
        "exp" => (-746.0, 711.0),
        "expm1" => (-45.0, 711.0),
        "log" => (0.0, 10.0),
        "log1p" => (-1.0, 10.0),
        "tanh" => (-23.0, 23.0),
        "sinh" | "cosh" => (-712.0, 712.0),
        "erf" => (-6.5, 6.5),
        "cbrt" => (-64.0, 64.0),
        "atanh" => (-1.0, 1.0),
        "acosh" => (1.0, 10.0),
        _ => (-10.0, 10.0),
    };
    // At borders of branches, octants and powers of two.
    let half_pi = std::f64::consts::FRAC_PI_2;
    let half_log = std::f64::consts::LN_2 / 2.0;
    let centres: Vec<f64> = match name {
        "sin" | "cos" | "tan" => (1..60)
            .map(|n| f64::from(n) * half_pi / 2.0)
            .chain([1e3, 1e5, 1e7, 1e9].map(|n: f64| (n / half_pi).round() * half_pi))
            .chain([1_073_741_824.0, 6_381_956_970_095_103.0 * 2f64.powi(797), 5.319_372_648_326_541e255])
            .collect(),
        "exp" | "expm1" => {
            let ends = [708.0, -708.0, 709.782712893384, -745.1332191019412, -708.3964185322641, -40.0, -36.7];
            (-20..20).map(|n| half_log * f64::from(2 * n + 1)).chain(ends).collect()
        }
        "log" | "log1p" => [0.5f64.sqrt(), 2f64.sqrt(), 1.0, 2f64.sqrt() - 1.0, 0.5f64.sqrt() - 1.0, -1.0].to_vec(),
        "sinh" | "cosh" => {
            let ends = [710.5, 710.4758600739439, 710.13, 709.78, 40.0, -40.0];
            (-20..20).map(|n| half_log * f64::from(2 * n + 1)).chain(ends).collect()
        }
        "asinh" => vec![0.125f64.sqrt(), -0.125f64.sqrt(), 1.06, 2.65, 1_073_741_824.0, 3.725290298461914e-9],
        "acosh" => vec![1.0, 1.25, 0.75 * 2f64.sqrt(), 1.5, 1_073_741_824.0],
        "atanh" => vec![1.0 / 6.0, -1.0 / 6.0, 1.0 / 3.0, 0.45, 0.5, 0.75, 1.0, -1.0],
        "cbrt" => vec![8.0, 27.0, -64.0, 4.0, 0.25, 1.5e-323, 1e-310],
        "erf" => vec![1.0, -1.0, 5.863584748755168, 6.0, -6.0, 0.5],
        "tanh" => vec![0.2225, 18.4, half_log / 2.0, 3.0 * half_log / 2.0, 19.06, 20.0, 22.0, -half_log / 2.0],
        _ => vec![0.414_213_562_373_095, 2.414_213_562_373_095, 1.0, -1.0, -0.414_213_562_373_095],
    };
    all.extend(around(&centres));
    let rest = many.saturating_sub(all.len()) / 4;
    for _ in 0..rest {
        all.push(random.finite());
        all.push(random.between(low, high));
        // Uniform in the exponent, over the relevant magnitudes.
        all.push(random.between(-60.0, 12.0).exp2() * if random.bits() & 1 == 0 { 1.0 } else { -1.0 });
        all.push(match name {
            // Near multiples of pi/2, where most digits of the argument are lost.
            "sin" | "cos" | "tan" => {
                let x = (random.between(0.0, 40.0).exp2()).round() * half_pi;
                f64::from_bits(x.to_bits().wrapping_add_signed((random.bits() % 5) as i64 - 2))
            }
            // With subnormal results.
            "exp" => random.between(-745.5, -707.5),
            "log" | "acosh" => {
                1.0 + random.between(-45.0, -1.0).exp2() * if random.bits() & 1 == 0 { 1.0 } else { -1.0 }
            }
            "atanh" => (1.0 - random.between(-53.0, 0.0).exp2()) * if random.bits() & 1 == 0 { 1.0 } else { -1.0 },
            _ => random.between(-1.0, 1.0),
        });
    }
    all.retain(|x| match name {
        "log" => *x > 0.0,
        "log1p" => *x > -1.0,
        "atanh" => x.abs() < 1.0,
        "acosh" => *x >= 1.0,
        _ => true,
    });
    all
}

/// Returns about `many` pairs of arguments, including special ones, infinities and NaN.
pub fn pairs_of(name: &str, many: usize) -> Vec<(f64, f64)> {
    let mut random = Xorshift::new(name.bytes().map(u64::from).sum::<u64>() + 2);
    let specials = special();
    let awkward: Vec<f64> =
        [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 1e300, 5e-324, 1e-310, f64::INFINITY, 9007199254740991.0]
            .into_iter()
            .chain([
                9007199254740992.0,
                2251799813685249.0,
                2251799813685247.5,
                1e15,
                1e19,
                f64::MAX,
                f64::MIN_POSITIVE,
            ])
            .flat_map(|x| [x, -x])
            .chain([f64::NAN])
            .collect();
    let mut all: Vec<(f64, f64)> = awkward.iter().flat_map(|a| awkward.iter().map(|b| (*a, *b))).collect();
    let near = |x: f64, steps: u64| f64::from_bits(x.to_bits().wrapping_add(steps).wrapping_sub(3));
    while all.len() < many {
        let a = random.finite();
        let sign = if random.bits() & 1 == 0 { 1.0 } else { -1.0 };
        all.push((a, random.finite()));
        let pick = |r: &mut Xorshift| specials[(r.bits() % specials.len() as u64) as usize];
        all.push((pick(&mut random), pick(&mut random)));
        if name == "pow" {
            // Results over the whole range, including subnormal and barely overflowing ones.
            let x = a.abs().max(5e-324);
            all.push((x, random.between(-746.0, 711.0) / x.ln()));
            let x = random.between(-3.0, 3.0).exp2();
            all.push((x * sign, (random.between(-700.0, 700.0) / x.ln()).round()));
            // Bases near 1, large exponents.
            let x = 1.0 + sign * random.between(-52.0, -2.0).exp2();
            all.push((x, random.between(-745.0, 709.7) / x.ln()));
            all.push((random.between(0.0, 20.0), random.between(-20.0, 20.0)));
            // At changes of the logarithm's power of two, with large and small results.
            let x = near(0.5f64.sqrt() * (random.bits() % 9) as f64 + 1e-9, random.bits() % 7);
            all.push((x, random.between(700.0, 708.0) / x.ln() * sign));
        } else {
            let scale = random.between(-1000.0, 1000.0).exp2();
            let (y, x) = (random.between(-1.0, 1.0), random.between(-1.0, 1.0));
            all.push((y, x));
            all.push((y * scale, x * scale));
            // All directions, and those at which the algorithm changes.
            let tangent = [1.0, 0.414_213_562_373_095, 2.414_213_562_373_095][(random.bits() % 3) as usize];
            all.push((near(tangent, random.bits() % 7) * scale * sign, scale * y.signum()));
            all.push((y * scale, x * scale * random.between(-70.0, 70.0).exp2()));
            // Of nearly equal size; with barely overflowing and with subnormal lengths.
            let ratio = random.between(-2.0, 2.0).exp2();
            all.push((y * scale, y * scale * ratio));
            all.push((y * f64::MAX, x * f64::MAX));
            all.push((y * 1e-307 * ratio, x * 1e-307));
        }
    }
    all
}
