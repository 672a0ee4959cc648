/* y 2^n for 1/4 < y < 4 and an integer -1100 <= n <= 1100 in the low bits of t, rounded once. */
static inline double cr_scaled(double y, double t) {
    const int64_t n = (int64_t)(t - 6755399441055744.0);
    const int64_t half = (n - (n & 1)) / 2;
    const double first = y * cr_double((uint64_t)(1023 + half) << 52);
    return first * cr_double((uint64_t)(1023 + n - half) << 52);
}
