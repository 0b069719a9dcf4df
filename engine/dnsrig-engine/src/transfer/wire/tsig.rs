//! Signatures of queries and of the streams that answer them (RFC 8945).

use crate::key;

/// Signs queries with one key.
#[derive(Clone)]
pub struct Signer;

/// What checks the answers to one signed query.
pub struct Verifier;

impl Signer {
    /// Prepares the key.
    pub fn new(_key: key::Parts) -> Self {
        Signer
    }

    /// Signs the message that starts at `start` in `to` and ends with it: appends the TSIG record.
    ///
    /// `now_s` is wall time in seconds since 1970. Returns what checks the answers.
    pub fn sign(&self, _to: &mut Vec<u8>, _start: usize, _now_s: u64) -> Verifier {
        Verifier
    }
}
