//! Real spherical harmonics by their recurrences, as in section 5.2 of the D* paper.

use chainrule::Expr;

/// Returns the normalisation of the harmonic (`l`, `m`), `m >= 0`.
fn normalisation(l: usize, m: usize) -> f64 {
    let pi = std::f64::consts::PI;
    if m == 0 {
        return ((2 * l + 1) as f64 / (4.0 * pi)).sqrt();
    }
    // (l - m)! / (l + m)!
    let ratio: f64 = ((l - m + 1)..=(l + m)).map(|k| k as f64).product();
    ((2 * l + 1) as f64 / (2.0 * pi) / ratio).sqrt()
}

/// Returns all harmonics up to `order` at the unit vector (`x`, `y`, `z`): (order + 1)^2 expressions, by ascending l,
/// then m from -l to l. P is the Legendre part, S and C the parts of x and y.
#[must_use]
pub fn spherical_harmonics(order: usize, x: &Expr, y: &Expr, z: &Expr) -> Vec<Expr> {
    let number = |c: f64| z.constant_like(c);
    let mut p: Vec<Vec<Expr>> = Vec::new();
    for l in 0..=order {
        let mut row: Vec<Expr> = Vec::new();
        for m in 0..=l {
            row.push(if l == 0 {
                number(1.0)
            } else if l == m {
                (1.0 - 2.0 * m as f64) * &p[m - 1][m - 1]
            } else if l == m + 1 {
                (2.0 * m as f64 + 1.0) * z * &p[m][m]
            } else {
                let span = (l - m) as f64;
                (2 * l - 1) as f64 / span * z * &p[l - 1][m] - (l + m - 1) as f64 / span * &p[l - 2][m]
            });
        }
        p.push(row);
    }
    let (mut s, mut c) = (vec![number(0.0)], vec![number(1.0)]);
    for m in 1..=order {
        s.push(x * &c[m - 1] - y * &s[m - 1]);
        c.push(x * &s[m - 1] + y * &c[m - 1]);
    }
    let mut harmonics = Vec::new();
    for (l, row) in p.iter().enumerate() {
        for m in (0..=l).rev().map(|m| (m, true)).filter(|(m, _)| *m > 0).chain((0..=l).map(|m| (m, false))) {
            let (m, negative) = m;
            harmonics.push(normalisation(l, m) * &row[m] * if negative { &s[m] } else { &c[m] });
        }
    }
    harmonics
}
