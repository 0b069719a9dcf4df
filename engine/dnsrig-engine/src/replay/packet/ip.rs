//! IPv4 (RFC 791) and IPv6 with extension headers (RFC 8200).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Extension headers of one packet: no more are passed over.
const EXTENSIONS_MAX: usize = 16;

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

/// Which part of a datagram it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub id: u32,
    /// Where in the datagram it stands.
    pub offset: usize,
    pub more_follow: bool,
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

/// Passes over extension headers: the protocol behind them, its part, and which fragment it is. What stands behind the
/// fragment header is read once the datagram is put together.
#[inline]
pub fn past_extensions(mut protocol: u8, mut payload: &[u8]) -> Option<(u8, &[u8], Option<Fragment>)> {
    for _ in 0..EXTENSIONS_MAX {
        let bytes = match protocol {
            // Hop-by-hop, routing, destination, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => 8 + 8 * usize::from(*payload.get(1)?),
            // Authentication (RFC 4302 §2.2) counts in words of four bytes.
            51 => 8 + 4 * usize::from(*payload.get(1)?),
            44 => 8,
            _ => break,
        };
        let (head, rest) = payload.split_at_checked(bytes)?;
        let is_fragment_header = protocol == 44;
        (protocol, payload) = (head[0], rest);
        let place = u16::from_be_bytes([head[2], head[3]]);
        // An atomic fragment is a whole datagram (RFC 6946).
        if is_fragment_header && place & 0xfff9 != 0 {
            let id = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
            let fragment = Fragment { id, offset: usize::from(place & 0xfff8), more_follow: place & 1 != 0 };
            return Some((protocol, payload, Some(fragment)));
        }
    }
    Some((protocol, payload, None))
}
