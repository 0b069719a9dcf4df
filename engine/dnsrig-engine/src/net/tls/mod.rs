//! TLS of a client's connection (RFC 7858, RFC 8446, RFC 9103): octets in, octets out, no socket.
//!
//! A [`Client`] knows whom it trusts and who it is, a [`Session`] is one connection's TLS, and a [`Fault`] a kind of what can
//! go wrong in it.

pub mod arguments;
mod client;
mod fault;
pub mod identity;
#[cfg(test)]
mod pair;
mod session;
pub mod sessions;
mod setup;
mod trust;
mod verify;

pub use self::{
    client::{Client, Settings, Versions},
    fault::Fault,
    session::{Progress, Session},
    setup::SetupError,
    trust::{Pin, Trust, read_authorities, read_name},
};
