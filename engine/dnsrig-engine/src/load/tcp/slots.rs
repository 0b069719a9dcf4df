//! Which connection the next queries go on, and which has served its time. No clock, no socket.
//!
//! A slot is the place of a connection; when one has ended, the next query in the slot begins another. Slots take
//! turns. Those whose connection is still being opened come last: a query there waits for the handshake.
//!
//! Where clients are many and slots are few, an [`Assignment`] keeps which client has which slot.

use std::collections::HashMap;

use dnsrig_core::stats::{Times, times};
use dnsrig_net::connection::{CloseReason, chain::Chain};

use crate::load::{classes::Usage, counts::Connections};

/// How slots use their connections.
#[derive(Clone, Debug)]
pub struct Policy {
    /// By class of clients.
    pub classes: Vec<Usage>,
    /// The number of queries in a row that go on one connection, with one write.
    pub burst: usize,
    /// The time after which a query is given up, and a connection that does not get anywhere.
    pub timeout_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The slot has no connection.
    Idle,
    /// The connection is being made, or is in the TLS handshake.
    Opening,
    Open,
}

#[derive(Clone, Copy)]
struct Slot {
    state: State,
    /// Whether bytes wait that the socket has no room for.
    blocked: bool,
    /// Whether it takes no queries until it is open or flows again, because enough wait, or it takes too long.
    full: bool,
    /// Whether its client has begun another connection.
    superseded: bool,
    /// The class of its client.
    class: u8,
    /// The number of queries that its connection takes now.
    room: u32,
    /// The number of queries on this connection.
    taken: u32,
    started_ns: i64,
    established_ns: i64,
    last_taken_ns: i64,
    deadline_ns: i64,
}

const IDLE: Slot = Slot {
    state: State::Idle,
    blocked: false,
    full: false,
    superseded: false,
    class: 0,
    room: u32::MAX,
    taken: 0,
    started_ns: 0,
    established_ns: 0,
    last_taken_ns: 0,
    deadline_ns: 0,
};

/// The slots of one thread.
pub struct Slots {
    slots: Box<[Slot]>,
    policy: Policy,
    /// Slots that are idle or open, and can take a query.
    ready: Chain,
    /// Slots that are being opened, and can take a query.
    opening: Chain,
    /// Slots that are being opened, blocked or used up, which must not last for ever. In order of their deadlines.
    watched: Chain,
    /// Slots with a connection, by class, in order of their last queries.
    used: Box<[Chain]>,
    /// The number of slots without room.
    without_room: usize,
    /// By class of clients.
    connections: Box<[Connections]>,
    /// For how long connections were open that the other side ended, in microseconds.
    lifetimes_us: Times,
}

impl Slots {
    /// `count` idle slots.
    pub fn new(count: usize, policy: Policy) -> Self {
        let mut ready = Chain::new(count);
        (0..count).for_each(|slot| ready.add(slot));
        Slots {
            slots: vec![IDLE; count].into_boxed_slice(),
            ready,
            opening: Chain::new(count),
            watched: Chain::new(count),
            without_room: 0,
            used: policy.classes.iter().map(|_| Chain::new(count)).collect(),
            connections: vec![Connections::default(); policy.classes.len()].into_boxed_slice(),
            lifetimes_us: times(),
            policy,
        }
    }

    /// The counts of connections so far, by class.
    pub fn connections(&self) -> &[Connections] {
        &self.connections
    }

    /// For how long connections were open that the other side ended, in microseconds.
    pub fn lifetimes_us(&self) -> &Times {
        &self.lifetimes_us
    }

    /// The counts of the class of a slot.
    pub fn counts(&mut self, slot: usize) -> &mut Connections {
        &mut self.connections[usize::from(self.slots[slot].class)]
    }

    /// Sets the class of an idle slot.
    pub fn set_class(&mut self, slot: usize, class: usize) {
        debug_assert_eq!(self.slots[slot].state, State::Idle);
        self.slots[slot].class = class as u8;
    }

    /// The class of a slot.
    pub fn class(&self, slot: usize) -> usize {
        usize::from(self.slots[slot].class)
    }

    fn per_connection(&self, slot: usize) -> u32 {
        self.policy.classes[self.class(slot)].per_connection
    }

    /// The state of a slot.
    pub fn state(&self, slot: usize) -> State {
        self.slots[slot].state
    }

    /// The slot that is to take queries: the slot of the client, if a client is named, or else the slot whose turn it
    /// is. `None` if it cannot take any.
    pub fn turn(&self, client: Option<u32>) -> Option<usize> {
        match client.map(|client| client as usize) {
            None => self.ready.first().or_else(|| self.opening.first()),
            Some(slot) => (self.ready.contains(slot) || self.opening.contains(slot)).then_some(slot),
        }
    }

    /// The number of slots that can take queries.
    pub fn taking(&self) -> usize {
        self.ready.len() + self.opening.len()
    }

