/* Word i of 2/pi from bit skip on. */
static uint64_t cr_two_over_pi(uint64_t skip, int i) {
    static const uint64_t words[20] = {
TWO_OVER_PI_WORDS
    };
    const uint64_t at = skip / 64 + (uint64_t)i, by = skip % 64;
    return words[at] << by | (by == 0 ? 0 : words[at + 1] >> (64 - by));
}

/* 53 bits from bit from on, counted from the top, times what they are worth; where they end. */
static double cr_huge_part(const uint64_t fraction[3], int from, int *end) {
    uint64_t value = 0;
    *end = from + 53 < 192 ? from + 53 : 192;
    if (from >= 192) return 0.0;
    for (int i = from; i < *end; i++) {
        const int bit = 191 - i;
        value = value << 1 | (fraction[bit / 64] >> (bit % 64) & 1);
    }
    return (double)value * cr_double((uint64_t)(1023 - *end) << 52);
}

/* |x| above 2^30, but finite: r + r_lo of |x| = n pi/2 + r + r_lo (Payne and Hanek 1983), and n in the low bits. */
static double cr_huge_reduce(double x, double *r, double *r_lo) {
    uint64_t m, n = 0, product[6] = {0, 0, 0, 0, 0, 0}, fraction[3], carry = 0;
    int64_t e, skip, by;
    int negative, zeros, end;
    double high, low, first, second;
    /* |x| = m 2^e. Bits of 2/pi that are worth a multiple of 4 are skipped; m times the next four words. */
    m = (cr_bits(x) & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
    e = (int64_t)(cr_bits(x) >> 52 & 0x7ff) - 1075;
    skip = e - 2 > 0 ? e - 2 : 0;
    for (int i = 0; i < 4; i++) {
        /* m has 53 bits: two halves of the word give two products that fit, with the carries. */
        const uint64_t word = cr_two_over_pi((uint64_t)skip, 3 - i);
        const uint64_t a = m & UINT64_C(0xffffffff), b = m >> 32;
        const uint64_t u = word & UINT64_C(0xffffffff), v = word >> 32;
        const uint64_t au = a * u, av = a * v, bu = b * u, bv = b * v;
        const uint64_t middle = (au >> 32) + (av & UINT64_C(0xffffffff)) + (bu & UINT64_C(0xffffffff));
        const uint64_t lower = (au & UINT64_C(0xffffffff)) | middle << 32;
        const uint64_t upper = bv + (av >> 32) + (bu >> 32) + (middle >> 32);
        product[i] = lower + carry;
        carry = upper + (product[i] < lower);
    }
    product[4] = carry;
    /* The point stands above 256 - (e - skip) bits; it is moved above three words, n above it. */
    by = 256 - (e - skip) - 192;
    for (int i = 0; i < 4; i++) {
        const int64_t at = i + by / 64, bits = by % 64;
        const uint64_t lower = at < 5 ? product[at] : 0, upper = at + 1 < 5 ? product[at + 1] : 0;
        const uint64_t word = bits == 0 ? lower : lower >> bits | upper << (64 - bits);
        if (i < 3) {
            fraction[i] = word;
        } else {
            n = word;
        }
    }
    /* To the nearest multiple: the fraction lies in -1/2 .. 1/2. */
    negative = (int)(fraction[2] >> 63);
    if (negative) {
        int one = 1;
        n++;
        for (int i = 0; i < 3; i++) {
            fraction[i] = ~fraction[i] + (uint64_t)one;
            one = one && fraction[i] == 0;
        }
    }
    zeros = 0;
    while (zeros < 192 && !(fraction[(191 - zeros) / 64] >> ((191 - zeros) % 64) & 1)) zeros++;
    high = cr_huge_part(fraction, zeros, &end);
    low = cr_huge_part(fraction, end, &end);
    {
        /* Times pi/2, one step a line. */
        const double whole = high * HALF_PI;
        const double lost = fma(high, HALF_PI, -whole);
        const double of_high = high * HALF_PI_2;
        const double of_low = low * HALF_PI;
        const double small = of_high + of_low;
        const double rest = lost + small;
        double taken;
        first = whole + rest;
        taken = first - whole;
        second = rest - taken;
    }
    *r = negative ? -first : first;
    *r_lo = negative ? -second : second;
    return 6755399441055744.0 + (double)(n & 3);
}
