//! What a user may choose of a connection's socket, and what the system makes of it.

use std::{ffi::OsString, io, net::SocketAddr, os::fd::OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, setsockopt, socket, sockopt};

use crate::{base::failure::Advice, net::tcp_info};

/// How a connection is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Close {
    /// RST: leaves no TIME_WAIT on either side, so that ports do not run out
    Rst,
    /// FIN, as clients do: the side that closes first keeps the port in TIME_WAIT for 60 s
    #[default]
    Fin,
}

/// Settings of a socket. What is None stays as the system has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    pub close: Close,
    /// TCP_NODELAY: what is written goes out at once; without, a small segment waits for the acknowledgement of the
    /// last.
    pub nodelay: bool,
    /// TCP_QUICKACK, after each reading: what came is acknowledged at once, not up to 40 ms later.
    pub quickack: bool,
    /// TCP_CONGESTION: the algorithm's name.
    pub congestion: Option<String>,
    /// TCP_MAXSEG: the longest segment, in bytes, in both directions.
    pub mss: Option<u32>,
    /// SO_RCVBUF, in bytes; set so, the kernel does not let it grow.
    pub receive_buffer: Option<u32>,
    /// IP_FREEBIND for IPv6: sources may be addresses that this host has by a local route alone.
    pub routed_sources: bool,
}

impl Default for SocketOptions {
    /// FIN, TCP_NODELAY, and nothing else.
    fn default() -> Self {
        SocketOptions {
            close: Close::Fin,
            nodelay: true,
            quickack: false,
            congestion: None,
            mss: None,
            receive_buffer: None,
            routed_sources: false,
        }
    }
}

/// The system does not do what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// No algorithm of that name.
    #[error("this kernel has no congestion control {0:?}")]
    NoCongestion(String),
    /// There is one, but not for everyone.
    #[error("not allowed to use the congestion control {0:?}")]
    CongestionForbidden(String),
    /// Out of the range that the kernel takes.
    #[error("this kernel does not accept an MSS of {0} bytes")]
    Mss(u32),
    /// Another socket cannot be made or set up.
    #[error("cannot set up a TCP socket: {0}")]
    Socket(#[from] io::Error),
}

impl Advice for OptionsError {
    fn hint(&self) -> String {
        match self {
            OptionsError::NoCongestion(name) => {
                format!("see net.ipv4.tcp_available_congestion_control; `modprobe tcp_{name}` may add it")
            }
            OptionsError::CongestionForbidden(_) => {
                "run it as root, or add it to net.ipv4.tcp_allowed_congestion_control".into()
            }
            OptionsError::Mss(_) => "give --mss a value from 88 to 32767".into(),
            OptionsError::Socket(_) => "see the limits of this process (ulimit -n)".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, OptionsError::Socket(_)) { 1 } else { 2 }
    }
}

/// What a socket has got, as read back from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obtained {
    /// The congestion control's name.
    pub congestion: String,
    /// SO_RCVBUF, in bytes: twice what was asked for, as the kernel counts its own needs too (socket(7)).
    pub receive_buffer: usize,
}

impl SocketOptions {
    /// Sets up a socket for `server`, to see what comes of it; sends nothing. Ask once, before connections are made.
    pub fn check(&self, server: SocketAddr) -> Result<Obtained, OptionsError> {
        let socket = unconnected(server).map_err(io::Error::from)?;
        self.apply(&socket)?;
        Ok(Obtained {
            congestion: tcp_info::congestion(&socket)?,
            receive_buffer: getsockopt(&socket, sockopt::RcvBuf).map_err(io::Error::from)?,
        })
    }

    /// Sets up a socket that is not connected yet.
    pub fn apply(&self, socket: &OwnedFd) -> Result<(), OptionsError> {
        self.apply_plain(socket).map_err(io::Error::from)?;
        if let Some(name) = &self.congestion {
            setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name)).map_err(|error| match error {
                nix::Error::EPERM => OptionsError::CongestionForbidden(name.clone()),
                _ => OptionsError::NoCongestion(name.clone()),
            })?;
        }
        if let Some(bytes) = self.mss {
            setsockopt(socket, sockopt::TcpMaxSeg, &bytes).map_err(|_| OptionsError::Mss(bytes))?;
        }
        Ok(())
    }

    fn apply_plain(&self, socket: &OwnedFd) -> nix::Result<()> {
        if self.nodelay {
            setsockopt(socket, sockopt::TcpNoDelay, &true)?;
        }
        if self.close == Close::Rst {
            // Closing then resets (tcp(7)), however this process ends; otherwise closing sends FIN.
            setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })?;
        }
        if let Some(bytes) = self.receive_buffer {
            let bytes = bytes as usize;
            // Forced needs CAP_NET_ADMIN; otherwise the kernel lowers it to net.core.rmem_max.
            setsockopt(socket, sockopt::RcvBufForce, &bytes)
                .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &bytes))?;
        }
        Ok(())
    }
}

/// A TCP socket of the server's family that does not block.
pub fn unconnected(server: SocketAddr) -> nix::Result<OwnedFd> {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)
}

impl From<OptionsError> for io::Error {
    fn from(error: OptionsError) -> Self {
        match error {
            OptionsError::Socket(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
