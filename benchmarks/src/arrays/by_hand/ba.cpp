// The residuals of bundle adjustment as one writes them by hand.
#include <cmath>
#include <cstdint>
#include <vector>

static void project(const double *camera, const double *x, double *out)
{
    double from[3], at[3];
    for (int k = 0; k < 3; k++) from[k] = x[k] - camera[3 + k];
    const double square = camera[0] * camera[0] + camera[1] * camera[1] + camera[2] * camera[2];
    const double *r = camera;
    if (square != 0) {
        const double angle = std::sqrt(square), c = std::cos(angle), s = std::sin(angle);
        const double w[3] = {r[0] / angle, r[1] / angle, r[2] / angle};
        const double dot = (w[0] * from[0] + w[1] * from[1] + w[2] * from[2]) * (1 - c);
        at[0] = from[0] * c + (w[1] * from[2] - w[2] * from[1]) * s + w[0] * dot;
        at[1] = from[1] * c + (w[2] * from[0] - w[0] * from[2]) * s + w[1] * dot;
        at[2] = from[2] * c + (w[0] * from[1] - w[1] * from[0]) * s + w[2] * dot;
    } else {
        at[0] = from[0] + r[1] * from[2] - r[2] * from[1];
        at[1] = from[1] + r[2] * from[0] - r[0] * from[2];
        at[2] = from[2] + r[0] * from[1] - r[1] * from[0];
    }
    const double u = at[0] / at[2], v = at[1] / at[2], rr = u * u + v * v;
    const double distortion = 1 + camera[9] * rr + camera[10] * rr * rr;
    out[0] = u * distortion * camera[6] + camera[7];
    out[1] = v * distortion * camera[6] + camera[8];
}

// arguments: cameras[n][11], points[m][3], weights[p], seen[p][2]; integers: n, m, p, then camera and point of each
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *cameras = arguments[0], *points = arguments[1], *weights = arguments[2], *seen = arguments[3];
    const int64_t p = integers[2], *camera = integers + 3, *point = integers + 3 + p;
    static std::vector<double> residuals, of_weights;
    residuals.resize(2 * p), of_weights.resize(p);
    for (int64_t i = 0; i < p; i++) {
        double at[2];
        project(cameras + 11 * camera[i], points + 3 * point[i], at);
        residuals[2 * i] = weights[i] * (at[0] - seen[2 * i]);
        residuals[2 * i + 1] = weights[i] * (at[1] - seen[2 * i + 1]);
    }
    for (int64_t i = 0; i < p; i++) of_weights[i] = 1 - weights[i] * weights[i];
    return residuals[0];
}
