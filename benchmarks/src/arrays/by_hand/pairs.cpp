// Energies of pairs of points, as one writes them by hand.
#include <cmath>
#include <cstdint>

// arguments: x[n][3], then mass[n] or radius[1]; integers: n, and which energy
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *x = arguments[0];
    const int64_t n = integers[0];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double square = 0;
            for (int64_t c = 0; c < 3; c++) {
                const double by = x[i * 3 + c] - x[j * 3 + c];
                square += by * by;
            }
            if (integers[1] == 0) {
                const double *mass = arguments[1];
                if (i != j) sum -= 0.5 * mass[i] * mass[j] / std::sqrt(square);
            } else {
                const double radius = arguments[1][0];
                if (i < j && square < radius * radius) {
                    const double inverse = 1 / (square * square * square);
                    sum += inverse * inverse - inverse;
                }
            }
        }
    }
    return sum;
}
