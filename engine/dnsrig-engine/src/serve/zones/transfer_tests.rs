//! Transfers as another library reads them.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    net::IpAddr,
};

use dnsrig_core::hash::fnv1a;
use dnsrig_dns::{
    catalog::Members,
    edns::{Edns, Opt},
    header::HEADER_BYTES,
    query::Ask,
    tsig::{
        sign::{Signer, parse_key},
        verify::Verifier,
    },
    writer::MessageWriter,
    xfr::{Incoming, Limits, Outcome, Step},
};
use proptest::prelude::*;

use crate::{
    dataset::churn::Churn,
    serve::zones::{
        conversation::Conversation,
        counts::{Counts, Secondary, Transfers},
        faults::Fault,
        primary::{Period, Primary},
        shape::{Changes, Shape, tests::shape},
        testing::{NOW, ask, converse, faulty, primary, query, records, serial, zone},
    },
};

const LIMITS: Limits = Limits { bytes_max: 10_000_000, records_max: 200_000, messages_max: 100_000 };

/// The types of a zone's records, in order, the last SOA not among them.
fn kinds(count: u64) -> impl Iterator<Item = &'static str> {
    const FIRST: [&str; 11] = ["SOA", "NS", "NS", "A", "AAAA", "A", "AAAA", "MX", "A", "AAAA", "TXT"];
    (0..count).map(|number| FIRST.get(number as usize).copied().unwrap_or("A"))
}

fn is_limited(primary: &Primary, messages: &[Vec<u8>]) -> bool {
    messages.iter().all(|message| {
        let count = u16::from_be_bytes([message[6], message[7]]);
        let fits = message.len() <= primary.cut.bytes_max || count == 1;
        fits && (1..=primary.cut.records_max).contains(&count)
    })
}

