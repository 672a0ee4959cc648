//! Wrong command lines, and missing or unsuitable files.

use crate::Case;
use crate::support::Content::{self, Bytes, Folder, Text};

const MODEL: (&str, Content) = ("m.ft", Text("let norm2 = fun (x : [n]Double) -> vectorDot x x\n"));

pub const COMMAND_LINES: &[Case] = &[
    Case { name: "nothing", files: &[], args: &[] },
    Case { name: "an unknown command", files: &[], args: &["chek", "m.ft"] },
    Case { name: "a file for a command", files: &[MODEL], args: &["m.ft"] },
    Case { name: "no file", files: &[], args: &["check"] },
    Case { name: "an unknown option", files: &[MODEL], args: &["run", "m.ft", "--argument", "x=[1]"] },
    Case { name: "an unknown derivative", files: &[MODEL], args: &["derive", "m.ft", "--what", "gradiant"] },
    Case { name: "an unknown format", files: &[MODEL], args: &["run", "m.ft", "--arg", "x=[1]", "--format", "xml"] },
    Case { name: "an option without its value", files: &[MODEL], args: &["derive", "m.ft", "--what"] },
    Case { name: "a size that is no number", files: &[MODEL], args: &["derive", "m.ft", "--size", "n=many"] },
    Case { name: "a size without a name", files: &[MODEL], args: &["derive", "m.ft", "--size", "10"] },
    Case {
        name: "a size too large for 64 bits",
        files: &[MODEL],
        args: &["derive", "m.ft", "--size", "n=99999999999999999999"],
    },
    Case { name: "a size given twice", files: &[MODEL], args: &["derive", "m.ft", "--size", "n=2", "--size", "n=3"] },
    Case { name: "C of no language", files: &[MODEL], args: &["emit", "m.ft"] },
    Case { name: "an unknown language", files: &[MODEL], args: &["emit", "fortran", "m.ft"] },
    Case { name: "options that exclude each other", files: &[MODEL], args: &["fmt", "--check", "--stdout", "m.ft"] },
    Case {
        name: "a range the wrong way round",
        files: &[MODEL],
        args: &["test", "m.ft", "--size", "n=2", "--range", "2..1"],
    },
    Case { name: "no points", files: &[MODEL], args: &["test", "m.ft", "--size", "n=2", "--points", "0"] },
    Case {
        name: "a tolerance that is no number",
        files: &[MODEL],
        args: &["test", "m.ft", "--size", "n=2", "--tolerance", "small"],
    },
];

pub const FILES: &[Case] = &[
    Case { name: "a file that is not there", files: &[], args: &["check", "gone.ft"] },
    Case { name: "a folder as a file", files: &[("models", Folder)], args: &["check", "models"] },
    Case { name: "formatting a file that is not there", files: &[], args: &["fmt", "gone.ft"] },
    Case {
        name: "a file that is not formatted",
        files: &[("m.ft", Text("let f=fun x->x*x\n"))],
        args: &["fmt", "--check", "m.ft"],
    },
    Case { name: "a data file that is not there", files: &[MODEL], args: &["run", "m.ft", "--arg", "x=@gone.json"] },
    Case { name: "an NPY file that is not there", files: &[MODEL], args: &["run", "m.ft", "--arg", "x=@gone.npy"] },
    Case {
        name: "a folder as a data file",
        files: &[MODEL, ("data", Folder)],
        args: &["run", "m.ft", "--arg", "x=@data"],
    },
    Case {
        name: "a file of arguments that is not there",
        files: &[MODEL],
        args: &["run", "m.ft", "--args", "gone.json"],
    },
    Case {
        name: "an output in a folder that is not there",
        files: &[MODEL],
        args: &["run", "m.ft", "--arg", "x=[1]", "--out", "gone/result.json"],
    },
    Case {
        name: "a folder as an output",
        files: &[MODEL, ("results", Folder)],
        args: &["run", "m.ft", "--arg", "x=[1]", "--out", "results"],
    },
    Case {
        name: "C into a folder that is not there",
        files: &[MODEL],
        args: &["emit", "c", "m.ft", "--what", "gradient", "--out", "gone/m"],
    },
    Case {
        name: "C into the file without a name",
        files: &[MODEL],
        args: &["emit", "c", "m.ft", "--what", "gradient", "--out", ".."],
    },
    Case {
        name: "C into a folder",
        files: &[MODEL, ("results", Folder)],
        args: &["emit", "c", "m.ft", "--what", "gradient", "--out", "results/"],
    },
    Case {
        name: "a compiled function without its end",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x01\0\x02\0"))],
        args: &["run", "f.chainrule", "--arg", "x=[1]"],
    },
    Case {
        name: "a compiled function that has lost bytes",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x01\0\x02\0\xf0\x03\0\0\0\0\0\0abcdefgh0123456789"))],
        args: &["run", "f.chainrule", "--arg", "x=[1]"],
    },
    Case {
        name: "a compiled function that has other bytes",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x01\0\x02\0\x0a\0\0\0\0\0\0\0abcdefgh0123456789"))],
        args: &["run", "f.chainrule", "--arg", "x=[1]"],
    },
    Case {
        name: "a compiled function of a later version",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x09\0\x02\0\x0a\0\0\0\0\0\0\0abcdefgh0123456789"))],
        args: &["run", "f.chainrule", "--arg", "x=[1]"],
    },
    Case {
        name: "a derivative of a compiled function",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x01\0\x02\0"))],
        args: &["run", "f.chainrule", "--what", "gradient", "--arg", "x=[1]"],
    },
    Case {
        name: "compiling a compiled function",
        files: &[("f.chainrule", Bytes(b"\x89CHAINRULE\r\n\x01\0\x02\0"))],
        args: &["compile", "f.chainrule", "--out", "g.chainrule"],
    },
    Case { name: "compiling to nowhere", files: &[MODEL], args: &["compile", "m.ft"] },
    Case {
        name: "a compiled function into a folder that is not there",
        files: &[MODEL],
        args: &["compile", "m.ft", "--out", "gone/m.chainrule"],
    },
    Case { name: "NPY to the screen", files: &[MODEL], args: &["run", "m.ft", "--arg", "x=[1]", "--format", "npy"] },
    Case {
        name: "two results in one NPY file",
        files: &[MODEL],
        args: &[
            "run", "m.ft", "--arg", "x=[1]", "--what", "value", "--what", "gradient", "--format", "npy", "--out",
            "r.npy",
        ],
    },
];
