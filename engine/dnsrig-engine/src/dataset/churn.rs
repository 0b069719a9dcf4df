//! Changes one after another: what the k-th of them is, from k alone, and its row.
//!
//! `change` makes them on another primary by dynamic updates, `serve zones` on itself. Only [`write_rows`] does I/O.

use std::path::Path;

use dnsrig_core::{
    failure::Failure,
    rows::{self, Columns},
};

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A member leaves the catalog zone.
    Remove,
    /// A member comes back to it.
    Add,
    /// Records of an ordinary zone change, and its serial.
    Touch,
}

/// One change: what it does, and the number of the zone that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub zone: u32,
}

/// Members of a catalog zone that leave and come back. The missing ones follow each other in the list, round and round,
/// so all is known from the number of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Churn {
    /// The members before this one stay.
    first: u32,
    /// How many others there are, two at least.
    others: u32,
    /// The number of members that are missing at a time, at most half of the others.
    absent: u32,
}

impl Churn {
    /// Of `count` members those from `first` on leave and come back, `absent` at a time; none if fewer than two could.
    pub fn new(count: u32, first: u32, absent: u32) -> Option<Self> {
        let others = count.saturating_sub(first);
        (others >= 2).then(|| Churn { first, others, absent: absent.clamp(1, others / 2) })
    }

    /// The change with this number. They begin with `absent` removals; from then on, members come back and leave
    /// alternately, so that `absent` of them, or one less, are missing at any time.
    pub fn change(self, number: u64) -> Change {
        let absent = u64::from(self.absent);
        match number.checked_sub(absent) {
            None => Change { kind: Kind::Remove, zone: self.member(number) },
            Some(after) if after % 2 == 0 => Change { kind: Kind::Add, zone: self.member(after / 2) },
            Some(after) => Change { kind: Kind::Remove, zone: self.member(absent + after / 2) },
        }
    }

    /// The number of members that are missing after `changes` changes.
    pub fn missing(self, changes: u64) -> u64 {
        self.removed(changes) - self.added(changes)
    }

    /// The member at a place among the members that are present after `changes` changes; places count from 0.
    pub fn present(self, changes: u64, place: u64) -> u32 {
        match place.checked_sub(self.first.into()) {
            None => place as u32,
            // Behind the last that left, round to the first that has not come back.
            Some(behind) => self.member(self.removed(changes) + behind),
        }
    }

    /// How many of the first `changes` changes were removals.
    pub fn removed(self, changes: u64) -> u64 {
        let absent = u64::from(self.absent);
        changes.checked_sub(absent).map_or(changes, |after| absent + after / 2)
    }

    /// How many of the first `changes` changes brought a member back.
    pub fn added(self, changes: u64) -> u64 {
        changes.saturating_sub(self.absent.into()).div_ceil(2)
    }

    fn member(self, turn: u64) -> u32 {
        self.first + (turn % u64::from(self.others)) as u32
    }
}

/// The values of the column `kind`.
const KINDS: [&str; 3] = ["remove", "add", "touch"];

/// One change.
#[derive(Clone, Debug)]
pub struct Row {
    /// The member, or the zone whose records change.
    pub zone: String,
    pub kind: Kind,
    pub due_ns: i64,
    pub sent_ns: i64,
    /// When the primary had made it; what a primary does by itself is due, sent and made at once.
    pub accepted_ns: Option<i64>,
    pub rcode: Option<u8>,
    /// The serial that it gave to the catalog, or to the zone, as far as that is known.
    pub serial: Option<u32>,
}

/// Writes `changes.arrow`: a row for each change.
pub fn write_rows(path: &Path, rows: impl Iterator<Item = Row>) -> Result<(), Failure> {
    let kind = |row: &Row| match row.kind {
        Kind::Remove => 0,
        Kind::Add => 1,
        Kind::Touch => 2,
    };
    let columns = Columns::<Row>::default()
        .value("zone", |row| row.zone.clone())
        .word("kind", KINDS, kind)
        .value("due_ns", |row| row.due_ns)
        .value("sent_ns", |row| row.sent_ns)
        .optional("accepted_ns", |row| row.accepted_ns)
        .optional("rcode", |row| row.rcode)
        .optional("serial", |row| row.serial);
    rows::write(path, columns, rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A member that is removed was there, one that is added was not, and who is there is known from the number of
        /// changes alone.
        #[test]
        fn the_catalog_stays_about_as_large(members in 4_u32..60, first in 0_u32..3, seed: u32, steps in 1_u64..500) {
            let absent = 1 + seed % ((members - first) / 2).max(1);
            let churn = Churn::new(members, first, absent).unwrap();
            let mut present: BTreeSet<u32> = (0..members).collect();
            for number in 0..steps {
                let Change { kind, zone } = churn.change(number);
                prop_assert!(zone >= first, "what lies before the first is left alone");
                match kind {
                    Kind::Remove => prop_assert!(present.remove(&zone)),
                    Kind::Add => prop_assert!(present.insert(zone)),
                    Kind::Touch => prop_assert!(false),
                }
                let (changes, missing) = (number + 1, members as usize - present.len());
                prop_assert!(missing <= absent as usize);
                prop_assert!(changes <= u64::from(absent) || missing + 1 >= absent as usize);
                prop_assert_eq!(churn.missing(changes), missing as u64);
                prop_assert_eq!(churn.removed(changes) + churn.added(changes), changes);
                let listed = (0..present.len() as u64).map(|place| churn.present(changes, place));
                prop_assert_eq!(listed.collect::<BTreeSet<_>>(), present.clone());
            }
        }
    }

    #[test]
    fn a_member_alone_cannot_leave_and_come_back() {
        assert_eq!(Churn::new(10, 9, 1), None);
        assert_eq!(Churn::new(10, 8, 100).map(|churn| churn.missing(999)), Some(1));
    }
}
