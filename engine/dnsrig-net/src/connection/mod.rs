//! DNS over connections (RFC 7766, RFC 7858, RFC 9103), for all clients and servers that use TCP or TLS.
//!
//! A [`client`] connection has a [`socket`], finds messages in its stream ([`dnsrig_dns::framing`]) and may use
//! [`tls`](super::tls). Servers accept connections within [`limits`]. Nothing here decides which query goes where, or
//! waits.

pub mod chain;
pub mod client;
pub mod limits;
pub mod socket;

pub use self::{
    client::{Buffers, Connection, Reading},
    socket::{Close, CloseReason, SocketOptions},
};
