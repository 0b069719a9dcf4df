//! Whether this host receives what is sent to the addresses of clients.

use std::{
    fs,
    net::{IpAddr, Ipv6Addr},
};

use crate::{
    load::LoadError,
    net::{prefix::Prefix, source},
};

/// All IPv6 routes, those of addresses among them. Without IPv6 there is no such file.
const IPV6_ROUTES: &str = "/proc/net/ipv6_route";

/// The flag of a route to this host itself (`linux/ipv6_route.h`).
const RTF_LOCAL: u32 = 0x8000_0000;

/// Sees to it that this host has the addresses of the first and the last client: only then are answers received.
pub fn check(prefix: Prefix, clients: u64) -> Result<(), LoadError> {
    for number in [0, clients.saturating_sub(1) as u32] {
        let Some(address) = prefix.client(number) else { continue };
        let is_local = match address {
            IpAddr::V4(address) => !source::is_missing(address.into()),
            // A socket can be bound to addresses of devices only, not to those of local routes.
            IpAddr::V6(address) => fs::read_to_string(IPV6_ROUTES).map_or(true, |routes| is_local_v6(&routes, address)),
        };
        if !is_local {
            return Err(LoadError::NotLocal { address, prefix });
        }
    }
    Ok(())
}

/// Whether a local route leads to `address`, whatever its table.
fn is_local_v6(routes: &str, address: Ipv6Addr) -> bool {
    routes.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [network, length, .., flags, _] = words[..] else { return false };
        let number = |text| u32::from_str_radix(text, 16).ok();
        let (Ok(network), Some(length), Some(flags)) =
            (u128::from_str_radix(network, 16), number(length), number(flags))
        else {
            return false;
        };
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0);
        flags & RTF_LOCAL != 0 && address.to_bits() & mask == network & mask
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_route_of_ipv6_makes_its_addresses_this_hosts() {
        let none = "00000000000000000000000000000000";
        let lines = [
            format!(
                "{none} 00 {none} 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0"
            ),
            format!(
                "20010002000000000000000000000000 30 {none} 00 {none} 00000400 00000001 00000000 80200001       lo"
            ),
            format!(
                "20010003000000000000000000000000 30 {none} 00 {none} 00000400 00000001 00000000 00000001     eth0"
            ),
        ];
        let routes = lines.join("\n");
        for (address, local) in
            [("2001:2::1", true), ("2001:2:0:ffff::1", true), ("2001:2:1::1", false), ("2001:3::1", false)]
        {
            assert_eq!(is_local_v6(&routes, address.parse().unwrap()), local, "{address}");
        }
        assert!(!is_local_v6("zz 30\n\nno route at all", "::1".parse().unwrap()));
    }
}
