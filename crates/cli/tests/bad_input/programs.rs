//! Wrong programs.

use crate::Case;
use crate::support::Content::{Bytes, Nested, Text};

pub const SYNTAX: &[Case] = &[
    Case {
        name: "a character that F~ does not have",
        files: &[("f.ft", Text("let f = fun x -> x ? 2\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a letter that looks like another",
        files: &[("f.ft", Text("let f = fun x -> x \u{2212} 2\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a number with letters",
        files: &[("f.ft", Text("let f = fun x -> 2x + 1.5.2\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a number too large",
        files: &[("f.ft", Text("let n = 99999999999999999999\nlet x = 1e999\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an unclosed bracket",
        files: &[("f.ft", Text("let f = fun x ->\n  sin (x + (1 - x)\n\nlet g = fun x -> x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a bracket of the wrong kind",
        files: &[("f.ft", Text("let f = fun v -> (v[0) + 1]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "let without in",
        files: &[("f.ft", Text("let f = fun x -> let y = x * x y + 1\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "if without else",
        files: &[("f.ft", Text("let relu = fun x -> if x > 0 then x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "operators of another language",
        files: &[("f.ft", Text("let f = fun x -> x += 1\nlet g = fun x -> x ^ 2\nlet h = fun a b -> a & b\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "two operators in a row",
        files: &[("f.ft", Text("let f = fun x -> x * / 2\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a comparison of three",
        files: &[("f.ft", Text("let f = fun a b c -> if a < b < c then 1 else 0\n"))],
        args: &["check", "f.ft"],
    },
    Case { name: "Python", files: &[("f.ft", Text("def f(x):\n    return x ** 2\n"))], args: &["check", "f.ft"] },
    Case { name: "the end in the middle", files: &[("f.ft", Text("let f = fun x ->"))], args: &["check", "f.ft"] },
    Case {
        name: "an expression at the top",
        files: &[("f.ft", Text("let f = fun x -> x\nf 3\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "several mistakes in one go",
        files: &[(
            "f.ft",
            Text(
                "let f = fun x -> (x + 1\n\nlet g = fun -> 2\n\nlet h = fun x -> if x then 1\n\nlet ok = fun x -> x\n",
            ),
        )],
        args: &["check", "f.ft"],
    },
    Case { name: "an empty program", files: &[("f.ft", Text(""))], args: &["run", "f.ft"] },
    Case {
        name: "bytes that are no text",
        files: &[("f.ft", Bytes(b"let f = fun x -> x + \xff\xfe\n"))],
        args: &["check", "f.ft"],
    },
    Case { name: "zeros", files: &[("f.ft", Bytes(b"\0\0\0\0"))], args: &["check", "f.ft"] },
    Case {
        name: "parentheses nested deeply",
        files: &[("f.ft", Nested { start: "let f = ", times: 100_000, open: "(\n", inner: "1", close: ")\n" })],
        args: &["check", "f.ft"],
    },
    Case {
        name: "functions nested deeply",
        files: &[("f.ft", Nested { start: "let f =", times: 20_000, open: "\n  fun x ->", inner: " 1\n", close: "" })],
        args: &["check", "f.ft"],
    },
    Case {
        name: "thousands of mistakes",
        files: &[("f.ft", Nested { start: "", times: 5_000, open: "let f = sin (\n", inner: "1", close: ")\n" })],
        args: &["check", "f.ft"],
    },
    Case {
        name: "formatting what does not parse",
        files: &[("f.ft", Text("let f = fun x -> (x\n"))],
        args: &["fmt", "f.ft"],
    },
];

pub const NAMES_AND_TYPES: &[Case] = &[
    Case {
        name: "an unknown name",
        files: &[("f.ft", Text("let f = fun v -> vectorSun v\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an unknown name without a neighbour",
        files: &[("f.ft", Text("let f = fun x -> frobnicate x\n"))],
        args: &["run", "f.ft", "--arg", "x=1"],
    },
    Case {
        name: "an unknown type",
        files: &[("f.ft", Text("let f = fun (x : Float) -> x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a recursive function",
        files: &[("f.ft", Text("let fact = fun (n : Int) -> if n == 0 then 1 else n * fact (n - 1)\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "functions that call each other",
        files: &[(
            "f.ft",
            Text("let even = fun (x : Double) -> odd (x - 1)\nlet odd = fun (x : Double) -> even (x - 1)\n"),
        )],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a truth value as a number",
        files: &[("f.ft", Text("let f = fun x -> x + (x > 0)\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a number as a condition",
        files: &[("f.ft", Text("let f = fun (x : Double) -> if x then 1 else 2\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a vector as a number",
        files: &[("f.ft", Text("let f = fun (v : [n]Double) -> sin v\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "vectors added by the plus of numbers",
        files: &[("f.ft", Text("let f = fun (v : [n]Double) (w : [n]Double) -> v + w\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an Int where a Double is needed",
        files: &[("f.ft", Text("let half = fun (x : Double) -> x / 2\nlet f = fun (n : Int) -> half n\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a Double as an index",
        files: &[("f.ft", Text("let f = fun (v : [n]Double) (t : Double) -> v[t * 2]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an index of a number",
        files: &[("f.ft", Text("let f = fun (x : Double) -> x[0]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an annotation that is not so",
        files: &[("f.ft", Text("let f = fun (x : Double) : [2]Double -> x * x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "too many arguments",
        files: &[("f.ft", Text("let f = fun x y -> x + y\nlet g = fun x -> f x x x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "too few arguments",
        files: &[("f.ft", Text("let f = fun x y -> x + y\nlet g = fun (x : Double) -> sqrt (f x)\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an unknown field",
        files: &[("f.ft", Text("let f = fun (p : { pos : Double, vel : Double }) -> p.poss\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a field of what is not known",
        files: &[("f.ft", Text("let f = fun p -> p.x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a function in an array",
        files: &[("f.ft", Text("let f = fun x -> [sin, cos][0] x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a type that contains itself",
        files: &[("f.ft", Text("let f = fun x -> x x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "several types wrong in one go",
        files: &[(
            "f.ft",
            Text("let f = fun x -> foo x\nlet g = 1 + true\nlet h = fun x -> if x > 0 then x else false\n"),
        )],
        args: &["check", "f.ft"],
    },
    Case {
        name: "two files, both wrong",
        files: &[("f.ft", Text("let f = 1 + true\n")), ("g.ft", Text("let g = fun x -> y\n"))],
        args: &["check", "f.ft", "g.ft"],
    },
];

pub const SIZES: &[Case] = &[
    Case {
        name: "vectors of different sizes in the program",
        files: &[(
            "f.ft",
            Text(
                "let dot = fun (a : [n]Double) (b : [n]Double) -> vectorDot a b\nlet f = dot [1.0, 2.0] [1.0, 2.0, 3.0]\n",
            ),
        )],
        args: &["check", "f.ft"],
    },
    Case {
        name: "vectors of different sizes as arguments",
        files: &[("f.ft", Text("let dot = fun (a : [n]Double) (b : [n]Double) -> vectorDot a b\n"))],
        args: &["run", "f.ft", "--arg", "a=[1, 2, 3]", "--arg", "b=[1, 2]"],
    },
    Case {
        name: "vectors without annotations of different sizes as arguments",
        files: &[("f.ft", Text("let dot = fun a b -> vectorDot a b\n"))],
        args: &["run", "f.ft", "--arg", "a=[1, 2, 3]", "--arg", "b=[1, 2]"],
    },
    Case {
        name: "a second vector without annotation that is longer",
        files: &[("f.ft", Text("let dot = fun a b -> vectorDot a b\n"))],
        args: &["run", "f.ft", "--arg", "a=[1, 2]", "--arg", "b=[1, 2, 3]"],
    },
    Case {
        name: "an inner product of different sizes in the program",
        files: &[("f.ft", Text("let f = vectorDot [1.0, 2.0] [1.0, 2.0, 3.0]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an index past the end of one element",
        files: &[("f.ft", Text("let f = let v = [1.0] in v[1]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a matrix and a vector that do not fit",
        files: &[("f.ft", Text("let f = fun (A : [m][n]Double) (x : [n]Double) -> matrixVectorMul A x\n"))],
        args: &["run", "f.ft", "--arg", "A=[[1, 2], [3, 4]]", "--arg", "x=[1, 2, 3]"],
    },
    Case {
        name: "a fixed size that is not kept",
        files: &[("f.ft", Text("let f = fun (x : [3]Double) -> x[2]\n"))],
        args: &["run", "f.ft", "--arg", "x=[1, 2]"],
    },
    Case {
        name: "the result has not the size that it says",
        files: &[("f.ft", Text("let f = fun (v : [n]Double) : [n + 1]Double -> v\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an index out of range in the program",
        files: &[("f.ft", Text("let f = let v = [1.0, 2.0, 3.0] in v[3]\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "one past the end",
        files: &[("f.ft", Text("let f = fun v -> build (length v) (fun i -> v[i + 1] - v[i])\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a negative size in the program",
        files: &[("f.ft", Text("let f = build (2 - 3) (fun i -> 1.0)\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a negative size as an argument",
        files: &[("f.ft", Text("let f = fun (n : Card) -> vectorSum (build n (fun i -> 1.0))\n"))],
        args: &["run", "f.ft", "--arg", "n=-4"],
    },
    Case {
        name: "a size too large for memory",
        files: &[("f.ft", Text("let f = fun (n : Card) -> build n (fun i -> 1.0)\n"))],
        args: &["run", "f.ft", "--arg", "n=4000000000000000000"],
    },
    Case {
        name: "a size too large for this machine",
        files: &[("f.ft", Text("let f = fun (n : Card) -> build n (fun i -> 1.0)\n"))],
        args: &["run", "f.ft", "--arg", "n=1000000000000000"],
    },
    Case {
        name: "a size whose square is too large",
        files: &[("f.ft", Text("let f = fun (n : Card) -> build n (fun i -> build n (fun j -> 1.0))\n"))],
        args: &["run", "f.ft", "--arg", "n=9000000000000000000"],
    },
    Case {
        name: "a ragged array",
        files: &[("f.ft", Text("let f = fun (n : Card) -> build n (fun i -> build i (fun j -> 1.0))\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a state that grows",
        files: &[("f.ft", Text("let f = fun v -> ifold (fun s i -> vectorConcat s v) [0.0] 3\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "the largest of no elements",
        files: &[("f.ft", Text("let f = fun (v : [n]Double) -> vectorMax v\n"))],
        args: &["run", "f.ft", "--arg", "v=[]"],
    },
];

pub const IMPORTS: &[Case] = &[
    Case {
        name: "a file that is not there",
        files: &[("f.ft", Text("import \"gone.ft\"\nlet f = fun x -> g x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "types and names of a file that is not there, and a mistake that has nothing to do with it",
        files: &[("f.ft", Text("import \"gone.ft\"\nlet f = fun (x : Particle) -> g x\nlet h = sin true\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a library that is not there",
        files: &[("f.ft", Text("import linalgebra\nlet f = fun x -> x\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "files that import each other",
        files: &[
            ("a.ft", Text("import \"b.ft\"\nlet f = fun x -> g x\n")),
            ("b.ft", Text("import \"a.ft\"\nlet g = fun x -> f x\n")),
        ],
        args: &["check", "a.ft"],
    },
    Case {
        name: "a file that imports itself",
        files: &[("a.ft", Text("import \"a.ft\"\nlet f = fun x -> x\n"))],
        args: &["check", "a.ft"],
    },
    Case {
        name: "a mistake in an imported file",
        files: &[
            ("a.ft", Text("import \"parts/b.ft\"\nlet f = fun x -> g x\n")),
            ("parts/b.ft", Text("let g = fun (x : Double) -> x + true\n")),
        ],
        args: &["run", "a.ft", "--arg", "x=1"],
    },
    Case {
        name: "a folder as an import",
        files: &[("a.ft", Text("import \"parts\"\nlet f = fun x -> x\n")), ("parts/b.ft", Text("let g = 1\n"))],
        args: &["check", "a.ft"],
    },
    Case {
        name: "an import that is no text",
        files: &[("a.ft", Text("import \"b.ft\"\nlet f = fun x -> x\n")), ("b.ft", Bytes(b"\xff\xfe\x00"))],
        args: &["check", "a.ft"],
    },
];

pub const RUNNING: &[Case] = &[
    Case {
        name: "a division between its arguments",
        files: &[("f.ft", Text("let f = fun (n : Int) (k : Int) -> n div k\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "an index out of range that data decide",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (at : [m]Index) -> sum m (fun k -> x[at[k]])\n"))],
        args: &["run", "f.ft", "--arg", "x=[1, 2, 3]", "--arg", "at=[0, 5]"],
    },
    Case {
        name: "a negative index that data decide",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (i : Index) -> x[i]\n"))],
        args: &["run", "f.ft", "--arg", "x=[1, 2, 3]", "--arg", "i=-1"],
    },
    Case {
        name: "an Int divided by zero",
        files: &[("f.ft", Text("let f = fun (n : Int) (k : Int) -> div n k\n"))],
        args: &["run", "f.ft", "--arg", "n=7", "--arg", "k=0"],
    },
    Case {
        name: "an Int divided by zero in straight-line code",
        files: &[("f.ft", Text("let f = fun (x : Double) (n : Int) (k : Int) -> x * real (div n k)\n"))],
        args: &["derive", "f.ft", "--what", "gradient", "--size", "n=7", "--size", "k=0", "--unroll", "always"],
    },
    Case {
        name: "a remainder by zero",
        files: &[("f.ft", Text("let f = fun (n : Int) (k : Int) -> mod n k\n"))],
        args: &["run", "f.ft", "--arg", "n=7", "--arg", "k=0"],
    },
    Case {
        name: "a negative power of a matrix",
        files: &[("f.ft", Text("let f = fun (a : [n][n]Double) (k : Int) -> matrixPower a k\n"))],
        args: &["run", "f.ft", "--arg", "a=[[1, 2], [0, 1]]", "--arg", "k=-1"],
    },
    Case {
        name: "an Int that overflows",
        files: &[("f.ft", Text("let f = fun (n : Int) -> n * n\n"))],
        args: &["run", "f.ft", "--arg", "n=9000000000000000000"],
    },
    Case {
        name: "the one division that overflows",
        files: &[("f.ft", Text("let f = fun (n : Int) (k : Int) -> div n k\n"))],
        args: &["run", "f.ft", "--arg", "n=-9223372036854775808", "--arg", "k=-1"],
    },
    Case {
        name: "an Int in a loop that overflows",
        files: &[("f.ft", Text("let f = fun (k : Int) -> ifold (fun (p : Int) i -> p * 10) 1 k\n"))],
        args: &["run", "f.ft", "--arg", "k=30"],
    },
    Case {
        name: "a while that does not end",
        files: &[("f.ft", Text("let f = fun (x : Double) -> while (fun y -> y > 0) (fun y -> y + 1) x 1000\n"))],
        args: &["run", "f.ft", "--arg", "x=1"],
    },
    Case {
        name: "a while that does not end in a gradient",
        files: &[("f.ft", Text("let f = fun (x : Double) -> while (fun y -> y > 0) (fun y -> y + 1) x 1000\n"))],
        args: &["run", "f.ft", "--what", "gradient", "--arg", "x=1"],
    },
    Case {
        name: "a while whose limit is negative",
        files: &[("f.ft", Text("let f = fun (x : Double) (k : Int) -> while (fun y -> y > 0) (fun y -> y + 1) x k\n"))],
        args: &["run", "f.ft", "--arg", "x=1", "--arg", "k=-5"],
    },
    Case {
        name: "an index out of range in a gradient",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (at : [m]Index) -> sum m (fun k -> sin x[at[k]])\n"))],
        args: &["run", "f.ft", "--what", "gradient", "--by", "x", "--arg", "x=[1, 2, 3]", "--arg", "at=[0, 5]"],
    },
    Case {
        name: "an index out of range in a sparse Jacobian",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (at : [m]Index) -> build m (fun k -> sin x[at[k]])\n"))],
        args: &[
            "run",
            "f.ft",
            "--what",
            "jacobian",
            "--sparse",
            "--by",
            "x",
            "--arg",
            "x=[1, 2, 3]",
            "--arg",
            "at=[0, 5]",
        ],
    },
    Case {
        name: "an index out of range on threads",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (at : [m]Index) -> build m (fun k -> sin x[at[k]])\n"))],
        args: &["run", "f.ft", "--threads", "2", "--arg", "x=[1, 2, 3]", "--arg", "at=[0, 5, 7]"],
    },
    Case {
        name: "QR of a matrix with more columns than rows",
        files: &[("f.ft", Text("let f = fun (a : [m][n]Double) -> qr a\n"))],
        args: &["run", "f.ft", "--arg", "a=[[1, 2, 3], [4, 5, 6]]"],
    },
    Case {
        name: "the Jacobian of QR of a matrix with more columns than rows",
        files: &[("f.ft", Text("let f = fun (a : [m][n]Double) -> qr a\n"))],
        args: &["run", "f.ft", "--what", "jacobian", "--arg", "a=[[1, 2, 3], [4, 5, 6]]"],
    },
    Case {
        name: "least squares with fewer equations than unknowns",
        files: &[("f.ft", Text("let fit = fun (a : [m][n]Double) (b : [m]Double) -> leastSquares a b\n"))],
        args: &["run", "f.ft", "--arg", "a=[[1, 2, 3], [4, 5, 6]]", "--arg", "b=[1, 2]"],
    },
    Case {
        name: "QR of a matrix of a known size with more columns than rows",
        files: &[("f.ft", Text("let f = fun (a : [2][3]Double) -> qr a\n"))],
        args: &["check", "f.ft"],
    },
    Case {
        name: "a system of equations that is not square",
        files: &[("f.ft", Text("let f = fun (a : [m][n]Double) (b : [m]Double) -> solve a b\n"))],
        args: &["run", "f.ft", "--arg", "a=[[1, 2, 3], [4, 5, 6]]", "--arg", "b=[1, 2]"],
    },
    Case {
        name: "an index out of range in straight-line code",
        files: &[("f.ft", Text("let f = fun (x : [n]Double) (i : Index) -> x[i]\n"))],
        args: &["derive", "f.ft", "--what", "gradient", "--by", "x", "--size", "n=3", "--size", "i=3"],
    },
];
