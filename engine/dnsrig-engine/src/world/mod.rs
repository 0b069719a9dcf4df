//! A simulated Internet as a function of its specification: which zones there are, who serves them, what is in them.
//!
//! This is the model. `generate world` writes its specification, and `serve world` answers queries from it. Nothing
//! here has I/O but reading the specification and its table of names ([`spec`]).
//!
//! - The names of zones are all that is kept of them: [`tlds`], [`second_level_names`], and [`listed`] with the names
//!   of a table. [`servers`] has the name servers and their addresses.
//! - The content of a zone is computed from the hash of its name, in [`upper_zones`] and [`second_level`]. Each kind of
//!   zone has three functions: the names in it, what is at a name, and an RRset.
//! - [`signing`] says which zones are signed and how, and signs. [`chain`] has the names of a signed zone in order.
//! - [`faults`] has what may be wrong with a zone, [`faulty_names`] which zones have it, [`faulty_zones`] its effects.
//! - [`names`] has names in wire format, [`records`] RRsets and sets of types.

pub mod chain;
pub mod faults;
mod faulty_names;
mod faulty_zones;
mod listed;
pub mod names;
pub mod records;
mod second_level;
mod second_level_names;
pub mod servers;
pub mod signing;
pub mod spec;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod tlds;
mod upper_zones;

use std::{net::IpAddr, path::Path, sync::OnceLock};

use dnsrig_core::{
    draw::{cubed, is_share},
    failure::Failure,
    hash::fnv1a,
    random::Random,
};
use dnsrig_dns::{dnssec::pool::Pool, name::whole};
use domain::base::Rtype;

use crate::dataset::name_table::{NameTable, ttl_of_s};
use chain::Chain;
use faults::Fault;
use faulty_names::Faults;
use listed::Listed;
use names::Labels;
use names::Wire;
use records::Records;
use records::Types;
use second_level_names::Seconds;
use servers::{AddressPlan, FAULTY_HOSTERS, Prefixes, Server};
use spec::Spec;
use tlds::Tlds;

/// Streams of random numbers.
const PURPOSE_HOSTER: u64 = 50;
const PURPOSE_HOSTER_SERVERS: u64 = 51;

/// There is at most one hoster for this many zones.
const ZONES_A_HOSTER: u32 = 4;

/// Timers of every SOA: refresh, retry, expire. Nobody transfers these zones.
const SOA_TIMERS_S: [u32; 3] = [7200, 3600, 1_209_600];
const SERIAL: u32 = 1;

/// A world.
pub struct World {
    pub spec: Spec,
    pub prefixes: Prefixes,
    pub places: AddressPlan,
    tlds: Tlds,
    seconds: Seconds,
    faults: Faults,
    /// Drawn when the first of them is used.
    pool: OnceLock<Pool>,
    /// The chains of the root and of every TLD, each made when it is first used.
    chains: Box<[OnceLock<Chain>]>,
    listed: Listed,
}

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    Root,
    Tld(u32),
    Second(u32),
}

impl Zone {
    /// How many labels its name has.
    pub fn depth(self) -> usize {
        match self {
            Zone::Root => 0,
            Zone::Tld(_) => 1,
            Zone::Second(_) => 2,
        }
    }
}

/// What is at a name of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Records of these types; none at an empty non-terminal.
    Types(Types),
    /// A zone of its own begins here.
    Cut(Zone),
    Missing,
}

impl World {
    /// The world of a specification, with its servers in these networks; errors are sentences.
    #[cfg(test)]
    pub fn new(spec: Spec, prefixes: Prefixes) -> Result<Self, String> {
        World::with_names(spec, prefixes, None)
    }

    /// Reads a specification and the table of names that it refers to, and makes its world.
    pub fn read(specification: &Path, prefixes: Prefixes) -> Result<Self, Failure> {
        let spec = Spec::read(specification)?;
        let table = spec::read_names(&spec, specification)?;
        World::with_names(spec, prefixes, table.as_ref()).map_err(|reason| Spec::wrong(specification, reason))
    }

