//! Files and pipes: content is read verbatim, and existing files are not lost.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod support;

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use support::{Content, Place};

const UNFORMATTED: &str = "let   f = fun (x : Double) -> x*x\n";
const FORMATTED: &str = "let f = fun (x : Double) -> x * x\n";

/// Returns the names in a folder, sorted.
fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_replaced_with_their_permissions_and_through_links() {
    let place = Place::with(&[("f.ft", Content::Text(UNFORMATTED)), ("folder", Content::Folder)]);
    std::fs::set_permissions(place.path().join("f.ft"), std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../f.ft", place.path().join("folder/link.ft")).unwrap();
    symlink("folder/link.ft", place.path().join("second.ft")).unwrap();
    let outcome = place.run(&["fmt", "second.ft"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(place.read("f.ft"), FORMATTED.as_bytes());
    let metadata = std::fs::symlink_metadata(place.path().join("f.ft")).unwrap();
    assert!(metadata.is_file() && metadata.permissions().mode() & 0o777 == 0o640);
    assert!(std::fs::symlink_metadata(place.path().join("second.ft")).unwrap().is_symlink());
    assert_eq!(names(&place), ["f.ft", "folder", "second.ft"]);
}

#[test]
fn a_file_that_cannot_be_written_keeps_its_content() {
    // A limit on the size of files simulates a full disk.
    let place = Place::with(&[("f.ft", Content::Text(UNFORMATTED))]);
    let long = format!("{UNFORMATTED}{}", "let   g = fun (x : Double) -> x*x\n".repeat(900));
    std::fs::write(place.path().join("f.ft"), &long).unwrap();
    let command = format!("trap '' XFSZ; ulimit -f 8; {} fmt f.ft", env!("CARGO_BIN_EXE_chainrule"));
    let output = std::process::Command::new("sh").args(["-c", &command]).current_dir(place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: cannot write f.ft"));
    assert_eq!(place.read("f.ft"), long.as_bytes());
    assert_eq!(names(&place), ["f.ft"]);
}

#[test]
fn data_from_endless_and_huge_files_meet_a_limit() {
    let place = Place::with(&[("f.ft", Content::Text("let f = fun (x : [n]Double) -> vectorSum x\n"))]);
    let devices = ["zero.csv", "zero.json", "zero.txt", "zero"];
    devices.iter().for_each(|link| symlink("/dev/zero", place.path().join(link)).unwrap());
    // A hole, which takes no memory and is not read.
    std::fs::File::create(place.path().join("huge.csv")).unwrap().set_len(5 << 30).unwrap();
    let files = devices.into_iter().chain(["/dev/zero"]).map(|file| (file, "64 MiB")).chain([("huge.csv", "4096 MiB")]);
    for (file, limit) in files {
        let outcome = place.run(&["run", "f.ft", "--arg", &format!("x=@{file}")]);
        let expected = format!("error: {file} has more than {limit}\n  help: name the file that was meant");
        assert!(outcome.code == Some(1) && outcome.stderr.starts_with(&expected), "{file}: {}", outcome.stderr);
    }
    symlink("/dev/zero", place.path().join("zero.npy")).unwrap();
    let outcome = place.run(&["run", "f.ft", "--arg", "x=@zero.npy"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.starts_with("error: zero.npy is not an NPY file"), "{}", outcome.stderr);
    let outcome = place.run(&["run", "f.ft", "--args", "/dev/zero"]);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("has more than 64 MiB"), "{}", outcome.stderr);
}

#[test]
fn results_go_to_devices_and_pipes() {
    let place = Place::with(&[("f.ft", Content::Text(FORMATTED))]);
    for out in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].into_iter().filter(|out| Path::new(out).exists()) {
        let outcome = place.run(&["run", "f.ft", "--arg", "x=3", "--out", out]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "9.0\n"), "{out}: {}", outcome.stderr);
    }
    // If standard output is a file, its other content stays.
    let command = format!("{} run f.ft --arg x=3 --out /dev/stdout >>log", env!("CARGO_BIN_EXE_chainrule"));
    for _ in 0..2 {
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &command])
                .current_dir(place.path())
                .status()
                .unwrap()
                .success()
        );
    }
    assert_eq!(place.read("log"), b"9.0\n9.0\n");
    assert_eq!(names(&place), ["f.ft", "log"]);
}

