//! The addresses to which traffic may be sent: loopback, hosts of the rig, and addresses that the user vouches for.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::{
    failure::Failure,
    route::{self, Way},
};

/// The port of DNS (RFC 1035 §4.2).
pub const DNS_PORT: u16 = 53;

/// What we may do to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// It is loopback, or in a range reserved for benchmarks and within this machine: no cap.
    Rig,
    /// It is a foreign address that the user vouched for: capped unless the user sets a rate.
    Vouched,
}

/// Whether we may send to `address`; `vouched` is what the user named with `--i-am-authorized`.
pub fn authorise(address: IpAddr, vouched: Option<IpAddr>) -> Result<Authority, Failure> {
    judge(address, vouched, route::way_to)
}

/// Whether we may serve on `address`: whatever is asked there, we send only answers.
pub fn authorise_own(address: IpAddr, vouched: Option<IpAddr>) -> Result<Authority, Failure> {
    judge(address, vouched, |_| Ok(Way::Within))
}

fn judge(
    address: IpAddr,
    vouched: Option<IpAddr>,
    way_to: impl FnOnce(IpAddr) -> io::Result<Way>,
) -> Result<Authority, Failure> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Ok(Authority::Rig);
    }
    let why_not = if is_benchmark(address) {
        let reserved = "is in a range kept for benchmarks, but";
        match way_to(address) {
            Ok(Way::Within) => return Ok(Authority::Rig),
            Ok(Way::Out(interface)) => {
                format!("{address} {reserved} packets to it leave this machine by {interface}")
            }
            Err(error) => format!("{address} {reserved} the kernel does not report its route: {error}"),
        }
    } else {
        format!("{address} is neither loopback nor in the ranges kept for benchmarks (198.18.0.0/15, 2001:2::/48)")
    };
    if vouched.map(|vouched| vouched.to_canonical()) == Some(address) {
        return Ok(Authority::Vouched);
    }
    let hint = format!("if you may use that address, confirm it: --i-am-authorized {address}");
    Err(Failure::bad_input(why_not, hint))
}

/// 198.18.0.0/15 (RFC 2544 appendix C.2.2, RFC 6890) and 2001:2::/48 (RFC 5180 §8).
fn is_benchmark(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits() >> 17 == Ipv4Addr::new(198, 18, 0, 0).to_bits() >> 17,
        IpAddr::V6(address) => address.to_bits() >> 80 == Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).to_bits() >> 80,
    }
}

/// The unspecified address of the family of `server`, to which a socket is bound that sends to it.
pub fn unspecified(server: SocketAddr) -> IpAddr {
    match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A server as the user named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: IpAddr,
    /// None: the port of the protocol.
    pub port: Option<u16>,
}

impl Endpoint {
    /// Address and port; `default_port` where none was named.
    pub fn or_port(self, default_port: u16) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(default_port))
    }
}

/// Reads `ADDRESS[:PORT]` like [`parse`], but tells whether a port was given.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, String> {
    let named = text.parse::<SocketAddr>().is_ok();
    parse(text).map(|server| Endpoint { address: server.ip(), port: named.then_some(server.port()) })
}

/// Addresses in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub first: IpAddr,
    pub count: u32,
}

/// A range has no more addresses than this.
const RANGE_MAX: u128 = 65_536;

impl Range {
    /// All of them, in order.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let Range { first, count } = *self;
        (0..count).map(move |number| match first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + number).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(number)).into(),
        })
    }
}