    /// Makes a world with the names of a table in it.
    pub fn with_names(spec: Spec, prefixes: Prefixes, table: Option<&NameTable>) -> Result<Self, String> {
        let zones = table.map(listed::zones).unwrap_or_default();
        let tlds = Tlds::new(&spec, zones.iter().map(|(tld, _)| *tld));
        let seconds = Seconds::new(&spec, &tlds, &zones);
        let listed = table.map_or_else(|| Ok(Listed::default()), |table| Listed::new(table, &tlds, &seconds))?;
        let hosters = spec.hosting.hosters.min(seconds.forward() / ZONES_A_HOSTER).max(1);
        let faults = Faults::new(&spec, &tlds, &seconds)?;
        let faulty_hosters = if faults.may_be(Fault::is_of_time) { FAULTY_HOSTERS } else { 0 };
        let places = AddressPlan { operators: spec.tlds.operators, hosters, faulty_hosters };
        let chains = (0..=tlds.count()).map(|_| OnceLock::new()).collect();
        let world = World { spec, prefixes, places, tlds, seconds, faults, pool: OnceLock::new(), chains, listed };
        if let Some(name) = world.faults.named().find(|name| world.is_hosters(name)) {
            return Err(format!(
                "faults.by_name: {}: other zones' servers have their names there: choose another",
                whole(name)
            ));
        }
        if let Some(name) = world.faults.named().find(|name| world.has_no_effect(name)) {
            return Err(format!("faults.by_name: {}: its TLD is not signed: choose another", whole(name)));
        }
        if !prefixes.hold(places.count()) {
            return Err(format!("{} addresses of servers have no room in the networks", places.count()));
        }
        Ok(world)
    }

    pub fn zones(&self) -> impl Iterator<Item = Zone> {
        let seconds = (0..self.seconds.count()).map(Zone::Second);
        std::iter::once(Zone::Root).chain((0..self.tlds.count()).map(Zone::Tld)).chain(seconds)
    }

    /// The deepest zone that holds a name.
    pub fn deepest(&self, name: &Labels) -> Zone {
        let tld = name.from_end(0).and_then(|label| self.tlds.find(label));
        let second = tld.zip(name.from_end(1)).and_then(|(tld, label)| self.seconds.find(tld, label));
        second.map(Zone::Second).or(tld.map(Zone::Tld)).unwrap_or(Zone::Root)
    }

    /// The zone above.
    pub fn parent(&self, zone: Zone) -> Option<Zone> {
        match zone {
            Zone::Root => None,
            Zone::Tld(_) => Some(Zone::Root),
            Zone::Second(number) => Some(Zone::Tld(self.seconds.tld(number))),
        }
    }

    pub fn name(&self, zone: Zone) -> Wire {
        let length = |label: &[u8]| [label.len() as u8];
        match zone {
            Zone::Root => Wire::of(&[b"\0"]),
            Zone::Tld(number) => {
                let label = self.tlds.get(number).label.as_slice();
                Wire::of(&[&length(label), label, b"\0"])
            }
            Zone::Second(number) => {
                let label = self.seconds.label(number);
                let tld = self.tlds.get(self.seconds.tld(number)).label.as_slice();
                Wire::of(&[&length(label), label, &length(tld), tld, b"\0"])
            }
        }
    }

    /// What is at a name of a zone: `relative` is what of it stands before the zone's name, in lower case.
    pub fn node(&self, zone: Zone, relative: &[u8]) -> Node {
        let node = match zone {
            Zone::Root => self.root_node(relative),
            Zone::Tld(number) => self.tld_node(number, relative),
            Zone::Second(number) if number >= self.seconds.forward() => self.reverse_node(number, relative),
            Zone::Second(number) => self.second_node(number, relative),
        };
        self.with_signing(zone, relative, node)
    }

    /// Calls `each` with every name of a zone but empty non-terminals.
    pub fn names(&self, zone: Zone, each: &mut dyn FnMut(&[u8], Node)) {
        let each = &mut |relative: &[u8], node| each(relative, self.with_signing(zone, relative, node));
        match zone {
            Zone::Root => self.root_names(each),
            Zone::Tld(number) => self.tld_names(number, each),
            Zone::Second(number) if number >= self.seconds.forward() => self.reverse_names(number, each),
            Zone::Second(number) => self.second_names(number, each),
        }
    }

