//! How comparing clocks fails.

use std::{io, net::SocketAddr};

use crate::base::failure::Advice;

/// Clocks could not be compared, by a fault that is not a peer's.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    #[error("{0}")]
    Arguments(String),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
}

impl Advice for ClockError {
    fn hint(&self) -> String {
        match self {
            ClockError::Arguments(_) => "see `dnsrig clock compare --help`".into(),
            ClockError::Listen(address, error) if error.kind() == io::ErrorKind::AddrInUse => {
                format!("another program uses port {}: give another port, or 0 for any free port", address.port())
            }
            ClockError::Listen(address, _) => format!("see `ip address`: run this on a host that has {}", address.ip()),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, ClockError::Arguments(_)) { 2 } else { 1 }
    }
}
