//! The k-th change, computed from k alone.

use dnsrig_core::failure::Failure;
use dnsrig_dns::{
    catalog::{ZONES, member_label},
    name::whole,
    update::{Edit, below, touch},
    zones::Zones,
};
use domain::base::{Name, Rtype};

use crate::dataset::churn::{Change, Churn, Kind};

/// Which changes follow each other.
pub enum Plan {
    /// Members of a catalog zone (RFC 9432) leave it and come back.
    Catalog { catalog: Name<Vec<u8>>, members: Zones, churn: Churn },
    /// Zones are touched in turn.
    Zones(Zones),
}

impl Plan {
    /// The change with this number.
    pub fn change(&self, number: u64) -> Change {
        match self {
            Plan::Catalog { churn, .. } => churn.change(number),
            Plan::Zones(zones) => Change { kind: Kind::Touch, zone: (number % u64::from(zones.count())) as u32 },
        }
    }

    /// The zone whose contents a change edits.
    pub fn edited(&self, change: Change) -> &Name<[u8]> {
        match self {
            Plan::Catalog { catalog, .. } => whole(catalog.as_slice()),
            Plan::Zones(zones) => zones.name(change.zone),
        }
    }

    /// The zone that a change is about: the member, or the zone that is edited itself.
    pub fn subject(&self, change: Change) -> &Name<[u8]> {
        match self {
            Plan::Catalog { members, .. } => members.name(change.zone),
            Plan::Zones(zones) => zones.name(change.zone),
        }
    }

    /// What a change edits; `number` makes the text of a TXT record new.
    pub fn edits(&self, number: u64, change: Change) -> Result<Vec<Edit>, Failure> {
        match self {
            Plan::Catalog { catalog, members, .. } => {
                let owner = member_owner(catalog, change.zone)?;
                Ok(vec![if change.kind == Kind::Remove {
                    Edit::DeleteSet { owner, rtype: Rtype::PTR }
                } else {
                    let data = members.name(change.zone).as_slice().to_vec();
                    Edit::Add { owner, rtype: Rtype::PTR, ttl_s: 0, data }
                }])
            }
            Plan::Zones(zones) => touch(zones.name(change.zone), number),
        }
    }
}

/// The owner of a member's PTR record, as `generate` makes it.
fn member_owner(catalog: &Name<Vec<u8>>, member: u32) -> Result<Name<Vec<u8>>, Failure> {
    let label = member_label(u64::from(member));
    let labels = [&[label.len() as u8], label.as_bytes(), ZONES].concat();
    below(&labels, whole(catalog.as_slice()))
}

#[cfg(test)]
mod tests {
    use std::{fs, str::FromStr};

    use dnsrig_dns::update::touch;

    use super::*;
    use crate::dataset::zone_list;

    fn zones(count: usize) -> Zones {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("zones.list");
        fs::write(&path, (0..count).map(|number| format!("z{number}.example\tf\n")).collect::<String>()).unwrap();
        zone_list::read(&path).unwrap()
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
    fn a_name_without_room_for_a_label_is_refused() {
        let long = Name::<Vec<u8>>::from_str(&format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(60))).unwrap();
        assert!(touch(Name::from_slice(long.as_slice()).unwrap(), 1).is_err());
    }
}
