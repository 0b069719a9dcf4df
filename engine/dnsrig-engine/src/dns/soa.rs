//! The query and what its answer says: octets in, verdict out, no socket.

use domain::{
    base::{Message, ParsedName, Rtype, ToName, iana::Rcode},
    rdata::Soa,
};
use serde::Serialize;

/// The largest answer that is read, in octets: without EDNS, a server sends no more over UDP (RFC 1035 §4.2.1).
pub const ANSWER_OCTETS_MAX: usize = 512;

/// A query: header, name of at most 255 octets, type and class.
pub const QUERY_OCTETS_MAX: usize = 12 + 255 + 4;

/// Flags and counts of a standard query with one question, recursion not desired (RFC 1035 §4.1.1).
const QUERY_HEADER: [u8; 10] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0];

/// QTYPE SOA and QCLASS IN.
const QUERY_TAIL: [u8; 4] = [0, 6, 0, 1];

/// What an answer says about its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Authoritative, with the awaited serial, or any if none is awaited.
    Seen { serial: u32 },
    /// Authoritative, with a serial beyond the awaited one (RFC 1982): the zone has moved on.
    Newer { serial: u32 },
    /// Authoritative, with another serial: the old version, still.
    Older,
    /// SERVFAIL: typically loading, or a secondary without the zone.
    ServFail,
    /// REFUSED: typically the server does not know the zone.
    Refused,
    /// NXDOMAIN.
    NxDomain,
    /// It has an answer, but without AA.
    NotAuthoritative,
    /// Another RCODE, truncated, or no SOA of exactly this name.
    Other,
    /// Octets that are no DNS message.
    Malformed,
    /// A message that answers no question of ours.
    Mismatched,
}

/// How many answers there were of each verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    pub seen: u64,
    pub newer: u64,
    pub older: u64,
    pub servfail: u64,
    pub refused: u64,
    pub nxdomain: u64,
    pub not_authoritative: u64,
    pub other: u64,
    pub malformed: u64,
    pub mismatched: u64,
}

impl Verdicts {
    /// Counts one answer.
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Seen { .. } => &mut self.seen,
            Verdict::Newer { .. } => &mut self.newer,
            Verdict::Older => &mut self.older,
            Verdict::ServFail => &mut self.servfail,
            Verdict::Refused => &mut self.refused,
            Verdict::NxDomain => &mut self.nxdomain,
            Verdict::NotAuthoritative => &mut self.not_authoritative,
            Verdict::Other => &mut self.other,
            Verdict::Malformed => &mut self.malformed,
            Verdict::Mismatched => &mut self.mismatched,
        } += 1;
    }
}

/// Writes the query for the SOA of `name` (wire format) into `buffer` and returns its length.
pub fn write_query(buffer: &mut [u8; QUERY_OCTETS_MAX], id: u16, name: &[u8]) -> usize {
    let mut length = 0;
    for part in [&id.to_be_bytes(), &QUERY_HEADER[..], name, &QUERY_TAIL] {
        buffer[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    length
}

/// The id of a message, and its RCODE as the number in the header, if it is a response.
pub fn response_id(message: &[u8]) -> Option<(u16, u8)> {
    let header = Message::from_octets(message).ok()?.header();
    header.qr().then(|| (header.id(), header.rcode().to_int()))
}

/// What `message` says about the zone `name`; `awaited` is the serial to wait for.
pub fn read_answer(message: &[u8], name: impl ToName, awaited: Option<u32>) -> Verdict {
    let Ok(message) = Message::from_octets(message) else { return Verdict::Malformed };
    let header = message.header();
    let Ok(question) = message.sole_question() else { return Verdict::Mismatched };
    if !header.qr() || question.qtype() != Rtype::SOA || !question.qname().name_eq(&name) {
        return Verdict::Mismatched;
    }
    match header.rcode() {
        Rcode::NOERROR if header.tc() => Verdict::Other,
        Rcode::NOERROR => match soa_serial(message, &name) {
            Err(_) => Verdict::Malformed,
            Ok(None) => Verdict::Other,
            Ok(Some(_)) if !header.aa() => Verdict::NotAuthoritative,
            Ok(Some(serial)) => compare(serial, awaited),
        },
        Rcode::SERVFAIL => Verdict::ServFail,
        Rcode::REFUSED => Verdict::Refused,
        Rcode::NXDOMAIN => Verdict::NxDomain,
        _ => Verdict::Other,
    }
}

/// The serial of the first SOA of `name` in the answer section.
fn soa_serial(message: Message<&[u8]>, name: &impl ToName) -> Result<Option<u32>, domain::base::wire::ParseError> {
    for record in message.answer()?.limit_to_in::<Soa<ParsedName<_>>>() {
        let record = record?;
        if record.owner().name_eq(name) {
            return Ok(Some(record.data().serial().into_int()));
        }
    }
    Ok(None)
}

/// Serial number arithmetic (RFC 1982 §3.2). At a distance of exactly 2^31 the order is undefined: not newer.
fn compare(serial: u32, awaited: Option<u32>) -> Verdict {
    match awaited.map_or(0, |awaited| serial.wrapping_sub(awaited)) {
        0 => Verdict::Seen { serial },
        1..=0x7fff_ffff => Verdict::Newer { serial },
        _ => Verdict::Older,
    }
}

#[cfg(test)]
#[path = "soa_tests.rs"]
mod tests;