#[test]
fn outputs_of_every_command_are_replaced() {
    let graph = r#"{"n_inputs": 1, "n_intermediates": 1, "n_outputs": 1, "edges": [[0, 1], [1, 2]]}"#;
    let place = Place::with(&[("f.ft", Content::Text(FORMATTED))]);
    std::fs::write(place.path().join("graph.json"), graph).unwrap();
    let commands: &[(&[&str], &str)] = &[
        (&["run", "f.ft", "--arg", "x=3", "--out", "out"], "out"),
        (&["compile", "f.ft", "--out", "out"], "out"),
        (&["emit", "c", "f.ft", "--out", "out"], "out.c"),
        (&["emit", "rust", "f.ft", "--out", "out"], "out.rs"),
        (&["eliminate", "graph.json", "--svg", "out.svg"], "out.svg"),
    ];
    for (args, made) in commands {
        let made = place.path().join(made);
        std::fs::write(&made, "old").unwrap();
        // A process that has the file open keeps the old content: it is not truncated.
        let mut old = std::fs::File::open(&made).unwrap();
        let outcome = place.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        assert_eq!(std::io::read_to_string(&mut old).unwrap(), "old", "{args:?}");
        assert!(std::fs::read(&made).unwrap().len() > 3, "{args:?}");
        // A read-only file is not replaced.
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o444)).unwrap();
        let may_all = std::fs::OpenOptions::new().write(true).open(&made).is_ok();
        assert_eq!(place.run(args).code, Some(if may_all { 0 } else { 1 }), "{args:?}");
    }
}

#[test]
fn programs_come_through_pipes_whole() {
    let place = Place::with(&[]);
    // Two definitions as long as the prefix that detects the kind of a file.
    let first = format!("let f = fun (x : Double) -> x{}\n", " ".repeat(98));
    for program in [
        FORMATTED.to_owned(),
        format!("{first}let f2 = fun (x : Double) -> 2 * x\n"),
        format!("// {}\nlet f = fun (x : Double) -> x * x\n", "c".repeat(200)),
    ] {
        for args in [
            &["run", "/dev/stdin", "--arg", "x=3"][..],
            &["check", "/dev/stdin"],
            &["derive", "/dev/stdin", "--what", "gradient"],
            &["emit", "c", "/dev/stdin"],
        ] {
            let mut child = place.command(args).stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
            let piped = child.wait_with_output().unwrap();
            std::fs::write(place.path().join("stdin"), &program).unwrap();
            let named: Vec<&str> = args.iter().map(|arg| if *arg == "/dev/stdin" { "stdin" } else { *arg }).collect();
            let named = place.run(&named);
            assert_eq!(piped.status.code(), named.code, "{args:?}: {}", String::from_utf8_lossy(&piped.stderr));
            assert_eq!(named.code, Some(0), "{}", named.stderr);
            let piped = String::from_utf8_lossy(&piped.stdout).replace("/dev/stdin", "stdin");
            assert_eq!(piped, named.stdout, "{args:?}");
        }
    }
    // Saved functions, too.
    let place = Place::with(&[("f.ft", Content::Text(FORMATTED))]);
    assert_eq!(place.run(&["compile", "f.ft", "--out", "saved"]).code, Some(0));
    let mut child = place.command(&["run", "/dev/stdin", "--arg", "x=3"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&place.read("saved")).unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"9.0\n");
}

