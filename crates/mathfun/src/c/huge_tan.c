/* Tangent where |x| is above 2^30, or x is infinite or NaN. */
static double cr_huge_tan(double x) {
    double r, r_lo, t, y;
    if (!(fabs(x) < HUGE_VAL)) return NAN;
    t = cr_huge_reduce(x, &r, &r_lo);
    y = cr_tangent(t, r, r_lo);
    return x < 0.0 ? -y : y;
}
