//! `serve world`: a simulated Internet, whose zones [`crate::world`] computes.
//!
//! Cores without I/O: [`query`] (what is asked), [`search`] (what a zone says to it), [`secure`] (what is added for
//! whom validates it), [`reply`] and [`message`] (the answer, as records and as bytes), [`faults`] (what a fault makes
//! of it), [`core`] (one message in, one out), [`counts`], [`explain`]. [`ahead`] signs before anybody asks.
//! [`service`] has them answer in the [`shell`](super::shell); [`files`] and [`rows`] write.

pub mod ahead;
pub mod core;
pub mod counts;
pub mod explain;
pub mod faults;
pub mod files;
pub mod message;
mod options;
pub mod query;
pub mod reply;
pub mod rows;
pub mod search;
pub mod secure;
pub mod service;
#[cfg(test)]
mod validator;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use serde::Serialize;

pub use self::options::Arguments;
use crate::{
    base::{
        clock,
        events::{self, emit, emit_patiently},
        failure::Failure,
        output::{self},
        target,
    },
    dns::dnssec::key::Nonces,
    serve::{
        bad_arguments,
        shell::{
            Server, Summary,
            listeners::{Asked, Listeners, Sockets},
        },
    },
    world::{World, names_file, servers::Prefixes, signatures::Signatures},
};
use ahead::Ahead;
use options::Family;
use rows::Writer;
use service::Answerer;

/// The receive buffer asked for, of each UDP socket.
const RECEIVE_BUFFER_BYTES: usize = 8 * 1024 * 1024;

#[derive(Serialize)]
struct Ready {
    threads: usize,
    port: u16,
    /// The address of the first root server, with the port.
    root: SocketAddr,
    zones: usize,
    hints: String,
    /// What was signed before anybody asked.
    ahead: Option<Ahead>,
}

/// Serves until someone ends it, or explains names.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let prefixes = Prefixes { ipv4: arguments.ipv4, ipv6: arguments.ipv6 };
    let world = names_file::world(&arguments.specification, prefixes)?;
    for name in &arguments.explain {
        emit_patiently("explained", clock::monotonic_ns(), &explain::explain(&world, name))?;
    }
    match &arguments.out {
        Some(out) if arguments.explain.is_empty() => serve(arguments, Arc::new(world), out),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn serve(arguments: &Arguments, world: Arc<World>, out: &Path) -> Result<ExitCode, Failure> {
    let shell = &arguments.shell;
    target::authorise_own(arguments.ipv6.base, shell.i_am_authorized)?;
    let mut server = Server::new(arguments.ipv4.base, shell)?;
    refuse_inputs(arguments, &world, out)?;
    world.prepare_signing();
    files::write(&world, &arguments.specification, out)?;
    let (writer, seconds) = Writer::start(&out.join(rows::SECONDS))?;
    let nonces = if arguments.reproducible { Nonces::Reproducible } else { Nonces::Random };
    let cache_bytes = (arguments.signature_cache_mib << 20) / shell.threads().max(1);
    let mut signatures = Signatures::new(nonces, cache_bytes);
    // What has no room is signed again for each answer.
    let stream = arguments.sign_ahead.as_deref().filter(|_| cache_bytes > 0);
    let ahead = stream.map(|stream| ahead::sign(&world, stream, &mut signatures)).transpose()?;
    // Only now, or what is asked meanwhile waits in the sockets, and is counted when others ask.
    let (port, sockets) = bind(arguments)?;
    let start_ns = clock::monotonic_ns();
    server.start("world", sockets, shell, |_| {
        Answerer::new(Arc::clone(&world), signatures.clone(), Some(seconds.clone()))
    })?;
    drop(seconds);
    let root = SocketAddr::new(world.prefixes.ipv4(0), port);
    let hints = out.join(files::HINTS).display().to_string();
    let (threads, zones) = (shell.threads(), world.zones().count());
    emit("ready", clock::monotonic_ns(), &Ready { threads, port, root, zones, hints, ahead })?;
    let (now_ns, threads) = server.serve()?;
    writer.finish()?;
    let summary = Summary::new(now_ns - start_ns, threads);
    rows::write_unknown(&out.join(rows::UNKNOWN), &summary.total)?;
    events::summary(now_ns, &summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder whose files would replace one that is read.
fn refuse_inputs(arguments: &Arguments, world: &World, out: &Path) -> Result<(), Failure> {
    let written =
        [files::HINTS, files::ANCHOR, files::MANIFEST, rows::SECONDS, rows::UNKNOWN].map(|name| out.join(name));
    let names = arguments.specification.with_file_name(&world.spec.names.file);
    let read = [Some(arguments.specification.as_path()), Some(&names), arguments.sign_ahead.as_deref()];
    output::refuse_inputs(&written.each_ref().map(|path| Some(path.as_path())), &read)
}

/// The sockets of each thread, of all families; they have one port.
fn bind(arguments: &Arguments) -> Result<(u16, Vec<Sockets>), Failure> {
    let mut port = arguments.port;
    let mut all: Vec<Sockets> = Vec::new();
    let families: [(Family, IpAddr); 2] =
        [(Family::Ipv4, Ipv4Addr::UNSPECIFIED.into()), (Family::Ipv6, Ipv6Addr::UNSPECIFIED.into())];
    for (_, address) in families.into_iter().filter(|(family, _)| arguments.family.contains(family)) {
        let asked = Asked { address: SocketAddr::new(address, port), udp: true, tcp: true, tls: None, tls_name: "TLS" };
        let listeners = Listeners::claim(&asked)?;
        port = listeners.udp.map_or(port, |address| address.port());
        let sockets = listeners.bind(&arguments.shell, None, RECEIVE_BUFFER_BYTES, false)?;
        all.resize_with(sockets.len(), Sockets::default);
        for (mine, more) in all.iter_mut().zip(sockets) {
            mine.datagrams.extend(more.datagrams);
            mine.listeners.extend(more.listeners);
        }
    }
    if all.is_empty() {
        return Err(bad_arguments("--family names none"));
    }
    Ok((port, all))
}
