//! The options of the command line for connections over QUIC that carry many bytes.

use super::{Congestion, Flow, WINDOW_BYTES};

/// Connections over QUIC (RFC 9250: TLS 1.3, ALPN `doq`). Zone transfers never use early data (0-RTT).
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct QuicArguments {
    /// Congestion control of this side [default: cubic]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "QUIC")]
    pub quic_congestion: Option<Congestion>,
    /// Number of bytes that may be on their way, on each stream and on each connection (flow control, and the sender's
    /// buffer) [default: 16777216, enough for 1 Gbit/s with a round trip of 130 ms]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4_096..=1 << 30), help_heading = "QUIC")]
    pub quic_window_bytes: Option<u32>,
}

impl QuicArguments {
    /// How fast a connection may be.
    pub fn flow(&self) -> Flow {
        let window_bytes = Some(self.quic_window_bytes.unwrap_or(WINDOW_BYTES));
        Flow { congestion: self.quic_congestion.unwrap_or_default(), window_bytes }
    }
}
