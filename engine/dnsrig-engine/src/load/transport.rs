//! What moves queries and answers: the interface between a thread's loop and UDP, TCP or DoT.

use super::{LoadError, arrivals::Due, counts::Connections, in_flight::InFlight};

/// What a query that could not be sent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Room that queries of other clients need as well.
    All,
    /// A connection, of which there are too few.
    NoConnection,
    /// The connection of its client, on which too much waits for the server already.
    Server,
}

/// Sends queries and receives answers, never blocking but in [`Transport::wait`].
///
/// It moves bytes and knows its clients' sockets; what the messages mean, what is counted and timed, is the
/// [`InFlight`]'s.
pub trait Transport: Send {
    /// Sends queries in this order, each from the client that it names, if any, and returns how many were sent: fewer
    /// if no client can, or the next one's.
    ///
    /// For each it calls [`InFlight::draft`], then [`InFlight::sent`] with the time right before they left.
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, LoadError>;

    /// Takes in all that has come, through [`InFlight::answer`] and [`InFlight::lose`]; returns the number of messages
    /// and of events of connections: 0 if there was nothing to do.
    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, LoadError>;

    /// Waits for `timeout_ns`, less if something can be sent again that could not be, or received: where the kernel
    /// keeps the time at which it came, only if it is `wanted` at once.
    fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), LoadError>;

    /// What a query that could not be sent waits for.
    fn waits_for(&self, _due: Due, _in_flight: &InFlight) -> Wait {
        Wait::All
    }

    /// Its connections since the start, by class of clients; empty over UDP.
    fn connections(&self) -> Vec<Connections> {
        Vec::new()
    }
}
