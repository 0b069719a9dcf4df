//! The name servers of a world, and their addresses: each has a place, which is its address's distance from the
//! beginning of the world's prefixes.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The root has at most so many servers: `a` to `m`.
pub const ROOT_MAX: u32 = 13;

/// Who runs TLDs has so many servers, of which a TLD uses the first four or all.
pub const OPERATOR_SERVERS: u32 = 6;

/// A hoster has at most so many.
pub const HOSTER_SERVERS: u32 = 4;

/// So many hosters have the zones whose servers are silent or slow, and no other zones. A resolver that learns to avoid
/// such a server would else avoid it for good zones, too.
pub const FAULTY_HOSTERS: u32 = 64;

/// A name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    Root {
        number: u32,
    },
    /// Of TLDs.
    Operator {
        operator: u32,
        number: u32,
    },
    /// Of second-level zones.
    Hoster {
        hoster: u32,
        number: u32,
    },
}

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    pub operators: u32,
    pub hosters: u32,
    /// Those whose servers are silent or slow; they come behind the others.
    pub faulty_hosters: u32,
}

impl AddressPlan {
    /// Place 0 is nobody's: it is the network's own address.
    pub fn of(self, server: Server) -> u32 {
        match server {
            Server::Root { number } => 1 + number,
            Server::Operator { operator, number } => 1 + ROOT_MAX + operator * OPERATOR_SERVERS + number,
            Server::Hoster { hoster, number } => self.first_hoster() + hoster * HOSTER_SERVERS + number,
        }
    }

    /// Whose a place is.
    pub fn server(self, place: u32) -> Option<Server> {
        if let Some(place) = place.checked_sub(self.first_hoster()) {
            let (hoster, number) = (place / HOSTER_SERVERS, place % HOSTER_SERVERS);
            return (hoster < self.hosters + self.faulty_hosters).then_some(Server::Hoster { hoster, number });
        }
        match place.checked_sub(1 + ROOT_MAX) {
            Some(place) => {
                Some(Server::Operator { operator: place / OPERATOR_SERVERS, number: place % OPERATOR_SERVERS })
            }
            None => place.checked_sub(1).map(|number| Server::Root { number }),
        }
    }

    /// How many places there are.
    pub fn count(self) -> u32 {
        self.first_hoster() + (self.hosters + self.faulty_hosters) * HOSTER_SERVERS
    }

    fn first_hoster(self) -> u32 {
        1 + ROOT_MAX + self.operators * OPERATOR_SERVERS
    }
}

/// A network: its first address, and how many bits of it all its addresses share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<A> {
    pub first: A,
    bits: u32,
}

impl<A: fmt::Display> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

pub type Prefix4 = Prefix<Ipv4Addr>;
pub type Prefix6 = Prefix<Ipv6Addr>;

impl FromStr for Prefix4 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, bits): (Ipv4Addr, u32) = parse(text, 32)?;
        let is_first = first.to_bits().checked_shl(bits).unwrap_or(0) == 0;
        if is_first {
            Ok(Prefix { first, bits })
        } else {
            Err(format!("{first} is not the first address of its network"))
        }
    }
}

impl FromStr for Prefix6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, bits): (Ipv6Addr, u32) = parse(text, 128)?;
        let is_first = first.to_bits().checked_shl(bits).unwrap_or(0) == 0;
        if is_first {
            Ok(Prefix { first, bits })
        } else {
            Err(format!("{first} is not the first address of its network"))
        }
    }
}

fn parse<A: FromStr>(text: &str, most: u32) -> Result<(A, u32), String> {
    let read = || {
        let (first, bits) = text.split_once('/')?;
        Some((first.parse().ok()?, bits.parse().ok().filter(|bits| *bits <= most)?))
    };
    read().ok_or_else(|| format!("`{text}` is no network such as 198.18.64.0/18 or 2001:2:0:3::/64"))
}

/// The networks that name servers have their addresses in. Every server has an address in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    pub ipv4: Prefix4,
    pub ipv6: Prefix6,
}

impl Prefixes {
    pub fn ipv4(&self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.ipv4.first.to_bits() + place)
    }

    pub fn ipv6(&self, place: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.ipv6.first.to_bits() + u128::from(place))
    }

    /// The place that has an address.
    pub fn place(&self, address: IpAddr) -> Option<u32> {
        let distance = match address {
            IpAddr::V4(address) => address.to_bits().checked_sub(self.ipv4.first.to_bits())?.into(),
            IpAddr::V6(address) => address.to_bits().checked_sub(self.ipv6.first.to_bits())?,
        };
        u32::try_from(distance).ok()
    }

    /// Whether both have so many places, beside the last address of IPv4, which is broadcast.
    pub fn hold(&self, places: u32) -> bool {
        let room = |bits: u32| 1_u128.checked_shl(bits).unwrap_or(u128::MAX);
        u128::from(places) < room(32 - self.ipv4.bits) && u128::from(places) < room(128 - self.ipv6.bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_server_has_a_place_of_its_own(operators in 1_u32..300, hosters in 1_u32..4000, place in 1_u32..20_000) {
            let places = AddressPlan { operators, hosters, faulty_hosters: hosters / 50 };
            match places.server(place) {
                Some(server) => prop_assert_eq!(places.of(server), place),
                None => prop_assert!(place >= places.count()),
            }
        }
    }

    #[test]
    fn a_network_has_its_first_address_and_its_size() {
        let ipv4: Prefix4 = "198.18.64.0/18".parse().unwrap();
        let ipv6: Prefix6 = "2001:2:0:3::/64".parse().unwrap();
        let prefixes = Prefixes { ipv4, ipv6 };
        assert!(prefixes.hold(16_383) && !prefixes.hold(16_384));
        assert_eq!(
            (prefixes.ipv4(258).to_string(), prefixes.ipv6(10).to_string()),
            ("198.18.65.2".into(), "2001:2:0:3::a".into())
        );
        assert_eq!(prefixes.place("198.18.65.2".parse().unwrap()), Some(258));
        assert_eq!(prefixes.place("2001:2:0:3::a".parse().unwrap()), Some(10));
        assert_eq!(prefixes.place("198.18.63.255".parse().unwrap()), None);
        assert_eq!(prefixes.place("2001:2:0:4::".parse().unwrap()), None);
        for wrong in ["", "198.18.64.0", "198.18.64.1/18", "198.18.64.0/33", "::/0"] {
            assert!(wrong.parse::<Prefix4>().is_err(), "{wrong}");
        }
        assert!("0.0.0.0/0".parse::<Prefix4>().is_ok() && "::/0".parse::<Prefix6>().is_ok());
    }
}
