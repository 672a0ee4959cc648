//! Wrong data.

use crate::Case;
use crate::support::Content::{self, Bytes, Nested, Npy, Text};

const VECTOR: (&str, Content) = ("v.ft", Text("let total = fun (x : [n]Double) -> vectorSum x\n"));
const MATRIX: (&str, Content) = ("m.ft", Text("let trace = fun (A : [n][n]Double) -> matrixTrace A\n"));
const SCALED: (&str, Content) =
    ("s.ft", Text("let scaled = fun (x : [n]Double) (k : Int) -> build n (fun i -> x[i] * real k)\n"));
const RECORD: (&str, Content) =
    ("r.ft", Text("let energy = fun (p : { mass : Double, vel : [3]Double }) -> p.mass * vectorDot p.vel p.vel / 2\n"));
const FLAG: (&str, Content) = ("b.ft", Text("let f = fun (b : Bool) (x : Double) -> if b then x else 0 - x\n"));

pub const ARGUMENTS: &[Case] = &[
    Case { name: "no argument at all", files: &[VECTOR], args: &["run", "v.ft"] },
    Case { name: "one of two arguments", files: &[SCALED], args: &["run", "s.ft", "--arg", "x=[1, 2]"] },
    Case { name: "an unknown argument", files: &[VECTOR], args: &["run", "v.ft", "--arg", "y=[1, 2]"] },
    Case { name: "an argument without a name", files: &[VECTOR], args: &["run", "v.ft", "--arg", "[1, 2]"] },
    Case {
        name: "an argument given twice",
        files: &[VECTOR],
        args: &["run", "v.ft", "--arg", "x=[1]", "--arg", "x=[2]"],
    },
    Case { name: "an argument without a value", files: &[VECTOR], args: &["run", "v.ft", "--arg", "x="] },
    Case { name: "a number for a vector", files: &[VECTOR], args: &["run", "v.ft", "--arg", "x=3"] },
    Case {
        name: "a vector for a number",
        files: &[SCALED],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=[2]"],
    },
    Case {
        name: "a fraction for an Int",
        files: &[SCALED],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=2.5"],
    },
    Case { name: "a number for a truth value", files: &[FLAG], args: &["run", "b.ft", "--arg", "b=1", "--arg", "x=2"] },
    Case {
        name: "an Int of more than 64 bits",
        files: &[SCALED],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=99999999999999999999"],
    },
    Case { name: "numbers without brackets", files: &[VECTOR], args: &["run", "v.ft", "--arg", "x=1 2 3"] },
    Case { name: "a file name without @", files: &[VECTOR], args: &["run", "v.ft", "--arg", "x=data.json"] },
];

