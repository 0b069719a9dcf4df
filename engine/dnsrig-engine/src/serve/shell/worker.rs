//! One thread of a server: its own sockets, its own service, nothing shared while packets flow.

use std::{io, mem, os::fd::AsFd};

use dnsrig_core::clock;
use dnsrig_net::{
    connection::limits::Limits,
    poller::{Poller, Timeout, sleep_until_readable},
};
use nix::sys::{epoll::EpollFlags, eventfd::EventFd};
use slotmap::KeyData;

use super::{
    connections::{Context, OpenConnections},
    datagrams::Datagrams,
    listeners::Sockets,
    quic::Quic,
    service::{DATAGRAM_BYTES_MAX, Destination, Service, ShellCounts},
};

// The poller's numbers for what is no connection: the keys of connections are 2^32 and above.
const STOP: u64 = 0;
/// The first socket of datagrams; the next ones count up, and the listeners behind them.
const DATAGRAMS: u64 = 1;

/// The last part of a wait for an exact time is spent looking at the clock: waking up takes as long.
pub const SPIN_NS: i64 = 50_000;

/// Connections are looked through for idle ones this often.
const SWEEP_INTERVAL_MS: u16 = 1000;

/// The loop of one thread.
pub struct Worker<S: Service> {
    service: S,
    sockets: Sockets,
    connections: OpenConnections<S::Conversation>,
    poller: Poller,
    sweep_due_ns: i64,
    /// A listener is not listened to until the next sweep.
    is_paused: bool,
}

impl<S: Service> Worker<S> {
    /// All that needs a descriptor is made here, before the thread starts.
    pub fn new(service: S, sockets: Sockets, limits: Limits) -> io::Result<Self> {
        let poller = Poller::new()?;
        for (datagrams, number) in sockets.datagrams.iter().zip(DATAGRAMS..) {
            poller.add(datagrams.socket(), EpollFlags::EPOLLIN, number)?;
        }
        for ((listener, _), number) in sockets.listeners.iter().zip(first_listener(&sockets)..) {
            poller.add(listener, EpollFlags::EPOLLIN, number)?;
        }
        for (quic, number) in sockets.quic.iter().zip(first_quic(&sockets)..) {
            poller.add(quic.socket(), EpollFlags::EPOLLIN, number)?;
        }
        Ok(Worker {
            service,
            sockets,
            connections: OpenConnections::new(limits),
            poller,
            sweep_due_ns: 0,
            is_paused: false,
        })
    }

    /// Serves until `stop` is readable, and returns what was counted.
    pub fn run(mut self, stop: &EventFd) -> io::Result<S::Counts> {
        clock::wait_exactly()?;
        self.poller.add(stop.as_fd(), EpollFlags::EPOLLIN, STOP)?;
        while self.turn(stop)? {}
        Ok(self.finish())
    }

    /// Waits once and does what is to be done; false if that was to end.
    fn turn(&mut self, stop: &EventFd) -> io::Result<bool> {
        if let Some(end_ns) = self.service.blocked_until_ns() {
            // The thread is blocked on purpose: nothing is read, accepted or sent.
            return Ok(!sleep_until(end_ns, stop)?);
        }
        self.send_due()?;
        let count = self.poller.wait(self.timeout())?;
        if self.service.blocked_until_ns().is_some() {
            // It was blocked while we waited: what woke us stays in the sockets.
            return Ok(true);
        }
        self.service.tick();
        let has_connections = self.has_listeners() || !self.sockets.quic.is_empty();
        let now_ns = if has_connections { clock::monotonic_ns() } else { 0 };
        for at in 0..count {
            let (number, happened) = self.poller.event(at);
            if number == STOP {
                return Ok(false);
            }
            self.on_event(number, happened, now_ns)?;
        }
        let Worker { service, sockets: Sockets { quic, .. }, .. } = self;
        quic.iter_mut().for_each(|quic| quic.on_time(now_ns, service));
        if self.has_listeners() && now_ns >= self.sweep_due_ns {
            self.sweep_due_ns = now_ns + i64::from(SWEEP_INTERVAL_MS) * 1_000_000;
            self.connections.sweep(now_ns, &mut self.service);
            if mem::take(&mut self.is_paused) {
                for ((listener, _), number) in self.sockets.listeners.iter().zip(first_listener(&self.sockets)..) {
                    self.poller.change(listener, EpollFlags::EPOLLIN, number)?;
                }
            }
        }
        Ok(true)
    }

