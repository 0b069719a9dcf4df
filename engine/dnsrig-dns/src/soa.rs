//! SOA records, and answers to SOA queries: bytes in, verdict out, no socket.

use domain::base::{
    Name, Rtype,
    iana::{Class, Rcode},
};
use serde::Serialize;

use super::{
    header::{AA, Header, QR, TC},
    name::{self, Owners, ParseError, Place},
    record::{Record, Walk},
    serial::is_newer,
};

/// What is compared of an SOA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    pub serial: u32,
    /// Stands for all of its data, names in lower case. Two SOA records with the same one are taken for equal: by
    /// chance that happens to one pair in 2^64.
    pub fingerprint: u64,
}

impl Soa {
    /// Reads the data of an SOA record (RFC 1035 §3.3.13); `None` if it is another.
    pub fn read(record: &Record<'_>) -> Result<Option<Self>, ParseError> {
        if record.rtype != Rtype::SOA {
            return Ok(None);
        }
        let mut fingerprint = 0;
        let mut each = |label: &[u8]| fingerprint = fold_label(fingerprint, label);
        let (message, data) = record.context();
        let mailbox = name::labels(message, data, &mut each)?;
        each(&[]);
        let numbers = name::labels(message, mailbox, &mut each)?;
        each(&[]);
        let numbers: &[u8; 20] = message[numbers..].try_into().map_err(|_| ParseError::Malformed)?;
        for number in numbers.chunks_exact(4) {
            fingerprint = fold(fingerprint, u64::from(u32::from_be_bytes(number.try_into().expect("four bytes"))));
        }
        let serial = u32::from_be_bytes(*numbers.first_chunk().expect("20 bytes are there"));
        Ok(Some(Soa { serial, fingerprint }))
    }
}

/// Adds eight bytes to a fingerprint: multiplication by an odd constant (the golden ratio) and a rotation spread them.
#[inline(always)]
fn fold(fingerprint: u64, word: u64) -> u64 {
    (fingerprint.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adds a label and its length.
fn fold_label(fingerprint: u64, label: &[u8]) -> u64 {
    let mut fingerprint = fold(fingerprint, label.len() as u64);
    let (words, rest) = label.as_chunks();
    for word in words {
        fingerprint = fold(fingerprint, u64::from_le_bytes(word.map(|byte| byte.to_ascii_lowercase())));
    }
    let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(byte.to_ascii_lowercase()));
    fold(fingerprint, rest)
}

/// What an answer means for its zone.
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
    /// The verdict about `message`, in words for people.
    pub fn words(self, message: &[u8]) -> String {
        let (flags, rcode) = Header::read(message).map_or((0, 0), |header| (header.flags, header.rcode));
        match self {
            Verdict::Seen { .. } => "the awaited serial",
            Verdict::Newer { .. } => "a newer serial",
            Verdict::Older => "an older serial",
            Verdict::NotAuthoritative => "an answer that is not authoritative",
            Verdict::Malformed => "a message that cannot be read",
            Verdict::Mismatched if flags & QR == 0 => "a message that is no response",
            Verdict::Mismatched => "the answer to another question",
            _ if rcode != 0 => return Rcode::masked_from_int(rcode).to_string(),
            _ if flags & TC != 0 => "a truncated answer",
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
    let header = Header::read(message).ok()?;
    (header.flags & QR != 0).then_some((header.id, header.rcode))
}

/// What `message` means for the zone `name`; `awaited` is the serial to wait for.
pub fn read_answer(message: &[u8], name: &Name<[u8]>, awaited: Option<u32>) -> Verdict {
    let Ok(header) = Header::read(message) else { return Verdict::Malformed };
    let (mut walk, mut owners) = (Walk::new(message), Owners::new(name.as_slice()));
    let is_asked = header.questions == 1 && walk.question(&mut owners, Rtype::SOA) == Ok(true);
    if header.flags & QR == 0 || !is_asked {
        return Verdict::Mismatched;
    }
    match Rcode::masked_from_int(header.rcode) {
        Rcode::NOERROR if header.flags & TC != 0 => Verdict::Other,
        Rcode::NOERROR => match soa_of_apex(&mut walk, &mut owners, header.answers) {
            Err(_) => Verdict::Malformed,
            Ok(None) => Verdict::Other,
            Ok(Some(_)) if header.flags & AA == 0 => Verdict::NotAuthoritative,
            Ok(Some((_, soa))) => compare(soa.serial, awaited),
        },
        Rcode::SERVFAIL => Verdict::ServFail,
        Rcode::REFUSED => Verdict::Refused,
        Rcode::NXDOMAIN => Verdict::NxDomain,
        _ => Verdict::Other,
    }
}

/// The SOA record of the zone `name` in the answer section, if there is one that can be read.
pub fn soa_record<'m>(message: &'m [u8], name: &Name<[u8]>) -> Option<Record<'m>> {
    let (header, mut walk, mut owners) =
        (Header::read(message).ok()?, Walk::new(message), Owners::new(name.as_slice()));
    walk.question(&mut owners, Rtype::SOA).ok()?;
    soa_of_apex(&mut walk, &mut owners, header.answers).ok()?.map(|(record, _)| record)
}

/// The first SOA record of the zone's apex among the `answers` records that follow.
fn soa_of_apex<'m>(
    walk: &mut Walk<'m>,
    owners: &mut Owners<'_>,
    answers: u16,
) -> Result<Option<(Record<'m>, Soa)>, ParseError> {
    for _ in 0..answers {
        let (record, place) = walk.record(owners)?;
        if record.class != Class::IN {
            continue;
        }
        if let Some(soa) = Soa::read(&record)?
            && place == Place::Apex
        {
            return Ok(Some((record, soa)));
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
