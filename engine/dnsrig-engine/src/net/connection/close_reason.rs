//! Why a connection is over that was not meant to be.

use crate::net::tls::Fault;

/// Why nothing more comes on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The server closed the connection (FIN).
    Closed,
    /// It reset the connection.
    Reset,
    /// It did not accept the connection.
    Refused,
    /// The TLS handshake or session failed.
    Tls(Fault),
}
