//! Starts the threads, and ends them together.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    thread::{self, JoinHandle},
};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::{
    answerer::Answerer,
    counts::Counts,
    error::EchoError,
    setup::Sockets,
    streams::Limits,
    worker::{self, Parts},
};

/// The running threads.
pub struct Threads {
    /// Written once and never read, so that every thread sees it.
    stop: Arc<EventFd>,
    ended: Arc<EventFd>,
    handles: Vec<JoinHandle<io::Result<Counts>>>,
}

impl Threads {
    /// None yet.
    pub fn new() -> Result<Self, EchoError> {
        let event = || {
            let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
            event.map(Arc::new).map_err(|error| EchoError::System("make an event", error.into()))
        };
        Ok(Threads { stop: event()?, ended: event()?, handles: Vec::new() })
    }

    /// Starts one more.
    pub fn spawn(&mut self, sockets: Sockets, answerer: Answerer, limits: Limits) -> Result<(), EchoError> {
        let Sockets { datagrams, listeners } = sockets;
        let parts = Parts { stop: Arc::clone(&self.stop), datagrams, listeners, answerer, limits };
        let ended = Tell(Arc::clone(&self.ended));
        let name = format!("echo-{}", self.handles.len());
        let handle = thread::Builder::new().name(name).spawn(move || {
            let _ended = ended;
            worker::run(parts)
        });
        self.handles.push(handle.map_err(|error| EchoError::System("start a thread", error))?);
        Ok(())
    }

    /// Readable when a thread has ended, which none does by itself unless it fails.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Ends all and returns what each counted.
    pub fn end(self) -> Result<Vec<Counts>, EchoError> {
        self.stop.write(1).map_err(|error| EchoError::System("end the threads", error.into()))?;
        let joined = self.handles.into_iter().map(|handle| {
            let result = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.map_err(|error| EchoError::System("go on answering", error))
        });
        joined.collect()
    }
}

/// Tells when its thread ends, in whichever way.
struct Tell(Arc<EventFd>);

impl Drop for Tell {
    fn drop(&mut self) {
        let _ = self.0.write(1);
    }
}
