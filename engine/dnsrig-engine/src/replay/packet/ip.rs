//! IPv4 (RFC 791) and IPv6 with extension headers (RFC 8200).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::net::ipv6::{Fragment, past_extensions};

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
