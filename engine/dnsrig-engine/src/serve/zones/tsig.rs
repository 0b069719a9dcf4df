//! TSIG on the primary's side: checks a query's signature, and signs the messages of its answer (RFC 8945). No I/O.
//!
//! What does not change is prepared once a key: the key schedule and the names, which are digested in canonical form
//! (lower case, not compressed).

use domain::tsig::Algorithm;
use ring::hmac;

use crate::key::Parts;

use super::{
    pen::Pen,
    query::{HEADER_OCTETS, kind, plain_name_end},
};

/// By how much clocks may differ, in seconds: the recommended value (RFC 8945 §10).
const FUDGE_S: u16 = 300;

/// CLASS ANY, and the TTL of a TSIG record (RFC 8945 §4.2).
const CLASS_ANY: [u8; 2] = [0, 255];
const TTL: [u8; 4] = [0; 4];

/// The longest MAC that there is: SHA-512's.
const MAC_OCTETS_MAX: usize = 64;

/// Time and fudge as they stand in the record.
const TIMERS_OCTETS: usize = 8;

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
    hmac: hmac::Key,
    name: Box<[u8]>,
    algorithm: Box<[u8]>,
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
    pub fn new(Parts { algorithm, name, secret }: Parts) -> Self {
        let hmac_algorithm = match algorithm {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        Key {
            hmac: hmac::Key::new(hmac_algorithm, &secret),
            name: name.as_slice().to_ascii_lowercase().into(),
            algorithm: algorithm.to_name().as_slice().to_ascii_lowercase().into(),
            mac_octets: algorithm.native_len(),
        }
    }

    /// The octets that a signature adds to a message.
    pub fn octets(&self) -> usize {
        record_octets(&self.name, &self.algorithm, self.mac_octets, 0)
    }

    /// Checks the signature that begins at `tsig_at` and ends `message`; `now_s` is wall time.
    pub fn verify(&self, message: &[u8], tsig_at: usize, now_s: u64) -> Result<Box<Chain>, Refusal> {
        let Record { name, algorithm, time, fudge, mac, id, error, other } =
            Record::read(message, tsig_at).ok_or(Refusal::Malformed)?;
        if !name.eq_ignore_ascii_case(&self.name) || !algorithm.eq_ignore_ascii_case(&self.algorithm) {
            return Err(Refusal::Unsigned(Error::BadKey));
        }
        // A shortened MAC is allowed by RFC 8945 §5.2.2.1, but by no policy of ours.
        if mac.len() != self.mac_octets {
            return Err(Refusal::Unsigned(Error::BadSignature));
        }
        let mut context = hmac::Context::with_key(&self.hmac);
        let records = u16::from_be_bytes([message[ARCOUNT.start], message[ARCOUNT.start + 1]]);
        context.update(id);
        context.update(&message[2..ARCOUNT.start]);
        context.update(&records.wrapping_sub(1).to_be_bytes());
        context.update(&message[HEADER_OCTETS..tsig_at]);
        self.digest_names(&mut context);
        context.update(time);
        context.update(fudge);
        context.update(error);
        context.update(&(other.len() as u16).to_be_bytes());
        context.update(other);
        // Not in constant time: who can measure that here holds the key as well.
        if context.sign().as_ref() != mac {
            return Err(Refusal::Unsigned(Error::BadSignature));
        }
        let chain = Box::new(Chain::after(mac));
        let time_s = time.iter().fold(0, |time_s, octet| time_s << 8 | u64::from(*octet));
        let fudge_s = u16::from_be_bytes([fudge[0], fudge[1]]);
        if now_s.abs_diff(time_s) > u64::from(fudge_s) { Err(Refusal::Late(chain)) } else { Ok(chain) }
    }

    /// Key, class, TTL, algorithm: what a first signature covers beside the message (RFC 8945 §4.3.3).
    fn digest_names(&self, context: &mut hmac::Context) {
        context.update(&self.name);
        context.update(&CLASS_ANY);
        context.update(&TTL);
        context.update(&self.algorithm);
    }

    /// Appends a TSIG record without a signature, which says why there is none.
    pub fn deny(to: &mut Pen<'_>, start: usize, message: &[u8], tsig_at: usize, error: Error, now_s: u64) {
        let Some(record) = Record::read(message, tsig_at) else { return };
        let time = timers(now_s);
        put_record(to, start, record.name, record.algorithm, &time, &[], error as u16, &[]);
    }
}

impl Chain {
    /// The chain that begins a conversation: a query of our own is signed.
    pub fn query() -> Self {
        Chain::after(&[])
    }

