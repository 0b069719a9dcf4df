//! `probe follow`: what does a server say of each of some zones, and when does it say something else?
//!
//! [`core`] decides what is asked when and what an answer changes; here is what touches the socket.

pub mod core;
mod rows;

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    path::PathBuf,
    process::ExitCode,
};

use serde::Serialize;

use super::{ProbeError, report::Outcome};
use crate::{
    base::{
        clock,
        events::{Anchors, EventError, emit},
        failure::Failure,
        stop::{Stop, Wake},
        target::{self, Authority},
    },
    dns::{
        soa::{self, ANSWER_OCTETS_MAX, QUERY_OCTETS_MAX, Verdict, Verdicts},
        zone_list::Zones,
    },
    net::udp_batch::is_unreachable,
};
use core::{Core, State};

/// Questions a second to a foreign target that the user vouches for, at most.
const RATE_VOUCHED_MAX: u32 = 100;

/// Follow zones on a server: when does its answer change?
///
/// Asks for the SOA of each zone over UDP, in turn and at a constant rate, until it is told to end. A row is written for the
/// first answer and for each one that differs from the one before: the zone is served with another serial, is served no more
/// (REFUSED, NXDOMAIN, SERVFAIL, not authoritative), or is served again. Two times bracket the moment: before_ns, when the
/// last question was sent that was answered as before, and seen_ns, when the new answer came. They are about
/// zones / rate apart. The event `changed` tells, once, that a zone is not as it was first seen.
///
/// Exit codes: 130 ended (it never ends by itself), 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: members of a catalog zone as they leave a secondary and come back:\n  \
    dnsrig-engine probe follow 198.18.0.2 --zones members.list --rate 200 --out members.arrow")]
pub struct Arguments {
    /// The server: an IP address and perhaps a port
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    server: SocketAddr,
    /// The zones: one name a line; what stands behind a TAB is ignored
    #[arg(long, value_name = "FILE")]
    zones: PathBuf,
    /// Questions a second, over all zones; at most 100 with --i-am-authorized
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Write the rows to this file (Arrow IPC stream) at the end
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// End when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// Confirm that this address, neither loopback nor in 198.18.0.0/15 or 2001:2::/48, is yours to load
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
    let zones = Zones::read(&arguments.zones)?;
    let stop = Stop::new(arguments.until_eof)?;
    let socket = super::connect(arguments.server, rate.min(1024))
        .map_err(|error| ProbeError::Connect(arguments.server, error))?;
    let anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let mut follow = Follow {
        server: arguments.server,
        core: Core::new(zones.count(), rate, start_ns),
        zones,
        socket,
        anchors,
        verdicts: Verdicts::default(),
        unreachable: 0,
        told: false,
    };
    follow.watch(&stop)?;
    rows::write(&arguments.out, &follow.zones, follow.core.rows())?;
    follow.summary(start_ns, rate)?;
    Ok(Outcome::Interrupted.exit_code())
}

struct Follow {
    server: SocketAddr,
    zones: Zones,
    socket: UdpSocket,
    core: Core,
    anchors: Anchors,
    verdicts: Verdicts,
    unreachable: u64,
    /// Whether the event `changed` was printed.
    told: bool,
}

impl Follow {
    fn watch(&mut self, stop: &Stop) -> Result<(), Failure> {
        loop {
            self.receive()?;
            let now_ns = clock::monotonic_ns();
            self.anchors.emit_if_due(now_ns)?;
            self.tell_first_change(now_ns)?;
            if self.core.due_ns() <= now_ns {
                self.ask(now_ns);
            }
            let wait_ns = self.core.due_ns().min(self.anchors.due_ns()) - clock::monotonic_ns();
            if stop.wait(Some(self.socket.as_fd()), wait_ns.max(0))? == Wake::Stop {
                return Ok(());
            }
        }
    }

    fn ask(&mut self, now_ns: i64) {
        let (id, zone) = self.core.ask(now_ns);
        let mut query = [0; QUERY_OCTETS_MAX];
        let length = soa::write_query(&mut query, id, self.zones.wire(zone));
        // What is not sent is not answered either.
        let _ = self.socket.send(&query[..length]);
    }

    /// Takes in all answers that have come.
    fn receive(&mut self) -> Result<(), ProbeError> {
        let mut buffer = [0; ANSWER_OCTETS_MAX + 1];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.take_in(clock::monotonic_ns(), &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_unreachable(&error) => self.unreachable += 1,
                Err(error) => return Err(ProbeError::Receive(self.server, error)),
            }
        }
    }

    fn take_in(&mut self, now_ns: i64, octets: &[u8]) {
        let asked = soa::response_id(octets).and_then(|(id, _)| Some((id, self.core.zone_of(id)?)));
        let verdict = match asked {
            Some((_, zone)) => soa::read_answer(octets, self.zones.name(zone), None),
            None => Verdict::Mismatched,
        };
        self.verdicts.count(verdict);
        let state = match verdict {
            Verdict::Malformed | Verdict::Mismatched => return,
            Verdict::Seen { serial } | Verdict::Newer { serial } => State::Served { serial },
            _ => State::Unserved,
        };
        if let Some((id, _)) = asked {
            self.core.on_answer(now_ns, id, state);
        }
    }

    /// Says once that some zone is no longer as it was first seen.
    fn tell_first_change(&mut self, now_ns: i64) -> Result<(), EventError> {
        if self.told || self.core.changed() == 0 {
            return Ok(());
        }
        self.told = true;
        emit("changed", now_ns, &Changed { rows: self.core.rows().len() as u64 })
    }

    fn summary(&self, start_ns: i64, rate: u32) -> Result<(), EventError> {
        let (zones, polls, answered, rows_dropped) = self.core.counts();
        let summary = Summary {
            outcome: Outcome::Interrupted,
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
