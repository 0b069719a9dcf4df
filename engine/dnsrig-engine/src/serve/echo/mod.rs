//! `serve echo`: the reflector. Known truth for an instrument, and the floor under every chart.
//!
//! Cores without I/O: [`message`], [`faults`], [`answerer`] (what happens to a query). [`service`] has
//! them answer in the [`shell`](super::shell).

pub mod answerer;
pub mod counts;
pub mod faults;
pub mod message;
mod options;
pub mod service;

use std::{net::SocketAddr, process::ExitCode};

use serde::Serialize;

pub use self::options::Arguments;
use crate::{
    base::{
        clock,
        events::{self, emit},
        failure::Failure,
    },
    net::tls::{self, identity},
    serve::shell::{
        Server, Summary,
        listeners::{Asked, Listeners},
    },
};
use options::Transport;

/// So much early data a connection may have.
const EARLY_BYTES_MAX: u32 = 16_384;

#[derive(Serialize)]
struct Ready {
    /// The first stall period starts here.
    start_ns: i64,
    threads: usize,
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    dot: Option<SocketAddr>,
}

/// Echoes until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { address, shell, .. } = arguments;
    let faults = arguments.faults()?;
    let mut server = Server::new(address.ip(), shell)?;
    let asked = |transport| arguments.transport.contains(&transport);
    let listeners = Listeners::claim(&Asked {
        address: *address,
        udp: asked(Transport::Udp),
        tcp: asked(Transport::Tcp),
        tls: asked(Transport::Dot).then_some(arguments.dot_port),
        tls_name: "DNS over TLS",
    })?;
    let config = |address| {
        let config = identity::server_config(shell.identity(address)?, tls::DOT, None)?;
        Ok::<_, Failure>(if arguments.early_data {
            identity::with_early_data(&config, EARLY_BYTES_MAX)
        } else {
            config
        })
    };
    let config = listeners.tls.map(config).transpose()?;
    let receive_bytes = arguments.receive_buffer_bytes as usize;
    let sockets = listeners.bind(shell, config.as_ref(), receive_bytes, arguments.segmentation)?;
    let start_ns = clock::monotonic_ns();
    server.start("echo", sockets, shell, |number| arguments.answerer(faults, number, start_ns))?;
    let Listeners { udp, tcp, tls: dot, .. } = listeners;
    emit("ready", clock::monotonic_ns(), &Ready { start_ns, threads: shell.threads(), udp, tcp, dot })?;
    let (now_ns, threads) = server.serve()?;
    events::summary(now_ns, &Summary::new(now_ns - start_ns, threads))?;
    Ok(ExitCode::SUCCESS)
}
