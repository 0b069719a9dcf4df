//! The names of the zones that have a fault: names that the specification lists, and names that are drawn.

use std::collections::{BTreeMap, HashMap};

use dnsrig_core::{
    draw::{is_share, uniform},
    hash::fnv1a,
    random::Random,
};

use super::{
    faults::{Fault, Faulty},
    names::Labels,
    second_level_names::Seconds,
    spec,
    tlds::Tlds,
};

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
