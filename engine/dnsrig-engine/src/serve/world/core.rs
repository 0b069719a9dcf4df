//! One message in, one message out: no socket and no clock.

use std::net::IpAddr;

use domain::base::{
    Rtype,
    iana::{Class, Rcode},
};

use super::{
    counts::{Counts, Kind},
    faults::{self, Outcome},
    message,
    query::{Query, Refusal},
    reply::{self, Reply},
    search,
};
use crate::world::{World, faults::Fault, signing::Signatures};

/// How a message came.
#[derive(Clone, Copy, Debug)]
pub struct Via {
    /// The address that it was sent to.
    pub destination: Option<IpAddr>,
    pub is_tcp: bool,
    /// It has waited for as long as its server is slow.
    pub has_waited: bool,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has an answer of this length.
    Now(usize),
    /// It is to be asked about again after so many nanoseconds.
    Later(i64),
    /// It gets no answer.
    Never,
}

/// What a thread answers with, and its counts.
pub struct State {
    pub reply: Reply,
    pub signatures: Signatures,
    pub counts: Counts,
}

impl State {
    pub fn new(signatures: Signatures) -> Self {
        State { reply: Reply::default(), signatures, counts: Counts::default() }
    }
}

/// Decides what becomes of a message, and writes its answer to `space`.
pub fn answer(world: &World, bytes: &[u8], via: Via, state: &mut State, space: &mut [u8]) -> Turn {
    let State { reply, signatures, counts } = state;
    let place = via.destination.and_then(|address| world.prefixes.place(address));
    let Some(server) = place.and_then(|place| world.places.server(place)) else {
        counts.elsewhere += 1;
        return Turn::Never;
    };
    let query = match Query::read(bytes) {
        Ok(query) => query,
        Err(refusal) => return refuse(refusal, bytes, counts, space),
    };
    let is_unknown_version = query.edns.is_some_and(|edns| edns.version != 0);
    if is_unknown_version || query.class != Class::IN || matches!(query.rtype, Rtype::AXFR | Rtype::IXFR | Rtype::OPT) {
        reply.clear();
    } else {
        search::answer(world, server, &query.name, query.rtype, reply);
        if query.edns.is_some_and(|edns| edns.dnssec_ok) {
            reply::add(world, reply, signatures);
        }
    }
    let fault = reply.zone.and_then(|zone| world.fault_at(zone, server));
    let outcome = fault.map_or(Outcome::Sent, |fault| faults::apply(world, fault, via.is_tcp, reply));
    match outcome {
        Outcome::Later(delay_ns) if !via.has_waited => return Turn::Later(delay_ns),
        Outcome::Silent => {
            counts.count(kind(&query, reply, via, fault, 0), 0, &query.name);
            return Turn::Never;
        }
        Outcome::Sent | Outcome::Later(_) => {}
    }
    let rcode = if is_unknown_version { message::BADVERS } else { reply.rcode.to_int().into() };
    let length = message::write(&query, reply, rcode, message::room(&query, via.is_tcp), space);
    counts.count(kind(&query, reply, via, fault, rcode), length, &query.name);
    Turn::Now(length)
}

/// Answers what is no query that can be answered.
fn refuse(refusal: Refusal, bytes: &[u8], counts: &mut Counts, space: &mut [u8]) -> Turn {
    let rcode = match refusal {
        Refusal::NoQuery => {
            counts.ignored += 1;
            return Turn::Never;
        }
        Refusal::Malformed => Rcode::FORMERR,
        Refusal::OtherOperation => Rcode::NOTIMP,
    };
    counts.malformed += 1;
    Turn::Now(message::write_error(bytes, rcode.to_int(), space))
}

