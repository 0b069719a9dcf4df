//! Opening things inside a network namespace.

use std::{fs::File, io, path::Path, thread};

use nix::sched::{CloneFlags, setns};

/// What `open` gives when it is called inside the network namespace of the file `path`.
///
/// A thread goes into the namespace for it, and ends; the process stays where it is. What was opened keeps showing that
/// namespace, and keeps it alive: a namespace that is deleted goes away only when what was opened is closed.
pub fn inside<T: Send>(path: &Path, open: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let namespace = File::open(path)?;
    let enter = move || {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        open()
    };
    thread::scope(|scope| scope.spawn(enter).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
}
