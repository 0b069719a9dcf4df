//! A validator for tests: whether an answer of a signed zone holds what convinces a resolver of it (RFC 4035 §5, RFC
//! 5155 §8).

use std::collections::BTreeMap;

use dnsrig_dns::{
    dnssec::{
        key::key_tag,
        nsec3::{self, Params},
        order::{self, Labels, labels_in_common, suffix},
    },
    header::Header,
    name::skip_plain,
    record::Walk,
};
use domain::{
    base::{Rtype, iana::SecurityAlgorithm},
    crypto::common::PublicKey,
    rdata::{Dnskey, dnssec::RtypeBitmap},
};

type Sets = BTreeMap<(Vec<u8>, u16), Vec<(u32, Vec<u8>)>>;

/// Answer and authority section, the data in canonical form.
struct Sections([Sets; 2]);

/// Whether an answer to a question is right by itself: signatures of the zone's keys, and proofs. It may not be
/// truncated.
pub fn validate(message: &[u8], name: &[u8], rtype: Rtype, zone: &[u8], dnskeys: &[&[u8]]) -> Result<(), String> {
    let Sections([answer, authority]) = read(message);
    let mut of_wildcard = None;
    for sets in [&answer, &authority] {
        for ((owner, of), records) in sets {
            let is_delegation = *of == Rtype::NS.to_int() && owner != zone;
            if *of == Rtype::RRSIG.to_int() || is_delegation {
                continue;
            }
            let of_this = |data: &&(u32, Vec<u8>)| data.1[..2] == of.to_be_bytes();
            let rrsig = sets.get(&(owner.clone(), Rtype::RRSIG.to_int())).and_then(|all| all.iter().find(of_this));
            let (ttl_s, rrsig) = rrsig.ok_or(format!("{of} has no signature"))?;
            let labels = usize::from(rrsig[3]);
            // A leading asterisk is not counted (RFC 4034 §3.1.3).
            let is_wildcards = labels + usize::from(owner.starts_with(b"\x01*")) < Labels::of(owner).count();
            if is_wildcards {
                of_wildcard = Some((owner.clone(), labels));
            }
            if records.iter().any(|record| record.0 != *ttl_s) || number(rrsig, 4) < *ttl_s {
                return Err(format!("the TTLs of {of} differ"));
            }
            let signed_owner = if is_wildcards { [b"\x01*", suffix(owner, labels)].concat() } else { owner.clone() };
            verify(&signed_owner, *of, records, rrsig, zone, dnskeys)?;
        }
    }
    let has = |rtype: Rtype| answer.keys().any(|(_, of)| *of == rtype.to_int());
    // Where the last alias within the zone leads.
    let mut last = name.to_vec();
    while let Some(alias) = answer.get(&(last.clone(), Rtype::CNAME.to_int())).filter(|_| rtype != Rtype::CNAME) {
        last = alias[0].1.clone();
    }
    let denial = Denial { authority: &authority, zone, name: &last, rtype };
    if let Some((owner, labels)) = of_wildcard
        && !denial.covers(&owner, labels)
    {
        return Err("nothing proves that the name beside the wildcard is missing".into());
    }
    let has_soa = authority.keys().any(|(_, of)| *of == Rtype::SOA.to_int());
    let delegation = authority.keys().find(|(owner, of)| *of == Rtype::NS.to_int() && owner != zone);
    let is_missing = message[3] & 0x0f == 3;
    let is_proved = match delegation {
        Some((child, _)) => {
            authority.contains_key(&(child.clone(), Rtype::DS.to_int()))
                || Denial { name: child, rtype: Rtype::DS, ..denial }.has_no_data()
        }
        None if is_missing => denial.has_no_name(),
        None if has_soa => denial.has_no_data(),
        // An alias may lead out of the zone.
        None => has(rtype) || has(Rtype::CNAME) || rtype == Rtype::ANY,
    };
    if is_proved { Ok(()) } else { Err(format!("nothing proves it: {:?}", authority.keys())) }
}

fn read(message: &[u8]) -> Sections {
    let header = Header::read(message).unwrap();
    let mut walk = Walk::new(message);
    walk.skip_question().unwrap();
    Sections([header.answers, header.authority].map(|count| {
        let mut sets = Sets::new();
        for _ in 0..count {
            let record = walk.any_record().unwrap();
            let (mut owner, mut data) = (Vec::new(), Vec::new());
            record.owner_into(&mut owner).unwrap();
            owner.make_ascii_lowercase();
            record.canonical_data_into(&mut data).unwrap();
            sets.entry((owner, record.rtype.to_int())).or_default().push((record.ttl_s, data));
        }
        sets
    }))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn verify(
    owner: &[u8],
    rtype: u16,
    records: &[(u32, Vec<u8>)],
    rrsig: &[u8],
    zone: &[u8],
    dnskeys: &[&[u8]],
) -> Result<(), String> {
    let tag = u16::from_be_bytes([rrsig[16], rrsig[17]]);
    let key = dnskeys.iter().find(|key| key_tag(key) == tag && key[3] == rrsig[2]).ok_or("a key is missing")?;
    let end = skip_plain(rrsig, 18).unwrap();
    assert_eq!(&rrsig[18..end], zone, "the signer");
    let mut signed = rrsig[..end].to_vec();
    let mut all: Vec<&[u8]> = records.iter().map(|(_, data)| &data[..]).collect();
    all.sort();
    for data in all {
        let length = (data.len() as u16).to_be_bytes();
        signed.extend([owner, &rtype.to_be_bytes(), &[0, 1], &rrsig[4..8], &length, data].concat());
    }
    let algorithm = SecurityAlgorithm::from_int(key[3]);
    let dnskey = Dnskey::new(256, 3, algorithm, key[4..].to_vec()).unwrap();
    let is_right = PublicKey::from_dnskey(&dnskey).unwrap().verify(&signed, &rrsig[end..]);
    is_right.map_err(|_| format!("the signature of {rtype} is wrong"))
}

/// What the authority section proves of a name.
#[derive(Clone, Copy)]
struct Denial<'a> {
    authority: &'a Sets,
    zone: &'a [u8],
    name: &'a [u8],
    rtype: Rtype,
}

