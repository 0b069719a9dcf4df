//! What became of everything that was read. At each level the parts add up to the whole.

use serde::Serialize;

use crate::replay::packet::{fragments, streams};

/// Captured packets: `read` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    pub read: u64,
    /// With a whole IP datagram.
    pub datagrams: u64,
    /// With a fragment of one.
    pub fragments: u64,
    /// Of a link layer that is not known.
    pub unknown_link: u64,
    /// ARP and the like.
    pub not_ip: u64,
    /// The IP header makes no sense, or is cut.
    pub malformed: u64,
}

/// IP datagrams: `whole` and `reassembled` are together the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// That came in one packet.
    pub whole: u64,
    /// That were put together from fragments.
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
    /// Of dnstap and C-DNS.
    pub records: u64,
    /// Queries that are in the stream, each once, however often --multiply repeats it.
    pub kept: u64,
    /// Of these, and before --cut: from addresses that others ask in the same captures.
    pub from_servers: u64,
    pub answers: u64,
    /// Of these, over UDP and truncated: who got one asks again over TCP.
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
    pub tcp_segments: streams::Counts,
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
