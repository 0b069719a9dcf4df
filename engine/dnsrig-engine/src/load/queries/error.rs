//! How preparing queries fails.

use std::{io, path::PathBuf};

use crate::base::failure::{Advice, Failure};

/// The queries could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A file could not be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// A line of a file of queries is none.
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    /// There is nothing to ask.
    #[error("{} contains no query", .0.display())]
    Empty(PathBuf),
    /// The list of zones could not be used.
    #[error(transparent)]
    Zones(#[from] Failure),
    /// What lies beside the list of zones does not describe a dataset that we know.
    #[error("{}: {reason}", path.display())]
    Dataset { path: PathBuf, reason: String },
    /// No query can be made of a zone.
    #[error("{}: {reason}", path.display())]
    Zone { path: PathBuf, reason: String },
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(&'static str),
}

impl Advice for QueryError {
    fn hint(&self) -> String {
        match self {
            QueryError::Read(..) => "give --queries a readable file, or - for standard input".into(),
            QueryError::Line { .. } | QueryError::Empty(_) => {
                "--queries takes a query a line, a name and a type, such as `www.example A`; lines that begin with ; or \
                 # are comments"
                    .into()
            }
            QueryError::Zones(error) => error.hint.clone(),
            QueryError::Dataset { .. } => {
                "make the dataset anew with this version's `generate`, or copy zones.list to another directory: then \
                 only names of zones are asked for"
                    .into()
            }
            QueryError::Zone { .. } => "leave that zone out of the list, or lower --missing or --sequence".into(),
            QueryError::Arguments(_) => "see `dnsrig load --help`".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        2
    }
}
