//! What happened to connections and streams, by the names of errors (RFC 9250 §8.4, RFC 9000 §20.1).

use std::collections::BTreeMap;

use quinn_proto::{ConnectionError, ConnectionStats, TransportErrorCode};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::{connection::CloseReason, tls::Fault};

/// The other side, or this one, has nothing to say any more (DOQ_NO_ERROR).
pub const NO_ERROR: u32 = 0;
/// DOQ_INTERNAL_ERROR.
pub const INTERNAL_ERROR: u32 = 1;
/// DOQ_PROTOCOL_ERROR.
pub const PROTOCOL_ERROR: u32 = 2;
/// DOQ_REQUEST_CANCELLED.
pub const REQUEST_CANCELLED: u32 = 3;

/// The names of the codes that DNS over QUIC has, from 0. The last name is for all other codes.
const DOQ_NAMES: [&str; 7] = [
    "DOQ_NO_ERROR",
    "DOQ_INTERNAL_ERROR",
    "DOQ_PROTOCOL_ERROR",
    "DOQ_REQUEST_CANCELLED",
    "DOQ_EXCESSIVE_LOAD",
    "DOQ_UNSPECIFIED_ERROR",
    "unknown application code",
];

/// The names of the codes that QUIC itself has, from 0.
const TRANSPORT_NAMES: [&str; 17] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
];

/// Other reasons why a connection ended.
const OTHER_NAMES: [&str; 6] = [
    "CRYPTO_ERROR",
    "unknown transport code",
    "idle timeout",
    "stateless reset",
    "no common version",
    "CRYPTO_ERROR (by this side)",
];

const CRYPTO: usize = 0;
const UNKNOWN: usize = 1;
const IDLE: usize = 2;
const RESET: usize = 3;
const VERSION: usize = 4;
const CRYPTO_BY_US: usize = 5;

/// Counts of connections that the other side ended, or that broke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// By the code of DNS over QUIC that the other side gave.
    pub by_application: [u64; DOQ_NAMES.len()],
    /// By the code of QUIC that the other side gave.
    pub by_transport: [u64; TRANSPORT_NAMES.len()],
    /// By the code of QUIC with which this side ended the connection.
    pub by_us: [u64; TRANSPORT_NAMES.len()],
    /// By other reasons.
    pub by_other: [u64; OTHER_NAMES.len()],
}

impl Ends {
    /// Counts why a connection ended. Returns what that means for its queries.
    pub fn count(&mut self, error: &ConnectionError) -> CloseReason {
        match error {
            ConnectionError::ApplicationClosed(close) => {
                self.by_application[doq_place(close.error_code.into_inner())] += 1;
                CloseReason::Closed
            }
            ConnectionError::ConnectionClosed(close) => {
                if let Some(alert) = alert(close.error_code) {
                    return self.count_other(CRYPTO, CloseReason::Tls(Fault::of_alert(alert)));
                }
                count_transport(&mut self.by_transport, &mut self.by_other, close.error_code)
            }
            ConnectionError::TransportError(error) => {
                if let Some(alert) = alert(error.code) {
                    return self.count_other(CRYPTO_BY_US, CloseReason::Tls(Fault::of_own_alert(alert)));
                }
                count_transport(&mut self.by_us, &mut self.by_other, error.code)
            }
            ConnectionError::Reset => self.count_other(RESET, CloseReason::Reset),
            ConnectionError::VersionMismatch => self.count_other(VERSION, CloseReason::Refused),
            ConnectionError::TimedOut => self.count_other(IDLE, CloseReason::Closed),
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => CloseReason::Closed,
        }
    }

    fn count_other(&mut self, kind: usize, reason: CloseReason) -> CloseReason {
        self.by_other[kind] += 1;
        reason
    }

    /// All counts above 0, by name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let with = |suffix: &str, names: &[&str], counts: &[u64]| {
            let named = names.iter().zip(counts).filter(|(_, count)| **count > 0);
            named.map(|(name, count)| (format!("{name}{suffix}"), *count)).collect::<Vec<_>>()
        };
        let by_peer = [(&DOQ_NAMES[..], &self.by_application[..]), (&TRANSPORT_NAMES, &self.by_transport)];
        let by_peer = by_peer.into_iter().flat_map(|(names, counts)| with("", names, counts));
        let others = with("", &OTHER_NAMES, &self.by_other);
        by_peer.chain(others).chain(with(" (by this side)", &TRANSPORT_NAMES, &self.by_us)).collect()
    }
}