    /// Appends an RRset that is at a name of a zone; its owner is put together.
    pub fn add(&self, zone: Zone, relative: &[u8], rtype: Rtype, owner: &[&[u8]], to: &mut Records) {
        match rtype {
            Rtype::SOA => {
                to.begin(owner, rtype, self.apex_ttl_s(zone));
                let name = self.name(zone);
                let mut primary = None;
                self.name_servers(zone, &mut |server, _| {
                    primary.get_or_insert(Wire::of(&[server]));
                });
                let [refresh, retry, expire] = SOA_TIMERS_S.map(u32::to_be_bytes);
                let (serial, minimum) = (SERIAL.to_be_bytes(), self.spec.ttls.negative_s.to_be_bytes());
                let primary = primary.unwrap_or(name);
                to.push(&[&primary, b"\x0ahostmaster", &name, &serial, &refresh, &retry, &expire, &minimum]);
            }
            Rtype::NS => {
                to.begin(owner, rtype, self.apex_ttl_s(zone));
                self.name_servers(zone, &mut |server, _| to.push(&[server]));
            }
            Rtype::DNSKEY | Rtype::NSEC3PARAM => self.add_signing(zone, rtype, owner, to),
            Rtype::A | Rtype::AAAA if self.server_at(zone, relative).is_some() => {
                let server = self.server_at(zone, relative).expect("as was just seen");
                to.begin(owner, rtype, self.address_ttl_s(zone));
                self.push_address(server, rtype, to);
            }
            _ => match zone {
                Zone::Second(number) if number >= self.seconds.forward() => self.reverse_add(rtype, owner, to),
                Zone::Second(number) => self.second_add(number, relative, rtype, owner, to),
                // These have nothing but servers and delegations.
                Zone::Root | Zone::Tld(_) => {}
            },
        }
    }

    /// Appends the NS records with which `parent` delegates `zone`.
    pub fn add_delegation(&self, parent: Zone, zone: Zone, owner: &[&[u8]], to: &mut Records) {
        to.begin(owner, Rtype::NS, self.delegation_ttl_s(parent));
        self.name_servers(zone, &mut |server, _| to.push(&[server]));
    }

    /// Whether a name of this zone, or below it, lies in a zone that this one delegates.
    pub fn is_below_cut(&self, zone: Zone, name: &[u8]) -> bool {
        Labels::read(name).is_some_and(|name| self.deepest(&name).depth() > zone.depth())
    }

    /// Appends the addresses of a server as glue, or in the answer section; `name` is the server's.
    pub fn add_addresses(&self, name: &[u8], server: Server, ttl_s: u32, to: &mut Records) {
        for rtype in [Rtype::A, Rtype::AAAA] {
            to.begin(&[name], rtype, ttl_s);
            self.push_address(server, rtype, to);
        }
    }

    fn push_address(&self, server: Server, rtype: Rtype, to: &mut Records) {
        let place = self.places.of(server);
        match if rtype == Rtype::A { self.prefixes.ipv4(place) } else { self.prefixes.ipv6(place) } {
            IpAddr::V4(address) => to.push(&[&address.octets()]),
            IpAddr::V6(address) => to.push(&[&address.octets()]),
        }
    }

    /// The TTL of the delegations in a zone, and of their glue.
    pub fn delegation_ttl_s(&self, parent: Zone) -> u32 {
        if parent == Zone::Root { self.spec.ttls.root_delegation_s } else { self.spec.ttls.delegation_s }
    }

    fn apex_ttl_s(&self, zone: Zone) -> u32 {
        match zone {
            Zone::Root => self.spec.ttls.root_delegation_s,
            Zone::Tld(_) => self.spec.ttls.delegation_s,
            Zone::Second(_) => self.spec.ttls.apex_s,
        }
    }

