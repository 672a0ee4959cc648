/* log(x) of 0, subnormal and negative numbers, infinity, NaN. */
static double cr_log_rare(double x) {
    if (x == 0.0) return -HUGE_VAL;
    if (x < 0.0) return NAN;
    if (x >= 2.2250738585072014e-308 || x != x) return x + x;
    return cr_log_below(x * 18014398509481984.0, 54.0);
}