/// The alert of TLS in a code of QUIC from 0x100 on, which has it in its last byte (RFC 9001 §4.8).
fn alert(code: TransportErrorCode) -> Option<u8> {
    let code = u64::from(code);
    (0x100..0x200).contains(&code).then_some(code as u8)
}

/// Counts a code of QUIC that is no alert of TLS.
fn count_transport(
    known: &mut [u64; TRANSPORT_NAMES.len()],
    other: &mut [u64; OTHER_NAMES.len()],
    code: TransportErrorCode,
) -> CloseReason {
    const REFUSED: u64 = 2;
    let code = u64::from(code);
    match known.get_mut(code as usize) {
        Some(count) => *count += 1,
        None => other[UNKNOWN] += 1,
    }
    if code == REFUSED { CloseReason::Refused } else { CloseReason::Closed }
}

/// The place of a code among the counts by name.
fn doq_place(code: u64) -> usize {
    (code as usize).min(DOQ_NAMES.len() - 1)
}

/// Counts of all connections of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Why connections ended, unless this side had no further use for them.
    pub ends: Ends,
    /// Streams that the server reset (RESET_STREAM), by code.
    pub streams_reset: [u64; DOQ_NAMES.len()],
    /// Streams on which the server did not want the query (STOP_SENDING), by code.
    pub streams_stopped: [u64; DOQ_NAMES.len()],
    /// Streams that ended without a whole message.
    pub streams_short: u64,
    /// Streams that this side cancelled, because the query had timed out or its answer was of no use.
    pub streams_cancelled: u64,
    /// Queries that waited because the server allowed no further stream.
    pub waited_for_stream: u64,
    /// Connections that gave way to others, because the server permitted no further stream though all had ended.
    pub connections_used_up: u64,
    /// Retry packets (RFC 9000 §8.1.2).
    pub retries: u64,
    /// The fewest bytes that came from the server until a full handshake was done; 0 without a full handshake.
    pub full_handshake_bytes_min: u64,
    pub packets_sent: u64,
    /// Packets that were declared lost (RFC 9002 §6).
    pub packets_lost: u64,
    /// Times at which the congestion window was made smaller.
    pub congestion_events: u64,
}

impl Counts {
    /// Whether nothing was counted.
    pub fn is_none(&self) -> bool {
        *self == Counts::default()
    }

    /// Counts a stream that the server reset.
    pub fn reset(&mut self, code: u64) {
        self.streams_reset[doq_place(code)] += 1;
    }

    /// Counts a stream that the server did not want.
    pub fn stopped(&mut self, code: u64) {
        self.streams_stopped[doq_place(code)] += 1;
    }

    /// Takes in the bytes that came from the server until a full handshake was done.
    pub fn full_handshake(&mut self, bytes: u64) {
        self.full_handshake_bytes_min = match self.full_handshake_bytes_min {
            0 => bytes,
            least if bytes > 0 => least.min(bytes),
            least => least,
        };
    }

    /// Adds what the library counted of a connection.
    pub fn add_path(&mut self, stats: &ConnectionStats) {
        self.packets_sent += stats.path.sent_packets;
        self.packets_lost += stats.path.lost_packets;
        self.congestion_events += stats.path.congestion_events;
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Counts) {
        let each = |mine: &mut [u64], other: &[u64]| {
            mine.iter_mut().zip(other).for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        };
        each(&mut self.ends.by_application, &other.ends.by_application);
        each(&mut self.ends.by_transport, &other.ends.by_transport);
        each(&mut self.ends.by_us, &other.ends.by_us);
        each(&mut self.ends.by_other, &other.ends.by_other);
        each(&mut self.streams_reset, &other.streams_reset);
        each(&mut self.streams_stopped, &other.streams_stopped);
        for (mine, other) in [
            (&mut self.streams_short, other.streams_short),
            (&mut self.streams_cancelled, other.streams_cancelled),
            (&mut self.waited_for_stream, other.waited_for_stream),
            (&mut self.connections_used_up, other.connections_used_up),
            (&mut self.retries, other.retries),
            (&mut self.packets_sent, other.packets_sent),
            (&mut self.packets_lost, other.packets_lost),
            (&mut self.congestion_events, other.congestion_events),
        ] {
            *mine = mine.saturating_add(other);
        }
        self.full_handshake(other.full_handshake_bytes_min);
    }

