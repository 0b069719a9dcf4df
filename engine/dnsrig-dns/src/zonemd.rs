//! The digest of a zone (RFC 8976): whether what was transferred is what was published.
//!
//! A digest is made of all records in canonical order, so all of them are kept until the transfer ends: each with its
//! owner and its data, not compressed, and 18 bytes. What is kept has a limit; twice as much may be reserved, and
//! three times while a buffer grows.

use domain::base::{Rtype, iana::Class};
use ring::digest;

use super::{
    record::Record,
    xfr::{Answered, Change, Outcome, Sink},
};

/// Scheme SIMPLE, the only one there is (RFC 8976 §5.2).
const SCHEME_SIMPLE: u8 = 1;

/// Where a record lies among the kept bytes: its owner's [key](push_owner_key), two bytes of type, its data.
struct Entry {
    start: usize,
    owner_bytes: u16,
    data_bytes: u16,
    ttl_s: u32,
}

/// A ZONEMD record of the apex (RFC 8976 §2.2).
struct Zonemd {
    serial: u32,
    scheme: u8,
    algorithm: u8,
    digest: Vec<u8>,
}

impl Zonemd {
    fn read(data: &[u8]) -> Option<Self> {
        let (&[a, b, c, d, scheme, algorithm], digest) = data.split_first_chunk()?;
        Some(Zonemd { serial: u32::from_be_bytes([a, b, c, d]), scheme, algorithm, digest: digest.to_vec() })
    }

    /// How to compute it, if that is known.
    fn algorithm(&self) -> Option<&'static digest::Algorithm> {
        let algorithm = match self.algorithm {
            1 => &digest::SHA384,
            2 => &digest::SHA512,
            _ => return None,
        };
        (self.scheme == SCHEME_SIMPLE && self.digest.len() == algorithm.output_len()).then_some(algorithm)
    }
}

/// Checks the ZONEMD records of a zone against what was transferred.
///
/// A transfer ends as [`Outcome::Done`] if one of them is right, as [`Outcome::ZonemdWrong`] if none of those that can
/// be checked is, as [`Outcome::ZonemdMissing`] if no digest can be checked, which includes that only changes
/// came, and as [`Outcome::LimitExceeded`] if the zone is larger than the limit.
pub struct Digest {
    bytes_max: usize,
    /// The key of the apex without its last byte: what the keys of all owners in the zone begin with.
    apex: Vec<u8>,
    serial: u32,
    zonemds: Vec<Zonemd>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    owner: Vec<u8>,
}

impl Digest {
    /// A check that keeps at most `bytes_max` bytes of records.
    pub fn new(bytes_max: usize) -> Self {
        let (apex, zonemds, bytes, entries, owner) = Default::default();
        Digest { bytes_max, apex, serial: 0, zonemds, bytes, entries, owner }
    }

    /// The bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Keeps a record, unless it is not part of the digest (RFC 8976 §3.3.1).
    fn keep(&mut self, record: &Record<'_>) -> Result<(), Outcome> {
        self.owner.clear();
        record.owner_into(&mut self.owner)?;
        let start = self.bytes.len();
        push_owner_key(&self.owner, &mut self.bytes);
        let owner_bytes = self.bytes.len() - start;
        if record.rtype == Rtype::SOA && self.entries.is_empty() {
            self.apex = self.bytes[start..self.bytes.len() - 1].to_vec();
        }
        self.bytes.extend_from_slice(&record.rtype.to_int().to_be_bytes());
        let data = self.bytes.len();
        record.canonical_data_into(&mut self.bytes)?;
        let data_bytes = self.bytes.len() - data;
        if self.is_digested(record.rtype, start, owner_bytes) {
            // A key has at most two bytes for each of a name's 255, and data that was compressed at most the bytes of
            // two names more than a message: a record that cannot be in a zone.
            let (Ok(owner_bytes), Ok(data_bytes)) = (owner_bytes.try_into(), data_bytes.try_into()) else {
                return Err(Outcome::BadMessage);
            };
            self.entries.push(Entry { start, owner_bytes, data_bytes, ttl_s: record.ttl_s });
        } else {
            self.bytes.truncate(start);
        }
        if self.bytes() > self.bytes_max { Err(Outcome::LimitExceeded) } else { Ok(()) }
    }

    /// Whether the record that begins at `start` is part of the digest. The apex' ZONEMD records are not, and are kept
    /// aside; their signatures are not; nor is what lies outside of the zone.
    fn is_digested(&mut self, rtype: Rtype, start: usize, owner_bytes: usize) -> bool {
        let (owner, rest) = self.bytes[start..].split_at(owner_bytes);
        let data = &rest[2..];
        let is_apex = owner[..owner_bytes - 1] == self.apex;
        match rtype {
            Rtype::ZONEMD if is_apex => {
                // One that is no ZONEMD record by its form cannot be checked.
                self.zonemds.extend(Zonemd::read(data));
                false
            }
            Rtype::RRSIG if is_apex => data.first_chunk() != Some(&Rtype::ZONEMD.to_int().to_be_bytes()),
            _ => owner.starts_with(&self.apex),
        }
    }

