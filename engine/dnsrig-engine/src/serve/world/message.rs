//! Writes an answer as a message, with names compressed (RFC 1035 §4.1.4) and as far as there is room.

use domain::base::{Rtype, iana::Class};

use super::{query::Query, reply::Reply};
use crate::{
    base::hash::fnv1a,
    dns::{
        header::{AA, ARCOUNT, HEADER_BYTES, QR, RD, TC, UDP_BYTES_MAX},
        name,
        query_options::DO,
    },
    serve::shell::service::DATAGRAM_BYTES_MAX,
    world::records::{Records, Rrset},
};

/// The largest answer over UDP, and what OPT says (RFC 9715).
pub const PAYLOAD_BYTES: u16 = DATAGRAM_BYTES_MAX as u16;

const OPT_BYTES: usize = 11;

/// The RCODE of an EDNS version that is not known (RFC 6891 §6.1.3).
pub const BADVERS: u16 = 16;

/// The most places of names that are remembered; a pointer has 14 bits.
const PLACES_MAX: usize = 48;
const POINTER_MAX: usize = 0x3fff;

/// The room for an answer to this query: over a stream 65,535 bytes.
pub fn room(query: &Query<'_>, is_tcp: bool) -> usize {
    if is_tcp {
        return usize::from(u16::MAX);
    }
    let asked = query.edns.map_or(UDP_BYTES_MAX, |edns| usize::from(edns.udp_payload_bytes).max(UDP_BYTES_MAX));
    asked.min(PAYLOAD_BYTES.into())
}

/// Writes the answer to a query that could not be read, or is of another operation: the header alone.
pub fn write_error(message: &[u8], rcode: u8, space: &mut [u8]) -> usize {
    let header = [message[0], message[1], message[2] & !(AA | TC) | QR, rcode, 0, 0, 0, 0, 0, 0, 0, 0];
    space[..HEADER_BYTES].copy_from_slice(&header);
    HEADER_BYTES
}

/// Writes an answer of at most `room` bytes; its length. `rcode` may have more than four bits, which EDNS carries.
pub fn write(query: &Query<'_>, reply: &Reply, rcode: u16, room: usize, space: &mut [u8]) -> usize {
    let opt_bytes = if query.edns.is_some() { OPT_BYTES } else { 0 };
    let mut writer = Writer { space, at: HEADER_BYTES, room: room - opt_bytes, places: [(0, 0); PLACES_MAX], known: 0 };
    writer.put(query.question);
    writer.remember_question();
    let mut is_truncated = reply.is_truncated;
    let mut counts = [0_u16; 3];
    for (section, records) in [&reply.answer, &reply.authority].into_iter().enumerate() {
        is_truncated |= !writer.put_all(records, &mut counts[section]);
    }
    let additional = if is_truncated { 0 } else { reply.additional.len() };
    for (number, rrset) in reply.additional.iter().take(additional).enumerate() {
        if !writer.put_rrset(&rrset, &mut counts[2]) {
            is_truncated |= number < reply.glue;
            break;
        }
    }
    if is_truncated {
        // What there was room for is of no use to anyone (RFC 2181 §9).
        writer.at = HEADER_BYTES + query.question.len();
        counts = [0; 3];
    }
    let Writer { space, at, .. } = writer;
    let mut flags = QR | query.message[2] & RD;
    flags |= if reply.is_authoritative { AA } else { 0 } | if is_truncated { TC } else { 0 };
    space[..2].copy_from_slice(&query.message[..2]);
    space[2..6].copy_from_slice(&[flags, rcode as u8 & 0x0f, 0, 1]);
    let [answers, authority, additional] = counts;
    let all = [answers, authority, additional + u16::from(query.edns.is_some())];
    for (number, count) in all.into_iter().enumerate() {
        let place = ARCOUNT - 4 + 2 * number;
        space[place..place + 2].copy_from_slice(&count.to_be_bytes());
    }
    if let Some(edns) = query.edns {
        let [size_high, size_low] = PAYLOAD_BYTES.to_be_bytes();
        let flags = if edns.dnssec_ok { DO } else { 0 };
        let opt: [u8; OPT_BYTES] = [0, 0, 41, size_high, size_low, (rcode >> 4) as u8, 0, flags, 0, 0, 0];
        space[at..at + OPT_BYTES].copy_from_slice(&opt);
    }
    at + opt_bytes
}

struct Writer<'a> {
    space: &'a mut [u8],
    at: usize,
    room: usize,
    /// Where names begin, each with a hash of what follows.
    places: [(u32, u16); PLACES_MAX],
    known: usize,
}