/// Reads `FIRST-LAST`, or one address.
pub fn parse_range(text: &str) -> Result<Range, String> {
    let read = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| format!("`{text}` is not an IP address"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let bits = |address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let (first, last) = (read(first)?, read(last)?);
    let count = bits(last).checked_sub(bits(first)).filter(|_| first.is_ipv4() == last.is_ipv4());
    match count {
        Some(count) if count < RANGE_MAX => Ok(Range { first, count: count as u32 + 1 }),
        _ => Err(format!("expected an address, or FIRST-LAST with at most {RANGE_MAX} of them")),
    }
}

/// Reads `ADDRESS[:PORT]`; an IPv6 address with a port needs brackets. The port is 53 unless given.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let address = text.trim_start_matches('[').trim_end_matches(']');
    text.parse()
        .or_else(|_| address.parse().map(|address: IpAddr| SocketAddr::new(address, DNS_PORT)))
        .map_err(|_| "expected an IP address, optionally with :PORT, such as 198.18.0.2 or [::1]:5300".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The judgement, if packets go `way`; what is refused is a sentence.
    fn judged(address: &str, vouched: Option<&str>, way: Way) -> Result<Authority, String> {
        let vouched = vouched.map(|text| text.parse().unwrap());
        judge(address.parse().unwrap(), vouched, |_| Ok(way)).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_rigs_own_ranges_are_free() {
        for free in ["127.0.0.1", "127.9.9.9", "198.18.0.0", "198.19.255.255", "::1", "2001:2::", "2001:2:0:ffff::1"] {
            assert_eq!(judged(free, None, Way::Within), Ok(Authority::Rig), "{free}");
        }
        for foreign in ["198.17.255.255", "198.20.0.0", "192.0.2.1", "0.0.0.0", "2001:2:1::", "2001:1::", "::"] {
            assert!(judged(foreign, None, Way::Within).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_benchmark_address_that_leaves_this_machine_is_as_any() {
        let out = || Way::Out("eth0".into());
        for address in ["198.18.0.2", "2001:2::2", "::ffff:198.18.0.2"] {
            let refusal = judged(address, None, out()).unwrap_err();
            assert!(refusal.ends_with("packets to it leave this machine by eth0"), "{refusal}");
            assert_eq!(judged(address, Some(address), out()), Ok(Authority::Vouched));
            assert_eq!(authorise_own(address.parse().unwrap(), None).unwrap(), Authority::Rig, "to serve there");
        }
        assert_eq!(judged("127.0.0.1", None, out()), Ok(Authority::Rig));
        let unknown = judge("198.18.0.2".parse().unwrap(), None, |_| Err(io::ErrorKind::Unsupported.into()));
        assert!(unknown.unwrap_err().sentence.contains("does not report its route"));
    }

    #[test]
    fn a_user_vouches_for_exactly_one_address() {
        assert_eq!(judged("192.0.2.1", Some("192.0.2.1"), Way::Within), Ok(Authority::Vouched));
        assert!(judged("192.0.2.1", Some("192.0.2.2"), Way::Within).is_err());
    }

    #[test]
    fn an_ipv4_address_in_ipv6_clothes_is_judged_as_ipv4() {
        assert!(judged("::ffff:192.0.2.1", None, Way::Within).is_err());
        assert_eq!(judged("::ffff:198.18.0.1", None, Way::Within), Ok(Authority::Rig));
    }

    #[test]
    fn a_range_has_both_its_ends() {
        let read =
            |text| parse_range(text).map(|range| range.addresses().map(|one| one.to_string()).collect::<Vec<_>>());
        assert_eq!(
            read("198.18.0.254-198.18.1.1").unwrap(),
            ["198.18.0.254", "198.18.0.255", "198.18.1.0", "198.18.1.1"]
        );
        assert_eq!(read("2001:2::f-2001:2::10").unwrap(), ["2001:2::f", "2001:2::10"]);
        assert_eq!(read("198.18.0.1").unwrap(), ["198.18.0.1"]);
        for wrong in ["", "198.18.0.2-198.18.0.1", "198.18.0.1-::1", "0.0.0.0-255.255.255.255", "1-2"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_port_is_optional() {
        assert_eq!(parse("127.0.0.1"), Ok("127.0.0.1:53".parse().unwrap()));
        assert_eq!(parse("127.0.0.1:5300"), Ok("127.0.0.1:5300".parse().unwrap()));
        assert_eq!(parse("::1"), Ok("[::1]:53".parse().unwrap()));
        assert_eq!(parse("[::1]"), Ok("[::1]:53".parse().unwrap()));
        assert_eq!(parse("[::1]:5300"), Ok("[::1]:5300".parse().unwrap()));
        assert!(parse("localhost").is_err());
    }
}
