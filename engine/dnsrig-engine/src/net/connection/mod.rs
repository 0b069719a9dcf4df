//! DNS over connections (RFC 7766, RFC 7858, RFC 9103): what all sides and instruments share that use TCP or TLS.
//!
//! [`socket`] makes sockets; a [`client`] connection is made of one, of messages found in its stream
//! ([`framing`](super::framing)) and perhaps of [`tls`](super::tls). [`limits`] is for those who accept
//! connections. Nothing here decides which query goes where, or waits.

pub mod chain;
pub mod client;
pub mod limits;
pub mod socket;

pub use self::{
    client::{Buffers, Connection, Reading},
    socket::{Close, CloseReason, SocketOptions},
};
