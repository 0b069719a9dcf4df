//! Signatures of one key (RFC 8945): of a query, and of messages that follow each other.
//!
//! A signature is the last thing that is done to a message, for it covers the id. What does not change from message to
//! message is prepared once: key schedule, names, the record. Signing then costs the digests, four blocks of SHA-256
//! for a query of usual size, and allocates nothing.

use std::{fmt, mem, str::FromStr, sync::Arc};

use dnsrig_core::failure::Failure;
use domain::{
    base::{Rtype, iana::Class},
    tsig::{Algorithm, KeyName},
    utils::base64,
};
use ring::hmac;

use crate::{header, writer::append_record};

/// By how much the clocks of client and server may differ, in seconds: the recommended value (RFC 8945 §10).
const FUDGE_S: u16 = 300;

/// CLASS and TTL of a TSIG record (RFC 8945 §4.2).
const CLASS_AND_TTL: [u8; 6] = [0, Class::ANY.to_int() as u8, 0, 0, 0, 0];

/// What of a TSIG record is signed beside message, names and class (RFC 8945 §4.3.3).
#[derive(Clone, Copy, Debug)]
pub struct Variables<'a> {
    /// Seconds since 1970, 48 bits.
    pub time: [u8; 6],
    pub fudge: [u8; 2],
    pub error: [u8; 2],
    /// The time of a server that does not take ours, or nothing.
    pub other: &'a [u8],
}

impl Variables<'_> {
    /// Without an error.
    pub fn at(time_s: u64) -> Self {
        let [_, _, time @ ..] = time_s.to_be_bytes();
        Variables { time, fudge: FUDGE_S.to_be_bytes(), error: [0; 2], other: &[] }
    }
}

/// The longest secret that is taken, in bytes: twice a block of SHA-512, beyond which it would be hashed first.
const SECRET_BYTES_MAX: usize = 256;

/// What a key's text says.
pub struct Parts {
    pub algorithm: Algorithm,
    pub name: KeyName,
    pub secret: Vec<u8>,
}

/// Reads a key as a command line names it, `ALGORITHM:NAME:SECRET` (such as `hmac-sha256:transfer:c2VjcmV0…`): the
/// algorithm's name as in RFC 8945 §6, the key's name, the secret in base64.
///
/// Errors never repeat the secret.
pub fn read_key(text: &str) -> Result<Parts, &'static str> {
    let mut parts = text.splitn(3, ':');
    let (Some(algorithm), Some(name), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("it has three parts, ALGORITHM:NAME:SECRET");
    };
    let algorithm = Algorithm::from_str(algorithm.to_ascii_lowercase().trim_end_matches('.'))
        .map_err(|_| "the algorithm is not one of hmac-sha256, hmac-sha512, hmac-sha384, hmac-sha1")?;
    let name = KeyName::from_str(name).map_err(|_| "the key's name is no domain name")?;
    match base64::decode::<Vec<u8>>(secret) {
        Ok(secret) if (1..=SECRET_BYTES_MAX).contains(&secret.len()) => Ok(Parts { algorithm, name, secret }),
        _ => Err("the secret is no base64, empty, or longer than 256 bytes"),
    }
}

/// A failure because a key of a command line is not valid. It does not repeat the secret.
fn not_a_key(reason: &str) -> Failure {
    Failure::bad_input(
        format!("--tsig: {reason}"),
        "give --tsig ALGORITHM:NAME:SECRET, such as hmac-sha256:key.example:c2VjcmV0IG9mIGEga2V5, the secret in base64",
    )
}

/// Signs messages with one key.
#[derive(Clone)]
pub struct Signer {
    key: hmac::Key,
    /// The names of key and algorithm, lower case.
    name: Vec<u8>,
    algorithm: &'static [u8],
    /// The part of the TSIG variables before the time: key's name, class, TTL, algorithm's name.
    variables: Vec<u8>,
    /// The TSIG record, with time, signature and id to be filled in.
    record: Vec<u8>,
    record_time: usize,
    mac_bytes: usize,
}

impl fmt::Debug for Signer {
    /// Leaves the secret out.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signer").field("algorithm", &self.key.algorithm()).finish_non_exhaustive()
    }
}

