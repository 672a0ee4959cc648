/* Sine and cosine where |x| is above 2^30, or x is infinite or NaN. */
static void cr_huge_both(double x, double *s, double *c) {
    double r, r_lo, t;
    if (!(fabs(x) < HUGE_VAL)) {
        *s = NAN;
        *c = NAN;
        return;
    }
    t = cr_huge_reduce(x, &r, &r_lo);
    cr_rotate(t, r, r_lo, s, c);
    if (x < 0.0) *s = -*s;
}
