//! Queries over TCP (RFC 7766) and TLS (RFC 7858).

use std::net::{IpAddr, SocketAddr};

use super::{LoadError, arguments::Close, transport::Transport};

/// How connections are used.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub tls: bool,
    /// A connection is closed after so many queries; 0: never.
    pub queries_per_connection: u32,
    /// Whether TLS sessions are resumed.
    pub resumption: bool,
    pub close: Close,
    /// The longest query, in octets.
    pub octets_max: usize,
    /// A query is given up after so long, in nanoseconds.
    pub timeout_ns: i64,
}

/// Opens the transport of one thread with so many connections.
pub fn open(
    _server: SocketAddr,
    _sources: &[IpAddr],
    _clients: usize,
    _settings: Settings,
) -> Result<Box<dyn Transport>, LoadError> {
    Err(LoadError::Arguments("TCP and DoT are not there yet".into()))
}