    /// The TTL of addresses of name servers: as long as the delegations that need them.
    fn address_ttl_s(&self, zone: Zone) -> u32 {
        if zone == Zone::Root { self.spec.ttls.root_delegation_s } else { self.spec.ttls.delegation_s }
    }

    /// The TTL of what is at a name that is no server's and no apex's SOA or NS.
    fn host_ttl_s(&self, relative: &[u8], zone: &[u8]) -> u32 {
        self.spec.ttls.hosts_s.unwrap_or_else(|| ttl_of_s(&Wire::of(&[relative, zone])))
    }

    /// Calls `each` with the name and the place of every name server of a zone.
    pub fn name_servers(&self, zone: Zone, each: &mut dyn FnMut(&[u8], Server)) {
        match zone {
            Zone::Root => self.root_servers(each),
            Zone::Tld(number) => self.tld_servers(number, each),
            Zone::Second(number) if number >= self.seconds.forward() => self.tld_servers(self.tlds.arpa, each),
            Zone::Second(number) => self.second_servers(number, each),
        }
    }

    /// The server that has its name at a name of this zone.
    fn server_at(&self, zone: Zone, relative: &[u8]) -> Option<Server> {
        match zone {
            Zone::Root => self.root_server_at(relative),
            Zone::Tld(number) => self.tld_server_at(number, relative),
            Zone::Second(number) => self.second_server_at(number, relative),
        }
    }

    /// Whether a server answers for a zone.
    pub fn serves(&self, server: Server, zone: Zone) -> bool {
        let mut is_one = false;
        self.name_servers(zone, &mut |_, other| is_one |= other == server);
        is_one
    }

    /// The zone that a server answers from when it is asked for a name: the deepest that it has. The DS of a zone is
    /// in the zone above (RFC 4035 §3.1.4.1).
    pub fn zone_at(&self, server: Server, name: &Labels, rtype: Rtype) -> Option<Zone> {
        let mut zone = Some(self.deepest(name));
        let mut of_child = None;
        while let Some(one) = zone {
            if self.serves(server, one) {
                if rtype != Rtype::DS || one.depth() < name.count() || one == Zone::Root {
                    return Some(one);
                }
                of_child = Some(one);
            }
            zone = self.parent(one);
        }
        of_child
    }

    /// The hoster whose own zone this is.
    fn own_hoster(&self, number: u32) -> Option<u32> {
        let stride = self.seconds.forward() / self.places.hosters;
        let hoster = number / stride;
        (number.is_multiple_of(stride) && hoster < self.places.hosters).then_some(hoster)
    }

    fn is_hosters(&self, name: &[u8]) -> bool {
        let zone = Labels::read(name).map(|name| self.deepest(&name));
        matches!(zone, Some(Zone::Second(number)) if self.own_hoster(number).is_some())
    }

    /// Whether the zone has a fault by its name that nobody would notice.
    fn has_no_effect(&self, name: &[u8]) -> bool {
        Labels::read(name).is_some_and(|name| self.faulty(self.deepest(&name)).is_none())
    }

    /// The zone of a hoster, in which its servers have their names.
    fn hosters_zone(&self, hoster: u32) -> u32 {
        hoster * (self.seconds.forward() / self.places.hosters)
    }

    /// Who runs the servers of a second-level zone.
    fn hoster(&self, number: u32, name: &[u8]) -> u32 {
        self.own_hoster(number).or_else(|| self.faulty_hoster(number, name)).unwrap_or_else(|| {
            cubed(&mut Random::new(self.spec.seed ^ fnv1a(name), PURPOSE_HOSTER), self.places.hosters)
        })
    }

    /// How many servers a hoster has.
    fn hosters_servers(&self, hoster: u32) -> u32 {
        let mut random = Random::new(self.spec.seed ^ u64::from(hoster), PURPOSE_HOSTER_SERVERS);
        let (three, four) = (self.spec.hosting.three_servers, self.spec.hosting.four_servers);
        if is_share(&mut random, four) {
            4
        } else if is_share(&mut random, if four < 1.0 { three / (1.0 - four) } else { 0.0 }) {
            3
        } else {
            2
        }
    }
}
