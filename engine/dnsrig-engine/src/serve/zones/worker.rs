//! One thread of the primary: its own sockets, its own counts.

use std::{io, os::fd::AsFd, sync::Arc};

use nix::sys::{epoll::EpollFlags, eventfd::EventFd};

use super::{
    counts::Counts,
    datagrams::Datagrams,
    primary::{Now, Primary},
    streams::{Context, Streams},
};
use crate::{
    base::clock,
    net::{
        connection::{limits::Limits, table::Token},
        poller::{Poller, Timeout},
    },
    serve::listeners::{self, Listener},
};

// The poller's numbers for what is no connection: those are below 2^63.
const STOP: u64 = u64::MAX;
const DATAGRAMS: u64 = u64::MAX - 1;
/// The first listener; the next ones count down.
const LISTENER: u64 = u64::MAX - 2;

/// Connections are looked through for idle ones this often.
const SWEEP_INTERVAL_MS: u16 = 1000;

/// What a thread is made of.
pub struct Parts {
    /// Readable when the thread is to end.
    pub stop: Arc<EventFd>,
    pub primary: Arc<Primary>,
    pub datagrams: Option<Datagrams>,
    pub listeners: Vec<Listener>,
    /// For its connections.
    pub limits: Limits,
}

/// Serves until told to end, and returns what was counted.
pub fn run(parts: Parts) -> io::Result<Counts> {
    let mut worker = Worker::new(parts)?;
    while worker.turn()? {}
    let Worker { mut streams, mut counts, .. } = worker;
    streams.abandon(&mut counts);
    counts.cpu_ns = clock::thread_cpu_ns();
    Ok(counts)
}

struct Worker {
    parts: Parts,
    poller: Poller,
    streams: Streams,
    counts: Counts,
    sweep_due_ns: i64,
    /// A listener is not listened to until the next sweep.
    is_paused: bool,
}

impl Worker {
    fn new(parts: Parts) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(parts.stop.as_fd(), EpollFlags::EPOLLIN, STOP)?;
        if let Some(datagrams) = &parts.datagrams {
            poller.add(datagrams.socket(), EpollFlags::EPOLLIN, DATAGRAMS)?;
        }
        for ((listener, _), number) in parts.listeners.iter().zip((0..=LISTENER).rev()) {
            poller.add(listener, EpollFlags::EPOLLIN, number)?;
        }
        let streams = Streams::new(parts.limits.clone());
        Ok(Worker { parts, poller, streams, counts: Counts::default(), sweep_due_ns: 0, is_paused: false })
    }

    /// Waits once and does what is to be done; false if that was to end.
    fn turn(&mut self) -> io::Result<bool> {
        let patience = match self.streams.due_ns() {
            Some(due_ns) => Timeout::Exact(due_ns - clock::monotonic_ns()),
            None => Timeout::Coarse(SWEEP_INTERVAL_MS),
        };
        let count = self.poller.wait(patience)?;
        let Worker { parts: Parts { primary, datagrams, listeners, .. }, poller, streams, counts, .. } = self;
        let wall_s = if primary.key.is_some() { clock::wall_time_s() } else { 0 };
        let now = Now { monotonic_ns: clock::monotonic_ns(), wall_s };
        let mut context = Context { primary, now, counts, poller };
        for at in 0..count {
            let (number, happened) = context.poller.event(at);
            match number {
                STOP => return Ok(false),
                DATAGRAMS => {
                    if let Some(datagrams) = datagrams {
                        datagrams.answer(primary, now, context.counts)?;
                    }
                }
                _ => match listeners.get((LISTENER - number) as usize) {
                    Some((listener, config)) => {
                        if !streams.accept(listener, config.as_ref(), &mut context)? {
                            context.poller.change(listener, EpollFlags::empty(), number)?;
                            self.is_paused = true;
                        }
                    }
                    None => streams.on_event(Token::from_number(number), happened, &mut context)?,
                },
            }
        }
        streams.resume(&mut context)?;
        if now.monotonic_ns >= self.sweep_due_ns {
            self.sweep_due_ns = now.monotonic_ns + i64::from(SWEEP_INTERVAL_MS) * 1_000_000;
            streams.sweep(now.monotonic_ns, counts);
            if std::mem::take(&mut self.is_paused) {
                listeners::listen(listeners, LISTENER, poller)?;
            }
        }
        Ok(true)
    }
}