/// A file's name, the type of the argument, the file's bytes, and the result or part of the message.
type Case = (&'static str, &'static str, &'static [u8], Result<&'static str, &'static str>);

const DATA: &[Case] = &[
    ("one.csv", "[n]Double", b"1,2,3\n", Ok("[1.0,2.0,3.0]")),
    ("header.csv", "[n]Double", b"a,b (m),\xce\xbb\n1,2,3\n", Ok("[1.0,2.0,3.0]")),
    ("index.csv", "[n]Double", b",a,b\n0,1,2\n", Ok("[0.0,1.0,2.0]")),
    ("mark.csv", "[n]Double", b"\xef\xbb\xbf1,2\n", Ok("[1.0,2.0]")),
    ("semicolons.csv", "[n]Double", b"1;2;3\n", Err("separated by commas")),
    ("spaces.csv", "[n]Double", b"1 2 3\n4\n5\n", Err("\"1 2 3\" in line 1")),
    ("hex.csv", "[n]Double", b"0x10,0x20\n1,2\n", Err("\"0x10\" in line 1")),
    ("dollars.csv", "[n]Double", b"$1,$2\n", Err("\"$1\" in line 1")),
    ("percent.csv", "[n]Double", b"1%,2%\n1,2\n", Err("\"1%\" in line 1")),
    ("names.csv", "[n]Double", b"a,b\n", Err("names in line 1 and no numbers")),
    ("names.csv", "[n]Int", b"a,b\n# nothing\n", Err("names in line 1 and no numbers")),
    ("widths.csv", "[n]Double", b"a,b,c\n1,2\n", Err("3 names in line 1, and 2 numbers in the row after it")),
    ("big.csv", "[n]Int", b"9007199254740993,-9223372036854775808\n", Ok("[9007199254740993,-9223372036854775808]")),
    (
        "big.txt",
        "[n]Int",
        b"9007199254740993 9223372036854775807 1e3 2.0",
        Ok("[9007199254740993,9223372036854775807,1000,2]"),
    ),
    ("bigger.csv", "[n]Int", b"9223372036854775808\n", Err("not an integer of 64 bits")),
    ("fraction.txt", "[n]Int", b"9007199254740992.5", Err("is not an integer")),
    ("tiny.txt", "[n]Int", b"1.0000000000000000000001", Err("is not an integer")),
    ("huge.txt", "[n]Double", b"1 -1e400", Err("-1e400 in line 1 of huge.txt is too large")),
    ("huge.csv", "[n]Double", b"1e309,2\n", Err("1e309 in line 1 of huge.csv is too large")),
    ("infinite.csv", "[n]Double", b"inf,-Infinity,1e300\n", Ok("[\"inf\",\"-inf\",1e+300]")),
    ("twice.json", "[n]Double", b"[1, 2]", Ok("[1.0,2.0]")),
];

#[test]
fn data_is_read_exactly_or_not_at_all() {
    for (name, ty, content, expected) in DATA {
        let place = Place::with(&[(name, Content::Bytes(content))]);
        std::fs::write(place.path().join("f.ft"), format!("let f = fun (x : {ty}) -> x\n")).unwrap();
        let outcome = place.run(&["run", "f.ft", "--arg", &format!("x=@{name}")]);
        match expected {
            Ok(result) => {
                assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), *result), "{name}: {}", outcome.stderr);
            }
            Err(message) => {
                assert!(outcome.code == Some(1) && outcome.stdout.is_empty(), "{name}: {}", outcome.stdout);
                assert!(outcome.stderr.contains(message), "{name}: {}", outcome.stderr);
            }
        }
    }
}

