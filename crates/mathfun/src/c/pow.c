/* x to the power y where x is 0, subnormal, infinite, NaN or negative, or the result is perhaps no normal number. */
static double cr_pow_rare(double x, double y) {
    double magnitude, power;
    int is_integer, is_odd;
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return NAN;
    magnitude = fabs(y);
    if (magnitude >= 9007199254740992.0) {
        is_integer = 1;
        is_odd = 0;
    } else {
        const uint64_t n = (uint64_t)magnitude;
        is_integer = (double)n == magnitude;
        is_odd = is_integer && (n & 1) == 1;
    }
    magnitude = fabs(x);
    if (magnitude == 0.0 || magnitude == HUGE_VAL) {
        power = (magnitude == 0.0) == (y > 0.0) ? 0.0 : HUGE_VAL;
    } else if (fabs(y) == HUGE_VAL) {
        power = magnitude == 1.0 ? 1.0 : (magnitude < 1.0) == (y > 0.0) ? 0.0 : HUGE_VAL;
    } else if (x < 0.0 && !is_integer) {
        return NAN;
    } else {
        const int is_normal = magnitude >= 2.2250738585072014e-308;
        double p, t, reduced;
        cr_pow_parts(is_normal ? magnitude : magnitude * 18014398509481984.0, is_normal ? 0.0 : 54.0, y, &p, &t, &reduced);
        power = p > 710.0 ? HUGE_VAL : p < -746.0 ? 0.0 : cr_scaled(reduced, t);
    }
    return cr_bits(x) >> 63 && is_odd ? -power : power;
}