proptest! {
    #[test]
    fn any_zone_has_its_records_however_it_is_cut(
        count in 2_u64..300,
        number in prop_oneof![0_u32..3, 999_990..1_000_010_u32],
        bytes_max in 512_usize..3000,
        records_max in 1_u16..100,
        before in 0_u32..1000,
    ) {
        let mut primary = primary(shape(2_000_000, count));
        primary.cut.bytes_max = bytes_max;
        primary.cut.records_max = records_max;
        primary.shape.changes.before = before;
        let messages = ask(&primary, &zone(number), Ask::Axfr);
        prop_assert!(is_limited(&primary, &messages));
        let records = records(&messages);
        let (last, zone) = records.split_last().unwrap();
        prop_assert_eq!(last, &zone[0]);
        prop_assert_eq!(serial(&last.2), 1 + before);
        prop_assert!(zone.iter().map(|(_, kind, _)| kind.as_str()).eq(kinds(count)));
        let apex = format!("z{number:06}.example");
        let below = format!(".{apex}");
        prop_assert!(zone.iter().all(|(owner, _, _)| owner == &apex || owner.ends_with(&below)));
        prop_assert_eq!(zone.iter().collect::<HashSet<_>>().len() as u64, count, "no record twice");
    }

    #[test]
    fn changes_applied_to_the_old_zone_give_the_new_one(
        count in 2_u64..40,
        each in 0_u64..50,
        old in 0_u32..100,
        steps in 1_u32..10,
        bytes_max in 512_usize..2000,
    ) {
        let mut primary = primary(shape(3, count));
        primary.shape.changes.records = each;
        primary.cut.bytes_max = bytes_max;
        let mut at = |version: u32, what: Ask| {
            primary.shape.changes.before = version;
            records(&ask(&primary, &zone(1), what))
        };
        let old_zone = at(old, Ask::Axfr);
        let new_zone = at(old + steps, Ask::Axfr);
        let changes = at(old + steps, Ask::Ixfr { serial: 1 + old });
        prop_assert_eq!(&changes[0], &new_zone[0]);
        prop_assert_eq!(changes.last(), new_zone.last());
        prop_assert_eq!(changes.iter().filter(|(_, kind, _)| kind == "SOA").count() as u32, 2 + 2 * steps);

        check_changes(&old_zone, &changes, &new_zone, 1 + old)?;
    }

    #[test]
    fn members_that_leave_and_come_back_give_the_catalog_as_it_is(
        count in 2_u32..40,
        first in 0_u32..10,
        absent in 1_u32..20,
        old in 0_u32..100,
        steps in 1_u32..100,
        bytes_max in 512_usize..2000,
    ) {
        let mut primary = primary(shape(first + count, 4));
        primary.shape.changes.churn = Churn::new(first + count, first, absent);
        primary.cut.bytes_max = bytes_max;
        let name = primary.shape.catalog.clone();
        let mut at = |version: u32, what: Ask| {
            primary.shape.changes.before = version;
            records(&ask(&primary, &name, what))
        };
        let old_zone = at(old, Ask::Axfr);
        let new_zone = at(old + steps, Ask::Axfr);
        let changes = at(old + steps, Ask::Ixfr { serial: 1 + old });
        prop_assert_eq!(changes.len() as u32, 2 + 3 * steps, "a member a serial");
        check_changes(&old_zone, &changes, &new_zone, 1 + old)?;
        let listed = new_zone.iter().filter(|(_, kind, _)| kind == "PTR").collect::<BTreeSet<_>>();
        prop_assert_eq!(listed.len(), new_zone.len() - 4, "no member twice");
        let (members, mut incoming) = (Members::new(&name), Incoming::new(Ask::Axfr, None));
        let mut sink = members.clone();
        let steps: Vec<_> = ask(&primary, &name, Ask::Axfr)
            .iter()
            .map(|message| incoming.take(message, &name, 0, &LIMITS, &mut sink))
            .collect();
        prop_assert_eq!(steps.last(), Some(&Step::Done(Outcome::Done)));
        prop_assert_eq!(members.take().members().map(|zones| zones.count() as usize), Ok(listed.len()), "RFC 9432 §4");
        let missing = (first + count) as usize - listed.len();
        prop_assert!(missing <= absent.min(count / 2) as usize);
    }
}

/// Applies an IXFR from `first` on to the old zone, as a secondary does: each serial follows the one before, what is
/// removed was there, what is added was not, and the new zone comes of it.
fn check_changes(
    old_zone: &[(String, String, String)],
    changes: &[(String, String, String)],
    new_zone: &[(String, String, String)],
    first: u32,
) -> Result<(), TestCaseError> {
    let mut zone: BTreeSet<_> = old_zone[1..old_zone.len() - 1].iter().cloned().collect();
    let (mut adding, mut now) = (true, first);
    for record in &changes[1..changes.len() - 1] {
        if record.1 == "SOA" {
            adding = !adding;
            let next = if adding { now + 1 } else { now };
            prop_assert_eq!(serial(&record.2), next);
            now = next;
        } else if adding {
            prop_assert!(zone.insert(record.clone()), "{:?} is there already", record);
        } else {
            prop_assert!(zone.remove(record), "{:?} is not there", record);
        }
    }
    let expected: BTreeSet<_> = new_zone[1..new_zone.len() - 1].iter().cloned().collect();
    prop_assert_eq!(zone, expected);
    Ok(())
}

#[test]
fn a_catalog_asked_for_with_a_serial_too_old_comes_whole() {
    let mut primary = primary(shape(50, 4));
    primary.shape.changes = Changes { before: 200, churn: Churn::new(50, 0, 5), ..primary.shape.changes };
    let name = primary.shape.catalog.clone();
    let count = |serial| records(&ask(&primary, &name, Ask::Ixfr { serial })).len();
    // The serial is 201 and a hundred changes are kept: 4 or 5 of 50 members are missing.
    assert_eq!([201, 200, 101, 100, 1].map(count), [1, 5, 302, 3 + 46 + 1, 50]);
}

