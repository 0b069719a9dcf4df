//! One thread of the echo: its own sockets, its own counts, nothing shared while packets flow.

use std::{io, mem, os::fd::AsFd, sync::Arc};

use nix::sys::{epoll::EpollFlags, eventfd::EventFd};

use super::{
    answerer::{Answerer, Destination},
    counts::Counts,
    datagrams::Datagrams,
    delayed::OCTETS_MAX,
    streams::Streams,
};
use crate::{
    base::clock,
    net::{
        connection::{limits::Limits, table::Token},
        poller::{Poller, Timeout, sleep_until_readable},
    },
    serve::listeners::{self, Listener},
};

// The poller's numbers for what is no connection: those are below 2^63.
const STOP: u64 = u64::MAX;
const DATAGRAMS: u64 = u64::MAX - 1;
/// The first listener; the next ones count down.
const LISTENER: u64 = u64::MAX - 2;

/// The last part of a wait for an exact time is spent looking at the clock: waking up takes as long.
const SPIN_NS: i64 = 50_000;

/// Connections are looked through for idle ones this often.
const SWEEP_INTERVAL_MS: u16 = 1000;

/// The sockets of one thread.
pub struct Sockets {
    /// For UDP.
    pub datagrams: Option<Datagrams>,
    /// For TCP and DNS over TLS.
    pub listeners: Vec<Listener>,
}

/// What a thread is made of.
pub struct Parts {
    /// Readable when the thread is to end.
    pub stop: Arc<EventFd>,
    /// Where it listens.
    pub sockets: Sockets,
    /// What it does with queries.
    pub answerer: Answerer,
    /// For its connections.
    pub limits: Limits,
}

/// Answers until told to end, and returns what was counted.
pub fn run(parts: Parts) -> io::Result<Counts> {
    if parts.answerer.has_faults() {
        clock::wait_exactly()?;
    }
    let mut worker = Worker::new(parts)?;
    while worker.turn()? {}
    Ok(worker.finish())
}

struct Worker {
    parts: Parts,
    poller: Poller,
    streams: Streams,
    sweep_due_ns: i64,
    /// A listener is not listened to until the next sweep.
    is_paused: bool,
}

impl Worker {
    fn new(parts: Parts) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(parts.stop.as_fd(), EpollFlags::EPOLLIN, STOP)?;
        if let Some(datagrams) = &parts.sockets.datagrams {
            poller.add(datagrams.socket(), EpollFlags::EPOLLIN, DATAGRAMS)?;
        }
        for ((listener, _), number) in parts.sockets.listeners.iter().zip((0..=LISTENER).rev()) {
            poller.add(listener, EpollFlags::EPOLLIN, number)?;
        }
        let streams = Streams::new(parts.limits.clone());
        Ok(Worker { parts, poller, streams, sweep_due_ns: 0, is_paused: false })
    }

    /// Waits once and does what is to be done; false if that was to end.
    fn turn(&mut self) -> io::Result<bool> {
        if let Some(end_ns) = self.parts.answerer.stalled_until_ns() {
            // As blocked as a thread can be: nothing is read, nothing accepted, nothing sent.
            return Ok(!sleep_until(end_ns, &self.parts.stop)?);
        }
        self.answer_due()?;
        let count = self.poller.wait(self.patience())?;
        if self.parts.answerer.stalled_until_ns().is_some() {
            // A stall began while we waited: what woke us stays in the sockets.
            return Ok(true);
        }
        let now_ns = if self.has_streams() { clock::monotonic_ns() } else { 0 };
        for at in 0..count {
            let (number, happened) = self.poller.event(at);
            if number == STOP {
                return Ok(false);
            }
            self.on_event(number, happened, now_ns)?;
        }
        if self.has_streams() && now_ns >= self.sweep_due_ns {
            self.sweep_due_ns = now_ns + i64::from(SWEEP_INTERVAL_MS) * 1_000_000;
            self.streams.sweep(now_ns, &mut self.parts.answerer);
            if mem::take(&mut self.is_paused) {
                listeners::listen(&self.parts.sockets.listeners, LISTENER, &self.poller)?;
            }
        }
        Ok(true)
    }

    fn on_event(&mut self, number: u64, happened: EpollFlags, now_ns: i64) -> io::Result<()> {
        let Worker {
            parts: Parts { sockets: Sockets { datagrams, listeners }, answerer, .. },
            poller,
            streams,
            is_paused,
            ..
        } = self;
        if number == DATAGRAMS {
            return datagrams.as_mut().map_or(Ok(()), |datagrams| datagrams.answer(answerer));
        }
        match listeners.get((LISTENER - number) as usize) {
            Some((listener, config)) => {
                if !streams.accept(listener, config.as_ref(), now_ns, answerer, poller)? {
                    poller.change(listener, EpollFlags::empty(), number)?;
                    *is_paused = true;
                }
                Ok(())
            }
            None => streams.on_event(Token::from_number(number), happened, now_ns, answerer, poller),
        }
    }

    /// Sends the answers whose delay is over.
    fn answer_due(&mut self) -> io::Result<()> {
        let Worker { parts: Parts { sockets: Sockets { datagrams, .. }, answerer, .. }, poller, streams, .. } = self;
        let mut room = [0; OCTETS_MAX];
        while let Some((to, octets)) = answerer.pop_due() {
            let query = &mut room[..octets.len()];
            query.copy_from_slice(octets);
            match (to, datagrams.as_mut()) {
                (Destination::Datagram(peer), Some(datagrams)) => datagrams.answer_later(query, peer, answerer),
                (Destination::Stream(token), _) => streams.answer_later(token, query, answerer, poller)?,
                (Destination::Datagram(_), None) => {}
            }
        }
        if let Some(datagrams) = datagrams {
            datagrams.flush(answerer);
        }
        Ok(())
    }

    fn patience(&self) -> Timeout {
        match self.parts.answerer.due_ns() {
            Some(due_ns) => Timeout::Exact(due_ns - clock::monotonic_ns() - SPIN_NS),
            None if self.has_streams() => Timeout::Coarse(SWEEP_INTERVAL_MS),
            None => Timeout::Endless,
        }
    }

    fn has_streams(&self) -> bool {
        !self.parts.sockets.listeners.is_empty()
    }

    fn finish(self) -> Counts {
        let Parts { answerer, sockets: Sockets { datagrams, .. }, .. } = self.parts;
        let mut counts = answerer.finish();
        counts.receive_buffer_drops = datagrams.map_or(0, |datagrams| datagrams.receive_buffer_drops());
        counts.cpu_ns = clock::thread_cpu_ns();
        counts
    }
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
