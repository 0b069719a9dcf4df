use super::{
    testing::{prefixes, world},
    *,
};
use dnsrig_dns::testing::name;

fn labels(text: &str) -> Labels {
    Labels::read(&name(text)).unwrap()
}

#[test]
fn every_listed_name_is_a_node_and_has_its_records() {
    let world = world("zones.count = 500\ntlds.count = 20\nzones.wildcard = 0.5\nzones.empty_non_terminal = 0.5");
    let mut records = Records::default();
    let mut cuts = 0;
    for zone in world.zones() {
        world.names(zone, &mut |relative, node| {
            assert_eq!(world.node(zone, relative), node);
            match node {
                Node::Types(types) => {
                    records.clear();
                    types.iter().for_each(|rtype| world.add(zone, relative, rtype, &[relative], &mut records));
                    assert_eq!(
                        records.iter().map(|set| set.rtype).collect::<Vec<_>>(),
                        types.iter().collect::<Vec<_>>()
                    );
                    assert!(records.iter().all(|set| set.data().count() > 0 && set.owner == relative));
                }
                Node::Cut(child) => {
                    assert_eq!(world.parent(child), Some(zone));
                    cuts += 1;
                }
                Node::Missing => panic!("a name that is missing is listed"),
            }
        });
    }
    assert_eq!(cuts, world.zones().count() - 1, "every zone but the root is delegated");
}

#[test]
fn every_zone_is_served_by_its_servers_and_each_is_found_under_its_name() {
    let world = world("zones.count = 500\ntlds.count = 20");
    for zone in world.zones() {
        let zone_name = Labels::read(&world.name(zone)).unwrap();
        assert_eq!(world.deepest(&zone_name), zone);
        let mut servers = 0;
        world.name_servers(zone, &mut |name, server| {
            servers += 1;
            assert_eq!(world.zone_at(server, &zone_name, Rtype::SOA), Some(zone));
            let of_server = Labels::read(name).unwrap();
            let home = world.deepest(&of_server);
            let relative = of_server.between(of_server.count(), home.depth());
            assert_eq!(world.server_at(home, relative), Some(server), "the address at its name");
            assert!(matches!(world.node(home, relative), Node::Types(types) if types.has(Rtype::AAAA)));
            assert_eq!(world.places.server(world.places.of(server)), Some(server));
        });
        assert!(servers >= 2);
    }
}

