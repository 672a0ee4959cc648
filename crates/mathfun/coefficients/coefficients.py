"""Where the constants of chainrule-mathfun come from.

    python3 crates/mathfun/coefficients/coefficients.py

prints every polynomial and every split constant of the crate as Rust, with the largest error of each
polynomial relative to the function it stands for. Needs mpmath. Nothing of the build runs it.

A polynomial is fitted so that the largest error of the whole function, relative to its value, is least:
weighted least squares in 60 digits on points that crowd at the ends of the interval as Chebyshev's do,
with weights that grow where the error is large (Lawson, 1961). Coefficients are rounded to doubles one
by one, the lowest first, and the others are fitted again, so that they make up for the rounding.
"""

from mpmath import atan, atanh, cos, erf, erfc, exp, expm1, log, mp, mpf, pi, sin, sqrt, tan, tanh, matrix, lu_solve

mp.dps = 60


POINTS = 160
ROUNDS = 24


def fit(function, weight, points, fixed, n):
    """Coefficients len(fixed)..n of the best polynomial whose lowest coefficients are `fixed`."""
    m = n - len(fixed)
    rows = [[p ** (len(fixed) + j) for j in range(m)] for p in points]
    right = [function[i] - sum(mpf(c) * p ** j for j, c in enumerate(fixed)) for i, p in enumerate(points)]
    share = [mpf(1) / len(points)] * len(points)
    best, least = None, None
    for _ in range(ROUNDS):
        normal, goal = matrix(m, m), matrix(m, 1)
        for i, row in enumerate(rows):
            w = share[i] * weight[i] ** 2
            for a in range(m):
                goal[a] += w * row[a] * right[i]
                for b in range(a, m):
                    normal[a, b] += w * row[a] * row[b]
        for a in range(m):
            for b in range(a):
                normal[a, b] = normal[b, a]
        found = list(lu_solve(normal, goal))
        errors = [abs(weight[i] * (right[i] - sum(row[a] * found[a] for a in range(m)))) for i, row in enumerate(rows)]
        largest = max(errors)
        if least is None or largest < least:
            best, least = found, largest
        total = sum(s * e for s, e in zip(share, errors))
        share = [s * e / total for s, e in zip(share, errors)]
    return best


def show(name, text, function, whole, low, high, n):
    """Prints one polynomial; `whole(x, p)` is the function, p being the polynomial's value at x."""
    low, high = mpf(low), mpf(high)
    middle, half = (low + high) / 2, (high - low) / 2

    def relative(x):
        return (whole(x, 1) - whole(x, 0)) / whole(x, function(x))

    points = [middle + half * cos(pi * (2 * i + 1) / (2 * POINTS)) for i in range(POINTS)]
    values = [function(p) for p in points]
    weight = [relative(p) for p in points]
    coefficients = []
    for _ in range(n):
        coefficients.append(float(fit(values, weight, points, coefficients, n)[0]))
    samples = 1999
    worst = mpf(0)
    for i in range(samples):
        x = low + (high - low) * (i + mpf(1) / 3) / samples
        p = sum(mpf(c) * x ** j for j, c in enumerate(coefficients))
        worst = max(worst, abs(relative(x) * (p - function(x))))
    print(f"// {text}; error 2^{float(log(worst, 2)):.1f}")
    print(f"const {name}: [f64; {n}] = [")
    for c in coefficients:
        print(f"    {c!r},")
    print("];", flush=True)


def parts(name, value, bits):
    """A constant as a sum of doubles; `bits` has how many significant bits each may have."""
    rest = mpf(value)
    for i, b in enumerate(bits):
        exponent = int(mp.floor(log(abs(rest), 2)))
        unit = mpf(2) ** (exponent + 1 - b)
        part = mp.nint(rest / unit) * unit
        rest -= part
        print(f"const {name}_{i + 1}: f64 = {float(part)!r};  // {float(part).hex()}")


def odd(function):
    """g with function(x) = x + x^3 g(x^2), as a function of z = x^2."""
    return lambda z: (function(sqrt(z)) / sqrt(z) - 1) / z


CENTRE = mpf(0.1875)


def far(v):
    """x of v = 1 / (x + 3) - CENTRE."""
    return 1 / (v + CENTRE) - 3


