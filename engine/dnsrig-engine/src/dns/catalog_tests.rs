use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::base::testing::inputs;

/// One record of the catalog `cat`: the labels before its name, its type and its data.
type Entry<'a> = (&'a str, Rtype, &'a str);

const NS: Entry = ("", Rtype::NS, "invalid");
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
    members(&[&[NS, VERSION_2], listed].concat())
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
fn another_zone_of_that_name_keeps_its_place() {
    assert_eq!(listing(&[ptr("a.zones", "x"), ptr("b.zones", "cat")]), Ok(vec!["x".into()]));
}

#[test]
fn a_catalog_that_breaks_a_rule_has_no_members() {
    let x = ptr("a.zones", "x");
    for (found, sentence) in [
        (listing(&[x, ptr("b.zones", "X")]), "the zone x is listed twice, as a and b (RFC 9432 §4.1)"),
        (listing(&[x, ptr("a.zones", "y")]), "the label a lists two zones, x and y (RFC 9432 §4.1)"),
        (members(&[NS, x]), "it has no version (RFC 9432 §4.2.1)"),
        (members(&[NS, ("version", Rtype::TXT, "3"), x]), "its version is \"3\", not \"2\" (RFC 9432 §4.2.1)"),
        (members(&[NS, ("version", Rtype::TXT, ""), x]), "its version is \"\", not \"2\" (RFC 9432 §4.2.1)"),
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
    let one = [NS, ("version", Rtype::TXT, "1"), ptr("a.zones", "x")];
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

    #[test]
    fn any_record_is_noted_or_not(
        labels in prop_oneof![Just("version"), Just("a.zones"), Just("coo.a.zones"), Just("zones"), Just("")],
        rtype in prop_oneof![Just(Rtype::TXT), Just(Rtype::PTR), Just(Rtype::NS), Just(Rtype::SOA)],
        data in vec(any::<u8>(), 0..40),
        name in proptest::option::of(Just("x.example")),
    ) {
        let members = Members::new(&wire("cat"));
        for _ in 0..2 {
            members.note(&wire(&format!("{labels}.cat")), rtype, &data, || name.map(wire));
        }
        members.note(&data, rtype, &data, || None);
        prop_assert!(members.take().members().is_err(), "something is missing");
    }
}
