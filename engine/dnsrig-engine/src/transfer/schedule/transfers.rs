//! The transfers that are under way: their memory, and their order on each connection.

use slab::Slab;

use super::secondaries::Job;
use crate::{
    dns::xfr::{Cut, Incoming},
    transfer::sinks::Sinks,
};

/// No transfer.
pub const NONE: u32 = u32::MAX;

/// Bytes of a message that is not complete are a sign of life for this many timeouts. With a timeout of 10 s the
/// largest message may take a minute, which is 9 kbit/s; without a limit, a byte now and then would keep a transfer for
/// ever.
const PARTIAL_TIMEOUTS: i64 = 5;

/// One query, and what has come of it.
pub struct Transfer {
    pub job: Job,
    pub slot: u32,
    pub id: u16,
    /// It asks for the SOA that comes before the zone.
    pub is_soa: bool,
    pub asked_ns: i64,
    /// 0: nothing has come.
    pub first_ns: i64,
    pub last_ns: i64,
    /// When a message last brought a record; 0: none did.
    pub record_ns: i64,
    pub pause_max_ns: i64,
    /// When one that was asked for earlier on the connection ended last.
    pub ahead_ns: i64,
    /// Messages of the connection before its own first.
    pub messages_before: u32,
    /// … and up to its last.
    pub messages_last: u32,
    pub incoming: Incoming,
    pub sinks: Option<Box<Sinks>>,
    previous: u32,
    next: u32,
}

/// How long transfers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// A transfer is given up after so long without a record.
    pub timeout_ns: i64,
    /// A transfer is given up so long after its first message.
    pub time_ns_max: i64,
}

/// The transfers of a connection in the order in which they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightList {
    pub head: u32,
    tail: u32,
    pub count: u32,
}

impl Default for InFlightList {
    fn default() -> Self {
        InFlightList { head: NONE, tail: NONE, count: 0 }
    }
}

impl Transfer {
    /// One that was just asked for. The last two links are set when it joins its line.
    pub fn new(job: Job, slot: u32, id: u16, is_soa: bool, asked_ns: i64, incoming: Incoming) -> Self {
        Transfer {
            job,
            slot,
            id,
            is_soa,
            asked_ns,
            first_ns: 0,
            last_ns: 0,
            record_ns: 0,
            pause_max_ns: 0,
            ahead_ns: 0,
            messages_before: 0,
            messages_last: 0,
            incoming,
            sinks: None,
            previous: NONE,
            next: NONE,
        }
    }

    /// Notes a message that came; `messages` counts those of its connection, this one included.
    pub fn touch(&mut self, now_ns: i64, messages: u32) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
            self.messages_before = messages.wrapping_sub(1);
        } else {
            self.pause_max_ns = self.pause_max_ns.max(now_ns - self.last_ns);
        }
        (self.last_ns, self.messages_last) = (now_ns, messages);
    }
}

/// All transfers of a thread. Places are used again, so nothing is allocated once as many were under way as ever are.
#[derive(Default)]
pub struct Transfers(Slab<Transfer>);

impl Transfers {
    /// The place that the next one will have.
    pub fn next_place(&self) -> u32 {
        self.0.vacant_key() as u32
    }

    /// Puts a transfer to the end of its connection's line, at [`Transfers::next_place`].
    pub fn join(&mut self, mut transfer: Transfer, line: &mut InFlightList) {
        transfer.previous = line.tail;
        let place = self.next_place();
        if line.tail == NONE {
            line.head = place;
        } else {
            self.get_mut(line.tail).next = place;
        }
        (line.tail, line.count) = (place, line.count + 1);
        self.0.insert(transfer);
    }

    /// Takes a transfer out of its line at `now_ns`; whether one that was asked for earlier is still in it.
    pub fn leave(&mut self, place: u32, line: &mut InFlightList, now_ns: i64) -> (Transfer, bool) {
        let transfer = self.0.remove(place as usize);
        let Transfer { previous, next, ahead_ns, .. } = transfer;
        if previous == NONE {
            line.head = next;
        } else {
            self.get_mut(previous).next = next;
        }
        if next == NONE {
            line.tail = previous;
        } else {
            let next = self.get_mut(next);
            next.previous = previous;
            next.ahead_ns = next.ahead_ns.max(ahead_ns).max(now_ns);
        }
        line.count -= 1;
        (transfer, previous != NONE)
    }

    pub fn get(&self, place: u32) -> &Transfer {
        &self.0[place as usize]
    }

    pub fn get_mut(&mut self, place: u32) -> &mut Transfer {
        &mut self.0[place as usize]
    }

    /// A line from its head on, with places.
    pub fn in_line(&self, line: InFlightList) -> impl Iterator<Item = (u32, &Transfer)> {
        let mut place = line.head;
        std::iter::from_fn(move || {
            let transfer = (place != NONE).then(|| (place, self.get(place)))?;
            place = transfer.1.next;
            Some(transfer)
        })
    }

    /// Transfers of a line that are given up at `now_ns`, each with the reason; and when the next may be given up.
    ///
    /// A transfer's clock begins when it is asked for, and again with each of its messages that brings a record. While
    /// it waits for its first message, it may wait behind those that were asked for earlier, so what comes of them, and
    /// their ends, are signs of life too. So are, for a while, bytes of a message that is not complete
    /// (`partial_ns`), for the first in line and all that have begun. The time that a transfer may take in all begins
    /// with its first message.
    pub fn expired(
        &self,
        line: InFlightList,
        partial_ns: i64,
        time_limits: TimeLimits,
        now_ns: i64,
    ) -> (Vec<(u32, Cut)>, i64) {
        let (mut found, mut floor_ns, mut due_ns) = (Vec::new(), 0, i64::MAX);
        for (place, transfer) in self.in_line(line) {
            floor_ns = floor_ns.max(transfer.ahead_ns);
            let (has_begun, is_head) = (transfer.first_ns > 0, place == line.head);
            let waiting_ns = if has_begun { 0 } else { floor_ns };
            let record_ns = transfer.record_ns.max(transfer.asked_ns).max(waiting_ns);
            let partial_ns = if has_begun || is_head { partial_ns } else { 0 };
            let counted_ns = partial_ns.min(record_ns + PARTIAL_TIMEOUTS * time_limits.timeout_ns);
            let silent_ns = record_ns.max(counted_ns) + time_limits.timeout_ns;
            let over_ns = if has_begun { transfer.first_ns.saturating_add(time_limits.time_ns_max) } else { i64::MAX };
            if over_ns <= now_ns {
                found.push((place, Cut::TooLong));
            } else if silent_ns <= now_ns {
                let came = transfer.last_ns.max(partial_ns) > record_ns;
                found.push((place, if came { Cut::NoProgress } else { Cut::TimedOut }));
            } else {
                due_ns = due_ns.min(silent_ns).min(over_ns);
            }
            floor_ns = floor_ns.max(transfer.last_ns);
        }
        (found, due_ns)
    }
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
