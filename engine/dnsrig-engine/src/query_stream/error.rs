//! Why a stream could not be written or read.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::base::failure::Advice;

/// A stream could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The file system said no.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// It is some other file.
    #[error("{} is not a stream: {reason}", path.display())]
    Other { path: PathBuf, reason: &'static str },
    /// It is a stream of a later version.
    #[error("{} has version {version} of the format, but this engine reads version {}", path.display(), super::layout::VERSION)]
    Version { path: PathBuf, version: u32 },
    /// It is damaged: what is wrong, and at which byte of the file.
    #[error("{}, byte {offset}: {reason}", path.display())]
    Damaged { path: PathBuf, offset: u64, reason: String },
    /// What was given to the writer is no record that may come next.
    #[error("cannot write {}: {reason}", path.display())]
    Record { path: PathBuf, reason: &'static str },
}

impl StreamError {
    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> StreamError + use<> {
        let path = path.to_owned();
        move |error| StreamError::Read(path, error)
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> StreamError + use<> {
        let path = path.to_owned();
        move |error| StreamError::Write(path, error)
    }
}

impl Advice for StreamError {
    fn hint(&self) -> String {
        match self {
            StreamError::Read(..) => "give the path of a stream that you may read. It must be a file, not a pipe",
            StreamError::Write(..) => "give a path in an existing folder that you may write to, with free space (df)",
            StreamError::Other { .. } => "make a stream from a capture with `dnsrig replay prepare`",
            StreamError::Version { .. } => "use the dnsrig that made it, or make it again with `dnsrig replay prepare`",
            StreamError::Damaged { .. } => "copy it again, or make it again with `dnsrig replay prepare`",
            StreamError::Record { .. } => "this is a bug in dnsrig: please report it",
        }
        .into()
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, StreamError::Write(..) | StreamError::Record { .. }) { 1 } else { 2 }
    }
}
