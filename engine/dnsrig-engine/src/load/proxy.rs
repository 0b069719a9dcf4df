//! The header of the PROXY protocol, version 2: a proxy announces the client of a connection or of a datagram with it
//! (HAProxy's `proxy-protocol.txt`, §2.2). No socket, no allocation.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The length of the longest header: the fixed part and two addresses of IPv6 with their ports.
pub const HEADER_BYTES_MAX: usize = FIXED_BYTES + 2 * (16 + 2);

const FIXED_BYTES: usize = 16;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Version 2 in the high four bits, and the command PROXY in the low ones.
const VERSION_AND_COMMAND: u8 = 0x21;

/// The transport that is announced, as the header has it in its low four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Stream = 1,
    Datagram = 2,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; HEADER_BYTES_MAX],
    length: usize,
}

impl Header {
    /// Announces that `client` talks to `server`. A header has addresses of one family: if only one of the two has an
    /// address of IPv4, that address is mapped into IPv6 (RFC 4291 §2.5.5.2).
    #[inline]
    pub fn new(kind: Kind, client: SocketAddr, server: SocketAddr) -> Self {
        let mut header = Header { bytes: [0; HEADER_BYTES_MAX], length: 0 };
        header.add(&SIGNATURE);
        match (client.ip(), server.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                header.add(&[VERSION_AND_COMMAND, 0x10 | kind as u8, 0, 12]);
                header.add(&from.octets());
                header.add(&to.octets());
            }
            (from, to) => {
                header.add(&[VERSION_AND_COMMAND, 0x20 | kind as u8, 0, 36]);
                header.add(&mapped(from).octets());
                header.add(&mapped(to).octets());
            }
        }
        header.add(&client.port().to_be_bytes());
        header.add(&server.port().to_be_bytes());
        header
    }

    /// Its bytes, in the order of the network.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, client: &str, server: &str) -> Vec<u8> {
        Header::new(kind, client.parse().unwrap(), server.parse().unwrap()).bytes().to_vec()
    }

    /// The signature as the specification lists it, in hexadecimal.
    const SIGNED: [u8; 12] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A];

    #[test]
    fn a_header_of_ipv4_has_the_bytes_of_the_specification() {
        // \x21: version 2, PROXY. \x11 and \x12: TCP and UDP over IPv4. 12 bytes of addresses follow.
        let rest = [0, 12, 192, 0, 2, 1, 127, 0, 0, 1, 0x04, 0xD2, 0, 53];
        for (kind, family) in [(Kind::Stream, 0x11), (Kind::Datagram, 0x12)] {
            let expected = [&SIGNED[..], &[0x21, family], &rest].concat();
            assert_eq!(header(kind, "192.0.2.1:1234", "127.0.0.1:53"), expected);
        }
    }

    #[test]
    fn a_header_of_ipv6_has_the_bytes_of_the_specification() {
        let (mut client, mut server) = ([0; 16], [0; 16]);
        client[..4].copy_from_slice(&[0x20, 0x01, 0x0D, 0xB8]);
        (client[15], server[15]) = (7, 1);
        let ports = [0xFF, 0xFF, 0x03, 0x55];
        for (kind, family) in [(Kind::Stream, 0x21), (Kind::Datagram, 0x22)] {
            let expected = [&SIGNED[..], &[0x21, family, 0, 36], &client, &server, &ports].concat();
            assert_eq!(header(kind, "[2001:db8::7]:65535", "[::1]:853"), expected);
            assert_eq!(expected.len(), HEADER_BYTES_MAX);
        }
    }

    #[test]
    fn addresses_of_two_families_are_both_of_ipv6() {
        let header = header(Kind::Stream, "192.0.2.1:1", "[::1]:53");
        assert_eq!(header[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(header[26..32], [0xFF, 0xFF, 192, 0, 2, 1]);
    }
}
