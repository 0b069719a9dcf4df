//! Signatures beside the records that they are of.

use domain::base::Rtype;

use super::{labels::Labels, records::Records, wire::Wire};
use crate::dns::dnssec::{
    key::Nonces,
    rrset::Rrset,
    signer::{Counts, SignedZone, Signer},
};

/// What a thread signs with; it keeps what it signed.
#[derive(Clone)]
pub struct Signatures {
    signer: Signer,
    rdata: Vec<u8>,
}

impl Signatures {
    /// At most `bytes_max` bytes of signatures are kept.
    pub fn new(nonces: Nonces, bytes_max: usize) -> Self {
        Signatures { signer: Signer::new(nonces, bytes_max), rdata: Vec::new() }
    }

    pub fn counts(&self) -> Counts {
        self.signer.counts()
    }

    /// The counts so far; they begin again.
    pub fn take_counts(&mut self) -> Counts {
        self.signer.take_counts()
    }

    /// Appends the signatures of RRsets of a zone, but for the NS records of delegations, which are the child's (RFC
    /// 4035 §2.2).
    ///
    /// `expanded` says from which RRset on they are a wildcard's, and below how many last labels that is: then the
    /// wildcard is signed (RFC 4035 §3.1.3.3).
    pub fn sign(&mut self, zone: &SignedZone<'_>, records: &mut Records, expanded: Option<(usize, usize)>) {
        for number in 0..records.len() {
            let set = records.get(number);
            if set.rtype == Rtype::NS && set.owner != zone.name {
                continue;
            }
            let wildcard = expanded
                .filter(|(first, _)| number >= *first)
                .and_then(|(_, labels)| Some(Wire::of(&[b"\x01*", Labels::read(set.owner)?.suffix(labels)])));
            let owner = wildcard.as_deref().unwrap_or(set.owner);
            self.rdata.clear();
            let rrset = Rrset { owner, rtype: set.rtype, ttl_s: set.zone_ttl_s, data: set.data() };
            // The data that a world makes are as their types ask for.
            let is_signed = self.signer.rrsig(zone, &rrset, &mut self.rdata) == Ok(true);
            drop(rrset);
            if is_signed {
                records.begin_beside(number, Rtype::RRSIG);
                records.push(&[&self.rdata]);
            }
        }
    }
}
