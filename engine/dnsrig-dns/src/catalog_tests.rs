use std::collections::BTreeSet;

use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::{
    base::{Message, Name, ToName, rdata::ComposeRecordData},
    rdata::{Ptr, Txt},
};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    query::Ask,
    testing::{NS, QUESTION, Rr, give, response, soa},
    xfr::{Incoming, Limits, Step},
};

const NO_LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };

/// One record of the catalog `cat`: the labels before its name, its type and its data.
type Entry<'a> = (&'a str, Rtype, &'a str);

const APEX: Entry = ("", Rtype::NS, "invalid");
const VERSION_2: Entry = ("version", Rtype::TXT, "2");

/// A name in wire format, from labels with dots between.
fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).chain([0]).collect()
}

/// The members of a catalog with these records.
fn members(entries: &[Entry]) -> Result<Vec<String>, CatalogError> {
    let members = Members::new(&wire("cat"));
    for (labels, rtype, data) in entries {
        let owner = wire(&format!("{labels}.cat"));
        let text = [&[data.len() as u8], data.as_bytes()].concat();
        members.note(&owner, *rtype, &text, || Some(wire(data)));
    }
    let zones = members.take().members()?;
    Ok((0..zones.count()).map(|zone| zones.name(zone).to_string()).collect())
}

/// The members of a whole catalog that lists these.
fn listing(listed: &[Entry]) -> Result<Vec<String>, CatalogError> {
    members(&[&[APEX, VERSION_2], listed].concat())
}

fn ptr<'a>(labels: &'a str, name: &'a str) -> Entry<'a> {
    (labels, Rtype::PTR, name)
}

/// The sentence of a catalog that is broken.
fn broken(found: Result<Vec<String>, CatalogError>) -> String {
    match found {
        Err(CatalogError::Broken(sentence)) => sentence,
        other => panic!("not broken: {other:?}"),
    }
}

#[test]
fn members_are_what_is_listed_below_zones() {
    let listed = [
        ptr("b.zones", "y.example"),
        ptr("a.zones", "X.example"),
        ptr("group.b.zones", "n"),
        ptr("zones", "n"),
        ptr("mine.ext.a.zones", "n"),
        ("c.zones", Rtype::TXT, "n"),
        ("group.a.zones", Rtype::TXT, "one"),
        ("group.a.zones", Rtype::TXT, "two"),
    ];
    assert_eq!(listing(&listed), Ok(vec!["y.example".into(), "x.example".into()]), "in the order of the records");
    assert_eq!(listing(&[]), Err(CatalogError::Empty));
    // What the primary sends twice is one record of its set.
    let twice = [ptr("a.zones", "x"), ptr("a.zones", "x"), VERSION_2, ptr("coo.a.zones", "d"), ptr("coo.a.zones", "D")];
    assert_eq!(listing(&twice), Ok(vec!["x".into()]));
}

#[test]
fn the_data_of_a_pointer_is_one_name() {
    let read = |data: &[u8]| {
        let version = Rr::new(&below_all("version"), Rtype::TXT.to_int(), b"\x012");
        let pointer = Rr::new(&below_all("a.zones"), Rtype::PTR.to_int(), data);
        let records = [Rr::new(QUESTION, NS, &wire("invalid")), pointer, version];
        let mut members = Members::new(&wire("cat"));
        give(&response(Some((&wire("cat"), Ask::Axfr)), &records), &mut members).unwrap();
        members.take().members().map(|zones| zones.count())
    };
    assert_eq!(read(b"\x01x\0"), Ok(1));
    // A name that goes on in the record behind, and one with a byte behind it.
    for data in [&b"\x01x"[..], b"\x01x\0\0", b""] {
        assert!(matches!(read(data), Err(CatalogError::Broken(_))), "{data:?}");
    }
}

#[test]
fn a_member_may_have_the_label_of_a_property() {
    assert_eq!(listing(&[ptr("coo.zones", "x"), ptr("group.zones", "y")]), Ok(vec!["x".into(), "y".into()]));
    let handed_over = [ptr("coo.zones", "x"), ptr("coo.coo.zones", "one"), ptr("coo.coo.zones", "two")];
    assert!(broken(listing(&handed_over)).contains("the label coo hands its zone over"));
}

