//! A wait for many descriptors (epoll(7)), to the nanosecond if wanted.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        time::TimeSpec,
    },
};

/// The number of descriptors that one wait reports at most; the others follow with the next wait.
const EVENTS_MAX: usize = 256;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Until something happens.
    Endless,
    /// About this number of milliseconds.
    Coarse(u16),
    /// This number of nanoseconds, as exactly as the thread's timer slack (prctl(2)) allows; 0 or less: do not wait.
    Exact(i64),
}

/// A set of descriptors, each with a number that identifies it.
pub struct Poller {
    epoll: Epoll,
    events: Box<[EpollEvent]>,
    count: usize,
}

impl Poller {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        let events = vec![EpollEvent::empty(); EVENTS_MAX].into_boxed_slice();
        Ok(Poller { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, events, count: 0 })
    }

    /// Adds a descriptor; it leaves the set when it is closed.
    pub fn add(&self, descriptor: impl AsFd, interest: EpollFlags, number: u64) -> io::Result<()> {
        Ok(self.epoll.add(descriptor, EpollEvent::new(interest, number))?)
    }

    /// Changes which events of a descriptor are waited for.
    pub fn change(&self, descriptor: impl AsFd, interest: EpollFlags, number: u64) -> io::Result<()> {
        Ok(self.epoll.modify(descriptor, &mut EpollEvent::new(interest, number))?)
    }

    /// Removes a descriptor that stays open.
    pub fn remove(&self, descriptor: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(descriptor)?)
    }

    /// Waits, and returns the number of descriptors with an event: see [`Poller::event`].
    pub fn wait(&mut self, timeout: Timeout) -> io::Result<usize> {
        let timeout = match timeout {
            Timeout::Endless => EpollTimeout::NONE,
            Timeout::Coarse(ms) => EpollTimeout::from(ms),
            Timeout::Exact(ns) => {
                // epoll_pwait2(2) would do it in one call, but needs Linux 5.11 and glibc 2.35.
                if ns > 0 {
                    sleep_until_readable(&self.epoll.0, ns)?;
                }
                EpollTimeout::ZERO
            }
        };
        self.count = match self.epoll.wait(&mut self.events, timeout) {
            Err(nix::Error::EINTR) => 0,
            count => count?,
        };
        Ok(self.count)
    }

    /// Sleeps for `ns`, or less if a descriptor has an event, which the next [`Poller::wait`] returns.
    pub fn sleep(&self, ns: i64) -> io::Result<()> {
        sleep_until_readable(&self.epoll.0, ns).map(|_| ())
    }

    /// The number of a descriptor, and its events: the one at place `at` of the last wait.
    pub fn event(&self, at: usize) -> (u64, EpollFlags) {
        let event = self.events[..self.count][at];
        (event.data(), event.events())
    }
}

/// A set is a descriptor itself, and readable when one of its descriptors has an event.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// Sleeps for `ns`, or less if `descriptor` can be read, and returns whether it can.
pub fn sleep_until_readable(descriptor: impl AsFd, ns: i64) -> io::Result<bool> {
    let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    let time = TimeSpec::from_duration(std::time::Duration::from_nanos(ns.max(0).unsigned_abs()));
    match ppoll(&mut fds, Some(time), None) {
        Err(nix::Error::EINTR) => Ok(false),
        count => Ok(count? > 0),
    }
}