    fn after(mac: &[u8]) -> Self {
        let mut chain =
            Chain { mac: [0; MAC_OCTETS_MAX], mac_octets: 0, context: None, unsigned: 0, is_first: true };
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
    pub fn sign(&mut self, key: &Key, to: &mut Pen<'_>, start: usize, now_s: u64) {
        self.sign_with(key, to, start, now_s, 0, &[]);
    }

    /// Signs an answer to a query that came too late or too early, and says what time it is here.
    pub fn sign_late(&mut self, key: &Key, to: &mut Pen<'_>, start: usize, now_s: u64) {
        let time = timers(now_s);
        self.sign_with(key, to, start, now_s, Error::BadTime as u16, &time[..6]);
    }

    fn sign_with(&mut self, key: &Key, to: &mut Pen<'_>, start: usize, now_s: u64, error: u16, other: &[u8]) {
        let mut context = self.begun(key);
        context.update(&to.written()[start..]);
        let time = timers(now_s);
        if self.is_first {
            key.digest_names(&mut context);
            context.update(&time);
            context.update(&error.to_be_bytes());
            context.update(&(other.len() as u16).to_be_bytes());
            context.update(other);
        } else {
            context.update(&time);
        }
        let mac = context.sign();
        self.keep(mac.as_ref());
        self.is_first = false;
        self.unsigned = 0;
        put_record(to, start, &key.name, &key.algorithm, &time, mac.as_ref(), error, other);
    }

    /// The digest of what came since the last signature, that one first (RFC 8945 §5.3.1).
    fn begun(&mut self, key: &Key) -> hmac::Context {
        self.context.take().unwrap_or_else(|| {
            let mut context = hmac::Context::with_key(&key.hmac);
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
    time: &'a [u8],
    fudge: &'a [u8],
    mac: &'a [u8],
    id: &'a [u8],
    error: &'a [u8],
    other: &'a [u8],
}

impl<'a> Record<'a> {
    /// None if it is malformed, or anything follows it.
    fn read(message: &'a [u8], at: usize) -> Option<Self> {
        let name_end = plain_name_end(message, at)?;
        let fixed = message.get(name_end..name_end + 10)?;
        let data = &message[name_end + 10..];
        if fixed[2..8] != [&CLASS_ANY[..], &TTL].concat() || fixed[8..] != (data.len() as u16).to_be_bytes() {
            return None;
        }
        let (algorithm, rest) = data.split_at(plain_name_end(data, 0)?);
        let (time, rest) = rest.split_at_checked(6)?;
        let (fudge, rest) = rest.split_at_checked(2)?;
        let (mac, rest) = split_field(rest)?;
        let (id, rest) = rest.split_at_checked(2)?;
        let (error, rest) = rest.split_at_checked(2)?;
        let (other, rest) = split_field(rest)?;
        let name = &message[at..name_end];
        rest.is_empty().then_some(Record { name, algorithm, time, fudge, mac, id, error, other })
    }
}

/// A field with its length before it, and what follows.
fn split_field(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// Time and fudge.
fn timers(now_s: u64) -> [u8; TIMERS_OCTETS] {
    let [_, _, t0, t1, t2, t3, t4, t5] = now_s.to_be_bytes();
    let [f0, f1] = FUDGE_S.to_be_bytes();
    [t0, t1, t2, t3, t4, t5, f0, f1]
}

fn record_octets(name: &[u8], algorithm: &[u8], mac: usize, other: usize) -> usize {
    name.len() + 10 + algorithm.len() + TIMERS_OCTETS + 2 + mac + 2 + 2 + 2 + other
}

/// Appends a TSIG record to the message that begins at `start`, and counts it there.
#[allow(clippy::too_many_arguments)] // the fields of the record, in its order
fn put_record(
    to: &mut Pen<'_>,
    start: usize,
    name: &[u8],
    algorithm: &[u8],
    timers: &[u8; TIMERS_OCTETS],
    mac: &[u8],
    error: u16,
    other: &[u8],
) {
    let data_octets = record_octets(name, algorithm, mac.len(), other.len()) - name.len() - 10;
    let message = &to.written()[start..];
    let id = [message[0], message[1]];
    let records = u16::from_be_bytes([message[ARCOUNT.start], message[ARCOUNT.start + 1]]);
    to.set_u16(start + ARCOUNT.start, records + 1);
    to.put(name);
    to.put_u16(kind::TSIG);
    to.put(&CLASS_ANY);
    to.put(&TTL);
    to.put_u16(data_octets as u16);
    to.put(algorithm);
    to.put(timers);
    to.put_u16(mac.len() as u16);
    to.put(mac);
    to.put(&id);
    to.put_u16(error);
    to.put_u16(other.len() as u16);
    to.put(other);
}
