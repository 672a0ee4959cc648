//! Names of code for profilers: the file `/tmp/perf-PID.map`, in which Linux `perf` looks up code made at run time.
//!
//! In: the name, address and length of a function. Out: a line of the file, `START LENGTH NAME`, with both numbers in
//! base 16. A file is only written if a caller requests it by calling [`record`]; compilation never does.
//!
//! Lines have no time, and `perf` takes any of several lines with an address. So named code reserves its addresses
//! after it is dropped ([`Executable::keep_addresses`]), and no two lines of this process overlap.

use crate::executable::Executable;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns the file that `perf` reads for this process.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()))
}

/// Adds a function to `file`, which is created if necessary: `len` bytes of `code` from `offset` on, whose addresses
/// are reserved. Does nothing if they are not all inside the code.
///
/// # Errors
/// Fails if the file cannot be written.
pub(crate) fn record(file: &Path, name: &str, code: &mut Executable, offset: usize, len: usize) -> io::Result<()> {
    let Some(start) = code.entry(offset).filter(|_| len <= code.len() - offset).map(<*const u8>::addr) else {
        return Ok(());
    };
    code.keep_addresses();
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = format!("{start:x} {len:x} {name}\n");
    // A single write at the end of the file, so that lines of several threads do not mix.
    fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{path, record};
    use crate::executable::{Executable, Policy};

    #[test]
    fn a_function_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("perf.map");
        let mut code = Executable::new(&[0xC3; 32], Policy::Ask).unwrap();
        record(&file, "first", &mut code, 0, 16).unwrap();
        record(&file, "second\nand third", &mut code, 16, 16).unwrap();
        record(&file, "not there", &mut code, 16, 17).unwrap();
        record(&file, "nor here", &mut code, 32, 0).unwrap();
        let start = code.entry(0).unwrap().addr();
        let expected = format!("{start:x} 10 first\n{:x} 10 second and third\n", start + 16);
        assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
        assert!(path().to_str().unwrap().ends_with(&format!("perf-{}.map", std::process::id())));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut code = Executable::new(&[0xC3], Policy::Ask).unwrap();
        assert!(record(folder.path(), "f", &mut code, 0, 1).is_err());
    }
}
