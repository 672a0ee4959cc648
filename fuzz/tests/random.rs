//! Fuzz targets on random bytes.

#![allow(clippy::unwrap_used)] // helpers of tests

use arbitrary::Unstructured;
use chainrule::{Function, vars};
use chainrule_backend_tests::generate::{functions, random_bytes};
use chainrule_fuzz::{programs, saved};
use chainrule_kernel::Kernel;
use chainrule_kernel::bytes::frame;

#[cfg(all(target_arch = "x86_64", unix))]
fn kernels(cases: u32, seed: u64) {
    use chainrule_fuzz::kernels;
    use std::cell::Cell;

    let [all, in_lanes, in_parts, in_pieces] = [0; 4].map(Cell::new);
    random_bytes(cases, seed, 0..3000, |bytes| {
        let ran = kernels::run(bytes);
        all.set(all.get() + ran.kernels);
        in_lanes.set(in_lanes.get() + ran.in_lanes);
        in_parts.set(in_parts.get() + ran.in_parts);
        in_pieces.set(in_pieces.get() + usize::from(ran.in_pieces));
        Ok(())
    });
    let [all, in_lanes, in_parts, in_pieces] = [all, in_lanes, in_parts, in_pieces].map(|n| n.get());
    println!("{all} kernels, {in_lanes} loops in lanes, {in_parts} in parts, {in_pieces} lines in pieces");
    let n = cases as usize;
    assert!(all > n / 2 && in_lanes > n / 20 && in_parts > n / 20 && in_pieces > n / 20);
}

#[cfg(all(target_arch = "x86_64", unix))]
#[test]
fn native_code_and_the_interpreter_agree_on_random_kernels() {
    kernels(600, 1);
}

/// Returns saved files, each with the first byte of its fuzz target: as a whole, and its content.
fn saved_files() -> Vec<Vec<u8>> {
    let x = vars("x", 3);
    let norm = Function::new("f", &x, &x.norm()).unwrap().gradient().compile().unwrap();
    let kernels = functions(20, 2, false, Kernel::clone);
    let kernels = kernels.iter().map(|case| chainrule_kernel::bytes::to_bytes(&case.kernel).unwrap());
    let of_kernels = kernels.flat_map(|file| [[&[0], &file[..]].concat(), [&[1], &file[frame::HEADER..]].concat()]);
    let file = norm.to_bytes().unwrap();
    of_kernels.chain([[&[2], &file[..]].concat(), [&[3], &file[frame::HEADER..]].concat()]).collect()
}

fn saved_bytes(cases: u32, seed: u64) {
    let files = saved_files();
    files.iter().for_each(|file| saved::run(file));
    random_bytes(cases, seed, 0..200, |bytes| {
        saved::run(bytes);
        let mut u = Unstructured::new(bytes);
        let mut file = u.choose(&files).unwrap().clone();
        for _ in 0..u.int_in_range(1..=4).unwrap() {
            let at = u.choose_index(file.len()).unwrap();
            file[at] = u.arbitrary().unwrap();
        }
        saved::run(&file);
        Ok(())
    });
}

#[test]
fn saved_bytes_of_any_kind_are_refused_or_sound() {
    saved_bytes(3000, 3);
}

#[test]
fn programs_are_compiled_and_differentiated_in_every_way_alike() {
    let told = std::cell::Cell::new(0);
    random_bytes(8, 4, 50..300, |bytes| {
        told.set(told.get() + u32::from(programs::run(bytes)));
        Ok(())
    });
    assert!(told.get() > 3, "{} programs told something", told.get());
}

/// `cargo test --release -p chainrule-fuzz -- --ignored --nocapture`; other inputs with another
/// `CHAINRULE_RANDOM_SEED`.
#[test]
#[ignore = "minutes"]
fn for_some_minutes() {
    let seed = std::env::var("CHAINRULE_RANDOM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1000);
    #[cfg(all(target_arch = "x86_64", unix))]
    kernels(50_000, seed);
    saved_bytes(1_000_000, seed + 1);
    random_bytes(1000, seed + 2, 100..800, |bytes| {
        programs::run(bytes);
        Ok(())
    });
}
