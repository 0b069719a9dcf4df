//! How putting together fails.

use std::path::PathBuf;

use crate::base::{failure::Advice, rows::RowsError};

/// Files could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("{0} directories are named, and at most {1} may be")]
    Many(usize, usize),
    #[error("--out is {}, which is one of those that are put together", .0.display())]
    Over(PathBuf),
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, String),
    #[error("{} and {} do not belong together: {what} is {first} there and {other} here", .dirs[0].display(), .dirs[1].display())]
    Differ { dirs: [PathBuf; 2], what: String, first: String, other: String },
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, String),
    #[error(transparent)]
    Rows(#[from] RowsError),
}

impl Advice for MergeError {
    fn hint(&self) -> String {
        match self {
            MergeError::Many(..) => "put together some of them first".into(),
            MergeError::Over(_) => "give --out a directory of its own".into(),
            MergeError::Read(..) => {
                "give directories that `load --out` or `replay play --out` of this version wrote".into()
            }
            MergeError::Differ { .. } => "give what generators of one load wrote, started with equal options".into(),
            MergeError::Write(..) | MergeError::Rows(_) => {
                "give --out a directory that exists, with room left (df), and writable for you".into()
            }
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, MergeError::Write(..) | MergeError::Rows(_)) { 1 } else { 2 }
    }
}
