//! The NSEC or NSEC3 chain of a zone: all names that it has, in order, each with the bitmap of its types.

use dnsrig_dns::dnssec::{
    denial::{self, Claim, Hashes, Link, Names, Record},
    nsec3::{Hash, Params, Table},
    order,
    signer::Fault,
};
use domain::base::Rtype;

use super::records::Types;

/// The names of a zone in order. Each takes its own bytes and those of its place, but no bitmap: those are shared.
pub enum Chain {
    Names(NameChain),
    Hashes(HashChain),
}

/// Of NSEC.
pub struct NameChain {
    /// Each with the number of its bitmap.
    names: Vec<(Box<[u8]>, u32)>,
    bitmaps: Bitmaps,
}

/// Of NSEC3.
pub struct HashChain {
    params: Params,
    /// Each with the number of its bitmap.
    table: Table,
    bitmaps: Bitmaps,
}

/// The different bitmaps of a zone: few.
#[derive(Default)]
struct Bitmaps(Vec<(Vec<Rtype>, Vec<u8>)>);

impl Bitmaps {
    /// The number of the bitmap of these types.
    fn number(&mut self, types: impl Iterator<Item = Rtype>) -> u32 {
        let types: Vec<Rtype> = types.collect();
        let found = self.0.iter().position(|(other, _)| *other == types);
        found.unwrap_or_else(|| {
            let bitmap = denial::bitmap(types.iter().copied());
            self.0.push((types, bitmap));
            self.0.len() - 1
        }) as u32
    }

    fn get(&self, number: u32) -> &[u8] {
        &self.0[number as usize].1
    }
}

/// A chain that is being made.
pub struct Builder<'p> {
    /// None: of NSEC.
    params: Option<&'p Params>,
    names: Vec<(Box<[u8]>, u32)>,
    hashes: Vec<(Hash, u32)>,
    bitmaps: Bitmaps,
}

impl<'p> Builder<'p> {
    /// Of NSEC3 with these parameters; none: of NSEC.
    pub fn new(params: Option<&'p Params>) -> Self {
        Builder { params, names: Vec::new(), hashes: Vec::new(), bitmaps: Bitmaps::default() }
    }

    /// Adds a name and its types, those of signatures and of the chain itself not among them; no types: it is an empty
    /// non-terminal. It may be added again.
    pub fn add(&mut self, owner: &[u8], types: Types) {
        let is_delegation = types.has(Rtype::NS) && !types.has(Rtype::SOA);
        let has_signature = !types.is_empty() && (!is_delegation || types.has(Rtype::DS));
        match self.params {
            None if !types.is_empty() => {
                // Its NSEC record has a signature.
                let number = self.bitmaps.number(types.iter().chain([Rtype::RRSIG, Rtype::NSEC]));
                self.names.push((owner.into(), number));
            }
            Some(params) if has_signature || !is_delegation || !params.opt_out => {
                let number = self.bitmaps.number(types.iter().chain(has_signature.then_some(Rtype::RRSIG)));
                self.hashes.push((params.hash(owner), number));
            }
            _ => {}
        }
    }

    pub fn finish(self) -> Chain {
        let Builder { params, mut names, hashes, bitmaps } = self;
        match params {
            Some(params) => Chain::Hashes(HashChain { params: params.clone(), table: Table::new(hashes), bitmaps }),
            None => {
                names.sort_unstable_by(|(one, _), (other, _)| order::cmp(one, other));
                Chain::Names(NameChain { names, bitmaps })
            }
        }
    }
}

impl Chain {
    /// The records that prove a claim about a name of the zone `apex`.
    pub fn prove(&self, apex: &[u8], name: &[u8], claim: Claim, fault: Option<Fault>) -> Vec<Record> {
        match self {
            Chain::Names(chain) => denial::nsec(chain, name, claim, fault),
            Chain::Hashes(chain) => denial::nsec3(chain, apex, name, claim, fault),
        }
    }
}

impl Names for NameChain {
    fn link(&self, name: &[u8]) -> Link<'_, Vec<u8>> {
        let behind = self.names.partition_point(|(other, _)| order::cmp(other, name).is_le());
        // The apex is the first name, and nothing in the zone comes before it.
        let at = behind.saturating_sub(1);
        let ((own, number), (next, _)) = (&self.names[at], &self.names[(at + 1) % self.names.len()]);
        Link { own: own.to_vec(), next: next.to_vec(), types: self.bitmaps.get(*number).into() }
    }
}

impl Hashes for HashChain {
    fn params(&self) -> &Params {
        &self.params
    }

    fn link(&self, hash: &Hash) -> Link<'_, Hash> {
        let (own, number, next) = self.table.link(hash).expect("the apex is in every chain");
        Link { own, next, types: self.bitmaps.get(number).into() }
    }
}
