//! Sockets: batches of datagrams, waiting for many of them, connections with and without TLS, network namespaces.
//!
//! Nothing here decides which query goes where.

pub mod connection;
pub mod framing;
pub mod namespace;
pub mod poller;
pub mod tcp_info;
pub mod tls;
pub mod udp_batch;
pub mod udp_client;
