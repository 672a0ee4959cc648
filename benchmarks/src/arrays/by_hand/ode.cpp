// y_0' = x_0, y_i' = x_i y_(i-1), to 2 in s steps of Runge and Kutta, as one writes it by hand.
#include <cstdint>
#include <vector>

static void slope(int64_t n, const double *x, const double *y, double *out)
{
    out[0] = x[0];
    for (int64_t i = 1; i < n; i++) out[i] = x[i] * y[i - 1];
}

// arguments: x[n]; integers: n, s
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *x = arguments[0];
    const int64_t n = integers[0], s = integers[1];
    static std::vector<double> y, at, k1, k2, k3, k4;
    y.assign(n, 0), at.resize(n), k1.resize(n), k2.resize(n), k3.resize(n), k4.resize(n);
    const double h = 2 / (double)s;
    for (int64_t step = 0; step < s; step++) {
        slope(n, x, y.data(), k1.data());
        for (int64_t i = 0; i < n; i++) at[i] = y[i] + h / 2 * k1[i];
        slope(n, x, at.data(), k2.data());
        for (int64_t i = 0; i < n; i++) at[i] = y[i] + h / 2 * k2[i];
        slope(n, x, at.data(), k3.data());
        for (int64_t i = 0; i < n; i++) at[i] = y[i] + h * k3[i];
        slope(n, x, at.data(), k4.data());
        for (int64_t i = 0; i < n; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    return y[n - 1];
}
