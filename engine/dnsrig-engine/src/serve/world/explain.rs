//! What a name of the world is, and what becomes of a question for it.

use dnsrig_dns::{dnssec::signer::SignedZone, name::whole};
use domain::base::{Rtype, iana::Rcode};
use serde::Serialize;

use super::{
    files::{NameServer, servers},
    reply::Reply,
    search,
};
use crate::world::{
    World, Zone,
    faults::{Effect, Fault},
    names::Labels,
};

/// The most aliases that are followed from zone to zone.
const HOPS_MAX: usize = 16;

/// The explanation of one name.
#[derive(Serialize)]
pub struct Explained {
    name: String,
    /// The zones from the root to the one that holds the name.
    levels: Vec<Level>,
    /// The types of its records; at a wildcard those that it gives.
    types: Vec<String>,
    /// Where aliases lead, one after the other.
    aliases: Vec<String>,
    /// What a resolver answers when it is asked for the address (A).
    rcode: String,
    addresses: usize,
    /// What is wrong on the way.
    fault: Option<ExplainedFault>,
    /// What one that validates finds of that answer (RFC 4033 §5), and why.
    security: Security,
    reason: String,
}

#[derive(Serialize)]
struct ExplainedFault {
    zone: String,
    fault: Fault,
    servers: &'static str,
    /// What a resolver makes of it.
    effect: Effect,
}

/// In this order, an answer from several zones is as the first of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Security {
    Bogus,
    /// There is no answer, so that nothing is found.
    Indeterminate,
    Insecure,
    Secure,
}

#[derive(Serialize)]
struct Level {
    zone: String,
    servers: Vec<NameServer>,
    /// None: it is not signed.
    signing: Option<Signed>,
}

#[derive(Serialize)]
struct Signed {
    algorithm: u8,
    /// With what it proves that something does not exist.
    denial: &'static str,
    opt_out: bool,
    /// The tags of its keys: one, or that which signs the keys and that which signs all else.
    key_tags: Vec<u16>,
}

pub fn explain(world: &World, name: &Labels) -> Explained {
    let mut reply = Reply::default();
    let home = world.deepest(name);
    search::answer_from(world, home, name, Rtype::ANY, &mut reply);
    let types = reply.answer.iter().map(|set| set.rtype.to_string()).collect();
    let mut aliases = Vec::new();
    let mut at = name.clone();
    let mut fault = None;
    let mut securities = Vec::new();
    for _ in 0..HOPS_MAX {
        reply.clear();
        let zone = world.deepest(&at);
        fault = fault.or_else(|| explain_fault(world, zone));
        if fault.as_ref().is_some_and(|found| found.effect == Effect::Fails) {
            reply.rcode = Rcode::SERVFAIL;
            securities.push((Security::Indeterminate, "there is no answer".into()));
            break;
        }
        search::answer_from(world, zone, &at, Rtype::A, &mut reply);
        securities.push(security(world, zone, reply.proof.is_some()));
        let targets = reply.answer.iter().filter(|set| set.rtype == Rtype::CNAME);
        let targets: Vec<_> = targets.filter_map(|set| Labels::read(set.data().next()?)).collect();
        aliases.extend(targets.iter().map(|target| whole(target.wire()).to_string()));
        let has_address = reply.answer.iter().any(|set| set.rtype == Rtype::A);
        match targets.into_iter().last() {
            Some(target) if !has_address && reply.rcode == Rcode::NOERROR => at = target,
            _ => break,
        }
    }
    let addresses = reply.answer.iter().filter(|set| set.rtype == Rtype::A).map(|set| set.data().count()).sum();
    let rcode = reply.rcode.to_string();
    let found = securities.into_iter().min_by_key(|(security, _)| *security);
    let (security, reason) = found.expect("the first zone is asked");
    Explained {
        name: whole(name.wire()).to_string(),
        levels: levels(world, home),
        types,
        aliases,
        rcode,
        addresses,
        fault,
        security,
        reason,
    }
}

