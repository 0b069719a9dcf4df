//! `serve zones`: a primary whose zones are computed. What shows a secondary's limits, and what the transfer instrument
//! is tested against.
//!
//! Cores without I/O: [`shape`] (the zones as numbers), [`names`], [`records`] and [`content`] (what is in an answer),
//! [`query`] (what is asked), [`answer`] (what a query gets), [`transfer`] (an answer cut into
//! messages), [`conversation`] (the answers of a connection), [`notify`] (whom to tell of changes), [`secondaries`] (what
//! each of them asked), [`faults`]. Shells: [`datagrams`], [`streams`] and [`notifications`] (sockets), [`changing`]
//! (signals, rows), [`worker`] (one thread's loop).

pub mod answer;
pub mod changing;
pub mod content;
pub mod conversation;
pub mod counts;
pub mod datagrams;
pub mod faults;
pub mod message_writer;
pub mod names;
pub mod notifications;
pub mod notify;
mod options;
pub mod primary;
pub mod query;
pub mod records;
pub mod secondaries;
mod setup;
pub mod shape;
pub mod streams;
#[cfg(test)]
pub mod testing;
pub mod transfer;
pub mod worker;

use std::{
    net::{IpAddr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};

use serde::Serialize;

pub use self::options::Arguments;
use crate::{
    base::{
        clock,
        events::{self, Anchors, emit},
        failure::Failure,
        stop::{Stop, Wake},
        target,
        threads::Threads,
    },
    net::connection::limits::Limits,
    serve::{error::ServeError, sockets},
};
use changing::Changing;
use counts::Counts;
use primary::Primary;
use secondaries::Secondary;
use setup::Bound;
use shape::Made;
use worker::Parts;

/// The summary tells so many secondaries apart.
const SECONDARIES_TOLD_MAX: usize = 1000;

#[derive(Serialize)]
struct Ready<'a> {
    /// Changes are counted from here; none: from a signal on.
    start_ns: Option<i64>,
    threads: usize,
    #[serde(flatten)]
    bound: &'a Bound,
}

#[derive(Serialize)]
struct Summary {
    elapsed_ns: i64,
    #[serde(flatten)]
    total: Counts,
    /// The last is the one for changes and NOTIFY, where there is one.
    threads: Vec<Counts>,
    changes: Option<Made>,
    /// What concerns zones that change since they do; the first thousand, by address.
    secondaries: Vec<Told>,
}

#[derive(Serialize)]
struct Told {
    address: IpAddr,
    /// Of the newest version that it took.
    serial: Option<u32>,
    #[serde(flatten)]
    counts: Secondary,
}

/// Serves until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    target::authorise(arguments.address.ip(), arguments.i_am_authorized)?;
    let notified = arguments.notified()?;
    let stop = Stop::new(arguments.until_eof)?;
    let mut anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let primary = Arc::new(arguments.primary(start_ns)?);
    let changing = Changing::new(Arc::clone(&primary), arguments.changes_delay_ns(), arguments.out.clone())?;
    let (bound, sockets) = setup::bind(arguments)?;
    let limits = Limits::new(arguments.connections_max, arguments.idle_timeout);
    let mut threads = Threads::new()?;
    for (datagrams, listeners) in sockets {
        let (primary, limits) = (Arc::clone(&primary), limits.clone());
        let parts = |stop| Parts { stop, primary, datagrams, listeners, limits };
        threads.spawn("zones", |stop| worker::run(parts(stop)).map_err(ServeError::answering))?;
    }
    if primary.shape.changes.per_s > 0.0 {
        let socket = sockets::datagrams(SocketAddr::new(arguments.address.ip(), 0), datagrams::RECEIVE_BUFFER_OCTETS);
        let socket = socket.map_err(|error| ServeError::System("make a socket for NOTIFY", error))?;
        let (primary, catalog_interval_ns) = (Arc::clone(&primary), arguments.notify_interval);
        let parts = move |stop| notifications::Parts { stop, primary, socket, notified, catalog_interval_ns, changing };
        threads.spawn("changes", |stop| notifications::run(parts(stop)).map_err(ServeError::answering))?;
    }
    let ready = Ready { start_ns: primary.period.begin_ns(), threads: arguments.threads(), bound: &bound };
    emit("ready", clock::monotonic_ns(), &ready)?;
    while stop.wait(Some(threads.ended()), anchors.due_ns() - clock::monotonic_ns())? == Wake::Timeout {
        anchors.emit_if_due(clock::monotonic_ns())?;
    }
    let now_ns = clock::monotonic_ns();
    let threads = threads.end()?;
    events::summary(now_ns, &summary(&primary, now_ns - start_ns, threads))?;
    Ok(ExitCode::SUCCESS)
}

fn summary(primary: &Primary, elapsed_ns: i64, threads: Vec<Counts>) -> Summary {
    let mut total = Counts::default();
    threads.iter().for_each(|counts| total += counts);
    let (shape, secondaries) = (&primary.shape, total.secondaries.sorted());
    let told = secondaries.into_iter().take(SECONDARIES_TOLD_MAX).map(|(address, counts)| {
        let serial = counts.version.map(|version| shape.serial(version));
        Told { address, serial, counts }
    });
    let changes = primary.period.begin_ns().filter(|_| shape.changes.per_s > 0.0);
    let changes = changes.map(|begin_ns| shape.made(begin_ns, begin_ns + primary.period.elapsed_ns(i64::MAX)));
    Summary { elapsed_ns, changes, secondaries: told.collect(), total, threads }
}
