use std::collections::HashMap;

use dnsrig_dns::testing::name;

use super::*;
use crate::world::{faults::Effect, names::Labels, spec::Spec, testing::prefixes};

fn world(text: &str) -> Result<World, String> {
    World::new(Spec::parse(&format!("zones.count = 4000\ntlds.count = 11\n{text}")).unwrap(), prefixes())
}

/// How many of the world's zones have which fault, the one that is bogus in every world left out.
fn counted(world: &World) -> HashMap<(Fault, bool), usize> {
    let mut counts = HashMap::new();
    let faulty = world.zones().filter(|zone| *zone != bogus(world)).filter_map(|zone| world.faulty(zone));
    faulty.for_each(|faulty| *counts.entry((faulty.fault, faulty.is_of_first)).or_default() += 1);
    counts
}

fn bogus(world: &World) -> Zone {
    world.deepest(&Labels::read(&name("dnssec-failed.arpa")).unwrap())
}

#[test]
fn every_world_has_one_bogus_zone_and_those_beside_it_are_good() {
    let shares = Fault::ALL.map(|fault| format!("{} = 0.07\n", fault.name())).concat();
    for text in ["", "signing.share = 0.0\nsigning.tlds.signed = 0.0", &format!("[faults]\n{shares}")] {
        let world = world(text).unwrap();
        let bogus = bogus(&world);
        let Faulty { fault, is_of_first } = world.faulty(bogus).unwrap();
        assert_eq!(
            (fault, is_of_first, world.name(bogus).to_vec()),
            (Fault::WrongDs, false, name("dnssec-failed.arpa"))
        );
        let good = ["in-addr.arpa", "ip6.arpa", "arpa"].map(|text| world.deepest(&Labels::read(&name(text)).unwrap()));
        assert!(good.iter().all(|zone| world.faulty(*zone).is_none() && world.signing(*zone).is_some()));
        assert!(world.signing(bogus).is_some());
    }
}

#[test]
fn every_fault_has_its_share() {
    let shares: String = Fault::ALL.map(|fault| format!("{} = 0.05\n", fault.name())).concat();
    let counts = counted(&world(&format!("[faults]\nfirst_server = 0.25\n{shares}")).unwrap());
    for fault in Fault::ALL {
        let of = |is_of_first| counts.get(&(fault, is_of_first)).copied().unwrap_or(0) as f64;
        // 5 % of the 3,000 zones that are no hoster's: 150 with a deviation of 12; a quarter of them: 37 and 5.
        assert!((of(false) + of(true) - 150.0).abs() < 60.0, "{counts:?}");
        assert!(if fault.is_of_servers() { (of(true) - 37.0).abs() < 25.0 } else { of(true) == 0.0 }, "{counts:?}");
    }
    assert!(counted(&world("").unwrap()).is_empty());
}

#[test]
fn a_zone_has_a_fault_by_its_name() {
    let all = world("").unwrap();
    let ordinary = (0..).map(Zone::Second).find(|zone| !all.is_hosters(&all.name(*zone))).unwrap();
    let text = domain::base::Name::from_slice(&all.name(ordinary)).unwrap().to_string();
    let world_of = |fault: &str| world(&format!("[faults.by_name]\n\"{text}\" = \"{fault}\""));
    let found = world_of("servfail:first").unwrap().faulty(ordinary).unwrap();
    assert_eq!((found.fault, found.is_of_first, found.effect()), (Fault::Servfail, true, Effect::FromAnotherServer));
    assert_eq!(counted(&world_of("lame").unwrap()), HashMap::from([((Fault::Lame, false), 1)]));
    for (fault, said) in [("lmae", "is no fault: there are lame, "), ("loop:first", "all servers")] {
        assert!(world_of(fault).is_err_and(|error| error.contains(said)), "{fault}");
    }
    let hosters = domain::base::Name::from_slice(&all.name(Zone::Second(0))).unwrap().to_string();
    for (text, said) in [
        ("com", "no second-level zone"),
        ("www.nic.com", "no second-level zone"),
        ("in-addr.arpa", "no second-level zone"),
        ("dnssec-failed.arpa", "no second-level zone"),
        ("no-such-zone.com", "no second-level zone"),
        ("a..b", "a..b"),
        (&hosters, "choose another"),
    ] {
        let error = world(&format!("[faults.by_name]\n\"{text}\" = \"lame\"")).err().unwrap();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn servers_that_are_silent_or_slow_have_no_other_zones() {
    let world = world("[faults]\nsilent = 0.1\nslow = 0.1\nloop = 0.1\nlame = 0.1\nfirst_server = 0.5").unwrap();
    let mut kinds: HashMap<u32, Option<Faulty>> = HashMap::new();
    for zone in world.zones().filter(|zone| zone.depth() == 2) {
        let faulty = world.faulty(zone).filter(|faulty| faulty.fault.is_of_time());
        let own = world.name(zone);
        world.name_servers(zone, &mut |server_name, server| {
            assert_eq!(*kinds.entry(world.places.of(server)).or_insert(faulty), faulty);
            let below_itself = server_name.ends_with(&own);
            assert!(below_itself || faulty.is_none() && !world.lacks_glue(zone));
            assert!(world.zone_at(server, &Labels::read(&own).unwrap(), domain::base::Rtype::SOA) == Some(zone));
            assert!(world.places.of(server) < world.places.count());
        });
    }
}

#[test]
fn a_fault_of_the_first_server_is_not_one_of_the_others() {
    let world = world("[faults]\nrefused = 1.0\nfirst_server = 1.0").unwrap();
    let zone = world.zones().find(|zone| world.faulty(*zone).is_some()).unwrap();
    let mut found = Vec::new();
    world.name_servers(zone, &mut |_, server| found.push(world.fault_at(zone, server)));
    assert_eq!(found.first(), Some(&Some(Fault::Refused)));
    assert!(found.len() > 1 && found[1..].iter().all(Option::is_none));
    assert_eq!(world.faulty(world.deepest(&Labels::read(&name("com")).unwrap())), None);
}
