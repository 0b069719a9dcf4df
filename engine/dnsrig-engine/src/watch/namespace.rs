//! Opening things inside a network namespace.

use std::{fs::File, io, path::Path, thread};

use nix::sched::{CloneFlags, setns};

/// What `open` gives when it is called inside the network namespace of the file `path`.
///
/// A thread goes into the namespace for it, and ends. What it opened keeps showing that namespace, and keeps it alive:
/// a namespace that is deleted goes away only when `watch` has ended.
pub fn inside<T: Send + 'static>(path: &Path, open: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let namespace = File::open(path)?;
    let enter = move || {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        open()
    };
    thread::spawn(enter).join().unwrap_or_else(|_| Err(io::Error::other("the thread that opens files panicked")))
}
