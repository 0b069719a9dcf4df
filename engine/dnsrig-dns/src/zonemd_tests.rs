//! The zones of RFC 8976, appendix A, whose digests are known, and ones that are wrong.

use dnsrig_testing::inputs;
use proptest::prelude::*;

use super::*;
use crate::testing::{self, Rr, line, name};

const BYTES_MAX: usize = 1 << 20;

const SOA: &str = "example. 86400 SOA ns1.example. admin.example. 2018031900 1800 900 604800 86400";

const SIMPLE: [&str; 6] = [
    SOA,
    "example. 86400 NS ns1.example.",
    "example. 86400 NS ns2.example.",
    "example. 86400 ZONEMD 2018031900 1 1 \
     c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c",
    "ns1.example. 3600 A 203.0.113.63",
    "ns2.example. 3600 AAAA 2001:db8::63",
];

const COMPLEX: [&str; 21] = [
    SOA,
    "example. 86400 NS ns1.example.",
    "example. 86400 NS ns2.example.",
    "example. 86400 ZONEMD 2018031900 1 1 \
     a3b69bad980a3504e1cffcb0fd6397f93848071c93151f552ae2f6b1711d4bd2d8b39808226d7b9db71e34b72077f8fe",
    "ns1.example. 3600 A 203.0.113.63",
    "NS2.example. 3600 AAAA 2001:db8::63",
    "occluded.sub.example. 7200 TXT \"I'm occluded but must be digested\"",
    "sub.example. 7200 NS ns1.example.",
    "duplicate.example. 300 TXT \"I must be digested just once\"",
    "duplicate.example. 300 TXT \"I must be digested just once\"",
    "foo.test. 555 TXT \"out-of-zone data must be excluded\"",
    "UPPERCASE.example. 3600 TXT \"canonicalize uppercase owner names\"",
    "*.example. 777 PTR dont-forget-about-wildcards.example.",
    "mail.example. 3600 MX 20 MAIL1.example.",
    "mail.example. 3600 MX 10 Mail2.Example.",
    "sortme.example. 3600 AAAA 2001:db8::5:61",
    "sortme.example. 3600 AAAA 2001:db8::3:62",
    "sortme.example. 3600 AAAA 2001:db8::4:63",
    "sortme.example. 3600 AAAA 2001:db8::1:65",
    "sortme.example. 3600 AAAA 2001:db8::2:64",
    "non-apex.example. 900 ZONEMD 2018031900 1 1 \
     616c6c6f776564206275742069676e6f7265642e20616c6c6f776564206275742069676e6f7265642e20616c6c6f7765",
];

/// Its third and fourth ZONEMD records are of a private algorithm and scheme; the fourth has 20 bytes of digest.
const MULTIPLE: [&str; 8] = [
    SOA,
    "example. 86400 NS ns1.example.",
    "example. 86400 NS ns2.example.",
    "example. 86400 ZONEMD 2018031900 1 1 \
     62e6cf51b02e54b9b5f967d547ce43136792901f9f88e637493daaf401c92c279dd10f0edb1c56f8080211f8480ee306",
    "example. 86400 ZONEMD 2018031900 1 2 \
     08cfa1115c7b948c4163a901270395ea226a930cd2cbcf2fa9a5e6eb85f37c8a\
     4e114d884e66f176eab121cb02db7d652e0cc4827e7a3204f166b47e5613fd27",
    "ns1.example. 3600 A 203.0.113.63",
    "ns2.example. 86400 TXT \"This example has multiple digests\"",
    "NS2.EXAMPLE. 3600 AAAA 2001:db8::63",
];

