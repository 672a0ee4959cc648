// log-sum-exp as one writes it by hand.
#include <cmath>
#include <cstdint>

// arguments: x[n]; integers: n
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *x = arguments[0];
    const int64_t n = integers[0];
    double top = x[0];
    for (int64_t i = 1; i < n; i++)
        if (x[i] > top) top = x[i];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::exp(x[i] - top);
    return top + std::log(sum);
}
