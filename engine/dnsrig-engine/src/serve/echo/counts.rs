//! What a thread of the echo counts, and the sums of several.

use std::ops::AddAssign;

use serde::Serialize;

use crate::net::connection::limits::Connections;

/// `queries` = `answers` + all of `dropped` but `malformed` + `waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that are queries.
    pub queries: u64,
    /// Answers handed to the kernel or to a connection.
    pub answers: u64,
    /// What was not answered, by reason.
    pub dropped: Dropped,
    /// Answers that still waited for their delay at the end.
    pub waiting: u64,
    /// Datagrams that found the receive buffer full; the thread never saw them, and `queries` does not count them.
    pub receive_buffer_drops: u64,
    /// Connections of TCP and DoT.
    pub connections: Connections,
    /// CPU time of the thread, user and system.
    pub cpu_ns: i64,
}

/// Messages without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// No query: too short for a header, or a response.
    pub malformed: u64,
    /// Longer than an answer over UDP, or one that waits, may be.
    pub too_long: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// More answers wait for their delay than there is room for.
    pub queue_full: u64,
    /// The kernel did not take the answer, or the connection was gone or did not read.
    pub unsent: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.queries += other.queries;
        self.answers += other.answers;
        self.dropped += other.dropped;
        self.waiting += other.waiting;
        self.receive_buffer_drops += other.receive_buffer_drops;
        self.connections += other.connections;
        self.cpu_ns += other.cpu_ns;
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, other: Dropped) {
        self.malformed += other.malformed;
        self.too_long += other.too_long;
        self.lost += other.lost;
        self.queue_full += other.queue_full;
        self.unsent += other.unsent;
    }
}