#[test]
fn the_catalog_can_have_the_schema_before_the_rfc() {
    let mut primary = primary(shape(2, 4));
    primary.shape.schema = b'1';
    let name = primary.shape.catalog.clone();
    let found = records(&ask(&primary, &name, Ask::Axfr));
    assert!(found.contains(&("version.catalog.example".into(), "TXT".into(), "\"1\"".into())), "{found:?}");
}

#[test]
fn what_a_secondary_asks_of_zones_that_change_is_counted_by_its_address() {
    let mut primary = primary(shape(50, 4));
    primary.shape.changes = Changes { before: 9, churn: Churn::new(50, 0, 5), ..primary.shape.changes };
    let name = primary.shape.catalog.clone();
    let peer = IpAddr::from([198, 18, 0, 7]);
    let mut counts = Counts::default();
    let mut conversation = Conversation::new(Some(peer));
    let all = [Ask::Soa, Ask::Axfr, Ask::Ixfr { serial: 8 }, Ask::Ixfr { serial: 10 }, Ask::Ixfr { serial: 0 }];
    for what in all {
        conversation.take(&query(1, &name, what), &primary, NOW, &mut counts);
    }
    conversation.take(&query(2, &zone(3), Ask::Axfr), &primary, NOW, &mut counts);
    let whole = Transfers { axfr: 1, ixfr: 1, axfr_for_ixfr: 1, up_to_date: 1 };
    let expected = Secondary { soa: 1, asked: whole, ..Secondary::default() };
    assert_eq!(counts.secondaries.sorted(), BTreeMap::from([(peer, expected)]), "members do not change here");
    let mut room = vec![0; 200_000];
    conversation.fill(&primary, &mut MessageWriter::new(&mut room, 0), 100_000, 0, &mut counts);
    assert_eq!(counts.secondaries.sorted()[&peer], Secondary { served: whole, version: Some(9), ..expected });
    primary.period = Period::new();
    let mut counts = Counts::default();
    conversation.take(&query(3, &name, Ask::Axfr), &primary, NOW, &mut counts);
    assert_eq!(counts.secondaries.sorted(), BTreeMap::new(), "nothing has begun");
}

#[test]
fn who_is_up_to_date_or_too_old_gets_a_soa_or_the_zone() {
    let mut primary = primary(shape(3, 4));
    primary.shape.changes.before = 200;
    let count = |serial| records(&ask(&primary, &zone(1), Ask::Ixfr { serial })).len();
    // The serial is 201 and a hundred changes are kept.
    assert_eq!([201, 202, 201_u32.wrapping_add(1 << 31) - 1].map(count), [1, 1, 1]);
    assert_eq!([200, 101].map(count), [6, 402]);
    assert_eq!([100, 1, 0, 201_u32.wrapping_sub(1 << 31)].map(count), [5; 4]);
}

#[test]
fn serials_come_round() {
    let mut primary = primary(shape(1, 4));
    primary.shape.serial = u32::MAX;
    primary.shape.changes.before = 2;
    let records = records(&ask(&primary, &zone(0), Ask::Ixfr { serial: u32::MAX }));
    let serials: Vec<_> = records.iter().filter(|(_, kind, _)| kind == "SOA").map(|(.., data)| serial(data)).collect();
    assert_eq!(serials, [1, u32::MAX, 0, 0, 1, 1]);
}

#[test]
fn the_catalog_lists_every_zone_once() {
    for (catalog, compressed) in [(&b"\x07catalog\x07example\0"[..], true), (b"\x03cat\x05other\0", false)] {
        let mut primary = primary(shape(3, 4));
        primary.shape.catalog = catalog.into();
        let messages = ask(&primary, catalog, Ask::Axfr);
        let suffixes = messages[0].windows(8).filter(|bytes| bytes == b"\x07example").count();
        assert_eq!(suffixes, if compressed { 1 } else { 3 }, "in the question alone, or behind each member");
        let name = if compressed { "catalog.example" } else { "cat.other" };
        let found = records(&messages);
        let member =
            |number: u32| (format!("m{number:06}.zones.{name}"), "PTR".into(), format!("z{number:06}.example."));
        let version = (format!("version.{name}"), "TXT".to_owned(), "\"2\"".to_owned());
        assert_eq!(found[2..6], [version, member(0), member(1), member(2)]);
        assert_eq!((&found[0], found.len()), (&found[6], 7));
    }
}

