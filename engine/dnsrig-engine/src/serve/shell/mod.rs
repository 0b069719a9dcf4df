//! The shell of every server: sockets, threads and connections around a [`Service`].
//!
//! [`service`] is what each server defines. [`listeners`] claims and binds addresses. [`worker`] is the loop of a
//! thread over its UDP sockets ([`datagrams`]), its TCP connections ([`connections`]) and its QUIC connections
//! ([`quic`]). [`connection`] is the state
//! of one connection, without a socket. [`delayed`] keeps answers until they are due.

pub mod connection;
pub mod connections;
pub mod datagrams;
pub mod delayed;
pub mod listeners;
pub mod options;
pub mod quic;
pub mod service;
pub mod worker;

use std::{net::IpAddr, ops::AddAssign};

use dnsrig_core::{
    clock,
    events::Anchors,
    failure::{Failure, system_failed},
    stop::{Stop, Wake},
    target,
    threads::Threads,
};
use dnsrig_net::connection::limits::Limits;
use serde::Serialize;

use super::failure::answering_failed;
use listeners::Sockets;
use options::Options;
use service::Service;
use worker::Worker;

/// What a server says in the end.
#[derive(Debug, Serialize)]
pub struct Summary<C> {
    elapsed_ns: i64,
    #[serde(flatten)]
    pub total: C,
    threads: Vec<C>,
}

impl<C: Default + for<'a> AddAssign<&'a C>> Summary<C> {
    /// Makes the summary of a server that served for `elapsed_ns`, from the counts of each thread.
    pub fn new(elapsed_ns: i64, threads: Vec<C>) -> Self {
        let mut total = C::default();
        threads.iter().for_each(|counts| total += counts);
        Summary { elapsed_ns, total, threads }
    }
}

/// The threads of a server; `C` is what each of them counts.
pub struct Server<C> {
    stop: Stop,
    anchors: Anchors,
    pub threads: Threads<C>,
}

impl<C: Send + 'static> Server<C> {
    /// A server without threads. Printed: `started`.
    pub fn new(address: IpAddr, options: &Options) -> Result<Self, Failure> {
        target::authorise_own(address, options.i_am_authorized)?;
        let stop = Stop::new(options.until_eof)?;
        Ok(Server { stop, anchors: Anchors::start()?, threads: Threads::new()? })
    }

    /// Starts threads called `name`, each with its sockets and its service.
    pub fn start<S: Service<Counts = C, Conversation: Send> + Send + 'static>(
        &mut self,
        name: &str,
        sockets: Vec<Sockets>,
        options: &Options,
        service: impl Fn(usize) -> S,
    ) -> Result<(), Failure> {
        let limits = Limits::new(options.connections_max, options.idle_timeout);
        for (number, sockets) in sockets.into_iter().enumerate() {
            let worker = Worker::new(service(number), sockets, limits.clone());
            let worker = worker.map_err(|error| system_failed("watch sockets", error))?;
            self.threads.spawn(name, move |stop| worker.run(&stop).map_err(answering_failed))?;
        }
        Ok(())
    }

    /// Serves until someone ends it: when that was, and what each thread counted.
    pub fn serve(mut self) -> Result<(i64, Vec<C>), Failure> {
        let ended = self.threads.ended();
        while self.stop.wait(Some(ended), self.anchors.due_ns() - clock::monotonic_ns())? == Wake::Timeout {
            self.anchors.emit_if_due(clock::monotonic_ns())?;
        }
        Ok((clock::monotonic_ns(), self.threads.end()?))
    }
}
