//! From a captured packet to what a host sent: link layers, IP with UDP and tunnels, fragments, TCP. Bytes in and out,
//! no file.
//!
//! Written by hand, because every packet of a capture passes through here. The input is untrusted, and the tests give
//! it bytes of any kind.

pub mod fragments;
pub mod ip;
pub mod link;
pub mod tcp;

#[cfg(test)]
pub mod packet_tests;
#[cfg(test)]
mod tcp_tests;
