//! What the answer to an SOA query says: bytes in, verdict out, no socket.

use domain::{
    base::{Message, ParsedName, Rtype, ToName, iana::Rcode},
    rdata::Soa,
};
use serde::Serialize;

use super::serial::is_newer;

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
    /// Bytes that are no DNS message.
    Malformed,
    /// A message that answers no question of ours.
    Mismatched,
}

impl Verdict {
    /// What `message` was, of which this is the verdict, in words for people.
    pub fn words(self, message: &[u8]) -> String {
        let header = Message::from_octets(message).map(|message| message.header()).unwrap_or_default();
        match self {
            Verdict::Seen { .. } => "the awaited serial",
            Verdict::Newer { .. } => "a newer serial",
            Verdict::Older => "an older serial",
            Verdict::NotAuthoritative => "an answer that is not authoritative",
            Verdict::Malformed => "a message that cannot be read",
            Verdict::Mismatched if !header.qr() => "a message that is no response",
            Verdict::Mismatched => "the answer to another question",
            _ if header.rcode() != Rcode::NOERROR => return header.rcode().to_string(),
            _ if header.tc() => "a truncated answer",
            _ => "an answer without the SOA",
        }
        .into()
    }
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

fn compare(serial: u32, awaited: Option<u32>) -> Verdict {
    match awaited {
        Some(awaited) if is_newer(serial, awaited) => Verdict::Newer { serial },
        Some(awaited) if serial != awaited => Verdict::Older,
        _ => Verdict::Seen { serial },
    }
}

#[cfg(test)]
#[path = "soa_tests.rs"]
mod tests;
