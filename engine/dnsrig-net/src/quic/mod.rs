//! DNS over QUIC (RFC 9250) without I/O: datagrams in, datagrams and messages out, at times that the caller gives.
//!
//! A [`client`] holds connections to one server, a [`server`] holds connections of its clients.
//! [`counts`] has the names of errors, and counts them.

pub mod arguments;
pub mod client;
pub mod counts;
pub mod event;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod pair_tests;
pub mod server;
mod timers;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use quinn_proto::{
    Connection, SendStream, Transmit, TransportConfig, VarInt,
    congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig},
};
use serde::Serialize;

/// The number of datagrams that a connection hands out at a time: as one buffer, which the kernel can cut up.
const SEGMENTS_MAX: usize = 10;

/// The longest datagram. Larger packets are not tried, because nothing here asks the network to report which ones do
/// not fit (RFC 9000 §14.2).
pub const DATAGRAM_BYTES_MAX: usize = 1_200;

/// How fast a connection sends, and how it reacts to loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// CUBIC (RFC 9438)
    #[default]
    Cubic,
    /// NewReno (RFC 9002 §7)
    Newreno,
    /// BBR, which is experimental in the library
    Bbr,
}

impl Congestion {
    fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Congestion::Cubic => Arc::new(CubicConfig::default()),
            Congestion::Newreno => Arc::new(NewRenoConfig::default()),
            Congestion::Bbr => Arc::new(BbrConfig::default()),
        }
    }
}

/// The default of [`Flow::window_bytes`] where many bytes are on their way: enough for 1 Gbit/s with a round trip of
/// 130 ms.
pub const WINDOW_BYTES: u32 = 16 << 20;

/// How fast a side sends, and how many bytes may be on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub congestion: Congestion,
    /// The number of bytes that the other side may send on a stream before this side has read them, and that this side
    /// keeps on a connection until the other side has acknowledged them. None: the library's defaults, 1.25 MB and 10
    /// MB.
    pub window_bytes: Option<u32>,
}

/// The settings of connections that both sides have in common: no datagrams, no streams in one direction.
fn transport(Flow { congestion, window_bytes }: Flow, peer_streams_max: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    if let Some(bytes) = window_bytes {
        transport.stream_receive_window(bytes.into()).receive_window(bytes.into()).send_window(bytes.into());
    }
    transport
        .max_concurrent_bidi_streams(peer_streams_max.into())
        .max_concurrent_uni_streams(0_u8.into())
        .datagram_receive_buffer_size(None)
        .mtu_discovery_config(None)
        .congestion_controller_factory(congestion.factory());
    transport
}

/// Converts between the caller's nanoseconds and the library's instants.
#[derive(Clone, Copy, Debug)]
struct Clock {
    base: Instant,
    base_ns: i64,
}

impl Clock {
    fn new(now_ns: i64) -> Self {
        Clock { base: Instant::now(), base_ns: now_ns }
    }

    fn at(self, now_ns: i64) -> Instant {
        self.base + Duration::from_nanos((now_ns - self.base_ns).max(0).unsigned_abs())
    }

    fn ns(self, instant: Instant) -> i64 {
        self.base_ns + instant.saturating_duration_since(self.base).as_nanos() as i64
    }
}

/// Writes as much as flow control allows and, if it is the `last`, the end of the stream (FIN) behind all of it.
/// Returns the number of bytes that were written, or `None` if the other side does not want them.
fn write(stream: &mut SendStream<'_>, bytes: &[u8], last: bool) -> Option<usize> {
    let mut written = 0;
    // The library reports when there is room again only after it refused a byte.
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(quinn_proto::WriteError::Blocked) => break,
            Err(_) => return None,
        }
    }
    if last && written == bytes.len() {
        stream.finish().ok()?;
    }
    Some(written)
}

/// Where a datagram goes, and the address of this host that it leaves from, if that matters.
pub type Way = (SocketAddr, Option<IpAddr>);

/// Hands out the datagrams that a connection has to send.
fn transmit(connection: &mut Connection, now: Instant, buffer: &mut Vec<u8>, mut send: impl FnMut(&[u8], Way)) {
    loop {
        buffer.clear();
        let Some(transmit) = connection.poll_transmit(now, SEGMENTS_MAX, buffer) else { return };
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        buffer[..transmit.size].chunks(segment).for_each(|datagram| send(datagram, way(&transmit)));
    }
}

fn way(transmit: &Transmit) -> Way {
    (transmit.destination, transmit.src_ip)
}

/// Stops to read a stream: the answer is not wanted any more.
fn cancel(connection: &mut Connection, stream: quinn_proto::StreamId) {
    let _ = connection.recv_stream(stream).stop(code(counts::REQUEST_CANCELLED));
}

fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}
