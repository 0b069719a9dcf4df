//! The zones as numbers: how many, how large, which serial at which time. All is computed, nothing stored. No I/O.

use super::names;

/// The timers of every SOA, in seconds (RFC 1035 §3.3.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    pub refresh_s: u32,
    pub retry_s: u32,
    pub expire_s: u32,
    pub minimum_s: u32,
}

/// How zones change: one in turn at a steady rate, so that the time alone says how often each has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changes {
    /// So many a second, over all zones; 0: none.
    pub per_s: f64,
    /// So many of each zone lie behind at the start.
    pub before: u32,
    /// Each replaces so many records, or all that can change if there are fewer.
    pub records: u64,
    /// IXFR goes back so many.
    pub kept: u64,
}

/// All zones of a server.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The name below which the zones lie: wire format, lower case.
    pub suffix: Box<[u8]>,
    /// The catalog's name, likewise.
    pub catalog: Box<[u8]>,
    /// How many zones.
    pub count: u32,
    /// How many records a zone has, its SOA counted once.
    pub records: u64,
    /// The first so many zones …
    pub large: u32,
    /// … have so many.
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
    /// The one with this number.
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

    /// How many records a zone has, its SOA counted once.
    pub fn records(&self, zone: Zone) -> u64 {
        match zone {
            Zone::Member(number) if number < self.large => self.large_records,
            Zone::Member(_) => self.records,
            // SOA, NS, the version, and a PTR for each member.
            Zone::Catalog => 3 + u64::from(self.count),
        }
    }

    /// How many changes there were of all zones together, so long after the start.
    pub fn changes_until(&self, elapsed_ns: i64) -> u64 {
        // Exact for 2^53 changes: 285 years at a million a second.
        (self.changes.per_s * elapsed_ns.max(0) as f64 / 1e9) as u64
    }

    /// When the change with this number, from 0, comes, as time since the start; none where there are no changes.
    pub fn change_ns(&self, change: u64) -> Option<i64> {
        let per_s = self.changes.per_s;
        (per_s > 0.0).then(|| ((change + 1) as f64 / per_s * 1e9).ceil() as i64)
    }

    /// The zone that the change with this number, from 0, changes.
    pub fn changed_by(&self, change: u64) -> u32 {
        (change % u64::from(self.count)) as u32
    }

    /// How often a zone has changed, so long after the start: its version. A catalog never does.
    #[inline]
    pub fn version(&self, zone: Zone, elapsed_ns: i64) -> u64 {
        let Zone::Member(number) = zone else { return 0 };
        let mut version = u64::from(self.changes.before);
        if self.changes.per_s > 0.0 {
            // Zone 0 is the first in each round.
            let (changes, count) = (self.changes_until(elapsed_ns), u64::from(self.count));
            version += changes / count + u64::from(u64::from(number) < changes % count);
        }
        version
    }

    /// The serial of a version (RFC 1982: they come round).
    pub fn serial(&self, version: u64) -> u32 {
        self.serial.wrapping_add(version as u32)
    }
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
            count,
            records,
            large: 0,
            large_records: 0,
            seed: 1,
            serial: 1,
            timers: Timers { refresh_s: 3600, retry_s: 900, expire_s: 1_209_600, minimum_s: 300 },
            changes: Changes { per_s: 0.0, before: 0, records: 1, kept: 100 },
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
            next[shape.changed_by(changes) as usize] += 1;
            prop_assert!(versions(changes + 1).eq(next));
        }
    }

    #[test]
    fn names_lead_to_zones_and_the_catalog() {
        let shape = shape(2, 4);
        assert_eq!(shape.find(b"\x07z000001\x07example\0"), Some(Zone::Member(1)));
        assert_eq!(shape.find(b"\x07z000002\x07example\0"), None);
        assert_eq!(shape.find(b"\x07CATALOG\x07example\0"), Some(Zone::Catalog));
        assert_eq!((shape.records(Zone::Catalog), shape.records(Zone::Member(0))), (5, 4));
    }
}
