//! Wrong graphs for `chainrule eliminate`, and wrong requests.

use crate::Case;
use crate::support::Content::{self, Bytes, Folder, Text};

const CHAIN: (&str, Content) = (
    "g.json",
    Text("{\"n_inputs\": 1, \"n_intermediates\": 2, \"n_outputs\": 1, \"edges\": [[0, 1], [1, 2], [2, 3]]}"),
);

const fn graph(text: &'static str) -> (&'static str, Content) {
    ("g.json", Text(text))
}

pub const GRAPHS: &[Case] = &[
    Case { name: "no file of this name", files: &[], args: &["eliminate", "g.json"] },
    Case { name: "a folder", files: &[("g.json", Folder)], args: &["eliminate", "g.json"] },
    Case { name: "no text", files: &[("g.json", Bytes(b"{\xff}"))], args: &["eliminate", "g.json"] },
    Case { name: "an empty file", files: &[graph("")], args: &["eliminate", "g.json"] },
    Case { name: "nothing on standard input", files: &[], args: &["eliminate", "-"] },
    Case { name: "cut off", files: &[graph("{\"n_inputs\": 1,\n \"n_out")], args: &["eliminate", "g.json"] },
    Case { name: "edges alone", files: &[graph("[[0, 1], [1, 2]]")], args: &["eliminate", "g.json"] },
    Case { name: "a field missing", files: &[graph("{\"n_inputs\": 1}")], args: &["eliminate", "g.json"] },
    Case {
        name: "a number below 0",
        files: &[graph("{\"n_inputs\": -1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": []}")],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "too many vertices",
        files: &[graph("{\"n_inputs\": 1, \"n_intermediates\": 1000000000000000000, \"n_outputs\": 1, \"edges\": []}")],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "an edge with a label in it",
        files: &[graph("{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1, \"var\"]]}")],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "an edge to nowhere",
        files: &[graph("{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 2]]}")],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "an edge backwards",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 2, \"n_outputs\": 1, \"edges\": [[0, 2], [2, 1], [1, 3]]}",
        )],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "too few kinds",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 1, \"n_outputs\": 1, \"edges\": [[0, 1], [1, 2]], \"edge_kind\": [\"var\"]}",
        )],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "an unknown kind",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1]], \"edge_kind\": [\"variable\"]}",
        )],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "a size of 0",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1]], \"sizes\": [3, 0]}",
        )],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "an identity between vectors of different lengths",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1]], \"edge_kind\": [\"one\"], \"sizes\": [3, 2]}",
        )],
        args: &["eliminate", "g.json"],
    },
    Case {
        name: "faces of a vector graph",
        files: &[graph(
            "{\"n_inputs\": 1, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": [[0, 1]], \"sizes\": [3, 2]}",
        )],
        args: &["eliminate", "g.json", "--method", "face"],
    },
    Case { name: "an unknown method", files: &[CHAIN], args: &["eliminate", "g.json", "--method", "markovitz"] },
    Case { name: "an unknown counting", files: &[CHAIN], args: &["eliminate", "g.json", "--counting", "units"] },
    Case {
        name: "an order and a method",
        files: &[CHAIN],
        args: &["eliminate", "g.json", "--method", "face", "--order", "1"],
    },
    Case { name: "an order of an input", files: &[CHAIN], args: &["eliminate", "g.json", "--order", "1,0"] },
    Case { name: "an order of no vertex", files: &[CHAIN], args: &["eliminate", "g.json", "--order", "1,7"] },
    Case { name: "a vertex twice in the order", files: &[CHAIN], args: &["eliminate", "g.json", "--order", "1,2,1"] },
    Case { name: "an order of names", files: &[CHAIN], args: &["eliminate", "g.json", "--order", "v1"] },
    Case {
        name: "a proof of another problem",
        files: &[CHAIN],
        args: &["eliminate", "g.json", "--prove", "--counting", "folded"],
    },
    Case {
        name: "programs of all methods",
        files: &[CHAIN],
        args: &["eliminate", "g.json", "--method", "all", "--show", "program"],
    },
    Case { name: "a picture without a folder", files: &[CHAIN], args: &["eliminate", "g.json", "--svg", "out/g.svg"] },
];
