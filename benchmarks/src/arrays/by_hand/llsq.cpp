// The sign of t by a polynomial of t, as one writes it by hand.
#include <cstdint>

// arguments: x[m]; integers: m, n
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *x = arguments[0];
    const int64_t m = integers[0], n = integers[1];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double t = -1 + 2 * (double)i / (double)(n - 1);
        double left = t > 0 ? 1 : t < 0 ? -1 : 0, power = 1;
        for (int64_t j = 0; j < m; j++) {
            left -= x[j] * power;
            power *= t;
        }
        sum += left * left;
    }
    return 0.5 * sum;
}
