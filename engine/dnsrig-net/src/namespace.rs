//! Network namespaces.

use std::{fs::File, io, path::Path, thread};

use nix::sched::{CloneFlags, setns};

/// Calls `open` inside the network namespace of the file `path`.
///
/// A thread of its own enters the namespace and ends; the process stays in its namespace. What `open` opens belongs to
/// that namespace and keeps it alive: a namespace that is deleted goes away only when everything in it is closed.
pub fn inside<T: Send>(path: &Path, open: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let namespace = File::open(path)?;
    let enter = move || {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        open()
    };
    thread::scope(|scope| scope.spawn(enter).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
}
