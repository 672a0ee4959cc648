// The loss of ADBench's recurrent network as one writes it by hand.
#include <cmath>
#include <cstdint>
#include <vector>

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static void layer(int64_t b, const double *w, const double *bias, double *hidden, double *cell, const double *x)
{
    for (int64_t i = 0; i < b; i++) {
        const double forget = sigmoid(x[i] * w[i] + bias[i]);
        const double in = sigmoid(hidden[i] * w[b + i] + bias[b + i]);
        const double out = sigmoid(x[i] * w[2 * b + i] + bias[2 * b + i]);
        const double change = std::tanh(hidden[i] * w[3 * b + i] + bias[3 * b + i]);
        cell[i] = cell[i] * forget + in * change;
        hidden[i] = out * std::tanh(cell[i]);
    }
}

// arguments: main[2l][4b], extra[3][b], state[2l][b], text[c][b]; integers: l, b, c
extern "C" double objective(const double *const *arguments, const int64_t *integers)
{
    const double *main = arguments[0], *extra = arguments[1], *text = arguments[3];
    const int64_t l = integers[0], b = integers[1], c = integers[2];
    static std::vector<double> state, x, guess;
    state.assign(arguments[2], arguments[2] + 2 * l * b), x.resize(b), guess.resize(b);
    double total = 0;
    for (int64_t t = 0; t + 1 < c; t++) {
        for (int64_t i = 0; i < b; i++) x[i] = text[t * b + i] * extra[i];
        const double *below = x.data();
        for (int64_t k = 0; k < l; k++) {
            double *hidden = state.data() + 2 * k * b;
            layer(b, main + 8 * k * b, main + (8 * k + 4) * b, hidden, hidden + b, below);
            below = hidden;
        }
        double sum = 0;
        for (int64_t i = 0; i < b; i++) {
            guess[i] = below[i] * extra[b + i] + extra[2 * b + i];
            sum += std::exp(guess[i]);
        }
        const double norm = std::log(sum + 2);
        for (int64_t i = 0; i < b; i++) total += text[(t + 1) * b + i] * (guess[i] - norm);
    }
    return -total / ((c - 1) * b);
}
