/* exp(x) where 2^n is perhaps no double. */
static double cr_exp_rare(double x) {
    double y, t;
    if (x != x) return x;
    if (x > 710.0) return HUGE_VAL;
    cr_exp_parts(x, &y, &t);
    return cr_scaled(y, t);
}
