//! Signatures of queries and of the streams that answer them (RFC 8945 §5.3.1).
//!
//! The first answer's signature covers the query's; each later one covers the one before it and whatever came unsigned
//! since then. The last message has to be signed.

use std::sync::Arc;

use ring::hmac;

use super::{
    key,
    sign::{self, CLASS_ANY, TYPE_TSIG, Variables},
};
use crate::dns::{
    name::{self, Wrong},
    record::{HEADER_OCTETS, Header, Record, Walk},
    xfr::Outcome,
};

/// So many messages in a row may come without a signature (RFC 8945 §5.3.1).
const UNSIGNED_MAX: u8 = 99;

/// Signs queries with one key. Copies share it.
#[derive(Clone, Debug)]
pub struct Signer(Arc<sign::Signer>);

impl Signer {
    /// Prepares the key.
    pub fn new(key: key::Parts) -> Self {
        Signer(Arc::new(sign::Signer::new(&key)))
    }

    /// Signs the message that starts at `start` in `to` and ends with it: appends the TSIG record.
    ///
    /// `now_s` is wall time in seconds since 1970. Returns what checks the answers.
    ///
    /// # Panics
    ///
    /// If fewer than the 12 octets of a header stand behind `start`.
    pub fn sign(&self, to: &mut Vec<u8>, start: usize, now_s: u64) -> Verifier {
        let length = to.len() - start;
        to.resize(to.len() + self.0.octets(), 0);
        self.0.sign(&mut to[start..], length, now_s);
        let context = chain(&self.0, self.0.mac(&to[start..]));
        Verifier { key: Arc::clone(&self.0), context, first: true, unsigned: 0 }
    }
}

/// The start of a signature that covers another.
fn chain(key: &sign::Signer, mac: &[u8]) -> hmac::Context {
    let mut context = key.context();
    context.update(&(mac.len() as u16).to_be_bytes());
    context.update(mac);
    context
}

/// What checks the answers to one signed query.
#[derive(Clone)]
pub struct Verifier {
    key: Arc<sign::Signer>,
    /// What the next signature covers of what came before its message.
    context: hmac::Context,
    /// Whether no signature was seen so far.
    first: bool,
    /// Messages without a signature since the last with one.
    unsigned: u8,
}

impl Verifier {
    /// Whether the next message of the answer is signed, and rightly so.
    pub fn check(&mut self, message: &[u8], header: &Header, now_s: u64) -> Result<bool, Outcome> {
        let Some(record) = find(message, header)? else {
            if self.first || self.unsigned >= UNSIGNED_MAX {
                return Err(Outcome::TsigMissing);
            }
            self.unsigned += 1;
            self.context.update(message);
            return Ok(false);
        };
        let signature = Signature::read(&self.key, &record)?;
        if signature.variables.error != [0; 2] {
            return Err(Outcome::TsigError);
        }
        if !signature.is_ours {
            return Err(Outcome::TsigWrong);
        }
        self.check_mac(&message[..record.start()], &signature)?;
        // The time is looked at only in what is known to come from the key's owner (RFC 8945 §5.2.3).
        if !signature.is_of(now_s) {
            return Err(Outcome::TsigWrong);
        }
        (self.first, self.unsigned) = (false, 0);
        Ok(true)
    }

    /// Compares the signature, and begins the next, which covers this one.
    fn check_mac(&mut self, message: &[u8], signature: &Signature<'_>) -> Result<(), Outcome> {
        let mut context = std::mem::replace(&mut self.context, chain(&self.key, signature.mac));
        // As it was before it was signed: with its own id and without the TSIG record.
        let mut header: [u8; HEADER_OCTETS] = *message.first_chunk().ok_or(Outcome::BadMessage)?;
        header[..2].copy_from_slice(&signature.original_id);
        let additional = u16::from_be_bytes([header[10], header[11]]);
        header[10..].copy_from_slice(&additional.saturating_sub(1).to_be_bytes());
        context.update(&header);
        context.update(&message[HEADER_OCTETS..]);
        if self.first {
            self.key.digest(&mut context, &signature.variables);
        } else {
            context.update(&signature.variables.time);
            context.update(&signature.variables.fudge);
        }
        // How long this takes tells nothing to a server that made the signature itself. Shortened ones are not taken.
        if context.sign().as_ref() == signature.mac { Ok(()) } else { Err(Outcome::TsigWrong) }
    }

    /// Whether the stream may end here.
    pub fn end(&self) -> Result<(), Outcome> {
        if self.first || self.unsigned > 0 { Err(Outcome::TsigMissing) } else { Ok(()) }
    }
}

/// The TSIG record of a message, which is its last if there is one.
fn find<'m>(message: &'m [u8], header: &Header) -> Result<Option<Record<'m>>, Outcome> {
    if header.additional == 0 {
        return Ok(None);
    }
    let mut walk = Walk::new(message);
    for _ in 0..header.questions {
        walk.skip_question()?;
    }
    for _ in 1..u32::from(header.answers) + header.others {
        if walk.any_record()?.rtype == TYPE_TSIG {
            return Err(Outcome::TsigWrong);
        }
    }
    let last = walk.any_record()?;
    walk.end()?;
    Ok((last.rtype == TYPE_TSIG).then_some(last))
}

/// The data of a TSIG record (RFC 8945 §4.2).
struct Signature<'m> {
    mac: &'m [u8],
    original_id: [u8; 2],
    variables: Variables<'m>,
    /// Whether it is of our key and algorithm, and of a TSIG's class and TTL.
    is_ours: bool,
}

impl<'m> Signature<'m> {
    fn read(key: &sign::Signer, record: &Record<'m>) -> Result<Self, Wrong> {
        let (message, data) = record.context();
        let (same_key, _) = name::equals(message, record.start(), key.name())?;
        let (same_algorithm, behind) = name::equals(message, data, key.algorithm())?;
        let mut rest = &message[behind..];
        let time = *take(&mut rest)?;
        let fudge = *take(&mut rest)?;
        let mac = take_counted(&mut rest)?;
        let original_id = *take(&mut rest)?;
        let error = *take(&mut rest)?;
        let other = take_counted(&mut rest)?;
        if !rest.is_empty() {
            return Err(Wrong::Form);
        }
        let is_ours = same_key && same_algorithm && record.class == CLASS_ANY && record.ttl_s == 0;
        Ok(Signature { mac, original_id, variables: Variables { time, fudge, error, other }, is_ours })
    }

    /// Whether it was made at this time, give or take what its maker allows.
    fn is_of(&self, now_s: u64) -> bool {
        let [a, b, c, d, e, f] = self.variables.time;
        let time_s = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        time_s.abs_diff(now_s) <= u64::from(u16::from_be_bytes(self.variables.fudge))
    }
}

fn take<'m, const N: usize>(rest: &mut &'m [u8]) -> Result<&'m [u8; N], Wrong> {
    let (taken, after) = rest.split_first_chunk().ok_or(Wrong::Form)?;
    *rest = after;
    Ok(taken)
}

/// Octets with their number, 16 bits, before them.
fn take_counted<'m>(rest: &mut &'m [u8]) -> Result<&'m [u8], Wrong> {
    let octets = usize::from(u16::from_be_bytes(*take(rest)?));
    let (taken, after) = rest.split_at_checked(octets).ok_or(Wrong::Form)?;
    *rest = after;
    Ok(taken)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
