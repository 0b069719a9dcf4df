//! The zones as numbers: how many, how large, which serial at which time. All is computed, nothing stored. No I/O.

use serde::Serialize;

use super::names;
use crate::dataset::churn::{Change, Churn, Kind};

/// The timers of every SOA, in seconds (RFC 1035 §3.3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    pub refresh_s: u32,
    pub retry_s: u32,
    pub expire_s: u32,
    pub minimum_s: u32,
}

/// What changes at a steady rate, so that the time alone says how often each zone has: one zone after another, or the
/// catalog again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changes {
    /// Changes per second, over all zones; 0: nothing changes.
    pub per_s: f64,
    /// The number of changes before the start, for each zone that changes.
    pub before: u32,
    /// The number of records of a zone that a change replaces, or all that can change if there are fewer.
    pub records: u64,
    /// The number of changes that IXFR goes back.
    pub kept: u64,
    /// Which members leave the catalog and come back; none: the catalog stays, and zones change.
    pub churn: Option<Churn>,
}

/// All zones of a server.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The name below which the zones lie: wire format, lower case.
    pub suffix: Box<[u8]>,
    /// The catalog's name, likewise.
    pub catalog: Box<[u8]>,
    /// The digit of the version of its schema (RFC 9432 §4.2.1).
    pub schema: u8,
    /// The number of zones.
    pub count: u32,
    /// How many records a zone has, its SOA counted once.
    pub records: u64,
    /// The number of large zones, which are the first ones …
    pub large: u32,
    /// … and the number of records of each.
    pub large_records: u64,
    /// Other seeds give other addresses.
    pub seed: u64,
    /// The serial of a zone that never changed.
    pub serial: u32,
    pub timers: Timers,
    pub changes: Changes,
}

/// Which zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The zone with this number.
    Member(u32),
    /// The catalog.
    Catalog,
}

impl Shape {
    /// The zone of this name (wire format, letters of either case), if it is ours.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Zone> {
        match names::zone_number(name, &self.suffix) {
            Some(number) if number < self.count => Some(Zone::Member(number)),
            _ if names::is_same(name, &self.catalog) => Some(Zone::Catalog),
            _ => None,
        }
    }

    /// How many records a zone has in a version, its SOA counted once.
    pub fn records(&self, zone: Zone, version: u64) -> u64 {
        match zone {
            Zone::Member(number) if number < self.large => self.large_records,
            Zone::Member(_) => self.records,
            // SOA, NS, the version, and a PTR for each member.
            Zone::Catalog => 3 + u64::from(self.count) - self.changes.churn.map_or(0, |churn| churn.missing(version)),
        }
    }

    /// How many changes there were of all zones together, so long after the start.
    pub fn changes_until(&self, elapsed_ns: i64) -> u64 {
        // Exact for 2^53 changes: 285 years at a million a second.
        (self.changes.per_s * elapsed_ns.max(0) as f64 / 1e9) as u64
    }

    /// What was changed in this time.
    pub fn made(&self, begin_ns: i64, end_ns: i64) -> Made {
        let (changes, before) = (self.changes_until(end_ns - begin_ns), u64::from(self.changes.before));
        let of_members = |count: fn(Churn, u64) -> u64| {
            self.changes.churn.map_or(0, |churn| count(churn, before + changes) - count(churn, before))
        };
        let (removed, added) = (of_members(Churn::removed), of_members(Churn::added));
        Made { begin_ns, end_ns, changes, removed, added, touched: changes - removed - added }
    }

    /// When the change with this number, from 0, comes, as time since the start; none where there are no changes.
    pub fn change_ns(&self, change: u64) -> Option<i64> {
        let per_s = self.changes.per_s;
        (per_s > 0.0).then(|| ((change + 1) as f64 / per_s * 1e9).ceil() as i64)
    }

    /// What the change with this number, from 0, does.
    pub fn change(&self, change: u64) -> Change {
        match self.changes.churn {
            Some(churn) => churn.change(u64::from(self.changes.before) + change),
            None => Change { kind: Kind::Touch, zone: (change % u64::from(self.count)) as u32 },
        }
    }

    /// The zone that has a new version after the change with this number, and which.
    pub fn changed_by(&self, change: u64) -> (Zone, u64) {
        let (before, count) = (u64::from(self.changes.before), u64::from(self.count));
        match self.changes.churn {
            Some(_) => (Zone::Catalog, before + change + 1),
            None => (Zone::Member((change % count) as u32), before + change / count + 1),
        }
    }

    /// Whether a zone is one of those that change.
    #[inline]
    pub fn is_changing(&self, zone: Zone) -> bool {
        self.changes.churn.is_some() == (zone == Zone::Catalog)
    }

    /// How often a zone has changed, so long after the start: its version.
    #[inline]
    pub fn version(&self, zone: Zone, elapsed_ns: i64) -> u64 {
        if !self.is_changing(zone) {
            return 0;
        }
        let before = u64::from(self.changes.before);
        if self.changes.per_s == 0.0 {
            return before;
        }
        let (changes, count) = (self.changes_until(elapsed_ns), u64::from(self.count));
        match zone {
            Zone::Catalog => before + changes,
            // Zone 0 is the first in each round.
            Zone::Member(number) => before + changes / count + u64::from(u64::from(number) < changes % count),
        }
    }

    /// The serial of a version (RFC 1982: they come round).
    pub fn serial(&self, version: u64) -> u32 {
        self.serial.wrapping_add(version as u32)
    }
}

