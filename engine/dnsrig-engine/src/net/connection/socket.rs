//! Sockets of connections: how they are made, and what their errors mean.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use nix::sys::socket::{MsgFlags, SockaddrStorage, bind, connect, recv, send, setsockopt, sockopt};

use super::options::{SocketOptions, unconnected};
use crate::net::tls::Fault;

/// What came of an attempt to begin a connection.
pub enum Begun {
    /// It is on its way.
    Connecting(OwnedFd),
    /// The other side, or the network, refused at once.
    Failed(nix::Error),
    /// This host has no port left for it.
    NoPort,
}

/// Why nothing more comes on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The server closed the connection (FIN).
    Closed,
    /// It reset the connection.
    Reset,
    /// It did not accept the connection.
    Refused,
    /// The TLS handshake or session failed.
    Tls(Fault),
}

/// Begins a connection to `server`, from `source` or from any address; does not wait.
pub fn begin(server: SocketAddr, source: Option<IpAddr>, options: &SocketOptions) -> io::Result<Begun> {
    let socket = unconnected(server)?;
    options.apply(&socket)?;
    if let Some(source) = source {
        if options.routed_sources && source.is_ipv6() {
            setsockopt(&socket, sockopt::IpFreebind, &true)?;
        }
        // The port is chosen when connecting, so that one serves for several servers (ip(7)).
        setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        match bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0))) {
            Err(nix::Error::EADDRINUSE) => return Ok(Begun::NoPort),
            bound => bound?,
        }
    }
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(server)) {
        Ok(()) | Err(nix::Error::EINPROGRESS) => Ok(Begun::Connecting(socket)),
        Err(nix::Error::EADDRNOTAVAIL | nix::Error::EADDRINUSE) => Ok(Begun::NoPort),
        Err(error) if is_refusal(error) => Ok(Begun::Failed(error)),
        Err(error) => Err(error.into()),
    }
}

/// Reads what there is into `space`: None if there is nothing, 0 bytes if the other side has closed.
pub fn read(socket: &OwnedFd, space: &mut [u8]) -> Result<Option<usize>, CloseReason> {
    match recv(socket.as_raw_fd(), space, MsgFlags::empty()) {
        Ok(count) => Ok(Some(count)),
        Err(nix::Error::EAGAIN | nix::Error::EINTR) => Ok(None),
        Err(_) => Err(CloseReason::Reset),
    }
}

/// Writes as much of `bytes` as there is room for, and returns how much that was.
pub fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, CloseReason> {
    match send(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(nix::Error::EAGAIN | nix::Error::EINTR) => Ok(0),
        Err(_) => Err(CloseReason::Reset),
    }
}

/// Acknowledges what was read so far at once (TCP_QUICKACK). It does not last (tcp(7)): call it after each reading.
pub fn acknowledge(socket: &OwnedFd) {
    let on: libc::c_int = 1;
    let bytes = size_of_val(&on) as libc::socklen_t;
    // It only hastens, so what it returns is nothing to act on: on a connection that is gone the next reading says so.
    // SAFETY: the kernel reads the int `on`, whose length `bytes` is, and keeps no pointer to it.
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, (&raw const on).cast(), bytes);
    }
}

/// How a connection that was not established counts.
pub fn loss(error: nix::Error) -> CloseReason {
    if error == nix::Error::ECONNREFUSED || is_unreachable(error) { CloseReason::Refused } else { CloseReason::Reset }
}

/// Whether it was the network, by an ICMP message or a missing route, that refused.
pub fn is_unreachable(error: nix::Error) -> bool {
    matches!(error, nix::Error::EHOSTUNREACH | nix::Error::ENETUNREACH)
}

fn is_refusal(error: nix::Error) -> bool {
    is_unreachable(error) || matches!(error, nix::Error::ECONNREFUSED | nix::Error::ECONNRESET | nix::Error::ETIMEDOUT)
}
