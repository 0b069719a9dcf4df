//! Delays by address: of the packets from and to some prefixes, each address of the far end has a delay of its own,
//! which is always the same. No I/O and no state: the delay is a hash of the address.
//!
//! An address draws twice from SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), whose state is the seed and the
//! address: first the class by its weight, then the delay within the class so that its logarithm is uniform. So both
//! directions of a path, and any program that has the seed, find the same delay.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dnsrig_core::{
    random::split_mix,
    units::{parse_delay, parse_number},
};
use dnsrig_net::prefix::{self, Prefix};
use serde::{Serialize, Serializer};

/// The most prefixes that are looked through for a packet.
const PREFIXES_MAX: usize = 8;

/// The most classes of a distribution.
const CLASSES_MAX: usize = 32;

const WEIGHTS: std::ops::RangeInclusive<f64> = 0.0..=1e6;

/// Delays from `low_ns` to `high_ns`, and how many addresses have one of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    pub low_ns: i64,
    pub high_ns: i64,
    pub weight: f64,
}

/// Which addresses have a delay of their own, and which.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AddressDelays {
    #[serde(serialize_with = "as_texts")]
    pub prefixes: Vec<Prefix>,
    pub classes: Vec<Class>,
    pub seed: u64,
}

impl AddressDelays {
    /// What the packet's far end adds to its delay: its destination's, or else its source's. None where neither is in
    /// a prefix, and of what is no packet of IP.
    pub fn packet_delay_ns(&self, packet: &[u8]) -> Option<i64> {
        let [source, destination] = ends(packet)?;
        let is_far = |address: &IpAddr| self.prefixes.iter().any(|prefix| prefix.contains(*address));
        [destination, source].into_iter().find(is_far).map(|address| self.address_delay_ns(address))
    }

    /// The delay of an address.
    pub fn address_delay_ns(&self, address: IpAddr) -> i64 {
        let mut state = self.seed.wrapping_mul(0xd134_2543_de82_ef95) ^ folded(address);
        let mut fraction = || (split_mix(&mut state) >> 11) as f64 / 2_f64.powi(53);
        let mut point = fraction() * self.classes.iter().fold(0.0, |sum, class| sum + class.weight);
        let position = fraction();
        for class in &self.classes {
            if point < class.weight {
                return class.at(position);
            }
            point -= class.weight;
        }
        // What rounding left over belongs to the last.
        self.classes.last().map_or(0, |class| class.at(position))
    }

    /// Whether it is complete: prefixes and classes, some of which are drawn.
    pub fn check(&self) -> Result<(), String> {
        match (self.prefixes.is_empty(), self.classes.is_empty()) {
            (true, true) => Ok(()),
            (false, false) if self.classes.iter().any(|class| class.weight > 0.0) => Ok(()),
            (false, false) => Err("far-delay: no class has a weight above 0".into()),
            _ => Err("far and far-delay go together: whose delays, and which".into()),
        }
    }
}

impl Class {
    /// The delay at this part of the class, from 0 to 1.
    fn at(&self, position: f64) -> i64 {
        let (low, high) = (self.low_ns as f64, self.high_ns as f64);
        // Both are at most a minute.
        (low * (high / low).powf(position)).round() as i64
    }
}

/// Reads one more prefix.
pub fn parse_prefix(text: &str, before: &[Prefix]) -> Result<Prefix, String> {
    if before.len() >= PREFIXES_MAX {
        return Err(format!("at most {PREFIXES_MAX} prefixes"));
    }
    prefix::parse(text)
}

/// Reads `LOW..HIGH:WEIGHT`, several with `+` between them.
pub fn parse_classes(text: &str) -> Result<Vec<Class>, String> {
    let classes: Vec<_> = text.split('+').take(CLASSES_MAX + 1).map(parse_class).collect::<Result<_, _>>()?;
    if classes.len() > CLASSES_MAX { Err(format!("at most {CLASSES_MAX} classes")) } else { Ok(classes) }
}

fn parse_class(text: &str) -> Result<Class, String> {
    let expected = || format!("`{text}` is not LOW..HIGH:WEIGHT, such as 0.5ms..5ms:76.7");
    let (range, weight) = text.split_once(':').ok_or_else(expected)?;
    let (low, high) = range.split_once("..").ok_or_else(expected)?;
    let (low_ns, high_ns) = (parse_delay(low)?, parse_delay(high)?);
    if low_ns < 1 || high_ns < low_ns {
        return Err(format!("`{text}`: a class reaches from above 0 to as much or more"));
    }
    Ok(Class { low_ns, high_ns, weight: parse_number(weight, WEIGHTS, "a weight")? })
}

/// The source and the destination of a packet.
fn ends(packet: &[u8]) -> Option<[IpAddr; 2]> {
    match packet.first()? >> 4 {
        4 => {
            let (source, rest) = packet.get(12..)?.split_first_chunk::<4>()?;
            let (destination, _) = rest.split_first_chunk::<4>()?;
            Some([*source, *destination].map(|bytes| Ipv4Addr::from(bytes).into()))
        }
        6 => {
            let (source, rest) = packet.get(8..)?.split_first_chunk::<16>()?;
            let (destination, _) = rest.split_first_chunk::<16>()?;
            Some([*source, *destination].map(|bytes| Ipv6Addr::from(bytes).into()))
        }
        _ => None,
    }
}

