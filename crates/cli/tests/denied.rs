//! A system that denies executable memory: the interpreter computes the same, and standard error states why it runs.
//!
//! The kernel itself denies it, to this process only (`PR_SET_MDWE`, from Linux 6.3 on).

#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::process::Command;
use support::{Content, NOTE, Place};

/// Returns the command, without executable memory; `None` if the system cannot deny it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn denied(mut command: Command) -> Option<Command> {
    use std::ffi::{c_int, c_ulong};
    use std::os::unix::process::CommandExt;
    const PR_SET_MDWE: c_int = 65;
    const PR_MDWE_REFUSE_EXEC_GAIN: c_ulong = 1;
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    let deny = || {
        let (flags, none) = (PR_MDWE_REFUSE_EXEC_GAIN, 0 as c_ulong);
        // SAFETY: the four numbers that this option takes; it accesses no memory.
        match unsafe { prctl(PR_SET_MDWE, flags, none, none, none) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: only a system call between `fork` and `exec`.
    unsafe { command.pre_exec(deny) };
    let mut probe = Command::new("true");
    // SAFETY: as above.
    unsafe { probe.pre_exec(deny) };
    probe.status().is_ok().then_some(command)
}

#[cfg(not(target_os = "linux"))]
fn denied(_: Command) -> Option<Command> {
    None
}

#[test]
fn the_interpreter_takes_over_and_says_why() {
    let place = Place::with(&[
        ("norm2.ft", Content::Text("let norm2 = fun (x : [n]Double) -> sum n (fun i -> sin x[i] ** 2)\n")),
        ("squares.ft", Content::Text("let squares = fun (x : [n]Double) -> build n (fun i -> x[i] ** 2)\n")),
        (
            "steps.ft",
            Content::Text("let steps = fun (u : [n]Double) -> ifold (fun u k -> build n (fun i -> u[i] * u[0])) u 2\n"),
        ),
    ]);
    let x = ["--arg", "x=[1, 2, 3]"];
    let compile = ["compile", "norm2.ft", "--what", "gradient", "--out", "saved.chainrule"];
    assert_eq!(place.run(&compile).code, Some(0));
    let runs: &[&[&str]] = &[
        &[&["run", "norm2.ft"], &x[..]].concat(),
        &[&["run", "norm2.ft", "--what", "value", "--what", "gradient", "--size", "n=3"], &x[..]].concat(),
        &[&["run", "norm2.ft", "--checkpoint-memory", "1MiB", "--what", "gradient"], &x[..]].concat(),
        &[&["run", "saved.chainrule"], &x[..]].concat(),
        // Two programs, and many directions of one: the note is printed once.
        &[&["run", "squares.ft", "--what", "jacobian", "--sparse"], &x[..]].concat(),
        &["run", "steps.ft", "--what", "jacobian", "--sparse", "--arg", "u=[1, 2, 3]"],
    ];
    for args in runs {
        let free = place.command(args).output().unwrap();
        if String::from_utf8_lossy(&free.stderr).contains(NOTE) {
            println!("skipped: this machine has no native code");
            return;
        }
        assert_eq!((free.status.code(), &*String::from_utf8_lossy(&free.stderr)), (Some(0), ""), "{args:?}");
        let Some(mut command) = denied(place.command(args)) else {
            println!("skipped: this system cannot deny a process executable memory");
            return;
        };
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), free.stdout), "{args:?}: {told}");
        let why = "this system denies executable memory: Permission denied (os error 13)";
        assert!(told.starts_with(&format!("{NOTE}{why}")) && told.lines().count() == 1, "{args:?}: {told}");
    }
    // Commands that do not run print no note, nor do those that fail before.
    for args in [&compile[..], &["check", "norm2.ft"], &["run", "norm2.ft", "--arg", "x=[1, a]"]] {
        let output = denied(place.command(args)).unwrap().output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains(NOTE), "{args:?}");
    }
}
