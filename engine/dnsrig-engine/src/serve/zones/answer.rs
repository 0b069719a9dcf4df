//! Decides what a query is answered with. No I/O.

use std::net::IpAddr;

use dnsrig_dns::{
    framing::PREFIX_BYTES,
    header::{HEADER_BYTES, Header, OPCODE, RD},
    record::Record,
    serial::is_newer,
    tsig::{
        serve::{self as tsig, Refusal},
        sign::Chain,
    },
    writer::MessageWriter,
};
use domain::base::{
    Rtype,
    iana::{Class, Opcode},
};

use super::{
    content::Content,
    counts::Counts,
    faults::Fault,
    primary::{Now, Primary},
    query::{self, Message, Query},
    shape::Zone,
    transfer::{Progress, RESPONSE, Transfer},
};

/// Response codes (RFC 1035 §4.1.1, RFC 2136 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Rcode {
    NoError = 0,
    FormErr = 1,
    ServFail = 2,
    NotImp = 4,
    Refused = 5,
    NotAuth = 9,
}

/// The longest answer without records, in bytes: header, question, TSIG with names and MAC of any length.
const BARE_BYTES_MAX: usize = PREFIX_BYTES + HEADER_BYTES + 259 + 255 + 10 + 255 + 8 + 64 + 16;

/// How a query came, and from which peer, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A datagram, in which a transfer finds no room.
    Datagram { peer: Option<IpAddr> },
    /// A connection on which so many transfers were asked for before.
    Connection { peer: Option<IpAddr>, begun: u32 },
}

impl Via {
    fn peer(self) -> Option<IpAddr> {
        match self {
            Via::Datagram { peer } | Via::Connection { peer, .. } => peer,
        }
    }
}

/// An answer that is to be given.
#[derive(Debug)]
pub enum Answer {
    /// One or many messages, computed as they are sent.
    Transfer(Transfer),
    /// One message, its length before it.
    Ready(Box<[u8]>),
}

impl Answer {
    /// Writes the next message, its length before it.
    pub fn message(&mut self, primary: &Primary, to: &mut MessageWriter<'_>, now_s: u64) -> Progress {
        match self {
            Answer::Transfer(transfer) => transfer.message(primary, to, now_s),
            Answer::Ready(message) => {
                to.put(message);
                Progress::Done
            }
        }
    }

    /// Whether it asked for a zone, not only for its SOA, and gets it.
    pub fn is_transfer(&self) -> bool {
        matches!(self, Answer::Transfer(transfer) if transfer.is_asked_for())
    }
}

/// Decides about a message; none if it is not to be answered.
pub fn decide(message: &[u8], via: Via, primary: &Primary, now: Now, counts: &mut Counts) -> Option<Answer> {
    let query = match query::read(message) {
        Message::Query(query) => query,
        Message::Malformed => {
            counts.queries += 1;
            counts.outcomes.formerr += 1;
            return Some(malformed(message));
        }
        Message::Ignored => {
            counts.ignored += 1;
            return None;
        }
    };
    counts.queries += 1;
    let mut asked = Asked { query, via, primary, now, counts };
    Some(match asked.authenticate() {
        Ok(chain) => asked.answer(chain),
        Err(answer) => answer,
    })
}

/// A query and all that an answer depends on.
struct Asked<'a> {
    query: Query<'a>,
    via: Via,
    primary: &'a Primary,
    now: Now,
    counts: &'a mut Counts,
}