#[test]
fn another_zone_of_that_name_keeps_its_place() {
    assert_eq!(listing(&[ptr("a.zones", "x"), ptr("b.zones", "cat")]), Ok(vec!["x".into()]));
}

#[test]
fn a_catalog_that_breaks_a_rule_has_no_members() {
    let x = ptr("a.zones", "x");
    for (found, sentence) in [
        (listing(&[x, ptr("b.zones", "X")]), "the zone x is listed twice, as a and b (RFC 9432 §4.1)"),
        (listing(&[x, ptr("a.zones", "y")]), "the label a lists two zones, x and y (RFC 9432 §4.1)"),
        (members(&[APEX, x]), "it has no version (RFC 9432 §4.2.1)"),
        (members(&[APEX, ("version", Rtype::TXT, "3"), x]), "its version is \"3\", not \"2\" (RFC 9432 §4.2.1)"),
        (members(&[APEX, ("version", Rtype::TXT, ""), x]), "its version is \"\", not \"2\" (RFC 9432 §4.2.1)"),
        (listing(&[("version", Rtype::TXT, "1"), x]), "it has two versions, \"2\" and \"1\" (RFC 9432 §4.2.1)"),
        (
            listing(&[x, ptr("coo.a.zones", "one"), ptr("coo.a.zones", "two")]),
            "the label a hands its zone over to two catalogs, one and two (RFC 9432 §4.3.1)",
        ),
        (members(&[VERSION_2, x]), "it has no NS record at its apex (RFC 9432 §4)"),
    ] {
        assert_eq!(broken(found), sentence);
    }
    let members = Members::new(&wire("cat"));
    members.note(&wire("a.zones.cat"), Rtype::PTR, &[], || None);
    assert!(matches!(members.take().members(), Err(CatalogError::Broken(_))), "a PTR record without a name");
}

#[test]
fn the_schema_before_the_rfc_is_known() {
    let one = [APEX, ("version", Rtype::TXT, "1"), ptr("a.zones", "x")];
    assert_eq!(members(&one), Ok(vec!["x".into()]));
}

#[test]
fn another_attempt_begins_with_nothing() {
    let members = Members::new(&wire("cat"));
    members.note(&wire("cat"), Rtype::NS, &[], || None);
    let again = members.again();
    assert!(!again.take().has_name_server);
}

proptest! {
    #![proptest_config(inputs(1_000))]

    /// Compared with another reading of the rules: sets of records, and one look at each pair.
    #[test]
    fn members_are_listed_once_or_the_catalog_is_broken(listed in vec((0..6_u8, 0..6_u8), 1..8)) {
        let entries: Vec<_> = listed.iter().map(|(l, z)| (format!("l{l}.zones"), format!("z{z}"))).collect();
        let entries: Vec<_> = entries.iter().map(|(labels, name)| ptr(labels, name)).collect();
        let found = listing(&entries);
        let set: BTreeSet<_> = listed.iter().collect();
        let is_broken = set.iter().any(|(l, z)| set.iter().any(|(m, y)| (l == m) != (z == y)));
        match found {
            Ok(members) => {
                prop_assert!(!is_broken && members.len() == set.len());
            }
            Err(CatalogError::Broken(_)) => prop_assert!(is_broken),
            Err(CatalogError::Empty) => prop_assert!(false),
        }
    }
}

