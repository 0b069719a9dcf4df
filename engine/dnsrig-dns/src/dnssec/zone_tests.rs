//! Whole zones, signed: each is what it was, and `tests/unit/test_signed_zones.py` has other programs verify it.
//!
//! If one differs that should, it is made anew with `DNSRIG_BLESS=1`.

use std::{fs, path::Path};

use domain::{
    base::{Name, Rtype},
    utils::base16,
};

use super::{
    denial::{self, Claim},
    key::{Algorithm, Nonces, Role},
    nsec3::Params,
    order,
    pool::Pool,
    rrset::{Rrset, Validity},
    signer::{SignedZone, Signer},
    testing::Zone,
};
use crate::testing::{Rr, line, name};

const RECORDS: [&str; 18] = [
    "example. 3600 IN SOA ns1.example. admin.example. 1 7200 3600 1209600 300",
    "example. 3600 IN NS ns1.example.",
    "example. 3600 IN NS NS2.Example.",
    "example. 3600 IN MX 10 Mail.example.",
    "example. 3600 IN TXT v=spf1",
    "ns1.example. 3600 IN A 192.0.2.1",
    "ns1.example. 3600 IN AAAA 2001:db8::1",
    "ns2.example. 3600 IN A 192.0.2.2",
    "WWW.example. 60 IN A 192.0.2.20",
    "WWW.example. 60 IN A 192.0.2.3",
    "WWW.example. 60 IN A 192.0.2.100",
    "alias.example. 60 IN CNAME www.Example.",
    "*.w.example. 60 IN A 192.0.2.4",
    "x.y.w.example. 60 IN TXT deep",
    "secure.example. 600 IN NS ns.secure.example.",
    "ns.secure.example. 600 IN A 192.0.2.5",
    "unsigned.example. 600 IN NS ns.unsigned.example.",
    "ns.unsigned.example. 600 IN A 192.0.2.6",
];

const DELEGATIONS: [&str; 2] = ["secure.example", "unsigned.example"];

/// How long it is kept that something does not exist: the minimum of the SOA.
const NEGATIVE_TTL_S: u32 = 300;

/// Until 2049-12-31.
const VALIDITY: Validity = Validity { inception_s: 1_700_000_000, expiration_s: 2_524_521_600 };

/// The zone as a file, in the form for unknown data (RFC 3597 §5).
fn signed(algorithm: Algorithm, zone_signing: Role, params: Option<Params>) -> String {
    let (apex, pool) = (name("example"), Pool::new(1, 2));
    let zone = SignedZone {
        name: &apex,
        key_signing: pool.key(algorithm, Role::KeySigning, 0),
        zone_signing: pool.key(algorithm, zone_signing, 0),
        validity: VALIDITY,
        fault: None,
    };
    let mut records: Vec<Rr> = RECORDS.map(line).into();
    let own = |owner: &[u8], rtype: Rtype, data: &[u8]| Rr::new(owner, rtype.to_int(), data);
    records.extend(zone.dnskeys().map(|data| own(&apex, Rtype::DNSKEY, data)));
    let secure = name(DELEGATIONS[0]);
    records.push(own(&secure, Rtype::DS, &pool.key(algorithm, Role::KeySigning, 1).ds(&secure)));
    records.extend(params.as_ref().map(|params| own(&apex, Rtype::NSEC3PARAM, &params.nsec3param())));
    let denials = denials(&records, params, &apex);
    records.extend(denials);
    let mut signer = Signer::new(Nonces::Reproducible, 0);
    let mut signatures = Vec::new();
    records.sort_by(|one, other| order::cmp(&one.owner, &other.owner).then(one.rtype.cmp(&other.rtype)));
    for set in records.chunk_by(|one, other| one.owner.eq_ignore_ascii_case(&other.owner) && one.rtype == other.rtype) {
        let Rr { owner, rtype, ttl_s, .. } = &set[0];
        if has_no_signature(owner, Rtype::from_int(*rtype)) {
            continue;
        }
        let data = set.iter().map(|record| &record.data[..]);
        let rrset = Rrset { owner, rtype: Rtype::from_int(*rtype), ttl_s: *ttl_s, data };
        let mut rrsig = Vec::new();
        assert_eq!(signer.rrsig(&zone, &rrset, &mut rrsig), Ok(true));
        signatures.push(Rr { ttl_s: *ttl_s, ..own(owner, Rtype::RRSIG, &rrsig) });
    }
    records.into_iter().chain(signatures).map(|record| text(&record)).collect()
}