impl<'a> Denial<'a> {
    /// Owner, next name and bitmap of each NSEC record.
    fn nsec(self) -> impl Iterator<Item = (&'a [u8], &'a [u8], &'a [u8])> {
        let records = self.authority.iter().filter(|((_, of), _)| *of == Rtype::NSEC.to_int());
        records.map(|((owner, _), data)| {
            let data = &data[0].1;
            let (next, types) = data.split_at(skip_plain(data, 0).unwrap());
            (&owner[..], next, types)
        })
    }

    /// First label of the owner, next hash, bitmap and flags of each NSEC3 record, which have no salt.
    fn nsec3(self) -> impl Iterator<Item = ([u8; 32], [u8; 32], &'a [u8], u8)> {
        let records = self.authority.iter().filter(|((_, of), _)| *of == Rtype::NSEC3.to_int());
        records.map(|((owner, _), data)| {
            let data = &data[0].1;
            let next = nsec3::label(data[6..26].try_into().unwrap());
            (owner[1..33].try_into().unwrap(), next, &data[26..], data[1])
        })
    }

    fn is_nsec3(self) -> bool {
        self.nsec3().next().is_some()
    }

    fn nsec_covering(self, name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
        let found = self.nsec().find(|(owner, next, _)| {
            let is_before = order::cmp(name, next).is_lt() || *next == self.zone;
            order::cmp(owner, name).is_lt() && is_before
        });
        found.map(|(owner, next, _)| (owner, next))
    }

    fn label(name: &[u8]) -> [u8; 32] {
        nsec3::label(&Params::default().hash(name))
    }

    /// The bitmap at a name.
    fn matching(self, name: &[u8]) -> Option<&'a [u8]> {
        let of_names = self.nsec().find(|(owner, ..)| *owner == name).map(|(_, _, types)| types);
        of_names.or_else(|| self.nsec3().find(|(own, ..)| *own == Self::label(name)).map(|(_, _, types, _)| types))
    }

    /// The flags of what covers a name.
    fn nsec3_covering(self, name: &[u8]) -> Option<u8> {
        let hash = Self::label(name);
        let covering = self
            .nsec3()
            .find(|(own, next, ..)| if own < next { *own < hash && hash < *next } else { *own < hash || hash < *next });
        covering.map(|(.., flags)| flags)
    }

    /// Whether a name is missing whose closest encloser has so many labels.
    fn covers(self, name: &[u8], labels: usize) -> bool {
        if self.is_nsec3() {
            self.nsec3_covering(suffix(name, labels + 1)).is_some()
        } else {
            self.nsec_covering(name).is_some()
        }
    }

    /// The longest ancestor that exists, where what is below it towards the name does not; and whether that is opted
    /// out.
    fn encloser(self) -> Option<(&'a [u8], bool)> {
        if !self.is_nsec3() {
            let (owner, next) = self.nsec_covering(self.name)?;
            let labels = labels_in_common(self.name, owner).max(labels_in_common(self.name, next));
            // A name with something below it exists.
            return (labels < Labels::of(self.name).count()).then(|| (suffix(self.name, labels), false));
        }
        let least = Labels::of(self.zone).count();
        (least..Labels::of(self.name).count()).rev().find_map(|labels| {
            let encloser = suffix(self.name, labels);
            self.matching(encloser)?;
            Some((encloser, self.nsec3_covering(suffix(self.name, labels + 1))? & 1 != 0))
        })
    }

    fn has_no_name(self) -> bool {
        let Some((encloser, _)) = self.encloser() else { return false };
        let wildcard = [b"\x01*", encloser].concat();
        if self.is_nsec3() { self.nsec3_covering(&wildcard).is_some() } else { self.nsec_covering(&wildcard).is_some() }
    }

    fn has_no_data(self) -> bool {
        let lacks = |types: &[u8]| {
            let types = RtypeBitmap::from_octets(types).unwrap();
            !types.contains(self.rtype) && !types.contains(Rtype::CNAME)
        };
        if let Some(types) = self.matching(self.name) {
            return lacks(types);
        }
        let Some((encloser, is_opted_out)) = self.encloser() else {
            // An empty non-terminal, by names.
            let covering = self.nsec_covering(self.name);
            return covering
                .is_some_and(|(_, next)| labels_in_common(next, self.name) == Labels::of(self.name).count());
        };
        let by_wildcard = self.matching(&[b"\x01*", encloser].concat()).is_some_and(lacks);
        by_wildcard || is_opted_out && self.rtype == Rtype::DS
    }
}
