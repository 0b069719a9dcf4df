//! TSIG: a signature behind each query (RFC 8945).
//!
//! It is the last thing that is done to a message, for it covers the id. What does not change from query to query is
//! prepared once: key schedule, names, the record. Signing then costs the digests, four blocks of SHA-256 for a query
//! of usual size, and allocates nothing.

use std::fmt;

use domain::tsig::Algorithm;
use ring::hmac;

use super::QueryError;
use crate::key;

/// By how much the clocks of client and server may differ, in seconds: the recommended value (RFC 8945 §10).
const FUDGE_S: u16 = 300;

/// TYPE TSIG, CLASS ANY (RFC 8945 §4.2).
const TYPE_TSIG: [u8; 2] = [0, 250];
const CLASS_ANY: [u8; 2] = [0, 255];

/// Where ARCOUNT stands in a message (RFC 1035 §4.1.1).
const ARCOUNT: std::ops::Range<usize> = 10..12;

/// Signs messages with one key.
#[derive(Clone)]
pub struct Signer {
    key: hmac::Key,
    /// The TSIG variables (RFC 8945 §4.3.3), with a time to be filled in.
    variables: Vec<u8>,
    variables_time: usize,
    /// The TSIG record, with time, signature and id to be filled in.
    record: Vec<u8>,
    record_time: usize,
}

impl fmt::Debug for Signer {
    /// The secret stays unsaid.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signer").field("algorithm", &self.key.algorithm()).finish_non_exhaustive()
    }
}

impl Signer {
    /// Reads `ALGORITHM:NAME:SECRET`, see [`key::read`].
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let key::Parts { algorithm, name, secret } = key::read(text).map_err(QueryError::Tsig)?;
        Ok(Self::new(algorithm, name.as_slice(), &secret))
    }

    /// `name` is in wire format.
    fn new(algorithm: Algorithm, name: &[u8], secret: &[u8]) -> Self {
        let hmac_algorithm = match algorithm {
            Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        };
        let signature = vec![0; algorithm.native_len()];
        // Names are digested in canonical form: lower case, not compressed. Lengths of labels are no letters.
        let name = name.to_ascii_lowercase();
        let algorithm = algorithm.to_name();
        let algorithm = algorithm.as_slice();
        let (time, fudge) = ([0; 6], FUDGE_S.to_be_bytes());
        let signature_octets = (signature.len() as u16).to_be_bytes();
        let data_octets = (algorithm.len() + time.len() + 10 + signature.len()) as u16;

        let (ttl, none) = ([0; 4], [0; 4]); // no error, no other data
        let variables = [&name, &CLASS_ANY[..], &ttl, algorithm, &time, &fudge, &none].concat();
        let owner = [&name, &TYPE_TSIG[..], &CLASS_ANY, &ttl, &data_octets.to_be_bytes()].concat();
        let id = [0; 2];
        let data = [algorithm, &time, &fudge, &signature_octets, &signature, &id, &none].concat();
        Signer {
            key: hmac::Key::new(hmac_algorithm, secret),
            variables_time: variables.len() - none.len() - fudge.len() - time.len(),
            variables,
            record_time: owner.len() + algorithm.len(),
            record: [owner, data].concat(),
        }
    }

    /// The octets that a signature adds to each message.
    pub fn octets(&self) -> usize {
        self.record.len()
    }

    /// Signs the message that takes the first `length` octets of `buffer` and has its id; gives its length afterwards.
    ///
    /// `time_s` is wall time in seconds since 1970.
    ///
    /// # Panics
    ///
    /// If `length` is less than a header, or less than [`Signer::octets`] octets are left in `buffer`.
    pub fn sign(&mut self, buffer: &mut [u8], length: usize, time_s: u64) -> usize {
        let [_, _, time @ ..] = time_s.to_be_bytes();
        self.variables[self.variables_time..][..time.len()].copy_from_slice(&time);
        let mut digest = hmac::Context::with_key(&self.key);
        digest.update(&buffer[..length]);
        digest.update(&self.variables);
        let signature = digest.sign();
        let signature = signature.as_ref();

        let id = [buffer[0], buffer[1]];
        let end = length + self.record.len();
        let record = &mut buffer[length..end];
        record.copy_from_slice(&self.record);
        let rest = &mut record[self.record_time..];
        // Time, fudge, signature's length, signature, id.
        rest[..6].copy_from_slice(&time);
        rest[10..][..signature.len()].copy_from_slice(signature);
        rest[10 + signature.len()..][..2].copy_from_slice(&id);
        let records = u16::from_be_bytes([buffer[ARCOUNT.start], buffer[ARCOUNT.start + 1]]);
        buffer[ARCOUNT].copy_from_slice(&records.wrapping_add(1).to_be_bytes());
        end
    }
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
