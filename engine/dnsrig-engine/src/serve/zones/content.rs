//! What an answer carries, as a numbered list of records: a SOA, a whole zone, or the changes between two versions.
//!
//! Any record can be written by its number alone, so a transfer's state is a number. No I/O.

use dnsrig_dns::writer::MessageWriter;

use super::{
    records::{Part, RECORDS_MAX, Records, changes_records},
    shape::{Shape, Zone},
};

/// What an answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The SOA alone: of a SOA query, or for a secondary that has this version (RFC 1995 §4).
    Soa,
    /// SOA, all records, SOA (RFC 5936 §2.2).
    Whole,
    /// The changes since the version `from`, each as SOA, what is removed, SOA, what is added (RFC 1995 §4).
    Changes { from: u64 },
    /// One change that claims to lead to an older version than it starts from.
    Backwards { from: u64 },
    /// A whole zone that does not end.
    Endless,
}

impl Content {
    /// How many records, the SOA each time that it comes.
    pub fn count(self, shape: &Shape, zone: Zone, version: u64) -> u64 {
        let change = || changes_records(shape, zone);
        match self {
            Content::Soa => 1,
            Content::Whole => shape.records(zone, version) + 1,
            Content::Changes { from } => 2 + version.saturating_sub(from) * change(),
            Content::Backwards { .. } => 2 + change(),
            Content::Endless => RECORDS_MAX,
        }
    }

    /// Writes records from number `from` to before `until`, all but the last of [`Content::count`], as far as they end
    /// before `limit`; how many that are.
    pub fn write(
        self,
        to: &mut MessageWriter<'_>,
        records: &Records<'_>,
        shape: &Shape,
        version: u64,
        (from, until): (u64, u64),
        limit: usize,
    ) -> u64 {
        let mut number = from;
        while number < until {
            let is_zone = matches!(self, Content::Whole | Content::Endless);
            if is_zone && number > 0 {
                return number - from + records.run(to, number, until, limit, version);
            }
            let before = to.at();
            match self {
                _ if number == 0 => records.soa(to, shape.serial(version)),
                Content::Changes { from } => change(to, records, shape, from, number - 1),
                Content::Backwards { from } => backwards(to, records, shape, from, number - 1),
                Content::Soa | Content::Whole | Content::Endless => {}
            }
            if to.at() > limit {
                to.return_to(before);
                break;
            }
            number += 1;
        }
        number - from
    }
}

/// Record `number` of the changes that follow `from`, the SOA at the very beginning not counted.
fn change(to: &mut MessageWriter<'_>, records: &Records<'_>, shape: &Shape, from: u64, number: u64) {
    match records.part(from, number) {
        Part::Soa { version } => records.soa(to, shape.serial(version)),
        Part::Record { version, at, added } => records.changed(to, version, at, added),
    }
}

fn backwards(to: &mut MessageWriter<'_>, records: &Records<'_>, shape: &Shape, from: u64, number: u64) {
    if number > 0 && matches!(records.part(from, number), Part::Soa { .. }) {
        records.soa(to, shape.serial(from.wrapping_sub(1)));
    } else {
        change(to, records, shape, from, number);
    }
}
