//! Which connection the next queries go on, and which has served its time. No clock, no socket.
//!
//! A slot is the place of a connection; when one has ended, the next query in the slot begins another. Slots take
//! turns. Those whose connection is still being opened come last: a query there waits for the handshake.
//!
//! Where clients are many and slots are few, an [`Assignment`] keeps which client has which slot.

use std::collections::HashMap;

use crate::{
    load::{classes::Usage, counts::Connections},
    net::connection::chain::Chain,
};

/// How slots use their connections.
#[derive(Clone, Debug)]
pub struct Policy {
    /// By class of clients.
    pub classes: Vec<Usage>,
    /// So many queries in a row go on one connection, with one write.
    pub burst: usize,
    /// A query is given up after so long, and with it a connection that does not get anywhere.
    pub timeout_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Without a connection.
    Idle,
    /// Connecting, or in the TLS handshake.
    Opening,
    Open,
}

#[derive(Clone, Copy)]
struct Slot {
    state: State,
    /// Bytes wait that the socket has no room for.
    blocked: bool,
    /// Takes no more until it is open or flows again: enough wait, or it takes too long.
    full: bool,
    /// Its client has begun another connection.
    superseded: bool,
    /// Of the client whose it is.
    class: u8,
    /// Queries on this connection.
    taken: u32,
    started_ns: i64,
    last_taken_ns: i64,
    deadline_ns: i64,
}

const IDLE: Slot = Slot {
    state: State::Idle,
    blocked: false,
    full: false,
    superseded: false,
    class: 0,
    taken: 0,
    started_ns: 0,
    last_taken_ns: 0,
    deadline_ns: 0,
};

