//! Streams of changes, played on a list of members.

use std::{collections::HashSet, fs, str::FromStr};

use proptest::prelude::*;

use super::*;

fn zones(count: usize) -> Zones {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zones.list");
    fs::write(&path, (0..count).map(|number| format!("z{number}.example\tf\n")).collect::<String>()).unwrap();
    Zones::read(&path).unwrap()
}

fn catalog(members: usize, first: u32, absent: u32) -> Plan {
    Plan::Catalog { catalog: Name::from_str("catalog.example").unwrap(), members: zones(members), first, absent }
}

proptest! {
    /// A member that is removed was there, one that is added was not, and the catalog keeps its size.
    #[test]
    fn the_catalog_stays_about_as_large(members in 4_u32..60, first in 0_u32..3, seed: u32, steps in 1_u64..500) {
        let absent = 1 + seed % (members - first).div_ceil(2);
        let plan = catalog(members as usize, first, absent);
        let mut present: HashSet<u32> = (0..members).collect();
        for number in 0..steps {
            let Change { kind, zone } = plan.change(number);
            prop_assert!(zone >= first, "what lies before the first is left alone");
            match kind {
                Kind::Remove => prop_assert!(present.remove(&zone)),
                Kind::Add => prop_assert!(present.insert(zone)),
                Kind::Touch => prop_assert!(false),
            }
            let missing = members as usize - present.len();
            prop_assert!(missing <= absent as usize);
            prop_assert!(number < u64::from(absent) || missing + 1 >= absent as usize);
        }
    }
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
