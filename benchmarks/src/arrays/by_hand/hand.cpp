// The residuals of a hand as one writes them by hand.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

typedef double transform[12];

static void after(const double *a, const double *b, double *out)
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            out[4 * r + c] = a[4 * r] * b[c] + a[4 * r + 1] * b[4 + c] + a[4 * r + 2] * b[8 + c]
                + (c == 3 ? a[4 * r + 3] : 0);
}

static void joint(double bent, double spread, double *out)
{
    const double c = std::cos(bent), s = std::sin(bent), cz = std::cos(spread), sz = std::sin(spread);
    const transform t = {cz, -sz * c, sz * s, 0, sz, cz * c, -cz * s, 0, 0, s, c, 0};
    std::memcpy(out, t, sizeof t);
}

static void rotation(const double *r, double *out)
{
    const double angle = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double eye[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    std::memcpy(out, eye, sizeof eye);
    if (angle < 0.0001) return;
    const double x = r[0] / angle, y = r[1] / angle, z = r[2] / angle, s = std::sin(angle), c = std::cos(angle);
    const double m[9] = {
        x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
        x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s,
        x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c,
    };
    std::memcpy(out, m, sizeof m);
}

// arguments: theta[26], relative[22][3][4], rest[22][3][4], vertices[v][3], weights[v][4], seen[n][3], u[n][2];
// integers: v, n, t (0 in the simple problem), with[v][4], at[n], triangles[t][3]
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *theta = arguments[0], *relative = arguments[1], *rest = arguments[2], *vertices = arguments[3];
    const double *weights = arguments[4], *seen = arguments[5], *u = arguments[6];
    const int64_t v = integers[0], n = integers[1], t = integers[2];
    const int64_t *with = integers + 3, *at = with + 4 * v, *triangles = at + n;
    static std::vector<double> positions, residuals;
    positions.resize(3 * v), residuals.resize(3 * n);

    transform here[22], bones[22];
    std::memcpy(here[0], relative, sizeof here[0]);
    for (int b = 1; b < 22; b++) {
        const int finger = (b - 1) / 4, i = (b - 1) % 4;
        const double *before = here[b == 21 || i == 0 ? 0 : b - 1];
        if (b == 21 || i == 0) {
            after(before, relative + 12 * b, here[b]);
        } else {
            const double *angles = theta + 6 + 4 * finger;
            transform placed, turn;
            after(before, relative + 12 * b, placed);
            joint(angles[i == 1 ? 0 : i], i == 1 ? angles[1] : 0, turn);
            after(placed, turn, here[b]);
        }
    }
    for (int b = 0; b < 22; b++) after(here[b], rest + 12 * b, bones[b]);

    double turn[9];
    rotation(theta, turn);
    for (int64_t i = 0; i < v; i++) {
        const double *p = vertices + 3 * i;
        double skinned[3] = {0, 0, 0};
        for (int j = 0; j < 4; j++) {
            const double *m = bones[with[4 * i + j]], w = weights[4 * i + j];
            for (int r = 0; r < 3; r++)
                skinned[r] += w * (m[4 * r] * p[0] + m[4 * r + 1] * p[1] + m[4 * r + 2] * p[2] + m[4 * r + 3]);
        }
        for (int r = 0; r < 3; r++)
            positions[3 * i + r] = turn[3 * r] * skinned[0] + turn[3 * r + 1] * skinned[1]
                + turn[3 * r + 2] * skinned[2] + theta[3 + r];
    }
    for (int64_t i = 0; i < n; i++) {
        if (t == 0) {
            for (int r = 0; r < 3; r++) residuals[3 * i + r] = seen[3 * i + r] - positions[3 * at[i] + r];
            continue;
        }
        const int64_t *corner = triangles + 3 * at[i];
        const double a = u[2 * i], b = u[2 * i + 1];
        for (int r = 0; r < 3; r++)
            residuals[3 * i + r] = seen[3 * i + r]
                - (a * positions[3 * corner[0] + r] + b * positions[3 * corner[1] + r]
                    + (1 - a - b) * positions[3 * corner[2] + r]);
    }
    return residuals[0];
}
