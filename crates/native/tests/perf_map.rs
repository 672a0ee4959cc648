//! Names for `perf`: the file of this process has a line for all named code, and no two lines overlap.

#![cfg(all(target_arch = "x86_64", unix))]
#![allow(clippy::unwrap_used)] // a test

use chainrule_backend_tests::filetests;
use chainrule_kernel::Kernel;
use chainrule_native::{Options, Program};
use chainrule_runtime::Backend;
use std::ops::Range;
use std::sync::Arc;

/// Returns the addresses of each line, and its name.
fn lines() -> Vec<(Range<usize>, String)> {
    let text = std::fs::read_to_string(format!("/tmp/perf-{}.map", std::process::id())).unwrap_or_default();
    let line = |line: &str| {
        let [start, len, name] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let [start, len] = [start, len].map(|number| usize::from_str_radix(number, 16).unwrap());
        (start..start + len, name.to_owned())
    };
    text.lines().map(line).collect()
}

#[test]
fn each_address_has_one_name() {
    let options = Options { perf_map: true, ..Options::default() };
    let kernel = filetests::kernel("rotation");
    let make =
        |name: &str, options: &Options| Program::new(Arc::new(Kernel { name: name.into(), ..kernel.clone() }), options);
    let Ok(first) = make("first", &options) else {
        println!("skipped: there is no native code here");
        return;
    };
    let code = |program: &Program| {
        let start = program.code().as_ptr().addr();
        start..start + program.code_bytes()
    };
    assert_eq!(lines(), [(code(&first), "first".to_owned())]);
    // Unnamed code is dropped and its addresses are reused; addresses of named code are not.
    let mut named = vec![(code(&first), "first".to_owned())];
    drop(first);
    for i in 0..20 {
        let name = format!("function_{i}");
        let program = make(&name, &options).unwrap();
        named.push((code(&program), name));
        drop(make("nameless", &Options::default()).unwrap());
    }
    let sizes = |program: &Program| program.bind(&[&[], &[2]], &[]).unwrap();
    let in_lanes = make("wide", &options).unwrap();
    let n_lanes = in_lanes.lanes_for(&sizes(&in_lanes));
    let mut found = lines();
    if n_lanes > 1 {
        assert_eq!(found.pop().unwrap().1, "wide in lanes");
    }
    named.push((code(&in_lanes), "wide".to_owned()));
    assert_eq!(found, named);
    let mut all = lines();
    all.sort_by_key(|(range, _)| range.start);
    assert!(all.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "{all:?}");
    std::fs::remove_file(format!("/tmp/perf-{}.map", std::process::id())).unwrap();
}
