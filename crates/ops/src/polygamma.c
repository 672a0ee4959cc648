/* Digamma right of 0, at x + x_rest. Between 1 and 3: the distance from its zero, a sum of two numbers, times a
   polynomial, over x. */
static double cr_digamma(double x, double x_rest) {
    static const double polynomial[23] = {
        -8.421727789790498e-12, 2.5277193345902156e-11, -2.7454834591163855e-11, 8.248895838712431e-11,
        -3.6902998974805616e-10, 1.109280756041948e-09, -3.164170368309569e-09, 9.528036002813641e-09,
        -2.888263327609327e-08, 8.72355285667876e-08, -2.640230601689581e-07, 8.019905185881828e-07,
        -2.447270352088076e-06, 7.51545354249834e-06, -2.3288647418421456e-05, 7.310840459364593e-05,
        -0.0002339242012370637, 0.0007704444910922419, -0.0026564137225425937, 0.009897851182279094,
        -0.04273912064774459, 0.2638296292381025, 1.5706150772082106
    };
    static const double series[12] = {236364091.0 / 65520.0, -77683.0 / 276.0, 174611.0 / 6600.0, -43867.0 / 14364.0,
        3617.0 / 8160.0, -1.0 / 12.0, 691.0 / 32760.0, -1.0 / 132.0, 1.0 / 240.0, -1.0 / 252.0, 1.0 / 120.0, -1.0 / 12.0};
    double z = x, shift = 0.0, sum = 0.0, w;
    int k;
    if (z < 1.0) {
        shift = -1.0 / z;
        z += 1.0;
    }
    while (z > 3.0 && z < 10.0) {
        z -= 1.0;
        shift += 1.0 / z;
    }
    if (z <= 3.0) {
        for (k = 0; k < 23; k++) sum = sum * (z - 2.0) + polynomial[k];
        return ((z - 1.4616321449683622) - (9.549995429965697e-17 - x_rest)) * sum / z + shift;
    }
    w = 1.0 / (z * z);
    for (k = 0; k < 12; k++) sum = sum * w + series[k];
    return log(z) - 0.5 / z + sum * w;
}
/* c / z^k, where z^k may be too large or too small for a double. */
static double cr_over_power(double c, double z, double k) {
    const double power = pow(z, k), half = floor(k / 2.0);
    if (power > 1e-30 && power < 1e30) return c / power;
    return c / pow(z, half) / pow(z, k - half);
}
/* Polygamma of order 1 to 60 right of 0, at x + x_rest: terms of the recurrence up to where the asymptotic series
   converges. */
static double cr_polygamma_right(double n, double x, double x_rest) {
    static const double bernoulli[12] = {1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0,
        -691.0 / 2730.0, 7.0 / 6.0, -3617.0 / 510.0, 43867.0 / 798.0, -174611.0 / 330.0,
        854513.0 / 138.0, -236364091.0 / 2730.0};
    const double sign = fmod(n, 2.0) == 0.0 ? -1.0 : 1.0, factorial = tgamma(n + 1.0);
    double sum = 0.0, rest = 0.0, steps = 0.0, z = x, z_rest = x_rest, term, next, added, main_term, series;
    int k;
    while (z < 16.0 + n) {
        term = cr_over_power(factorial, z, n + 1.0);
        if (term > 0.0 && term / 2.0 == term) return sign * term;
        next = sum + term;
        rest += sum > term ? (sum - next) + term : (term - next) + sum;
        rest -= term * ((n + 1.0) * z_rest / z);
        sum = next;
        steps += 1.0;
        z = x + steps;
        added = z - x;
        z_rest = ((x - (z - added)) + (steps - added)) + x_rest;
    }
    main_term = cr_over_power(factorial / n, z, n);
    series = main_term * n / (2.0 * z) - main_term * (n * z_rest / z);
    term = main_term * n * (n + 1.0) / 2.0 / z / z;
    for (k = 0; k < 12; k++) {
        const double two_k = 2.0 * (k + 1);
        series += bernoulli[k] * term;
        term = term * ((two_k + n) * (two_k + n + 1.0) / ((two_k + 1.0) * (two_k + 2.0))) / z / z;
    }
    return sign * (sum + (main_term + (series + rest)));
}
/* The derivative of this order of the cotangent, without its sign, as a polynomial in the cotangent c. */
static double cr_cotangent_derivative(double n, double c) {
    double polynomial[64] = {0.0}, value = 0.0, order;
    int i;
    polynomial[1] = 1.0;
    for (order = 0.0; order < n; order += 1.0) {
        double next[64] = {0.0};
        for (i = 1; i < 62; i++) {
            next[i - 1] += i * polynomial[i];
            next[i + 1] += i * polynomial[i];
        }
        for (i = 0; i < 64; i++) polynomial[i] = next[i];
    }
    for (i = 63; i >= 0; i--) value = value * c + polynomial[i];
    return value;
}
/* Left of 0 by the reflection formula, for there the recurrence cancels. */
static double cr_polygamma(double order, double x) {
    const double pi = 3.141592653589793, n = order + 1.0;
    double distance, size, sign, cotangent, mirrored, rest, far, right, all;
    if (!(order >= 0.0 && order <= 60.0) || order != floor(order) || x != x || (x <= 0.0 && x == floor(x))) return NAN;
    if (x > 0.0) return order == 0.0 ? cr_digamma(x, 0.0) : cr_polygamma_right(order, x, 0.0);
    distance = x - rint(x);
    size = fabs(distance);
    sign = fmod(order, 2.0) == 0.0 ? 1.0 : -1.0;
    cotangent = size < 0.25 ? 1.0 / tan(pi * size) : tan(pi * (0.5 - size));
    /* 1 - x, and its rounding error. */
    mirrored = 1.0 - x;
    rest = (1.0 - mirrored) - x;
    if (order == 0.0) {
        right = cr_digamma(mirrored, rest);
        all = pi * cotangent;
    } else {
        right = cr_polygamma_right(order, mirrored, rest);
        if (size < 0.35 || sign < 0.0) {
            /* Of two series, both of one sign, the left one counts, or they are added. */
            far = 1.0 - size;
            all = cr_polygamma_right(order, far, (1.0 - far) - size) - sign * cr_polygamma_right(order, size, 0.0);
        } else {
            /* The error of pi as a double, once a factor. */
            all = pow(pi, n);
            all = (all + all * n * 3.898171832519376e-17) * cr_cotangent_derivative(order, cotangent);
        }
    }
    if (distance < 0.0 && sign > 0.0) all = -all;
    return sign * (right - all);
}
