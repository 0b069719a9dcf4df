//! The shell of every server: sockets, threads and connections around a [`Service`].
//!
//! [`service`] is what a server has to say; [`connection`] is the state of a stream, without a socket. [`listeners`]
//! and [`sockets`] bind; [`answers`] wait. [`worker`] is one thread's loop over its [`datagrams`] and [`streams`].

pub mod connection;
pub mod datagrams;
pub mod delayed;
pub mod listeners;
pub mod service;
pub mod streams;
pub mod worker;

use std::{
    net::{IpAddr, SocketAddr},
    ops::AddAssign,
    path::PathBuf,
    thread,
};

use serde::Serialize;

use super::{answering_failed, system_failed};
use crate::{
    base::{
        clock,
        events::Anchors,
        failure::Failure,
        stop::{Stop, Wake},
        target,
        threads::Threads,
        units::parse_delay,
    },
    net::{
        connection::limits::Limits,
        tls::identity::{self, Identity},
    },
};
use listeners::Sockets;
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
    /// Of a server that served for so long, with what each thread counted.
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

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Number of threads [default: the number of CPUs that it may run on]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Highest number of open connections. Further ones are closed at once
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub connections_max: u32,
    /// Time after which a connection is closed if no query was completed and no answer taken on it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_delay)]
    pub idle_timeout: i64,
    /// File with the certificates for TLS, the server's own first (PEM) [default: one is made (ECDSA P-256)]
    #[arg(long, value_name = "PEM", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// File with the private key of --certificate (PEM)
    #[arg(long, value_name = "PEM", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Address that you are allowed to serve on, if it is neither loopback nor in 198.18.0.0/15 or 2001:2::/48
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
}

impl Options {
    /// How many threads.
    pub fn threads(&self) -> usize {
        // It looks at the affinity and at the cgroup's quota.
        let cpus = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cpus, usize::from)
    }

    /// The certificate and key that were given, or some for `address`.
    pub fn identity(&self, address: SocketAddr) -> Result<Identity, Failure> {
        identity::identity(self.certificate.as_ref().zip(self.key.as_ref()), address.ip())
    }
}
