//! TSIG records of one key (RFC 8945): what signs a query, and what the signature of an answer is made of.
//!
//! A signature is the last thing that is done to a message, for it covers the id. What does not change from message to
//! message is prepared once: key schedule, names, the record. Signing then costs the digests, four blocks of SHA-256
//! for a query of usual size, and allocates nothing.

use std::fmt;

use domain::tsig::Algorithm;
use ring::hmac;

use super::key;

/// By how much the clocks of client and server may differ, in seconds: the recommended value (RFC 8945 §10).
pub const FUDGE_S: u16 = 300;

/// TYPE TSIG, CLASS ANY (RFC 8945 §4.2).
pub const TYPE_TSIG: u16 = 250;
pub const CLASS_ANY: u16 = 255;

/// Where ARCOUNT stands in a message (RFC 1035 §4.1.1).
const ARCOUNT: std::ops::Range<usize> = 10..12;

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
    mac_octets: usize,
}

impl fmt::Debug for Signer {
    /// The secret stays unsaid.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signer").field("algorithm", &self.key.algorithm()).finish_non_exhaustive()
    }
}

impl Signer {
    /// Prepares a key.
    pub fn new(parts: &key::Parts) -> Self {
        let hmac_algorithm = match parts.algorithm {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        let mac = vec![0; parts.algorithm.native_len()];
        // Names are digested in canonical form: lower case, not compressed. Lengths of labels are no letters.
        let name = parts.name.as_slice().to_ascii_lowercase();
        let algorithm = parts.algorithm.to_name().into_octets();
        let (time, fudge) = ([0; 6], FUDGE_S.to_be_bytes());
        let mac_octets = (mac.len() as u16).to_be_bytes();
        let data_octets = (algorithm.len() + time.len() + 10 + mac.len()) as u16;

        let (class, ttl, none) = (CLASS_ANY.to_be_bytes(), [0; 4], [0; 4]); // no error, no other data
        let owner = [&name, &TYPE_TSIG.to_be_bytes()[..], &class, &ttl, &data_octets.to_be_bytes()].concat();
        let id = [0; 2];
        let data = [algorithm, &time, &fudge, &mac_octets, &mac, &id, &none].concat();
        Signer {
            key: hmac::Key::new(hmac_algorithm, &parts.secret),
            variables: [&name, &class[..], &ttl, algorithm].concat(),
            name,
            algorithm,
            record_time: owner.len() + algorithm.len(),
            record: [owner, data].concat(),
            mac_octets: mac.len(),
        }
    }

    /// The octets that a signature adds to each message.
    pub fn octets(&self) -> usize {
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

    /// The start of a signature.
    pub fn context(&self) -> hmac::Context {
        hmac::Context::with_key(&self.key)
    }

    /// Adds the TSIG variables (RFC 8945 §4.3.3) to a signature.
    pub fn digest(&self, context: &mut hmac::Context, variables: &Variables<'_>) {
        context.update(&self.variables);
        context.update(&variables.time);
        context.update(&variables.fudge);
        context.update(&variables.error);
        context.update(&(variables.other.len() as u16).to_be_bytes());
        context.update(variables.other);
    }

    /// Signs the message that takes the first `length` octets of `buffer` and has its id; gives its length afterwards.
    ///
    /// `time_s` is wall time in seconds since 1970.
    ///
    /// # Panics
    ///
    /// If `length` is less than a header, or less than [`Signer::octets`] octets are left in `buffer`.
    pub fn sign(&self, buffer: &mut [u8], length: usize, time_s: u64) -> usize {
        let variables = Variables::at(time_s);
        let mut context = self.context();
        context.update(&buffer[..length]);
        self.digest(&mut context, &variables);
        let mac = context.sign();
        let mac = mac.as_ref();

        let id = [buffer[0], buffer[1]];
        let end = length + self.record.len();
        let record = &mut buffer[length..end];
        record.copy_from_slice(&self.record);
        let rest = &mut record[self.record_time..];
        // Time, fudge, signature's length, signature, id.
        rest[..6].copy_from_slice(&variables.time);
        rest[10..][..mac.len()].copy_from_slice(mac);
        rest[10 + mac.len()..][..2].copy_from_slice(&id);
        let records = u16::from_be_bytes([buffer[ARCOUNT.start], buffer[ARCOUNT.start + 1]]);
        buffer[ARCOUNT].copy_from_slice(&records.wrapping_add(1).to_be_bytes());
        end
    }

    /// The signature in a message that [`Signer::sign`] signed: all but the last six octets, of id, error and no data.
    pub fn mac<'m>(&self, signed: &'m [u8]) -> &'m [u8] {
        let end = signed.len() - 6;
        &signed[end - self.mac_octets..end]
    }
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
