//! TSIG on the primary's side: checks a query's signature, and signs the messages of its answer (RFC 8945). No I/O.
//!
//! What does not change is prepared once a key: the key schedule and the names, which are digested in canonical form
//! (lower case, not compressed).

use ring::hmac;

use super::{
    message_writer::MessageWriter,
    query::{HEADER_OCTETS, plain_name_end},
};
use crate::dns::tsig::{
    key::Parts,
    sign::{CLASS_ANY, Signer, TYPE_TSIG, Variables},
};

/// The longest MAC that there is: SHA-512's.
const MAC_OCTETS_MAX: usize = 64;

/// The TTL of a TSIG record (RFC 8945 §4.2).
const TTL: [u8; 4] = [0; 4];

/// Where the header counts additional records.
const ARCOUNT: std::ops::Range<usize> = 10..12;

/// The errors of TSIG (RFC 8945 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    BadSignature = 16,
    BadKey = 17,
    BadTime = 18,
}

/// Why a query's TSIG is not accepted.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The record makes no sense: FORMERR.
    Malformed,
    /// NOTAUTH with this error and no signature.
    Unsigned(Error),
    /// NOTAUTH with BADTIME, signed, so that the other side can believe our time.
    Late(Box<Chain>),
}

/// A key.
pub struct Key {
    signer: Signer,
    mac_octets: usize,
}

/// The signatures of the messages that answer one query, or of a query of our own.
#[derive(Clone)]
pub struct Chain {
    /// The signature before: the query's at first.
    mac: [u8; MAC_OCTETS_MAX],
    mac_octets: usize,
    /// The digest so far of messages that were not signed.
    context: Option<hmac::Context>,
    unsigned: u32,
    /// Whether the next signature covers the names of key and algorithm too (RFC 8945 §5.3).
    is_first: bool,
}

impl std::fmt::Debug for Chain {
    /// Digests stay unsaid.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chain").field("unsigned", &self.unsigned).finish_non_exhaustive()
    }
}

impl Key {
    /// Prepares a key.
    pub fn new(parts: &Parts) -> Self {
        Key { signer: Signer::new(parts), mac_octets: parts.algorithm.native_len() }
    }

    /// The octets that a signature adds to a message.
    pub fn octets(&self) -> usize {
        self.signer.octets()
    }

    /// Checks the signature that begins at `tsig_at` and ends `message`; `now_s` is wall time.
    pub fn verify(&self, message: &[u8], tsig_at: usize, now_s: u64) -> Result<Box<Chain>, Refusal> {
        let Record { name, algorithm, variables, mac, id } =
            Record::read(message, tsig_at).ok_or(Refusal::Malformed)?;
        if !name.eq_ignore_ascii_case(self.signer.name()) || !algorithm.eq_ignore_ascii_case(self.signer.algorithm()) {
            return Err(Refusal::Unsigned(Error::BadKey));
        }
        // A shortened MAC is allowed by RFC 8945 §5.2.2.1, but by no policy of ours.
        if mac.len() != self.mac_octets {
            return Err(Refusal::Unsigned(Error::BadSignature));
        }
        let mut context = self.signer.context();
        let records = u16::from_be_bytes([message[ARCOUNT.start], message[ARCOUNT.start + 1]]);
        context.update(id);
        context.update(&message[2..ARCOUNT.start]);
        context.update(&records.wrapping_sub(1).to_be_bytes());
        context.update(&message[HEADER_OCTETS..tsig_at]);
        self.signer.digest(&mut context, &variables);
        // Not in constant time: who can measure that here holds the key as well.
        if context.sign().as_ref() != mac {
            return Err(Refusal::Unsigned(Error::BadSignature));
        }
        let chain = Box::new(Chain::after(mac));
        let time_s = variables.time.iter().fold(0, |time_s, octet| time_s << 8 | u64::from(*octet));
        let fudge_s = u16::from_be_bytes(variables.fudge);
        if now_s.abs_diff(time_s) > u64::from(fudge_s) { Err(Refusal::Late(chain)) } else { Ok(chain) }
    }

    /// Appends a TSIG record without a signature, which says why there is none.
    pub fn deny(to: &mut MessageWriter<'_>, start: usize, message: &[u8], tsig_at: usize, error: Error, now_s: u64) {
        let Some(record) = Record::read(message, tsig_at) else { return };
        let variables = Variables { error: (error as u16).to_be_bytes(), ..Variables::at(now_s) };
        put_record(to, start, record.name, record.algorithm, &variables, &[]);
    }
}

impl Chain {
    /// The chain that begins a conversation: a query of our own is signed.
    pub fn query() -> Self {
        Chain::after(&[])
    }

    fn after(mac: &[u8]) -> Self {
        let mut chain = Chain { mac: [0; MAC_OCTETS_MAX], mac_octets: 0, context: None, unsigned: 0, is_first: true };
        chain.keep(mac);
        chain
    }

