//! Several transports for clients that do not all use the same one: each query leaves by the transport that the source
//! names.

use dnsrig_core::{clock, failure::Failure};
use dnsrig_net::poller::Poller;
use nix::sys::epoll::EpollFlags;

use crate::{
    load::{
        arrivals::Due,
        counter::Counter as _,
        counts::Connections,
        doq::Doq,
        in_flight::InFlight,
        tcp::Tcp,
        transport::{Transport, Wait, cannot_wait},
        udp::Udp,
    },
    query_stream::Transport as Kind,
};

/// The number of queries with truncated answers that are tried at a time, if the first of them cannot be asked again
/// yet.
const TRIES_MAX: usize = 16;

/// A transport whose connections many clients share.
pub trait Connecting: Transport {
    /// Readable when a connection has something to report.
    fn poller(&self) -> &Poller;

    /// Whether a client has a connection, open or not yet.
    fn has_connection(&self, client: Option<u32>) -> bool;

    /// Whether a connection was ever begun.
    fn has_begun(&self) -> bool;

    /// When a connection has something to do, whatever comes; in the past if it has something to do now.
    fn due_ns(&self) -> Option<i64>;
}

impl Connecting for Tcp {
    fn poller(&self) -> &Poller {
        Tcp::poller(self)
    }

    fn has_connection(&self, client: Option<u32>) -> bool {
        Tcp::has_connection(self, client)
    }

    fn has_begun(&self) -> bool {
        Tcp::has_begun(self)
    }

    fn due_ns(&self) -> Option<i64> {
        self.has_unread().then_some(0)
    }
}

impl Connecting for Doq {
    fn poller(&self) -> &Poller {
        Doq::poller(self)
    }

    fn has_connection(&self, client: Option<u32>) -> bool {
        Doq::has_connection(self, client)
    }

    fn has_begun(&self) -> bool {
        Doq::has_begun(self)
    }

    fn due_ns(&self) -> Option<i64> {
        Doq::due_ns(self)
    }
}

/// A transport with connections, and what it carries.
pub type Connected = (Kind, Box<dyn Connecting>);

/// The transports of one thread.
pub struct Transports {
    udp: Udp,
    connected: Vec<Connected>,
    /// Readable when a connection over any transport has something to report.
    poller: Poller,
}

impl Transports {
    /// Puts transports together, of which each has its own clients in the table of queries in flight.
    pub fn new(udp: Udp, connected: Vec<Connected>) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        for (kind, transport) in &connected {
            poller.add(transport.poller(), EpollFlags::EPOLLIN, *kind as u64)?;
        }
        Ok(Transports { udp, connected, poller })
    }

    /// The transport with connections that carries this kind. `None`: UDP does.
    fn connected(&mut self, kind: Option<Kind>) -> Option<&mut dyn Connecting> {
        let found = self.connected.iter_mut().find(|(carried, _)| Some(*carried) == kind)?;
        Some(&mut *found.1)
    }
}

impl Transport for Transports {
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let mut sent = 0;
        while sent < due.len() {
            let kind = in_flight.transport(&due[sent]);
            let alike = due[sent..].iter().take_while(|due| in_flight.transport(due) == kind).count();
            let some = &due[sent..sent + alike];
            let count = match self.connected(kind) {
                Some(transport) => transport.send(some, in_flight)?,
                None => self.udp.send(some, in_flight)?,
            };
            sent += count;
            if count < alike {
                break;
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let mut received = self.udp.receive(in_flight)?;
        for (_, transport) in &mut self.connected {
            received += transport.receive(in_flight)?;
        }
        let mut failed = 0;
        while failed < TRIES_MAX.min(in_flight.to_ask_again())
            && let Some(tcp) = self.connected(Some(Kind::Tcp))
            && let Some(due) = in_flight.ask_again()
        {
            let sent = tcp.send(&[due], in_flight)?;
            in_flight.asked_again(sent > 0);
            failed += usize::from(sent == 0);
        }
        Ok(received)
    }

    fn waits_for(&self, due: Due, in_flight: &InFlight) -> Wait {
        let kind = in_flight.transport(&due);
        match self.connected.iter().find(|(carried, _)| Some(*carried) == kind) {
            None => Wait::All,
            Some((_, transport)) if transport.has_connection(due.client) => Wait::Server,
            Some(_) => Wait::NoConnection,
        }
    }

    fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), Failure> {
        if !self.connected.iter().any(|(_, transport)| transport.has_begun()) {
            return self.udp.wait(timeout_ns, wanted);
        }
        let due_ns = self.connected.iter().filter_map(|(_, transport)| transport.due_ns()).min();
        let left_ns = due_ns.map_or(timeout_ns, |due_ns| timeout_ns.min(due_ns - clock::monotonic_ns()));
        if left_ns <= 0 {
            return Ok(());
        }
        // Answers over UDP have the kernel's time, whenever they are read.
        self.poller.sleep(left_ns).map_err(cannot_wait)
    }

    fn datagrams_dropped(&self) -> u64 {
        let connected = self.connected.iter().map(|(_, transport)| transport.datagrams_dropped());
        self.udp.datagrams_dropped() + connected.sum::<u64>()
    }

    fn connections(&self) -> Vec<Connections> {
        let mut each = self.connected.iter().map(|(_, transport)| transport.connections());
        let mut all = each.next().unwrap_or_default();
        each.for_each(|other| all.iter_mut().zip(other).for_each(|(all, other)| all.add(&other)));
        all
    }
}
