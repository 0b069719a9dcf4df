//! UDP (RFC 768).

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
pub fn parse(payload: &[u8], is_whole: bool) -> Option<Datagram<'_>> {
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
