// The objective of Gaussian mixture models as one writes it by hand: plain loops over plain arrays.
#include <cmath>
#include <cstdint>
#include <vector>

static double log_sum_exp(const double *v, int64_t n)
{
    double top = v[0];
    for (int64_t i = 1; i < n; i++)
        if (v[i] > top) top = v[i];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::exp(v[i] - top);
    return top + std::log(sum);
}

// arguments: alphas[k], means[k][d], icf[k][d(d+1)/2], x[n][d], gamma; integers: k, d, n, m
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *alphas = arguments[0], *means = arguments[1], *icf = arguments[2], *x = arguments[3];
    const double gamma = arguments[4][0];
    const int64_t k = integers[0], d = integers[1], n = integers[2], m = integers[3], e = d * (d + 1) / 2;
    static std::vector<double> diagonal, sums, terms, centred;
    diagonal.resize(k * d), sums.resize(k), terms.resize(k), centred.resize(d);
    for (int64_t c = 0; c < k; c++) {
        sums[c] = 0;
        for (int64_t j = 0; j < d; j++) {
            diagonal[c * d + j] = std::exp(icf[c * e + j]);
            sums[c] += icf[c * e + j];
        }
    }
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < k; c++) {
            for (int64_t j = 0; j < d; j++) centred[j] = x[i * d + j] - means[c * d + j];
            const double *below = icf + c * e + d;
            double square = 0;
            static std::vector<double> y;
            y.resize(d);
            for (int64_t j = 0; j < d; j++) y[j] = diagonal[c * d + j] * centred[j];
            for (int64_t j = 0; j < d; j++)
                for (int64_t r = j + 1; r < d; r++) y[r] += *below++ * centred[j];
            for (int64_t j = 0; j < d; j++) square += y[j] * y[j];
            terms[c] = alphas[c] + sums[c] - 0.5 * square;
        }
        total += log_sum_exp(terms.data(), k);
    }
    double penalty = 0;
    for (int64_t c = 0; c < k; c++) {
        double square = 0;
        for (int64_t j = 0; j < d; j++) square += diagonal[c * d + j] * diagonal[c * d + j];
        for (int64_t j = d; j < e; j++) square += icf[c * e + j] * icf[c * e + j];
        penalty += 0.5 * gamma * gamma * square - m * sums[c];
    }
    const double degrees = d + m + 1;
    double gammas = 0.25 * d * (d - 1) * std::log(M_PI);
    for (int64_t j = 0; j < d; j++) gammas += std::lgamma(0.5 * degrees - 0.5 * j);
    const double constant = degrees * d * (std::log(gamma) - 0.5 * std::log(2.0)) - gammas;
    return total - n * (0.5 * d * std::log(2 * M_PI) + log_sum_exp(alphas, k)) + penalty - k * constant;
}