    fn keep(&mut self, mac: &[u8]) {
        self.mac[..mac.len()].copy_from_slice(mac);
        self.mac_octets = mac.len();
    }

    /// How many messages were passed since the last that was signed.
    pub fn unsigned(&self) -> u32 {
        self.unsigned
    }

    /// Whether nothing was signed yet.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Takes in a message that is sent without a signature: the next one covers it.
    pub fn pass(&mut self, key: &Key, message: &[u8]) {
        let mut context = self.begun(key);
        context.update(message);
        self.context = Some(context);
        self.unsigned += 1;
    }

    /// Signs the message from `start` on, which has no TSIG record yet.
    pub fn sign(&mut self, key: &Key, to: &mut MessageWriter<'_>, start: usize, now_s: u64) {
        self.sign_with(key, to, start, &Variables::at(now_s));
    }

    /// Signs an answer to a query that came too late or too early, and says what time it is here.
    pub fn sign_late(&mut self, key: &Key, to: &mut MessageWriter<'_>, start: usize, now_s: u64) {
        let now = Variables::at(now_s);
        let error = (Error::BadTime as u16).to_be_bytes();
        self.sign_with(key, to, start, &Variables { error, other: &now.time.clone(), ..now });
    }

    fn sign_with(&mut self, key: &Key, to: &mut MessageWriter<'_>, start: usize, variables: &Variables<'_>) {
        let mut context = self.begun(key);
        context.update(&to.written()[start..]);
        if self.is_first {
            key.signer.digest(&mut context, variables);
        } else {
            context.update(&variables.time);
            context.update(&variables.fudge);
        }
        let mac = context.sign();
        self.keep(mac.as_ref());
        self.is_first = false;
        self.unsigned = 0;
        put_record(to, start, key.signer.name(), key.signer.algorithm(), variables, mac.as_ref());
    }

    /// The digest of what came since the last signature, that one first (RFC 8945 §5.3.1).
    fn begun(&mut self, key: &Key) -> hmac::Context {
        self.context.take().unwrap_or_else(|| {
            let mut context = key.signer.context();
            if self.mac_octets > 0 {
                context.update(&(self.mac_octets as u16).to_be_bytes());
                context.update(&self.mac[..self.mac_octets]);
            }
            context
        })
    }
}

/// The fields of a TSIG record (RFC 8945 §4.2).
struct Record<'a> {
    name: &'a [u8],
    algorithm: &'a [u8],
    variables: Variables<'a>,
    mac: &'a [u8],
    id: &'a [u8],
}

impl<'a> Record<'a> {
    /// None if it is malformed, or anything follows it.
    fn read(message: &'a [u8], at: usize) -> Option<Self> {
        let name_end = plain_name_end(message, at)?;
        let fixed = message.get(name_end..name_end + 10)?;
        let data = &message[name_end + 10..];
        let [class, ttl, length] = [&fixed[2..4], &fixed[4..8], &fixed[8..]];
        if class != CLASS_ANY.to_be_bytes()
            || ttl != TTL
            || usize::from(u16::from_be_bytes([length[0], length[1]])) != data.len()
        {
            return None;
        }
        let (algorithm, rest) = data.split_at(plain_name_end(data, 0)?);
        let (time, rest) = rest.split_first_chunk()?;
        let (fudge, rest) = rest.split_first_chunk()?;
        let (mac, rest) = split_field(rest)?;
        let (id, rest) = rest.split_at_checked(2)?;
        let (error, rest) = rest.split_first_chunk()?;
        let (other, rest) = split_field(rest)?;
        let variables = Variables { time: *time, fudge: *fudge, error: *error, other };
        rest.is_empty().then_some(Record { name: &message[at..name_end], algorithm, variables, mac, id })
    }
}

/// A field with its length before it, and what follows.
fn split_field(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// Appends a TSIG record to the message that begins at `start`, and counts it there.
fn put_record(
    to: &mut MessageWriter<'_>,
    start: usize,
    name: &[u8],
    algorithm: &[u8],
    variables: &Variables<'_>,
    mac: &[u8],
) {
    let message = &to.written()[start..];
    let id = [message[0], message[1]];
    let records = u16::from_be_bytes([message[ARCOUNT.start], message[ARCOUNT.start + 1]]);
    to.set_u16(start + ARCOUNT.start, records + 1);
    to.put(name);
    to.put_u16(TYPE_TSIG);
    to.put_u16(CLASS_ANY);
    to.put(&TTL);
    let length_at = to.at();
    to.put_u16(0);
    to.put(algorithm);
    to.put(&variables.time);
    to.put(&variables.fudge);
    to.put_u16(mac.len() as u16);
    to.put(mac);
    to.put(&id);
    to.put(&variables.error);
    to.put_u16(variables.other.len() as u16);
    to.put(variables.other);
    to.set_u16(length_at, (to.at() - length_at - 2) as u16);
}

#[cfg(test)]
#[path = "tsig_tests.rs"]
mod tests;
