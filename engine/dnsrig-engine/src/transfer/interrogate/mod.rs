//! `transfer --interrogate`: what a primary supports, found by asking it and never by its version.
//!
//! A list of [`checks`], each in a file of its own, ask over [`line`]s and judge by [`exchange`]s: what was asked on a
//! connection, and what came when. Speed does not matter here; sockets block, and every wait has a limit ([`caps`]).
//! What decides (messages, the course of a transfer, judgements) is apart from what touches sockets, and is tested
//! without any.

mod answer;
mod asking;
mod caps;
mod checks;
mod exchange;
mod idle;
mod line;
mod members;
mod message;
mod survey;
mod table;
mod tls;
mod transfer;

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use domain::tsig::Key;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    clock,
    events::{self, Anchors},
    failure::{Advice, Failure},
    target,
};
use answer::{Answer, Feature, Transport};
use asking::{Asking, Server};
use caps::INTERROGATION_MAX;
use checks::CHECKS;
use idle::Idle;
use line::Loss;
pub use message::ZoneName;
pub use survey::sample;

/// What `--help` says of it.
pub const HELP: &str = "Interrogation: asks what the server supports, in under a minute: at most 300 zones (the first, \
    the last, others between), 64 MB of them, 200 transfers in one write, 64 connections at a time. What is larger \
    than 8 MB is cut by closing the connection.";

/// Whom to interrogate, and about which zones.
pub struct Request {
    /// For TCP.
    pub primary: SocketAddr,
    /// For XoT, at the same address.
    pub xot_port: u16,
    /// Zones that may be transferred, at most [`caps::ZONES_MAX`] of them are: see [`sample`].
    pub zones: Vec<ZoneName>,
    /// A catalog zone (RFC 9432), whose members may be transferred.
    pub catalog: Option<ZoneName>,
    /// Signs all transfers.
    pub tsig: Option<Arc<Key>>,
    /// A folder for the summary, besides standard output.
    pub out: Option<PathBuf>,
    /// What the user named with `--i-am-authorized`.
    pub vouched: Option<IpAddr>,
}

/// An interrogation could not be made.
#[derive(Debug, thiserror::Error)]
pub enum InterrogateError {
    #[error("nothing answers at {tcp} (TCP: {over_tcp}) or {xot} (TLS: {over_tls})")]
    Nobody { tcp: SocketAddr, xot: SocketAddr, over_tcp: Loss, over_tls: Loss },
    #[error("cannot take the members of the catalog zone {0}: {1}")]
    Catalog(ZoneName, String),
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

impl Advice for InterrogateError {
    fn hint(&self) -> String {
        match self {
            InterrogateError::Nobody { tcp, .. } => {
                format!("is a server running there? See `ip route get {}`, and --xot-port for TLS", tcp.ip())
            }
            InterrogateError::Catalog(..) => "name zones with --zone or --zones instead".into(),
            InterrogateError::Write(..) => "choose another folder with --out".into(),
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    primary: SocketAddr,
    xot_port: u16,
    elapsed_ms: u64,
    zones: Map<String, Value>,
    features: &'a [Feature],
}

/// Asks everything, prints the summary as an event and a table on standard error.
pub fn run(request: &Request) -> Result<ExitCode, Failure> {
    target::authorise(request.primary.ip(), request.vouched)?;
    let xot = SocketAddr::new(request.primary.ip(), request.xot_port);
    let server = Server { tcp: request.primary, xot, key: request.tsig.clone() };
    let mut anchors = Anchors::start()?;
    let start = Instant::now();
    let first = reach(&server)?;
    let names = match &request.catalog {
        Some(catalog) => members::of(&server, first, catalog)?,
        None => request.zones.clone(),
    };
    let asking = begin(server, first, &names);
    let mut features = Vec::new();
    for check in CHECKS {
        for transport in check.transports {
            let answer = if start.elapsed() < INTERROGATION_MAX {
                (check.ask)(&asking, *transport)
            } else {
                Answer::cannot_tell("the time that an interrogation has was over before")
            };
            features.push(Feature { name: check.name, transport: *transport, answer });
            anchors.emit_if_due(clock::monotonic_ns())?;
        }
    }
    let summary = Summary {
        primary: request.primary,
        xot_port: request.xot_port,
        elapsed_ms: start.elapsed().as_millis() as u64,
        zones: asking.survey.summary(),
        features: &features,
    };
    tell(&summary, request)?;
    Ok(ExitCode::SUCCESS)
}

/// Over what zones are looked at: TCP if anything listens there.
fn reach(server: &Server) -> Result<Transport, InterrogateError> {
    let Err(over_tcp) = server.open(Transport::Tcp) else { return Ok(Transport::Tcp) };
    let Err(over_tls) = server.open(Transport::Xot) else { return Ok(Transport::Xot) };
    Err(InterrogateError::Nobody { tcp: server.tcp, xot: server.xot, over_tcp, over_tls })
}

/// Looks at the zones, while idle connections are watched from now on.
fn begin(server: Server, first: Transport, names: &[ZoneName]) -> Asking {
    let root = ZoneName::root_vec();
    let any = names.first().unwrap_or(&root);
    let idle = [Transport::Tcp, Transport::Xot].map(|transport| Idle::watch(&server, transport, any));
    let mut survey = survey::look(&server, first, names);
    if survey.done().next().is_none() && first == Transport::Tcp {
        // Some serve zones over TLS only.
        let over_tls = survey::look(&server, Transport::Xot, names);
        if over_tls.done().next().is_some() {
            survey = over_tls;
        }
    }
    Asking::new(server, survey, idle)
}

fn tell(summary: &Summary<'_>, request: &Request) -> Result<(), Failure> {
    if let Some(folder) = &request.out {
        let path = folder.join("interrogation.json");
        let text = serde_json::to_vec_pretty(summary).map_err(io::Error::from);
        let written = text.and_then(|text| fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)));
        written.map_err(|error| InterrogateError::Write(path, error))?;
    }
    eprint!("{}", table::text(summary.features, table::shows_signs(&io::stderr())));
    events::emit("summary", clock::monotonic_ns(), summary)?;
    Ok(())
}
