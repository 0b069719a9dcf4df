//! From a captured packet to what a host sent: link layers, IP, tunnels, fragments, UDP, TCP. Bytes in and out, no
//! file.
//!
//! By hand, because every packet of a capture passes through here; what it reads is untrusted, and the tests give it
//! bytes of any kind.

pub mod fragments;
pub mod ip;
pub mod link;
pub mod streams;
pub mod tcp;
pub mod tunnel;
pub mod udp;

#[cfg(test)]
pub mod packet_tests;
#[cfg(test)]
mod streams_tests;