/// The members that RFC 9432 allows to process, by another library's reading and sets of records; none if the catalog
/// is broken.
fn allowed(messages: &[Vec<u8>]) -> Option<BTreeSet<Vec<u8>>> {
    let lower = |name: Name<Vec<u8>>| name.as_slice().to_ascii_lowercase();
    let (mut has_ns, mut versions) = (false, BTreeSet::new());
    let (mut listed, mut handed_over) = (BTreeSet::new(), BTreeSet::new());
    for message in messages {
        for record in Message::from_octets(&message[..]).unwrap().answer().unwrap() {
            let record = record.unwrap();
            let owner = lower(record.owner().to_vec());
            let labels = owner.strip_suffix(&*wire("cat")).expect("it is in the zone");
            let data = || {
                let (mut data, txt) = (Vec::new(), record.to_record::<Txt<_>>());
                txt.ok().flatten().into_iter().for_each(|txt| txt.data().compose_rdata(&mut data).unwrap());
                data
            };
            let is_member = |labels: &[u8]| {
                let label = labels.strip_suffix(&wire("zones")[..6]).unwrap_or_default();
                label.first().is_some_and(|length| usize::from(*length) + 1 == label.len())
            };
            let target = || record.to_record::<Ptr<_>>().ok()?.map(|ptr| lower(ptr.data().ptrdname().to_vec()));
            match record.rtype() {
                Rtype::NS if labels.is_empty() => has_ns = true,
                Rtype::TXT if labels == &wire("version")[..8] => _ = versions.insert(data()),
                Rtype::PTR if is_member(labels) => _ = listed.insert((labels.to_vec(), target()?)),
                Rtype::PTR if labels.starts_with(COO) && is_member(&labels[COO.len()..]) => {
                    handed_over.insert((labels.to_vec(), target()?));
                }
                _ => (),
            }
        }
    }
    let is_known = versions.len() == 1 && versions.iter().all(|data| data == b"\x011" || data == b"\x012");
    listed.retain(|(_, zone)| *zone != wire("cat"));
    let unique = |names: BTreeSet<&Vec<u8>>, all: &BTreeSet<(Vec<u8>, Vec<u8>)>| names.len() == all.len();
    let is_allowed = has_ns
        && is_known
        && unique(listed.iter().map(|(label, _)| label).collect(), &listed)
        && unique(listed.iter().map(|(_, zone)| zone).collect(), &listed)
        && unique(handed_over.iter().map(|(label, _)| label).collect(), &handed_over);
    is_allowed.then(|| listed.into_iter().map(|(_, zone)| zone).collect())
}

/// Transfers of catalogs with harm done to them: the members are those that may be processed, each once, or none.
#[test]
fn harmed_catalogs_have_the_members_that_may_be_processed() {
    let catalog = wire("cat");
    let text = |labels: &str, text: &[u8]| {
        Rr::new(&below_all(labels), Rtype::TXT.to_int(), &[&[text.len() as u8], text].concat())
    };
    let ptr = |labels: &str, name: &str| Rr::new(&below_all(labels), Rtype::PTR.to_int(), &wire(name));
    let soa = soa(QUESTION, 7);
    let apex = [soa.clone(), Rr::new(QUESTION, NS, &wire("invalid")), text("version", b"2")];
    let bodies: [Vec<Rr>; 5] = [
        vec![ptr("a.zones", "x"), ptr("b.zones", "y"), text("group.a.zones", b"one")],
        vec![ptr("a.zones", "x"), ptr("a.zones", "X"), ptr("coo.a.zones", "d"), ptr("B.zones", "cat")],
        vec![ptr("a.zones", "x"), ptr("b.zones", "x")],
        vec![ptr("a.zones", "x"), ptr("a.zones", "y"), text("version", b"1")],
        vec![ptr("coo.a.zones", "x"), ptr("coo.a.zones", "y"), ptr("a.zones", "x")],
    ];
    let whole = |body: &Vec<Rr>| {
        let records = [&apex[..], body, std::slice::from_ref(&soa)].concat();
        response(Some((&catalog, Ask::Axfr)), &records)
    };
    let corpus: Vec<_> = bodies.iter().map(whole).collect();
    fuzz(3_000, &corpus, |bytes, _| {
        let mut members = Members::new(&catalog);
        let mut incoming = Incoming::new(Ask::Axfr, None);
        let step = incoming.take(bytes, &catalog, 0, &NO_LIMITS, &mut members);
        if step != Step::Done(Outcome::Done) {
            return;
        }
        let (found, allowed) = (members.take().members(), allowed(&[bytes.to_vec()]));
        match found {
            Ok(zones) => {
                let found: Vec<_> = (0..zones.count()).map(|zone| zones.wire(zone).to_vec()).collect();
                let set: BTreeSet<_> = found.iter().cloned().collect();
                assert_eq!((found.len(), Some(&set)), (set.len(), allowed.as_ref()));
            }
            Err(CatalogError::Empty) => assert!(allowed.is_some_and(|allowed| allowed.is_empty())),
            Err(CatalogError::Broken(sentence)) => assert_eq!(allowed, None, "{sentence}"),
        }
    });
}

/// Labels before a pointer to the question's name.
fn below_all(labels: &str) -> Vec<u8> {
    let mut name = wire(labels);
    name.pop();
    [name, QUESTION.to_vec()].concat()
}