/// Delegations and what lies below them are the child's (RFC 4035 §2.2).
fn has_no_signature(owner: &[u8], rtype: Rtype) -> bool {
    DELEGATIONS.into_iter().map(name).any(|delegation| {
        let is_below = owner.len() > delegation.len() && owner.ends_with(&delegation);
        is_below || owner == delegation && rtype == Rtype::NS
    })
}

/// A record for each name of the chain.
fn denials(records: &[Rr], params: Option<Params>, apex: &[u8]) -> Vec<Rr> {
    let owners: Vec<(String, String)> = records
        .iter()
        .filter(|record| !has_no_signature(&record.owner, Rtype::A))
        .map(|record| {
            let owner = Name::<[u8]>::from_slice(&record.owner).unwrap().to_string().to_lowercase();
            let is_signed = params.is_some() && owner != DELEGATIONS[1];
            let types = format!("TYPE{}{}", record.rtype, if is_signed { " RRSIG" } else { "" });
            (owner, types)
        })
        .collect();
    let owners: Vec<(&str, &str)> = owners.iter().map(|(owner, types)| (&owner[..], &types[..])).collect();
    let is_opt_out = params.as_ref().is_some_and(|params| params.opt_out);
    let unsigned = if is_opt_out { &DELEGATIONS[1..] } else { &[] };
    let zone = Zone::new(&owners, params.clone().unwrap_or_default(), unsigned);
    let mut made: Vec<denial::Record> = Vec::new();
    for owner in zone.owners() {
        let proof = match &params {
            Some(_) => denial::nsec3(&zone, apex, owner, Claim::NoData, None),
            None => denial::nsec(&zone, owner, Claim::NoData, None),
        };
        made.extend(proof);
    }
    made.sort_by(|one, other| one.owner.cmp(&other.owner));
    made.dedup();
    made.into_iter()
        .map(|denial::Record { owner, rtype, data }| Rr {
            ttl_s: NEGATIVE_TTL_S,
            ..Rr::new(&owner, rtype.to_int(), &data)
        })
        .collect()
}

fn text(record: &Rr) -> String {
    let owner = Name::<[u8]>::from_slice(&record.owner).unwrap();
    let (rtype, data) = (Rtype::from_int(record.rtype), base16::encode_string(&record.data));
    format!("{owner}. {} IN {rtype} \\# {} {data}\n", record.ttl_s, record.data.len())
}

fn check_golden(file: &str, made: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("DNSRIG_BLESS").is_some() {
        fs::write(&golden, made).unwrap();
    }
    assert_eq!(made, fs::read_to_string(&golden).unwrap(), "{file} is not what it was");
}

#[test]
fn a_zone_with_rsa_and_opt_out_is_what_it_was() {
    let params = Params { opt_out: true, ..Params::default() };
    check_golden("signed-8-opt-out.zone", &signed(Algorithm::RsaSha256, Role::ZoneSigning, Some(params)));
}

#[test]
fn a_zone_with_p256_and_nsec_is_what_it_was() {
    check_golden("signed-13-nsec.zone", &signed(Algorithm::EcdsaP256Sha256, Role::ZoneSigning, None));
}

#[test]
fn a_zone_with_one_key_of_ed25519_and_salted_hashes_is_what_it_was() {
    let params = Params { iterations: 5, salt: vec![0xab, 0xcd], opt_out: false };
    check_golden("signed-15-nsec3.zone", &signed(Algorithm::Ed25519, Role::KeySigning, Some(params)));
}
