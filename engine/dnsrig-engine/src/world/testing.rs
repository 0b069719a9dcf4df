//! Worlds for tests, all with room for the same addresses.

use std::net::IpAddr;

use dnsrig_net::prefix::parse;

use super::{World, Zone, servers::Prefixes, spec::Spec};

/// Networks in the ranges for benchmarks (RFC 2544, RFC 5180).
pub fn prefixes() -> Prefixes {
    Prefixes { ipv4: parse("198.18.64.0/18").unwrap(), ipv6: parse("2001:2:0:3::/64").unwrap() }
}

/// The world of this specification.
pub fn world(text: &str) -> World {
    World::new(Spec::parse(text).unwrap(), prefixes()).unwrap()
}

/// The IPv4 addresses of a zone's servers.
pub fn addresses(world: &World, zone: Zone) -> Vec<IpAddr> {
    let mut found = Vec::new();
    world.name_servers(zone, &mut |_, server| found.push(world.prefixes.ipv4(world.places.of(server))));
    found
}
