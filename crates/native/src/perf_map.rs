//! Names for profilers: the file `/tmp/perf-PID.map`, in which Linux `perf` looks up code made at run time.
//!
//! In: the name of a function, where its code is, how long it is. Out: a line of the file, `START LENGTH
//! NAME`, both numbers in base 16. This is output to a file, so it happens only when a caller asks for it
//! by calling [`record`]; making code never does.
//!
//! Lines know no time: of two that have an address `perf` takes any. So code with a name keeps its addresses when it is
//! gone ([`Executable::keep_addresses`]), and no two lines of ours have one in common.

use crate::executable::Executable;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file that `perf` reads for this process.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()))
}

/// Adds a function to `file`, which is made if it is not there: `len` bytes of `code` from `offset` on, whose addresses it
/// keeps. Does nothing when they are not all of the code.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn record(file: &Path, name: &str, code: &mut Executable, offset: usize, len: usize) -> io::Result<()> {
    let Some(start) = code.entry(offset).filter(|_| len <= code.len() - offset).map(<*const u8>::addr) else {
        return Ok(());
    };
    code.keep_addresses();
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = format!("{start:x} {len:x} {name}\n");
    // One write at the end of the file, so that lines of several threads do not mix.
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