/// The slots of one thread.
pub struct Slots {
    slots: Box<[Slot]>,
    policy: Policy,
    /// Idle or open, and able to take a query.
    ready: Chain,
    /// Being opened, and able to take a query.
    opening: Chain,
    /// Being opened, blocked or used up: not for ever. In order of their deadlines, all a timeout after the beginning.
    watched: Chain,
    /// With a connection, by class, in order of their last queries.
    used: Box<[Chain]>,
    /// By class.
    connections: Box<[Connections]>,
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
            used: policy.classes.iter().map(|_| Chain::new(count)).collect(),
            connections: vec![Connections::default(); policy.classes.len()].into_boxed_slice(),
            policy,
        }
    }

    /// What became of connections so far, by class.
    pub fn connections(&self) -> &[Connections] {
        &self.connections
    }

    /// The counts of the class of a slot.
    pub fn counts(&mut self, slot: usize) -> &mut Connections {
        &mut self.connections[usize::from(self.slots[slot].class)]
    }

    /// An idle slot is now for a client of this class.
    pub fn set_class(&mut self, slot: usize, class: usize) {
        debug_assert_eq!(self.slots[slot].state, State::Idle);
        self.slots[slot].class = class as u8;
    }

    /// The class that a slot is for.
    pub fn class(&self, slot: usize) -> usize {
        usize::from(self.slots[slot].class)
    }

    fn per_connection(&self, slot: usize) -> u32 {
        self.policy.classes[self.class(slot)].per_connection
    }

    pub fn state(&self, slot: usize) -> State {
        self.slots[slot].state
    }

    /// The slot that is to take queries: that of the client, if one is named, or else whose turn it is; none if it
    /// cannot.
    pub fn turn(&self, client: Option<u32>) -> Option<usize> {
        match client.map(|client| client as usize) {
            None => self.ready.first().or_else(|| self.opening.first()),
            Some(slot) => (self.ready.contains(slot) || self.opening.contains(slot)).then_some(slot),
        }
    }

    /// How many slots can take queries.
    pub fn taking(&self) -> usize {
        self.ready.len() + self.opening.len()
    }

    /// How many queries a slot whose turn it is takes at most.
    pub fn room(&self, slot: usize) -> usize {
        match self.per_connection(slot) {
            0 => self.policy.burst,
            most => self.policy.burst.min((most - self.slots[slot].taken) as usize),
        }
    }

    /// An idle slot has begun a connection.
    pub fn began(&mut self, slot: usize, now_ns: i64) {
        debug_assert_eq!(self.slots[slot].state, State::Idle);
        let class = self.slots[slot].class;
        self.slots[slot] = Slot { state: State::Opening, class, started_ns: now_ns, ..IDLE };
        self.counts(slot).attempted += 1;
        self.watch(slot, now_ns);
        self.place(slot);
    }

    /// There was no port to begin a connection from.
    pub fn had_no_port(&mut self, slot: usize) {
        self.counts(slot).no_port += 1;
    }

    /// It has taken queries; with none it only lets the others go first.
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

    /// A connection that is being opened takes no more until it is open.
    pub fn filled(&mut self, slot: usize) {
        self.slots[slot].full = true;
        self.place(slot);
    }

    /// A connection is open; returns when it was begun.
    pub fn established(&mut self, slot: usize, resumed: bool, now_ns: i64) -> i64 {
        debug_assert_eq!(self.slots[slot].state, State::Opening);
        let counts = self.counts(slot);
        counts.established += 1;
        counts.resumed += u64::from(resumed);
        let this = &mut self.slots[slot];
        (this.state, this.full) = (State::Open, false);
        let started_ns = this.started_ns;
        self.watched.remove(slot);
        if self.is_used_up(slot) || self.slots[slot].blocked {
            self.watch(slot, now_ns);
        }
        self.place(slot);
        started_ns
    }

    /// Whether bytes wait for room in its socket.
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

    /// Whether its connection has taken all the queries that it may.
    pub fn is_used_up(&self, slot: usize) -> bool {
        let (most, Slot { taken, superseded, .. }) = (self.per_connection(slot), self.slots[slot]);
        superseded || most > 0 && taken >= most
    }

    /// Whether its connection has taken a query.
    pub fn is_used(&self, slot: usize) -> bool {
        self.slots[slot].taken > 0
    }

    /// Its connection takes no more queries: the client begins another one.
    pub fn supersede(&mut self, slot: usize, now_ns: i64) {
        self.slots[slot].superseded = true;
        self.watch(slot, now_ns);
        self.place(slot);
    }

    /// Its connection has ended: by the other side with queries outstanding, if it was `broken`.
    pub fn ended(&mut self, slot: usize, broken: bool) {
        let opening = self.slots[slot].state == State::Opening;
        self.counts(slot).failed += u64::from(opening || broken);
        self.watched.remove(slot);
        self.used[self.class(slot)].remove(slot);
        self.slots[slot] = IDLE;
        self.place(slot);
    }

    /// A connection to close because no query has come for so long; `outstanding` as in [`Slots::overdue`].
    ///
    /// Call it until there is none.
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

    /// Puts it last of its class by the time of the last query.
    fn use_last(&mut self, slot: usize) {
        let used = &mut self.used[usize::from(self.slots[slot].class)];
        used.remove(slot);
        used.add(slot);
    }

    /// A connection to close because it was not opened, did not move or stayed without answers for a whole timeout;
    /// `outstanding` says how many queries of a slot have not ended.
    ///
    /// Call it until there is none. What has queries that are younger than a timeout is watched on, without new ones.
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

    /// Puts it last of those that it belongs to.
    fn place(&mut self, slot: usize) {
        self.ready.remove(slot);
        self.opening.remove(slot);
        let Slot { state, blocked, full, .. } = self.slots[slot];
        if blocked || full || self.is_used_up(slot) {
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
    /// Of so many slots, none of which is a client's yet.
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

    /// The client of a slot, if it is one's.
    pub fn client(&self, slot: usize) -> Option<u32> {
        self.client_of[slot]
    }

    /// Whether every slot is a client's.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Gives a client without a slot one, if there is one.
    pub fn assign(&mut self, client: u32) -> Option<usize> {
        let slot = self.free.pop()?;
        self.client_of[slot] = Some(client);
        self.slot_of.insert(client, slot);
        Some(slot)
    }

    /// Lets a client have another slot beside this one, which takes no more of its queries.
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
