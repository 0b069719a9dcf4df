//! RRSIG records on demand.
//!
//! Each thread has a signer of its own, so none waits for another; it keeps the signatures it made.

use std::mem;

use domain::base::Rtype;
use lru::LruCache;
use ring::digest::{SHA256, digest};
use serde::Serialize;

use super::{
    key::{Key, Nonces},
    rrset::{Rrset, Signed, Validity},
};
use crate::name::ParseError;

/// Deliberate damage: one way in which a validator finds a zone bogus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The parent's DS record has the digest of another key.
    WrongDs,
    /// Signatures ended before the zone's validity began.
    Expired,
    /// No RRset has a signature.
    MissingSignature,
    /// The key that signs the zone's records is not among its DNSKEY records.
    MissingKey,
    /// NSEC and NSEC3 records, properly signed, match and cover nothing that is asked for.
    BrokenDenial,
}

/// A signed zone: its name in wire format, its keys, and when its signatures are valid.
#[derive(Clone, Copy)]
pub struct SignedZone<'a> {
    pub name: &'a [u8],
    /// It signs the keys, and the parent's DS record names it.
    pub key_signing: &'a Key,
    /// It signs all else; the same key where the zone has only one.
    pub zone_signing: &'a Key,
    pub validity: Validity,
    /// What is wrong with the zone, if something is.
    pub fault: Option<Fault>,
}

impl<'a> SignedZone<'a> {
    /// The data of its DNSKEY records: one or two, or one less where the key is missing.
    pub fn dnskeys(&self) -> impl Iterator<Item = &'a [u8]> {
        let (keys, zone) = (self.key_signing.dnskey(), self.zone_signing.dnskey());
        let is_published = self.fault != Some(Fault::MissingKey);
        let key_signing = (keys != zone || is_published).then_some(keys);
        key_signing.into_iter().chain((keys != zone && is_published).then_some(zone))
    }

    /// The data of its DS record.
    pub fn ds(&self) -> Vec<u8> {
        let mut data = self.key_signing.ds(self.name);
        if let (Some(Fault::WrongDs), Some(last)) = (self.fault, data.last_mut()) {
            *last ^= 1;
        }
        data
    }

    /// The key that signs records of a type.
    fn key(&self, rtype: Rtype) -> &'a Key {
        if rtype == Rtype::DNSKEY { self.key_signing } else { self.zone_signing }
    }

    fn validity(&self) -> Validity {
        if self.fault == Some(Fault::Expired) { self.validity.before() } else { self.validity }
    }
}

/// How many signatures were given, how many of them had to be made, and for how many there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub given: u64,
    pub made: u64,
    pub forgotten: u64,
}

/// Makes signatures, and keeps them in bounded memory.
#[derive(Clone)]
pub struct Signer {
    nonces: Nonces,
    cache: Cache,
    signed: Signed,
    counts: Counts,
}

impl Signer {
    /// A signer that keeps at most `cache_bytes_max` bytes of signatures.
    pub fn new(nonces: Nonces, cache_bytes_max: usize) -> Self {
        Signer { nonces, cache: Cache::new(cache_bytes_max), signed: Signed::default(), counts: Counts::default() }
    }

    /// How many signatures there were so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many there were so far; they are counted anew.
    pub fn take_counts(&mut self) -> Counts {
        mem::take(&mut self.counts)
    }

    /// Appends the data of the RRSIG record for an RRset of the zone, or nothing where signatures are missing.
    ///
    /// Returns whether there is one. Data that is not as its type asks for is [`ParseError::Malformed`].
    pub fn rrsig<'a>(
        &mut self,
        zone: &SignedZone<'_>,
        rrset: &Rrset<'_, impl IntoIterator<Item = &'a [u8]> + Clone>,
        to: &mut Vec<u8>,
    ) -> Result<bool, ParseError> {
        if zone.fault == Some(Fault::MissingSignature) {
            return Ok(false);
        }
        let key = zone.key(rrset.rtype);
        let Signer { nonces, cache, signed, counts } = self;
        signed.write(rrset, zone.name, key, zone.validity())?;
        to.extend_from_slice(signed.rrsig());
        let forgotten = cache.forgotten();
        let was_kept = cache.append(signed.bytes(), to, |to| key.sign(signed.bytes(), *nonces, to));
        counts.given += 1;
        counts.made += u64::from(!was_kept);
        counts.forgotten += cache.forgotten() - forgotten;
        Ok(true)
    }
}

/// The first half of the SHA-256 of what is signed: among a billion there are two alike in one of 10^20 cases.
type Digest = [u8; 16];

/// What an entry takes beside its signature: digest, four pointers and the length, its share of a hash table that is
/// half full, and what the allocator adds to two pieces. It is on the safe side: a signature of 64 bytes counts
/// 208, and took 179 where a million were kept beside another million (`examples/signing_speed.rs`).
const ENTRY_BYTES: usize = 144;

/// Signatures, the one used longest ago leaving first.
#[derive(Clone)]
pub struct Cache {
    entries: LruCache<Digest, Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
    forgotten: u64,
}

impl Cache {
    /// A cache that takes at most `bytes_max` bytes; none, if that is less than a signature takes.
    pub fn new(bytes_max: usize) -> Self {
        Cache { entries: LruCache::unbounded(), bytes: 0, bytes_max, forgotten: 0 }
    }

    /// Bytes that the entries take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many signatures had no room, or left for others.
    fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Has the signature of a message appended to `to`: the one that is kept, or the one that `sign` appends, which is
    /// kept then. Returns whether it was there.
    pub fn append(&mut self, message: &[u8], to: &mut Vec<u8>, sign: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.bytes_max < ENTRY_BYTES {
            sign(to);
            self.forgotten += 1;
            return false;
        }
        let found: Digest = *digest(&SHA256, message).as_ref().first_chunk().expect("SHA-256 has 32 bytes");
        if let Some(signature) = self.entries.get(&found) {
            to.extend_from_slice(signature);
            return true;
        }
        let at = to.len();
        sign(to);
        self.keep(found, to[at..].into());
        false
    }

    fn keep(&mut self, digest: Digest, signature: Box<[u8]>) {
        self.bytes += ENTRY_BYTES + signature.len();
        self.entries.push(digest, signature);
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.entries.pop_lru() else { break };
            self.bytes -= ENTRY_BYTES + oldest.len();
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
#[path = "signer_tests.rs"]
mod tests;
