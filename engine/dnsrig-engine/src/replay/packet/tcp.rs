//! Segments of TCP (RFC 9293 §3.1).

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'p> {
    pub source_port: u16,
    pub destination_port: u16,
    /// The number of the payload's first byte. A SYN takes a number as well.
    pub sequence: u32,
    pub is_syn: bool,
    /// FIN or RST: nothing comes behind it.
    pub is_end: bool,
    pub payload: &'p [u8],
}

/// Reads a segment from the payload of an IP packet; none if it is malformed.
#[inline]
pub fn parse(payload: &[u8]) -> Option<Segment<'_>> {
    let header: &[u8; 20] = payload.first_chunk()?;
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < 20 {
        return None;
    }
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_syn = header[13] & SYN != 0;
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    Some(Segment {
        source_port: number(0),
        destination_port: number(2),
        // Fast open (RFC 7413): the payload of a SYN stands behind it.
        sequence: sequence.wrapping_add(u32::from(is_syn)),
        is_syn,
        is_end: header[13] & (FIN | RST) != 0,
        payload: payload.get(header_bytes..)?,
    })
}
