//! What a capture has beside DNS on the ports that are looked at: named with numbers, so that a reader sees whether
//! queries are in it.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::{
    dns::{
        header::{HEADER_BYTES, Header, OPCODE, QR},
        name,
        query::TAIL_BYTES,
    },
    replay::packet::{
        ip::{TCP, UDP},
        streams,
    },
    stats::grouped,
};

/// The number of entries of each kind that are named.
const NAMED: usize = 3;

/// Fewer messages on a port are chance.
const MESSAGES_MIN: u64 = 3;

/// No more records are in an answer of DNS that is looked at: other protocols have any numbers there.
const RECORDS_MAX: u32 = 200;

/// IP protocols and UDP ports that wrap other packets, or encrypt them (IANA).
const PROTOCOLS: [(u8, &str); 9] = [
    (1, "ICMP"),
    (2, "IGMP"),
    (47, "GRE"),
    (50, "ESP"),
    (51, "AH"),
    (58, "ICMPv6"),
    (115, "L2TP"),
    (132, "SCTP"),
    (137, "MPLS in IP"),
];
const PORTS: [(u16, &str); 8] = [
    (443, "HTTPS or QUIC"),
    (853, "DNS over TLS or QUIC"),
    (1701, "L2TP"),
    (2152, "GTP-U"),
    (3544, "Teredo"),
    (4341, "LISP"),
    (4500, "IPsec"),
    (51820, "WireGuard"),
];

/// How many packets there are of each number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Link layers that are not known (LINKTYPE_).
    pub links: BTreeMap<u16, u64>,
    pub ethertypes: BTreeMap<u16, u64>,
    pub protocols: BTreeMap<u8, u64>,
    /// By the lower one of both ports.
    pub udp_ports: BTreeMap<u16, u64>,
    pub tcp_ports: BTreeMap<u16, u64>,
    /// Messages that look like DNS, by the port of the server.
    pub dns_over_udp: BTreeMap<u16, u64>,
    pub dns_over_tcp: BTreeMap<u16, u64>,
}

impl Unread {
    /// Takes in a datagram that is neither from nor to a port of DNS.
    pub fn other_port(&mut self, protocol: u8, ports: [u16; 2], payload: &[u8]) {
        let (by_port, dns, is_query) = if protocol == TCP {
            (&mut self.tcp_ports, &mut self.dns_over_tcp, streams::begins_with_query(payload).then_some(true))
        } else {
            (&mut self.udp_ports, &mut self.dns_over_udp, dns_message(payload))
        };
        *by_port.entry(ports[0].min(ports[1])).or_default() += 1;
        if let Some(is_query) = is_query {
            *dns.entry(ports[usize::from(is_query)]).or_default() += 1;
        }
    }

    /// The most frequent of all, for people.
    pub fn text(&self) -> String {
        let named = |names: &[(u16, &str)], number| {
            names.iter().find(|(known, _)| *known == number).map_or(String::new(), |(_, name)| format!(" ({name})"))
        };
        let protocols: Vec<_> = PROTOCOLS.iter().map(|(number, name)| (u16::from(*number), *name)).collect();
        let wide: BTreeMap<u16, u64> =
            self.protocols.iter().map(|(number, count)| ((*number).into(), *count)).collect();
        let port = |transport: &str, number| format!("{transport} port {number}{}", named(&PORTS, number));
        [
            most(&self.links, |number| format!("link layer {number}")),
            most(&self.ethertypes, |number| format!("EtherType 0x{number:04x}")),
            most(&wide, |number| format!("protocol {number}{}", named(&protocols, number))),
            most(&self.udp_ports, |number| port("UDP", number)),
            most(&self.tcp_ports, |number| port("TCP", number)),
        ]
        .concat()
        .join(", ")
    }

    /// Returns the ports with messages that look like DNS as text, perhaps an empty one.
    pub fn dns_text(&self) -> String {
        let enough = |ports: &BTreeMap<u16, u64>| -> BTreeMap<u16, u64> {
            ports.iter().filter(|(_, count)| **count >= MESSAGES_MIN).map(|(port, count)| (*port, *count)).collect()
        };
        let [udp, tcp] = [enough(&self.dns_over_udp), enough(&self.dns_over_tcp)];
        let found = [most(&udp, |port| format!("UDP port {port}")), most(&tcp, |port| format!("TCP port {port}"))];
        found.concat().join(", ")
    }
}

/// The numbers with the highest counts.
fn most(counts: &BTreeMap<u16, u64>, name: impl Fn(u16) -> String) -> Vec<String> {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|&(number, count)| (Reverse(*count), *number));
    sorted.into_iter().take(NAMED).map(|(number, count)| format!("{} {}", name(*number), grouped(*count))).collect()
}

/// Whether bytes look like a message of DNS, and if so whether it is a query.
fn dns_message(payload: &[u8]) -> Option<bool> {
    let header = Header::read(payload).ok()?;
    let is_query = header.flags & QR == 0;
    let behind = name::skip_plain(payload, HEADER_BYTES).ok()?;
    let &[_, _, _, class] = payload.get(behind..)?.first_chunk::<TAIL_BYTES>()?;
    let is_known = header.flags & OPCODE == 0 && header.questions == 1 && matches!(class, 1 | 255);
    (is_known && header.records() <= if is_query { 2 } else { RECORDS_MAX }).then_some(is_query)
}

/// Ports of a datagram and what is behind its header, as far as it was captured.
pub fn payload(protocol: u8, datagram: &[u8]) -> &[u8] {
    let header_bytes = match protocol {
        UDP => 8,
        _ => datagram.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4),
    };
    datagram.get(header_bytes..).unwrap_or_default()
}
