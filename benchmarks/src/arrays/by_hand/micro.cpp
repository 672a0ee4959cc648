// The dF~ paper's small problems, and determinants by minors, as one writes them by hand.
#include <cmath>
#include <cstdint>
#include <vector>

static double dot(const double *u, const double *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += u[i] * v[i];
    return sum;
}

static double maximum(const double *v, int64_t n)
{
    double most = v[0];
    for (int64_t i = 1; i < n; i++)
        if (v[i] > most) most = v[i];
    return most;
}

// The first element; all are written.
static double add(const double *u, const double *v, int64_t n)
{
    static std::vector<double> y;
    y.resize(n);
    for (int64_t i = 0; i < n; i++) y[i] = u[i] + v[i];
    return y[0];
}

static double scale(const double *v, double s, int64_t n)
{
    static std::vector<double> y;
    y.resize(n);
    for (int64_t i = 0; i < n; i++) y[i] = s * v[i];
    return y[0];
}

// w[n][k], h[k][m], a[n][m]
static double misfit(const double *w, const double *h, const double *a, int64_t n, int64_t k, int64_t m)
{
    static std::vector<double> row;
    row.resize(m);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) row[j] = 0;
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < m; j++) row[j] += w[i * k + l] * h[l * m + j];
        for (int64_t j = 0; j < m; j++) sum += a[i * m + j] / row[j] + std::log(row[j]);
    }
    return sum;
}

// The first of two numbers; both are computed.
static double project(const double *p)
{
    const double f = p[6], *r = p, *c = p + 3, *x0 = p + 7, *kappa = p + 9;
    const double x[3] = {p[11] - c[0], p[12] - c[1], p[13] - c[2]};
    const double angle = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double v[3] = {r[0] / angle, r[1] / angle, r[2] / angle};
    const double across[3] = {v[1] * x[2] - v[2] * x[1], v[2] * x[0] - v[0] * x[2], v[0] * x[1] - v[1] * x[0]};
    const double cosine = std::cos(angle), sine = std::sin(angle);
    const double along = (v[0] * x[0] + v[1] * x[1] + v[2] * x[2]) * (1 - cosine);
    double turned[3];
    for (int i = 0; i < 3; i++) turned[i] = x[i] * cosine + across[i] * sine + v[i] * along;
    const double e[2] = {turned[0] / turned[2], turned[1] / turned[2]};
    const double square = e[0] * e[0] + e[1] * e[1];
    const double distortion = 1 + kappa[0] * square + kappa[1] * square * square;
    static volatile double y[2];
    for (int i = 0; i < 2; i++) y[i] = e[i] * distortion * f + x0[i];
    return y[0];
}

// Each minor once: of the last rows on all sets of columns, then of one row more.
static double det(const double *a, int64_t n)
{
    static std::vector<double> minors, more;
    const int64_t sets = int64_t(1) << n;
    minors.assign(sets, 0.0);
    more.resize(sets);
    minors[0] = 1;
    for (int64_t row = n - 1; row >= 0; row--) {
        for (int64_t set = 0; set < sets; set++) {
            double total = 0, sign = 1;
            for (int64_t j = 0; j < n; j++)
                if (set >> j & 1) {
                    total += sign * a[row * n + j] * minors[set - (int64_t(1) << j)];
                    sign = -sign;
                }
            more[set] = total;
        }
        minors.swap(more);
    }
    return minors[sets - 1];
}

// integers: which, n, k, m; arguments as above
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const int64_t n = integers[1];
    switch (integers[0]) {
    case 0: return dot(arguments[0], arguments[1], n);
    case 1: return maximum(arguments[0], n);
    case 2: return add(arguments[0], arguments[1], n);
    case 3: return scale(arguments[0], arguments[1][0], n);
    case 4: return misfit(arguments[0], arguments[1], arguments[2], n, integers[2], integers[3]);
    case 5: return project(arguments[0]);
    default: return det(arguments[0], n);
    }
}
