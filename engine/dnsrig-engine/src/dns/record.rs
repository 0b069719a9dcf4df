//! A walk over a message: header, question, records. Nothing is copied.

use super::{
    query::{CLASS_IN, TYPE_SOA},
    xfr::{Ask, Outcome},
};
use crate::dns::name::{self, Owners, Place, Wrong};

/// The header of a message (RFC 1035 §4.1.1).
pub const HEADER_OCTETS: usize = 12;

/// QR, opcode and TC, in the third octet of a message.
const QR: u8 = 0x80;
const OPCODE: u8 = 0x78;
const TC: u8 = 0x02;

/// TYPE, CLASS, TTL and RDLENGTH, behind the owner of a record (RFC 1035 §4.1.3).
const FIXED_OCTETS: usize = 10;

/// What the header of an answer says.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub rcode: u8,
    pub questions: u16,
    pub answers: u16,
    /// Records of the authority and of the additional section.
    pub others: u32,
    pub additional: u16,
}

impl Header {
    /// Reads the header of a response to a query; one that was truncated is none.
    #[inline]
    pub fn read(message: &[u8]) -> Result<Self, Wrong> {
        let header: &[u8; HEADER_OCTETS] = message.first_chunk().ok_or(Wrong::Form)?;
        if header[2] & (QR | OPCODE | TC) != QR {
            return Err(Wrong::Form);
        }
        let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Ok(Header {
            rcode: header[3] & 0x0f,
            questions: count(4),
            answers: count(6),
            others: u32::from(count(8)) + u32::from(count(10)),
            additional: count(10),
        })
    }
}

/// One record, where it lies in its message. The names in it may be compressed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'m> {
    message: &'m [u8],
    owner: usize,
    data: usize,
    end: usize,
    /// TYPE.
    pub rtype: u16,
    /// CLASS.
    pub class: u16,
    /// TTL, in seconds.
    pub ttl_s: u32,
}

impl<'m> Record<'m> {
    /// The record whose owner begins at `owner` and ends before `behind`.
    #[inline(always)]
    fn read(message: &'m [u8], owner: usize, behind: usize) -> Result<Self, Wrong> {
        let fixed: &[u8; FIXED_OCTETS] = message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(Wrong::Form)?;
        let data = behind + FIXED_OCTETS;
        let end = data + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        if end > message.len() {
            return Err(Wrong::Form);
        }
        Ok(Record {
            message,
            owner,
            data,
            end,
            rtype: u16::from_be_bytes([fixed[0], fixed[1]]),
            class: u16::from_be_bytes([fixed[2], fixed[3]]),
            ttl_s: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        })
    }

    /// The data as it stands in the message.
    pub fn data(&self) -> &'m [u8] {
        &self.message[self.data..self.end]
    }

    /// The message up to the record's end, and where in it the record's data begins: for names in the data, which may be
    /// compressed, but have no part in what comes behind.
    pub fn context(&self) -> (&'m [u8], usize) {
        (&self.message[..self.end], self.data)
    }

    /// Appends the owner in wire format, not compressed, in the case of letters it was sent in.
    pub fn owner_into(&self, to: &mut Vec<u8>) -> Result<(), Outcome> {
        name::expand(self.message, self.owner, to)?;
        Ok(())
    }

    /// Appends the name that the data begins with, such as a PTR's, in wire format and not compressed.
    pub fn data_name_into(&self, to: &mut Vec<u8>) -> Result<(), Outcome> {
        name::expand(self.message, self.data, to)?;
        Ok(())
    }

    /// Where the record begins in its message.
    pub fn start(&self) -> usize {
        self.owner
    }
}

/// Walks over a message from front to back.
pub struct Walk<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Walk<'m> {
    /// Begins behind the header.
    #[inline]
    pub fn new(message: &'m [u8]) -> Self {
        Walk { message, at: HEADER_OCTETS }
    }

    /// Whether the question at hand asks for this; it lies behind afterwards.
    ///
    /// The first question stands behind the header, so what was found of its name serves the records' owners.
    #[inline]
    pub fn question(&mut self, owners: &mut Owners<'_>, ask: Ask) -> Result<bool, Wrong> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let fixed: &[u8; 4] = self.message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(Wrong::Form)?;
        self.at = behind + fixed.len();
        let [qtype, qclass] = [ask.qtype().to_be_bytes(), CLASS_IN.to_be_bytes()];
        Ok(place == Place::Apex && *fixed == [qtype[0], qtype[1], qclass[0], qclass[1]])
    }

    /// The next record, and where its owner lies.
    #[inline(always)]
    pub fn record(&mut self, owners: &mut Owners<'_>) -> Result<(Record<'m>, Place), Wrong> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let record = Record::read(self.message, self.at, behind)?;
        self.at = record.end;
        Ok((record, place))
    }

    /// The next record, whose owner is nobody's business.
    pub fn any_record(&mut self) -> Result<Record<'m>, Wrong> {
        let record = Record::read(self.message, self.at, name::skip(self.message, self.at)?)?;
        self.at = record.end;
        Ok(record)
    }

    /// Passes over a question.
    pub fn skip_question(&mut self) -> Result<(), Wrong> {
        self.at = name::skip(self.message, self.at)? + 4;
        Ok(())
    }

    /// Nothing may stand behind the last record.
    #[inline]
    pub fn end(&self) -> Result<(), Wrong> {
        if self.at == self.message.len() { Ok(()) } else { Err(Wrong::Form) }
    }
}

/// What a transfer needs of an SOA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    pub serial: u32,
    /// Stands for all of its data, names in lower case. Two SOA records with the same one are taken for equal: by
    /// chance that happens to one pair in 2^64.
    pub fingerprint: u64,
}

impl Soa {
    /// Reads the data of an SOA record (RFC 1035 §3.3.13); `None` if it is another.
    pub fn read(record: &Record<'_>) -> Result<Option<Self>, Wrong> {
        if record.rtype != TYPE_SOA {
            return Ok(None);
        }
        let mut fingerprint = 0;
        let mut each = |label: &[u8]| fingerprint = fold_label(fingerprint, label);
        let (message, data) = record.context();
        let mailbox = name::labels(message, data, &mut each)?;
        each(&[]);
        let numbers = name::labels(message, mailbox, &mut each)?;
        each(&[]);
        let numbers: &[u8; 20] = message[numbers..].try_into().map_err(|_| Wrong::Form)?;
        for number in numbers.chunks_exact(4) {
            fingerprint = fold(fingerprint, u64::from(u32::from_be_bytes(number.try_into().expect("four octets"))));
        }
        let serial = u32::from_be_bytes(*numbers.first_chunk().expect("20 octets are there"));
        Ok(Some(Soa { serial, fingerprint }))
    }
}

/// Adds eight octets to a fingerprint: multiplication by an odd constant (the golden ratio) and a rotation spread them.
#[inline(always)]
fn fold(fingerprint: u64, word: u64) -> u64 {
    (fingerprint.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adds a label and its length.
fn fold_label(fingerprint: u64, label: &[u8]) -> u64 {
    let mut fingerprint = fold(fingerprint, label.len() as u64);
    let (words, rest) = label.as_chunks();
    for word in words {
        fingerprint = fold(fingerprint, u64::from_le_bytes(word.map(|octet| octet.to_ascii_lowercase())));
    }
    let rest = rest.iter().fold(0, |word, octet| word << 8 | u64::from(octet.to_ascii_lowercase()));
    fold(fingerprint, rest)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
