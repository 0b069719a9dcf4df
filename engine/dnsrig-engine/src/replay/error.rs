//! Why no stream could be prepared.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::base::{
    events::EventError,
    failure::{Advice, Failure},
};

/// No stream could be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// It is nothing that is known.
    #[error("{} is not a capture: {reason}", path.display())]
    Format { path: PathBuf, reason: String },
    /// What waits for being sorted could not be kept.
    #[error("cannot sort in {}: {}", .0.display(), .1)]
    Sort(PathBuf, io::Error),
    /// There is nothing to replay.
    #[error("no query was found in {items} packets or records")]
    Empty { items: u64, hint: String },
    #[error("the system provides no random numbers")]
    Random,
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error(transparent)]
    Event(#[from] EventError),
}

impl ReplayError {
    /// Makes a system error of sorting into one that names the directory of its files.
    pub fn sort(directory: &Path) -> impl Fn(io::Error) -> ReplayError + use<> {
        let directory = directory.to_owned();
        move |error| ReplayError::Sort(directory.clone(), error)
    }

    /// Makes a system error into one that names the capture.
    pub fn read(path: &Path) -> impl FnOnce(io::Error) -> ReplayError + use<> {
        let path = path.to_owned();
        move |error| ReplayError::Read(path, error)
    }
}

impl Advice for ReplayError {
    fn hint(&self) -> String {
        match self {
            ReplayError::Read(..) => "give captures that you may read, or - for standard input".into(),
            ReplayError::Format { .. } => {
                "pcap, pcapng, dnstap and C-DNS are read, plain or compressed; convert what else you have, for example with \
                 editcap".into()
            }
            ReplayError::Sort(..) => {
                "data beyond --memory is kept in files beside --out: choose an --out with free space (df), or raise --memory".into()
            }
            ReplayError::Empty { hint, .. } => hint.clone(),
            ReplayError::Random => "--anonymise needs a secret random key: see getrandom(2)".into(),
            ReplayError::Arguments(_) => "see the `--help` of this step, such as `dnsrig replay prepare --help`".into(),
            ReplayError::Failed(error) => error.hint.clone(),
            ReplayError::Event(error) => error.hint(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            ReplayError::Sort(..) | ReplayError::Random | ReplayError::Event(_) => 1,
            ReplayError::Failed(error) => error.exit_code,
            _ => 2,
        }
    }
}