impl Writer<'_> {
    fn has_room(&self, bytes: usize) -> bool {
        self.at + bytes <= self.room
    }

    /// Writes bytes for which there is room.
    fn put(&mut self, bytes: &[u8]) {
        self.space[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn remember_question(&mut self) {
        let end = self.at - 4;
        let mut at = HEADER_BYTES;
        while at < end && self.space[at] != 0 {
            let hash = hash(&self.space[at..end]);
            self.remember(hash, at);
            at += 1 + usize::from(self.space[at]);
        }
    }

    fn remember(&mut self, hash: u32, at: usize) {
        if self.known < PLACES_MAX && at <= POINTER_MAX {
            self.places[self.known] = (hash, at as u16);
            self.known += 1;
        }
    }

    /// Writes all RRsets of a section; false if one has no room.
    fn put_all(&mut self, records: &Records, count: &mut u16) -> bool {
        records.iter().all(|rrset| self.put_rrset(&rrset, count))
    }

    /// Writes an RRset as a whole, or nothing.
    fn put_rrset(&mut self, rrset: &Rrset<'_>, count: &mut u16) -> bool {
        let (start, known, counted) = (self.at, self.known, *count);
        for data in rrset.data() {
            // First without compression: this check is cheap, and seldom fails.
            if !self.has_room(rrset.owner.len() + 10 + data.len()) && !self.has_room(self.bytes(rrset, data)) {
                (self.at, self.known, *count) = (start, known, counted);
                return false;
            }
            self.put_record(rrset, data);
            *count += 1;
        }
        true
    }

    /// How many bytes a record takes, names compressed.
    fn bytes(&self, rrset: &Rrset<'_>, data: &[u8]) -> usize {
        self.compressed(rrset.owner).0
            + 10
            + match names_at(rrset.rtype) {
                Some(at) => data.len() - self.saved(&data[at..]),
                None => data.len(),
            }
    }

    /// How many bytes compression saves of the first name in `data`; of a second one, at most as many more.
    fn saved(&self, data: &[u8]) -> usize {
        let end = name::skip_plain(data, 0).unwrap_or(data.len());
        end - self.compressed(&data[..end]).0
    }

    fn put_record(&mut self, rrset: &Rrset<'_>, data: &[u8]) {
        self.put_name(rrset.owner);
        let [high, low] = rrset.rtype.to_int().to_be_bytes();
        let [class_high, class_low] = Class::IN.to_int().to_be_bytes();
        self.put(&[high, low, class_high, class_low]);
        self.put(&rrset.ttl_s.to_be_bytes());
        let length = self.at;
        self.put(&[0, 0]);
        let mut rest = data;
        if let Some(at) = names_at(rrset.rtype) {
            self.put(&data[..at]);
            rest = &data[at..];
            for _ in 0..if rrset.rtype == Rtype::SOA { 2 } else { 1 } {
                let end = name::skip_plain(rest, 0).unwrap_or(rest.len());
                self.put_name(&rest[..end]);
                rest = &rest[end..];
            }
        }
        self.put(rest);
        let bytes = (self.at - length - 2) as u16;
        self.space[length..length + 2].copy_from_slice(&bytes.to_be_bytes());
    }

    /// How long a name is compressed, and where in it the pointer stands, and where that leads.
    fn compressed(&self, name: &[u8]) -> (usize, usize, Option<u16>) {
        let mut at = 0;
        while name.get(at).is_some_and(|length| *length != 0) {
            let suffix = &name[at..];
            let hash = hash(suffix);
            let found = self.places[..self.known].iter().find(|(known, place)| {
                *known == hash && name::equals(self.space, usize::from(*place), suffix).is_ok_and(|(same, _)| same)
            });
            if let Some((_, place)) = found {
                return (at + 2, at, Some(*place));
            }
            at += 1 + usize::from(name[at]);
        }
        (name.len(), at, None)
    }

    fn put_name(&mut self, name: &[u8]) {
        let (_, plain, pointer) = self.compressed(name);
        let start = self.at;
        let mut at = 0;
        while at < plain {
            self.remember(hash(&name[at..]), start + at);
            at += 1 + usize::from(name[at]);
        }
        match pointer {
            Some(place) => {
                self.put(&name[..plain]);
                self.put(&(0xc000 | place).to_be_bytes());
            }
            None => self.put(name),
        }
    }
}

/// Where in the data of a type its names begin, if they may be compressed (RFC 3597 §4).
fn names_at(rtype: Rtype) -> Option<usize> {
    match rtype {
        Rtype::NS | Rtype::CNAME | Rtype::PTR | Rtype::SOA => Some(0),
        Rtype::MX => Some(2),
        _ => None,
    }
}

/// Hashes a name, whatever the case of its letters. Half of a hash is enough to find a name.
fn hash(name: &[u8]) -> u32 {
    (fnv1a(name) >> 32) as u32
}
