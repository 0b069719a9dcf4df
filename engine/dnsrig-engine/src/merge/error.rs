//! How putting together fails.

use std::path::PathBuf;

use crate::base::{failure::Advice, rows::RowsError};

/// Files could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("{0} folders are given, but at most {1} are possible")]
    Many(usize, usize),
    #[error("--out is {}, which is also an input", .0.display())]
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
            MergeError::Many(..) => "merge some of them first".into(),
            MergeError::Over(_) => "give --out another folder".into(),
            MergeError::Read(..) => {
                "give folders that `load --out` or `replay play --out` of this version wrote".into()
            }
            MergeError::Differ { .. } => {
                "give folders of generators that shared one load and were started with equal options".into()
            }
            MergeError::Write(..) | MergeError::Rows(_) => {
                "give --out an existing folder that you may write to, with free space (df)".into()
            }
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, MergeError::Write(..) | MergeError::Rows(_)) { 1 } else { 2 }
    }
}
