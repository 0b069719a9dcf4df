//! Starts the threads of a server, and ends them together.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    thread::{self, JoinHandle},
};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::error::ServeError;

/// The running threads, each of which gives a `T` in the end: what it counted.
pub struct Threads<T> {
    /// Written once and never read, so that every thread sees it.
    stop: Arc<EventFd>,
    ended: Arc<EventFd>,
    handles: Vec<JoinHandle<io::Result<T>>>,
}

impl<T: Send + 'static> Threads<T> {
    /// None yet.
    pub fn new() -> Result<Self, ServeError> {
        let event = || {
            let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
            event.map(Arc::new).map_err(|error| ServeError::System("make an event", error.into()))
        };
        Ok(Threads { stop: event()?, ended: event()?, handles: Vec::new() })
    }

    /// Starts one more; `work` gets what can be read when it is to end.
    pub fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(Arc<EventFd>) -> io::Result<T> + Send + 'static,
    ) -> Result<(), ServeError> {
        let stop = Arc::clone(&self.stop);
        let ended = Tell(Arc::clone(&self.ended));
        let name = format!("{name}-{}", self.handles.len());
        let handle = thread::Builder::new().name(name).spawn(move || {
            let _ended = ended;
            work(stop)
        });
        self.handles.push(handle.map_err(|error| ServeError::System("start a thread", error))?);
        Ok(())
    }

    /// Readable when a thread has ended, which none does by itself unless it fails.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Ends all and returns what each counted.
    pub fn end(self) -> Result<Vec<T>, ServeError> {
        self.stop.write(1).map_err(|error| ServeError::System("end the threads", error.into()))?;
        let joined = self.handles.into_iter().map(|handle| {
            let result = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.map_err(|error| ServeError::System("go on answering", error))
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
