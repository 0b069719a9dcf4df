//! DNS messages out of TCP: segments brought into order, and cut into messages by the lengths before them (RFC 1035
//! §4.2.2). All of it in bounded memory: of a segment that cannot be used it is counted why.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv6Addr,
};

use dnsrig_dns::{
    header::{AD, CD, HEADER_BYTES, Header, RD},
    record::Walk,
};
use serde::Serialize;

use crate::{
    query_stream::Transport,
    replay::message::{Kind, Message, kind},
};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'p> {
    pub source_port: u16,
    pub destination_port: u16,
    /// The number of the payload's first byte. A SYN takes a number as well.
    pub sequence: u32,
    pub is_syn: bool,
    /// FIN or RST: nothing comes behind it.
    pub is_end: bool,
    pub payload: &'p [u8],
}

/// Reads a segment from the payload of an IP packet; none if it is malformed.
#[inline]
pub fn parse(payload: &[u8]) -> Option<Segment<'_>> {
    let header: &[u8; 20] = payload.first_chunk()?;
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < 20 {
        return None;
    }
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_syn = header[13] & SYN != 0;
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    Some(Segment {
        source_port: number(0),
        destination_port: number(2),
        // Fast open (RFC 7413): the payload of a SYN stands behind it.
        sequence: sequence.wrapping_add(u32::from(is_syn)),
        is_syn,
        is_end: header[13] & (FIN | RST) != 0,
        payload: payload.get(header_bytes..)?,
    })
}

/// The most connections that are followed at a time; the connection without a segment for the longest time gives way.
const STREAMS_MAX: usize = 65_536;

/// The most bytes that wait in all of them.
const BYTES_MAX: usize = 64 << 20;

/// Behind a hole so many segments of a connection wait, of so many bytes, for so long. A capture drops packets that the
/// server received, and such a hole is never filled.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 128 << 10;
const PATIENCE_NS: i64 = 2_000_000_000;

/// A segment further ahead belongs to something else: TCP's windows are hardly ever larger.
const AHEAD_BYTES_MAX: i64 = 1 << 24;

/// The length before a message.
const LENGTH_BYTES: usize = 2;

/// A longer query is not looked for where messages were lost. Queries with a long cookie, padding and a signature have
/// fewer bytes.
const SEARCHED_BYTES_MAX: usize = 4096;

/// Nor is a query with more records: it has EDNS (RFC 6891) and a signature (RFC 8945) at most.
const ADDITIONAL_MAX: u16 = 2;

/// Where in a header the second byte of flags is.
const FLAGS_AT: usize = 3;

/// What became of the segments from clients: `read` is the sum of the others up to `unusable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub read: u64,
    /// Without a payload: they begin and end connections and acknowledge.
    pub empty: u64,
    /// With bytes of messages.
    pub used: u64,
    /// With nothing that was not there before.
    pub repeated: u64,
    /// Behind a hole that was not filled, up to where messages are recognised again.
    pub behind_hole: u64,
    /// In connections whose begin was not captured, up to where messages are recognised.
    pub without_begin: u64,
    /// Behind something that is no message, or behind the end of the connection.
    pub unusable: u64,
    /// Connections that were followed.
    pub connections: u64,
    /// Messages of which a part is missing.
    pub messages_cut: u64,
    /// Holes that were skipped, and the bytes that the capture lacks there.
    pub holes: u64,
    pub missing_bytes: u64,
}

impl Counts {
    pub fn is_balanced(&self) -> bool {
        self.read == self.empty + self.used + self.repeated + self.behind_hole + self.without_begin + self.unusable
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    source_port: u16,
    destination_port: u16,
}

/// Where in a connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Where a message begins is not known: the begin was not captured.
    NoBegin,
    /// Nor is it here: something is missing.
    BehindHole,
    Reading,
    /// What came was no message, or the connection has ended.
    Done,
}

struct Stream {
    key: Key,
    state: State,
    /// Whether the first byte is known: the begin was captured.
    has_begin: bool,
    /// The number of the next byte, and how many bytes there were before it.
    next: u32,
    position: u64,
    /// The number of the first byte.
    base: u32,
    /// Where the connection ends, once that is known.
    end: Option<u64>,
    /// Which of all segments was its last.
    touched: u64,
    /// The part of a message that has come, with its length, and when it began. Where messages were lost: what may
    /// begin with a query.
    part: Vec<u8>,
    part_ns: i64,
    /// Bytes of the part are missing.
    is_cut: bool,
    messages: u64,
    /// Segments after a hole: their positions, when they came, and what they hold.
    waiting: BTreeMap<u64, (i64, Vec<u8>)>,
    waiting_bytes: usize,
}

