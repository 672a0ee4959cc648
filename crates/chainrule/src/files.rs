//! Atomic replacement of files.
//!
//! In: a path and its new content. Out: the file with that content, or an error and the unchanged file: the content is
//! written to a temporary file in the same folder, flushed to disk, and renamed. A full disk, an interrupt or a loss of
//! power at any time leaves the old content or the new.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of symbolic links between a path and its file, as in Linux.
const MAX_LINKS: usize = 40;

/// Replaces the content of the file `path`, or creates the file. Follows symbolic links and keeps permissions and
/// owner. Appends if it is not a regular file: a pipe, a terminal, `/dev/stdout`.
///
/// A writable regular file in a folder in which no other file can be created is overwritten in place; an interrupt may
/// then lose it.
///
/// # Errors
/// Returns the errors of the system. The old content is preserved.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("gradient.c");
/// chainrule::files::replace(&path, b"int x;")?;
/// assert_eq!(std::fs::read(&path)?, b"int x;");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn replace(path: impl AsRef<Path>, content: &[u8]) -> Result<()> {
    let Some(target) = target(path.as_ref())? else {
        return OpenOptions::new().append(true).open(path)?.write_all(content);
    };
    let old = match OpenOptions::new().write(true).open(&target) {
        // A read-only file is not replaced, even if its folder would allow it.
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (temporary, mut file) = match temporary_beside(&target) {
        Ok(made) => made,
        Err(error) => return in_place(old, content, error),
    };
    let written = write_like(&mut file, content, old.as_ref());
    let renamed = written.and_then(|()| std::fs::rename(&temporary, &target));
    if let Err(error) = renamed {
        // If this fails, there is no better alternative.
        let _ = std::fs::remove_file(&temporary);
        // A file that is a mount point cannot be the target of a rename.
        return if error.kind() == ErrorKind::ResourceBusy { in_place(old, content, error) } else { Err(error) };
    }
    sync_folder(&target);
    Ok(())
}

/// Returns the regular file, or the file to create, to which `path` leads; `None` if it leads to anything else.
fn target(path: &Path) -> Result<Option<PathBuf>> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        // An alias of an open file, as `/dev/stdout` is by a link to `/proc/self/fd/1`. The file behind it already has
        // readers and writers.
        if path.starts_with("/dev/fd") || path.starts_with("/proc") {
            return Ok(None);
        }
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let link = std::fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(link);
            }
            Ok(metadata) if metadata.is_file() || metadata.is_dir() => return Ok(Some(path)),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(error),
        }
    }
    Err(Error::other("too many symbolic links"))
}

/// Creates a new file in the folder of `target`.
fn temporary_beside(target: &Path) -> Result<(PathBuf, File)> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let folder = target.parent().unwrap_or(Path::new(""));
    loop {
        let name = format!(".chainrule-{}-{}.tmp", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // Left by a process with the same id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes `content` with the permissions and the owner of `old`, and waits until it is on disk.
fn write_like(file: &mut File, content: &[u8], old: Option<&File>) -> Result<()> {
    file.write_all(content)?;
    if let Some(old) = old {
        let metadata = old.metadata()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            // Only the superuser can set other owners.
            let _ = fchown(&*file, Some(metadata.uid()), Some(metadata.gid()));
        }
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()
}

/// Overwrites the file `old` if it cannot be replaced; `error` is the reason.
fn in_place(old: Option<File>, content: &[u8], error: Error) -> Result<()> {
    let impossible = [ErrorKind::PermissionDenied, ErrorKind::ResourceBusy].contains(&error.kind());
    match old {
        Some(mut old) if impossible => {
            old.write_all(content)?;
            old.set_len(content.len() as u64)?;
            old.sync_all()
        }
        _ => Err(error),
    }
}

/// Makes the new name of `target` durable. The content is safe before that.
fn sync_folder(target: &Path) {
    if cfg!(unix) {
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Some file systems cannot do it.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