#[test]
fn half_of_all_zones_are_with_one_hoster_in_eight() {
    let world = world("zones.count = 20000\ntlds.count = 20");
    let few = (0..world.seconds.forward()).filter(|number| {
        let name = world.name(Zone::Second(*number));
        world.own_hoster(*number).is_none() && world.hoster(*number, &name) < world.places.hosters / 8
    });
    let others = (0..world.seconds.forward()).filter(|number| world.own_hoster(*number).is_none());
    let share = few.count() as f64 / others.count() as f64;
    // Of 16,000 draws: the share deviates by 0.4 %.
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn the_deepest_zone_that_a_server_has_answers() {
    let world = world("zones.count = 500\ntlds.count = 20");
    let arpa = Zone::Tld(world.tlds.arpa);
    let mut server = None;
    world.name_servers(arpa, &mut |_, one| server = Some(one));
    let at =
        |text: &str, rtype| world.zone_at(server.unwrap(), &labels(text), rtype).map(|zone| world.name(zone).to_vec());
    assert_eq!(at("1.0.18.198.in-addr.arpa", Rtype::PTR), Some(name("in-addr.arpa")));
    assert_eq!(at("in-addr.arpa", Rtype::DS), Some(name("arpa")));
    assert_eq!(at("1.arpa", Rtype::A), Some(name("arpa")));
    assert_eq!(at("arpa", Rtype::DS), Some(name("arpa")), "it does not have the zone above");
    assert_eq!(at("no-such-tld", Rtype::A), None);
    let root = Server::Root { number: 0 };
    assert_eq!(world.zone_at(root, &labels("www.example.com"), Rtype::A), Some(Zone::Root));
}

#[test]
fn a_population_of_the_tld_dataset_finds_its_names() {
    let world = world("zones.count = 1000\ntlds.count = 1\ntlds.named = [{ name = \"example\", share = 1.0 }]");
    let table = crate::dataset::name_table::NameTable::delegations(1000, 1, "example").unwrap();
    for number in 0..table.count() {
        let name = Labels::read(table.wire(number)).unwrap();
        let zone = world.deepest(&name);
        assert_eq!(world.name(zone)[..], *table.wire(number));
        assert!(matches!(world.node(zone, b""), Node::Types(types) if types.has(Rtype::A)));
    }
}

#[test]
fn servers_that_find_no_room_are_an_error() {
    let prefixes = Prefixes { ipv4: servers::parse_ipv4("198.18.64.0/24").unwrap(), ..prefixes() };
    assert!(World::new(Spec::parse("").unwrap(), prefixes).is_err_and(|error| error.contains("have no room")));
}

#[test]
fn a_hoster_has_four_zones_at_least_and_there_is_one() {
    let hosters = |text: &str| {
        let tlds = "tlds.count = 1\ntlds.named = [{ name = \"example\", share = 1.0 }]";
        let world = world(&format!("{tlds}\n{text}"));
        (world.seconds.forward(), world.places.hosters)
    };
    for zones in [1, 7, 8, 11, 12, 400] {
        let (zones, hosters) = hosters(&format!("zones.count = {zones}"));
        assert_eq!(hosters, (zones / 4).max(1), "{zones} zones");
    }
    assert_eq!(hosters("zones.count = 1").1, 1);
    assert_eq!(hosters("zones.count = 400\nhosting.hosters = 5").1, 5);
}

/// The hash of what `of` writes about each zone of a world.
fn hash_of_zones(world: &World, of: impl Fn(Zone, &mut Vec<u8>)) -> u64 {
    let mut bytes = Vec::new();
    world.zones().for_each(|zone| of(zone, &mut bytes));
    fnv1a(&bytes)
}

/// A specification is the same world for ever. If this differs, worlds of earlier versions are other worlds now.
#[test]
fn a_world_is_what_it_was() {
    let world = world(
        "zones.count = 300\ntlds.count = 20\nzones.wildcard = 0.3\nzones.empty_non_terminal = 0.3\n\
         zones.elsewhere = 0.5\nsigning.share = 0.5\nfaults.lame = 0.1\nfaults.slow = 0.1\nfaults.loop = 0.1\n\
         faults.expired = 0.1",
    );
    let names = hash_of_zones(&world, |zone, to| {
        to.extend_from_slice(&world.name(zone));
        world.names(zone, &mut |relative, node| to.extend([relative, format!("{node:?}").as_bytes()].concat()));
    });
    let servers = hash_of_zones(&world, |zone, to| {
        world.name_servers(zone, &mut |name, server| {
            let place = world.places.of(server);
            let [ipv4, ipv6] = [world.prefixes.ipv4(place), world.prefixes.ipv6(place)];
            to.extend([name, format!("{server:?} {ipv4} {ipv6}").as_bytes()].concat());
        });
    });
    let records = hash_of_zones(&world, |zone, to| {
        world.names(zone, &mut |relative, node| {
            let Node::Types(types) = node else { return };
            let mut records = Records::default();
            let is_drawn = |rtype: &Rtype| !matches!(*rtype, Rtype::DNSKEY | Rtype::NSEC3PARAM);
            types.iter().filter(is_drawn).for_each(|rtype| {
                world.add(zone, relative, rtype, &[relative, &world.name(zone)], &mut records);
            });
            for set in records.iter() {
                to.extend([set.owner, format!("{} {}", set.rtype, set.ttl_s).as_bytes()].concat());
                set.data().for_each(|data| to.extend_from_slice(data));
            }
        });
    });
    let signing = hash_of_zones(&world, |zone, to| {
        let faulty = world.faulty(zone).map(|faulty| (faulty.fault, faulty.is_of_first));
        to.extend(format!("{:?} {faulty:?}\n", world.signing(zone)).into_bytes());
    });
    let expected =
        [8_630_618_324_400_783_934, 15_306_259_164_975_721_359, 10_646_239_357_019_175_836, 13_411_456_853_771_417_176];
    assert_eq!([names, servers, records, signing], expected);
}
