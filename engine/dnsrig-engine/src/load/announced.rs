//! The clients that the PROXY protocol announces to a server: each has an address, and a port. No clock, no socket.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use dnsrig_core::failure::Failure;
use dnsrig_net::prefix::{self, Prefix};

use super::{
    proxy::{Header, Kind},
    refused,
    segment::{ClientAddresses, Segment},
};

/// The lowest port that is announced: clients do not use those below (RFC 6335 §6).
const PORT_MIN: u16 = 1024;

/// Where the clients' addresses come from.
#[derive(Clone, Debug)]
enum Addresses {
    Prefix(ClientAddresses),
    /// The address of each client, by its number.
    Listed(Arc<[IpAddr]>),
}

/// The clients that are announced to a server. Clients have numbers, counted over all generators.
#[derive(Clone, Debug)]
pub struct Announced {
    server: SocketAddr,
    addresses: Addresses,
    connections: u64,
}

impl Announced {
    /// Clients with addresses of a prefix, or without one of the prefix for documentation (RFC 5737, RFC 3849) of the
    /// server's family. `option` names the prefix for the user. If clients are divided by `segment`, a generator has
    /// the prefix for its own `clients`.
    pub fn from_prefix(
        server: SocketAddr,
        prefix: Option<Prefix>,
        clients: u64,
        segment: Segment,
        option: &str,
    ) -> Result<Self, Failure> {
        let default = if server.is_ipv4() { "192.0.2.0/24" } else { "2001:db8::/32" };
        let prefix = prefix.unwrap_or_else(|| prefix::parse(default).expect("it is a prefix"));
        if prefix.clients() < clients {
            return Err(refused(format!(
                "{prefix}, from which --proxy-protocol announces clients, is too small for {clients} clients: give \
                 {option} a prefix of length {} or shorter",
                prefix.length_for(clients)
            )));
        }
        let addresses = Addresses::Prefix(ClientAddresses { prefix: Some(prefix), segment });
        Ok(Announced { server, addresses, connections: 0 })
    }

    /// Clients with these addresses.
    pub fn listed(server: SocketAddr, addresses: impl Into<Arc<[IpAddr]>>) -> Self {
        Announced { server, addresses: Addresses::Listed(addresses.into()), connections: 0 }
    }

    /// The same clients, to another port or protocol of the server.
    pub fn to(&self, server: SocketAddr) -> Self {
        Announced { server, ..self.clone() }
    }

    /// The header before a query over UDP. Queries with the same `port` number are announced from the same port.
    #[inline]
    pub fn datagram(&self, client: u32, port: u64) -> Header {
        Header::new(Kind::Datagram, SocketAddr::new(self.address(client), port_of(port)), self.server)
    }

    /// The header of a new connection, which has the next port.
    pub fn connection(&mut self, client: u32) -> Header {
        self.connections += 1;
        let port = port_of(u64::from(client) + self.connections - 1);
        Header::new(Kind::Stream, SocketAddr::new(self.address(client), port), self.server)
    }

    #[inline]
    fn address(&self, client: u32) -> IpAddr {
        let found = match &self.addresses {
            Addresses::Prefix(addresses) => addresses.of(client),
            Addresses::Listed(addresses) => addresses.get(client as usize).copied(),
        };
        found.expect("there is an address for each client")
    }
}

#[inline]
fn port_of(number: u64) -> u16 {
    PORT_MIN + (number % u64::from(u16::MAX - PORT_MIN + 1)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(server: &str, prefix: Option<&str>, clients: u64) -> Result<Announced, Failure> {
        let prefix = prefix.map(|text| prefix::parse(text).unwrap());
        Announced::from_prefix(server.parse().unwrap(), prefix, clients, Segment::default(), "--announce-from")
    }

    fn expected(kind: Kind, client: &str, server: &str) -> Header {
        Header::new(kind, client.parse().unwrap(), server.parse().unwrap())
    }

    #[test]
    fn each_client_has_an_address_for_documentation_of_the_servers_family() {
        let clients = announced("127.0.0.1:53", None, 254).unwrap();
        assert_eq!(clients.datagram(0, 0), expected(Kind::Datagram, "192.0.2.1:1024", "127.0.0.1:53"));
        assert_eq!(clients.datagram(253, 64_513), expected(Kind::Datagram, "192.0.2.254:1025", "127.0.0.1:53"));
        let clients = announced("[::1]:53", None, 1 << 32).unwrap();
        assert_eq!(clients.datagram(9, 64_511), expected(Kind::Datagram, "[2001:db8::a]:65535", "[::1]:53"));
    }

    #[test]
    fn each_connection_has_a_port_of_its_own() {
        let mut clients = announced("[::1]:853", Some("198.19.0.0/16"), 300).unwrap();
        assert_eq!(clients.connection(0), expected(Kind::Stream, "198.19.0.1:1024", "[::1]:853"));
        assert_eq!(clients.connection(0), expected(Kind::Stream, "198.19.0.1:1025", "[::1]:853"));
    }

    #[test]
    fn a_generator_of_several_has_a_prefix_for_its_own_clients() {
        let (server, prefix) = ("127.0.0.1:53".parse().unwrap(), prefix::parse("198.18.0.0/30").unwrap());
        let segment = Segment { number: 2, of: 3 };
        let clients = Announced::from_prefix(server, Some(prefix), 2, segment, "--clients-from").unwrap();
        assert_eq!(clients.datagram(1, 0), expected(Kind::Datagram, "198.18.0.1:1024", "127.0.0.1:53"));
        assert_eq!(clients.datagram(4, 0), expected(Kind::Datagram, "198.18.0.2:1024", "127.0.0.1:53"));
    }

    #[test]
    fn a_prefix_that_is_too_small_is_refused_with_the_length_that_is_enough() {
        let refusal = announced("127.0.0.1:53", None, 255).unwrap_err();
        assert!(refusal.sentence.contains("192.0.2.0/24"), "{}", refusal.sentence);
        assert!(format!("{} {}", refusal.sentence, refusal.hint).contains("--announce-from a prefix of length 23"));
    }
}