fn kind(query: &Query<'_>, reply: &Reply, via: Via, fault: Option<Fault>, rcode: u16) -> Kind {
    Kind {
        level: reply.zone.map(|zone| zone.depth() as u8),
        rtype: query.rtype.to_int(),
        rcode,
        fault,
        dnssec_ok: query.edns.is_some_and(|edns| edns.dnssec_ok),
        is_tcp: via.is_tcp,
        is_ipv6: via.destination.is_some_and(|address| address.is_ipv6()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use dnsrig_dns::{dnssec::key::Nonces, name::whole, testing::name};
    use domain::{
        base::{Message as Parsed, ParsedName, Rtype as Type, ToName},
        rdata::{AllRecordData, Cname, Soa},
    };

    use super::*;
    use crate::world::{Zone, names::Labels, testing};

    fn world(text: &str) -> World {
        testing::world(&format!("zones.count = 300\ntlds.count = 15\n{text}"))
    }

    fn state() -> State {
        State::new(Signatures::new(Nonces::Random, 1 << 20))
    }

    fn query(text: &str, rtype: Rtype, edns: &[u8]) -> Vec<u8> {
        let header = [9, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(!edns.is_empty())];
        let name = if text == "." { vec![0] } else { name(text) };
        [&header[..], &name, &rtype.to_int().to_be_bytes(), &[0, 1], edns].concat()
    }

    /// Without DO.
    const EDNS: [u8; 11] = [0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0];

    /// The first server of a zone.
    fn address(world: &World, zone: Zone) -> IpAddr {
        testing::addresses(world, zone)[0]
    }

    fn ask_bytes(world: &World, bytes: &[u8], destination: IpAddr, is_tcp: bool) -> Option<Vec<u8>> {
        let mut space = vec![0; 65_535];
        let via = Via { destination: Some(destination), is_tcp, has_waited: false };
        match answer(world, bytes, via, &mut state(), &mut space) {
            Turn::Now(length) => {
                space.truncate(length);
                Some(space)
            }
            Turn::Later(_) | Turn::Never => None,
        }
    }

    fn ask(world: &World, zone: Zone, text: &str, rtype: Rtype) -> Parsed<Vec<u8>> {
        let bytes = ask_bytes(world, &query(text, rtype, &EDNS), address(world, zone), false).unwrap();
        let message = Parsed::from_octets(bytes).unwrap();
        // Every record is one of its type.
        for record in message.answer().unwrap().chain(message.authority().unwrap()).chain(message.additional().unwrap())
        {
            record.unwrap().into_any_record::<AllRecordData<_, ParsedName<_>>>().unwrap();
        }
        message
    }

    fn text(world: &World, zone: Zone) -> String {
        whole(&world.name(zone)).to_string()
    }

    #[test]
    fn the_way_from_the_root_to_a_name_is_one_of_referrals() {
        let world = world("");
        for zone in world.zones().filter(|zone| zone.depth() == 2) {
            let name = format!("WWW.{}", text(&world, zone));
            let tld = world.parent(zone).unwrap();
            for (above, below) in [(Zone::Root, tld), (tld, zone)] {
                let message = ask(&world, above, &name, Type::A);
                // The reverse zones are with the servers of arpa.
                if world.name(tld)[..] == *b"\x04arpa\0" && above == tld {
                    assert!(message.header().aa());
                    continue;
                }
                assert!(!message.header().aa() && message.no_error(), "{name}");
                assert_eq!(message.answer().unwrap().count(), 0);
                let owners: Vec<_> =
                    message.authority().unwrap().map(|record| record.unwrap().owner().to_string()).collect();
                assert!(
                    owners.len() >= 2 && owners.iter().all(|owner| *owner == text(&world, below)),
                    "{name} {owners:?}"
                );
            }
            let message = ask(&world, zone, &name, Type::A);
            assert!(message.header().aa());
            let owner = message.sole_question().unwrap().qname().to_string();
            assert!(owner == name, "the case of letters stays");
        }
    }

    #[test]
    fn every_name_is_answered_with_its_records() {
        let world = world("zones.wildcard = 0.5\nzones.empty_non_terminal = 0.5");
        for zone in world.zones() {
            world.names(zone, &mut |relative, node| {
                let crate::world::Node::Types(types) = node else { return };
                let bytes = [relative, &world.name(zone)[..]].concat();
                let name = whole(&bytes).to_string();
                for rtype in types.iter() {
                    let message = ask(&world, zone, &name, rtype);
                    assert!(message.header().aa() && message.no_error() && !message.header().tc(), "{name} {rtype}");
                    let first = message.answer().unwrap().next().unwrap().unwrap();
                    let owner = first.owner().to_vec();
                    assert_eq!((first.rtype(), owner.as_slice()), (rtype, bytes.as_slice()));
                }
                if !types.has(Type::CNAME) && !types.has(Type::SRV) {
                    let message = ask(&world, zone, &name, Type::SRV);
                    assert!(message.no_error() && message.answer().unwrap().count() == 0, "{name}");
                    let soa = message.authority().unwrap().limit_to::<Soa<_>>().next().unwrap().unwrap();
                    assert_eq!(soa.owner().to_vec().as_slice(), &world.name(zone)[..]);
                    assert_eq!(soa.ttl().as_secs(), 300);
                }
            });
        }
    }

    #[test]
    fn what_does_not_exist_is_denied_and_what_is_not_served_refused() {
        let world = world("zones.wildcard = 0.0\nzones.empty_non_terminal = 1.0");
        let zone = world.deepest(&Labels::read(&name("nic.com")).unwrap());
        let rcode = |zone, text: &str, rtype| ask(&world, zone, text, rtype).header().rcode();
        assert_eq!(rcode(zone, "no.such.nic.com", Type::A), Rcode::NXDOMAIN);
        assert_eq!(rcode(zone, "_tcp.nic.com", Type::A), Rcode::NOERROR, "an empty non-terminal");
        assert_eq!(rcode(zone, "nic.com", Type::DS), Rcode::NOERROR, "it does not have the zone above");
        assert_eq!(rcode(zone, "com", Type::A), Rcode::REFUSED);
        assert_eq!(rcode(Zone::Root, "no-such-tld", Type::A), Rcode::NXDOMAIN);
        let tld = world.parent(zone).unwrap();
        let message = ask(&world, tld, "nic.com", Type::DS);
        assert!(message.header().aa() && message.no_error() && message.answer().unwrap().count() == 0);
        let arpa = world.deepest(&Labels::read(&name("arpa")).unwrap());
        assert_eq!(rcode(arpa, "1.2.18.198.in-addr.arpa", Type::PTR), Rcode::NOERROR);
        assert_eq!(rcode(arpa, "1.2.3.10.in-addr.arpa", Type::PTR), Rcode::NXDOMAIN);
        assert_eq!(rcode(arpa, "198.in-addr.arpa", Type::PTR), Rcode::NOERROR);
    }

    #[test]
    fn a_wildcard_gives_its_records_to_any_name() {
        let world = world("zones.wildcard = 1.0");
        let zone = world.deepest(&Labels::read(&name("nic.com")).unwrap());
        for text in ["any.nic.com", "a.b.c.nic.com"] {
            let message = ask(&world, zone, text, Type::A);
            let first = message.answer().unwrap().next().unwrap().unwrap();
            assert_eq!((first.owner().to_string(), message.header().aa()), (text.to_owned(), true));
        }
        // A name that exists, or one below it, is not the wildcard's (RFC 4592 §2.2.2).
        assert_eq!(ask(&world, zone, "below.www.nic.com", Type::A).header().rcode(), Rcode::NXDOMAIN);
    }

    #[test]
    fn an_alias_within_the_zone_is_followed() {
        let world = world("zones.www_cname = 1.0\nzones.elsewhere = 0.0");
        let zone = world.deepest(&Labels::read(&name("nic.com")).unwrap());
        let message = ask(&world, zone, "www.nic.com", Type::A);
        let records = message.answer().unwrap();
        assert_eq!(records.limit_to::<Cname<_>>().count(), 1);
        assert!(message.answer().unwrap().limit_to::<domain::rdata::A>().count() >= 1);
    }

    #[test]
    fn what_has_no_room_is_truncated_over_udp_only() {
        let world = world("");
        let bytes = query(".", Type::NS, &[]);
        let ask = |bytes: &[u8], is_tcp| {
            Parsed::from_octets(ask_bytes(&world, bytes, address(&world, Zone::Root), is_tcp).unwrap()).unwrap()
        };
        let plain = ask(&bytes, false);
        assert!(plain.as_slice().len() <= 512 && !plain.header().tc(), "addresses of servers are left out");
        assert_eq!(plain.answer().unwrap().count(), 13);
        let whole = ask(&query(".", Type::NS, &EDNS), false);
        assert_eq!((whole.additional().unwrap().count(), whole.opt().is_some()), (27, true));
        let large = ask(&query(".", Type::ANY, &EDNS), true);
        assert_eq!(large.answer().unwrap().count(), 16);
        // A question that leaves too little room for the servers of a TLD.
        let long = format!("{}.com", ["a"; 110].join("."));
        let message = ask(&query(&long, Type::A, &[]), false);
        assert!(message.header().tc() && message.authority().unwrap().count() == 0);
        assert!(!ask(&query(&long, Type::A, &[]), true).header().tc());
    }

    #[test]
    fn what_is_no_query_for_a_server_is_counted_and_told_apart() {
        let world = world("");
        let root = address(&world, Zone::Root);
        let rcode = |bytes: &[u8]| ask_bytes(&world, bytes, root, false).map(|answer| answer[3] & 0x0f);
        let good = query(".", Type::SOA, &[]);
        assert_eq!(rcode(&good), Some(0));
        assert_eq!(rcode(&good[..15]), Some(1));
        let mut other = good.clone();
        other[2] = 5 << 3;
        assert_eq!(rcode(&other), Some(4));
        other[2] = 0x80;
        assert_eq!(rcode(&other), None);
        assert_eq!(rcode(&query(".", Type::AXFR, &[])), Some(5));
        let mut version = EDNS;
        version[6] = 1;
        let answer = ask_bytes(&world, &query(".", Type::SOA, &version), root, false).unwrap();
        assert_eq!((answer[3] & 0x0f, answer[answer.len() - 6]), (0, 1), "BADVERS");
        assert_eq!(ask_bytes(&world, &good, "198.18.127.255".parse().unwrap(), false), None);
    }
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod fuzz_tests;
