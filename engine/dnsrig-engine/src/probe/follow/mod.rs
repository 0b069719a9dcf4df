//! `probe follow`: what a server answers for each of some zones, and when its answer changes.
//!
//! [`core`] decides what is asked when and what an answer changes; this file has the socket.

mod core;

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use dnsrig_core::{
    clock,
    events::{Anchors, emit},
    failure::Failure,
    output,
    rows::{self, Columns},
    stop::{Outcome, Stop},
    target::{self, Authority},
};
use dnsrig_dns::{
    query::soa_query,
    soa::{self, Verdict, Verdicts},
    zones::Zones,
};
use dnsrig_net::udp_client::{self, UdpClient};
use serde::Serialize;

use crate::dataset::zone_list;
use core::{Core, Row, State};

/// Questions a second to a foreign target that the user vouches for, at most.
const RATE_VOUCHED_MAX: u32 = 100;

/// Follow zones on a server: record each time that its answer changes.
///
/// `probe follow` asks for the SOA record of each zone over UDP, in turn and at a constant rate, until it is stopped.
/// It writes a row for the first answer, and for each answer that differs from the one before: another serial, the zone
/// is no longer served (REFUSED, NXDOMAIN, SERVFAIL, not authoritative), or it is served again. Two times bracket the
/// moment: before_ns is when the last question was sent that still had the old answer, and seen_ns is when the new
/// answer came. They are about zones / rate apart. The event `changed` appears once for each zone that no longer is as
/// it was first seen.
///
/// Exit codes: 130 stopped (it never ends on its own), 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: watch members of a catalog zone leave a secondary and come back:\n  \
    dnsrig probe follow 198.18.0.2 --zone-list members.list --rate 200 --out members.arrow")]
pub struct Arguments {
    /// Server to ask: an IP address and optionally a port
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    server: SocketAddr,
    /// File with the zones, one name per line. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    zones: PathBuf,
    /// Questions per second for all zones together, at most 100 with --i-am-authorized
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// File for the rows (Arrow IPC stream), written at the end
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Option<IpAddr>,
}

#[derive(Serialize)]
struct Changed {
    rows: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    outcome: Outcome,
    start_ns: i64,
    zones: u64,
    rate: u32,
    polls: u64,
    answered: u64,
    rows: u64,
    rows_dropped: u64,
    answers: &'a Verdicts,
    unreachable: u64,
    cpu_ns: i64,
}

/// Follows the zones until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server.ip(), arguments.i_am_authorized)?;
    let rate = if authority == Authority::Vouched { arguments.rate.min(RATE_VOUCHED_MAX) } else { arguments.rate };
    output::check(&[Some(&arguments.out)], &[Some(&arguments.zones)])?;
    let zones = zone_list::read(&arguments.zones)?;
    let stop = Stop::new(arguments.until_eof)?;
    let socket = udp_client::connect(arguments.server, Some(rate.min(1024)))?;
    let anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let mut follow = Follow {
        core: Core::new(zones.count(), rate, start_ns),
        zones,
        anchors,
        verdicts: Verdicts::default(),
        unreachable: 0,
        is_reported: false,
    };
    let outcome = udp_client::run(&mut follow, &socket, arguments.server, &stop)?;
    write_rows(&arguments.out, &follow.zones, follow.core.rows())?;
    follow.summary(outcome, start_ns, rate)?;
    Ok(outcome.exit_code())
}

struct Follow {
    zones: Zones,
    core: Core,
    anchors: Anchors,
    verdicts: Verdicts,
    unreachable: u64,
    /// Whether the event `changed` was printed.
    is_reported: bool,
}

impl UdpClient for Follow {
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
        if self.core.due_ns() <= now_ns {
            let (id, zone) = self.core.ask(now_ns);
            // What is not sent is not answered either.
            let _ = socket.send(&soa_query(id, self.zones.wire(zone)));
        }
        Ok(ControlFlow::Continue(self.core.due_ns()))
    }

    fn on_message(&mut self, now_ns: i64, _from: SocketAddr, message: &[u8]) -> Result<(), Failure> {
        let asked = soa::response_id(message).and_then(|(id, _)| Some((id, self.core.zone_of(id)?)));
        let verdict = match asked {
            Some((_, zone)) => soa::read_answer(message, self.zones.name(zone), None),
            None => Verdict::Mismatched,
        };
        self.verdicts.count(verdict);
        let state = match verdict {
            Verdict::Malformed | Verdict::Mismatched => return Ok(()),
            Verdict::Seen { serial } | Verdict::Newer { serial } => State::Served { serial },
            _ => State::Unserved,
        };
        if let Some((id, _)) = asked {
            self.core.on_answer(now_ns, id, state);
        }
        Ok(())
    }

    fn on_unreachable(&mut self, _now_ns: i64) {
        self.unreachable += 1;
    }

    fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
        self.anchors.emit_if_due(now_ns)?;
        self.report_first_change(now_ns)?;
        Ok(self.anchors.due_ns())
    }
}

impl Follow {
    /// Prints `changed` once, when a zone is no longer as it was first seen.
    fn report_first_change(&mut self, now_ns: i64) -> Result<(), Failure> {
        if self.is_reported || self.core.changed() == 0 {
            return Ok(());
        }
        self.is_reported = true;
        emit("changed", now_ns, &Changed { rows: self.core.rows().len() as u64 })
    }

    fn summary(&self, outcome: Outcome, start_ns: i64, rate: u32) -> Result<(), Failure> {
        let (zones, polls, answered, rows_dropped) = self.core.counts();
        let summary = Summary {
            outcome,
            start_ns,
            zones,
            rate,
            polls,
            answered,
            rows: self.core.rows().len() as u64,
            rows_dropped,
            answers: &self.verdicts,
            unreachable: self.unreachable,
            cpu_ns: clock::process_cpu_ns(),
        };
        emit("summary", clock::monotonic_ns(), &summary)
    }
}

/// Writes what was seen of each zone to `path`.
fn write_rows(path: &Path, zones: &Zones, rows: &[Row]) -> Result<(), Failure> {
    let serial = |row: &&Row| match row.state {
        State::Served { serial } => Some(serial),
        State::Unserved => None,
    };
    let columns = Columns::<&Row>::default()
        .value("zone", |row| zones.name(row.zone).to_string())
        .optional("before_ns", |row| row.before_ns)
        .value("seen_ns", |row| row.seen_ns)
        .value("served", |row| row.state != State::Unserved)
        .optional("serial", serial);
    rows::write(path, columns, rows)
}
