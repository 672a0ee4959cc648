static double cr_huge_sin(double x) {
    double s, c;
    cr_huge_both(x, &s, &c);
    return s;
}
