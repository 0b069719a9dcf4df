//! Sockets: batches of datagrams, waiting for many of them, connections with and without TLS, network namespaces. Also
//! the table of outstanding queries, and the headers of IPv6.
//!
//! Nothing here decides which query goes where.

pub mod connection;
pub mod http2;
pub mod ipv6;
pub mod namespace;
pub mod outstanding;
pub mod poller;
pub mod prefix;
pub mod quic;
pub mod source;
pub mod tcp_info;
pub mod tls;
pub mod udp_batch;
pub mod udp_client;