    /// The highest number of queries that a slot takes in its turn.
    pub fn room(&self, slot: usize) -> usize {
        let most = match self.per_connection(slot) {
            0 => self.policy.burst,
            most => self.policy.burst.min((most - self.slots[slot].taken) as usize),
        };
        most.min(self.slots[slot].room as usize)
    }

    /// Sets how many queries the connection of a slot takes now.
    pub fn set_room(&mut self, slot: usize, room: usize) {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut self.slots[slot].room, room);
        self.without_room += usize::from(room == 0);
        self.without_room -= usize::from(before == 0);
        if (room == 0) != (before == 0) {
            self.place(slot);
        }
    }

    /// Whether the connection of any slot takes no query now, because it has too many already.
    pub fn lack_room(&self) -> bool {
        self.without_room > 0
    }

    /// Takes in that an idle slot has begun a connection.
    pub fn began(&mut self, slot: usize, now_ns: i64) {
        debug_assert_eq!(self.slots[slot].state, State::Idle);
        let class = self.slots[slot].class;
        self.slots[slot] = Slot { state: State::Opening, class, started_ns: now_ns, ..IDLE };
        self.counts(slot).attempted += 1;
        self.watch(slot, now_ns);
        self.place(slot);
    }

    /// Counts that there was no port to begin a connection from.
    pub fn had_no_port(&mut self, slot: usize) {
        self.counts(slot).no_port += 1;
    }

    /// Takes in that a slot has taken queries. With a count of 0 it only lets the others go first.
    pub fn took(&mut self, slot: usize, count: usize, now_ns: i64) {
        let this = &mut self.slots[slot];
        this.taken = this.taken.saturating_add(count as u32);
        if count > 0 {
            this.last_taken_ns = now_ns;
            self.use_last(slot);
        }
        if self.is_used_up(slot) {
            self.watch(slot, now_ns);
        }
        self.place(slot);
    }

    /// Takes in that a connection that is being opened takes no further queries until it is open.
    pub fn filled(&mut self, slot: usize) {
        self.slots[slot].full = true;
        self.place(slot);
    }

    /// Takes in that a connection is open. Returns when it was begun.
    pub fn established(&mut self, slot: usize, resumed: bool, now_ns: i64) -> i64 {
        debug_assert_eq!(self.slots[slot].state, State::Opening);
        let counts = self.counts(slot);
        counts.established += 1;
        counts.open += 1;
        counts.resumed += u64::from(resumed);
        let this = &mut self.slots[slot];
        (this.state, this.full, this.established_ns) = (State::Open, false, now_ns);
        let started_ns = this.started_ns;
        self.watched.remove(slot);
        if self.is_used_up(slot) || self.slots[slot].blocked {
            self.watch(slot, now_ns);
        }
        self.place(slot);
        started_ns
    }

    /// Sets whether bytes wait for room in the socket of a slot.
    pub fn set_blocked(&mut self, slot: usize, blocked: bool, now_ns: i64) {
        if self.slots[slot].blocked == blocked {
            return;
        }
        self.slots[slot].blocked = blocked;
        if blocked {
            self.watch(slot, now_ns);
        } else if self.slots[slot].state == State::Open {
            self.slots[slot].full = false;
            if !self.is_used_up(slot) {
                self.watched.remove(slot);
            }
        }
        self.place(slot);
    }

    /// Whether the connection of a slot takes no further queries.
    pub fn is_used_up(&self, slot: usize) -> bool {
        let (most, Slot { taken, superseded, .. }) = (self.per_connection(slot), self.slots[slot]);
        superseded || most > 0 && taken >= most
    }

    /// Whether the connection of a slot has taken a query.
    pub fn is_used(&self, slot: usize) -> bool {
        self.slots[slot].taken > 0
    }

    /// Takes in that the client of a slot begins another connection: this one takes no further queries. Returns whether
    /// that is new.
    pub fn supersede(&mut self, slot: usize, now_ns: i64) -> bool {
        let is_new = !std::mem::replace(&mut self.slots[slot].superseded, true);
        self.watch(slot, now_ns);
        self.place(slot);
        is_new
    }

    /// Takes in that the other side ends a connection, or does not accept it. [`Slots::ended`] follows.
    pub fn lost(&mut self, slot: usize, reason: CloseReason, now_ns: i64) {
        self.counts(slot).ended.count(reason);
        let Slot { state, established_ns, .. } = self.slots[slot];
        if state == State::Open {
            self.lifetimes_us.saturating_record((now_ns - established_ns).max(0).unsigned_abs() / 1_000);
        }
    }

    /// Takes in that a connection has ended. It was `broken` if the other side ended it with queries outstanding.
    pub fn ended(&mut self, slot: usize, broken: bool) {
        let state = self.slots[slot].state;
        let counts = self.counts(slot);
        counts.failed += u64::from(state == State::Opening || broken);
        counts.open -= u64::from(state == State::Open);
        self.watched.remove(slot);
        self.used[self.class(slot)].remove(slot);
        self.set_room(slot, usize::MAX);
        self.slots[slot] = IDLE;
        self.place(slot);
    }

    /// A connection to close because it had no query for the time of its class. `outstanding` is as for
    /// [`Slots::overdue`].
    ///
    /// Call it until it returns `None`.
    pub fn idle(&mut self, now_ns: i64, outstanding: impl Fn(usize) -> usize) -> Option<usize> {
        (0..self.used.len()).find_map(|class| self.idle_of(class, now_ns, &outstanding))
    }

    fn idle_of(&mut self, class: usize, now_ns: i64, outstanding: impl Fn(usize) -> usize) -> Option<usize> {
        let idle_ns = self.policy.classes[class].idle_ns;
        while idle_ns > 0
            && let Some(slot) = self.used[class].first()
            && self.slots[slot].last_taken_ns + idle_ns <= now_ns
        {
            if outstanding(slot) == 0 {
                return Some(slot);
            }
            self.slots[slot].last_taken_ns = now_ns;
            self.use_last(slot);
        }
        None
    }

    /// The connection whose last query is longest ago.
    pub fn longest_unused(&self) -> Option<usize> {
        self.used.iter().filter_map(Chain::first).min_by_key(|slot| self.slots[*slot].last_taken_ns)
    }

    /// Puts a slot last of its class by the time of the last query.
    fn use_last(&mut self, slot: usize) {
        let used = &mut self.used[usize::from(self.slots[slot].class)];
        used.remove(slot);
        used.add(slot);
    }

    /// A connection to close because it was not opened, did not move or stayed without answers for a whole timeout.
    /// `outstanding` gives the number of queries of a slot that have not ended.
    ///
    /// Call it until it returns `None`. A connection with queries that are younger than a timeout is watched on, and
    /// takes no new ones.
    pub fn overdue(&mut self, now_ns: i64, outstanding: impl Fn(usize) -> usize) -> Option<usize> {
        while let Some(slot) = self.watched.first()
            && self.slots[slot].deadline_ns <= now_ns
        {
            if outstanding(slot) == 0 {
                return Some(slot);
            }
            if self.slots[slot].last_taken_ns + self.policy.timeout_ns <= now_ns {
                // They have ended as soon as the table of queries in flight is looked at.
                return None;
            }
            self.slots[slot].full = true;
            self.watched.remove(slot);
            self.watch(slot, now_ns);
            self.place(slot);
        }
        None
    }

    fn watch(&mut self, slot: usize, now_ns: i64) {
        if !self.watched.contains(slot) {
            self.slots[slot].deadline_ns = now_ns + self.policy.timeout_ns;
            self.watched.add(slot);
        }
    }

    /// Puts a slot last among the slots that can take queries, if it can.
    fn place(&mut self, slot: usize) {
        self.ready.remove(slot);
        self.opening.remove(slot);
        let Slot { state, blocked, full, room, .. } = self.slots[slot];
        if blocked || full || room == 0 || self.is_used_up(slot) {
            return;
        }
        match state {
            State::Idle | State::Open => self.ready.add(slot),
            State::Opening => self.opening.add(slot),
        }
    }
}

