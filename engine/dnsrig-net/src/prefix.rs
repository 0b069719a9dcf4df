//! The addresses of many clients, or of many servers: each has an address in a prefix, by its number.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A prefix of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The lowest address.
    pub base: IpAddr,
    length: u32,
}

impl Prefix {
    /// The address of a client. The first and the last address of a prefix stay free: on a link no host has them
    /// (RFC 1122 §3.2.1.3).
    #[inline]
    pub fn client(&self, number: u32) -> Option<IpAddr> {
        (u64::from(number) < self.clients()).then(|| match self.base {
            IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits() + number + 1).into(),
            IpAddr::V6(base) => Ipv6Addr::from_bits(base.to_bits() + u128::from(number) + 1).into(),
        })
    }

    /// The number of the client with this address.
    pub fn number(&self, address: IpAddr) -> Option<u32> {
        let bits = match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let base = match self.base {
            IpAddr::V4(base) => u128::from(base.to_bits()),
            IpAddr::V6(base) => base.to_bits(),
        };
        let number = u32::try_from(bits.checked_sub(base)?.checked_sub(1)?).ok()?;
        (self.client(number) == Some(address)).then_some(number)
    }

    /// The number of clients for which there are addresses, at most as many as there are client numbers.
    pub fn clients(&self) -> u64 {
        let bits = self.bits() - self.length;
        (1_u64 << bits.min(33)).saturating_sub(2).min(1 << 32)
    }

    /// Whether `address` is in the prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        Prefix::new(address, self.length).is_some_and(|other| other.base == self.base)
    }

    /// Whether its addresses are of the family of `address`.
    pub fn is_family_of(&self, address: IpAddr) -> bool {
        self.base.is_ipv4() == address.is_ipv4()
    }

    /// The length of the smallest prefix of this family that has room for this number of clients.
    pub fn length_for(&self, clients: u64) -> u32 {
        self.bits() - (clients + 2).next_power_of_two().trailing_zeros()
    }

    fn bits(&self) -> u32 {
        if self.base.is_ipv4() { 32 } else { 128 }
    }

    /// The prefix of this length that contains `address`; None if the length exceeds an address.
    fn new(address: IpAddr, length: u32) -> Option<Self> {
        let base = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(length)?).unwrap_or(0);
                IpAddr::from(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
                IpAddr::from(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Some(Prefix { base, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.base, self.length)
    }
}

/// Reads `ADDRESS/LENGTH`, whose address is the lowest.
pub fn parse(text: &str) -> Result<Prefix, String> {
    let expected = || "expected a prefix, such as 198.19.0.0/16 or 2001:2::/48".to_owned();
    let (address, length) = text.split_once('/').ok_or_else(expected)?;
    let address: IpAddr = address.parse().map_err(|_| expected())?;
    let prefix = Prefix::new(address, length.parse().map_err(|_| expected())?).ok_or_else(expected)?;
    if prefix.base != address {
        return Err(format!("`{text}` is within {prefix}: name that, or a longer one"));
    }
    if prefix.clients() == 0 {
        return Err("a prefix with room for clients is a /30 or shorter, of IPv6 a /126 or shorter".into());
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn clients_have_the_addresses_between_the_first_and_the_last() {
        let prefix = parse("198.19.0.0/29").unwrap();
        let clients: Vec<_> = (0..8).map_while(|number| prefix.client(number)).collect();
        assert_eq!(clients, (1..7).map(|number| address(&format!("198.19.0.{number}"))).collect::<Vec<_>>());
        assert_eq!((prefix.clients(), prefix.length_for(6), prefix.length_for(7)), (6, 29, 28));
        assert_eq!(
            clients.iter().map(|&client| prefix.number(client)).collect::<Vec<_>>(),
            (0..6).map(Some).collect::<Vec<_>>()
        );
        let others = ["198.19.0.0", "198.19.0.7", "198.18.255.255", "::1"];
        assert!(others.iter().all(|other| prefix.number(address(other)).is_none()));
        let prefix = parse("2001:2::/48").unwrap();
        assert_eq!(prefix.client(0xffff), Some(address("2001:2::1:0")));
        assert_eq!(prefix.number(address("2001:2::1:0")), Some(0xffff));
        assert_eq!(prefix.clients(), 1 << 32);
        assert_eq!(parse("0.0.0.0/0").unwrap().clients(), (1 << 32) - 2);
    }

    #[test]
    fn a_prefix_contains_what_begins_with_it() {
        let prefix = parse("198.19.0.0/16").unwrap();
        assert_eq!(
            ["198.19.255.255", "198.19.0.0", "198.18.255.255", "198.20.0.0", "2001:2::1"]
                .map(|text| prefix.contains(address(text))),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn an_invalid_prefix_is_refused() {
        assert!(parse("198.19.0.1/16").unwrap_err().contains("within 198.19.0.0/16"));
        for wrong in ["", "198.19.0.0", "198.19.0.0/33", "198.19.0.0/", "2001:2::/129", "198.19.0.0/31", "::1/128"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
