//! Files that are read: once, since a pipe cannot be read twice, and up to a limit, since a device has no end.

use super::unreadable;
use chainrule::report::printable;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum length of a program or a graph, in bytes.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Maximum length of a file of data as text, in bytes.
const DATA_BYTES: u64 = 4 << 30;

/// Content of the file of a program.
pub enum Program {
    /// F~.
    Text(String),
    /// Bytes that `chainrule compile` has written.
    Saved(Vec<u8>),
}

/// The program in the file `path`.
pub fn read_program(path: &Path) -> Result<Program, String> {
    let bytes = read(path, PROGRAM_BYTES)?;
    if chainrule::is_saved(&bytes) { Ok(Program::Saved(bytes)) } else { text(path, bytes).map(Program::Text) }
}

/// The text of a program or a graph in the file `path`; of standard input for `-`.
pub fn read_source(path: &Path) -> Result<String, String> {
    text(path, read(path, PROGRAM_BYTES)?)
}

/// The text of a file of data.
pub fn read_data(path: &Path) -> Result<String, String> {
    text(path, read(path, DATA_BYTES)?)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let take = |from: &mut dyn Read, bytes: &mut Vec<u8>| from.take(limit + 1).read_to_end(bytes);
    let done = if path == Path::new("-") {
        take(&mut std::io::stdin().lock(), &mut bytes)
    } else {
        File::open(path).and_then(|mut file| take(&mut file, &mut bytes))
    };
    done.map_err(|e| unreadable(path, &e))?;
    if bytes.len() as u64 > limit {
        let (path, mib) = (shown(path), limit >> 20);
        return Err(format!(
            "error: {path} has more than {mib} MiB\n  help: name the file that was meant, or a part of it"
        ));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, String> {
    // A mark of the byte order is no part of the text.
    let is_marked = bytes.starts_with("\u{feff}".as_bytes());
    let text = String::from_utf8(bytes).map_err(|_| unreadable(path, &std::io::ErrorKind::InvalidData.into()))?;
    Ok(if is_marked { text["\u{feff}".len()..].to_owned() } else { text })
}

/// The name of a file as messages show it.
pub fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { printable(&path.display().to_string()) }
}

/// Replaces the content of the file `path`.
pub fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    chainrule::files::replace(path, content).map_err(|e| super::unwritable(path, &e))
}
