//! IP packets within IP packets: IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784, RFC 2890) with IP, Ethernet or ERSPAN in
//! it, VXLAN (RFC 7348) and Geneve (RFC 8926).

use super::{
    ip::{Packet, UDP},
    link::{Link, network},
    udp,
};

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
            let payload = udp::parse(packet.payload, packet.is_whole)?.payload;
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
