//! The transfers that are under way: their memory, and their order on each connection.

use slab::Slab;

use super::secondaries::Job;
use crate::{dns::xfr::Incoming, transfer::sinks::Sinks};

/// No transfer.
pub const NONE: u32 = u32::MAX;

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

    /// Those of a line that had no sign of life for `timeout_ns`, and when the next may be of age.
    ///
    /// A transfer's clock begins when it is asked for, and again with each of its messages. While it waits for its
    /// first, it may wait behind those that were asked for earlier, so what comes of them, and their ends, are signs of
    /// life too. So are bytes of a message that is not complete (`partial_ns`), for the first in line and all that have
    /// begun.
    pub fn expired(&self, line: InFlightList, partial_ns: i64, timeout_ns: i64, now_ns: i64) -> (Vec<u32>, i64) {
        let (mut found, mut floor_ns, mut due_ns) = (Vec::new(), 0, i64::MAX);
        for (place, transfer) in self.in_line(line) {
            floor_ns = floor_ns.max(transfer.ahead_ns);
            let partial_ns = if transfer.first_ns > 0 || place == line.head { partial_ns } else { 0 };
            let own_ns = transfer.last_ns.max(transfer.asked_ns).max(partial_ns);
            let waiting_ns = if transfer.first_ns == 0 { floor_ns } else { 0 };
            let clock_ns = own_ns.max(waiting_ns);
            if clock_ns + timeout_ns <= now_ns {
                found.push(place);
            } else {
                due_ns = due_ns.min(clock_ns + timeout_ns);
            }
            floor_ns = floor_ns.max(transfer.last_ns);
        }
        (found, due_ns)
    }
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
