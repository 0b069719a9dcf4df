//! Link layers: where in a captured packet the IP packet begins. The numbers are in the registry LINKTYPE_.

/// A link layer that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    /// A family of the capturing system, then IP: BSD's loopback.
    Loopback,
    RawIp,
    Ppp,
    /// Linux "cooked", versions 1 and 2.
    Cooked,
    Cooked2,
    Nflog,
    CiscoHdlc,
}

/// Tags and labels before IP: no more are passed over.
const TAGS_MAX: usize = 8;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// The attribute of NFLOG that holds the packet.
const NFLOG_PAYLOAD: u16 = 9;

impl Link {
    /// The link layer of a number in a capture.
    pub fn of(number: u16) -> Option<Self> {
        Some(match number {
            0 | 108 => Link::Loopback,
            1 => Link::Ethernet,
            9 | 50 => Link::Ppp,
            12 | 14 | 101 | 228 | 229 => Link::RawIp,
            104 => Link::CiscoHdlc,
            113 => Link::Cooked,
            239 => Link::Nflog,
            276 => Link::Cooked2,
            _ => return None,
        })
    }

    /// The IP packet within a captured one, if there is one.
    #[inline]
    pub fn ip(self, packet: &[u8]) -> Option<&[u8]> {
        match self {
            Link::Ethernet => network(number(packet, 12)?, packet.get(14..)?),
            Link::RawIp => Some(packet),
            // The family's number differs by system; the IP header says which it is.
            Link::Loopback => packet.get(4..),
            Link::Ppp => ppp(packet),
            Link::Cooked => network(number(packet, 14)?, packet.get(16..)?),
            Link::Cooked2 => network(number(packet, 0)?, packet.get(20..)?),
            Link::Nflog => nflog(packet),
            Link::CiscoHdlc => network(number(packet, 2)?, packet.get(4..)?),
        }
    }

    /// The EtherType of a captured packet, behind tags of VLANs, where the link layer has one.
    pub fn ethertype(self, packet: &[u8]) -> Option<u16> {
        let mut at = match self {
            Link::Ethernet => 12,
            Link::Cooked => 14,
            Link::CiscoHdlc => 2,
            Link::Cooked2 => 0,
            _ => return None,
        };
        for _ in 0..TAGS_MAX {
            match number(packet, at)? {
                0x8100 | 0x88a8 | 0x9100 | 0x9200 => at += 4,
                ethertype => return Some(ethertype),
            }
        }
        None
    }
}

/// What follows an EtherType, past VLAN tags (802.1Q, 802.1ad), MPLS labels and a PPPoE session.
#[inline]
pub(super) fn network(mut ethertype: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..TAGS_MAX {
        match ethertype {
            IPV4 | IPV6 => return Some(rest),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => (ethertype, rest) = (number(rest, 2)?, rest.get(4..)?),
            0x8847 | 0x8848 => return mpls(rest),
            0x8864 => return ppp(rest.get(6..)?),
            _ => return None,
        }
    }
    None
}

/// Past the labels up to the last (RFC 3032); what follows says itself whether it is IP.
fn mpls(packet: &[u8]) -> Option<&[u8]> {
    let last = packet.chunks_exact(4).take(TAGS_MAX).position(|label| label[2] & 1 != 0)?;
    packet.get(4 * (last + 1)..)
}

/// With or without the HDLC-like framing (RFC 1662), with or without a compressed protocol number (RFC 1661 §6.5).
fn ppp(packet: &[u8]) -> Option<&[u8]> {
    let packet = packet.strip_prefix(&[0xff, 0x03]).unwrap_or(packet);
    match number(packet, 0)? {
        PPP_IPV4 | PPP_IPV6 => packet.get(2..),
        0x0281 | 0x0283 => mpls(packet.get(2..)?),
        short if matches!(short >> 8, PPP_IPV4 | PPP_IPV6) => packet.get(1..),
        _ => None,
    }
}

/// Attributes behind four bytes, in the byte order of the capturing host; the payload is one of them.
fn nflog(packet: &[u8]) -> Option<&[u8]> {
    let mut rest = packet.get(4..)?;
    loop {
        let head: &[u8; 4] = rest.first_chunk()?;
        let little = (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
        let big = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
        // The number of an attribute is small: read in the wrong order it is 256 or more.
        let (length, kind) = if little.1 & 0x7fff < 256 { little } else { big };
        let length = usize::from(length);
        if length < 4 {
            return None;
        }
        if kind & 0x7fff == NFLOG_PAYLOAD {
            return rest.get(4..length.min(rest.len()));
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[inline]
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