#[test]
fn a_large_zone_is_the_same_wherever_names_grow_longer() {
    let primary = primary(shape(1, 100_020));
    let records = records(&ask(&primary, &zone(0), Ask::Axfr));
    assert_eq!(records.len(), 100_021);
    let hosts = records[11..100_020].iter().enumerate();
    assert!(hosts.clone().all(|(number, (owner, ..))| owner == &format!("h{number}.z000000.example")));
    assert_eq!(hosts.map(|(.., data)| &data.2).collect::<HashSet<_>>().len(), 256, "all addresses of the block");
}

#[test]
fn a_message_is_as_long_as_it_may_be_to_the_byte() {
    const KEY: &str = "hmac-sha256:key.example:c2VjcmV0IG9mIGEga2V5IQ==";
    for (has_opt, has_key) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut primary = primary(shape(3, 40));
        let mut query = query(7, &zone(1), Ask::Axfr);
        if has_opt {
            Opt::new(Edns { udp_payload_bytes: 1232, dnssec_ok: false }).append_to(&mut query);
            query[11] = 1;
        }
        if has_key {
            primary.key = Some(Signer::parse(KEY).unwrap());
            Verifier::sign(&parse_key(KEY).unwrap(), &mut query, 0, NOW.wall_s);
        }
        let mut messages = |bytes_max: usize| {
            primary.cut.bytes_max = bytes_max;
            converse(&primary, [&query[..]], &mut Counts::default()).0
        };
        let whole = messages(65_535);
        let counts = [whole[0][7], whole[0][11]];
        assert_eq!((whole.len(), counts), (1, [41, u8::from(has_opt) + u8::from(has_key)]));
        let length = whole[0].len();
        assert_eq!(messages(length), whole, "it fits to the byte");
        let answers: Vec<_> = messages(length - 1).iter().map(|message| message[7]).collect();
        assert_eq!(answers, [40, 1], "and then the last record does not");
    }
}

/// If this differs, zones of earlier versions are other zones now.
#[test]
fn zones_and_their_changes_are_what_they_were() {
    let mut primary = primary(Shape { seed: 5, large: 1, large_records: 1_234, ..shape(30, 40) });
    primary.shape.changes = Changes { before: 17, records: 9, ..primary.shape.changes };
    primary.cut.bytes_max = 1_000;
    let hash = |primary: &Primary, name: &[u8], what: Ask| fnv1a(&ask(primary, name, what).concat());
    let catalog = primary.shape.catalog.clone();
    let of_zones = [
        hash(&primary, &zone(0), Ask::Axfr),
        hash(&primary, &zone(1), Ask::Axfr),
        hash(&primary, &zone(2), Ask::Ixfr { serial: 11 }),
        hash(&primary, &zone(3), Ask::Soa),
        hash(&primary, &catalog, Ask::Axfr),
    ];
    primary.shape.changes.churn = Churn::new(30, 3, 6);
    let of_catalog = [hash(&primary, &catalog, Ask::Axfr), hash(&primary, &catalog, Ask::Ixfr { serial: 2 })];
    assert_eq!(
        of_zones,
        [
            17_454_724_855_809_907_599,
            6_201_151_658_560_591_889,
            8_275_729_304_356_202_769,
            4_441_293_500_946_249_974,
            5_266_313_479_556_178_186
        ]
    );
    assert_eq!(of_catalog, [7_849_464_250_667_478_549, 4_343_389_963_031_584_272]);
}

