//! Several transports for clients that do not all use the same one: each query leaves by the transport that the source
//! names.

use dnsrig_core::failure::Failure;
use dnsrig_net::poller::Poller;
use nix::sys::epoll::EpollFlags;

use crate::{
    load::{
        arrivals::Due,
        counter::Counter as _,
        counts::Connections,
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

/// The transports of one thread.
pub struct Transports {
    udp: Udp,
    tcp: Tcp,
    dot: Tcp,
    /// Readable when a connection over either has something to tell.
    poller: Poller,
}

impl Transports {
    /// Puts transports together, of which each has its own clients in the table of queries in flight.
    pub fn new(udp: Udp, tcp: Tcp, dot: Tcp) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(tcp.poller(), EpollFlags::EPOLLIN, 0)?;
        poller.add(dot.poller(), EpollFlags::EPOLLIN, 1)?;
        Ok(Transports { udp, tcp, dot, poller })
    }
}

impl Transport for Transports {
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let mut sent = 0;
        while sent < due.len() {
            let kind = in_flight.transport(&due[sent]);
            let alike = due[sent..].iter().take_while(|due| in_flight.transport(due) == kind).count();
            let some = &due[sent..sent + alike];
            let count = match kind {
                Some(Kind::Tcp) => self.tcp.send(some, in_flight)?,
                Some(Kind::Dot) => self.dot.send(some, in_flight)?,
                _ => self.udp.send(some, in_flight)?,
            };
            sent += count;
            if count < alike {
                break;
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let received = self.udp.receive(in_flight)? + self.tcp.receive(in_flight)? + self.dot.receive(in_flight)?;
        let mut failed = 0;
        while failed < TRIES_MAX.min(in_flight.to_ask_again())
            && let Some(due) = in_flight.ask_again()
        {
            let sent = self.tcp.send(&[due], in_flight)?;
            in_flight.asked_again(sent > 0);
            failed += usize::from(sent == 0);
        }
        Ok(received)
    }

    fn waits_for(&self, due: Due, in_flight: &InFlight) -> Wait {
        let connections = match in_flight.transport(&due) {
            Some(Kind::Tcp) => &self.tcp,
            Some(Kind::Dot) => &self.dot,
            _ => return Wait::All,
        };
        if connections.has_connection(due.client) { Wait::Server } else { Wait::NoConnection }
    }

    fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), Failure> {
        if !self.tcp.has_begun() && !self.dot.has_begun() {
            return self.udp.wait(timeout_ns, wanted);
        }
        if self.tcp.has_unread() || self.dot.has_unread() {
            return Ok(());
        }
        // Answers over UDP have the kernel's time, whenever they are read.
        self.poller.sleep(timeout_ns).map_err(cannot_wait)
    }

    fn datagrams_dropped(&self) -> u64 {
        self.udp.datagrams_dropped()
    }

    fn connections(&self) -> Vec<Connections> {
        let mut all = self.tcp.connections();
        all.iter_mut().zip(self.dot.connections()).for_each(|(tcp, dot)| tcp.add(&dot));
        all
    }
}