    /// A sentence part for each kind that was counted, for people.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut named = |what: &str, counts: BTreeMap<String, u64>| {
            let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            if !counts.is_empty() {
                words.push(format!("{what}: {}", counts.join(", ")));
            }
        };
        named("connections ended", self.ends.named());
        named("streams reset by the server", doq_named(&self.streams_reset));
        named("streams stopped by the server", doq_named(&self.streams_stopped));
        let others = [
            ("streams without a whole answer", self.streams_short),
            ("streams cancelled by this side", self.streams_cancelled),
            ("connections without further streams", self.connections_used_up),
            ("Retry packets", self.retries),
            ("packets sent", self.packets_sent),
            ("packets lost", self.packets_lost),
            ("congestion events", self.congestion_events),
        ];
        words.extend(others.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}: {count}")));
        words
    }
}

fn doq_named(counts: &[u64]) -> BTreeMap<String, u64> {
    let named = DOQ_NAMES.iter().zip(counts).filter(|(_, count)| **count > 0);
    named.map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Counts", 11)?;
        fields.serialize_field("ends", &self.ends.named())?;
        fields.serialize_field("streams_reset", &doq_named(&self.streams_reset))?;
        fields.serialize_field("streams_stopped", &doq_named(&self.streams_stopped))?;
        fields.serialize_field("streams_short", &self.streams_short)?;
        fields.serialize_field("streams_cancelled", &self.streams_cancelled)?;
        fields.serialize_field("connections_used_up", &self.connections_used_up)?;
        fields.serialize_field("retries", &self.retries)?;
        fields.serialize_field("full_handshake_bytes_min", &self.full_handshake_bytes_min)?;
        fields.serialize_field("packets_sent", &self.packets_sent)?;
        fields.serialize_field("packets_lost", &self.packets_lost)?;
        fields.serialize_field("congestion_events", &self.congestion_events)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::{ApplicationClose, VarInt};

    use super::*;

    fn closed(code: u64) -> ConnectionError {
        let error_code = VarInt::from_u64(code).unwrap();
        ConnectionError::ApplicationClosed(ApplicationClose { error_code, reason: Vec::new().into() })
    }

    #[test]
    fn each_end_is_counted_by_its_name() {
        let mut counts = Counts::default();
        for (error, reason) in [
            (closed(0), CloseReason::Closed),
            (closed(4), CloseReason::Closed),
            (closed(0xd098_ea5e), CloseReason::Closed),
            (ConnectionError::Reset, CloseReason::Reset),
            (ConnectionError::VersionMismatch, CloseReason::Refused),
            (ConnectionError::TimedOut, CloseReason::Closed),
        ] {
            assert_eq!(counts.ends.count(&error), reason, "{error}");
        }
        counts.reset(3);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!(twice.full_handshake_bytes_min, 0, "no handshake has no bytes");
        [3_000, 2_500, 2_700].into_iter().for_each(|bytes| counts.full_handshake(bytes));
        twice.add(&counts);
        twice.add(&Counts::default());
        assert_eq!(twice.full_handshake_bytes_min, 2_500);
        let mut twice = counts;
        twice.add(&counts);
        let words = twice.words().join("; ");
        for part in [
            "DOQ_EXCESSIVE_LOAD 2",
            "DOQ_NO_ERROR 2",
            "unknown application code 2",
            "stateless reset 2",
            "no common version 2",
            "idle timeout 2",
            "streams reset by the server: DOQ_REQUEST_CANCELLED 2",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(Counts::default().words().is_empty() && Counts::default().is_none() && !twice.is_none());
        let json = serde_json::to_value(twice).unwrap();
        assert_eq!((&json["ends"]["DOQ_NO_ERROR"], &json["retries"]), (&2.into(), &0.into()));
    }
}