#[test]
fn seeds_and_zones_have_other_addresses() {
    let primary = primary(shape(3, 50));
    let mut other = primary.shape.clone();
    other.seed = 2;
    let other = super::super::testing::primary(other);
    let addresses = |primary, number| {
        let records = records(&ask(primary, &zone(number), Ask::Axfr));
        records.into_iter().filter(|(_, kind, _)| kind == "A").map(|(.., data)| data).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&primary, 0), addresses(&primary, 0));
    assert_ne!(addresses(&primary, 0), addresses(&primary, 1));
    assert_ne!(addresses(&primary, 0), addresses(&other, 0));
}

/// How the transfer instrument takes the answer to one query.
fn outcome(primary: &Primary, number: u32, what: Ask) -> Option<Outcome> {
    let (messages, _) = converse(primary, [&query(7, &zone(number), what)[..]], &mut Default::default());
    let mut incoming = Incoming::new(what, None);
    messages.iter().filter(|message| message.len() >= HEADER_BYTES).find_map(|message| {
        match incoming.take(message, &zone(number), 0, &LIMITS, &mut ()) {
            Step::Done(outcome) => Some(outcome),
            Step::More => None,
        }
    })
}

#[test]
fn faults_are_what_they_are_called_and_leave_other_zones_alone() {
    let ixfr = Ask::Ixfr { serial: 1 };
    for (fault, what, expected) in [
        (Fault::SoaDifferent, Ask::Axfr, Outcome::SoaDifferent),
        (Fault::SoaMissing, Ask::Axfr, Outcome::SoaMissing),
        (Fault::OutOfZone, Ask::Axfr, Outcome::OutOfZone),
        (Fault::Truncated, Ask::Axfr, Outcome::BadMessage),
        (Fault::CompressionLoop, Ask::Axfr, Outcome::CompressionLoop),
        (Fault::SerialBackwards, ixfr, Outcome::SerialBackwards),
        (Fault::ServfailAfter(0), Ask::Axfr, Outcome::Servfail),
        (Fault::RefusedAfter(0), Ask::Axfr, Outcome::Refused),
    ] {
        let mut primary = faulty(fault);
        primary.shape.changes.before = 2;
        assert_eq!(outcome(&primary, 4, what), Some(expected), "{fault:?}");
        let is_of_connection = matches!(fault, Fault::ServfailAfter(_) | Fault::RefusedAfter(_));
        let spared = outcome(&primary, 5, what).is_some_and(Outcome::is_good);
        assert_eq!(spared, !is_of_connection, "{fault:?}: an odd zone");
    }
}

#[test]
fn a_wrong_serial_is_less_than_the_soa_says() {
    let mut primary = faulty(Fault::WrongSerial);
    primary.shape.changes.before = 5;
    let serial_of = |what| serial(&records(&ask(&primary, &zone(0), what))[0].2);
    assert_eq!((serial_of(Ask::Soa), serial_of(Ask::Axfr)), (6, 5));
    primary.shape.changes.before = 0;
    let serial_of = |what| serial(&records(&ask(&primary, &zone(0), what))[0].2);
    assert_eq!((serial_of(Ask::Soa), serial_of(Ask::Axfr)), (1, 0));
}

#[test]
fn a_message_of_no_length_comes_before_a_transfer_and_ids_can_be_wrong() {
    let lengths: Vec<_> = ask(&faulty(Fault::LengthZero), &zone(0), Ask::Axfr).iter().map(Vec::len).collect();
    assert_eq!(lengths.len(), 2);
    assert_eq!(lengths[0], 0);
    assert_eq!(ask(&faulty(Fault::WrongId), &zone(0), Ask::Axfr)[0][..2], [0x80, 7]);
    assert_eq!(ask(&faulty(Fault::WrongId), &zone(0), Ask::Soa)[0][..2], [0, 7], "a SOA query is spared");
}