#[test]
fn integers_in_npy_files_are_exact() {
    const HEADER: &str = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
    static BIG: [u8; 16] = [1, 0, 0, 0, 0, 0, 0x20, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let place = Place::with(&[
        ("big.npy", Content::Npy(HEADER, &BIG)),
        ("f.ft", Content::Text("let f = fun (x : [n]Int) -> x\nlet g = fun (x : [n]Double) -> x\n")),
    ]);
    let outcome = place.run(&["run", "f.ft", "--function", "f", "--arg", "x=@big.npy"]);
    assert_eq!(outcome.stdout.trim(), "[9007199254740993,9223372036854775807]", "{}", outcome.stderr);
    let outcome = place.run(&["run", "f.ft", "--function", "g", "--arg", "x=@big.npy"]);
    assert!(outcome.code == Some(1) && outcome.stderr.contains("9007199254740993"), "{}", outcome.stderr);
    // Through a pipe, too.
    let command = format!("cat big.npy | {} run f.ft --function f --arg x=@pipe.npy", env!("CARGO_BIN_EXE_chainrule"));
    symlink("/dev/stdin", place.path().join("pipe.npy")).unwrap();
    let output = std::process::Command::new("sh").args(["-c", &command]).current_dir(place.path()).output().unwrap();
    assert_eq!(
        output.stdout,
        b"[9007199254740993,9223372036854775807]\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn headers_of_npy_files_have_a_limit() {
    let place = Place::with(&[("f.ft", Content::Text("let f = fun (x : [n]Double) -> x\n"))]);
    let long = [&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], b"{'descr': '<f8'"].concat();
    let braces = |open: &str| {
        let header = open.repeat(9_000);
        [&b"\x93NUMPY\x01\x00"[..], &9_000_u16.to_le_bytes(), header.as_bytes()].concat()
    };
    let in_dictionary = |open: &str| {
        let header = format!("{{'shape': {}", open.repeat(9_000 / open.len() - 10));
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat()
    };
    for (bytes, message) in [
        (long, "its header has 4294967295 bytes"),
        (braces("{"), "its header has no `'`"),
        (braces("("), "its header has no `{`"),
        (braces("["), "its header has no `{`"),
        (in_dictionary("(("), "its header has a wrong `shape`"),
        (in_dictionary("["), "its header has a list without end"),
        (in_dictionary("'"), "its header has a wrong `shape`"),
        (b"\x93NUMPY".to_vec(), "ends within its header"),
    ] {
        std::fs::write(place.path().join("x.npy"), bytes).unwrap();
        let outcome = place.run(&["run", "f.ft", "--arg", "x=@x.npy"]);
        assert!(outcome.code == Some(1) && outcome.stderr.contains(message), "{message}: {}", outcome.stderr);
    }
}

#[test]
fn keys_that_stand_twice_are_refused() {
    let program = "let f = fun (p : {a : Double, b : Double}) (x : Double) -> p.a + p.b + x\n";
    let place = Place::with(&[
        ("f.ft", Content::Text(program)),
        ("twice.json", Content::Text("{\"x\": 1, \"p\": {\"a\": 1, \"b\": 2}, \"\\u0078\": 2}")),
        ("inner.json", Content::Text("{\"x\": 1,\n\"p\": {\"a\": 1, \"b\": 2, \"a\": 3}}")),
        ("p.json", Content::Text("{\"b\": 1, \"a\": 1, \"b\": 2}")),
        (
            "graph.json",
            Content::Text(
                "{\"n_inputs\": 1, \"n_inputs\": 2, \"n_intermediates\": 0, \"n_outputs\": 1, \"edges\": []}",
            ),
        ),
    ]);
    for (args, key) in [
        (&["run", "f.ft", "--args", "twice.json"][..], "`x` twice in one object, in line 1"),
        (&["run", "f.ft", "--args", "inner.json"], "`a` twice in one object, in line 2"),
        (&["run", "f.ft", "--arg", "x=1", "--arg", "p=@p.json"], "`b` twice"),
        (&["run", "f.ft", "--arg", "x=1", "--arg", "p={\"a\": 1, \"a\": 1, \"b\": 2}"], "`a` twice"),
        (&["eliminate", "graph.json"], "`n_inputs` twice"),
    ] {
        let outcome = place.run(args);
        assert!(outcome.code == Some(1) && outcome.stderr.contains(key), "{args:?}: {}", outcome.stderr);
    }
}

/// Headers whose keys stand twice, whose strings have escapes, or whose shapes multiply to more than 64 bits.
const HEADERS: [(&str, &str); 8] = [
    (
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'shape': (99999999999999, 99999999999)}",
        "`shape` twice",
    ),
    ("{'descr': '<i8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "`descr` twice"),
    ("{'descr': '<f8', 'fortran_order': False, 'sha\\x70e': (99999999999999, 99999999999)}", "an escape in a string"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (0x7fffffffffffffff, 2)}", "no `)`"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 99999999999)}", "ends before its data does"),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "a wrong `shape`"),
    ("{'descr': '<f8', 'fortran_order': False}", "no `shape`"),
    ("{'descr': [('shape', '<f8', (99999999999999,))], 'fortran_order': False, 'shape': (2,)}", "not numbers"),
];

