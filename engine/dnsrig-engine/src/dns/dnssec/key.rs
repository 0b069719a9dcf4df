//! Keys of zones: their DNSKEY and DS records.

use ring::digest::{SHA256, digest};

use super::secret::{Algorithm, Nonces, Secret};

/// The protocol field of DNSKEY records (RFC 4034 §2.1.2).
const PROTOCOL: u8 = 3;

/// The digest type of DS records: SHA-256 (RFC 4509).
const DIGEST_SHA256: u8 = 2;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A DS record names it, and it signs the keys. It may sign all else, too: then it is the zone's only key.
    KeySigning,
    /// It signs all but the keys.
    ZoneSigning,
}

impl Role {
    /// The flags of the DNSKEY record: zone key, and for key-signing keys the secure entry point (RFC 4034 §2.1.1).
    pub fn flags(self) -> u16 {
        match self {
            Role::KeySigning => 257,
            Role::ZoneSigning => 256,
        }
    }
}

/// A key of a zone, with its private half.
pub struct Key {
    secret: Secret,
    dnskey: Vec<u8>,
    tag: u16,
}

impl Key {
    /// The key in this role.
    pub fn new(secret: Secret, role: Role) -> Self {
        let public = secret.public();
        let dnskey = [&role.flags().to_be_bytes()[..], &[PROTOCOL, secret.algorithm().number()], &public].concat();
        let tag = key_tag(&dnskey);
        Key { secret, dnskey, tag }
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.secret.algorithm()
    }

    /// The data of its DNSKEY record (RFC 4034 §2.1).
    pub fn dnskey(&self) -> &[u8] {
        &self.dnskey
    }

    /// Its key tag.
    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// The data of the DS record for it in the parent of `zone` (RFC 4034 §5.1), with SHA-256.
    pub fn ds(&self, zone: &[u8]) -> Vec<u8> {
        ds(zone, &self.dnskey)
    }

    /// Appends the signature of a message.
    pub fn sign(&self, message: &[u8], nonces: Nonces, to: &mut Vec<u8>) {
        self.secret.sign(message, nonces, to);
    }
}

/// The key tag of the data of a DNSKEY record (RFC 4034, appendix B).
pub fn key_tag(dnskey: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let sum: u32 = dnskey.chunks(2).map(word).sum();
    (sum + (sum >> 16)) as u16
}

/// The data of the DS record for the DNSKEY record of `zone` with this data.
fn ds(zone: &[u8], dnskey: &[u8]) -> Vec<u8> {
    let digested = digest(&SHA256, &[&zone.to_ascii_lowercase(), dnskey].concat());
    [&key_tag(dnskey).to_be_bytes()[..], &[dnskey[3], DIGEST_SHA256], digested.as_ref()].concat()
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