/// Connections that are followed, in the direction to a server.
#[derive(Default)]
pub struct Streams {
    streams: HashMap<Key, Stream>,
    /// Connections with waiting segments, the oldest segment first.
    oldest: BTreeMap<u64, Key>,
    touches: u64,
    bytes: usize,
    counts: Counts,
}

impl Streams {
    /// Takes in a segment from a client, and calls `each` with the messages that it completes.
    pub fn add(
        &mut self,
        time_ns: i64,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        segment: &Segment,
        mut each: impl FnMut(Message),
    ) {
        self.counts.read += 1;
        let Segment { source_port, destination_port, .. } = *segment;
        let key = Key { source, destination, source_port, destination_port };
        let is_known = self.streams.contains_key(&key);
        if !is_known && !segment.is_syn && segment.payload.is_empty() {
            self.counts.empty += 1;
            return;
        }
        if !is_known {
            while self.streams.len() >= STREAMS_MAX && self.drop_oldest(&mut each) {}
            self.counts.connections += 1;
        }
        self.touches += 1;
        let stream = self.streams.entry(key).or_insert_with(|| Stream::new(key, segment));
        let before = if is_known { stream.bytes() } else { 0 };
        self.oldest.remove(&stream.touched);
        if is_known && stream.ends_before(segment) {
            // The port is used again.
            self.counts.connections += 1;
            stream.give_up(&mut self.counts, &mut each);
            *stream = Stream::new(key, segment);
        }
        stream.touched = self.touches;
        self.oldest.insert(self.touches, key);
        stream.take(time_ns, segment, &mut self.counts, &mut each);
        self.bytes = self.bytes + stream.bytes() - before;
        while self.bytes > BYTES_MAX && self.drop_oldest(&mut each) {}
    }

    /// What became of all segments: what still waits is given up, and perhaps holds messages.
    pub fn finish(mut self, mut each: impl FnMut(Message)) -> Counts {
        while self.drop_oldest(&mut each) {}
        self.counts
    }

    #[cfg(test)]
    pub fn bytes_held(&self) -> usize {
        self.bytes
    }

    fn drop_oldest(&mut self, each: &mut impl FnMut(Message)) -> bool {
        let Some((_, key)) = self.oldest.pop_first() else { return false };
        if let Some(mut stream) = self.streams.remove(&key) {
            self.bytes -= stream.bytes();
            stream.give_up(&mut self.counts, each);
        }
        true
    }
}

impl Stream {
    fn new(key: Key, segment: &Segment) -> Self {
        Stream {
            key,
            state: if segment.is_syn { State::Reading } else { State::NoBegin },
            has_begin: segment.is_syn,
            next: segment.sequence,
            position: 0,
            base: segment.sequence,
            end: None,
            touched: 0,
            part: Vec::new(),
            part_ns: 0,
            is_cut: false,
            messages: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.part.capacity() + self.waiting_bytes
    }

    /// How far in front of the next byte a segment begins; below 0 if it begins before it.
    fn ahead(&self, segment: &Segment) -> i64 {
        i64::from(segment.sequence.wrapping_sub(self.next) as i32)
    }

    /// Whether a segment is of a later connection with the same ports, whose begin may be missing from the capture.
    fn ends_before(&self, segment: &Segment) -> bool {
        if segment.is_syn {
            return segment.sequence != self.base;
        }
        let ahead = self.ahead(segment);
        let is_far = ahead.abs() > AHEAD_BYTES_MAX;
        let has_ended = self.end.is_some_and(|end| self.position >= end);
        // To keep a connection alive, hosts send the byte before the first one (RFC 9293 §3.8.4).
        let is_before_begin = self.has_begin && self.position as i64 + ahead + (segment.payload.len() as i64) < 0;
        !segment.payload.is_empty() && (is_far || is_before_begin || has_ended && ahead > 0)
    }

    fn take(&mut self, time_ns: i64, segment: &Segment, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        let ahead = self.ahead(segment);
        let end = ahead + segment.payload.len() as i64;
        if segment.is_end && (0..=AHEAD_BYTES_MAX).contains(&end) {
            self.end.get_or_insert(self.position + end as u64);
        }
        if segment.payload.is_empty() {
            counts.empty += 1;
        } else if end <= 0 {
            counts.repeated += 1;
        } else if ahead > AHEAD_BYTES_MAX {
            counts.unusable += 1;
        } else if ahead > 0 {
            self.wait(time_ns, self.position + ahead as u64, segment.payload, counts);
        } else {
            self.pass(time_ns, &segment.payload[-ahead as usize..], counts, each);
            self.read_waiting(counts, each);
        }
        let oldest_ns = self.waiting.first_key_value().map(|(_, (time_ns, _))| *time_ns);
        let is_old = oldest_ns.is_some_and(|oldest_ns| time_ns.saturating_sub(oldest_ns) > PATIENCE_NS);
        if is_old || self.waiting.len() > WAITING_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            self.skip_hole(counts, each);
        }
        if self.end.is_some_and(|end| self.position >= end) {
            self.cut_message(counts, each);
            self.state = State::Done;
        }
    }

