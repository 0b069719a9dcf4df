//! From a question to an answer, as an authoritative server finds it (RFC 1034 §4.3.2, RFC 4592, RFC 2308).

use dnsrig_dns::dnssec::denial::Claim;
use domain::base::{Rtype, iana::Rcode};

use super::reply::{Proof, Reply};
use crate::world::{
    Node, World, Zone,
    names::{Labels, Wire},
    records::Types,
    servers::Server,
};

/// The most aliases of one zone that are followed for an answer.
const ALIASES_MAX: usize = 16;

const WILDCARD: &[u8] = b"\x01*";

/// What a zone has for a name.
enum Found {
    /// Another zone begins at its last so many labels.
    Cut(Zone, usize),
    /// These types. They are at the name itself, or at the wildcard below its last so many labels.
    Types(Types, Option<usize>),
    Missing,
}

/// Finds what `server` answers.
pub fn answer(world: &World, server: Server, name: &Labels, rtype: Rtype, reply: &mut Reply) {
    reply.clear();
    let Some(zone) = world.zone_at(server, name, rtype) else { return };
    reply.zone = Some(zone);
    answer_from(world, zone, name, rtype, reply);
}

/// Finds what a zone says.
pub fn answer_from(world: &World, zone: Zone, name: &Labels, rtype: Rtype, reply: &mut Reply) {
    (reply.rcode, reply.is_authoritative) = (Rcode::NOERROR, true);
    let mut target;
    let mut name = name;
    for _ in 0..ALIASES_MAX {
        match find(world, zone, name) {
            Found::Missing => {
                reply.rcode = Rcode::NXDOMAIN;
                return add_denial(world, zone, name, Claim::NxDomain, reply);
            }
            Found::Cut(child, labels) if rtype == Rtype::DS && labels == name.count() => {
                if !world.add_ds(zone, child, &[name.wire()], &mut reply.answer) {
                    add_denial(world, zone, name, Claim::NoData, reply);
                }
                return;
            }
            Found::Cut(child, labels) => {
                reply.is_authoritative = !reply.answer.is_empty();
                return refer(world, zone, child, name.suffix(labels), reply);
            }
            Found::Types(types, wildcard) => {
                let node = node_name(zone, name, wildcard);
                if let Some(labels) = wildcard {
                    reply.expanded = Some((reply.answer.len(), labels));
                    reply.proof = Some(Proof { name: name.clone(), claim: Claim::Wildcard, child: None });
                }
                if types.has(Rtype::CNAME) && rtype != Rtype::CNAME && rtype != Rtype::ANY {
                    world.add(zone, &node, Rtype::CNAME, &[name.wire()], &mut reply.answer);
                    let alias = reply.answer.iter().last().and_then(|set| Labels::read(set.data().next()?));
                    match alias.filter(|alias| is_in(world, zone, alias)) {
                        Some(alias) => target = alias,
                        None => return,
                    }
                    name = &target;
                    continue;
                }
                let is_asked = |one: &Rtype| *one == rtype || rtype == Rtype::ANY;
                for one in types.iter().filter(is_asked) {
                    world.add(zone, &node, one, &[name.wire()], &mut reply.answer);
                }
                if !types.iter().any(|one| is_asked(&one)) {
                    let claim = if wildcard.is_some() { Claim::WildcardNoData } else { Claim::NoData };
                    return add_denial(world, zone, name, claim, reply);
                }
                if rtype == Rtype::NS {
                    add_servers(world, zone, zone, reply);
                }
                return;
            }
        }
    }
}

/// Walks down from the zone's own name, which exists.
fn find(world: &World, zone: Zone, name: &Labels) -> Found {
    let depth = zone.depth();
    let first = if name.count() > depth { depth + 1 } else { depth };
    for labels in first..=name.count() {
        match world.node(zone, name.between(labels, depth)) {
            Node::Cut(child) => return Found::Cut(child, labels),
            Node::Types(types) if labels == name.count() => return Found::Types(types, None),
            Node::Types(_) => {}
            Node::Missing => {
                // The closest name that exists is the one before: its wildcard counts, if it has one.
                let wildcard = Wire::of(&[WILDCARD, name.between(labels - 1, depth)]);
                return match world.node(zone, &wildcard) {
                    Node::Types(types) => Found::Types(types, Some(labels - 1)),
                    _ => Found::Missing,
                };
            }
        }
    }
    Found::Missing
}

/// The name whose records are given, before the zone's own.
fn node_name(zone: Zone, name: &Labels, wildcard: Option<usize>) -> Wire {
    match wildcard {
        Some(labels) => Wire::of(&[WILDCARD, name.between(labels, zone.depth())]),
        None => Wire::of(&[name.between(name.count(), zone.depth())]),
    }
}

fn is_in(world: &World, zone: Zone, name: &Labels) -> bool {
    name.count() >= zone.depth() && *name.suffix(zone.depth()) == *world.name(zone)
}

/// The SOA record says how long it is kept that something does not exist (RFC 2308 §3).
fn add_denial(world: &World, zone: Zone, name: &Labels, claim: Claim, reply: &mut Reply) {
    let apex = world.name(zone);
    world.add(zone, b"", Rtype::SOA, &[&apex], &mut reply.authority);
    reply.proof = Some(Proof { name: name.clone(), claim, child: None });
    reply.authority.limit_ttl(world.spec.ttls.negative_s);
}

fn refer(world: &World, zone: Zone, child: Zone, owner: &[u8], reply: &mut Reply) {
    world.add_delegation(zone, child, &[owner], &mut reply.authority);
    reply.proof = Labels::read(owner).map(|name| Proof { name, claim: Claim::NoData, child: Some(child) });
    if !world.lacks_glue(child) {
        add_servers(world, zone, child, reply);
    }
}

/// Adds the addresses of the servers of `of` that `zone` has, as data or as glue.
fn add_servers(world: &World, zone: Zone, of: Zone, reply: &mut Reply) {
    let (own, parent) = (world.name(of), world.name(zone));
    let ttl_s = world.delegation_ttl_s(zone);
    let Reply { additional, glue, .. } = reply;
    // Glue without which the zone cannot be reached comes first.
    for is_inside in [true, false] {
        world.name_servers(of, &mut |name, server| {
            if name.ends_with(&parent) && name.ends_with(&own) == is_inside {
                world.add_addresses(name, server, ttl_s, additional);
            }
        });
        if is_inside && of != zone {
            *glue = additional.len();
        }
    }
}