def main():
    wide = mpf(1) + mpf(2) ** -20
    r = log(2) / 2 * wide
    show("EXP", "(exp(r) - 1 - r) / r^2 for |r| <= log(2)/2, error relative to exp(r) - 1",
         lambda x: (expm1(x) - x) / x ** 2, lambda x, p: x + x * x * p, -r, r, 11)
    z = (pi / 4 * wide) ** 2
    show("SIN", "(sin(r) - r) / r^3 by r^2 for |r| <= pi/4", odd(sin),
         lambda x, p: sqrt(x) + sqrt(x) * x * p, mpf(10) ** -15, z, 6)
    show("COS", "(cos(r) - 1 + r^2/2) / r^4 by r^2 for |r| <= pi/4",
         lambda x: (cos(sqrt(x)) - 1 + x / 2) / x ** 2,
         lambda x, p: 1 - x / 2 + x * x * p, mpf(10) ** -15, z, 6)
    s = (3 - 2 * sqrt(mpf(2))) * wide
    show("LOG", "(2 atanh(s) - 2s) / s^3 by s^2 for |s| <= 3 - 2 sqrt(2)",
         lambda x: 2 * odd(atanh)(x),
         lambda x, p: 2 * sqrt(x) + sqrt(x) * x * p, mpf(10) ** -15, s ** 2, 7)
    show("POW_0 and POW", "(2 atanh(s) - 2s - 2/3 s^3) / s^5 by s^2 for |s| <= 3 - 2 sqrt(2)",
         lambda x: (2 * atanh(sqrt(x)) / sqrt(x) - 2 - 2 * x / 3) / x ** 2,
         lambda x, p: 2 * sqrt(x) + sqrt(x) * x * 2 / 3 + sqrt(x) * x * x * p, mpf(10) ** -15, s ** 2, 8)
    t = tan(pi / 8) * wide
    show("ATAN", "(atan(t) - t) / t^3 by t^2 for |t| <= tan(pi/8)", odd(atan),
         lambda x, p: sqrt(x) + sqrt(x) * x * p, mpf(10) ** -15, t ** 2, 11)
    show("TANH", "(tanh(r) - r) / r^3 by r^2 for |r| <= 0.2225", odd(tanh),
         lambda x, p: sqrt(x) + sqrt(x) * x * p, mpf(10) ** -15, mpf(0.2225) ** 2, 7)
    show("NEAR", "erf(x) / x - 1 by x^2 for |x| <= 1", lambda x: erf(sqrt(x)) / sqrt(x) - 1,
         lambda x, p: sqrt(x) + sqrt(x) * p, mpf(10) ** -15, wide, 13)
    show("FAR", f"exp(x^2) erfc(x) by v = 1 / (x + 3) - {CENTRE} for 1 <= x <= 6, error relative to erf(x)",
         lambda v: exp(far(v) ** 2) * erfc(far(v)), lambda v, p: 1 - exp(-far(v) ** 2) * p,
         mpf(1) / 9 / wide - CENTRE, mpf(1) / 4 * wide - CENTRE, 13)
    show("ATANH", "(atanh(s) - s) / s^3 by s^2 for |s| <= 0.2005", odd(atanh),
         lambda x, p: sqrt(x) + sqrt(x) * x * p, mpf(10) ** -15, mpf(0.2005) ** 2, 8)
    show("RECIPROCAL", "1 / cbrt(m) for 1 <= m <= 2", lambda x: x ** (-mpf(1) / 3), lambda x, p: p, 1, 2, 6)
    parts("exp::LN_2", log(2), [53, 53])
    parts("HALF_LN_2", log(2) / 2, [53, 53])
    parts("log::LN_2", log(2), [42, 53])  # times an integer of 11 bits is exact
    parts("HALF_PI", pi / 2, [53, 53, 53])
    parts("TWO_THIRDS", mpf(2) / 3, [53, 53])
    parts("PI", pi, [53, 53])
    parts("PI_3_4", 3 * pi / 4, [53, 53])
    print(f"const LOG2_E: f64 = {float(1 / log(2))!r};")
    print(f"const TWO_OVER_PI: f64 = {float(2 / pi)!r};")
    words = 20
    mp.dps = 500
    bits = int(mp.floor(2 / mp.pi * mpf(2) ** (64 * words)))
    print(f"const TWO_OVER_PI_BITS: [u64; {words}] = [")
    for i in reversed(range(words)):
        print(f"    0x{(bits >> (64 * i)) & (2 ** 64 - 1):016x},")
    print("];")


main()