pub const JSON: &[Case] = &[
    Case {
        name: "malformed",
        files: &[VECTOR, ("x.json", Text("[1, 2,\n 3,,]\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "cut off",
        files: &[VECTOR, ("x.json", Text("[1, 2, 3"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case { name: "empty", files: &[VECTOR, ("x.json", Text(""))], args: &["run", "v.ft", "--arg", "x=@x.json"] },
    Case {
        name: "no text",
        files: &[VECTOR, ("x.json", Bytes(b"[1, \xff\xfe]"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "NaN as JavaScript writes it",
        files: &[VECTOR, ("x.json", Text("[1, NaN, Infinity]\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "a number too large for a Double",
        files: &[VECTOR, ("x.json", Text("[1, 1e999]\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "a text among numbers",
        files: &[VECTOR, ("x.json", Text("[1, \"two\", 3]\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "null among numbers",
        files: &[VECTOR, ("x.json", Text("[1, null, 3]\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case {
        name: "rows of different lengths",
        files: &[MATRIX, ("A.json", Text("[[1, 2], [3]]\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.json"],
    },
    Case {
        name: "a vector for a matrix",
        files: &[MATRIX, ("A.json", Text("[1, 2, 3]\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.json"],
    },
    Case {
        name: "a matrix that is not square",
        files: &[MATRIX, ("A.json", Text("[[1, 2, 3], [4, 5, 6]]\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.json"],
    },
    Case {
        name: "an object for a vector",
        files: &[VECTOR, ("x.json", Text("{\"x\": [1, 2]}\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
    Case { name: "a field missing", files: &[RECORD], args: &["run", "r.ft", "--arg", "p={\"mass\": 2}"] },
    Case {
        name: "an unknown field",
        files: &[RECORD],
        args: &["run", "r.ft", "--arg", "p={\"mass\": 2, \"velocity\": [1, 2, 3], \"vel\": [1, 2, 3]}"],
    },
    Case {
        name: "a field of the wrong size",
        files: &[RECORD],
        args: &["run", "r.ft", "--arg", "p={\"mass\": 2, \"vel\": [1, 2]}"],
    },
    Case {
        name: "a list for the object of all arguments",
        files: &[VECTOR, ("all.json", Text("[1, 2]\n"))],
        args: &["run", "v.ft", "--args", "all.json"],
    },
    Case {
        name: "an unknown name among all arguments",
        files: &[VECTOR, ("all.json", Text("{\"x\": [1, 2], \"y\": 3}\n"))],
        args: &["run", "v.ft", "--args", "all.json"],
    },
    Case {
        name: "a file of arguments that is malformed",
        files: &[VECTOR, ("all.json", Text("{\"x\": [1, 2}\n"))],
        args: &["run", "v.ft", "--args", "all.json"],
    },
    Case {
        name: "nested deeply",
        files: &[VECTOR, ("x.json", Nested { start: "", times: 100_000, open: "[", inner: "", close: "]" })],
        args: &["run", "v.ft", "--arg", "x=@x.json"],
    },
];

const ONE_TWO: &[u8] = b"\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0@";

pub const NPY: &[Case] = &[
    Case {
        name: "another kind of file",
        files: &[VECTOR, ("x.npy", Text("1.0 2.0 3.0\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case { name: "empty", files: &[VECTOR, ("x.npy", Text(""))], args: &["run", "v.ft", "--arg", "x=@x.npy"] },
    Case {
        name: "a zip of arrays",
        files: &[VECTOR, ("x.npy", Bytes(b"PK\x03\x04\x14\0\0\0\0\0"))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "cut off in the header",
        files: &[VECTOR, ("x.npy", Bytes(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran"))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "a header that is no dictionary",
        files: &[VECTOR, ("x.npy", Npy("[1, 2, 3]", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "a version from the future",
        files: &[VECTOR, ("x.npy", Bytes(b"\x93NUMPY\x09\x00\x06\x00{}    \n"))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "cut off in the data",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "more data than the header says",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "complex numbers",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "text",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "Python objects",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04K\x01."))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "records",
        files: &[
            VECTOR,
            ("x.npy", Npy("{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (1,), }", ONE_TWO)),
        ],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "columns first",
        files: &[MATRIX, ("A.npy", Npy("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 2), }", ONE_TWO))],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "a vector for a matrix",
        files: &[MATRIX, ("A.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", ONE_TWO))],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "a matrix of another shape",
        files: &[MATRIX, ("A.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }", ONE_TWO))],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "a shape that no memory holds",
        files: &[
            MATRIX,
            ("A.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000), }", ONE_TWO)),
        ],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "a shape that overflows",
        files: &[
            MATRIX,
            ("A.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 16), }", ONE_TWO)),
        ],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "an empty shape of unbounded length",
        files: &[
            MATRIX,
            ("A.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000, 0), }", b"")),
        ],
        args: &["run", "m.ft", "--arg", "A=@A.npy"],
    },
    Case {
        name: "a negative shape",
        files: &[VECTOR, ("x.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }", ONE_TWO))],
        args: &["run", "v.ft", "--arg", "x=@x.npy"],
    },
    Case {
        name: "fractions for Ints",
        files: &[
            SCALED,
            ("k.npy", Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", b"\0\0\0\0\0\0\xf8?")),
        ],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=@k.npy"],
    },
];

pub const TEXT: &[Case] = &[
    Case {
        name: "a word among numbers",
        files: &[VECTOR, ("x.txt", Text("1 2\n3 four\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.txt"],
    },
    Case {
        name: "no text",
        files: &[VECTOR, ("x.txt", Bytes(b"1 2 \xff\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.txt"],
    },
    Case {
        name: "commas in a file that is not called csv",
        files: &[VECTOR, ("x.txt", Text("1, 2, 3\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.txt"],
    },
    Case {
        name: "a decimal comma",
        files: &[VECTOR, ("x.csv", Text("1;2\n3,5;4\n"))],
        args: &["run", "v.ft", "--arg", "x=@x.csv"],
    },
    Case {
        name: "text below the line of names",
        files: &[MATRIX, ("A.csv", Text("a,b\n1,2\n3,n/a\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.csv"],
    },
    Case {
        name: "an empty cell",
        files: &[MATRIX, ("A.csv", Text("1,2\n3,\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.csv"],
    },
    Case {
        name: "rows of different lengths in CSV",
        files: &[MATRIX, ("A.csv", Text("a,b\n1,2\n3,4,5\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.csv"],
    },
    Case {
        name: "rows of different lengths",
        files: &[MATRIX, ("A.txt", Text("# a matrix\n1 2\n\n3\n"))],
        args: &["run", "m.ft", "--arg", "A=@A.txt"],
    },
    Case {
        name: "an empty file for a number",
        files: &[SCALED, ("k.txt", Text(""))],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=@k.txt"],
    },
    Case {
        name: "two numbers for one",
        files: &[SCALED, ("k.txt", Text("1 2\n"))],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=@k.txt"],
    },
    Case {
        name: "NaN for an Int",
        files: &[SCALED, ("k.txt", Text("nan\n"))],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=@k.txt"],
    },
    Case {
        name: "an Int that a Double does not hold",
        files: &[SCALED, ("k.txt", Text("1e300\n"))],
        args: &["run", "s.ft", "--arg", "x=[1]", "--arg", "k=@k.txt"],
    },
    Case {
        name: "text for three dimensions",
        files: &[("t.ft", Text("let f = fun (T : [l][m][n]Double) -> T[0][0][0]\n")), ("T.txt", Text("1 2\n3 4\n"))],
        args: &["run", "t.ft", "--arg", "T=@T.txt"],
    },
    Case {
        name: "text for a record",
        files: &[RECORD, ("p.txt", Text("2 1 1 1\n"))],
        args: &["run", "r.ft", "--arg", "p=@p.txt"],
    },
];