/// An address as 64 bits: of one prefix of 64 bits, no two are alike.
fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            ((bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bits as u64
        }
    }
}

fn as_texts<S: Serializer>(prefixes: &[Prefix], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(prefixes.iter().map(Prefix::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: &str = "0.5ms..5ms:76.7+5ms..50ms:21.2+50ms..250ms:2.1+250ms..500ms:0.04";

    fn far(seed: u64) -> AddressDelays {
        let prefixes = ["198.18.64.0/18", "2001:2:0:3::/64"].map(|text| parse_prefix(text, &[]).unwrap());
        AddressDelays { prefixes: prefixes.into(), classes: parse_classes(NEAR).unwrap(), seed }
    }

    fn packet(source: &str, destination: &str) -> Vec<u8> {
        match (source.parse().unwrap(), destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                [&[0x45; 12], &source.octets()[..], &destination.octets()].concat()
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                [&[0x60; 8], &source.octets()[..], &destination.octets()].concat()
            }
            _ => panic!("two families"),
        }
    }

    #[test]
    fn the_far_end_is_whichever_lies_in_a_prefix() {
        let far = far(1);
        for (near, away) in [("198.18.0.1", "198.18.64.7"), ("2001:2::1", "2001:2:0:3::7")] {
            let expected = Some(far.address_delay_ns(away.parse().unwrap()));
            assert_eq!(far.packet_delay_ns(&packet(near, away)), expected);
            assert_eq!(far.packet_delay_ns(&packet(away, near)), expected, "the way back is as long");
        }
        assert_eq!(far.packet_delay_ns(&packet("198.18.0.1", "198.18.128.1")), None);
        for cut in [&[][..], &[0x45; 19], &[0x60; 39], &[0x10; 64]] {
            assert_eq!(far.packet_delay_ns(cut), None, "it is no whole header");
        }
    }

    #[test]
    fn delays_are_those_that_the_rig_reckons_too() {
        // tests/unit/test_far.py has the same.
        for (text, expected_ns) in [
            ("198.18.64.1", 1_404_920),
            ("198.18.127.254", 1_795_499),
            ("2001:2:0:3::1", 2_446_741),
            ("2001:2:0:3::16", 77_959_888),
            ("2001:2:0:3::24", 242_218_834),
        ] {
            assert_eq!(far(7).address_delay_ns(text.parse().unwrap()), expected_ns, "{text}");
        }
    }

    #[test]
    fn shares_are_those_of_the_classes_and_even_by_logarithm() {
        let far = far(1);
        let base = u32::from_be_bytes([198, 18, 64, 0]);
        let delays: Vec<_> =
            (0..16_384).map(|host| far.address_delay_ns(Ipv4Addr::from_bits(base + host).into())).collect();
        let total: f64 = far.classes.iter().map(|class| class.weight).sum();
        for class in &far.classes {
            let inside = |from: i64, to: i64| delays.iter().filter(|delay| (from..to).contains(*delay)).count() as f64;
            let expected = 16_384.0 * class.weight / total;
            // Within five standard deviations of a Poisson distribution.
            let count = inside(class.low_ns, class.high_ns);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{class:?}: {count}, not {expected}");
            let middle_ns = (class.low_ns as f64 * class.high_ns as f64).sqrt() as i64;
            let low = inside(class.low_ns, middle_ns);
            assert!((low - count / 2.0).abs() <= 2.5 * count.sqrt(), "{class:?}: {low} of {count}");
        }
        assert!(delays.iter().all(|delay| (500_000..=500_000_000).contains(delay)));
    }

    #[test]
    fn another_seed_is_another_world() {
        let address = "198.18.64.1".parse().unwrap();
        assert_ne!(far(1).address_delay_ns(address), far(2).address_delay_ns(address));
    }

    #[test]
    fn what_is_no_distribution_is_told() {
        for (text, word) in [
            ("", "is not LOW..HIGH:WEIGHT"),
            ("1ms..2ms", "is not LOW..HIGH:WEIGHT"),
            ("1ms:5", "is not LOW..HIGH:WEIGHT"),
            ("0ms..2ms:1", "from above 0"),
            ("3ms..2ms:1", "from above 0"),
            ("1ms..61s:1", "give a duration from 0ns to 60s"),
            ("1ms..2ms:-1", "a weight from 0"),
            ("1ms..2ms:NaN", "a weight from 0"),
        ] {
            let reason = parse_classes(text).unwrap_err();
            assert!(reason.contains(word), "{text}: {reason}");
        }
        assert!(parse_classes(&vec!["1ms..2ms:1"; CLASSES_MAX].join("+")).is_ok());
        assert!(parse_classes(&vec!["1ms..2ms:1"; CLASSES_MAX + 1].join("+")).unwrap_err().contains("at most"));
        assert!(parse_prefix("::/0", &far(1).prefixes.repeat(4)).unwrap_err().contains("at most"));
        assert!(AddressDelays { prefixes: Vec::new(), ..far(1) }.check().is_err());
        assert!(AddressDelays { classes: parse_classes("1ms..2ms:0").unwrap(), ..far(1) }.check().is_err());
    }
}
