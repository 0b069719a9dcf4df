//! `serve echo`: the reflector. Known truth for an instrument, and the floor under every chart.
//!
//! Cores without I/O: [`message`], [`faults`], [`delayed`], [`answerer`] (what happens to a query) and
//! [`connection`](super::connection) (a stream's state). Shells: [`datagrams`] and [`streams`] (sockets), [`worker`] (one thread's loop), [`setup`]
//! (what is bound before any thread runs).

pub mod answerer;
pub mod counts;
pub mod datagrams;
pub mod delayed;
pub mod faults;
pub mod message;
mod options;
mod setup;
pub mod streams;
pub mod worker;

use std::process::ExitCode;

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
    serve::error::ServeError,
};
use counts::Counts;
use setup::Bound;
use worker::Parts;

#[derive(Serialize)]
struct Ready<'a> {
    /// The first stall period starts here.
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
    threads: Vec<Counts>,
}

/// Echoes until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    target::authorise(arguments.address.ip(), arguments.i_am_authorized)?;
    let faults = arguments.faults()?;
    let stop = Stop::new(arguments.until_eof)?;
    let mut anchors = Anchors::start()?;
    let (bound, sockets) = setup::bind(arguments)?;
    let start_ns = clock::monotonic_ns();
    let mut threads = Threads::new()?;
    for (number, sockets) in sockets.into_iter().enumerate() {
        let (answerer, limits) = (arguments.answerer(faults, number, start_ns), bound.limits.clone());
        let parts = |stop| Parts { stop, sockets, answerer, limits };
        threads.spawn("echo", |stop| worker::run(parts(stop)).map_err(ServeError::answering))?;
    }
    emit("ready", clock::monotonic_ns(), &Ready { start_ns, threads: arguments.threads(), bound: &bound })?;
    while stop.wait(Some(threads.ended()), anchors.due_ns() - clock::monotonic_ns())? == Wake::Timeout {
        anchors.emit_if_due(clock::monotonic_ns())?;
    }
    let now_ns = clock::monotonic_ns();
    let threads = threads.end()?;
    let mut total = Counts::default();
    threads.iter().for_each(|counts| total += *counts);
    events::summary(now_ns, &Summary { elapsed_ns: now_ns - start_ns, total, threads })?;
    Ok(ExitCode::SUCCESS)
}
