//! IPv4 (RFC 791), IPv6 with extension headers (RFC 8200), UDP (RFC 768), and tunnels that wrap IP.

use std::net::{Ipv4Addr, Ipv6Addr};

use dnsrig_net::ipv6::{Fragment, past_extensions};

use super::link::{Link, network};

/// The transport protocols that matter here.
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// An IP packet, without its header and without padding behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'p> {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub protocol: u8,
    pub payload: &'p [u8],
    /// Whether the payload is all that was sent: less if the capture cuts packets.
    pub is_whole: bool,
    pub fragment: Option<Fragment>,
}

/// Reads the packet; none if it is malformed. IPv4 addresses are mapped into IPv6.
#[inline]
pub fn parse(packet: &[u8]) -> Option<Packet<'_>> {
    match packet.first()? >> 4 {
        4 => parse_v4(packet),
        6 => parse_v6(packet),
        _ => None,
    }
}

#[inline]
fn parse_v4(packet: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // Segmentation offload leaves 0: the packet is longer than the field can say.
    let total = if total == 0 { packet.len() } else { total };
    if header_bytes < 20 || total < header_bytes {
        return None;
    }
    let payload = packet.get(header_bytes..total.min(packet.len()))?;
    let flags = u16::from_be_bytes([header[6], header[7]]);
    let fragment = (flags & 0x3fff != 0).then(|| Fragment {
        id: u32::from(u16::from_be_bytes([header[4], header[5]])),
        offset: usize::from(flags & 0x1fff) * 8,
        more_follow: flags & 0x2000 != 0,
    });
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).to_ipv6_mapped();
    Some(Packet {
        source: address(12),
        destination: address(16),
        protocol: header[9],
        payload,
        is_whole: total <= packet.len(),
        fragment,
    })
}

#[inline]
fn parse_v6(packet: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // A jumbogram, or segmentation offload.
    let total = if length == 0 { packet.len() } else { 40 + length };
    let (protocol, payload, fragment) = past_extensions(header[6], &packet[40..total.min(packet.len())])?;
    let address = |at: usize| Ipv6Addr::from(*header[at..].first_chunk::<16>().expect("the header has them"));
    Some(Packet {
        source: address(8),
        destination: address(24),
        protocol,
        payload,
        is_whole: total <= packet.len(),
        fragment,
    })
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'p> {
    pub source_port: u16,
    pub destination_port: u16,
    /// What of the payload is there.
    pub payload: &'p [u8],
    /// Whether that is all.
    pub is_whole: bool,
}

/// Reads a datagram from the payload of an IP packet; none if it is malformed.
#[inline]
pub fn parse_udp(payload: &[u8], is_whole: bool) -> Option<Datagram<'_>> {
    let header: &[u8; 8] = payload.first_chunk()?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let length = usize::from(number(4));
    if length < 8 || (is_whole && length > payload.len()) {
        return None;
    }
    Some(Datagram {
        source_port: number(0),
        destination_port: number(2),
        payload: &payload[8..length.min(payload.len())],
        is_whole: length <= payload.len(),
    })
}

/// A packet is in no more packets.
pub const DEPTH_MAX: usize = 4;

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// Bits of the first two bytes of GRE: a checksum, a key, a sequence number; of the others, which are 0, some are those
/// of other versions.
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;

/// Ethernet, and ERSPAN of the types I and II, and III.
const ETHERNET: u16 = 0x6558;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// The ports of VXLAN (IANA's, and the default of Linux), and of Geneve.
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;

/// The header of VXLAN, and of Geneve without options.
const HEADER_BYTES: usize = 8;

/// The IP packet that a packet carries; none if it carries something else. Ports of DNS carry DNS.
#[inline]
pub fn inner<'p>(packet: &Packet<'p>, ports: &[u16]) -> Option<&'p [u8]> {
    match packet.protocol {
        _ if packet.fragment.is_some() => None,
        UDP => {
            let port = u16::from_be_bytes(*packet.payload.get(2..)?.first_chunk()?);
            if !VXLAN.contains(&port) && port != GENEVE || ports.contains(&port) {
                return None;
            }
            let payload = parse_udp(packet.payload, packet.is_whole)?.payload;
            if port == GENEVE { geneve(payload) } else { vxlan(payload) }
        }
        IP_IN_IP | IPV6_IN_IP => Some(packet.payload),
        GRE => gre(packet.payload),
        _ => None,
    }
}

fn gre(packet: &[u8]) -> Option<&[u8]> {
    let &[a, b, c, d] = packet.first_chunk()?;
    let (flags, protocol) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    if flags & !(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE) != 0 {
        return None;
    }
    let fields = [GRE_CHECKSUM, GRE_KEY, GRE_SEQUENCE].iter().filter(|field| flags & **field != 0).count();
    let rest = packet.get(4 + 4 * fields..)?;
    match protocol {
        ETHERNET => Link::Ethernet.ip(rest),
        // Type II has a header and numbers its packets, type I has neither.
        ERSPAN if flags & GRE_SEQUENCE == 0 => Link::Ethernet.ip(rest),
        ERSPAN => Link::Ethernet.ip(rest.get(8..)?),
        // The last bit of its header says whether another part follows.
        ERSPAN_3 => Link::Ethernet.ip(rest.get(if rest.get(11)? & 1 == 0 { 12 } else { 20 }..)?),
        _ => network(protocol, rest),
    }
}

fn vxlan(packet: &[u8]) -> Option<&[u8]> {
    // The bit says that the number of a network is valid.
    (packet.first()? & 0x08 != 0).then(|| Link::Ethernet.ip(packet.get(HEADER_BYTES..)?)).flatten()
}

fn geneve(packet: &[u8]) -> Option<&[u8]> {
    let &[first, _, high, low] = packet.first_chunk()?;
    // Version 0, and the length of options in words.
    let rest = packet.get(HEADER_BYTES + 4 * usize::from(first & 0x3f)..)?;
    match u16::from_be_bytes([high, low]) {
        _ if first & 0xc0 != 0 => None,
        ETHERNET => Link::Ethernet.ip(rest),
        protocol => network(protocol, rest),
    }
}
