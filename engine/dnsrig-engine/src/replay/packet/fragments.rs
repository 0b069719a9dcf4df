//! Datagrams put together from their fragments (RFC 791 §3.2, RFC 8200 §4.5), in bounded memory.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv6Addr,
};

use serde::Serialize;

use super::ip::Packet;

/// The most datagrams that are incomplete at a time; the oldest gives way.
const DATAGRAMS_MAX: usize = 4096;

/// The most bytes of fragments that wait.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The most fragments of a datagram: 65,535 bytes in the smallest fragments that a path has to carry are fewer.
const PIECES_MAX: usize = 512;

/// The longest payload of a datagram.
const PAYLOAD_BYTES_MAX: usize = 0xffff;

/// After so long a datagram is given up (RFC 8200 §4.5).
const PATIENCE_NS: i64 = 60_000_000_000;

/// What became of the fragments: `read` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub read: u64,
    /// Fragments of datagrams that were put together.
    pub used: u64,
    /// Repetitions of a fragment.
    pub repeated: u64,
    /// Fragments of datagrams whose other fragments are missing.
    pub incomplete: u64,
    /// Fragments of datagrams whose fragments overlap or contradict each other.
    pub overlapping: u64,
    /// Cut by the capture, or of no possible length.
    pub malformed: u64,
}

impl Counts {
    pub fn is_balanced(&self) -> bool {
        self.read == self.used + self.repeated + self.incomplete + self.overlapping + self.malformed
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    id: u32,
    protocol: u8,
}

struct Pieces {
    /// When its first fragment was seen, and which of all it was.
    time_ns: i64,
    number: u64,
    fragments: u64,
    /// Offset → the bytes there.
    pieces: BTreeMap<usize, Vec<u8>>,
    bytes: usize,
    /// The length of the whole, once its last fragment has come.
    whole_bytes: Option<usize>,
    is_wrong: bool,
}

/// A datagram that was put together.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// When its first fragment was seen.
    pub time_ns: i64,
    pub payload: Vec<u8>,
}

/// Datagrams that are not complete.
#[derive(Default)]
pub struct Fragments {
    waiting: HashMap<Key, Pieces>,
    /// Incomplete datagrams, in the order in which they began.
    oldest: BTreeMap<u64, Key>,
    waiting_bytes: usize,
    begun: u64,
    counts: Counts,
}

impl Fragments {
    /// Takes in a fragment, and gives the datagram that it completes.
    pub fn add(&mut self, time_ns: i64, packet: &Packet) -> Option<Whole> {
        let fragment = packet.fragment?;
        self.counts.read += 1;
        let end = fragment.offset + packet.payload.len();
        let is_odd = fragment.more_follow && !packet.payload.len().is_multiple_of(8);
        if !packet.is_whole || packet.payload.is_empty() || is_odd || end > PAYLOAD_BYTES_MAX {
            self.counts.malformed += 1;
            return None;
        }
        let Packet { source, destination, protocol, .. } = *packet;
        let key = Key { source, destination, id: fragment.id, protocol };
        self.make_room(time_ns, packet.payload.len());
        let pieces = self.waiting.entry(key).or_insert_with(|| {
            self.begun += 1;
            self.oldest.insert(self.begun, key);
            Pieces::begin(time_ns, self.begun)
        });
        if pieces.pieces.get(&fragment.offset).is_some_and(|piece| piece == packet.payload) {
            self.counts.repeated += 1;
            return None;
        }
        pieces.fragments += 1;
        if !pieces.is_wrong {
            pieces.add(fragment.offset, packet.payload, (!fragment.more_follow).then_some(end));
            self.waiting_bytes += packet.payload.len();
        }
        if !pieces.is_complete() {
            return None;
        }
        let pieces = self.take(key)?;
        self.counts.used += pieces.fragments;
        Some(Whole { time_ns: pieces.time_ns, payload: pieces.pieces.into_values().flatten().collect() })
    }

    /// What became of all fragments: those that still wait are given up.
    pub fn finish(mut self) -> Counts {
        while self.drop_oldest() {}
        self.counts
    }

    /// Gives up the oldest: those that have waited too long, and as many as have to make room.
    fn make_room(&mut self, now_ns: i64, bytes: usize) {
        while let Some((_, key)) = self.oldest.first_key_value() {
            let is_old = now_ns.saturating_sub(self.waiting[key].time_ns) > PATIENCE_NS;
            let is_full = self.waiting.len() >= DATAGRAMS_MAX || self.waiting_bytes + bytes > WAITING_BYTES_MAX;
            if !(is_old || is_full) || !self.drop_oldest() {
                return;
            }
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, &key)) = self.oldest.first_key_value() else { return false };
        if let Some(pieces) = self.take(key) {
            let counted = if pieces.is_wrong { &mut self.counts.overlapping } else { &mut self.counts.incomplete };
            *counted += pieces.fragments;
        }
        true
    }

    fn take(&mut self, key: Key) -> Option<Pieces> {
        let pieces = self.waiting.remove(&key)?;
        self.oldest.remove(&pieces.number);
        self.waiting_bytes -= pieces.bytes;
        Some(pieces)
    }
}

impl Pieces {
    fn begin(time_ns: i64, number: u64) -> Self {
        let pieces = BTreeMap::new();
        Pieces { time_ns, number, fragments: 0, pieces, bytes: 0, whole_bytes: None, is_wrong: false }
    }

    /// Adds a piece; what overlaps makes the datagram wrong (RFC 5722), and it stays so until it is given up.
    fn add(&mut self, offset: usize, payload: &[u8], whole_bytes: Option<usize>) {
        let end = offset + payload.len();
        let before = self.pieces.range(..=offset).next_back();
        let overlaps = before.is_some_and(|(at, piece)| at + piece.len() > offset)
            || self.pieces.range(offset..).next().is_some_and(|(&at, _)| at < end);
        let contradicts = whole_bytes.is_some() && self.whole_bytes.is_some()
            || whole_bytes.or(self.whole_bytes).is_some_and(|whole| {
                end > whole || self.pieces.last_key_value().is_some_and(|(at, piece)| at + piece.len() > whole)
            });
        self.is_wrong = overlaps || contradicts || self.pieces.len() >= PIECES_MAX;
        self.bytes += payload.len();
        self.whole_bytes = whole_bytes.or(self.whole_bytes);
        self.pieces.entry(offset).or_insert_with(|| payload.to_vec());
    }

    /// Whether nothing is missing: the pieces do not overlap, so it is enough to add up their lengths.
    fn is_complete(&self) -> bool {
        !self.is_wrong && self.whole_bytes == Some(self.bytes)
    }
}
