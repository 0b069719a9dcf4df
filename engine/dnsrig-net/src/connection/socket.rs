//! Sockets of connections: what a user may choose of them, how they are made, and what their errors mean.

use std::{
    ffi::OsString,
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, OwnedFd},
};

use dnsrig_core::failure::Failure;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, recv, send, setsockopt, socket,
    sockopt,
};

use crate::{http2, tls::Fault};

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

/// Settings of a socket. With None, the system's default stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    pub close: Close,
    /// TCP_NODELAY: what is written goes out at once; without it, a small segment waits for the acknowledgement of
    /// the one before.
    pub nodelay: bool,
    /// TCP_QUICKACK, after each reading: what came is acknowledged at once, not up to 40 ms later.
    pub quickack: bool,
    /// TCP_CONGESTION: the algorithm's name.
    pub congestion: Option<String>,
    /// TCP_MAXSEG: the longest segment, in bytes, in both directions.
    pub mss: Option<u32>,
    /// SO_RCVBUF, in bytes. If it is set, the kernel does not enlarge the buffer.
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

impl SocketOptions {
    /// Sets up a socket for `server`, to see whether the system takes these options; sends nothing.
    pub fn check(&self, server: SocketAddr) -> Result<(), Failure> {
        self.apply(&unconnected(server).map_err(no_socket)?)
    }

    /// Sets up a socket that is not connected yet.
    pub fn apply(&self, socket: &OwnedFd) -> Result<(), Failure> {
        self.apply_plain(socket).map_err(no_socket)?;
        if let Some(name) = &self.congestion {
            setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name)).map_err(|error| match error {
                nix::Error::EPERM => Failure::bad_input(
                    format!("not allowed to use the congestion control {name:?}"),
                    "run it as root, or add it to net.ipv4.tcp_allowed_congestion_control",
                ),
                _ => Failure::bad_input(
                    format!("this kernel has no congestion control {name:?}"),
                    format!("see net.ipv4.tcp_available_congestion_control; `modprobe tcp_{name}` may add it"),
                ),
            })?;
        }
        if let Some(bytes) = self.mss {
            setsockopt(socket, sockopt::TcpMaxSeg, &bytes).map_err(|_| {
                let sentence = format!("this kernel does not accept an MSS of {bytes} bytes");
                Failure::bad_input(sentence, "give --mss a value from 88 to 32767")
            })?;
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
fn unconnected(server: SocketAddr) -> nix::Result<OwnedFd> {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)
}

fn no_socket(error: nix::Error) -> Failure {
    let error = io::Error::from(error);
    Failure::new(format!("cannot set up a TCP socket: {error}"), "see the limits of this process (ulimit -n)")
}

/// The result of an attempt to begin a connection.
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
    /// HTTP/2 failed, on the whole connection or for one query.
    Http(http2::Fault),
}

/// Begins a connection to `server`, from `source` or from any address; does not wait.
pub fn begin(server: SocketAddr, source: Option<IpAddr>, options: &SocketOptions) -> io::Result<Begun> {
    let socket = unconnected(server)?;
    options.apply(&socket).map_err(io::Error::other)?;
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
    // An error needs no action: if the connection is gone, the next reading returns that.
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

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
