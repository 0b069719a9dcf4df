//! What moves queries and answers: the interface between a thread's loop and UDP, TCP or DoT.

use std::{io, net::SocketAddr};

use dnsrig_core::{failure::Failure, stats::Times};

use super::{arrivals::Due, counts::Connections, in_flight::InFlight};

/// What to do if the network of this host does not work.
const CHECK_LINK: &str = "check the link of this host (ip link, ip route)";

/// The failure to make sockets.
pub fn cannot_open(server: SocketAddr, error: io::Error) -> Failure {
    Failure::new(
        format!("cannot make sockets to {server}: {error}"),
        format!(
            "see `ip route get {}`, and `ulimit -n` if there are many clients; run this on a host that has a route there",
            server.ip()
        ),
    )
}

/// The failure to send queries.
pub fn cannot_send(server: SocketAddr, error: io::Error) -> Failure {
    Failure::new(format!("cannot send to {server}: {error}"), CHECK_LINK)
}

/// The failure to receive answers.
pub fn cannot_receive(server: SocketAddr, error: io::Error) -> Failure {
    Failure::new(format!("cannot receive from {server}: {error}"), CHECK_LINK)
}

/// The failure to wait for several transports at a time.
pub fn cannot_wait(error: io::Error) -> Failure {
    Failure::new(format!("cannot wait for answers: {error}"), CHECK_LINK)
}

/// The reason why a query could not be sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It waits for room that queries of other clients need as well.
    All,
    /// It waits for a connection, of which there are too few.
    NoConnection,
    /// It waits for the connection of its client, on which too much waits for the server already.
    Server,
}

/// Sends queries and receives answers. It blocks in [`Transport::wait`] only.
///
/// It moves bytes and knows its clients' sockets. What the messages mean, and what is counted and timed, is up to the
/// [`InFlight`].
pub trait Transport: Send {
    /// Sends queries in this order, each from the client that it names, if it names one. Returns the number of queries
    /// that were sent: fewer if no client can send, or the next query's client cannot.
    ///
    /// For each it calls [`InFlight::draft`], then [`InFlight::sent`] with the time right before they left.
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure>;

    /// Takes in all messages that have come, through [`InFlight::answer`] and [`InFlight::lose`]; returns the number of
    /// messages and of events of connections: 0 if there was nothing to do.
    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure>;

    /// Waits for `timeout_ns`, or until there is room to send, or until a message comes. If the kernel keeps the time
    /// at which messages come, they end the wait only if they are `wanted` at once.
    fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), Failure>;

    /// The reason why a query could not be sent.
    fn waits_for(&self, _due: Due, _in_flight: &InFlight) -> Wait {
        Wait::All
    }

    /// How many datagrams found the receive buffer of their socket full, since the start.
    fn datagrams_dropped(&self) -> u64 {
        0
    }

    /// The connections since the start, by class of clients. Empty over UDP.
    fn connections(&self) -> Vec<Connections> {
        Vec::new()
    }

    /// For how long connections were open that the server ended, in microseconds, since the start.
    fn lifetimes_us(&self) -> Option<&Times> {
        None
    }
}
