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
    reply::Reply,
    search, secure,
};
use crate::world::{World, fault::Fault, signatures::Signatures};

/// How a message came.
#[derive(Clone, Copy, Debug)]
pub struct Via {
    /// The address that it was sent to.
    pub destination: Option<IpAddr>,
    pub is_stream: bool,
    /// It has waited for as long as its server is slow.
    pub has_waited: bool,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has an answer of so many bytes.
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
            secure::add(world, reply, signatures);
        }
    }
    let fault = reply.zone.and_then(|zone| world.fault_at(zone, server));
    let outcome = fault.map_or(Outcome::Sent, |fault| faults::apply(world, fault, via.is_stream, reply));
    match outcome {
        Outcome::Later(delay_ns) if !via.has_waited => return Turn::Later(delay_ns),
        Outcome::Silent => {
            counts.count(kind(&query, reply, via, fault, 0), 0, &query.name);
            return Turn::Never;
        }
        Outcome::Sent | Outcome::Later(_) => {}
    }
    let rcode = if is_unknown_version { message::BADVERS } else { reply.rcode.to_int().into() };
    let length = message::write(&query, reply, rcode, message::room(&query, via.is_stream), space);
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
        is_stream: via.is_stream,
        is_ipv6: via.destination.is_some_and(|address| address.is_ipv6()),
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod fuzz_tests;
