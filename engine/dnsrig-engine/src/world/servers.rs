//! The name servers of a world, and their addresses: each has a place, which is the number of its address in the
//! world's prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dnsrig_net::prefix::{self, Prefix};

/// The root has at most so many servers: `a` to `m`.
pub const ROOT_MAX: u32 = 13;

/// Who runs TLDs has so many servers, of which a TLD uses the first four or all.
pub const OPERATOR_SERVERS: u32 = 6;

/// A hoster has at most so many.
const HOSTER_SERVERS: u32 = 4;

/// The number of hosters for zones whose servers are silent or slow. They have no other zones: a resolver that learns
/// to avoid such a server would else avoid it for good zones, too.
pub const FAULTY_HOSTERS: u32 = 64;

/// A name server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    Root {
        number: u32,
    },
    /// A server of TLDs.
    Operator {
        operator: u32,
        number: u32,
    },
    /// A server of second-level zones.
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
    /// Hosters whose servers are silent or slow; they come after the others.
    pub faulty_hosters: u32,
}

impl AddressPlan {
    /// The place of a server.
    pub fn of(self, server: Server) -> u32 {
        match server {
            Server::Root { number } => number,
            Server::Operator { operator, number } => ROOT_MAX + operator * OPERATOR_SERVERS + number,
            Server::Hoster { hoster, number } => self.first_hoster() + hoster * HOSTER_SERVERS + number,
        }
    }

    /// Returns the server at a place.
    pub fn server(self, place: u32) -> Option<Server> {
        if let Some(place) = place.checked_sub(self.first_hoster()) {
            let (hoster, number) = (place / HOSTER_SERVERS, place % HOSTER_SERVERS);
            return (hoster < self.hosters + self.faulty_hosters).then_some(Server::Hoster { hoster, number });
        }
        match place.checked_sub(ROOT_MAX) {
            Some(place) => {
                Some(Server::Operator { operator: place / OPERATOR_SERVERS, number: place % OPERATOR_SERVERS })
            }
            None => Some(Server::Root { number: place }),
        }
    }

    /// How many places there are.
    pub fn count(self) -> u32 {
        self.first_hoster() + (self.hosters + self.faulty_hosters) * HOSTER_SERVERS
    }

    fn first_hoster(self) -> u32 {
        ROOT_MAX + self.operators * OPERATOR_SERVERS
    }
}

/// The networks that name servers have their addresses in. Every server has an address in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    pub ipv4: Prefix,
    pub ipv6: Prefix,
}

impl Prefixes {
    /// The IPv4 address of a place, for which there is room.
    pub fn ipv4(&self, place: u32) -> IpAddr {
        self.ipv4.client(place).expect("the world was made for these networks")
    }

    /// The same, of IPv6.
    pub fn ipv6(&self, place: u32) -> IpAddr {
        self.ipv6.client(place).expect("the world was made for these networks")
    }

    /// The place that has an address.
    pub fn place(&self, address: IpAddr) -> Option<u32> {
        self.ipv4.number(address).or_else(|| self.ipv6.number(address))
    }

    /// Whether both have so many places.
    pub fn hold(&self, places: u32) -> bool {
        [self.ipv4, self.ipv6].iter().all(|prefix| u64::from(places) <= prefix.clients())
    }
}

/// Reads a network of IPv4.
pub fn parse_ipv4(text: &str) -> Result<Prefix, String> {
    parse(text, Ipv4Addr::UNSPECIFIED.into())
}

/// Reads a network of IPv6.
pub fn parse_ipv6(text: &str) -> Result<Prefix, String> {
    parse(text, Ipv6Addr::UNSPECIFIED.into())
}

fn parse(text: &str, family: IpAddr) -> Result<Prefix, String> {
    let prefix = prefix::parse(text)?;
    if prefix.is_family_of(family) { Ok(prefix) } else { Err(format!("{prefix} is of the other family")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_server_has_a_place_of_its_own(operators in 1_u32..300, hosters in 1_u32..4000, place in 0_u32..20_000) {
            let places = AddressPlan { operators, hosters, faulty_hosters: hosters / 50 };
            match places.server(place) {
                Some(server) => prop_assert_eq!(places.of(server), place),
                None => prop_assert!(place >= places.count()),
            }
        }
    }

    #[test]
    fn a_place_has_an_address_in_each_network() {
        let prefixes =
            Prefixes { ipv4: parse_ipv4("198.18.64.0/18").unwrap(), ipv6: parse_ipv6("2001:2:0:3::/64").unwrap() };
        assert!(prefixes.hold(16_382) && !prefixes.hold(16_383));
        let addresses =
            [(257, "198.18.65.2"), (9, "2001:2:0:3::a")].map(|(place, text)| (place, text.parse().unwrap()));
        assert_eq!([prefixes.ipv4(257), prefixes.ipv6(9)], addresses.map(|(_, address)| address));
        assert!(addresses.iter().all(|(place, address)| prefixes.place(*address) == Some(*place)));
        for other in ["198.18.63.255", "198.18.64.0", "2001:2:0:4::1"] {
            assert_eq!(prefixes.place(other.parse().unwrap()), None, "{other}");
        }
        assert!(parse_ipv4("::/0").is_err() && parse_ipv6("0.0.0.0/0").is_err());
    }
}
