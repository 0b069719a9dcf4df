//! Signatures, good and damaged ones, checked by another library.

use domain::{base::iana::SecurityAlgorithm, crypto::common::PublicKey, rdata::Dnskey};

use super::*;
use crate::{
    dnssec::{
        key::{Algorithm, Role},
        pool::Pool,
        rrset::FIXED_BYTES,
    },
    testing::{line, name},
};

const VALIDITY: Validity = Validity { inception_s: 1_700_000_000, expiration_s: 1_800_000_000 };

fn zone<'a>(pool: &'a Pool, algorithm: Algorithm, name: &'a [u8], fault: Option<Fault>) -> SignedZone<'a> {
    let key = |role| pool.key(algorithm, role, 0);
    let (key_signing, zone_signing) = (key(Role::KeySigning), key(Role::ZoneSigning));
    SignedZone { name, key_signing, zone_signing, validity: VALIDITY, fault }
}

/// Whether a record's signature is right, and the validity it states.
fn check(zone: &SignedZone<'_>, key: &Key, rrset: &Rrset<'_, Vec<&[u8]>>, rrsig: &[u8]) -> (bool, Validity) {
    let number = |at: usize| u32::from_be_bytes(rrsig[at..at + 4].try_into().unwrap());
    let validity = Validity { expiration_s: number(8), inception_s: number(12) };
    let mut signed = Signed::default();
    signed.write(rrset, zone.name, key, validity).unwrap();
    let (begin, signature) = rrsig.split_at(FIXED_BYTES + zone.name.len());
    assert_eq!(begin, signed.rrsig());
    assert_eq!(signature.len(), key.algorithm().signature_bytes());
    let algorithm = SecurityAlgorithm::from_int(key.algorithm().number());
    let dnskey = Dnskey::new(256, 3, algorithm, key.dnskey()[4..].to_vec()).unwrap();
    let is_right = PublicKey::from_dnskey(&dnskey).unwrap().verify(signed.bytes(), signature).is_ok();
    (is_right, validity)
}

#[test]
fn another_library_verifies_the_signatures_of_every_algorithm() {
    let (pool, origin) = (Pool::new(3, 1), name("zone.example"));
    let [a, b] = ["www.zone.example. 60 IN A 192.0.2.2", "www.zone.example. 60 IN A 192.0.2.1"].map(line);
    let rrset = Rrset { owner: &a.owner, rtype: Rtype::A, ttl_s: 60, data: vec![&a.data[..], &b.data] };
    for algorithm in Algorithm::ALL {
        let zone = zone(&pool, algorithm, &origin, None);
        let keys: Vec<&[u8]> = zone.dnskeys().collect();
        assert_eq!(keys.len(), 2);
        let dnskeys = Rrset { owner: &origin, rtype: Rtype::DNSKEY, ttl_s: 60, data: keys };
        for nonces in [Nonces::Random, Nonces::Reproducible] {
            let mut signer = Signer::new(nonces, 1 << 20);
            for (rrset, key) in [(&rrset, zone.zone_signing), (&dnskeys, zone.key_signing)] {
                let [mut once, mut again, mut fresh] = [const { Vec::new() }; 3];
                assert_eq!(signer.rrsig(&zone, rrset, &mut once), Ok(true));
                assert_eq!(signer.rrsig(&zone, rrset, &mut again), Ok(true));
                assert_eq!(Signer::new(nonces, 0).rrsig(&zone, rrset, &mut fresh), Ok(true));
                assert_eq!(check(&zone, key, rrset, &once), (true, VALIDITY));
                assert_eq!(check(&zone, key, rrset, &fresh), (true, VALIDITY));
                assert_eq!(once, again, "kept");
                let is_random = algorithm == Algorithm::EcdsaP256Sha256 && nonces == Nonces::Random;
                assert_eq!(once == fresh, !is_random, "{algorithm:?} {nonces:?}");
                *fresh.last_mut().unwrap() ^= 1;
                assert_eq!(check(&zone, key, rrset, &fresh), (false, VALIDITY), "a turned bit is seen");
            }
            assert_eq!(signer.counts(), Counts { given: 4, made: 2, forgotten: 0 });
        }
    }
}

#[test]
fn each_fault_is_its_own() {
    let (pool, origin) = (Pool::new(3, 1), name("zone.example"));
    let soa = line("zone.example. 60 IN SOA ns.zone.example. mail.zone.example. 1 2 3 4 5");
    let rrset = Rrset { owner: &soa.owner, rtype: Rtype::SOA, ttl_s: 60, data: vec![&soa.data[..]] };
    let good = zone(&pool, Algorithm::EcdsaP256Sha256, &origin, None);
    let with = |fault| zone(&pool, Algorithm::EcdsaP256Sha256, &origin, Some(fault));
    let mut signer = Signer::new(Nonces::Random, 1 << 20);
    let mut checked = |zone: &SignedZone<'_>| {
        let mut rrsig = Vec::new();
        let is_there = signer.rrsig(zone, &rrset, &mut rrsig).unwrap();
        is_there.then(|| check(zone, zone.zone_signing, &rrset, &rrsig))
    };
    assert_eq!(checked(&good), Some((true, VALIDITY)));
    assert_eq!(checked(&with(Fault::Expired)), Some((true, VALIDITY.before())));
    assert_eq!(checked(&with(Fault::MissingSignature)), None);
    for fault in [Fault::WrongDs, Fault::MissingKey, Fault::BrokenDenial] {
        assert_eq!(checked(&with(fault)), Some((true, VALIDITY)), "{fault:?}");
    }
    assert_eq!(with(Fault::WrongDs).ds()[..35], good.ds()[..35]);
    assert_ne!(with(Fault::WrongDs).ds(), good.ds());
    assert_eq!(with(Fault::MissingKey).dnskeys().collect::<Vec<_>>(), [good.key_signing.dnskey()]);
    let only = SignedZone { zone_signing: good.key_signing, ..good };
    assert_eq!(only.dnskeys().collect::<Vec<_>>(), [good.key_signing.dnskey()]);
    let only = SignedZone { fault: Some(Fault::MissingKey), ..only };
    assert_eq!(only.dnskeys().count(), 0);
}

#[test]
fn the_signature_used_longest_ago_leaves_first() {
    let mut cache = Cache::new(2 * (ENTRY_BYTES + 64));
    let mut ask = |message: &[u8]| {
        let mut to = vec![9];
        let found = cache.append(message, &mut to, |to| to.resize(to.len() + 64, message[0]));
        assert_eq!(to, [&[9][..], &[message[0]; 64]].concat());
        assert!(cache.bytes <= 2 * (ENTRY_BYTES + 64));
        found
    };
    assert_eq!([b"a", b"b", b"a", b"c", b"a", b"b"].map(|one| ask(one)), [false, false, true, false, true, false]);
    assert_eq!(cache.forgotten(), 2, "b, and then c");
}

#[test]
fn a_cache_without_room_keeps_nothing() {
    let mut cache = Cache::new(100);
    for _ in 0..2 {
        assert!(!cache.append(b"a", &mut Vec::new(), |to| to.push(1)));
    }
    assert_eq!(cache.forgotten(), 2);
    let mut cache = Cache::new(ENTRY_BYTES);
    assert!(!cache.append(b"a", &mut Vec::new(), |to| to.push(1)));
    assert_eq!(cache.bytes, 0);
}