/// The slots of clients that have a connection.
pub struct Assignment {
    slot_of: HashMap<u32, usize>,
    client_of: Box<[Option<u32>]>,
    free: Vec<usize>,
}

impl Assignment {
    /// Free slots.
    pub fn new(slots: usize) -> Self {
        Assignment {
            slot_of: HashMap::with_capacity(slots),
            client_of: vec![None; slots].into(),
            free: (0..slots).rev().collect(),
        }
    }

    /// The slot of a client, if it has one.
    pub fn slot(&self, client: u32) -> Option<usize> {
        self.slot_of.get(&client).copied()
    }

    /// The client of a slot, if it has one.
    pub fn client(&self, slot: usize) -> Option<u32> {
        self.client_of[slot]
    }

    /// Whether every slot has a client.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Gives a free slot to a client without a slot, if there is one.
    pub fn assign(&mut self, client: u32) -> Option<usize> {
        let slot = self.free.pop()?;
        self.client_of[slot] = Some(client);
        self.slot_of.insert(client, slot);
        Some(slot)
    }

    /// Lets the client of a slot have another slot beside this one, which takes no further queries.
    pub fn detach(&mut self, slot: usize) {
        if let Some(client) = self.client_of[slot]
            && self.slot(client) == Some(slot)
        {
            self.slot_of.remove(&client);
        }
    }

    /// Takes a slot back.
    pub fn release(&mut self, slot: usize) {
        self.detach(slot);
        if self.client_of[slot].take().is_some() {
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
