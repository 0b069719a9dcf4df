//! Waiting for many sockets: epoll(7), with a time-out in nanoseconds.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        time::TimeSpec,
    },
};

/// Something can be read, or the other side has closed.
pub const READ: EpollFlags = EpollFlags::EPOLLIN;

/// Something can be written, or connecting has ended.
pub const WRITE: EpollFlags = EpollFlags::EPOLLOUT;

/// At most so many sockets are told at once; the others are the next time.
const EVENTS_MAX: usize = 256;

/// A set of sockets, each with a number that stands for it.
pub struct Poll {
    epoll: Epoll,
    events: Box<[EpollEvent]>,
}

impl Poll {
    /// Without a socket.
    pub fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Poll { epoll, events: vec![EpollEvent::empty(); EVENTS_MAX].into_boxed_slice() })
    }

    /// Watches `socket` for `flags`; closing it takes it out again.
    pub fn add(&self, socket: impl AsFd, number: u64, flags: EpollFlags) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(flags, number))?)
    }

    /// Watches a socket that is in the set for other `flags`.
    pub fn change(&self, socket: impl AsFd, number: u64, flags: EpollFlags) -> io::Result<()> {
        Ok(self.epoll.modify(socket, &mut EpollEvent::new(flags, number))?)
    }

    /// How many sockets are ready now; [`Poll::event`] tells which. Does not wait.
    pub fn ready(&mut self) -> io::Result<usize> {
        match self.epoll.wait(&mut self.events, EpollTimeout::ZERO) {
            Err(nix::Error::EINTR) => Ok(0),
            ready => Ok(ready?),
        }
    }

    /// The number and the state of the socket at place `at` of the last [`Poll::ready`].
    pub fn event(&self, at: usize) -> (u64, EpollFlags) {
        (self.events[at].data(), self.events[at].events())
    }

    /// Waits until a socket is ready, at most `timeout_ns`; it may come back early.
    pub fn wait(&self, timeout_ns: i64) -> io::Result<()> {
        // An epoll set is itself readable when something in it is ready, and ppoll(2) counts nanoseconds.
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(timeout_ns.max(0).unsigned_abs()));
        let set = self.epoll.0.as_fd();
        debug_assert!(set.as_raw_fd() >= 0);
        match ppoll(&mut [PollFd::new(set, PollFlags::POLLIN)], Some(timeout), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
