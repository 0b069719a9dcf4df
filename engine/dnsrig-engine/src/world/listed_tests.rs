use domain::base::Rtype;

use super::*;
use crate::{
    dns::testing::name,
    world::{Node, World, Zone, records::Records, spec::Spec, testing::prefixes},
};

const NAMES: &str = "www.example.com.\t60\tA,MX\na.b.c.example.com.\t60\tTXT\nexample.com.\t60\tTXT\nnew-tld.\t5\tA\n\
                     _x._tcp.some.new-tld.\t5\tSRV,PTR\n1.2.0.192.in-addr.arpa.\t5\tPTR\nipv4only.arpa.\t5\tA\n\
                     a.tld-servers.com.\t5\tA\nnic.com.\t5\tA\nx.root-servers.\t5\tA\n\
                     x.dnssec-failed.arpa.\t5\tA\n";

fn world(names: &str) -> World {
    let table = NameTable::parse(names.as_bytes(), "names".as_ref(), false).unwrap();
    let spec = Spec::parse("zones.count = 50\ntlds.count = 11\nzones.wildcard = 0.0\nzones.empty_non_terminal = 0.0");
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
