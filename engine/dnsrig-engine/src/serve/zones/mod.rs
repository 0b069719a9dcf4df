//! `serve zones`: a primary whose zones are computed. What shows a secondary's limits, and what the transfer instrument
//! is tested against.
//!
//! Cores without I/O: [`shape`] (the zones as numbers), [`names`], [`records`] and [`content`] (what is in an answer),
//! [`query`] and [`tsig`] (what is asked and by whom), [`answer`] (what a query gets), [`transfer`] (an answer cut into
//! messages), [`conversation`] (the answers of a connection), [`notify`] (whom to tell of changes), [`faults`]. Shells:
//! [`datagrams`], [`streams`] and [`notifications`] (sockets), [`worker`] (one thread's loop).

pub mod answer;
pub mod content;
pub mod conversation;
pub mod counts;
pub mod datagrams;
pub mod faults;
pub mod names;
pub mod notifications;
pub mod notify;
mod options;
pub mod pen;
pub mod primary;
pub mod query;
pub mod records;
mod setup;
pub mod shape;
pub mod streams;
#[cfg(test)]
pub mod testing;
pub mod transfer;
pub mod tsig;
pub mod worker;

use std::{net::SocketAddr, process::ExitCode, sync::Arc};

use serde::Serialize;

use crate::{
    clock,
    events::{Anchors, emit},
    failure::Failure,
    serve::{error::ServeError, limits::Limits, sockets, threads::Threads},
    stop::{Stop, Wake},
    target,
};
use counts::Counts;
pub use options::Arguments;
use setup::Bound;
use worker::Parts;

#[derive(Serialize)]
struct Ready<'a> {
    /// Changes are counted from here.
    start_ns: i64,
    threads: usize,
    #[serde(flatten)]
    bound: &'a Bound,
}

#[derive(Serialize)]
struct Summary {
    elapsed_ns: i64,
    #[serde(flatten)]
    total: Counts,
    /// The last is the one for NOTIFY, where there is one.
    threads: Vec<Counts>,
}

/// Serves until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    target::authorise(arguments.address.ip(), arguments.i_am_authorized)?;
    let notified = arguments.notified()?;
    let stop = Stop::new(arguments.until_eof)?;
    let mut anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let primary = Arc::new(arguments.primary(start_ns)?);
    let (bound, sockets) = setup::bind(arguments)?;
    let limits = Limits::new(arguments.connections_max, arguments.idle_timeout);
    let mut threads = Threads::new()?;
    for (datagrams, listeners) in sockets {
        let (primary, limits) = (Arc::clone(&primary), limits.clone());
        threads.spawn("zones", |stop| worker::run(Parts { stop, primary, datagrams, listeners, limits }))?;
    }
    if !notified.is_empty() {
        let socket = sockets::datagrams(SocketAddr::new(arguments.address.ip(), 0), datagrams::RECEIVE_BUFFER_OCTETS);
        let socket = socket.map_err(|error| ServeError::System("make a socket for NOTIFY", error))?;
        let primary = Arc::clone(&primary);
        threads.spawn("notify", |stop| notifications::run(notifications::Parts { stop, primary, socket, notified }))?;
    }
    emit("ready", clock::monotonic_ns(), &Ready { start_ns, threads: arguments.threads(), bound: &bound })?;
    while stop.wait(Some(threads.ended()), anchors.due_ns() - clock::monotonic_ns())? == Wake::Timeout {
        anchors.emit_if_due(clock::monotonic_ns())?;
    }
    let now_ns = clock::monotonic_ns();
    let threads = threads.end()?;
    let mut total = Counts::default();
    threads.iter().for_each(|counts| total += *counts);
    emit("summary", now_ns, &Summary { elapsed_ns: now_ns - start_ns, total, threads })?;
    Ok(ExitCode::SUCCESS)
}