/// root-servers.net of 2018-09-11.
fn root_servers() -> Vec<Rr> {
    const ADDRESSES: [(&str, &str, &str); 13] = [
        ("a", "198.41.0.4", "2001:503:ba3e::2:30"),
        ("b", "199.9.14.201", "2001:500:200::b"),
        ("c", "192.33.4.12", "2001:500:2::c"),
        ("d", "199.7.91.13", "2001:500:2d::d"),
        ("e", "192.203.230.10", "2001:500:a8::e"),
        ("f", "192.5.5.241", "2001:500:2f::f"),
        ("g", "192.112.36.4", "2001:500:12::d0d"),
        ("h", "198.97.190.53", "2001:500:1::53"),
        ("i", "192.36.148.17", "2001:7fe::53"),
        ("j", "192.58.128.30", "2001:503:c27::2:30"),
        ("k", "193.0.14.129", "2001:7fd::1"),
        ("l", "199.7.83.42", "2001:500:9f::42"),
        ("m", "202.12.27.33", "2001:dc3::35"),
    ];
    let apex = "root-servers.net. 3600000";
    let mut lines =
        vec![format!("{apex} SOA a.root-servers.net. nstld.verisign-grs.com. 2018091100 14400 7200 1209600 3600000")];
    for (letter, a, aaaa) in ADDRESSES {
        lines.push(format!("{apex} NS {letter}.root-servers.net."));
        lines.push(format!("{letter}.root-servers.net. 3600000 A {a}"));
        lines.push(format!("{letter}.root-servers.net. 3600000 AAAA {aaaa}"));
    }
    lines.push("b.root-servers.net. 3600000 MX 20 mail.isi.edu.".into());
    lines.push("i.root-servers.net. 3600000 MX 10 mx.i.root-servers.org.".into());
    lines.push(format!(
        "{apex} ZONEMD 2018091100 1 1 \
         f1ca0ccd91bd5573d9f431c00ee0101b2545c97602be0a978a3b11dbfc1c776d5b3e86ae3d973d6b5349ba7f04340f79"
    ));
    lines.iter().map(|text| line(text)).collect()
}

fn records(lines: &[&str]) -> Vec<Rr> {
    lines.iter().map(|text| line(text)).collect()
}

fn check_up_to(records: &[Rr], bytes_max: usize) -> Result<(), Outcome> {
    let mut digest = Digest::new(bytes_max);
    testing::give(&testing::response(None, records), &mut digest)?;
    digest.end(Answered::Axfr)
}

fn check(records: &[Rr]) -> Result<(), Outcome> {
    check_up_to(records, BYTES_MAX)
}

#[test]
fn the_digests_of_the_rfc_are_found() {
    assert_eq!(check(&records(&SIMPLE)), Ok(()));
    assert_eq!(check(&records(&COMPLEX)), Ok(()));
    assert_eq!(check(&records(&MULTIPLE)), Ok(()));
    assert_eq!(check(&root_servers()), Ok(()));
}

#[test]
fn each_algorithm_is_right_by_itself_and_one_right_is_enough() {
    let zone = records(&MULTIPLE);
    let without = |places: &[usize]| {
        let kept = zone.iter().enumerate().filter(|(place, _)| !places.contains(place));
        kept.map(|(_, record)| record.clone()).collect::<Vec<_>>()
    };
    assert_eq!(check(&without(&[3])), Ok(()), "SHA-512");
    assert_eq!(check(&without(&[4])), Ok(()), "SHA-384");
    assert_eq!(check(&without(&[3, 4])), Err(Outcome::ZonemdMissing));
    let wrong = |places: &[usize]| {
        let mut zone = zone.clone();
        places.iter().for_each(|place| *zone[*place].data.last_mut().unwrap() ^= 1);
        check(&zone)
    };
    assert_eq!(wrong(&[3]), Ok(()));
    assert_eq!(wrong(&[4]), Ok(()));
    assert_eq!(wrong(&[3, 4]), Err(Outcome::ZonemdWrong));
}