    /// Keeps a segment that stands after a hole. Of two at one place the longer one is kept.
    fn wait(&mut self, time_ns: i64, position: u64, payload: &[u8], counts: &mut Counts) {
        if let Some((_, before)) = self.waiting.get(&position) {
            counts.repeated += 1;
            if before.len() >= payload.len() {
                return;
            }
            self.waiting_bytes -= before.len();
        }
        self.waiting_bytes += payload.len();
        self.waiting.insert(position, (time_ns, payload.to_vec()));
    }

    /// Reads those that no longer stand after a hole.
    fn read_waiting(&mut self, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() > self.position {
                return;
            }
            let (position, (time_ns, payload)) = first.remove_entry();
            self.waiting_bytes -= payload.len();
            match payload.get((self.position - position) as usize..) {
                None | Some([]) => counts.repeated += 1,
                Some(rest) => self.pass(time_ns, rest, counts, each),
            }
        }
    }

    /// Goes on behind the hole: the message around it is lost.
    fn skip_hole(&mut self, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        let Some((&position, _)) = self.waiting.first_key_value() else { return };
        let missing = position - self.position;
        counts.holes += 1;
        counts.missing_bytes += missing;
        let left = message_bytes(&self.part).map(|bytes| (bytes - self.part.len()) as u64);
        if self.state == State::Reading && left.is_some_and(|left| missing < left) {
            // The length of the message is known, so it is known where the next one begins.
            self.part.resize(self.part.len() + missing as usize, 0);
            self.is_cut = true;
        } else {
            self.cut_message(counts, each);
            if self.state != State::Done {
                self.state = State::BehindHole;
            }
        }
        self.next = self.next.wrapping_add(missing as u32);
        self.position = position;
        self.read_waiting(counts, each);
    }

    /// Reads all that waits: nothing more comes.
    fn give_up(&mut self, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        while !self.waiting.is_empty() {
            self.skip_hole(counts, each);
        }
        self.cut_message(counts, each);
    }

    /// Nothing more comes of the message that has begun. What may have begun with a query does not, but a query may be
    /// in it.
    fn cut_message(&mut self, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        if matches!(self.state, State::NoBegin | State::BehindHole) {
            self.search(self.part_ns, &[], false, counts, each);
        }
        counts.messages_cut += u64::from(self.state == State::Reading && !self.part.is_empty());
        (self.part, self.is_cut) = (Vec::new(), false);
    }

    /// Takes the bytes that come next.
    fn pass(&mut self, time_ns: i64, payload: &[u8], counts: &mut Counts, each: &mut impl FnMut(Message)) {
        self.next = self.next.wrapping_add(payload.len() as u32);
        self.position += payload.len() as u64;
        let is_used = match self.state {
            State::NoBegin | State::BehindHole => self.search(time_ns, payload, true, counts, each),
            State::Reading => self.read(time_ns, payload, counts, each),
            State::Done => false,
        };
        let counted = match self.state {
            _ if is_used => &mut counts.used,
            State::NoBegin => &mut counts.without_begin,
            State::BehindHole => &mut counts.behind_hole,
            State::Reading | State::Done => &mut counts.unusable,
        };
        *counted += 1;
    }

    /// Looks for a query in what came since messages were lost, and reads on from there; whether there is one.
    fn search(
        &mut self,
        time_ns: i64,
        payload: &[u8],
        more_may_come: bool,
        counts: &mut Counts,
        each: &mut impl FnMut(Message),
    ) -> bool {
        let before = self.part.len();
        let mut bytes = std::mem::take(&mut self.part);
        bytes.extend_from_slice(payload);
        let begins = |at: &usize| match query_bytes(&bytes[*at..]) {
            Begins::Query(_) => true,
            Begins::Unknown => more_may_come,
            Begins::Other => false,
        };
        let at = (0..bytes.len()).find(begins).unwrap_or(bytes.len());
        if at >= before {
            self.part_ns = time_ns;
        }
        bytes.drain(..at);
        let Begins::Query(length) = query_bytes(&bytes) else {
            self.part = bytes;
            return false;
        };
        self.state = State::Reading;
        let rest = bytes.split_off(length);
        self.part = bytes;
        self.give(counts, each);
        self.read(time_ns, &rest, counts, each);
        true
    }

    /// Reads messages; false if the payload begins with something else.
    fn read(&mut self, time_ns: i64, mut payload: &[u8], counts: &mut Counts, each: &mut impl FnMut(Message)) -> bool {
        let mut is_used = false;
        while !payload.is_empty() {
            if self.part.is_empty() {
                self.part_ns = time_ns;
            }
            let wanted = message_bytes(&self.part).unwrap_or(LENGTH_BYTES);
            let (taken, rest) = payload.split_at(payload.len().min(wanted - self.part.len()));
            self.part.extend_from_slice(taken);
            payload = rest;
            match message_bytes(&self.part) {
                Some(bytes) if bytes < LENGTH_BYTES + HEADER_BYTES => {
                    self.part = Vec::new();
                    self.state = State::Done;
                    return is_used;
                }
                Some(bytes) if bytes == self.part.len() => self.give(counts, each),
                _ => (),
            }
            is_used = true;
        }
        is_used
    }

    /// Gives the message that has come, if all of it is there.
    fn give(&mut self, counts: &mut Counts, each: &mut impl FnMut(Message)) {
        if self.is_cut {
            return self.cut_message(counts, each);
        }
        let Key { source, destination, source_port, destination_port } = self.key;
        let part = std::mem::take(&mut self.part);
        each(Message {
            time_ns: self.part_ns,
            source,
            source_port,
            destination,
            destination_port,
            transport: Transport::Tcp,
            is_first: self.messages == 0,
            bytes: &part[LENGTH_BYTES..],
        });
        self.messages += 1;
    }
}

