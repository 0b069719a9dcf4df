//! `serve zones`: a primary whose zones are computed, to find the limits of secondaries and to test `transfer` against.
//!
//! Cores without I/O: [`shape`] (the zones as numbers), [`names`], [`records`] and [`content`] (what is in an answer),
//! [`query`] (reads a query), [`answer`] (what a query gets), [`transfer`] (an answer cut into
//! messages), [`conversation`] (the answers of a connection), [`notify`] (which secondaries to notify of changes),
//! [`counts`], [`faults`]. [`service`] has them answer in the [`shell`](super::shell). [`notifications`] has a thread
//! of its own, with a socket and signals.

pub mod answer;
pub mod content;
pub mod conversation;
pub mod counts;
pub mod faults;
pub mod names;
mod notifications;
pub mod notify;
mod options;
pub mod primary;
pub mod query;
pub mod records;
pub mod service;
pub mod shape;
#[cfg(test)]
pub mod testing;
pub mod transfer;

use std::{
    net::{IpAddr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};

use dnsrig_core::{
    clock,
    events::{self, emit},
    failure::{Failure, system_failed},
    output,
};
use dnsrig_net::tls;
use serde::Serialize;

pub use self::options::Arguments;
use crate::serve::{
    failure::answering_failed,
    shell::{
        Server, Summary,
        connection::Tls,
        listeners::{self, Asked, Listeners},
    },
};
use counts::Counts;
use counts::Secondary;
use notifications::Changing;
use options::Transport;
use primary::Primary;
use service::Answerer;
use shape::Made;

/// The summary tells so many secondaries apart.
const SECONDARIES_LISTED_MAX: usize = 1000;

/// The receive buffer asked for, of each UDP socket.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;

#[derive(Serialize)]
struct Ready {
    /// Changes are counted from here; none: from a signal on.
    start_ns: Option<i64>,
    threads: usize,
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    xot: Option<SocketAddr>,
    xoq: Option<SocketAddr>,
}

#[derive(Serialize)]
struct Ended {
    /// The last entry of `threads` is the thread for changes and NOTIFY, if there is one.
    #[serde(flatten)]
    counted: Summary<Counts>,
    changes: Option<Made>,
    /// What concerns zones that change since they do; the first thousand, by address.
    secondaries: Vec<SecondarySummary>,
}

#[derive(Serialize)]
struct SecondarySummary {
    address: IpAddr,
    /// The serial of the newest version that it transferred.
    serial: Option<u32>,
    #[serde(flatten)]
    counts: Secondary,
}

/// Serves until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { address, shell, .. } = arguments;
    let read = [&shell.certificate, &shell.key, &arguments.client_ca].map(Option::as_deref);
    output::check(&[arguments.out.as_deref()], &read)?;
    let notified = arguments.notified()?;
    let mut server = Server::new(address.ip(), shell)?;
    let start_ns = clock::monotonic_ns();
    let primary = Arc::new(arguments.primary(start_ns)?);
    let changing = Changing::new(Arc::clone(&primary), arguments.changes_delay_ns(), arguments.out.clone())?;
    let asked = |transport| arguments.transport.contains(&transport);
    let listeners = Listeners::claim(&Asked {
        address: *address,
        udp: asked(Transport::Udp),
        tcp: asked(Transport::Tcp),
        tls: asked(Transport::Xot).then_some(arguments.xot_port),
        tls_name: "zone transfer over TLS",
    })?;
    let config = listeners.tls.map(|address| arguments.tls_config(address, tls::XOT)).transpose()?;
    let mut sockets = listeners.bind(shell, config.map(Tls::from).as_ref(), RECEIVE_BUFFER_BYTES, false)?;
    let xoq = asked(Transport::Xoq).then(|| listeners::claim_quic(SocketAddr::new(address.ip(), arguments.xoq_port)));
    let xoq = xoq.transpose()?;
    if let Some(address) = xoq {
        listeners::bind_quic(&mut sockets, address, &arguments.quic_config(address)?, RECEIVE_BUFFER_BYTES)?;
    }
    server.start("zones", sockets, shell, |_| Answerer::new(Arc::clone(&primary)))?;
    if primary.shape.changes.per_s > 0.0 {
        let socket = listeners::datagrams(SocketAddr::new(address.ip(), 0), RECEIVE_BUFFER_BYTES);
        let socket = socket.map_err(|error| system_failed("make a socket for NOTIFY", error))?;
        let (primary, catalog_interval_ns) = (Arc::clone(&primary), arguments.notify_interval);
        let parts = move |stop| notifications::Parts { stop, primary, socket, notified, catalog_interval_ns, changing };
        server.threads.spawn("changes", |stop| notifications::run(parts(stop)).map_err(answering_failed))?;
    }
    let Listeners { udp, tcp, tls: xot, .. } = listeners;
    let ready = Ready { start_ns: primary.period.begin_ns(), threads: shell.threads(), udp, tcp, xot, xoq };
    emit("ready", clock::monotonic_ns(), &ready)?;
    let (now_ns, threads) = server.serve()?;
    events::summary(now_ns, &summary(&primary, now_ns - start_ns, threads))?;
    Ok(ExitCode::SUCCESS)
}

fn summary(primary: &Primary, elapsed_ns: i64, threads: Vec<Counts>) -> Ended {
    let counted = Summary::new(elapsed_ns, threads);
    let (shape, secondaries) = (&primary.shape, counted.total.secondaries.sorted());
    let secondaries = secondaries.into_iter().take(SECONDARIES_LISTED_MAX).map(|(address, counts)| {
        let serial = counts.version.map(|version| shape.serial(version));
        SecondarySummary { address, serial, counts }
    });
    let changes = primary.period.begin_ns().filter(|_| shape.changes.per_s > 0.0);
    let changes = changes.map(|begin_ns| shape.made(begin_ns, begin_ns + primary.period.elapsed_ns(i64::MAX)));
    Ended { counted, changes, secondaries: secondaries.collect() }
}