    fn on_event(&mut self, number: u64, happened: EpollFlags, now_ns: i64) -> io::Result<()> {
        let (first_listener, first_quic) = (first_listener(&self.sockets), first_quic(&self.sockets));
        let Worker { service, sockets: Sockets { datagrams, listeners, quic }, connections, poller, .. } = self;
        if let Some(quic) = number.checked_sub(first_quic).and_then(|at| quic.get_mut(at as usize)) {
            return quic.receive(service);
        }
        if let Some(datagrams) = datagrams.get_mut((number - DATAGRAMS) as usize) {
            return datagrams.answer(service);
        }
        let mut context = Context { service, poller, now_ns };
        match listeners.get((number - first_listener) as usize) {
            Some((listener, tls)) => {
                if !connections.accept(listener, tls.as_ref(), &mut context)? {
                    poller.change(listener, EpollFlags::empty(), number)?;
                    self.is_paused = true;
                }
                Ok(())
            }
            None => connections.on_event(KeyData::from_ffi(number).into(), happened, &mut context),
        }
    }

    /// Goes on with what had to wait for its time.
    fn send_due(&mut self) -> io::Result<()> {
        if self.service.due_ns().is_none() {
            return Ok(());
        }
        let Worker { service, sockets: Sockets { datagrams, quic, .. }, connections, poller, .. } = self;
        let mut space = [0; DATAGRAM_BYTES_MAX];
        service.tick();
        while let Some((to, length)) = service.take_due(&mut space) {
            let message = &space[..length];
            match to {
                Destination::Datagram { peer, source } => {
                    // One socket a family.
                    if let Some(datagrams) = datagrams.iter_mut().find(|datagrams| datagrams.reaches(peer)) {
                        datagrams.send(message, peer, source, service);
                    }
                }
                Destination::Stream(key) => {
                    let answered = u64::from(quic.iter_mut().any(|quic| quic.answer(key, message, service)));
                    service.datagrams_sent(answered, 1 - answered);
                }
                Destination::Connection(key) => {
                    let now_ns = clock::monotonic_ns();
                    connections.resume(key, message, &mut Context { service, poller, now_ns })?;
                }
            }
        }
        datagrams.iter_mut().for_each(|datagrams| datagrams.flush(service));
        Ok(())
    }

    fn timeout(&self) -> Timeout {
        let quic = self.sockets.quic.iter().filter_map(Quic::due_ns);
        match self.service.due_ns().into_iter().chain(quic).min() {
            Some(due_ns) => {
                // The sweep of connections does not wait for QUIC.
                let due_ns = if self.has_listeners() { due_ns.min(self.sweep_due_ns) } else { due_ns };
                Timeout::Exact(due_ns - clock::monotonic_ns())
            }
            None if self.has_listeners() => Timeout::Coarse(SWEEP_INTERVAL_MS),
            None => Timeout::Endless,
        }
    }

    fn has_listeners(&self) -> bool {
        !self.sockets.listeners.is_empty()
    }

    fn finish(self) -> S::Counts {
        let Worker { mut service, sockets: Sockets { datagrams, quic, .. }, connections, .. } = self;
        let mut connections = connections.finish(&mut service);
        let mut receive_buffer_drops = datagrams.iter().map(Datagrams::receive_buffer_drops).sum();
        quic.iter().for_each(|quic| quic.add_counts(&mut connections, &mut receive_buffer_drops));
        service.finish(ShellCounts { connections, receive_buffer_drops, cpu_ns: clock::thread_cpu_ns() })
    }
}

/// The poller's number for the first socket of QUIC.
fn first_quic(sockets: &Sockets) -> u64 {
    first_listener(sockets) + sockets.listeners.len() as u64
}

/// The poller's number for the first listener.
fn first_listener(sockets: &Sockets) -> u64 {
    DATAGRAMS + sockets.datagrams.len() as u64
}

/// Sleeps until `end_ns`, the last of it awake; true if `stop` came first.
fn sleep_until(end_ns: i64, stop: &EventFd) -> io::Result<bool> {
    loop {
        match end_ns - clock::monotonic_ns() {
            ..=0 => return Ok(false),
            1..=SPIN_NS => std::hint::spin_loop(),
            left_ns if sleep_until_readable(stop, left_ns - SPIN_NS)? => return Ok(true),
            _ => {}
        }
    }
}
