//! What every server counts of its connections.

use std::ops::AddAssign;

use serde::Serialize;

/// What became of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Taken on.
    pub accepted: u64,
    /// Closed at once, because there were too many.
    pub refused: u64,
    /// TLS handshakes completed, the resumed ones among them.
    pub handshakes: u64,
    /// TLS handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Ended by an error of TLS, mostly before the handshake was complete.
    pub tls_failed: u64,
    /// Reset or broken by the peer.
    pub reset: u64,
    /// Closed by us, because no query came for too long.
    pub idle: u64,
}

impl AddAssign for Connections {
    fn add_assign(&mut self, other: Connections) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.tls_failed += other.tls_failed;
        self.reset += other.reset;
        self.idle += other.idle;
    }
}
