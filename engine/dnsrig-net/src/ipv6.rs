//! The extension headers of IPv6 (RFC 8200 §4). No I/O.

/// The number of extension headers of one packet that are passed over at most.
const EXTENSIONS_MAX: usize = 16;

/// The part of a datagram that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub id: u32,
    /// Its place in the datagram, in bytes.
    pub offset: usize,
    pub more_follow: bool,
}

/// Passes over extension headers, and returns the protocol after them, its payload, and the fragment if it is one. What
/// follows a fragment header is read after the datagram was put together.
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
