//! What became of everything that was read: at each level the parts add up to the whole. What is beside DNS on the
//! ports is named with numbers, so that a reader sees whether queries are in it.

use std::{cmp::Reverse, collections::BTreeMap};

use dnsrig_core::stats::grouped;
use dnsrig_dns::{
    header::{HEADER_BYTES, Header, OPCODE, QR},
    name,
    query::TAIL_BYTES,
};
use serde::Serialize;

use crate::replay::packet::{
    fragments,
    ip::{TCP, UDP},
    tcp,
};

/// Captured packets: `read` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    pub read: u64,
    /// With a whole IP datagram.
    pub datagrams: u64,
    /// With a fragment of one.
    pub fragments: u64,
    /// Packets with a link layer that is not known.
    pub unknown_link: u64,
    /// ARP and the like.
    pub not_ip: u64,
    /// The IP header makes no sense, or is cut.
    pub malformed: u64,
}

/// IP datagrams: `whole` and `reassembled` are together the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Datagrams that came in one packet.
    pub whole: u64,
    /// Datagrams that were put together from fragments.
    pub reassembled: u64,
    /// With a message over UDP.
    pub udp: u64,
    /// With a segment of TCP to a port of DNS.
    pub tcp_segments: u64,
    /// With a segment of TCP from a port of DNS to another: answers, which are not read.
    pub tcp_answers: u64,
    /// Neither UDP nor TCP.
    pub other_protocol: u64,
    /// Neither from nor to a port of DNS.
    pub other_port: u64,
    /// From or to a port of DNS, and not all of it was captured.
    pub cut: u64,
    /// The header of UDP or TCP makes no sense.
    pub malformed: u64,
}

/// Messages: `udp`, `tcp` and `records` are together the sum of the others, `from_servers` and `truncated` aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Messages {
    pub udp: u64,
    pub tcp: u64,
    /// Messages in dnstap and C-DNS.
    pub records: u64,
    /// Queries that are in the stream, each once, however often --multiply repeats it.
    pub kept: u64,
    /// Kept queries, before --cut, from addresses that others ask in the same captures.
    pub from_servers: u64,
    pub answers: u64,
    /// Answers over UDP that were truncated: the client asks again over TCP.
    pub truncated: u64,
    /// Queries over TCP for answers that were truncated: `replay play` asks again by itself.
    pub after_truncation: u64,
    /// Queries of the server itself to others.
    pub upstream: u64,
    /// Queries of others to others.
    pub other_server: u64,
    /// NOTIFY, UPDATE and other operations than QUERY.
    pub other_operation: u64,
    /// To another port, from a port of DNS.
    pub other_port: u64,
    /// Records of something else.
    pub other_record: u64,
    /// Without a header and one question that can be read.
    pub malformed: u64,
    /// Queries of clients that are not in --keep-share.
    pub not_in_share: u64,
    /// Queries outside --cut.
    pub outside_cut: u64,
}

/// Messages over UDP between all clients and the servers whose queries are kept: a capture with more answers than
/// queries has lost queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OverUdp {
    pub queries: u64,
    pub answers: u64,
}

/// All of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounting {
    pub packets: Packets,
    pub fragments: fragments::Counts,
    pub datagrams: Datagrams,
    pub tcp_segments: tcp::Counts,
    pub messages: Messages,
    pub over_udp: OverUdp,
}

impl Accounting {
    /// Whether nothing is unaccounted for.
    pub fn is_balanced(&self) -> bool {
        let Accounting { packets, fragments, datagrams, tcp_segments, messages, .. } = self;
        let sums = [
            (
                packets.read,
                packets.datagrams + packets.fragments + packets.unknown_link + packets.not_ip + packets.malformed,
            ),
            (packets.fragments, fragments.read),
            (packets.datagrams, datagrams.whole),
            (
                datagrams.whole + datagrams.reassembled,
                datagrams.udp
                    + datagrams.tcp_segments
                    + datagrams.tcp_answers
                    + datagrams.other_protocol
                    + datagrams.other_port
                    + datagrams.cut
                    + datagrams.malformed,
            ),
            (datagrams.udp, messages.udp),
            (datagrams.tcp_segments, tcp_segments.read),
            (
                messages.udp + messages.tcp + messages.records,
                messages.kept
                    + messages.answers
                    + messages.upstream
                    + messages.other_server
                    + messages.after_truncation
                    + messages.other_operation
                    + messages.other_port
                    + messages.other_record
                    + messages.malformed
                    + messages.not_in_share
                    + messages.outside_cut,
            ),
        ];
        fragments.is_balanced() && tcp_segments.is_balanced() && sums.iter().all(|(whole, parts)| whole == parts)
    }
}

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
            (&mut self.tcp_ports, &mut self.dns_over_tcp, tcp::begins_with_query(payload).then_some(true))
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