#[test]
fn headers_of_npy_files_are_read_once_or_not_at_all() {
    static TWO: [u8; 16] = [0; 16];
    for (header, message) in HEADERS {
        let place = Place::with(&[
            ("x.npy", Content::Npy(header, &TWO)),
            ("f.ft", Content::Text("let f = fun (x : [n][m]Double) -> x\n")),
        ]);
        let outcome = place.run(&["run", "f.ft", "--arg", "x=@x.npy"]);
        assert!(outcome.code == Some(1) && outcome.stderr.contains(message), "{header}: {}", outcome.stderr);
    }
}

#[test]
fn numbers_of_all_formats_are_read_from_npy_files() {
    let formats: [(&str, &[u8], &str); 8] = [
        ("<f4", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], "[1.0,-2.0]"),
        (">f8", &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0], "[1.0,-2.0]"),
        ("|i1", &[5, 0xff], "[5.0,-1.0]"),
        ("|u1", &[5, 0xff], "[5.0,255.0]"),
        ("<i2", &[1, 2, 0xfe, 0xff], "[513.0,-2.0]"),
        (">u2", &[1, 2, 0xff, 0xfe], "[258.0,65534.0]"),
        (">i4", &[0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe], "[258.0,-2.0]"),
        ("<u4", &[0, 0, 0, 0x80, 1, 0, 0, 0], "[2147483648.0,1.0]"),
    ];
    for (format, data, expected) in formats {
        let header = format!("{{'descr': '{format}', 'fortran_order': False, 'shape': (2L,)}}");
        let place = Place::with(&[("f.ft", Content::Text("let f = fun (x : [n]Double) -> x\n"))]);
        let length = u16::try_from(header.len()).unwrap();
        let file = [&b"\x93NUMPY\x01\x00"[..], &length.to_le_bytes(), header.as_bytes(), data].concat();
        std::fs::write(place.path().join("x.npy"), file).unwrap();
        let outcome = place.run(&["run", "f.ft", "--arg", "x=@x.npy"]);
        assert_eq!(outcome.stdout.trim(), expected, "{format}: {}", outcome.stderr);
    }
}

#[test]
fn integers_are_written_to_npy_files_as_integers() {
    let place = Place::with(&[("f.ft", Content::Text("let f = fun (x : [n][2]Int) -> x\n"))]);
    let x = "[[9007199254740993,9223372036854775807],[-1,0],[-9223372036854775808,5]]";
    let written = place.run(&["run", "f.ft", "--arg", &format!("x={x}"), "--format", "npy", "--out", "x.npy"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let bytes = place.read("x.npy");
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (3,2,), }"));
    assert_eq!(bytes.len(), 128 + 48);
    assert_eq!(place.run(&["run", "f.ft", "--arg", "x=@x.npy"]).stdout.trim(), x);
}
