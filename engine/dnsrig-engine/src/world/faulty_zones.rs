//! The faults of the zones of a world, and the servers that have them.

use dnsrig_core::hash::fnv1a;
use dnsrig_dns::dnssec::signer::Fault as DnssecFault;

use super::{
    World, Zone,
    faults::{Fault, Faulty},
    servers::{FAULTY_HOSTERS, Server},
};

/// The fault of the zone that is bogus in every world.
const BOGUS: Faulty = Faulty { fault: Fault::WrongDs, is_of_first: false };

impl World {
    /// The fault of a zone. Zones of hosters have no faults, because other zones depend on them.
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
#[path = "faulty_zones_tests.rs"]
mod tests;
