//! What changes: the k-th change of a stream, worked out from k alone.

use domain::base::{Name, Rtype};

use crate::{
    dataset::churn::{Change, Churn, Kind},
    dns::{
        catalog::{ZONES, member_label},
        name::whole,
        update::{Edit, TooLong, below, touch},
        zones::Zones,
    },
};

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
    pub fn edits(&self, number: u64, change: Change) -> Result<Vec<Edit>, TooLong> {
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
fn member_owner(catalog: &Name<Vec<u8>>, member: u32) -> Result<Name<Vec<u8>>, TooLong> {
    let label = member_label(u64::from(member));
    let labels = [&[label.len() as u8], label.as_bytes(), ZONES].concat();
    below(&labels, whole(catalog.as_slice()))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