fn explain_fault(world: &World, zone: Zone) -> Option<ExplainedFault> {
    let faulty = world.faulty(zone)?;
    let servers = if faulty.is_of_first { "first" } else { "all" };
    Some(ExplainedFault {
        zone: whole(&world.name(zone)).to_string(),
        fault: faulty.fault,
        servers,
        effect: faulty.effect(),
    })
}

fn levels(world: &World, home: Zone) -> Vec<Level> {
    let mut zones: Vec<Zone> = std::iter::successors(Some(home), |zone| world.parent(*zone)).collect();
    zones.reverse();
    let level = |zone| Level {
        zone: whole(&world.name(zone)).to_string(),
        servers: servers(world, zone),
        signing: signed(world, zone),
    };
    zones.into_iter().map(level).collect()
}

fn signed(world: &World, zone: Zone) -> Option<Signed> {
    let (name, signing) = (world.name(zone), world.signing(zone)?);
    let SignedZone { key_signing, zone_signing, .. } = world.signed(zone, &name)?;
    let mut key_tags = vec![key_signing.tag(), zone_signing.tag()];
    key_tags.dedup();
    Some(Signed {
        algorithm: signing.algorithm.number(),
        denial: if signing.params.is_some() { "NSEC3" } else { "NSEC" },
        opt_out: signing.params.is_some_and(|params| params.opt_out),
        key_tags,
    })
}

/// A zone is signed only where those above it are. `needs_proof`: of what does not exist, or of a wildcard.
fn security(world: &World, zone: Zone, needs_proof: bool) -> (Security, String) {
    let fault = world.faulty(zone).filter(|faulty| match faulty.effect() {
        Effect::Bogus => true,
        Effect::BogusDenial => needs_proof,
        _ => false,
    });
    if let Some(faulty) = fault {
        return (Security::Bogus, format!("{} has the fault {}", whole(&world.name(zone)), faulty.fault.name()));
    }
    let unsigned = std::iter::successors(Some(zone), |zone| world.parent(*zone))
        .filter(|zone| world.signing(*zone).is_none())
        .last();
    match unsigned {
        Some(zone) => (Security::Insecure, format!("{} is not signed", whole(&world.name(zone)))),
        None => (Security::Secure, "all zones from the root to it are signed".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dnsrig_dns::testing::name;

    use super::*;
    use crate::world::testing::world;

    /// How many aliases there are on the way from the `www` of each zone to its addresses.
    fn aliases(elsewhere: f64) -> BTreeSet<usize> {
        let zones = "zones.count = 300\ntlds.count = 20\nzones.www_cname = 1.0\nzones.wildcard = 0.0";
        let world = world(&format!("{zones}\nzones.elsewhere = {elsewhere:.1}"));
        let is_forward = |zone: &Zone| zone.depth() == 2 && !world.name(*zone).ends_with(b"\x04arpa\0");
        let found = world.zones().filter(is_forward).map(|zone| {
            let of_www = [b"\x03www", &world.name(zone)[..]].concat();
            let explained = explain(&world, &Labels::read(&of_www).unwrap());
            assert_eq!((explained.rcode.as_str(), explained.addresses > 0), ("NOERROR", true), "{}", explained.name);
            assert_eq!((&*explained.types, explained.levels.len()), (&["CNAME".to_owned()][..], 3));
            explained.aliases.len()
        });
        found.collect()
    }

    #[test]
    fn aliases_are_followed_into_other_zones() {
        assert_eq!(aliases(0.0), [1].into(), "the name of the zone itself");
        assert_eq!(aliases(1.0), [1, 2].into(), "a host of a hoster, perhaps by way of another");
    }

    #[test]
    fn a_name_is_explained_by_the_zones_above_it() {
        let world = world("zones.count = 300\ntlds.count = 20");
        let explained = explain(&world, &Labels::read(&name("No-Such.Nic.COM")).unwrap());
        let zones: Vec<_> = explained.levels.iter().map(|level| level.zone.as_str()).collect();
        assert_eq!((explained.name.as_str(), &zones[1..]), ("no-such.nic.com", &["com", "nic.com"][..]));
        assert!(explained.levels.iter().all(|level| level.servers.len() >= 2));
        assert_eq!((explained.rcode.as_str(), explained.addresses, explained.aliases.len()), ("NXDOMAIN", 0, 0));
    }
}
