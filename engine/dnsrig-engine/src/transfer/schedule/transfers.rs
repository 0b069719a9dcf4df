//! The transfers that are under way: their memory, and their order on each connection.

use dnsrig_dns::xfr::{Cut, Incoming};
use dnsrig_net::outstanding::Outstanding;
use slab::Slab;

use super::secondaries::Job;
use crate::transfer::sinks::Sinks;

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
    /// On a stream of its own: when bytes of a message came last that is not complete.
    pub partial_ns: i64,
    pub pause_max_ns: i64,
    /// When one that was asked for earlier on the connection ended last.
    pub ahead_ns: i64,
    /// Messages of the connection before its own first.
    pub messages_before: u32,
    /// … and up to its last.
    pub messages_last: u32,
    pub incoming: Incoming,
    pub sinks: Option<Box<Sinks>>,
}

/// How long transfers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// Time without a record after which a transfer is given up.
    pub timeout_ns: i64,
    /// Time from its first message after which a transfer is given up.
    pub time_ns_max: i64,
}

impl Transfer {
    /// A transfer that was just asked for.
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
            partial_ns: 0,
            pause_max_ns: 0,
            ahead_ns: 0,
            messages_before: 0,
            messages_last: 0,
            incoming,
            sinks: None,
        }
    }

    /// Notes a message that came; `messages` is the number of messages on its connection, this one included.
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

    /// Adds a transfer, at [`Transfers::next_place`].
    pub fn add(&mut self, transfer: Transfer) {
        self.0.insert(transfer);
    }

    /// Takes out a transfer that is among the `queries` of its connection until `now_ns`. Returns it, and whether a
    /// transfer that was asked for earlier is still outstanding.
    pub fn remove(&mut self, place: u32, queries: &Outstanding<u32>, now_ns: i64) -> (Transfer, bool) {
        let transfer = self.0.remove(place as usize);
        let (before, after) = queries.neighbours(transfer.id);
        if let Some(after) = after {
            let after = self.get_mut(after);
            after.ahead_ns = after.ahead_ns.max(transfer.ahead_ns).max(now_ns);
        }
        (transfer, before.is_some())
    }

    pub fn get(&self, place: u32) -> &Transfer {
        &self.0[place as usize]
    }

    pub fn get_mut(&mut self, place: u32) -> &mut Transfer {
        &mut self.0[place as usize]
    }

    /// Transfers among the `queries` of a connection that are given up at `now_ns`, each with the reason; and when the
    /// next may be given up.
    ///
    /// A transfer's clock begins when it is asked for, and again with each of its messages that brings a record. While
    /// it waits for its first message, it may wait behind transfers that were asked for earlier, so their messages and
    /// their ends are signs of life too. So are, for a while, bytes of a message that is not complete (`partial_ns`),
    /// for the first in line and all that have begun, and on a stream for its own transfer and those that were asked
    /// for later. The time that a transfer may take in all begins with its first message.
    pub fn expired(
        &self,
        queries: &Outstanding<u32>,
        partial_ns: i64,
        time_limits: TimeLimits,
        now_ns: i64,
    ) -> (Vec<(u32, Cut)>, i64) {
        let (mut found, mut floor_ns, mut due_ns) = (Vec::new(), 0, i64::MAX);
        for (number, (_, place)) in queries.iter().enumerate() {
            let transfer = self.get(place);
            floor_ns = floor_ns.max(transfer.ahead_ns);
            let (has_begun, is_head) = (transfer.first_ns > 0, number == 0);
            let waiting_ns = if has_begun { 0 } else { floor_ns };
            let record_ns = transfer.record_ns.max(transfer.asked_ns).max(waiting_ns);
            let partial_ns = if has_begun || is_head { partial_ns } else { 0 }.max(transfer.partial_ns);
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
            floor_ns = floor_ns.max(transfer.last_ns).max(transfer.partial_ns);
        }
        (found, due_ns)
    }
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