    /// Checks the ZONEMD records (RFC 8976 §4).
    fn check(&mut self) -> Result<(), Outcome> {
        let bytes = &self.bytes;
        let key =
            |entry: &Entry| &bytes[entry.start..][..usize::from(entry.owner_bytes) + 2 + usize::from(entry.data_bytes)];
        self.entries.sort_unstable_by(|one, other| key(one).cmp(key(other)));
        // A record that is there twice is digested once.
        self.entries.dedup_by(|one, other| key(one) == key(other));

        let mut outcome = Outcome::ZonemdMissing;
        for zonemd in &self.zonemds {
            let Some(algorithm) = zonemd.algorithm() else { continue };
            let same = |other: &&Zonemd| (other.scheme, other.algorithm) == (zonemd.scheme, zonemd.algorithm);
            // Two of the same kind are not used (RFC 8976 §2).
            if self.zonemds.iter().filter(same).count() > 1 {
                continue;
            }
            outcome = Outcome::ZonemdWrong;
            if zonemd.serial == self.serial && self.digest(algorithm).as_ref() == zonemd.digest {
                return Ok(());
            }
        }
        Err(outcome)
    }

    /// The digest of all records, which are in canonical order.
    fn digest(&self, algorithm: &'static digest::Algorithm) -> digest::Digest {
        let mut context = digest::Context::new(algorithm);
        let mut wire = Vec::new();
        for entry in &self.entries {
            let (owner, rest) = self.bytes[entry.start..].split_at(usize::from(entry.owner_bytes));
            let (rtype, data) = rest.split_at(2);
            wire.clear();
            push_owner(owner, &mut wire);
            wire.extend_from_slice(rtype);
            wire.extend_from_slice(&Class::IN.to_int().to_be_bytes());
            wire.extend_from_slice(&entry.ttl_s.to_be_bytes());
            wire.extend_from_slice(&entry.data_bytes.to_be_bytes());
            wire.extend_from_slice(&data[..usize::from(entry.data_bytes)]);
            context.update(&wire);
        }
        context.finish()
    }
}

impl Sink for Digest {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        match change {
            Change::Add => {
                if self.entries.is_empty() && record.rtype == Rtype::SOA {
                    self.serial = record.serial()?;
                }
                self.keep(record)
            }
            // Only changes: there is nothing to be digested, which the end says.
            Change::Remove => Ok(()),
        }
    }

    fn end(&mut self, answered: Answered) -> Result<(), Outcome> {
        match answered {
            Answered::Axfr => self.check(),
            Answered::Ixfr => Err(Outcome::ZonemdMissing),
            Answered::None | Answered::Soa | Answered::UpToDate => Ok(()),
        }
    }
}

/// Appends the key of an owner (not compressed): keys are in the order of bytes as names are in canonical order
/// (RFC 4034 §6.1), label by label from the root, in lower case.
///
/// 0 ends a label and, where one would begin, the name, so that a name comes before what lies below it. Bytes 0 and 1
/// of a label become 1 and 1, 1 and 2.
fn push_owner_key(owner: &[u8], to: &mut Vec<u8>) {
    let mut starts = [0_u8; 128];
    let (mut labels, mut at) = (0, 0);
    while owner[at] != 0 {
        starts[labels] = at as u8;
        labels += 1;
        at += 1 + usize::from(owner[at]);
    }
    for start in starts[..labels].iter().rev() {
        let start = usize::from(*start);
        for byte in &owner[start + 1..][..usize::from(owner[start])] {
            match byte {
                0 | 1 => to.extend_from_slice(&[1, byte + 1]),
                _ => to.push(byte.to_ascii_lowercase()),
            }
        }
        to.push(0);
    }
    to.push(0);
}

/// Appends the owner whose key this is, in wire format.
fn push_owner(key: &[u8], to: &mut Vec<u8>) {
    // Behind each label stands a 0, and one behind the last: between them are the labels, the last one first.
    let labels = key[..key.len() - 1].strip_suffix(&[0]).unwrap_or_default();
    for label in labels.rsplit(|byte| *byte == 0).filter(|label| !label.is_empty()) {
        let at = to.len();
        to.push(0);
        let mut bytes = label.iter();
        while let Some(byte) = bytes.next() {
            to.push(if *byte == 1 { bytes.next().expect("1 is followed by 1 or 2") - 1 } else { *byte });
        }
        to[at] = (to.len() - at - 1) as u8;
    }
    to.push(0);
}

#[cfg(test)]
#[path = "zonemd_tests.rs"]
mod tests;
