//! Many clients that share few slots: which slot the query of a client takes, and which connection gives way to it. No
//! socket.

use std::net::IpAddr;

use dnsrig_core::clock;

use super::slots::{Assignment, Slots};
use crate::load::{arrivals::Due, classes::Classes, in_flight::InFlight, segment::ClientAddresses};

/// Clients that have no slot of their own: each has one while it has a connection.
#[derive(Clone, Debug)]
pub struct ManyClients {
    /// Which class each client is in.
    pub classes: Classes,
    pub addresses: ClientAddresses,
    /// The number of slot 0 among the clients of the table of queries in flight.
    pub first: usize,
}

/// The slots that clients have in turn.
pub struct Many {
    clients: ManyClients,
    assignment: Assignment,
}

/// Where the query of a client goes.
pub enum Place {
    /// Onto the connection of this slot.
    Slot(usize),
    /// Nowhere before the connection of this slot is closed. Ask again after that.
    Close(usize),
    /// Nowhere yet.
    None,
}

impl Many {
    /// Clients without a slot.
    pub fn new(clients: ManyClients, slots: usize) -> Self {
        Many { clients, assignment: Assignment::new(slots) }
    }

    /// Where the query of a client goes.
    pub fn place(&mut self, due: &Due, client: u32, slots: &mut Slots, in_flight: &InFlight) -> Place {
        let outstanding = |slot: usize| in_flight.outstanding_of(self.clients.first + slot);
        if let Some(slot) = self.assignment.slot(client) {
            if !slots.is_used(slot) || !in_flight.begins_connection(due) {
                return slots.turn(Some(slot as u32)).map_or(Place::None, Place::Slot);
            }
            // The client begins another connection. This one ends as soon as no query is outstanding on it.
            if outstanding(slot) == 0 {
                return Place::Close(slot);
            }
            slots.supersede(slot, clock::monotonic_ns());
            self.assignment.detach(slot);
        }
        if self.assignment.is_full() {
            // All other slots had queries later. If this one still waits for answers, so do all, and the query has to
            // wait.
            let slot = slots.longest_unused().filter(|slot| outstanding(*slot) == 0);
            return slot.map_or(Place::None, Place::Close);
        }
        let Some(slot) = self.assignment.assign(client) else { return Place::None };
        slots.set_class(slot, self.clients.classes.of(client));
        Place::Slot(slot)
    }

    /// Whether a client has a connection, open or not yet.
    pub fn has_connection(&self, client: u32) -> bool {
        self.assignment.slot(client).is_some()
    }

    /// The client that has a slot.
    pub fn client(&self, slot: usize) -> Option<u32> {
        self.assignment.client(slot)
    }

    /// The address from which the client of a slot sends, if it has one of its own.
    pub fn source(&self, slot: usize) -> Option<IpAddr> {
        self.client(slot).and_then(|client| self.clients.addresses.of(client))
    }

    /// Lets the client of a slot have another slot beside this one, which takes no further queries.
    pub fn detach(&mut self, slot: usize) {
        self.assignment.detach(slot);
    }

    /// Takes a slot back.
    pub fn release(&mut self, slot: usize) {
        self.assignment.release(slot);
    }
}
