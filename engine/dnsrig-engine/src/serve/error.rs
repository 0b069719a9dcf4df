//! How a server fails.

use std::{io, net::SocketAddr, path::PathBuf};

use crate::base::{failure::Advice, rows::RowsError};

/// A server could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An argument does not go with another.
    #[error("{0}")]
    Arguments(&'static str),
    /// A socket could not be bound.
    #[error("cannot listen on {address} ({transport}): {reason}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// For what.
        transport: &'static str,
        /// Why not.
        reason: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// Rows could not be written.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// Something that the kernel should always do.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

impl ServeError {
    /// What ends a thread that answers.
    pub fn answering(error: io::Error) -> Self {
        ServeError::System("go on answering", error)
    }
}

impl Advice for ServeError {
    fn hint(&self) -> String {
        use io::ErrorKind::{AddrInUse, PermissionDenied};
        match self {
            ServeError::Arguments(_) => "see the `--help` of this server, such as `dnsrig serve zones --help`".into(),
            ServeError::Bind { address, reason, .. } => match reason.kind() {
                AddrInUse => "another server uses this address: stop it, or give another port".into(),
                PermissionDenied => {
                    "only root may use ports below 1024: give other ports (ADDRESS:PORT, and a port for TLS)".into()
                }
                _ => format!("see `ip address`: run this on a host that has {}", address.ip()),
            },
            ServeError::Write(..) => "give --out a folder that you may write to, with free space (df)".into(),
            ServeError::Rows(error) => error.hint(),
            ServeError::System(..) => "check memory, and that open files are not at their limit (ulimit -n)".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, ServeError::Arguments(_)) { 2 } else { 1 }
    }
}