/// How long the message is that `part` begins with, its length included.
fn message_bytes(part: &[u8]) -> Option<usize> {
    let length: &[u8; LENGTH_BYTES] = part.first_chunk()?;
    Some(LENGTH_BYTES + usize::from(u16::from_be_bytes(*length)))
}

/// Whether bytes begin with a query and its length.
pub fn begins_with_query(bytes: &[u8]) -> bool {
    matches!(query_bytes(bytes), Begins::Query(_))
}

/// What bytes begin with.
enum Begins {
    /// A query: the number of its bytes, its length included.
    Query(usize),
    Other,
    /// Too few bytes are there.
    Unknown,
}

/// Whether bytes in the middle of a connection begin with a query and its length. All that a query has to be is looked
/// at, so that hardly anything else is taken for one: its counts, and records that end where it does.
fn query_bytes(bytes: &[u8]) -> Begins {
    let Some(length) = message_bytes(bytes) else { return Begins::Unknown };
    if !(LENGTH_BYTES + HEADER_BYTES..=SEARCHED_BYTES_MAX).contains(&length) {
        return Begins::Other;
    }
    let message = &bytes[LENGTH_BYTES..bytes.len().min(length)];
    match Header::read(message) {
        Err(_) => Begins::Unknown,
        Ok(header) if !could_be_query(message, &header) => Begins::Other,
        Ok(_) if bytes.len() < length => Begins::Unknown,
        Ok(header) if kind(message) == Kind::Query && is_filled(message, &header) => Begins::Query(length),
        Ok(_) => Begins::Other,
    }
}

/// The header of a query has no flags of answers (RFC 1035 §4.1.1) and no records but additional ones.
fn could_be_query(message: &[u8], header: &Header) -> bool {
    let has_flags_of_queries = header.flags & !RD == 0 && message[FLAGS_AT] & !(AD | CD) == 0;
    let is_alone = header.records() == u32::from(header.additional) && header.additional <= ADDITIONAL_MAX;
    // Without a question it asks for a cookie, which is in a record (RFC 7873 §5.4).
    has_flags_of_queries && is_alone && (header.questions == 1 || header.questions == 0 && header.additional > 0)
}

/// Whether question and records fill the message.
fn is_filled(message: &[u8], header: &Header) -> bool {
    let mut walk = Walk::new(message);
    let walked = (0..header.questions).try_for_each(|_| walk.skip_question());
    let walked = walked.and_then(|()| (0..header.additional).try_for_each(|_| walk.any_record().map(drop)));
    walked.and_then(|()| walk.end()).is_ok()
}
