//! The addresses of this host that clients send from.

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

use dnsrig_core::failure::Failure;

/// Refuses addresses that this host does not have: over TCP, such an address looks like one without a free port.
pub fn check(sources: impl IntoIterator<Item = IpAddr>) -> Result<(), Failure> {
    let Some(missing) = sources.into_iter().find(|source| is_missing(*source)) else { return Ok(()) };
    Err(Failure::bad_input(
        format!("this host does not have the address {missing} of --source"),
        format!(
            "give an address of this host (see `ip address`), or add it as root: `ip address add {missing} dev lo`"
        ),
    ))
}

/// Whether no socket can send from this address. Other faults of an address appear when packets are sent.
pub fn is_missing(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_host_is_named() {
        let [here, elsewhere] = ["127.0.0.1", "203.0.113.7"].map(|address| address.parse().unwrap());
        assert_eq!(check([here]), Ok(()));
        let missing = check([here, elsewhere]).unwrap_err();
        assert_eq!(missing.sentence, "this host does not have the address 203.0.113.7 of --source");
        assert!(missing.hint.contains("ip address add 203.0.113.7"));
    }
}
