//! What changes edit.

use std::{fs, str::FromStr};

use super::*;
use crate::dns::update::touch;

fn zones(count: usize) -> Zones {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zones.list");
    fs::write(&path, (0..count).map(|number| format!("z{number}.example\tf\n")).collect::<String>()).unwrap();
    Zones::read(&path).unwrap()
}

fn catalog(members: usize, first: u32, absent: u32) -> Plan {
    let churn = Churn::new(members as u32, first, absent).unwrap();
    Plan::Catalog { catalog: Name::from_str("catalog.example").unwrap(), members: zones(members), churn }
}

#[test]
fn a_member_is_named_as_the_generator_names_it() {
    let plan = catalog(4, 0, 1);
    let told: Vec<_> = (0..2).map(|number| plan.edits(number, plan.change(number)).unwrap()).collect();
    let owner: Name<Vec<u8>> = Name::from_str("m000000.zones.catalog.example").unwrap();
    assert_eq!(told[0], [Edit::DeleteSet { owner: owner.clone(), rtype: Rtype::PTR }]);
    let data = Name::<Vec<u8>>::from_str("z0.example").unwrap().into_octets();
    assert_eq!(told[1], [Edit::Add { owner, rtype: Rtype::PTR, ttl_s: 0, data }]);
    assert_eq!(plan.edited(plan.change(0)).to_string(), "catalog.example");
    assert_eq!(plan.subject(plan.change(0)).to_string(), "z0.example");
}

#[test]
fn zones_are_touched_in_turn_with_a_text_that_is_new() {
    let plan = Plan::Zones(zones(3));
    let turns: Vec<_> = (0..4).map(|number| plan.change(number).zone).collect();
    assert_eq!(turns, [0, 1, 2, 0]);
    let text = |number| plan.edits(number, plan.change(number)).unwrap().pop();
    assert_ne!(text(0), text(3));
    assert_eq!(plan.edited(plan.change(1)).to_string(), "z1.example");
}

#[test]
fn a_name_without_room_for_a_label_is_told() {
    let long = Name::<Vec<u8>>::from_str(&format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(60))).unwrap();
    assert!(touch(Name::from_slice(long.as_slice()).unwrap(), 1).is_err());
}
