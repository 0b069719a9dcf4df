//! Why a dataset could not be made.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::clients::like::LikeError;
use crate::{
    base::failure::{Advice, Failure},
    dataset::name_table::NameTableError,
    query_stream::StreamError,
};

/// A dataset could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// There is a complete dataset already.
    #[error("{} already contains a complete dataset", .0.display())]
    Complete(PathBuf),
    /// There are files that make no dataset.
    #[error("{} is not empty, and contains no complete dataset", .0.display())]
    Occupied(PathBuf),
    /// The file system is full.
    #[error("no space is left for {}", .0.display())]
    NoSpace(PathBuf),
    /// Something could not be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// A zone file, or the list of them, cannot be used.
    #[error("{}: {}", .0.display(), .1)]
    Zone(PathBuf, String),
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
    /// A file would be replaced that is read, or a specification of a world cannot be used.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The clients' stream could not be written.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A population cannot be fitted to a stream.
    #[error(transparent)]
    Like(#[from] LikeError),
    /// The table of names that clients ask for could not be used.
    #[error(transparent)]
    Names(#[from] NameTableError),
}

impl Advice for DatasetError {
    fn hint(&self) -> String {
        match self {
            DatasetError::Complete(_) => "use it, or choose another --out".into(),
            DatasetError::Occupied(_) => {
                "choose another --out, or remove the folder if it is left over from an interrupted `generate`".into()
            }
            DatasetError::NoSpace(_) => {
                "make room (a tiny zone takes a block of the file system and an inode: df, df -i), remove the unfinished \
                 directory and start again"
                    .into()
            }
            DatasetError::Write(..) => "choose an --out that you may write to".into(),
            DatasetError::Zone(..) => "correct the file; `named-checkzone ZONE FILE` and `kzonecheck FILE` show more".into(),
            DatasetError::Arguments(_) => "see `dnsrig generate --help`".into(),
            DatasetError::Failed(error) => error.hint.clone(),
            DatasetError::Stream(error) => error.hint(),
            DatasetError::Like(error) => error.hint(),
            DatasetError::Names(error) => error.hint(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            DatasetError::NoSpace(_) | DatasetError::Write(..) => 1,
            DatasetError::Stream(error) => error.exit_code(),
            DatasetError::Names(error) => error.exit_code(),
            DatasetError::Failed(error) => error.exit_code,
            _ => 2,
        }
    }
}

/// Makes a system error into one that names the path.
pub fn writing(path: &Path) -> impl FnOnce(io::Error) -> DatasetError + use<> {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DatasetError::NoSpace(path),
        _ => DatasetError::Write(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart() {
        let full = io::Error::from_raw_os_error(nix::libc::ENOSPC);
        assert!(matches!(writing(Path::new("x"))(full), DatasetError::NoSpace(_)));
        let other = io::Error::from_raw_os_error(nix::libc::EACCES);
        assert!(matches!(writing(Path::new("x"))(other), DatasetError::Write(..)));
    }
}
