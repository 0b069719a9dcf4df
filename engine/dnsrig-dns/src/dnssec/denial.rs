//! What proves that something does not exist: the NSEC or NSEC3 records of an answer (RFC 4035 §3.1.3, RFC 5155 §7.2).
//!
//! A zone tells its [chain](Names), by its names or by their hashes; which records an answer needs follows from the
//! question, and which ancestors exist from the chain itself, so a proof is what a validator concludes from it.

use std::borrow::Cow;

use domain::{base::Rtype, rdata::dnssec::RtypeBitmap};

use super::{
    nsec3::{self, Hash, Params},
    order::{Labels, labels_in_common, suffix},
    signer::Fault,
};

/// What an answer says, and has to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The name exists and has no records of the type. It may be an empty non-terminal, or a delegation without DS.
    NoData,
    /// Neither the name exists nor a wildcard for it.
    NxDomain,
    /// A wildcard gave the answer: the name itself does not exist.
    Wildcard,
    /// The wildcard that matches the name has no records of the type.
    WildcardNoData,
}

/// A record that proves, before it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub owner: Vec<u8>,
    pub rtype: Rtype,
    pub data: Vec<u8>,
}

/// A name of a chain, and the one behind it: behind the last, the first.
#[derive(Clone, Debug)]
pub struct Link<'z, N> {
    pub own: N,
    pub next: N,
    /// The [bitmap] of the types that the name has, RRSIG, NSEC and the like included.
    pub types: Cow<'z, [u8]>,
}

/// The names of a zone with NSEC: all that have records, but for what lies below delegations.
pub trait Names {
    /// The last name in canonical order that is not behind `name`, which lies in the zone.
    fn link(&self, name: &[u8]) -> Link<'_, Vec<u8>>;
}

/// The hashes of a zone with NSEC3: of all names that have records, and of empty non-terminals; with opt-out, not of
/// unsigned delegations and what has only those below it. The apex is always among them.
pub trait Hashes {
    /// How names are hashed.
    fn params(&self) -> &Params;
    /// The last hash that is not beyond `hash`; if that is before the first, the last of all.
    fn link(&self, hash: &Hash) -> Link<'_, Hash>;
}

/// The bitmap of some types (RFC 4034 §4.1.2).
pub fn bitmap(types: impl IntoIterator<Item = Rtype>) -> Vec<u8> {
    let mut builder = RtypeBitmap::<Vec<u8>>::builder();
    types.into_iter().for_each(|rtype| builder.add(rtype).expect("a vector grows"));
    builder.finalize().as_slice().to_vec()
}

/// The NSEC records that prove a claim about a name in the zone, each once.
pub fn nsec(chain: &impl Names, name: &[u8], claim: Claim, fault: Option<Fault>) -> Vec<Record> {
    let at = chain.link(name);
    let wildcard = (matches!(claim, Claim::NxDomain | Claim::WildcardNoData)).then(|| {
        // The closest encloser is what the name has in common with what exists beside it.
        let labels = labels_in_common(name, &at.own).max(labels_in_common(name, &at.next));
        chain.link(&[b"\x01*", suffix(name, labels)].concat())
    });
    let mut records = vec![nsec_record(at, fault)];
    records.extend(wildcard.map(|link| nsec_record(link, fault)).filter(|record| record.owner != records[0].owner));
    records
}

fn nsec_record(mut link: Link<'_, Vec<u8>>, fault: Option<Fault>) -> Record {
    if fault == Some(Fault::BrokenDenial) {
        // The next name in canonical order, and the one after it: nothing is between them.
        let below = |name: &[u8]| if name.len() < 250 { [b"\x01\x00", name].concat() } else { name.to_vec() };
        link.own = below(&link.own);
        link.next = below(&link.own);
    }
    let data = [&link.next, &link.types[..]].concat();
    Record { owner: link.own, rtype: Rtype::NSEC, data }
}

/// The NSEC3 records that prove a claim about a name in the zone `apex`, each once.
pub fn nsec3(chain: &impl Hashes, apex: &[u8], name: &[u8], claim: Claim, fault: Option<Fault>) -> Vec<Record> {
    let mut links = Links { chain, found: Vec::new() };
    let matches = claim == Claim::NoData && links.matching(name);
    if !matches {
        let encloser = links.closest_encloser(apex, name);
        let labels = Labels::of(encloser).count();
        if claim == Claim::Wildcard {
            // The answer's RRSIG tells the closest encloser.
            links.found.clear();
        }
        links.add(suffix(name, labels + 1));
        if matches!(claim, Claim::NxDomain | Claim::WildcardNoData) {
            links.add(&[b"\x01*", encloser].concat());
        }
    }
    links.found.into_iter().map(|link| nsec3_record(chain.params(), apex, link, fault)).collect()
}

/// What was looked up in a chain, each link once.
struct Links<'z, C> {
    chain: &'z C,
    found: Vec<Link<'z, Hash>>,
}

impl<'z, C: Hashes> Links<'z, C> {
    /// Adds what matches or covers a name; returns whether it matches.
    fn add(&mut self, name: &[u8]) -> bool {
        let hash = self.chain.params().hash(name);
        let link = self.chain.link(&hash);
        let matches = link.own == hash;
        if self.found.iter().all(|other| other.own != link.own) {
            self.found.push(link);
        }
        matches
    }

    /// Adds what matches a name, if something does.
    fn matching(&mut self, name: &[u8]) -> bool {
        let matches = self.add(name);
        if !matches {
            self.found.clear();
        }
        matches
    }

    /// Adds the longest existing ancestor of `name` (RFC 5155 §7.2.1), which is never the name itself.
    fn closest_encloser<'n>(&mut self, apex: &[u8], name: &'n [u8]) -> &'n [u8] {
        let (below, least) = (Labels::of(name).count(), Labels::of(apex).count());
        let longest = (least..below).rev().find(|labels| self.matching(suffix(name, *labels)));
        suffix(name, longest.unwrap_or(least))
    }
}

fn nsec3_record(params: &Params, apex: &[u8], mut link: Link<'_, Hash>, fault: Option<Fault>) -> Record {
    if fault == Some(Fault::BrokenDenial) {
        link.own = nsec3::successor(&link.own);
        link.next = nsec3::successor(&link.own);
    }
    let data = params.nsec3(&link.next, &link.types);
    Record { owner: nsec3::owner(&link.own, apex), rtype: Rtype::NSEC3, data }
}

#[cfg(test)]
#[path = "denial_tests.rs"]
mod tests;