/// What was changed, from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub changes: u64,
    /// Of them, members that left the catalog, members that came back, and changes of zones.
    pub removed: u64,
    pub added: u64,
    pub touched: u64,
}

/// Mixes bits: the last steps of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[inline]
pub fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `count` zones of `records` records below `example`, which do not change.
    pub fn shape(count: u32, records: u64) -> Shape {
        Shape {
            suffix: names::wire("example").into(),
            catalog: names::wire("catalog.example").into(),
            schema: b'2',
            count,
            records,
            large: 0,
            large_records: 0,
            seed: 1,
            serial: 1,
            timers: Timers { refresh_s: 3600, retry_s: 900, expire_s: 1_209_600, minimum_s: 300 },
            changes: Changes { per_s: 0.0, before: 0, records: 1, kept: 100, churn: None },
        }
    }

    proptest! {
        #[test]
        fn changes_go_round_and_each_raises_one_version(count in 1_u32..20, changes in 0_u64..100) {
            let mut shape = shape(count, 4);
            shape.changes.per_s = 1.0;
            // Half a second behind each change, where rounding has no say.
            let at = |changes: u64| changes as i64 * 1_000_000_000 + 500_000_000;
            let shape = &shape;
            let versions = |changes| (0..count).map(move |number| shape.version(Zone::Member(number), at(changes)));
            prop_assert_eq!(shape.changes_until(at(changes)), changes);
            prop_assert_eq!(versions(changes).sum::<u64>(), changes);
            let mut next: Vec<u64> = versions(changes).collect();
            let (Zone::Member(number), version) = shape.changed_by(changes) else { panic!("zones change") };
            next[number as usize] += 1;
            prop_assert_eq!(next[number as usize], version);
            prop_assert_eq!(shape.change(changes), Change { kind: Kind::Touch, zone: number });
            prop_assert!(versions(changes + 1).eq(next));
        }
    }

    #[test]
    fn names_lead_to_zones_and_the_catalog() {
        let shape = shape(2, 4);
        assert_eq!(shape.find(b"\x07z000001\x07example\0"), Some(Zone::Member(1)));
        assert_eq!(shape.find(b"\x07z000002\x07example\0"), None);
        assert_eq!(shape.find(b"\x07CATALOG\x07example\0"), Some(Zone::Catalog));
        assert_eq!((shape.records(Zone::Catalog, 0), shape.records(Zone::Member(0), 0)), (5, 4));
    }

    #[test]
    fn either_the_catalog_changes_or_its_members_do() {
        let mut shape = shape(10, 4);
        shape.changes = Changes { per_s: 2.0, before: 3, churn: Churn::new(10, 0, 2), ..shape.changes };
        let versions = |shape: &Shape| [Zone::Catalog, Zone::Member(0)].map(|zone| shape.version(zone, 5_000_000_000));
        assert_eq!((versions(&shape), shape.changed_by(9)), ([13, 0], (Zone::Catalog, 13)));
        assert_eq!(shape.records(Zone::Catalog, 13), 3 + 10 - 1);
        shape.changes.churn = None;
        assert_eq!((versions(&shape), shape.changed_by(9)), ([0, 4], (Zone::Member(9), 4)));
    }
}
