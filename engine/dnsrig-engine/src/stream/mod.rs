//! DNS over connections (RFC 7766, RFC 7858, RFC 9103): what all sides and instruments share that use TCP or TLS.
//!
//! [`framing`] and [`cut`] find messages in a stream, [`tls`] is a client's side of TLS: octets in, octets out, none of
//! them knows a socket. [`socket`] makes sockets with [`options`], [`tcp_info`] reads what the kernel knows of one, and a
//! [`line`] is one connection, made of all of these. Nothing here decides which query goes where, or waits.

pub mod chain;
pub mod cut;
pub mod framing;
pub mod line;
pub mod loss;
pub mod options;
pub mod socket;
pub mod tcp_info;
pub mod tls;

pub use self::{
    line::{Buffers, Line, Reading},
    loss::Loss,
    options::{Close, SocketOptions},
};
