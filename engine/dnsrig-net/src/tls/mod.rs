//! TLS of a connection (RFC 7858, RFC 8446, RFC 9103): bytes in, bytes out, no socket.
//!
//! A [`Client`] has the settings of a client, a [`Session`] is the TLS of one connection, and a [`Fault`] is a kind of
//! failure.

pub mod arguments;
mod client;
mod fault;
pub mod identity;
#[cfg(test)]
mod pair;
mod session;
mod trust;

use rustls::{SupportedProtocolVersion, version::TLS13};

pub(crate) use self::trust::CountingVerifier;
pub use self::{
    client::{Client, Sessions, Settings},
    fault::Fault,
    session::{Handshake, Progress, Session},
    trust::{Pin, Trust, read_authorities, read_name},
};

/// The protocol inside TLS.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Its name in the handshake (ALPN, RFC 7301).
    pub alpn: &'static [u8],
    /// The versions of TLS that it allows.
    pub versions: &'static [&'static SupportedProtocolVersion],
}

/// DNS over TLS (RFC 7858).
pub const DOT: Protocol = Protocol { alpn: b"dot", versions: rustls::DEFAULT_VERSIONS };

/// DNS over QUIC (RFC 9250 §4.1.1), which has TLS 1.3 or newer (RFC 9001 §4.2).
pub const DOQ: Protocol = Protocol { alpn: b"doq", versions: &[&TLS13] };

/// Zone transfers over TLS (RFC 9103 §7.1 and §7.2): TLS 1.3 alone.
pub const XOT: Protocol = Protocol { alpn: DOT.alpn, versions: &[&TLS13] };

/// DNS over HTTPS (RFC 8484) with HTTP/2 (RFC 9113 §3.3 and §9.2).
pub const DOH: Protocol = Protocol { alpn: b"h2", versions: rustls::DEFAULT_VERSIONS };

impl Default for Protocol {
    fn default() -> Self {
        DOT
    }
}
