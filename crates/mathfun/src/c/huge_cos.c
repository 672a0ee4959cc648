static double cr_huge_cos(double x) {
    double s, c;
    cr_huge_both(x, &s, &c);
    return c;
}