#[test]
fn any_change_of_a_zone_is_found() {
    let zone = records(&SIMPLE);
    for place in 0..zone.len() {
        let change = |change: &dyn Fn(&mut Rr)| {
            let mut zone = zone.clone();
            change(&mut zone[place]);
            check(&zone)
        };
        assert_eq!(change(&|_| ()), Ok(()));
        // The ZONEMD record is no part of its digest.
        let ttl = change(&|record| record.ttl_s += 1);
        assert_eq!(ttl, if place == 3 { Ok(()) } else { Err(Outcome::ZonemdWrong) }, "TTL of record {place}");
        let data = change(&|record| *record.data.last_mut().unwrap() ^= 1);
        assert!(data.is_err(), "data of record {place}");
        let mut less = zone.clone();
        less.remove(place);
        let expected = if place == 3 { Outcome::ZonemdMissing } else { Outcome::ZonemdWrong };
        if place > 0 {
            assert_eq!(check(&less), Err(expected), "without record {place}");
        }
    }
    let mut more = zone.clone();
    more.push(line("ns3.example. 3600 A 203.0.113.64"));
    assert_eq!(check(&more), Err(Outcome::ZonemdWrong));
    // A digest of an older version, and twice the same kind of digest.
    let mut older = zone.clone();
    older[3].data[3] ^= 1;
    assert_eq!(check(&older), Err(Outcome::ZonemdWrong));
    let mut twice = zone.clone();
    twice.push(older[3].clone());
    assert_eq!(check(&twice), Err(Outcome::ZonemdMissing));
}

#[test]
fn what_signs_the_digest_is_not_digested() {
    let mut zone = records(&SIMPLE);
    let covering = |rtype: u8| Rr::new(&name("example"), 46, &[&[0, rtype][..], &[0; 16], &[0, 1]].concat());
    zone.push(covering(63));
    assert_eq!(check(&zone), Ok(()));
    zone.push(covering(6));
    assert_eq!(check(&zone), Err(Outcome::ZonemdWrong));
}

#[test]
fn the_memory_of_a_check_is_bounded() {
    let zone = records(&SIMPLE);
    let mut digest = Digest::new(BYTES_MAX);
    testing::give(&testing::response(None, &zone), &mut digest).unwrap();
    let needed = digest.bytes();
    assert_eq!(check_up_to(&zone, needed), Ok(()));
    assert_eq!(check_up_to(&zone, needed - 1), Err(Outcome::LimitExceeded));
}

#[test]
fn changes_alone_have_no_digest() {
    let mut digest = Digest::new(BYTES_MAX);
    testing::give(&testing::response(None, &records(&SIMPLE)), &mut digest).unwrap();
    assert_eq!(digest.end(Answered::Ixfr), Err(Outcome::ZonemdMissing));
    assert_eq!(Digest::new(BYTES_MAX).end(Answered::UpToDate), Ok(()));
}

/// RFC 4034 §6.1, and a zone of which some names are no part.
#[test]
fn keys_are_in_canonical_order() {
    let names = [
        "example.",
        "a.example.",
        "yljkjljk.a.example.",
        "Z.a.example.",
        "zABC.a.EXAMPLE.",
        "z.example.",
        "\\001.z.example.",
        "*.z.example.",
        "\\200.z.example.",
        "examplf.",
    ];
    let key = |text: &str| {
        let mut key = Vec::new();
        push_owner_key(&name(text), &mut key);
        key
    };
    assert!(names.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
}

proptest! {
    #![proptest_config(inputs(500))]

    /// Keys are compared as another library compares names, and lead back to them.
    #[test]
    fn keys_stand_for_names(labels in proptest::collection::vec(proptest::collection::vec(
        prop_oneof![0..3_u8, b'A'..b'D', b'a'..b'd', any::<u8>()], 1..4), 0..8), split in 0..8_usize,
    ) {
        let wire = |labels: &[Vec<u8>]| {
            let mut wire = Vec::new();
            for label in labels {
                wire.push(label.len() as u8);
                wire.extend_from_slice(label);
            }
            wire.push(0);
            wire
        };
        let (one, other) = labels.split_at(split.min(labels.len()));
        let (one, other) = (wire(one), wire(other));
        let key = |name: &[u8]| {
            let mut key = Vec::new();
            push_owner_key(name, &mut key);
            key
        };
        for name in [&one, &other] {
            let mut back = Vec::new();
            push_owner(&key(name), &mut back);
            prop_assert_eq!(back, name.to_ascii_lowercase());
        }
        let of = |wire: &[u8]| domain::base::Name::from_octets(wire.to_vec()).unwrap();
        let expected = domain::base::CanonicalOrd::canonical_cmp(&of(&one), &of(&other));
        prop_assert_eq!(key(&one).cmp(&key(&other)), expected);
    }
}
