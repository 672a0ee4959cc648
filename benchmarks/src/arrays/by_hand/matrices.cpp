// The objectives of matrices.ft as one writes them by hand: in place, on one triangle, dot products of rows.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

static double factored(const double *a, const double *x, int64_t n, bool density) {
    std::vector<double> l(n * n), z(n);
    double sum = 0.0, all = 0.0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double s = 0.5 * (a[i * n + j] + a[j * n + i]);
            for (int64_t k = 0; k < j; k++) s -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
            all += l[i * n + j];
        }
        if (!density) continue;
        double s = x[i];
        for (int64_t k = 0; k < i; k++) s -= l[i * n + k] * z[k];
        z[i] = s / l[i * n + i];
        sum -= 0.5 * z[i] * z[i] + std::log(l[i * n + i]);
    }
    return density ? sum : all;
}

// LU with partial pivoting in place; the rows in w, their order in rows.
static void factor(std::vector<double> &w, std::vector<int64_t> &rows, int64_t n) {
    for (int64_t i = 0; i < n; i++) rows[i] = i;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (std::fabs(w[i * n + k]) > std::fabs(w[best * n + k])) best = i;
        if (best != k) {
            for (int64_t j = 0; j < n; j++) std::swap(w[k * n + j], w[best * n + j]);
            std::swap(rows[k], rows[best]);
        }
        for (int64_t i = k + 1; i < n; i++) {
            double f = w[i * n + k] / w[k * n + k];
            w[i * n + k] = f;
            for (int64_t j = k + 1; j < n; j++) w[i * n + j] -= f * w[k * n + j];
        }
    }
}

static double determinant(const double *a, int64_t n) {
    std::vector<double> w(a, a + n * n);
    std::vector<int64_t> rows(n);
    factor(w, rows, n);
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += std::log(std::fabs(w[k * n + k]));
    return sum;
}

static double solved(const double *a, const double *x, int64_t n) {
    std::vector<double> w(a, a + n * n), y(n);
    std::vector<int64_t> rows(n);
    factor(w, rows, n);
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[rows[i]];
        for (int64_t j = 0; j < i; j++) y[i] -= w[i * n + j] * y[j];
    }
    double sum = 0.0;
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++) y[i] -= w[i * n + j] * y[j];
        y[i] /= w[i * n + i];
        sum += y[i] * y[i];
    }
    return sum;
}

extern "C" double objective(const double *const *arguments, const int64_t *integers) {
    switch (integers[1]) {
    case 0: return factored(arguments[0], arguments[1], integers[0], true);
    case 3: return factored(arguments[0], arguments[1], integers[0], false);
    case 1: return determinant(arguments[0], integers[0]);
    default: return solved(arguments[0], arguments[1], integers[0]);
    }
}
