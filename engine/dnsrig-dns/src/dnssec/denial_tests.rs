//! Proofs: the RFCs' examples, and any small zone, judged by what a validator concludes.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::{
    dnssec::{order, testing::Zone},
    name::skip_plain,
    testing::{line, name},
};

/// The first labels of owners, sorted.
fn first_labels(records: &[Record]) -> Vec<String> {
    let label = |record: &Record| String::from_utf8_lossy(&record.owner[1..][..record.owner[0].into()]).into_owned();
    let mut labels: Vec<String> = records.iter().map(label).collect();
    labels.sort();
    labels
}

#[test]
fn proofs_by_names_are_those_of_rfc_4035() {
    // The zone of RFC 4035, appendix A, and its answers in appendix B.
    let zone = Zone::new(
        &[
            ("example", "NS SOA MX DNSKEY"),
            ("a.example", "NS DS"),
            ("ai.example", "A AAAA HINFO"),
            ("b.example", "NS"),
            ("ns1.example", "A"),
            ("ns2.example", "A"),
            ("*.w.example", "MX"),
            ("x.w.example", "MX"),
            ("x.y.w.example", "MX"),
            ("xx.example", "A AAAA HINFO"),
        ],
        Params::default(),
        &[],
    );
    let proof = |owner: &str, claim| nsec(&zone, &name(owner), claim, None);
    // B.2
    let records = proof("ml.example", Claim::NxDomain);
    let expected = [
        "b.example. 3600 IN NSEC ns1.example. NS RRSIG NSEC",
        "example. 3600 IN NSEC a.example. NS SOA MX RRSIG NSEC DNSKEY",
    ]
    .map(line);
    let found: Vec<_> = records.iter().map(|record| (&record.owner, &record.data)).collect();
    assert_eq!(found, expected.each_ref().map(|line| (&line.owner, &line.data)));
    // B.3, B.5, B.6, B.7, B.8
    for (owner, claim, labels) in [
        ("ns1.example", Claim::NoData, &["ns1"][..]),
        ("b.example", Claim::NoData, &["b"]),
        ("a.z.w.example", Claim::Wildcard, &["x"]),
        ("a.z.w.example", Claim::WildcardNoData, &["*", "x"]),
        ("example", Claim::NoData, &["example"]),
        ("y.w.example", Claim::NoData, &["x"]),
    ] {
        assert_eq!(first_labels(&proof(owner, claim)), labels, "{owner}");
    }
    assert_eq!(proof("a.z.w.example", Claim::Wildcard)[0].owner, name("x.y.w.example"));
}

#[test]
fn proofs_by_hashes_are_those_of_rfc_5155() {
    // The zone of RFC 5155, appendix A, and its answers in appendix B.
    let zone = Zone::new(
        &[
            ("example", "NS SOA MX RRSIG DNSKEY NSEC3PARAM"),
            ("a.example", "NS DS RRSIG"),
            ("ai.example", "A AAAA HINFO RRSIG"),
            ("c.example", "NS"),
            ("ns1.example", "A RRSIG"),
            ("ns2.example", "A RRSIG"),
            ("*.w.example", "MX RRSIG"),
            ("x.w.example", "MX RRSIG"),
            ("x.y.w.example", "MX RRSIG"),
            ("xx.example", "A AAAA HINFO RRSIG"),
            ("2t7b4g4vsa5smi47k61mv5bv1a22bojr.example", "A RRSIG"),
        ],
        Params { iterations: 12, salt: vec![0xaa, 0xbb, 0xcc, 0xdd], opt_out: true },
        &["c.example"],
    );
    for (owner, claim, labels) in [
        // B.1: it matches x.w.example, covers c.x.w.example and *.x.w.example.
        (
            "a.c.x.w.example",
            Claim::NxDomain,
            &[
                "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom",
                "35mthgpgcu1qg68fab165klnsnk3dpvl",
                "b4um86eghhds6nea196smvmlo4ors995",
            ][..],
        ),
        // B.2, B.2.1
        ("ns1.example", Claim::NoData, &["2t7b4g4vsa5smi47k61mv5bv1a22bojr"]),
        ("y.w.example", Claim::NoData, &["ji6neoaepv8b5o6k4ev33abha8ht9fgc"]),
        // B.3
        ("c.example", Claim::NoData, &["0p9mhaveqvm6t7vbl5lop2u3t2rp3tom", "35mthgpgcu1qg68fab165klnsnk3dpvl"]),
        // B.4
        ("a.z.w.example", Claim::Wildcard, &["q04jkcevqvmu85r014c7dkba38o0ji5r"]),
        // B.5
        (
            "a.z.w.example",
            Claim::WildcardNoData,
            &[
                "k8udemvp1j2f7eg6jebps17vp3n8i58h",
                "q04jkcevqvmu85r014c7dkba38o0ji5r",
                "r53bq7cc2uvmubfu5ocmm6pers9tk9en",
            ],
        ),
        // B.6
        ("example", Claim::NoData, &["0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"]),
    ] {
        let proof = nsec3(&zone, &name("example"), &name(owner), claim, None);
        assert_eq!(first_labels(&proof), labels, "{owner}");
    }
    let expected = line(
        "35mthgpgcu1qg68fab165klnsnk3dpvl.example. 3600 IN NSEC3 1 1 12 aabbccdd b4um86eghhds6nea196smvmlo4ors995 NS \
         DS RRSIG",
    );
    let proof = nsec3(&zone, &name("example"), &name("a.example"), Claim::NoData, None);
    assert_eq!(proof, [Record { owner: expected.owner, rtype: Rtype::NSEC3, data: expected.data }]);
}

