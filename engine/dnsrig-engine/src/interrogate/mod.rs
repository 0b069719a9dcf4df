//! `interrogate`: what a primary supports, found by asking it and never by its version.
//!
//! A list of [`checks`] ask over [`connection`]s and judge by [`exchange`]s: what was asked on a connection, and what
//! came when. Speed does not matter here; sockets block, and every wait has a limit ([`limits`]). What decides
//! (messages, the course of a transfer, judgements) is apart from what touches sockets, and is tested without any.

mod answer;
mod arguments;
mod checks;
mod connection;
mod exchange;
mod idle;
mod interrogation;
mod limits;
mod quic;
mod server;
mod survey;
mod table;
mod transfer;

use std::{io, net::SocketAddr, path::Path, process::ExitCode, time::Instant};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    output, target,
};
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::arguments::Arguments;
use answer::{Answer, Feature, Transport};
use checks::CHECKS;
use idle::Idle;
use interrogation::Interrogation;
use limits::INTERROGATION_MAX;
use server::Server;
use transfer::ZoneName;

#[derive(Serialize)]
struct Summary<'a> {
    primary: SocketAddr,
    xot_port: u16,
    elapsed_ms: u64,
    zones: Map<String, Value>,
    features: &'a [Feature],
}

/// Makes all checks, and prints the summary as an event and a table on standard error.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let server = arguments.server()?;
    target::authorise(server.tcp.ip(), arguments.i_am_authorized)?;
    let tls = &arguments.tls;
    let read = [&arguments.zones.zones, &tls.ca, &tls.certificate, &tls.key].map(Option::as_deref);
    output::check(&[arguments.out.as_deref()], &read)?;
    let zones = zones(arguments, &server)?;
    let speaks = events::are_wanted(arguments.json);
    let mut anchors = speaks.then(Anchors::start).transpose()?;
    let start = Instant::now();
    let first = reach(&server)?;
    let interrogation = begin(server, first, &zones);
    let mut features = Vec::new();
    for check in CHECKS {
        for transport in check.transports {
            let answer = if start.elapsed() < INTERROGATION_MAX {
                (check.ask)(&interrogation, *transport).unwrap_or_else(Answer::from)
            } else {
                Answer::cannot_tell("the time that an interrogation has was over before")
            };
            features.push(Feature { name: check.name, transport: *transport, answer });
            if let Some(anchors) = &mut anchors {
                anchors.emit_if_due(clock::monotonic_ns())?;
            }
        }
    }
    let summary = Summary {
        primary: interrogation.server.tcp,
        xot_port: interrogation.server.xot.port(),
        elapsed_ms: start.elapsed().as_millis() as u64,
        zones: interrogation.survey.summary(),
        features: &features,
    };
    if let Some(path) = &arguments.out {
        write(path, &summary)?;
    }
    events::say(table::text(summary.features, table::shows_signs(&io::stderr())));
    if speaks {
        events::summary(clock::monotonic_ns(), &summary)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The zones that are looked at: a sample of those that the command line names.
fn zones(arguments: &Arguments, server: &Server) -> Result<Vec<ZoneName>, Failure> {
    let mut catalog = None;
    let zones = arguments.zones.zones(|named, members| {
        let name = catalog.insert(named.wire(0).to_vec());
        let transport = reach(server)?;
        Ok(server.transfer_catalog(members, transport, name))
    })?;
    let mut sampled = survey::sample((0..zones.count()).map(|zone| zones.wire(zone).to_vec()));
    if let Some(catalog) = catalog {
        // A catalog of many members is a large zone among small ones.
        sampled.pop();
        sampled.push(catalog);
    }
    Ok(sampled)
}

/// The transport over which zones are looked at: TCP if anything listens there.
fn reach(server: &Server) -> Result<Transport, Failure> {
    let Err(over_tcp) = server.open(Transport::Tcp) else { return Ok(Transport::Tcp) };
    let Err(over_tls) = server.open(Transport::Xot) else { return Ok(Transport::Xot) };
    let (tcp, xot_port) = (server.tcp, server.xot.port());
    Err(Failure::new(
        format!("no connection to {tcp}: {over_tcp}; and none on port {xot_port}: {over_tls}"),
        format!("check that a server is running there (`ip route get {}`), and --xot-port for TLS", tcp.ip()),
    ))
}

/// Looks at the zones; from then on idle connections are watched.
fn begin(server: Server, first: Transport, names: &[ZoneName]) -> Interrogation {
    let mut survey = survey::look(&server, first, names);
    if survey.done().next().is_none() && first == Transport::Tcp {
        // Some serve zones over TLS only.
        let over_tls = survey::look(&server, Transport::Xot, names);
        if over_tls.done().next().is_some() {
            survey = over_tls;
        }
    }
    let root = vec![0];
    let any = survey.any().map_or(&root, |known| &known.name);
    let idle = [Transport::Tcp, Transport::Xot].map(|transport| Idle::watch(&server, transport, any));
    Interrogation::new(server, survey, idle)
}

fn write(path: &Path, summary: &Summary<'_>) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(summary).map_err(io::Error::from);
    text.and_then(|text| output::write(path, text)).map_err(|error| {
        Failure::new(format!("cannot write {}: {error}", path.display()), "choose another file with --out")
    })
}
