// A layer of a network, attention, and a convolution: what is read goes along rows, in the order of memory.
#include <cmath>
#include <cstdint>
#include <vector>

// w[h][k], b[h], x[n][k]
static double layer(const double *w, const double *b, const double *x, int64_t n, int64_t h, int64_t k)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t o = 0; o < h; o++) {
            double s = b[o];
            for (int64_t j = 0; j < k; j++) s += w[o * k + j] * x[i * k + j];
            sum += std::tanh(s);
        }
    return sum;
}

// q[n][d], k[n][d], v[n][d]
static double attention(const double *q, const double *k, const double *v, int64_t n, int64_t d)
{
    std::vector<double> out(d);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t l = 0; l < d; l++) out[l] = 0;
        double z = 0;
        for (int64_t j = 0; j < n; j++) {
            double s = 0;
            for (int64_t l = 0; l < d; l++) s += q[i * d + l] * k[j * d + l];
            s = std::exp(0.1 * s);
            z += s;
            for (int64_t l = 0; l < d; l++) out[l] += s * v[j * d + l];
        }
        for (int64_t l = 0; l < d; l++) sum += (out[l] / z) * (out[l] / z);
    }
    return sum;
}

// x[n + 4][m + 4], w[5][5], y[n][m]
static double convolution(const double *x, const double *w, const double *y, int64_t n, int64_t m)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double s = 0;
            for (int64_t a = 0; a < 5; a++)
                for (int64_t b = 0; b < 5; b++) s += w[a * 5 + b] * x[(i + a) * (m + 4) + j + b];
            double r = s - y[i * m + j];
            sum += r * r;
        }
    return sum;
}

// arguments: three arrays; integers: which (0, the layer; 1, attention; 2, a convolution), n, d or k or m, h
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *a = arguments[0], *b = arguments[1], *c = arguments[2];
    switch (integers[0]) {
    case 0: return layer(a, b, c, integers[1], integers[3], integers[2]);
    case 1: return attention(a, b, c, integers[1], integers[2]);
    default: return convolution(a, b, c, integers[1], integers[2]);
    }
}
