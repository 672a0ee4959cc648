// How far points are from the nearest centroid, as one writes it by hand.
#include <cstdint>

// arguments: points[n][d], centroids[k][d]; integers: n, k, d
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *points = arguments[0], *centroids = arguments[1];
    const int64_t n = integers[0], k = integers[1], d = integers[2];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double nearest = 0;
        for (int64_t j = 0; j < k; j++) {
            double square = 0;
            for (int64_t c = 0; c < d; c++) {
                const double by = points[i * d + c] - centroids[j * d + c];
                square += by * by;
            }
            if (j == 0 || square < nearest) nearest = square;
        }
        sum += nearest;
    }
    return sum;
}
