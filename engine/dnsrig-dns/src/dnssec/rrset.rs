//! RRsets, and what is signed of them (RFC 4034 §3.1.8.1).

use std::ops::Range;

use domain::base::{Rtype, iana::Class};

use super::{key::Key, order::Labels};
use crate::{name::ParseError, rdata, writer};

/// The bytes of an RRSIG record's data before the signer's name (RFC 4034 §3.1).
pub const FIXED_BYTES: usize = 18;

/// Records of one owner and type.
#[derive(Clone, Copy, Debug)]
pub struct Rrset<'a, D> {
    /// In wire format, not compressed. For an answer that a wildcard gave, the wildcard (RFC 4035 §3.1.3.3).
    pub owner: &'a [u8],
    pub rtype: Rtype,
    pub ttl_s: u32,
    /// The data of the records, names not compressed, in any order.
    pub data: D,
}

/// From when to when signatures are valid, both included, in seconds since 1970 (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub inception_s: u32,
    pub expiration_s: u32,
}

impl Validity {
    /// A validity of equal length that is over before this one begins.
    pub fn before(self) -> Self {
        let length_s = self.expiration_s.saturating_sub(self.inception_s);
        let expiration_s = self.inception_s.saturating_sub(1);
        Validity { inception_s: expiration_s.saturating_sub(length_s), expiration_s }
    }
}

/// What is signed of an RRset, in a buffer that is used again.
#[derive(Clone, Default)]
pub struct Signed {
    bytes: Vec<u8>,
    rrsig_bytes: usize,
    data: Vec<u8>,
    records: Vec<Range<usize>>,
}

impl Signed {
    /// Writes what `key` of `zone` has to sign.
    ///
    /// Data that is not as its type asks for is [`ParseError::Malformed`].
    pub fn write<'a>(
        &mut self,
        rrset: &Rrset<'_, impl IntoIterator<Item = &'a [u8]> + Clone>,
        zone: &[u8],
        key: &Key,
        validity: Validity,
    ) -> Result<(), ParseError> {
        let Signed { bytes, rrsig_bytes, data, records } = self;
        bytes.clear();
        write_rrsig(rrset, zone, key, validity, bytes);
        *rrsig_bytes = bytes.len();

        data.clear();
        records.clear();
        for record in rrset.data.clone() {
            let start = data.len();
            rdata::canonical_into(rrset.rtype, record, data)?;
            records.push(start..data.len());
        }
        // In canonical order, each once (RFC 4034 §6.3).
        records.sort_unstable_by(|one, other| data[one.clone()].cmp(&data[other.clone()]));
        records.dedup_by(|one, other| data[one.clone()] == data[other.clone()]);
        for place in records {
            let data = &data[place.clone()];
            let owner = bytes.len();
            bytes.extend_from_slice(rrset.owner);
            bytes[owner..].make_ascii_lowercase();
            let data_bytes = data.len().try_into().map_err(|_| ParseError::Malformed)?;
            bytes.extend_from_slice(&writer::record_head(rrset.rtype, Class::IN, rrset.ttl_s, data_bytes));
            bytes.extend_from_slice(data);
        }
        Ok(())
    }

    /// What is to be signed: the beginning of the RRSIG record's data, and the records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The data of the RRSIG record up to the signature.
    pub fn rrsig(&self) -> &[u8] {
        &self.bytes[..self.rrsig_bytes]
    }
}

/// Appends the data of an RRSIG record up to the signature (RFC 4034 §3.1).
fn write_rrsig<D>(rrset: &Rrset<'_, D>, zone: &[u8], key: &Key, validity: Validity, to: &mut Vec<u8>) {
    let labels = Labels::of(rrset.owner).count() - usize::from(rrset.owner.starts_with(b"\x01*"));
    to.extend_from_slice(&rrset.rtype.to_int().to_be_bytes());
    to.extend_from_slice(&[key.algorithm().number(), labels as u8]);
    to.extend_from_slice(&rrset.ttl_s.to_be_bytes());
    to.extend_from_slice(&validity.expiration_s.to_be_bytes());
    to.extend_from_slice(&validity.inception_s.to_be_bytes());
    to.extend_from_slice(&key.tag().to_be_bytes());
    let signer = to.len();
    to.extend_from_slice(zone);
    to[signer..].make_ascii_lowercase();
}

#[cfg(test)]
#[path = "rrset_tests.rs"]
mod tests;
