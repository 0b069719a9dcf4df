//! One direction of a path: a line of packets that wait until they are due. No I/O and no clock: times are given.
//!
//! What a packet meets, in this order: loss, the path's MTU, the limit of those that wait (drop tail), and then time.
//! It is due
//!
//! | | order kept | order free |
//! | --- | --- | --- |
//! | without a rate | at now + delay, but never before the packet ahead of it | at now + delay |
//! | with a rate | at max(due time of the packet ahead, now + delay) + its time on the wire | at max(when the wire is free, now) + its time on the wire + delay |
//!
//! where *delay* is drawn for each packet, uniformly from delay - jitter to delay + jitter. With a rate and order kept,
//! the wire lies behind the delay, as in netem: a packet with much jitter holds up all behind it, so the typical
//! delay is well above the one asked for. With order free the wire lies before the delay: packets leave it one after
//! another, then overtake each other. Without jitter both are the same.
//!
//! What the packet's far end has for a delay of its own comes after all that, in both directions: packets of different
//! far ends overtake each other, and packets of one far end keep their order, although no state is kept for a far end.

use std::{cmp::Reverse, collections::BinaryHeap, mem};

use dnsrig_core::random::Random;
use slab::Slab;

use super::spec::{Order, Spec};

/// What becomes of a packet that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It will be delivered.
    Waits,
    /// It is lost by chance.
    Lost,
    /// It does not fit through.
    TooBig,
    /// Too many wait already.
    Overflowed,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<'a> {
    /// When it entered.
    pub taken_ns: i64,
    /// When it should leave.
    pub due_ns: i64,
    /// The packet.
    pub bytes: &'a [u8],
}

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: i64,
    /// Which one it was that waited: equal ones leave as they came.
    number: u64,
    taken_ns: i64,
    slot: u32,
    bytes: u16,
}

/// The packets of one direction.
pub struct DelayQueue {
    spec: Spec,
    mtu_bytes: u16,
    loss: Loss,
    jitter: Random,
    slots: Slots,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: u64,
    numbered: u64,
    far_packets: u64,
    /// When the packet ahead is due (order kept), or the wire is free (order free).
    ahead_ns: i64,
}

impl DelayQueue {
    /// An empty line from `start_ns` on, between interfaces whose MTU is `mtu_bytes`. The same `seed` and `purpose`
    /// make the same decisions for the same packets at the same times.
    pub fn new(spec: Spec, mtu_bytes: u16, seed: u64, purpose: u64, start_ns: i64) -> Self {
        let random = |part: u64| Random::new(seed, purpose.wrapping_mul(2) + part);
        DelayQueue {
            mtu_bytes: spec.mtu_bytes.map_or(mtu_bytes, |path_bytes| path_bytes.min(mtu_bytes)),
            loss: Loss::new(&spec.loss, random(0), start_ns),
            jitter: random(1),
            slots: Slots::new(spec.limit_packets, mtu_bytes),
            waiting: BinaryHeap::with_capacity(spec.limit_packets as usize),
            waiting_bytes: 0,
            numbered: 0,
            far_packets: 0,
            ahead_ns: i64::MIN,
            spec,
        }
    }

    /// Where the next packet is to be written before [`DelayQueue::take`]; longer by at least one byte than any that
    /// fits.
    pub fn room(&mut self) -> &mut [u8] {
        self.slots.spare()
    }

    /// Takes the packet that fills the first `length` bytes of the room at `now_ns`, which never goes back.
    ///
    /// Unless it waits, it stays in the room until another one is written there.
    pub fn take(&mut self, length: usize, now_ns: i64) -> Fate {
        if self.loss.hits(now_ns) {
            return Fate::Lost;
        }
        let bytes = match u16::try_from(length) {
            Ok(bytes) if bytes <= self.mtu_bytes => bytes,
            _ => return Fate::TooBig,
        };
        if self.waiting.len() >= self.spec.limit_packets as usize {
            return Fate::Overflowed;
        }
        let due_ns = self.due_after(bytes, now_ns) + self.far_delay_ns(length);
        let slot = self.slots.keep();
        self.waiting.push(Reverse(Waiting { due_ns, number: self.numbered, taken_ns: now_ns, slot, bytes }));
        self.numbered += 1;
        self.waiting_bytes += u64::from(bytes);
        Fate::Waits
    }

    /// When the next packet is due.
    pub fn due_ns(&self) -> Option<i64> {
        self.waiting.peek().map(|Reverse(next)| next.due_ns)
    }

