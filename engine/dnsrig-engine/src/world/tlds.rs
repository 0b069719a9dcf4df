//! The top-level domains: names, who runs them, and how many second-level zones each has.

use std::collections::BTreeSet;

use dnsrig_core::{
    draw::{cubed, is_share},
    hash::fnv1a,
    random::Random,
};

use super::spec::Spec;

/// The TLD of reverse zones.
const ARPA: &[u8] = b"arpa";

/// Streams of random numbers.
const PURPOSE_NAMES: u64 = 48;
const PURPOSE_TLD: u64 = 49;

/// The fewest letters of a name that is made; it has up to 5 more.
const LETTERS_MIN: u64 = 4;

/// A TLD.
pub struct Tld {
    pub label: Vec<u8>,
    pub operator: u32,
    /// How many name servers it has.
    pub servers: u32,
    /// The TLD below which its name servers are named.
    pub names_of: u32,
    /// How many second-level zones, `nic` not counted.
    pub zones: u32,
    /// Whether the specification names it.
    pub is_named: bool,
    /// The share of its zones that are signed, if the specification says one.
    pub signed_zones: Option<f64>,
}

/// All TLDs in their order, `arpa` among them.
pub struct Tlds {
    table: Vec<Tld>,
    pub arpa: u32,
}

impl Tlds {
    /// `more` are names without drawn zones; some may be known already.
    pub fn new<'n>(spec: &Spec, more: impl Iterator<Item = &'n [u8]>) -> Self {
        let mut weights = weights(spec);
        let mut known: BTreeSet<Vec<u8>> = weights.iter().map(|(label, _)| label.clone()).collect();
        known.insert(ARPA.to_vec());
        weights.extend(more.filter(|label| known.insert(label.to_vec())).map(|label| (label.to_vec(), 0.0)));
        let mut table: Vec<Tld> = weights
            .into_iter()
            .scan((0.0, 0), |(sum, given), (label, weight)| {
                *sum += weight * f64::from(spec.zones.count);
                // The sums are rounded, so that all zones are given away.
                let zones = (sum.round() as u32).saturating_sub(*given);
                *given += zones;
                let mut random = Random::new(spec.seed ^ fnv1a(&label), PURPOSE_TLD);
                let operator = cubed(&mut random, spec.tlds.operators);
                let servers = if is_share(&mut random, spec.tlds.six_servers) { 6 } else { 4 };
                // Marked by itself; the others are set below.
                let names_of = if is_share(&mut random, spec.tlds.own_names) { u32::MAX } else { 0 };
                let named = spec.tlds.named.iter().find(|named| named.name.as_bytes() == label);
                let (is_named, signed_zones) = (named.is_some(), named.and_then(|named| named.signed));
                Some(Tld { label, operator, servers, names_of, zones, is_named, signed_zones })
            })
            .collect();
        let arpa = Tld {
            label: ARPA.to_vec(),
            operator: 0,
            servers: 6,
            names_of: u32::MAX,
            zones: 0,
            is_named: false,
            signed_zones: None,
        };
        table.push(arpa);
        table.sort_by(|one, other| one.label.cmp(&other.label));
        let mut first_of = vec![u32::MAX; spec.tlds.operators as usize];
        for number in 0..table.len() {
            let first = &mut first_of[table[number].operator as usize];
            *first = (*first).min(number as u32);
            table[number].names_of = if table[number].names_of == u32::MAX { number as u32 } else { *first };
        }
        let arpa = table.iter().position(|tld| tld.label == ARPA).unwrap_or(0) as u32;
        Tlds { table, arpa }
    }

    pub fn count(&self) -> u32 {
        self.table.len() as u32
    }

    pub fn get(&self, number: u32) -> &Tld {
        &self.table[number as usize]
    }

    /// The TLD with this label.
    pub fn find(&self, label: &[u8]) -> Option<u32> {
        self.table.binary_search_by(|tld| tld.label.as_slice().cmp(label)).ok().map(|number| number as u32)
    }
}

/// The names of all TLDs but `arpa`, each with its share of all zones. Of those that are made, the one of rank k has a
/// share in proportion to 1 / k of what the named ones leave.
fn weights(spec: &Spec) -> Vec<(Vec<u8>, f64)> {
    let named = &spec.tlds.named;
    let mut names: Vec<(Vec<u8>, f64)> =
        named.iter().map(|named| (named.name.clone().into_bytes(), named.share)).collect();
    let mut known: BTreeSet<Vec<u8>> = names.iter().map(|(name, _)| name.clone()).collect();
    known.insert(ARPA.to_vec());
    let left = 1.0 - named.iter().map(|named| named.share).sum::<f64>();
    let made = spec.tlds.count as usize - named.len();
    let harmonic: f64 = (1..=made).map(|rank| 1.0 / rank as f64).sum();
    let mut random = Random::new(spec.seed, PURPOSE_NAMES);
    for rank in 1..=made {
        let label = loop {
            let letters = LETTERS_MIN + random.below(6);
            let label: Vec<u8> = (0..letters).map(|_| b'a' + random.below(26) as u8).collect();
            if known.insert(label.clone()) {
                break label;
            }
        };
        names.push((label, left.max(0.0) / rank as f64 / harmonic));
    }
    let total: f64 = names.iter().map(|(_, weight)| weight).sum();
    let count = names.len() as f64;
    names.iter_mut().for_each(|(_, weight)| *weight = if total > 0.0 { *weight / total } else { 1.0 / count });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_zones_are_given_away_in_their_shares() {
        let tlds = Tlds::new(&Spec::parse("zones.count = 100000").unwrap(), std::iter::empty());
        assert_eq!(tlds.count(), 1439);
        assert_eq!((0..tlds.count()).map(|number| tlds.get(number).zones).sum::<u32>(), 100_000);
        let com = tlds.get(tlds.find(b"com").unwrap());
        assert!(com.zones.abs_diff(41_400) <= 1, "{}", com.zones);
        assert_eq!((tlds.find(ARPA), tlds.get(tlds.arpa).zones), (Some(tlds.arpa), 0));
        assert_eq!(tlds.find(b"co"), None);
        let one = Spec::parse("tlds.count = 1\ntlds.named = [{ name = \"example\", share = 0.0 }]\nzones.count = 7");
        let tlds = Tlds::new(&one.unwrap(), std::iter::empty());
        assert_eq!(tlds.get(tlds.find(b"example").unwrap()).zones, 7);
    }

    #[test]
    fn name_servers_are_as_many_as_in_the_root_zone() {
        let tlds = Tlds::new(&Spec::parse("").unwrap(), std::iter::empty());
        let all = || (0..tlds.count()).map(|number| (number, tlds.get(number)));
        let mean = all().map(|(_, tld)| f64::from(tld.servers)).sum::<f64>() / f64::from(tlds.count());
        // One draw is 0 or 2 off: the mean of 1,439 deviates by 0.025.
        assert!((mean - 5.26).abs() < 0.1, "{mean}");
        // Below a TLD of names of its own; the same operator runs both.
        assert!(all().all(|(_, tld)| tlds.get(tld.names_of).operator == tld.operator));
        let own = all().filter(|(number, tld)| tld.names_of == *number).count();
        assert!((1000..1300).contains(&own), "{own}");
    }
}
