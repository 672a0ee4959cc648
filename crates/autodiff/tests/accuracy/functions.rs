//! All functions of the library that have a derivative.

/// Kind of an argument.
#[derive(Clone, Copy)]
pub enum Part {
    Matrix(usize, usize),
    Positive(usize),
    Triangle(usize),
    Vector(usize),
    Number,
    /// Sum of the columns of the matrix before.
    Combination,
}

/// Condition of a function.
#[derive(Clone, Copy, PartialEq)]
pub enum Condition {
    /// The function has a value at all arguments, of which rounding of the arguments may leave no correct digit.
    Everywhere,
    /// If rounding of the arguments leaves no correct digit, the function may have no value.
    Poles,
    /// As `Poles`, with arguments perturbed by amounts relative to the largest of their column: Householder reflections
    /// mix the rows.
    Columns,
}

/// Function: `text` of the variables in `pattern`, of the type `at`, with the result `value`.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub pattern: &'static str,
    pub at: &'static str,
    pub value: &'static str,
    pub text: &'static str,
    pub parts: &'static [Part],
    pub condition: Condition,
}

use Part::{Combination, Matrix, Number, Positive, Triangle, Vector};

const fn row(
    name: &'static str,
    (pattern, at, parts): (&'static str, &'static str, &'static [Part]),
    value: &'static str,
    text: &'static str,
) -> Row {
    Row { name, pattern, at, value, text, parts, condition: Condition::Everywhere }
}

const fn poles(row: Row) -> Row {
    Row { condition: Condition::Poles, ..row }
}

const fn columns(row: Row) -> Row {
    Row { condition: Condition::Columns, ..row }
}

type Argument = (&'static str, &'static str, &'static [Part]);

const V: Argument = ("a", "[5]Double", &[Vector(5)]);
const VV: Argument = ("(a, b)", "([5]Double, [5]Double)", &[Vector(5), Vector(5)]);
const VW: Argument = ("(a, b)", "([5]Double, [3]Double)", &[Vector(5), Vector(3)]);
const VS: Argument = ("(a, b)", "([5]Double, Double)", &[Vector(5), Number]);
const M2: Argument = ("a", "[2][2]Double", &[Matrix(2, 2)]);
const M3: Argument = ("a", "[3][3]Double", &[Matrix(3, 3)]);
const M4: Argument = ("a", "[4][4]Double", &[Matrix(4, 4)]);
const M6: Argument = ("a", "[6][6]Double", &[Matrix(6, 6)]);
const M: Argument = ("a", "[3][4]Double", &[Matrix(3, 4)]);
const MM: Argument = ("(a, b)", "([3][4]Double, [3][4]Double)", &[Matrix(3, 4), Matrix(3, 4)]);
const MP: Argument = ("(a, b)", "([3][4]Double, [4][2]Double)", &[Matrix(3, 4), Matrix(4, 2)]);
const MK: Argument = ("(a, b)", "([3][4]Double, [2][3]Double)", &[Matrix(3, 4), Matrix(2, 3)]);
const MV: Argument = ("(a, b)", "([5][5]Double, [5]Double)", &[Matrix(5, 5), Vector(5)]);
const MB: Argument = ("(a, b)", "([5][5]Double, [5][2]Double)", &[Matrix(5, 5), Matrix(5, 2)]);
const M5: Argument = ("a", "[5][5]Double", &[Matrix(5, 5)]);
const TV: Argument = ("(a, b)", "([5][5]Double, [5]Double)", &[Triangle(5), Vector(5)]);
const TM: Argument = ("(a, b)", "([5][5]Double, [5][2]Double)", &[Triangle(5), Matrix(5, 2)]);
const P: Argument = ("a", "[5][5]Double", &[Positive(5)]);
const PV: Argument = ("(a, b)", "([5][5]Double, [5]Double)", &[Positive(5), Vector(5)]);
const L: Argument = ("a", "[6][4]Double", &[Matrix(6, 4)]);
const LC: Argument = ("(a, b)", "([6][4]Double, [6]Double)", &[Matrix(6, 4), Combination]);
const LV: Argument = ("(a, b)", "([6][4]Double, [6]Double)", &[Matrix(6, 4), Vector(6)]);

pub const FUNCTIONS: &[Row] = &[
    row("det 2", M2, "Double", "det a"),
    row("det 3", M3, "Double", "det a"),
    row("det 4", M4, "Double", "det a"),
    row("det 6", M6, "Double", "det a"),
    poles(row("logdet", M5, "Double", "logdet a")),
    poles(row("inverse", M5, "[5][5]Double", "inverse a")),
    poles(row("solve", MV, "[5]Double", "solve a b")),
    poles(row("solveMatrix", MB, "[5][2]Double", "solveMatrix a b")),
    poles(row("lu", M5, "([5][5]Double, [5][5]Double)", "let (l, u, _) = lu a in (l, u)")),
    poles(row("cholesky", P, "[5][5]Double", "cholesky a")),
    poles(row("cholesky, solved", PV, "[5]Double", "solveCholesky (cholesky a) b")),
    poles(row("solveCholesky", TV, "[5]Double", "solveCholesky a b")),
    columns(row("qr", L, "([6][4]Double, [4][4]Double)", "qr a")),
    columns(row("qrReflected", L, "([6][4]Double, [4][4]Double)", "qrReflected a")),
    columns(row("leastSquares", LV, "[4]Double", "leastSquares a b")),
    columns(row("leastSquares, consistent", LC, "[4]Double", "leastSquares a b")),
    poles(row("solveLower", TV, "[5]Double", "solveLower a b")),
    poles(row("solveLowerTransposed", TV, "[5]Double", "solveLowerTransposed a b")),
    poles(row("solveUpper", TV, "[5]Double", "solveUpper a b")),
    poles(row("solveUpperTransposed", TV, "[5]Double", "solveUpperTransposed a b")),
    poles(row("solveUnitLower", TV, "[5]Double", "solveUnitLower a b")),
    poles(row("solveUnitLowerTransposed", TV, "[5]Double", "solveUnitLowerTransposed a b")),
    poles(row("solveUnitUpper", TV, "[5]Double", "solveUnitUpper a b")),
    poles(row("solveLowerMatrix", TM, "[5][2]Double", "solveLowerMatrix a b")),
    poles(row("solveUpperMatrix", TM, "[5][2]Double", "solveUpperMatrix a b")),
    poles(row("solveUnitLowerMatrix", TM, "[5][2]Double", "solveUnitLowerMatrix a b")),
    poles(row("solveUnitUpperMatrix", TM, "[5][2]Double", "solveUnitUpperMatrix a b")),
    row("logSumExp", V, "Double", "logSumExp a"),
    row("softmax", V, "[5]Double", "softmax a"),
    row("logSoftmax", V, "[5]Double", "logSoftmax a"),
    row("vectorNorm", V, "Double", "vectorNorm a"),
    row("vectorNorm1", V, "Double", "vectorNorm1 a"),
    row("vectorNorm2", V, "Double", "vectorNorm2 a"),
    row("vectorNormInf", V, "Double", "vectorNormInf a"),
    row("vectorNormP", V, "Double", "vectorNormP a 2.5"),
    row("vectorVariance", V, "Double", "vectorVariance a"),
    row("vectorMean", V, "Double", "vectorMean a"),
    row("vectorSum", V, "Double", "vectorSum a"),
    row("vectorMax", V, "Double", "vectorMax a"),
    row("vectorMin", V, "Double", "vectorMin a"),
    row("cumsum", V, "[5]Double", "cumsum a"),
    row("cumprod", V, "[5]Double", "cumprod a"),
    row("vectorDot", VV, "Double", "vectorDot a b"),
    row("vectorAdd", VV, "[5]Double", "vectorAdd a b"),
    row("vectorSub", VV, "[5]Double", "vectorSub a b"),
    row("vectorEMul", VV, "[5]Double", "vectorEMul a b"),
    row("vectorDiv", VV, "[5]Double", "vectorDiv a b"),
    row("vectorSMul", VS, "[5]Double", "vectorSMul a b"),
    row("clip", V, "[5]Double", "vectorMap a (fun x -> clip x (-0.5) 0.5)"),
    row("linspace", ("(a, b)", "(Double, Double)", &[Number, Number]), "[5]Double", "linspace a b 5"),
    row("outer", VW, "[5][3]Double", "outer a b"),
    row("convolve", VW, "[7]Double", "convolve a b"),
    row("convolveValid", VW, "[3]Double", "convolveValid a b"),
    row("correlate", VW, "[3]Double", "correlate a b"),
    row("kronecker", MK, "[6][12]Double", "kronecker a b"),
    row("matrixConvolve", MK, "[2][2]Double", "matrixConvolve a b"),
    row("matrixCorrelate", MK, "[2][2]Double", "matrixCorrelate a b"),
    row("matrixPower", M3, "[3][3]Double", "matrixPower a 4"),
    row("matrixMul", MP, "[3][2]Double", "matrixMul a b"),
    row("matrixDot", MM, "Double", "matrixDot a b"),
    row("matrixVectorMul", MV, "[5]Double", "matrixVectorMul a b"),
    row("vectorMatrixMul", MV, "[5]Double", "vectorMatrixMul b a"),
    row("vectorMatrixVector", MV, "Double", "vectorMatrixVector b a b"),
    row("vectorOutProd", VW, "[5][3]Double", "vectorOutProd a b"),
    row("matrixNorm", M, "Double", "matrixNorm a"),
    row("matrixNorm1", M, "Double", "matrixNorm1 a"),
    row("matrixNorm2", M, "Double", "matrixNorm2 a"),
    row("matrixNormInf", M, "Double", "matrixNormInf a"),
    row("matrixTrace", M5, "Double", "matrixTrace a"),
    row("matrixSum", M, "Double", "matrixSum a"),
    row("matrixEMul", MM, "[3][4]Double", "matrixEMul a b"),
];
