//! HTTP/2 (RFC 9113) for DNS over HTTPS (RFC 8484): bytes in, bytes out, no socket, no clock.
//!
//! A [`Client`] makes requests of queries and finds the answers in what comes; a [`Server`] is its counterpart. Both
//! know DNS messages and nothing else: no other method, header or body is needed. [`frame`] cuts a stream into frames,
//! [`hpack`] reads and writes header fields, and [`peer`] is what both sides keep of a connection.
//!
//! On the wire, the message ID is 0 (RFC 8484 §4.1): an answer belongs to the query of its stream. Towards the caller,
//! each answer has the ID that its query had.
//!
//! The crate `h2` would do the same asynchronously. Driven by hand over buffers in memory, it took more than ten times
//! the CPU time a query on the client's side (3.5 to 4.4 µs beside 0.23 to 0.35 µs), and it brings twenty further
//! crates. No HPACK library is both maintained and bounded.
//!
//! All that the other side sends is bounded: frames by [`frame::FRAME_BYTES_MAX`], header blocks and lists by
//! [`hpack::LIST_BYTES_MAX`], bodies by the longest DNS message, frames without progress by [`peer::IDLE_FRAMES_MAX`].

mod client;
mod fault;
mod frame;
#[cfg(test)]
mod fuzz_tests;
mod hpack;
mod peer;
mod request;
mod server;

pub use self::{
    client::Client,
    fault::{CODES, ErrorCode, Fault},
    request::{Method, Path, Requests},
    server::{Server, ServerFault},
};
