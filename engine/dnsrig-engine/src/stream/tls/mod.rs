//! TLS of a client's connection (RFC 7858, RFC 8446, RFC 9103): octets in, octets out, no socket.

mod client;
mod fault;
mod session;
pub mod sessions;

pub use self::{
    client::Client,
    fault::Fault,
    session::{Progress, Session},
};
