//! Signatures of the messages that answer one query, as a client checks them (RFC 8945 §5.3.1).
//!
//! The first message has to be signed, and the last.

use std::sync::Arc;

use domain::base::{Rtype, iana::Class};

use super::sign::{Chain, Signer, Variables};
use crate::{
    header::{ARCOUNT, HEADER_BYTES, Header},
    name::{self, ParseError},
    record::{Record, Walk},
};

/// The most messages in a row that may come without a signature (RFC 8945 §5.3.1).
const UNSIGNED_MAX: u32 = 99;

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message has no form.
    Malformed(ParseError),
    /// It has no signature, and should have.
    Missing,
    /// The signature does not fit the message, is another key's, or of another time.
    Wrong,
    /// The server says that it does not take ours: BADKEY, BADSIG, BADTIME.
    Error,
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        Refusal::Malformed(error)
    }
}

/// What checks the answers to one signed query.
#[derive(Clone, Debug)]
pub struct Verifier {
    signer: Arc<Signer>,
    chain: Chain,
}

impl Verifier {
    /// Signs the query that starts at `start` in `to` and ends with it: appends the TSIG record.
    ///
    /// `now_s` is wall time in seconds since 1970.
    ///
    /// # Panics
    ///
    /// If fewer than the 12 bytes of a header stand behind `start`.
    pub fn sign(signer: &Arc<Signer>, to: &mut Vec<u8>, start: usize, now_s: u64) -> Self {
        let length = to.len() - start;
        to.resize(to.len() + signer.bytes(), 0);
        signer.sign(&mut to[start..], length, now_s);
        Verifier { chain: Chain::after(signer, signer.mac(&to[start..])), signer: Arc::clone(signer) }
    }

    /// Whether the next message of the answer is signed, and rightly so.
    pub fn check(&mut self, message: &[u8], header: &Header, now_s: u64) -> Result<bool, Refusal> {
        let Some(record) = find(message, header)? else {
            if self.chain.is_first() || self.chain.unsigned() >= UNSIGNED_MAX {
                return Err(Refusal::Missing);
            }
            self.chain.pass(message);
            return Ok(false);
        };
        let signature = Signature::read(&self.signer, &record)?;
        if signature.variables.error != [0; 2] {
            return Err(Refusal::Error);
        }
        // The time is looked at only in what is known to come from the key's owner (RFC 8945 §5.2.3).
        let is_right = signature.has_class_and_ttl
            && signature.is_by_key
            && signature.is_right(&self.signer, &mut self.chain)
            && signature.is_of(now_s);
        if is_right { Ok(true) } else { Err(Refusal::Wrong) }
    }

    /// Whether the stream may end here.
    pub fn end(&self) -> Result<(), Refusal> {
        if self.chain.is_first() || self.chain.unsigned() > 0 { Err(Refusal::Missing) } else { Ok(()) }
    }
}

/// The TSIG record of a message, which is its last if there is one.
fn find<'m>(message: &'m [u8], header: &Header) -> Result<Option<Record<'m>>, Refusal> {
    if header.additional == 0 {
        return Ok(None);
    }
    let mut walk = Walk::new(message);
    for _ in 0..header.questions {
        walk.skip_question()?;
    }
    for _ in 1..header.records() {
        if walk.any_record()?.rtype == Rtype::TSIG {
            return Err(Refusal::Wrong);
        }
    }
    let last = walk.any_record()?;
    walk.end()?;
    Ok((last.rtype == Rtype::TSIG).then_some(last))
}

/// A TSIG record, as a key's owner looks at it.
pub struct Signature<'m> {
    /// The message up to the record.
    message: &'m [u8],
    /// Whether class and TTL are a TSIG's.
    pub has_class_and_ttl: bool,
    /// Whether key and algorithm are ours.
    pub is_by_key: bool,
    pub mac: &'m [u8],
    original_id: [u8; 2],
    variables: Variables<'m>,
}

impl<'m> Signature<'m> {
    /// Reads the data (RFC 8945 §4.2).
    pub fn read(signer: &Signer, record: &Record<'m>) -> Result<Self, ParseError> {
        let (message, data) = record.context();
        let (same_key, _) = name::equals(message, record.start(), signer.name())?;
        let (same_algorithm, behind) = name::equals(message, data, signer.algorithm())?;
        let mut rest = &message[behind..];
        let time = *take(&mut rest)?;
        let fudge = *take(&mut rest)?;
        let mac = take_counted(&mut rest)?;
        let original_id = *take(&mut rest)?;
        let error = *take(&mut rest)?;
        let other = take_counted(&mut rest)?;
        if !rest.is_empty() {
            return Err(ParseError::Malformed);
        }
        Ok(Signature {
            message: &message[..record.start()],
            has_class_and_ttl: record.class == Class::ANY && record.ttl_s == 0,
            is_by_key: same_key && same_algorithm,
            mac,
            original_id,
            variables: Variables { time, fudge, error, other },
        })
    }

    /// Whether it is the next of a chain. Shortened ones are not taken (RFC 8945 §5.2.2.1 leaves that to us).
    pub fn is_right(&self, signer: &Signer, chain: &mut Chain) -> bool {
        // The message as it was before it was signed: with its own id and without the TSIG record.
        let (header, rest) = self.message.split_first_chunk::<HEADER_BYTES>().expect("records stand behind a header");
        let mut header = *header;
        header[..2].copy_from_slice(&self.original_id);
        let additional = u16::from_be_bytes([header[ARCOUNT], header[ARCOUNT + 1]]).saturating_sub(1);
        header[ARCOUNT..].copy_from_slice(&additional.to_be_bytes());
        // Not in constant time: who can measure that here holds the key as well.
        chain.next(signer, &[&header, rest], &self.variables).as_ref() == self.mac
    }

    /// Whether it was made at this time, give or take what its maker allows.
    pub fn is_of(&self, now_s: u64) -> bool {
        let [a, b, c, d, e, f] = self.variables.time;
        let time_s = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        time_s.abs_diff(now_s) <= u64::from(u16::from_be_bytes(self.variables.fudge))
    }
}

fn take<'m, const N: usize>(rest: &mut &'m [u8]) -> Result<&'m [u8; N], ParseError> {
    let (taken, after) = rest.split_first_chunk().ok_or(ParseError::Malformed)?;
    *rest = after;
    Ok(taken)
}

/// Bytes with their number, 16 bits, before them.
fn take_counted<'m>(rest: &mut &'m [u8]) -> Result<&'m [u8], ParseError> {
    let bytes = usize::from(u16::from_be_bytes(*take(rest)?));
    let (taken, after) = rest.split_at_checked(bytes).ok_or(ParseError::Malformed)?;
    *rest = after;
    Ok(taken)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
