//! Runs the real `chainrule` command on files in a separate folder.

// Each test file uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Stdio};

/// File before the command runs.
#[derive(Clone, Copy)]
pub enum Content {
    Text(&'static str),
    Bytes(&'static [u8]),
    /// An NPY file of version 1.0 with this header and these bytes of data.
    Npy(&'static str, &'static [u8]),
    /// `start`, `open` so many times, `inner`, `close` as many times.
    Nested {
        start: &'static str,
        times: usize,
        open: &'static str,
        inner: &'static str,
        close: &'static str,
    },
    Folder,
}

use Content::{Bytes, Folder, Nested, Npy, Text};

impl Content {
    /// Returns the bytes on the disk; `None` for a folder.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Text(text) => text.as_bytes().to_vec(),
            Bytes(bytes) => bytes.to_vec(),
            Npy(header, data) => {
                // Data starts at a multiple of 64, after a line feed.
                let mut header = header.as_bytes().to_vec();
                header.resize((10 + header.len() + 1).next_multiple_of(64) - 11, b' ');
                header.push(b'\n');
                let length = u16::try_from(header.len()).unwrap().to_le_bytes();
                [b"\x93NUMPY\x01\x00", &length[..], &header, data].concat()
            }
            Nested { start, times, open, inner, close } => {
                [start.to_string(), open.repeat(times), inner.to_string(), close.repeat(times)].concat().into_bytes()
            }
            Folder => Vec::new(),
        }
    }
}

/// Prefix of standard error if the interpreter runs instead of machine code. Machines without native code are tested
/// with the same expectations; tests of this note use [`Place::command`]'s own output.
pub const NOTE: &str = "note: the interpreter runs this, which takes longer: ";

/// Result of a command.
pub struct Outcome {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Exactly.
    pub stdout_bytes: Vec<u8>,
}

/// Temporary folder.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn with(files: &[(&str, Content)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            let path = place.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match content {
                Folder => std::fs::create_dir_all(path).unwrap(),
                _ => std::fs::write(path, content.bytes()).unwrap(),
            }
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.path().join(name)).unwrap()
    }

    /// Returns the command for this folder, independent of the environment of the tests.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chainrule"));
        command.args(args).current_dir(self.0.path());
        for name in ["COLUMNS", "LINES", "CLICOLOR_FORCE", "CLICOLOR", "NO_COLOR", "RUST_BACKTRACE"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Outcome {
        outcome(self.command(args).output().unwrap())
    }
}

fn outcome(output: std::process::Output) -> Outcome {
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr)
            .split_inclusive('\n')
            .filter(|l| !l.starts_with(NOTE))
            .collect(),
        stdout_bytes: output.stdout,
    }
}
