//! Reading of files: once, since a pipe cannot be read twice, and up to a limit, since a device has no end.

use super::unreadable;
use chainrule::report::printable;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

/// Maximum length of a program or a graph, in bytes.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Maximum length of a file of data as text, in bytes.
const DATA_BYTES: u64 = 4 << 30;

/// Maximum number of bytes that are read from a device: some devices have no end.
const DEVICE_BYTES: u64 = 64 << 20;

/// Content of a program file.
pub enum Program {
    /// F~ text.
    Text(String),
    /// Bytes that `chainrule compile` has written.
    Saved(Vec<u8>),
}

/// Reads the program in the file `path`.
pub fn read_program(path: &Path) -> Result<Program, String> {
    let bytes = read(path, PROGRAM_BYTES)?;
    if chainrule::is_saved(&bytes) { Ok(Program::Saved(bytes)) } else { text(path, bytes).map(Program::Text) }
}

/// Reads the text of a program or a graph in the file `path`; of standard input for `-`.
pub fn read_source(path: &Path) -> Result<String, String> {
    text(path, read(path, PROGRAM_BYTES)?)
}

/// Reads the text of a data file.
pub fn read_data(path: &Path) -> Result<String, String> {
    text(path, read(path, DATA_BYTES)?)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let too_long = |limit: u64| {
        let (path, mib) = (shown(path), limit >> 20);
        format!("error: {path} has more than {mib} MiB\n  help: name the file that was meant, or a part of it")
    };
    let (mut bytes, mut limit) = (Vec::new(), limit);
    let done = if path == Path::new("-") {
        std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)
    } else {
        let file = File::open(path).map_err(|e| unreadable(path, &e))?;
        let metadata = file.metadata().map_err(|e| unreadable(path, &e))?;
        if is_device(&metadata) {
            limit = limit.min(DEVICE_BYTES);
        } else if metadata.is_file() && metadata.len() > limit {
            return Err(too_long(limit));
        }
        file.take(limit + 1).read_to_end(&mut bytes)
    };
    done.map_err(|e| unreadable(path, &e))?;
    if bytes.len() as u64 > limit { Err(too_long(limit)) } else { Ok(bytes) }
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &Metadata) -> bool {
    false
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, String> {
    // A byte order mark is not part of the text.
    let is_marked = bytes.starts_with("\u{feff}".as_bytes());
    let text = String::from_utf8(bytes).map_err(|_| unreadable(path, &std::io::ErrorKind::InvalidData.into()))?;
    Ok(if is_marked { text["\u{feff}".len()..].to_owned() } else { text })
}

/// Returns the name of a file for messages.
pub fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { printable(&path.display().to_string()) }
}

/// Replaces the content of the file `path`.
pub fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    chainrule::files::replace(path, content).map_err(|e| super::unwritable(path, &e))
}
