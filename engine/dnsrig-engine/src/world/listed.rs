//! Names that a world has beside those that are drawn: those of a table, such as the names of a stream.
//!
//! A name takes twelve bytes and what stands before its zone. They are sorted as if their labels stood in the reverse
//! order, so that what is below a name follows it.

use domain::base::Rtype;

use super::{labels::Labels, seconds::Seconds, tlds::Tlds, types::Types, wire::Wire};
use crate::{
    dataset::name_table::NameTable,
    dns::{dnssec::order, name::NAME_BYTES_MAX},
};

/// Labels below which a world has its own servers: no zone of a table has one of these as its own.
const RESERVED_TLD: &[u8] = b"root-servers";
const RESERVED_SECOND: &[u8] = b"tld-servers";

#[derive(Clone, Copy)]
struct Entry {
    zone: u32,
    start: u32,
    length: u8,
    types: Types,
}

/// The names of all second-level zones.
#[derive(Default)]
pub struct Listed {
    keys: Vec<u8>,
    /// By zone and key.
    entries: Vec<Entry>,
}

/// The TLDs and second-level zones in which the names of a table lie.
pub fn zones(table: &NameTable) -> Vec<(&[u8], Option<&[u8]>)> {
    let mut zones: Vec<_> = (0..table.count())
        .filter_map(|number| {
            let name = table.wire(number);
            let labels = order::Labels::of(name);
            let label = |from_end| {
                let at = labels.suffix_at(from_end)?;
                Some(&name[at + 1..at + 1 + usize::from(name[at])])
            };
            Some((label(1)?, label(2).filter(|label| *label != RESERVED_SECOND)))
        })
        .filter(|(tld, _)| *tld != RESERVED_TLD)
        .collect();
    zones.sort_unstable();
    zones.dedup();
    zones
}

impl Listed {
    pub fn new(table: &NameTable, tlds: &Tlds, seconds: &Seconds) -> Result<Self, String> {
        let mut listed = Listed::default();
        for number in 0..table.count() {
            let Some(name) = Labels::read(table.wire(number)) else { continue };
            let tld = name.from_end(0).and_then(|label| tlds.find(label));
            let Some(zone) = tld.zip(name.from_end(1)).and_then(|(tld, label)| seconds.find(tld, label)) else {
                continue;
            };
            if zone == seconds.bogus() {
                continue;
            }
            let start = u32::try_from(listed.keys.len()).map_err(|_| "the names have more than 4 GiB".to_owned())?;
            let mut key = [0; NAME_BYTES_MAX];
            let length = write_key(name.between(name.count(), 2), &mut key);
            listed.keys.extend_from_slice(&key[..length]);
            let types = Types::of(table.types(number));
            // Of a name without known types an address is asked.
            let types = if types.is_empty() { Types::of(&[Rtype::A]) } else { types };
            listed.entries.push(Entry { zone, start, length: length as u8, types });
        }
        let Listed { keys, entries } = &mut listed;
        entries.sort_unstable_by(|one, other| (one.zone, one.key(keys)).cmp(&(other.zone, other.key(keys))));
        entries.shrink_to_fit();
        keys.shrink_to_fit();
        Ok(listed)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The types of a name, of which `relative` stands before the zone's own; none of them if only names below it are
    /// listed.
    pub fn find(&self, zone: u32, relative: &[u8]) -> Option<Types> {
        let mut key = [0; NAME_BYTES_MAX];
        let length = write_key(relative, &mut key);
        let key = &key[..length];
        let at = self.entries.partition_point(|entry| (entry.zone, entry.key(&self.keys)) < (zone, key));
        let entry = self.entries.get(at).filter(|entry| entry.zone == zone)?;
        let found = entry.key(&self.keys);
        if found == key { Some(entry.types) } else { found.starts_with(key).then(Types::default) }
    }

    /// The names of a zone, without the zone's own.
    pub fn of(&self, zone: u32) -> impl Iterator<Item = (Wire, Types)> {
        let first = self.entries.partition_point(|entry| entry.zone < zone);
        self.entries[first..].iter().take_while(move |entry| entry.zone == zone).map(|entry| {
            let mut relative = [0; NAME_BYTES_MAX];
            let length = write_key(entry.key(&self.keys), &mut relative);
            (Wire::of(&[&relative[..length]]), entry.types)
        })
    }
}

impl Entry {
    fn key(self, keys: &[u8]) -> &[u8] {
        &keys[self.start as usize..self.start as usize + usize::from(self.length)]
    }
}

/// Writes the labels of a name in the reverse order, each with its length before it; how many bytes they are.
fn write_key(relative: &[u8], key: &mut [u8; NAME_BYTES_MAX]) -> usize {
    let mut at = relative.len();
    let mut rest = relative;
    while let Some((length, behind)) = rest.split_first() {
        let bytes = 1 + usize::from(*length).min(behind.len());
        at -= bytes;
        key[at..at + bytes].copy_from_slice(&rest[..bytes]);
        rest = &rest[bytes..];
    }
    relative.len()
}

#[cfg(test)]
#[path = "listed_tests.rs"]
mod tests;
