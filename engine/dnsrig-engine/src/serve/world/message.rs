//! Writes an answer as a message, with names compressed (RFC 1035 §4.1.4) and as far as there is room.

use dnsrig_dns::{
    edns::{Edns, OPT_BYTES, Opt},
    header::{AA, HEADER_BYTES, Header, QR, RCODE, RD, TC, UDP_BYTES_MAX},
    name,
    writer::{MessageWriter, NameCompressor, record_head},
};
use domain::base::{Rtype, iana::Class};

use super::{query::Query, reply::Reply};
use crate::{
    serve::shell::service::DATAGRAM_BYTES_MAX,
    world::records::{Records, Rrset},
};

/// The largest answer over UDP, and what OPT says (RFC 9715).
const PAYLOAD_BYTES: u16 = DATAGRAM_BYTES_MAX as u16;

/// The RCODE of an EDNS version that is not known (RFC 6891 §6.1.3).
pub const BADVERS: u16 = 16;

/// The room for an answer to this query: over TCP 65,535 bytes.
pub fn room(query: &Query<'_>, is_tcp: bool) -> usize {
    if is_tcp {
        return usize::from(u16::MAX);
    }
    let asked = query.edns.map_or(UDP_BYTES_MAX, |edns| usize::from(edns.udp_payload_bytes).max(UDP_BYTES_MAX));
    asked.min(PAYLOAD_BYTES.into())
}

/// Writes the answer to a query that could not be read, or is of another operation: the header alone.
pub fn write_error(message: &[u8], rcode: u8, space: &mut [u8]) -> usize {
    let id = u16::from_be_bytes([message[0], message[1]]);
    let header = Header { id, flags: message[2] & !(AA | TC) | QR, rcode, ..Header::default() };
    space[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    HEADER_BYTES
}

/// Writes an answer of at most `room` bytes; its length. `rcode` may have more than four bits, which EDNS carries.
pub fn write(query: &Query<'_>, reply: &Reply, rcode: u16, room: usize, space: &mut [u8]) -> usize {
    let opt_bytes = if query.edns.is_some() { OPT_BYTES } else { 0 };
    let mut writer = Writer {
        to: MessageWriter::new(space, HEADER_BYTES),
        room: room - opt_bytes,
        names: NameCompressor::default(),
    };
    writer.to.put(query.question);
    writer.names.remember_name(writer.to.message(), HEADER_BYTES);
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
        writer.to.return_to(HEADER_BYTES + query.question.len());
        counts = [0; 3];
    }
    if let Some(edns) = query.edns {
        let opt = Opt::new(Edns { udp_payload_bytes: PAYLOAD_BYTES, dnssec_ok: edns.dnssec_ok });
        writer.to.put(&Opt { extended_rcode: (rcode >> 4) as u8, ..opt }.head());
        counts[2] += 1;
    }
    let mut flags = QR | query.message[2] & RD;
    flags |= if reply.is_authoritative { AA } else { 0 } | if is_truncated { TC } else { 0 };
    let [answers, authority, additional] = counts;
    let id = u16::from_be_bytes([query.message[0], query.message[1]]);
    let header = Header { id, flags, rcode: rcode as u8 & RCODE, questions: 1, answers, authority, additional };
    writer.to.written()[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    writer.to.at()
}

/// A message that is being written, within its limit.
struct Writer<'a> {
    to: MessageWriter<'a>,
    room: usize,
    names: NameCompressor,
}

impl Writer<'_> {
    fn has_room(&self, bytes: usize) -> bool {
        self.to.at() + bytes <= self.room
    }

    /// Writes all RRsets of a section; false if one has no room.
    fn put_all(&mut self, records: &Records, count: &mut u16) -> bool {
        records.iter().all(|rrset| self.put_rrset(&rrset, count))
    }

    /// Writes an RRset as a whole, or nothing.
    fn put_rrset(&mut self, rrset: &Rrset<'_>, count: &mut u16) -> bool {
        let (start, names, counted) = (self.to.at(), self.names.count(), *count);
        for data in rrset.data() {
            // First without compression: this check is cheap, and seldom fails.
            if !self.has_room(rrset.owner.len() + 10 + data.len()) && !self.has_room(self.bytes(rrset, data)) {
                self.to.return_to(start);
                self.names.forget_from(names);
                *count = counted;
                return false;
            }
            self.put_record(rrset, data);
            *count += 1;
        }
        true
    }

    /// How many bytes a record takes, names compressed.
    fn bytes(&self, rrset: &Rrset<'_>, data: &[u8]) -> usize {
        self.names.compressed_bytes(self.to.message(), rrset.owner)
            + 10
            + match names_at(rrset.rtype) {
                Some(at) => data.len() - self.saved(&data[at..]),
                None => data.len(),
            }
    }

    /// How many bytes compression saves of the first name in `data`; of a second one, at most as many more.
    fn saved(&self, data: &[u8]) -> usize {
        let end = name::skip_plain(data, 0).unwrap_or(data.len());
        end - self.names.compressed_bytes(self.to.message(), &data[..end])
    }

    fn put_record(&mut self, rrset: &Rrset<'_>, data: &[u8]) {
        let Writer { to, names, .. } = self;
        names.put(to, rrset.owner);
        to.put(&record_head(rrset.rtype, Class::IN, rrset.ttl_s, 0));
        let start = to.at();
        let mut rest = data;
        if let Some(at) = names_at(rrset.rtype) {
            to.put(&data[..at]);
            rest = &data[at..];
            for _ in 0..if rrset.rtype == Rtype::SOA { 2 } else { 1 } {
                let end = name::skip_plain(rest, 0).unwrap_or(rest.len());
                names.put(to, &rest[..end]);
                rest = &rest[end..];
            }
        }
        to.put(rest);
        to.set_u16(start - 2, (to.at() - start) as u16);
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
