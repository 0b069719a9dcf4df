//! Names of a table, such as the names of a stream, which a world has beside the names that are drawn.
//!
//! A name takes twelve bytes and what stands before its zone. They are sorted as if their labels stood in the reverse
//! order, so that what is below a name follows it.

use dnsrig_dns::{dnssec::order, name::NAME_BYTES_MAX};
use domain::base::Rtype;

use super::{
    names::{Labels, Wire},
    records::Types,
    second_level_names::Seconds,
    tlds::Tlds,
};
use crate::dataset::name_table::NameTable;

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
            // For a name without known types, an address is asked for.
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
mod tests {
    use dnsrig_dns::testing::name;
    use domain::base::Rtype;

    use super::*;
    use crate::world::{Node, World, Zone, records::Records, spec::Spec, testing::prefixes};

    const NAMES: &str = "www.example.com.\t60\tA,MX\na.b.c.example.com.\t60\tTXT\nexample.com.\t60\tTXT\nnew-tld.\t5\tA\n\
                         _x._tcp.some.new-tld.\t5\tSRV,PTR\n1.2.0.192.in-addr.arpa.\t5\tPTR\n\
                         *.18.198.in-addr.arpa.\t5\tPTR\n18.198.in-addr.arpa.\t5\tPTR\nipv4only.arpa.\t5\tA\n\
                         a.tld-servers.com.\t5\tA\nnic.com.\t5\tA\nx.root-servers.\t5\tA\n\
                         x.dnssec-failed.arpa.\t5\tA\n";

    fn world(names: &str) -> World {
        let table = NameTable::parse(names.as_bytes(), "names".as_ref(), false).unwrap();
        let spec =
            Spec::parse("zones.count = 50\ntlds.count = 11\nzones.wildcard = 0.0\nzones.empty_non_terminal = 0.0");
        World::with_names(spec.unwrap(), prefixes(), Some(&table)).unwrap()
    }

    fn at(world: &World, text: &str) -> (Zone, Node) {
        let name = Labels::read(&name(text)).unwrap();
        let zone = world.deepest(&name);
        (zone, world.node(zone, name.between(name.count(), zone.depth())))
    }

    #[test]
    fn every_name_of_the_table_is_there_with_its_types() {
        let world = world(NAMES);
        let has = |text: &str, rtype| matches!(at(&world, text).1, Node::Types(types) if types.has(rtype));
        for (text, rtype) in [
            ("a.b.c.example.com", Rtype::TXT),
            ("example.com", Rtype::TXT),
            ("example.com", Rtype::SOA),
            ("new-tld", Rtype::SOA),
            ("_x._tcp.some.new-tld", Rtype::SRV),
            ("1.2.0.192.in-addr.arpa", Rtype::PTR),
            ("ipv4only.arpa", Rtype::A),
            ("a.tld-servers.com", Rtype::AAAA),
            ("a.root-servers", Rtype::A),
        ] {
            assert!(has(text, rtype), "{text} {rtype}");
        }
        assert!(has("www.example.com", Rtype::MX) || has("www.example.com", Rtype::CNAME));
        for text in ["b.c.example.com", "c.example.com", "_tcp.some.new-tld", "2.0.192.in-addr.arpa"] {
            assert_eq!(at(&world, text).1, Node::Types(Types::default()), "{text}: an empty non-terminal");
        }
        for text in [
            "d.example.com",
            "x.a.b.c.example.com",
            "b.example.com",
            "x.ipv4only.arpa",
            "other-tld",
            "x.dnssec-failed.arpa",
        ] {
            assert_eq!(at(&world, text).1, Node::Missing, "{text}");
        }
        assert_eq!(at(&world, "ipv4only.arpa").0.depth(), 2);
        assert_eq!(world.zones().filter(|zone| world.name(*zone)[..] == name("nic.com")).count(), 1);
    }

    #[test]
    fn all_names_of_a_zone_are_nodes_with_records() {
        let world = world(NAMES);
        let mut records = Records::default();
        let mut listed = Vec::new();
        for zone in world.zones() {
            let zone_name = world.name(zone);
            assert_eq!(world.deepest(&Labels::read(&zone_name).unwrap()), zone);
            world.names(zone, &mut |relative, node| {
                assert_eq!(world.node(zone, relative), node);
                let Node::Types(types) = node else { return };
                listed.push([relative, &zone_name[..]].concat());
                records.clear();
                types.iter().for_each(|rtype| world.add(zone, relative, rtype, &[relative, &zone_name], &mut records));
                assert!(records.iter().all(|set| set.data().count() > 0) && records.len() == types.iter().count());
            });
        }
        assert!(listed.contains(&name("a.b.c.example.com")) && listed.contains(&name("1.2.0.192.in-addr.arpa")));
        let count = listed.len();
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), count, "each once");
    }

    #[test]
    fn a_world_without_a_table_stays_as_it_is() {
        let one = world("nic.com.\t5\tA\n");
        let other = World::new(one.spec.clone(), one.prefixes).unwrap();
        let names = |world: &World| world.zones().map(|zone| world.name(zone).to_vec()).collect::<Vec<_>>();
        assert_eq!(names(&one), names(&other));
    }
}
