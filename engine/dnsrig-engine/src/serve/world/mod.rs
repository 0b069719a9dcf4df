//! `serve world`: a simulated Internet, whose zones [`crate::world`] computes.
//!
//! Cores without I/O: [`query`] (what is asked), [`search`] (the answer of a zone), [`reply`] and [`message`] (the
//! answer as records and as bytes), [`faults`] (the effect of a fault on an answer), [`core`] (one message in, one
//! out), [`counts`], [`explain`]. [`ahead`] makes signatures before anybody asks. [`service`] has them answer in the
//! [`shell`](super::shell); [`files`] writes hints, trust anchor and manifest.

pub mod ahead;
pub mod core;
pub mod counts;
pub mod explain;
pub mod faults;
pub mod files;
pub mod message;
pub mod query;
pub mod reply;
pub mod search;
pub mod service;
#[cfg(test)]
mod validator;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::ValueEnum;
use dnsrig_core::{
    clock,
    events::{self, emit, emit_patiently},
    failure::Failure,
    output, target,
};
use dnsrig_dns::dnssec::key::Nonces;
use dnsrig_net::prefix::Prefix;
use serde::Serialize;

use crate::{
    serve::{
        failure::bad_arguments,
        shell::{
            self, Server, Summary,
            listeners::{Asked, Listeners, Sockets},
        },
    },
    world::{
        World,
        names::Labels,
        servers::{self, Prefixes},
        signing::Signatures,
    },
};
use ahead::Ahead;
use counts::Writer;
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
    let world = World::read(&arguments.specification, prefixes)?;
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
    let (writer, seconds) = Writer::start(&out.join(counts::SECONDS))?;
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
    counts::write_unknown(&out.join(counts::UNKNOWN), &summary.total)?;
    events::summary(now_ns, &summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a folder whose files would replace one that is read.
fn refuse_inputs(arguments: &Arguments, world: &World, out: &Path) -> Result<(), Failure> {
    let written =
        [files::HINTS, files::ANCHOR, files::MANIFEST, counts::SECONDS, counts::UNKNOWN].map(|name| out.join(name));
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

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    Ipv4,
    Ipv6,
}

/// Simulate a whole Internet: the root, the TLDs and all other zones, each on the addresses of its own servers.
///
/// A specification, which `generate world` writes, decides everything. A query is answered from the zone of the server
/// whose address was asked, so referrals are real. Route the networks of the servers to this host (`ip route add local
/// 198.18.64.0/18 dev lo`), and give resolvers the hints. Answers go over UDP (at most 1232 bytes) and TCP. Only zones
/// that the specification makes slow are slow: other delays belong to the path. Zones are signed as the specification
/// states. Signatures are made when they are asked for, or before that (--sign-ahead), and are kept.
///
/// DIR gets root.hints (the servers of the root), root.anchor (its key and DS), manifest.json, queries.arrow (queries
/// by second, level, type, response code, fault, DO, transport and family) and, at the end, not-in-world.arrow (names
/// that were asked for and do not exist in the world, except names that `generate clients` makes up as missing; at most
/// 10,000 per thread).
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `summary`. With --explain, the only
/// events are `explained`, one for each name. It ends on a signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with
/// --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a world on loopback, and a query:\n  \
    dnsrig generate world --zones 1000 --out world.toml\n  \
    dnsrig serve world world.toml --out world --ipv4 127.64.0.0/18 --family ipv4 --port 5300 &\n  \
    dig @127.64.0.1 -p 5300 . NS\n\n\
    Example: explain a name:\n  \
    dnsrig serve world world.toml --explain www.nic.com")]
pub struct Arguments {
    /// Specification, as `generate world` writes it
    #[arg(value_name = "SPEC")]
    pub specification: PathBuf,
    /// Folder for hints, manifest and rows. Existing files are replaced
    #[arg(long, value_name = "DIR", required_unless_present = "explain")]
    pub out: Option<PathBuf>,
    /// Network of the IPv4 addresses of the servers
    #[arg(long, value_name = "NETWORK", default_value = "198.18.64.0/18", value_parser = servers::parse_ipv4)]
    pub ipv4: Prefix,
    /// Network of the IPv6 addresses of the servers
    #[arg(long, value_name = "NETWORK", default_value = "2001:2:0:3::/64", value_parser = servers::parse_ipv6)]
    pub ipv6: Prefix,
    /// Address families to answer over
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ipv4,ipv6")]
    pub family: Vec<Family>,
    /// Port of all servers
    #[arg(long, value_name = "PORT", default_value_t = 53)]
    pub port: u16,
    /// Give the same question the same bytes as answer: nonces of ECDSA signatures then follow RFC 6979, and signing
    /// takes four times as long
    #[arg(long)]
    pub reproducible: bool,
    /// Memory for signatures that are kept, in MiB for all threads together. With 0, each signature is made anew
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub signature_cache_mib: usize,
    /// Stream for whose questions the signatures are made before the server answers
    #[arg(long, value_name = "STREAM")]
    pub sign_ahead: Option<PathBuf>,
    /// Names to explain, instead of serving
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = Labels::parse)]
    pub explain: Vec<Labels>,
    #[command(flatten)]
    pub shell: shell::options::Options,
}
