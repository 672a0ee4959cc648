//! Impossible derivatives.

use crate::Case;
use crate::support::Content::{self, Text};

const MODEL: (&str, Content) = ("m.ft", Text("let norm2 = fun (x : [n]Double) -> vectorDot x x\n"));
const MAP: (&str, Content) = ("m.ft", Text("let squares = fun (x : [n]Double) -> build n (fun i -> x[i] * x[i])\n"));

pub const DERIVATIVES: &[Case] = &[
    Case {
        name: "an unknown function",
        files: &[MODEL],
        args: &["derive", "m.ft", "--function", "norm", "--what", "gradient"],
    },
    Case {
        name: "a function of functions",
        files: &[("m.ft", Text("let twice = fun (g : Double => Double) (x : Double) -> g (g x)\n"))],
        args: &["derive", "m.ft", "--what", "gradient"],
    },
    Case {
        name: "a file without functions",
        files: &[("m.ft", Text("let n = 3\n"))],
        args: &["derive", "m.ft", "--what", "gradient"],
    },
    Case { name: "an unknown argument", files: &[MODEL], args: &["derive", "m.ft", "--what", "gradient", "--by", "y"] },
    Case {
        name: "an unknown argument of straight-line code",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--by", "y", "--size", "n=2"],
    },
    Case {
        name: "an element that is not there",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--by", "x[2]", "--size", "n=2"],
    },
    Case {
        name: "an element with brackets unclosed",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--by", "x[1", "--size", "n=2"],
    },
    Case {
        name: "by an Int",
        files: &[("m.ft", Text("let f = fun (x : Double) (n : Int) -> x ** n\n"))],
        args: &["derive", "m.ft", "--what", "gradient", "--by", "n"],
    },
    Case { name: "the gradient of a vector", files: &[MAP], args: &["derive", "m.ft", "--what", "gradient"] },
    Case {
        name: "the gradient of a vector in straight-line code",
        files: &[MAP],
        args: &["derive", "m.ft", "--what", "gradient", "--size", "n=2"],
    },
    Case {
        name: "the Hessian of a vector",
        files: &[MAP],
        args: &["run", "m.ft", "--what", "hessian", "--arg", "x=[1, 2]"],
    },
    Case {
        name: "the gradient of an Int",
        files: &[("m.ft", Text("let f = fun (x : [n]Double) -> length x\n"))],
        args: &["derive", "m.ft", "--what", "gradient"],
    },
    Case {
        name: "the gradient of a function of Ints",
        files: &[("m.ft", Text("let f = fun (n : Int) -> real n\n"))],
        args: &["derive", "m.ft", "--what", "gradient"],
    },
    Case {
        name: "memory for less than one state",
        files: &[(
            "m.ft",
            Text("let f = fun (x : [n]Double) (s : Card) ->\n  vectorSum (ifold (fun y _ -> vectorEMul y x) x s)\n"),
        )],
        args: &[
            "run",
            "m.ft",
            "--what",
            "gradient",
            "--by",
            "x",
            "--arg",
            "x=[1, 2]",
            "--arg",
            "s=9",
            "--checkpoint-memory",
            "8B",
        ],
    },
    Case {
        name: "memory that is no size",
        files: &[(
            "m.ft",
            Text("let f = fun (x : [n]Double) (s : Card) ->\n  vectorSum (ifold (fun y _ -> vectorEMul y x) x s)\n"),
        )],
        args: &[
            "run",
            "m.ft",
            "--what",
            "gradient",
            "--by",
            "x",
            "--arg",
            "x=[1, 2]",
            "--arg",
            "s=9",
            "--checkpoint-memory",
            "lots",
        ],
    },
    Case {
        name: "checkpoints by number and by memory",
        files: &[(
            "m.ft",
            Text("let f = fun (x : [n]Double) (s : Card) ->\n  vectorSum (ifold (fun y _ -> vectorEMul y x) x s)\n"),
        )],
        args: &[
            "run",
            "m.ft",
            "--what",
            "gradient",
            "--by",
            "x",
            "--arg",
            "x=[1, 2]",
            "--arg",
            "s=9",
            "--checkpoint-memory",
            "1MiB",
            "--checkpoints",
            "3",
        ],
    },
    Case {
        name: "an unknown strategy",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--strategy", "marcowitz", "--size", "n=2"],
    },
    Case {
        name: "a form of what is not sparse",
        files: &[MAP],
        args: &["run", "m.ft", "--what", "jacobian", "--form", "csr", "--arg", "x=[1, 2]"],
    },
    Case {
        name: "a sparse Jacobian and a value where loops stay",
        files: &[MAP],
        args: &["derive", "m.ft", "--what", "jacobian", "--what", "value", "--sparse"],
    },
    Case {
        name: "a sparse Jacobian where loops stay in a file",
        files: &[MAP],
        args: &["compile", "m.ft", "--what", "jacobian", "--sparse", "--out", "m.chainrule"],
    },
    Case {
        name: "the sparse Hessian of a vector where loops stay",
        files: &[MAP],
        args: &["run", "m.ft", "--what", "hessian", "--sparse", "--arg", "x=[1, 2]"],
    },
    Case {
        name: "a result that is not there",
        files: &[MAP],
        args: &["derive", "m.ft", "--what", "jacobian", "--of", "result[5]", "--size", "n=2"],
    },
    Case {
        name: "a size that the function does not have",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--size", "m=2"],
    },
    Case {
        name: "one size of two",
        files: &[("m.ft", Text("let f = fun (A : [m][n]Double) (x : [n]Double) -> vectorSum (matrixVectorMul A x)\n"))],
        args: &["derive", "m.ft", "--what", "gradient", "--size", "n=2", "--unroll", "always"],
    },
    Case {
        name: "a negative size",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--size", "n=-1"],
    },
    Case {
        name: "a size too large to unroll",
        files: &[MODEL],
        args: &["derive", "m.ft", "--what", "gradient", "--size", "n=1000000000000", "--unroll", "always"],
    },
    Case {
        name: "a loop without end to unroll",
        files: &[("m.ft", Text("let f = fun (x : Double) -> while (fun y -> y > 0) (fun y -> y + 1) x 1000\n"))],
        args: &["test", "m.ft"],
    },
    Case {
        name: "a test by an unknown argument",
        files: &[MODEL],
        args: &["test", "m.ft", "--what", "gradient", "--by", "q", "--size", "n=2"],
    },
    Case {
        name: "C under a name that C does not have",
        files: &[MAP],
        args: &["emit", "c", "m.ft", "--name", "my function"],
    },
    Case {
        name: "Rust of floats with our own functions",
        files: &[MAP],
        args: &["emit", "rust", "m.ft", "--f32", "--library", "own"],
    },
    Case {
        name: "C of a gradient of a vector",
        files: &[MAP],
        args: &["emit", "c", "m.ft", "--what", "value", "--what", "gradient", "--out", "m"],
    },
    Case {
        name: "a loop of integers too long to unroll",
        files: &[(
            "m.ft",
            Text("let f = fun (x : Double) (k : Int) -> x * real (ifold (fun s i -> mod (s + i) 7) 0 k)\n"),
        )],
        args: &["derive", "m.ft", "--what", "gradient", "--by", "x", "--size", "k=1000000000000", "--unroll", "always"],
    },
];
