//! What is wrong with zones on purpose: each fault and its effect on the answer of a resolver, the names of the zones
//! that have it, and how it changes a zone and its servers.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{
    World, Zone,
    names::Labels,
    second_level_names::Seconds,
    servers::{FAULTY_HOSTERS, Server},
    spec,
    tlds::Tlds,
};
use crate::{
    base::{
        draw::{is_share, uniform},
        hash::fnv1a,
        random::Random,
    },
    dns::dnssec::signer::Fault as DnssecFault,
};

/// Behind the name of a fault: only the first server of the zone has it.
const FIRST: &str = ":first";

/// What is wrong with a zone. The order is part of what a specification means: shares are drawn in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Its servers do not have it: a referral upward to the root, without AA.
    Lame,
    /// REFUSED to everything.
    Refused,
    /// SERVFAIL to everything.
    Servfail,
    /// No answer at all.
    Silent,
    /// Right answers, after a time.
    Slow,
    /// Over UDP TC alone, to everything; over TCP right answers.
    Truncated,
    /// The names of its servers lie in the zone itself, and the zone above gives no addresses for them.
    Loop,
    /// Answers so large that they come over TCP only.
    Oversized,
    /// The DS record in the zone above has another digest than the key.
    WrongDs,
    /// Signatures ended before the validity of all others began.
    Expired,
    /// There are no signatures.
    MissingRrsig,
    /// NSEC and NSEC3 records match and cover nothing that is asked for.
    BrokenDenial,
    /// The key that signs the records is not among the DNSKEY records.
    MissingDnskey,
}

/// What comes of a fault for who asks a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// SERVFAIL.
    Fails,
    /// The right answer, because another server of the zone has it.
    FromAnotherServer,
    /// The right answer, after a time.
    Late,
    /// The right answer, over TCP.
    OverTcp,
    /// SERVFAIL of those that validate, the right answer of others.
    Bogus,
    /// The same, for what does not exist or comes of a wildcard; else the right answer.
    BogusDenial,
}

impl Fault {
    /// All of them, in their order.
    pub const ALL: [Fault; 13] = [
        Fault::Lame,
        Fault::Refused,
        Fault::Servfail,
        Fault::Silent,
        Fault::Slow,
        Fault::Truncated,
        Fault::Loop,
        Fault::Oversized,
        Fault::WrongDs,
        Fault::Expired,
        Fault::MissingRrsig,
        Fault::BrokenDenial,
        Fault::MissingDnskey,
    ];

    /// As specifications have it.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Lame => "lame",
            Fault::Refused => "refused",
            Fault::Servfail => "servfail",
            Fault::Silent => "silent",
            Fault::Slow => "slow",
            Fault::Truncated => "truncated",
            Fault::Loop => "loop",
            Fault::Oversized => "oversized",
            Fault::WrongDs => "wrong-ds",
            Fault::Expired => "expired",
            Fault::MissingRrsig => "missing-rrsig",
            Fault::BrokenDenial => "broken-denial",
            Fault::MissingDnskey => "missing-dnskey",
        }
    }

    /// Whether one server of a zone can have it and another not: it is not in the zones' records.
    pub fn is_of_servers(self) -> bool {
        self != Fault::Loop && self.dnssec().is_none()
    }

    /// What is wrong with the signatures of a zone that has it.
    pub fn dnssec(self) -> Option<DnssecFault> {
        match self {
            Fault::WrongDs => Some(DnssecFault::WrongDs),
            Fault::Expired => Some(DnssecFault::Expired),
            Fault::MissingRrsig => Some(DnssecFault::MissingSignature),
            Fault::BrokenDenial => Some(DnssecFault::BrokenDenial),
            Fault::MissingDnskey => Some(DnssecFault::MissingKey),
            _ => None,
        }
    }

    /// Whether a server that has it answers late or not at all.
    pub fn is_of_time(self) -> bool {
        matches!(self, Fault::Silent | Fault::Slow)
    }
}

/// The fault of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulty {
    pub fault: Fault,
    /// Only the first of its servers has it.
    pub is_of_first: bool,
}

impl Faulty {
    /// Reads what stands behind a name, such as `lame` or `lame:first`; errors are sentences.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, is_of_first) = text.strip_suffix(FIRST).map_or((text, false), |name| (name, true));
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
        let fault = fault
            .ok_or_else(|| format!("`{name}` is no fault: there are {}", Fault::ALL.map(Fault::name).join(", ")))?;
        if is_of_first && !fault.is_of_servers() {
            return Err(format!("`{name}` concerns all servers of a zone"));
        }
        Ok(Faulty { fault, is_of_first })
    }

    pub fn effect(self) -> Effect {
        match self.fault {
            _ if self.is_of_first => Effect::FromAnotherServer,
            Fault::Lame | Fault::Refused | Fault::Servfail | Fault::Silent | Fault::Loop => Effect::Fails,
            Fault::Slow => Effect::Late,
            Fault::Truncated | Fault::Oversized => Effect::OverTcp,
            Fault::WrongDs | Fault::Expired | Fault::MissingRrsig | Fault::MissingDnskey => Effect::Bogus,
            Fault::BrokenDenial => Effect::BogusDenial,
        }
    }

    /// The zone's servers have their names below itself, and no other zone has them.
    pub fn has_own_servers(self) -> bool {
        self.fault == Fault::Loop || self.fault.is_of_time()
    }
}

/// The stream of random numbers.
const PURPOSE_FAULT: u64 = 60;

