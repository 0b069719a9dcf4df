//! The addresses of this host that clients send from.

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

use crate::base::failure::Advice;

/// This host does not have an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this host does not have the address {0} of --source")]
pub struct MissingSource(IpAddr);

impl Advice for MissingSource {
    fn hint(&self) -> String {
        let MissingSource(address) = self;
        format!("give an address of this host (see `ip address`), or add it as root: `ip address add {address} dev lo`")
    }

    fn exit_code(&self) -> u8 {
        2
    }
}

/// Whether this host has all addresses: over TCP one that it does not have looks like one without a free port.
pub fn check(sources: impl IntoIterator<Item = IpAddr>) -> Result<(), MissingSource> {
    sources.into_iter().find(|source| is_missing(*source)).map_or(Ok(()), |source| Err(MissingSource(source)))
}

/// Whether no socket can send from this address. What else may be wrong with it shows when packets are sent.
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
        assert_eq!(missing.to_string(), "this host does not have the address 203.0.113.7 of --source");
        assert!(missing.hint().contains("ip address add 203.0.113.7"));
    }
}
