/* log(1 + x) where x <= -1, of infinity, NaN. */
static double cr_log1p_rare(double x) {
    if (x == -1.0) return -HUGE_VAL;
    return x < -1.0 ? NAN : x + x;
}