/// Which zones of a world are faulty.
pub struct Faults {
    /// None: no zone is drawn.
    shares: BTreeMap<Fault, f64>,
    first_server: f64,
    /// Names in wire format.
    by_name: HashMap<Box<[u8]>, Faulty>,
    seed: u64,
}

impl Faults {
    /// Errors are sentences.
    pub fn new(spec: &spec::Spec, tlds: &Tlds, seconds: &Seconds) -> Result<Self, String> {
        let spec::Faults { shares, first_server, by_name, .. } = &spec.faults;
        let is_drawn = shares.values().any(|share| *share > 0.0);
        let shares = if is_drawn { shares.clone() } else { BTreeMap::new() };
        let mut faults = Faults { shares, first_server: *first_server, by_name: HashMap::new(), seed: spec.seed };
        for (text, faulty) in by_name {
            let wrong = |reason: &str| format!("faults.by_name: {text}: {reason}");
            let name = Labels::parse(text).map_err(|error| wrong(&error))?;
            let tld = name.from_end(0).and_then(|label| tlds.find(label));
            let zone = tld.zip(name.from_end(1)).and_then(|(tld, label)| seconds.find(tld, label));
            if name.count() != 2 || zone.is_none_or(|zone| zone >= seconds.forward()) {
                return Err(wrong("it is no second-level zone of this world"));
            }
            let faulty = Faulty::parse(faulty).map_err(|error| wrong(&error))?;
            faults.by_name.insert(name.wire().into(), faulty);
        }
        Ok(faults)
    }

    /// The zones that have a fault by their name.
    pub fn named(&self) -> impl Iterator<Item = &[u8]> {
        self.by_name.keys().map(|name| &**name)
    }

    pub fn is_empty(&self) -> bool {
        self.shares.is_empty() && self.by_name.is_empty()
    }

    /// Whether a zone may have one of these.
    pub fn may_be(&self, is_one: impl Fn(Fault) -> bool) -> bool {
        self.shares.iter().any(|(fault, share)| is_one(*fault) && *share > 0.0)
            || self.by_name.values().any(|faulty| is_one(faulty.fault))
    }

    /// What is wrong with the zone of this name, in wire format.
    pub fn of(&self, name: &[u8]) -> Option<Faulty> {
        if let Some(faulty) = self.by_name.get(name) {
            return Some(*faulty);
        }
        if self.shares.is_empty() {
            return None;
        }
        let random = &mut Random::new(self.seed ^ fnv1a(name), PURPOSE_FAULT);
        let mut left = uniform(random);
        let fault = self.shares.iter().find_map(|(fault, share)| {
            left -= share;
            (left < 0.0).then_some(*fault)
        })?;
        Some(Faulty { fault, is_of_first: fault.is_of_servers() && is_share(random, self.first_server) })
    }
}

/// Of the zone that is bogus in every world.
const BOGUS: Faulty = Faulty { fault: Fault::WrongDs, is_of_first: false };

impl World {
    /// What is wrong with a zone. Zones of hosters have no faults: those of others would depend on them.
    pub fn faulty(&self, zone: Zone) -> Option<Faulty> {
        match zone {
            Zone::Second(number) if number == self.seconds.bogus() => Some(BOGUS),
            Zone::Second(number) if !self.faults.is_empty() => self.second_faulty(number, &self.name(zone)),
            _ => None,
        }
    }

    /// What is wrong with a zone as this server of it has it.
    pub fn fault_at(&self, zone: Zone, server: Server) -> Option<Fault> {
        let Faulty { fault, is_of_first } = self.faulty(zone)?;
        let is_first = matches!(server, Server::Hoster { number: 0, .. });
        (!is_of_first || is_first).then_some(fault)
    }

    /// Whether any answer waits.
    pub fn is_slow(&self) -> bool {
        self.spec.faults.slow_ms > 0 && self.faults.may_be(|fault| fault == Fault::Slow)
    }

    /// Whether the zone above leaves out the addresses of a zone's servers.
    pub fn lacks_glue(&self, zone: Zone) -> bool {
        self.faulty(zone).is_some_and(|faulty| faulty.fault == Fault::Loop)
    }

    pub(super) fn second_faulty(&self, number: u32, name: &[u8]) -> Option<Faulty> {
        if self.faults.is_empty() || number >= self.seconds.forward() || self.own_hoster(number).is_some() {
            return None;
        }
        // Where the TLD is not signed, nobody would notice what is wrong with signatures.
        let is_noticed = |faulty: &Faulty| faulty.fault.dnssec().is_none() || self.is_below_signed(number);
        self.faults.of(name).filter(is_noticed)
    }

    /// What is wrong with the signatures of a zone, which is signed then.
    pub(super) fn dnssec_fault(&self, zone: Zone) -> Option<DnssecFault> {
        self.faulty(zone).and_then(|faulty| faulty.fault.dnssec())
    }

    /// Whether the servers of a zone must be its own.
    pub(super) fn needs_own_servers(&self, number: u32, name: &[u8]) -> bool {
        self.second_faulty(number, name).is_some_and(Faulty::has_own_servers)
    }

    /// The hoster of a zone whose servers are silent or slow.
    pub(super) fn faulty_hoster(&self, number: u32, name: &[u8]) -> Option<u32> {
        let Faulty { fault, is_of_first } = self.second_faulty(number, name)?;
        // Each kind has its own, so that what is slow is never silent, too.
        let kind = 2 * u32::from(fault == Fault::Silent) + u32::from(is_of_first);
        let one = (fnv1a(name) % u64::from(FAULTY_HOSTERS / 4)) as u32;
        fault.is_of_time().then(|| self.places.hosters + 4 * one + kind)
    }
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
