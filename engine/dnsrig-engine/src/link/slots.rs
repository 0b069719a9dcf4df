//! Room for packets, set aside once: no allocation while packets flow.

use std::mem;

use slab::Slab;

/// Slots are a multiple of so many bytes long: a cache line.
const ALIGN_BYTES: usize = 64;

/// As many slots as packets may wait, and one to read the next into.
///
/// The room is reserved at the start and is touched, by the kernel's reckoning used, only as far as the most that ever
/// waited at once: the slot that became free last is used first.
pub struct Slots {
    bytes: Box<[u8]>,
    slot_bytes: usize,
    /// The slots in use, and the spare one.
    taken: Slab<()>,
    spare: usize,
}

impl Slots {
    /// For `waiting` packets of at most `mtu_bytes`; a slot holds at least one byte more, so that larger ones show.
    pub fn new(waiting: u32, mtu_bytes: u16) -> Self {
        let slot_bytes = slot_bytes(mtu_bytes);
        let bytes = vec![0; (waiting as usize + 1) * slot_bytes].into_boxed_slice();
        let mut taken = Slab::with_capacity(waiting as usize + 1);
        let spare = taken.insert(());
        Slots { bytes, slot_bytes, taken, spare }
    }

    /// The slot that is not in use, and stays so until [`Slots::keep`].
    pub fn spare(&mut self) -> &mut [u8] {
        let start = self.spare * self.slot_bytes;
        &mut self.bytes[start..start + self.slot_bytes]
    }

    /// Takes the spare slot into use, and makes another one spare. At most one fewer than all may be in use.
    pub fn keep(&mut self) -> u32 {
        debug_assert!(self.taken.len() < self.bytes.len() / self.slot_bytes);
        mem::replace(&mut self.spare, self.taken.insert(())) as u32
    }

    /// Gives a slot back. What it holds stays until it is spare and written to.
    pub fn release(&mut self, slot: u32) {
        self.taken.remove(slot as usize);
    }

    /// The first `length` bytes of a slot.
    pub fn get(&self, slot: u32, length: usize) -> &[u8] {
        let start = slot as usize * self.slot_bytes;
        &self.bytes[start..start + length]
    }
}

/// How much a packet takes, in bytes.
pub fn slot_bytes(mtu_bytes: u16) -> usize {
    (usize::from(mtu_bytes) + 1).next_multiple_of(ALIGN_BYTES)
}
