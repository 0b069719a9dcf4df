//! The classic format of captures: a header of 24 bytes, then packets behind headers of 16 bytes. Both byte orders,
//! times in microseconds or nanoseconds; also the variant of Kuznetzov, whose packets have headers of 24 bytes.

use super::input::{Captured, End, Input, Item, Step};

const HEADER_BYTES: usize = 24;

/// The longest packet that is believed; libpcap's own limit is 262,144.
const PACKET_BYTES_MAX: u32 = 1 << 20;

/// Reads one file.
pub struct Pcap {
    is_big_endian: bool,
    ns_per_unit: i64,
    head_bytes: usize,
    link: u16,
}

impl Pcap {
    /// By the four bytes that a file begins with.
    pub fn is(magic: [u8; 4]) -> bool {
        magic_of(magic).is_some()
    }

    /// Reads the header.
    pub fn open(input: &mut Input) -> Result<Self, End> {
        let offset = input.offset();
        let header: [u8; HEADER_BYTES] = match input.look(HEADER_BYTES).map_err(End::Unread)?.try_into() {
            Ok(header) => header,
            Err(_) => return Err(End::Cut(offset)),
        };
        let magic = *header.first_chunk().expect("24 bytes are there");
        let (is_big_endian, ns_per_unit, head_bytes) =
            magic_of(magic).ok_or(End::Damaged(offset, "no magic number"))?;
        let link: [u8; 4] = *header.last_chunk().expect("24 bytes are there");
        let link = if is_big_endian { u32::from_be_bytes(link) } else { u32::from_le_bytes(link) };
        input.pass(HEADER_BYTES);
        // The upper bits say whether packets end with a checksum of the frame.
        Ok(Pcap { is_big_endian, ns_per_unit, head_bytes, link: (link & 0xffff) as u16 })
    }

    /// Calls `each` with the next packet.
    #[inline]
    pub fn next(&self, input: &mut Input, each: impl FnOnce(Item)) -> Step {
        let offset = input.offset();
        let head = match input.look(self.head_bytes) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok([]) => return Step::End(End::Whole),
            Ok(head) if head.len() < self.head_bytes => return Step::End(End::Cut(offset)),
            Ok(head) => head,
        };
        let number = |at: usize| {
            let bytes = *head[at..].first_chunk().expect("the head is there");
            if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (seconds, part, length) = (number(0), number(4), number(8));
        if length > PACKET_BYTES_MAX {
            return Step::End(End::Damaged(offset, "a packet of more than a megabyte"));
        }
        let whole_bytes = self.head_bytes + length as usize;
        let bytes = match input.look(whole_bytes) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok(bytes) if bytes.len() < whole_bytes => return Step::End(End::Cut(offset)),
            Ok(bytes) => &bytes[self.head_bytes..],
        };
        let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(part) * self.ns_per_unit;
        each(Item::Packet(Captured { time_ns, link: self.link, bytes }));
        input.pass(whole_bytes);
        Step::More
    }
}

/// Whether the byte order is big endian, the unit of times, the length of a packet's header.
fn magic_of(magic: [u8; 4]) -> Option<(bool, i64, usize)> {
    let known = |number| match number {
        0xa1b2_c3d4u32 => Some((1000, 16)),
        0xa1b2_3c4d => Some((1, 16)),
        0xa1b2_cd34 => Some((1000, 24)),
        _ => None,
    };
    let little = known(u32::from_le_bytes(magic)).map(|(unit, head)| (false, unit, head));
    little.or_else(|| known(u32::from_be_bytes(magic)).map(|(unit, head)| (true, unit, head)))
}
