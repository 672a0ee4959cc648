// The square of a product of two matrices: rows of the second one are added up, in the order of memory.
#include <cstdint>
#include <vector>

// arguments: a[n][n], b[n][n]; integers: n
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *a = arguments[0], *b = arguments[1];
    const int64_t n = integers[0];
    std::vector<double> row(n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = 0;
        for (int64_t l = 0; l < n; l++)
            for (int64_t j = 0; j < n; j++) row[j] += a[i * n + l] * b[l * n + j];
        for (int64_t j = 0; j < n; j++) sum += row[j] * row[j];
    }
    return sum;
}