/// What is true of a name in a zone.
fn truth(zone: &Zone, owner: &[u8]) -> (Claim, Vec<u8>) {
    let encloser =
        (1..Labels::of(owner).count()).rev().map(|labels| suffix(owner, labels)).find(|o| zone.types(o).is_some());
    let encloser = encloser.unwrap_or(owner).to_vec();
    let has_wildcard = zone.types(&[b"\x01*", &encloser[..]].concat()).is_some();
    let claim = match zone.types(owner) {
        Some(_) => Claim::NoData,
        None if has_wildcard => Claim::WildcardNoData,
        None => Claim::NxDomain,
    };
    (claim, encloser)
}

/// Whether NSEC records prove it.
fn is_proved_by_names(records: &[Record], owner: &[u8], claim: Claim, encloser: &[u8]) -> bool {
    let next = |record: &Record| record.data[..skip_plain(&record.data, 0).unwrap()].to_vec();
    let below = |one: &[u8], other: &[u8]| labels_in_common(one, other) == Labels::of(other).count();
    let matched = |name: &[u8]| records.iter().any(|record| record.owner == name);
    let covered = |name: &[u8]| {
        records.iter().any(|record| {
            let next = next(record);
            let is_last = order::cmp(&next, &record.owner).is_le();
            order::cmp(&record.owner, name).is_lt()
                && (is_last || order::cmp(name, &next).is_lt())
                && !below(&next, name)
        })
    };
    let is_empty_non_terminal = |name: &[u8]| {
        records.iter().any(|record| order::cmp(&record.owner, name).is_lt() && below(&next(record), name))
    };
    let wildcard = [b"\x01*", encloser].concat();
    match claim {
        Claim::NoData => matched(owner) || is_empty_non_terminal(owner),
        Claim::NxDomain => covered(owner) && covered(&wildcard),
        Claim::Wildcard => covered(owner),
        Claim::WildcardNoData => covered(owner) && (matched(&wildcard) || is_empty_non_terminal(&wildcard)),
    }
}

/// Whether NSEC3 records prove it.
fn is_proved_by_hashes(records: &[Record], params: &Params, owner: &[u8], claim: Claim, encloser: &[u8]) -> bool {
    let label = |name: &[u8]| nsec3::label(&params.hash(name)).to_vec();
    let own = |record: &Record| record.owner[1..33].to_vec();
    let next = |record: &Record| nsec3::label(record.data[6..26].try_into().unwrap()).to_vec();
    let matched = |name: &[u8]| records.iter().any(|record| own(record) == label(name));
    let covered = |name: &[u8]| {
        records.iter().any(|record| {
            let (own, hash, next) = (own(record), label(name), next(record));
            if own < next { own < hash && hash < next } else { own < hash || hash < next }
        })
    };
    let next_closer = suffix(owner, Labels::of(encloser).count() + 1);
    let wildcard = [b"\x01*", encloser].concat();
    match claim {
        Claim::NoData => matched(owner),
        Claim::NxDomain => matched(encloser) && covered(next_closer) && covered(&wildcard),
        Claim::Wildcard => covered(next_closer),
        Claim::WildcardNoData => matched(encloser) && covered(next_closer) && matched(&wildcard),
    }
}

const LABELS: &[&str] = &["a", "b", "*", "c.a", "a.b", "*.b", "*.a.c", "b.c", "d", "a.a.a", "c.b.a.b"];

proptest! {
    #[test]
    fn a_validator_is_convinced_of_what_is_true(
        owners in vec(select(LABELS), 0..6), asked in vec(select(LABELS), 1..3),
    ) {
        let owners: Vec<String> = owners.iter().map(|owner| format!("{owner}.example")).collect();
        let records = [("example", "SOA NS")].into_iter().chain(owners.iter().map(|owner| (&owner[..], "A")));
        let records: Vec<(&str, &str)> = records.collect();
        let zone = Zone::new(&records, Params::default(), &[]);
        let (apex, owner) = (name("example"), name(&format!("{}.example", asked.join("."))));
        let (claim, encloser) = truth(&zone, &owner);
        let claims = if claim == Claim::WildcardNoData { vec![claim, Claim::Wildcard] } else { vec![claim] };
        for claim in claims {
            for fault in [None, Some(Fault::BrokenDenial)] {
                let found = nsec(&zone, &owner, claim, fault);
                let is_proved = is_proved_by_names(&found, &owner, claim, &encloser);
                prop_assert!(found.len() <= 2 && is_proved == fault.is_none(), "{claim:?} {found:?}");
                let found = nsec3(&zone, &apex, &owner, claim, fault);
                let is_proved = is_proved_by_hashes(&found, &zone.params, &owner, claim, &encloser);
                prop_assert!(found.len() <= 3 && is_proved == fault.is_none(), "{claim:?} {found:?}");
            }
        }
    }
}
