//! The places of connections: a slot has one connection at a time.

use std::collections::VecDeque;

use dnsrig_net::{connection::CloseReason, outstanding::Outstanding};

use super::secondaries::Job;

/// The number of the connection in the row of an SOA that was asked for over UDP.
pub const NO_CONNECTION: u32 = u32::MAX;

/// Whether queries can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Idle,
    Opening,
    Open,
}

/// What a connection began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// The connection was never established, or is not TLS.
    #[default]
    None,
    Full,
    Resumed,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Ours,
    Closed,
    Reset,
    Refused,
    NoPort,
    TimedOut,
    Tls,
    /// The primary permits no further stream (RFC 9000 §4.6), and all that it permitted have ended.
    UsedUp,
}

impl Handshake {
    /// Every kind, in the order of declaration.
    pub const WORDS: [&str; 3] = ["none", "full", "resumed"];
}

impl Ended {
    /// Every kind, in the order of declaration.
    pub const WORDS: [&str; 8] = ["ours", "closed", "reset", "refused", "no-port", "timed-out", "tls", "used-up"];
}

impl From<CloseReason> for Ended {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Closed => Ended::Closed,
            CloseReason::Reset => Ended::Reset,
            CloseReason::Refused => Ended::Refused,
            // Transfers never go over HTTP.
            CloseReason::Tls(_) | CloseReason::Http(_) => Ended::Tls,
        }
    }
}

/// A place for one connection at a time.
pub struct Slot {
    pub secondary: u32,
    /// It has no connection but a socket that asks for SOAs over UDP.
    pub is_udp: bool,
    pub state: State,
    /// The connection in it, or the last one.
    pub connection: SlotConnection,
    /// The transfers that were asked for, by their place among all.
    pub queries: Outstanding<u32>,
    /// Zones whose SOA came on this connection, and which are now to be transferred on it.
    pub follow: VecDeque<Job>,
    /// Connections in a row that brought nothing.
    pub fruitless: u16,
    pub given_up: bool,
    pub open_after_ns: i64,
    /// Since when there has been no port; 0: there was one.
    pub no_port_ns: i64,
    /// It is in the queue of slots that may have something to do.
    pub is_woken: bool,
    /// A timer for its next check is set.
    pub is_checked: bool,
}

/// What is known of the connection in a slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotConnection {
    /// The connection's number among all.
    pub number: u32,
    /// Its port on this side, once it is known.
    pub port: u16,
    pub begun_ns: i64,
    pub established_ns: i64,
    pub handshake: Handshake,
    /// When something came last that was waited for, or the first query was sent after a time without outstanding
    /// queries.
    pub alive_ns: i64,
    /// When bytes of a message came that is not complete.
    pub partial_ns: i64,
    /// Zones begun.
    pub zones: u32,
    pub asked: u32,
    pub done: u32,
    /// Zones that have ended, or have used up a retry.
    pub ended: u32,
    /// Something came that was waited for.
    pub has_brought: bool,
    pub bytes: u64,
    pub messages: u32,
}

impl Slot {
    /// A place for the connections of a secondary.
    pub fn new(secondary: u32, is_udp: bool, window: u32) -> Self {
        Slot {
            secondary,
            is_udp,
            state: State::Idle,
            connection: SlotConnection::default(),
            queries: Outstanding::new(window),
            follow: VecDeque::new(),
            fruitless: 0,
            given_up: false,
            open_after_ns: 0,
            no_port_ns: 0,
            is_woken: false,
            is_checked: false,
        }
    }

    /// Notes that a connection was begun.
    pub fn begin(&mut self, number: u32, now_ns: i64) {
        self.state = State::Opening;
        self.connection = SlotConnection { number, begun_ns: now_ns, alive_ns: now_ns, ..SlotConnection::default() };
    }

    /// How many transfers it can begin: of zones whose SOA came, and of other zones.
    pub fn room(&self, window: u32, zones_max: u32) -> (u32, u32) {
        let room = window.saturating_sub(self.queries.len() as u32).min(self.queries.ids_left() as u32);
        let follow = (self.follow.len() as u32).min(room);
        (follow, (room - follow).min(zones_max.saturating_sub(self.connection.zones)))
    }
}