    /// Takes out the next packet that is due by `now_ns`.
    pub fn pop(&mut self, now_ns: i64) -> Option<Departure<'_>> {
        if self.due_ns()? > now_ns {
            return None;
        }
        let Reverse(Waiting { due_ns, taken_ns, slot, bytes, .. }) = self.waiting.pop()?;
        self.slots.release(slot);
        self.waiting_bytes -= u64::from(bytes);
        Some(Departure { taken_ns, due_ns, bytes: self.slots.get(slot, bytes.into()) })
    }

    /// How many packets wait.
    pub fn waiting_packets(&self) -> u32 {
        // At most the limit.
        self.waiting.len() as u32
    }

    /// And how many bytes.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// How many packets that waited had a far end with a delay of its own; none where there is no such far end.
    pub fn far_packets(&self) -> Option<u64> {
        (!self.spec.far.prefixes.is_empty()).then_some(self.far_packets)
    }

    /// The largest packet that fits through.
    pub fn mtu_bytes(&self) -> u16 {
        self.mtu_bytes
    }

    /// Whether senders of larger packets get an ICMP error.
    pub fn is_icmp_sent(&self) -> bool {
        self.spec.icmp
    }

    fn due_after(&mut self, bytes: u16, now_ns: i64) -> i64 {
        let delay_ns = self.draw_delay_ns();
        let wire_ns = self.wire_ns(bytes);
        match (self.spec.order, wire_ns) {
            (Order::Kept, wire_ns) => {
                self.ahead_ns = self.ahead_ns.max(now_ns + delay_ns) + wire_ns.unwrap_or(0);
                self.ahead_ns
            }
            (Order::Free, Some(wire_ns)) => {
                self.ahead_ns = self.ahead_ns.max(now_ns) + wire_ns;
                self.ahead_ns + delay_ns
            }
            (Order::Free, None) => now_ns + delay_ns,
        }
    }

    /// What the far end of the packet in the room adds.
    fn far_delay_ns(&mut self, length: usize) -> i64 {
        if self.spec.far.prefixes.is_empty() {
            return 0;
        }
        let found = self.spec.far.packet_delay_ns(&self.slots.spare()[..length]);
        self.far_packets += u64::from(found.is_some());
        found.unwrap_or(0)
    }

    fn draw_delay_ns(&mut self) -> i64 {
        let Spec { delay_ns, jitter_ns, .. } = self.spec;
        if jitter_ns == 0 {
            return delay_ns;
        }
        // Both are at most a minute.
        delay_ns - jitter_ns + self.jitter.below(2 * jitter_ns.unsigned_abs() + 1).cast_signed()
    }

    /// How long the wire is busy with a packet, rounded up: never faster than the rate.
    fn wire_ns(&self, bytes: u16) -> Option<i64> {
        let bits_ns = u64::from(bytes) * 8 * 1_000_000_000;
        self.spec.rate_bit_per_s.map(|rate| bits_ns.div_ceil(rate).cast_signed())
    }
}

/// Which packets are lost: each by itself, with a probability that may change over time.
struct Loss {
    /// From when on; and below which of 2^64 a packet is lost.
    steps: Vec<(i64, u128)>,
    /// The step that holds.
    at: usize,
    random: Random,
}

impl Loss {
    /// By `steps`, (nanoseconds since the link began, share), in the order of times; the link begins at `start_ns`.
    fn new(steps: &[(i64, f64)], random: Random, start_ns: i64) -> Self {
        // A share of 1 is all of 2^64, which 64 bits do not hold.
        let threshold = |share: f64| (share * 2_f64.powi(64)) as u128;
        let steps = steps.iter().map(|(since_ns, share)| (start_ns + since_ns, threshold(*share))).collect();
        Loss { steps, at: 0, random }
    }

    /// Whether the packet that comes at `now_ns` is lost; times do not go back.
    fn hits(&mut self, now_ns: i64) -> bool {
        while self.steps.get(self.at + 1).is_some_and(|(since_ns, _)| *since_ns <= now_ns) {
            self.at += 1;
        }
        // Drawn for each packet, so that a step changes nothing of what comes after it but the share.
        let drawn = u128::from(self.random.bits());
        self.steps.get(self.at).is_some_and(|(_, threshold)| drawn < *threshold)
    }
}

/// The length of a slot is a multiple of this: a cache line.
const ALIGN_BYTES: usize = 64;

/// A slot for each packet that may wait, and one to read the next packet into.
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

#[cfg(test)]
#[path = "delay_queue_tests.rs"]
mod tests;