impl Asked<'_> {
    /// Checks the signature, or that there is none where none is needed: only transfers need one, as with most
    /// primaries.
    fn authenticate(&mut self) -> Result<Option<Box<Chain>>, Answer> {
        match (&self.primary.key, self.query.tsig) {
            (None, None) => Ok(None),
            (Some(_), None) if matches!(self.query.kind, Rtype::AXFR | Rtype::IXFR) => {
                Err(self.bare(Rcode::Refused, None))
            }
            (Some(_), None) => Ok(None),
            (None, Some(record)) => Err(self.denied(&record, Refusal::Unsigned(tsig::Error::BadKey))),
            (Some(key), Some(record)) => {
                let verified = tsig::verify(key, &record, self.now.wall_s);
                verified.map(Some).map_err(|refusal| self.denied(&record, refusal))
            }
        }
    }

    fn answer(&mut self, chain: Option<Box<Chain>>) -> Answer {
        match self.query.opcode {
            Opcode::QUERY => {}
            // A secondary may pass it on to its primary (RFC 1996).
            Opcode::NOTIFY => return self.bare(Rcode::NoError, chain),
            _ => return self.bare(Rcode::NotImp, chain),
        }
        if self.query.class != Class::IN {
            return self.bare(Rcode::Refused, chain);
        }
        let zone = self.primary.shape.find(self.query.name);
        match (self.query.kind, zone) {
            (Rtype::SOA, Some(zone)) => self.soa(zone, chain),
            (Rtype::AXFR | Rtype::IXFR, Some(zone)) => self.transfer(zone, chain),
            (Rtype::AXFR | Rtype::IXFR, None) => self.bare(Rcode::NotAuth, chain),
            _ => self.bare(Rcode::Refused, chain),
        }
    }

    fn soa(&mut self, zone: Zone, chain: Option<Box<Chain>>) -> Answer {
        self.counts.soa += 1;
        if let Some(secondary) = self.follower(zone).and_then(|peer| self.counts.secondaries.of(peer)) {
            secondary.soa += 1;
        }
        let version = self.version(zone);
        Answer::Transfer(Transfer::new(self.primary, &self.query, (zone, Content::Soa, version), chain, None))
    }

    fn transfer(&mut self, zone: Zone, chain: Option<Box<Chain>>) -> Answer {
        let version = self.version(zone);
        let is_datagram = matches!(self.via, Via::Datagram { .. });
        let content = match (self.query.kind, self.query.serial) {
            // RFC 5936 §4.2: not over UDP.
            (Rtype::AXFR, _) if is_datagram => return self.bare(Rcode::FormErr, chain),
            (Rtype::AXFR, _) => Content::Whole,
            // RFC 1995 §2: what finds no room is answered with the SOA; the secondary comes again over TCP.
            (_, Some(_)) if is_datagram => Content::Soa,
            (_, Some(serial)) => self.since(zone, serial, version),
            (_, None) => return self.bare(Rcode::FormErr, chain),
        };
        if let Some(rcode) = self.faulty() {
            return self.bare(rcode, chain);
        }
        let place = match self.primary.concurrent.as_ref().map(|concurrent| concurrent.enter()) {
            Some(None) => return self.bare(Rcode::ServFail, chain),
            Some(place) => place,
            None => None,
        };
        self.counts.transfers.count(self.query.kind, content);
        let follower = self.follower(zone);
        if let Some(secondary) = follower.and_then(|peer| self.counts.secondaries.of(peer)) {
            secondary.asked.count(self.query.kind, content);
        }
        let transfer = Transfer::new(self.primary, &self.query, (zone, content, version), chain, place);
        Answer::Transfer(transfer.for_follower(follower))
    }

    /// The peer, if the zone has begun to change.
    fn follower(&self, zone: Zone) -> Option<IpAddr> {
        let has_begun = self.primary.shape.is_changing(zone) && self.primary.period.begin_ns().is_some();
        self.via.peer().filter(|_| has_begun)
    }

    /// What a secondary that has `serial` gets.
    fn since(&self, zone: Zone, serial: u32, version: u64) -> Content {
        let shape = &self.primary.shape;
        let number = if let Zone::Member(number) = zone { number } else { 0 };
        if self.primary.faults.hit(number) && self.primary.faults.has(Fault::SerialBackwards) {
            return Content::Backwards { from: u64::from(serial.wrapping_sub(shape.serial)) };
        }
        let behind = shape.serial(version).wrapping_sub(serial);
        match u64::from(behind) {
            0 => Content::Soa,
            _ if is_newer(serial, shape.serial(version)) => Content::Soa,
            behind if behind <= version.min(shape.changes.kept) => Content::Changes { from: version - behind },
            _ => Content::Whole,
        }
    }

    fn version(&self, zone: Zone) -> u64 {
        self.primary.version(zone, self.now.monotonic_ns)
    }

    /// The response code that a fault gives a transfer.
    fn faulty(&self) -> Option<Rcode> {
        let Via::Connection { begun, .. } = self.via else { return None };
        self.primary.faults.find(|fault| match fault {
            Fault::ServfailAfter(count) if begun >= count => Some(Rcode::ServFail),
            Fault::RefusedAfter(count) if begun >= count => Some(Rcode::Refused),
            _ => None,
        })
    }

    /// An answer without records.
    fn bare(&mut self, rcode: Rcode, chain: Option<Box<Chain>>) -> Answer {
        let now_s = self.now.wall_s;
        let key = self.primary.key.as_ref();
        self.ready(rcode, |buffer, length| match (chain, key) {
            (Some(mut chain), Some(key)) => chain.sign(key, buffer, length, now_s),
            _ => length,
        })
    }

    /// The answer to a signature that is not accepted (RFC 8945 §5.2).
    fn denied(&mut self, record: &Record<'_>, refusal: Refusal) -> Answer {
        let now_s = self.now.wall_s;
        let key = self.primary.key.as_ref();
        match (refusal, key) {
            (Refusal::Malformed, _) => self.ready(Rcode::FormErr, |_, length| length),
            (Refusal::Unsigned(error), _) => {
                self.ready(Rcode::NotAuth, |buffer, length| tsig::deny(record, error, buffer, length, now_s))
            }
            (Refusal::Late(mut chain), key) => self.ready(Rcode::NotAuth, |buffer, length| {
                key.map_or(length, |key| tsig::sign_late(&mut chain, key, buffer, length, now_s))
            }),
        }
    }

    /// Header, question, and what `sign` appends to such a message, whose new length it gives.
    fn ready(&mut self, rcode: Rcode, sign: impl FnOnce(&mut [u8], usize) -> usize) -> Answer {
        let outcomes = &mut self.counts.outcomes;
        *match rcode {
            Rcode::NoError => &mut outcomes.done,
            Rcode::FormErr => &mut outcomes.formerr,
            Rcode::ServFail => &mut outcomes.servfail,
            Rcode::NotImp => &mut outcomes.notimp,
            Rcode::Refused => &mut outcomes.refused,
            Rcode::NotAuth => &mut outcomes.notauth,
        } += 1;
        let mut bytes = [0; BARE_BYTES_MAX];
        let mut to = MessageWriter::new(&mut bytes, 0);
        let Query { id, opcode, rd, question, .. } = self.query;
        let flags = RESPONSE | opcode.to_int() << 3 | u8::from(rd);
        to.put_u16(0);
        to.put(&Header { id, flags, rcode: rcode as u8, questions: 1, ..Header::default() }.to_bytes());
        to.put(question);
        to.extend(PREFIX_BYTES, sign);
        to.set_u16(0, (to.at() - PREFIX_BYTES) as u16);
        Answer::Ready(to.written().into())
    }
}

/// FORMERR to what has a header and nothing else that we understand.
fn malformed(message: &[u8]) -> Answer {
    let flags = RESPONSE | message[2] & (OPCODE | RD);
    let header = [0, HEADER_BYTES as u8, message[0], message[1], flags, Rcode::FormErr as u8];
    Answer::Ready([&header[..], &[0; 8]].concat().into())
}

#[cfg(test)]
#[path = "tsig_tests.rs"]
mod tests;
