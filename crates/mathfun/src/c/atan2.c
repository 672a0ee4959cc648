/* The angle of the point (x, y) where both are 0 or one is infinite, NaN, very large or very small. */
static double cr_atan2_rare(double y, double x) {
    const double far = 18446744073709551616.0, most = 2.907354897182427e135, up = 5.260135901548374e210;
    double height = fabs(y), width = fabs(x), result;
    if (y != y || x != x) return NAN;
    if (height == HUGE_VAL || width == HUGE_VAL || (height == 0.0 && width == 0.0)) {
        const int high = height == HUGE_VAL, wide = width == HUGE_VAL;
        height = high ? 1.0 : 0.0;
        width = high && !wide ? 0.0 : 1.0;
    } else {
        const double ratio = height / width;
        const double larger = height < width ? width : height;
        if (ratio > far) {
            height = 1.0;
            width = 0.0;
        } else if (ratio < 1.0 / far) {
            if (x > 0.0) return y / x;
            height = 0.0;
            width = 1.0;
        } else if (larger > most) {
            height = height / up;
            width = width / up;
        } else if (larger < 1.0 / most) {
            height = height * up;
            width = width * up;
        }
    }
    result = cr_angle(height, width, x);
    return cr_bits(y) >> 63 ? -result : result;
}