impl Signer {
    /// Prepares a key from its text, see [`read_key`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        read_key(text).map(|parts| Self::new(&parts)).map_err(not_a_key)
    }

    fn new(parts: &Parts) -> Self {
        let hmac_algorithm = match parts.algorithm {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        // Names are digested in canonical form: lower case, not compressed. Lengths of labels are no letters.
        let name = parts.name.as_slice().to_ascii_lowercase();
        let algorithm = parts.algorithm.to_name().into_octets();
        let mac_bytes = parts.algorithm.native_len();
        Signer {
            key: hmac::Key::new(hmac_algorithm, &parts.secret),
            variables: [&name, &CLASS_AND_TTL[..], algorithm].concat(),
            record: record([&name, algorithm], &Variables::at(0), &vec![0; mac_bytes], [0; 2]),
            record_time: name.len() + 10 + algorithm.len(),
            name,
            algorithm,
            mac_bytes,
        }
    }

    /// The bytes that a signature adds to each message.
    pub fn bytes(&self) -> usize {
        self.record.len()
    }

    /// The key's name in wire format, lower case.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The algorithm's name in wire format, lower case.
    pub fn algorithm(&self) -> &'static [u8] {
        self.algorithm
    }

    fn context(&self) -> hmac::Context {
        hmac::Context::with_key(&self.key)
    }

    /// Adds the TSIG variables (RFC 8945 §4.3.3) to a signature.
    fn digest(&self, context: &mut hmac::Context, variables: &Variables<'_>) {
        context.update(&self.variables);
        context.update(&variables.time);
        context.update(&variables.fudge);
        context.update(&variables.error);
        context.update(&(variables.other.len() as u16).to_be_bytes());
        context.update(variables.other);
    }

    /// Signs the message that takes the first `length` bytes of `buffer` and has its id; gives its length afterwards.
    ///
    /// `time_s` is wall time in seconds since 1970.
    ///
    /// # Panics
    ///
    /// If `length` is less than a header, or less than [`Signer::bytes`] bytes are left in `buffer`.
    pub fn sign(&self, buffer: &mut [u8], length: usize, time_s: u64) -> usize {
        let variables = Variables::at(time_s);
        let mut context = self.context();
        context.update(&buffer[..length]);
        self.digest(&mut context, &variables);
        self.append(buffer, length, &variables, context.sign().as_ref())
    }

    /// Appends the prepared record to a message, with this signature.
    fn append(&self, buffer: &mut [u8], length: usize, variables: &Variables<'_>, mac: &[u8]) -> usize {
        let id = [buffer[0], buffer[1]];
        let end = length + self.record.len();
        let record = &mut buffer[length..end];
        record.copy_from_slice(&self.record);
        let rest = &mut record[self.record_time..];
        // Time, fudge, signature's length, signature, id.
        rest[..6].copy_from_slice(&variables.time);
        rest[10..][..mac.len()].copy_from_slice(mac);
        rest[10 + mac.len()..][..2].copy_from_slice(&id);
        header::count_additional(buffer);
        end
    }

    /// The signature in a message that [`Signer::sign`] signed: all but the last six bytes, of id, error and no data.
    pub fn mac<'m>(&self, signed: &'m [u8]) -> &'m [u8] {
        let end = signed.len() - 6;
        &signed[end - self.mac_bytes..end]
    }
}

/// Reads a key that may be shared, as a command line gives it.
pub fn parse_key(text: &str) -> Result<Arc<Signer>, Failure> {
    Signer::parse(text).map(Arc::new)
}

/// The signatures of messages that follow each other: each covers the one before it and whatever was sent unsigned
/// since then (RFC 8945 §5.3.1).
#[derive(Clone)]
pub struct Chain {
    /// What the next signature covers of what came before its message.
    context: hmac::Context,
    /// Whether the next signature is the first, which covers the names of key and algorithm too.
    is_first: bool,
    unsigned: u32,
}

impl fmt::Debug for Chain {
    /// Leaves digests out.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Chain").field("unsigned", &self.unsigned).finish_non_exhaustive()
    }
}

impl Chain {
    /// A chain that begins with a query.
    pub(super) fn new(signer: &Signer) -> Self {
        Chain { context: signer.context(), is_first: true, unsigned: 0 }
    }

    /// A chain of the answers to a query with this signature.
    pub fn after(signer: &Signer, mac: &[u8]) -> Self {
        let mut chain = Chain::new(signer);
        chain.cover(mac);
        chain
    }

    fn cover(&mut self, mac: &[u8]) {
        self.context.update(&(mac.len() as u16).to_be_bytes());
        self.context.update(mac);
    }

    /// Whether nothing was signed yet.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// How many messages were passed since the last that was signed.
    pub fn unsigned(&self) -> u32 {
        self.unsigned
    }

    /// Takes in a message without a signature: the next one covers it.
    pub fn pass(&mut self, message: &[u8]) {
        self.context.update(message);
        self.unsigned += 1;
    }

    /// The signature of the next message, which comes in parts and without its TSIG record.
    pub fn next(&mut self, signer: &Signer, message: &[&[u8]], variables: &Variables<'_>) -> hmac::Tag {
        let mut context = mem::replace(&mut self.context, signer.context());
        message.iter().for_each(|part| context.update(part));
        if self.is_first {
            signer.digest(&mut context, variables);
        } else {
            context.update(&variables.time);
            context.update(&variables.fudge);
        }
        let mac = context.sign();
        self.cover(mac.as_ref());
        (self.is_first, self.unsigned) = (false, 0);
        mac
    }

    /// Signs the next message in a buffer: like [`Signer::sign`].
    pub fn sign(&mut self, signer: &Signer, buffer: &mut [u8], length: usize, time_s: u64) -> usize {
        let variables = Variables::at(time_s);
        let mac = self.next(signer, &[&buffer[..length]], &variables);
        signer.append(buffer, length, &variables, mac.as_ref())
    }
}

/// Appends a TSIG record of this key, algorithm and signature to the message that takes the first `length` bytes of
/// `buffer`; gives its length afterwards.
pub(super) fn append(
    buffer: &mut [u8],
    length: usize,
    names: [&[u8]; 2],
    variables: &Variables<'_>,
    mac: &[u8],
) -> usize {
    let record = record(names, variables, mac, [buffer[0], buffer[1]]);
    let end = length + record.len();
    buffer[length..end].copy_from_slice(&record);
    header::count_additional(buffer);
    end
}

/// The TSIG record (RFC 8945 §4.2) of the message with this id; `name` is the key's, `algorithm` the algorithm's.
fn record([name, algorithm]: [&[u8]; 2], variables: &Variables<'_>, mac: &[u8], id: [u8; 2]) -> Vec<u8> {
    let Variables { time, fudge, error, other } = variables;
    let [mac_bytes, other_bytes] = [mac, other].map(|field| (field.len() as u16).to_be_bytes());
    let data = [algorithm, time, fudge, &mac_bytes, mac, &id, error, &other_bytes, other].concat();
    let mut record = Vec::new();
    append_record(&mut record, name, Rtype::TSIG, Class::ANY, 0, &data);
    record
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
