//! pcapng (draft-ietf-opsawg-pcapng): blocks of sections, interfaces and packets. Each section has a byte order of its
//! own, each interface a link layer and a unit of time.

use super::input::{Captured, End, Input, Item, LOOK_BYTES_MAX, Step};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// Options of an interface.
const END_OF_OPTIONS: u16 = 0;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

/// Options of statistics: packets that the interface dropped, and that the capturing system dropped.
const INTERFACE_DROPPED: u16 = 5;
const SYSTEM_DROPPED: u16 = 7;

/// A section has no more interfaces.
const INTERFACES_MAX: usize = 4096;

/// The length of a block without its body.
const BLOCK_BYTES: usize = 12;

/// An interface that packets were captured on.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    unit: Unit,
    offset_s: i64,
    /// Packets that were dropped on the way to the file, by the last statistics.
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    /// Units per second: a power of ten.
    Decimal(u128),
    /// A second has 2 to this power.
    Binary(u32),
}

/// Reads one file.
#[derive(Default)]
pub struct Pcapng {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
    /// The time of the packet before: simple packets have none of their own.
    time_ns: i64,
    /// Packets that were dropped in the sections before.
    dropped_before: u64,
    has_statistics: bool,
}

impl Pcapng {
    /// By the four bytes that a file begins with: the same in both byte orders.
    pub fn is(magic: [u8; 4]) -> bool {
        u32::from_be_bytes(magic) == SECTION
    }

    /// Reads the next block, and calls `each` if it is a packet.
    #[inline]
    pub fn next(&mut self, input: &mut Input, each: impl FnOnce(Item)) -> Step {
        let offset = input.offset();
        let head = match input.look(BLOCK_BYTES) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok([]) => return Step::End(End::Whole),
            Ok(head) => match <[u8; BLOCK_BYTES]>::try_from(head) {
                Ok(head) => head,
                Err(_) => return Step::End(End::Cut(offset)),
            },
        };
        let kind = [head[0], head[1], head[2], head[3]];
        if u32::from_be_bytes(kind) == SECTION {
            self.is_big_endian = match &head[8..] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Step::End(End::Damaged(offset, "a section without a byte order")),
            };
            self.dropped_before = self.dropped_now();
            self.interfaces.clear();
        }
        let length = self.four(&head, 4).unwrap_or(0) as usize;
        if !(BLOCK_BYTES..=LOOK_BYTES_MAX).contains(&length) || !length.is_multiple_of(4) {
            return Step::End(End::Damaged(offset, "a block of an impossible length"));
        }
        let block = match input.look(length) {
            Err(error) => return Step::End(End::Unread(error)),
            Ok(block) if block.len() < length => return Step::End(End::Cut(offset)),
            Ok(block) => block,
        };
        let Some(found) = self.block(self.four(&kind, 0).unwrap_or(0), &block[8..length - 4]) else {
            return Step::End(End::Damaged(offset, "a block that makes no sense"));
        };
        if let Some(packet) = found {
            each(Item::Packet(packet));
        }
        input.pass(length);
        Step::More
    }

    /// Packets that the capturing program did not get, if the file has statistics of them.
    pub fn dropped(&self) -> Option<u64> {
        self.has_statistics.then(|| self.dropped_now())
    }

    fn dropped_now(&self) -> u64 {
        self.interfaces.iter().fold(self.dropped_before, |sum, interface| sum.saturating_add(interface.dropped))
    }

    /// Reads the body of a block: a packet, if it is one; none of all if it makes no sense.
    #[inline]
    fn block<'b>(&mut self, kind: u32, body: &'b [u8]) -> Option<Option<Captured<'b>>> {
        match kind {
            PACKET => self.packet(self.four(body, 0)? as usize, body).map(Some),
            OLD_PACKET => self.packet(usize::from(self.two(body, 0)?), body).map(Some),
            SIMPLE_PACKET => {
                let interface = self.interfaces.first()?;
                let length = (self.four(body, 0)? as usize).min(body.len() - 4);
                Some(Some(Captured { time_ns: self.time_ns, link: interface.link, bytes: &body[4..4 + length] }))
            }
            INTERFACE => {
                if self.interfaces.len() >= INTERFACES_MAX {
                    return None;
                }
                let interface = self.interface(body)?;
                self.interfaces.push(interface);
                Some(None)
            }
            STATISTICS => {
                // What makes no sense there takes nothing from the packets.
                let _ = self.statistics(body);
                Some(None)
            }
            _ => Some(None),
        }
    }

    /// Statistics of an interface so far.
    fn statistics(&mut self, body: &[u8]) -> Option<()> {
        let number = self.four(body, 0)? as usize;
        let mut dropped = None;
        for (code, value) in self.options(body.get(12..)?) {
            if matches!(code, INTERFACE_DROPPED | SYSTEM_DROPPED) {
                let value = *value.first_chunk()?;
                let count = if self.is_big_endian { u64::from_be_bytes(value) } else { u64::from_le_bytes(value) };
                dropped = Some(count.saturating_add(dropped.unwrap_or(0)));
            }
        }
        self.interfaces.get_mut(number)?.dropped = dropped?;
        self.has_statistics = true;
        Some(())
    }

    /// The options that are whole, up to the end of options.
    fn options<'b>(&self, mut bytes: &'b [u8]) -> impl Iterator<Item = (u16, &'b [u8])> + use<'b> {
        let is_big_endian = self.is_big_endian;
        std::iter::from_fn(move || {
            let &[a, b, c, d] = bytes.first_chunk()?;
            let two = |bytes| if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
            let (code, length) = (two([a, b]), usize::from(two([c, d])));
            let value = bytes.get(4..4 + length)?;
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
            (code != END_OF_OPTIONS).then_some((code, value))
        })
    }

    fn packet<'b>(&mut self, interface: usize, body: &'b [u8]) -> Option<Captured<'b>> {
        let interface = *self.interfaces.get(interface)?;
        let units = u64::from(self.four(body, 4)?) << 32 | u64::from(self.four(body, 8)?);
        let length = self.four(body, 12)? as usize;
        let bytes = body.get(20..)?.get(..length)?;
        self.time_ns = interface.time_ns(units);
        Some(Captured { time_ns: self.time_ns, link: interface.link, bytes })
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let mut interface =
            Interface { link: self.two(body, 0)?, unit: Unit::Decimal(1_000_000), offset_s: 0, dropped: 0 };
        for (code, value) in self.options(body.get(8..)?) {
            match (code, value) {
                (RESOLUTION, &[power @ 0..=19]) => interface.unit = Unit::Decimal(10u128.pow(power.into())),
                (RESOLUTION, &[power @ 0x80..=0xbf]) => interface.unit = Unit::Binary(u32::from(power & 0x7f)),
                (RESOLUTION, _) => return None,
                (OFFSET, _) => {
                    let value = *value.first_chunk()?;
                    interface.offset_s =
                        if self.is_big_endian { i64::from_be_bytes(value) } else { i64::from_le_bytes(value) };
                }
                _ => (),
            }
        }
        Some(interface)
    }

    #[inline]
    fn four(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn two(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }
}

impl Interface {
    /// A time that has no room in 64 bits of nanoseconds is the latest that has.
    #[inline]
    fn time_ns(&self, units: u64) -> i64 {
        let ns = u128::from(units) * 1_000_000_000;
        let ns = match self.unit {
            Unit::Decimal(units_per_s) => ns / units_per_s,
            Unit::Binary(power) => ns >> power,
        };
        i64::try_from(ns).unwrap_or(i64::MAX).saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}
