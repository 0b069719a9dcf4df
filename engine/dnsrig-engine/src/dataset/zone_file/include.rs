//! Files that a master file includes (RFC 1035 §5.1): only below one folder, wherever symbolic links lead, and only so
//! many.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Files within files; the first is included by the zone's file.
pub const DEPTH_MAX: usize = 8;

/// The most files that a zone includes, each as often as it is included.
const FILES_MAX: u32 = 10_000;

/// The most bytes that a zone includes.
const BYTES_MAX: u64 = 1 << 32;

/// The files that zones may include, and how much one of them has included so far.
pub struct Includes<'a> {
    /// The folder that they are in, without symbolic links; none: $INCLUDE is refused.
    below: Option<&'a Path>,
    files: u32,
    bytes: u64,
}

impl<'a> Includes<'a> {
    pub fn new(below: Option<&'a Path>) -> Self {
        Includes { below, files: 0, bytes: 0 }
    }

    /// Opens the file `path`, which is relative to the folder of the including file. An error is a sentence.
    pub fn open(&mut self, path: &str, from: &Path, depth: usize) -> Result<(PathBuf, impl Read + use<>), String> {
        let Some(below) = self.below else {
            return Err("$INCLUDE is refused: name the folder of included files with --include-below".into());
        };
        if depth >= DEPTH_MAX {
            return Err(format!("$INCLUDE {path}: more than {DEPTH_MAX} files within each other"));
        }
        let path = from.parent().unwrap_or(Path::new("")).join(path);
        let wrong = |error: io::Error| format!("$INCLUDE {}: {error}", path.display());
        let (file, place) = opened(&path).map_err(wrong)?;
        if !place.starts_with(below) {
            return Err(format!("$INCLUDE {}: it lies outside of {}", path.display(), below.display()));
        }
        let meta = file.metadata().map_err(wrong)?;
        if !meta.is_file() {
            return Err(format!("$INCLUDE {}: it is not a regular file", path.display()));
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(meta.len());
        if self.files > FILES_MAX || self.bytes > BYTES_MAX {
            return Err(format!(
                "$INCLUDE {}: more than {FILES_MAX} files or {BYTES_MAX} bytes are included",
                path.display()
            ));
        }
        // A file that grows meanwhile is read up to its length of now.
        Ok((place, file.take(meta.len())))
    }
}

/// Opens a file, and finds out where it is without symbolic links. What is open cannot be replaced any more.
fn opened(path: &Path) -> io::Result<(File, PathBuf)> {
    // A pipe without a writer would block.
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let place = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok((file, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to 10,000 files and 4 GiB are included, and not one file or byte more.
    #[test]
    fn files_and_bytes_are_included_up_to_their_limits() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().canonicalize().unwrap();
        for (name, bytes) in [("empty", 0), ("byte", 1), ("large", BYTES_MAX)] {
            File::create(below.join(name)).unwrap().set_len(bytes).unwrap();
        }
        let includes = || Includes::new(Some(&below));
        let refused = |includes: &mut Includes, name| includes.open(name, &below.join("zone"), 0).err();
        let (mut many, mut much) = (includes(), includes());
        assert!((0..FILES_MAX).all(|_| refused(&mut many, "byte").is_none()));
        assert_eq!([refused(&mut much, "large"), refused(&mut much, "empty")], [None, None]);
        for (includes, name) in [(&mut many, "empty"), (&mut much, "byte")] {
            let reason = refused(includes, name).unwrap();
            assert!(reason.ends_with("more than 10000 files or 4294967296 bytes are included"), "{reason}");
        }
    }
}
