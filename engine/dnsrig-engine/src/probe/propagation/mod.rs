//! `probe propagation`: how long does a change on a primary take to its secondaries?
//!
//! It makes the change itself, by a dynamic update (RFC 2136) that raises the serial to one it knows, and asks every
//! secondary for the SOA until it shows that serial. [`core`] decides what is sent when and what answers mean,
//! [`primary`] knows the zones' SOA records; here is what touches the socket.

pub mod core;
mod primary;
mod report;
mod rows;

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use domain::tsig::Key;
use nix::sys::{
    prctl::set_timerslack,
    socket::{setsockopt, sockopt},
};

use super::{
    message::{self, ANSWER_OCTETS_MAX, QUERY_OCTETS_MAX, Verdict},
    nanoseconds,
    zones::{Zones, ZonesError},
};
use crate::{
    change::{self, is_unreachable, key, parse_rate, parse_seconds},
    clock,
    events::Anchors,
    failure::{Advice, Failure},
    stop::{Stop, Wake},
    target::{self, Authority},
};
use core::{Action, Core, Pace, SECONDARIES_MAX, Settings};
use primary::Primary;
use report::Report;

/// Polls of a secondary a second, on hosts of the rig and on a foreign one, unless asked otherwise.
const POLL_RATE_DEFAULT: u32 = 5000;
const POLL_RATE_VOUCHED: u32 = 100;

/// A poll, or a change at the primary, without an answer after so long counts as unanswered.
const POLL_TIMEOUT_NS: i64 = 250_000_000;
const ACCEPT_TIMEOUT_NS: i64 = 5_000_000_000;

/// At most so many zones, and changes times secondaries, each of which takes 32 octets.
const ZONES_MAX: u32 = 10_000;
const SIGHTINGS_MAX: u64 = 4_000_000;

/// Asked of the kernel for answers that come while we do something else; it gives at most net.core.rmem_max.
const RECEIVE_BUFFER_OCTETS: usize = 1 << 22;

/// After so many packets in a row, look whether we are to stop, or an event is due.
const TURNS_BETWEEN_CHECKS: u32 = 64;

/// Measure how long a change on a primary takes to each of its secondaries.
///
/// A change is a dynamic update (RFC 2136) over UDP: a TXT record of the zone gets a new text and the SOA the next
/// serial. Each secondary is then asked for the SOA, over UDP, until it answers with that serial or a later one; only
/// while a change is missing there, and at most --poll-rate-per-s times a second. With several zones, changes go round.
///
/// Without --rate, one change is made at a time, and the next one --pause-ms after every secondary had it. With --rate,
/// changes are due at a constant rate.
///
/// For each change and secondary two times bracket the moment of arrival: last_unseen_ns, when the latest poll was sent
/// that still showed an older serial, and seen_ns, when the answer came that showed the new one.
///
/// Exit codes: 0 all changes were seen everywhere, 3 not all within --limit-s or not all accepted, 130 interrupted,
/// 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten changes, one after the other, seen on two secondaries:\n  \
    dnsrig-engine probe propagation --primary 198.18.0.1 --secondary 198.18.0.2 --secondary 198.18.0.3 \\\n    \
    --zone z000000.example --changes 10 --out propagation.arrow")]
pub struct Arguments {
    /// The primary, where changes are made: an IP address and perhaps a port
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    primary: SocketAddr,
    /// A secondary; up to 64 of them
    #[arg(long = "secondary", value_name = "ADDRESS[:PORT]", required = true, value_parser = target::parse)]
    secondaries: Vec<SocketAddr>,
    /// A zone to change; may be given several times
    #[arg(long = "zone", value_name = "NAME", required_unless_present = "zones")]
    names: Vec<String>,
    /// The zones to change, one a line; what stands behind a TAB is ignored
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    zones: Option<PathBuf>,
    /// So many changes [default: 10, or --rate × --duration-s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    changes: Option<u32>,
    /// Make changes at this rate a second, whether the earlier ones have arrived or not
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<f64>,
    /// For how long to make changes at --rate
    #[arg(long, value_name = "S", requires = "rate", conflicts_with = "changes", value_parser = parse_seconds)]
    duration_s: Option<Duration>,
    /// Without --rate: wait so long between a change that has arrived everywhere and the next one
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pause_ms: u64,
    /// Add up to this much to each pause, spread evenly, so that changes do not fall in step with a server's timers
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pause_spread_ms: u64,
    /// Give up a change that is not everywhere after this long
    #[arg(long, value_name = "S", default_value = "30", value_parser = parse_seconds)]
    limit_s: Duration,
    /// Make no more changes after this long, however few were made; those made before are still waited for
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    stop_after_s: Option<Duration>,
    /// Polls of each secondary a second at most [default: 5000, or 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    poll_rate_per_s: Option<u32>,
    /// Sign updates with this key
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", value_parser = key::parse)]
    tsig: Option<Arc<Key>>,
    /// Write a row for each change and secondary to this file (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// Confirm that this address, neither loopback nor in 198.18.0.0/15 or 2001:2::/48, is yours to load
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Vec<IpAddr>,
}

/// Propagation could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum PropagationError {
    /// The socket failed.
    #[error("cannot {0} a UDP socket: {1}")]
    Socket(&'static str, io::Error),
    /// More than is planned for.
    #[error("{0}")]
    TooMany(String),
    /// One socket speaks to all of them.
    #[error("the primary and the secondaries must all have IPv4 addresses, or all IPv6 addresses")]
    Families,
    /// Each is told apart by its address.
    #[error("the secondary {0} is there twice")]
    Twice(SocketAddr),
}

impl Advice for PropagationError {
    fn hint(&self) -> String {
        match self {
            PropagationError::Socket(..) => {
                "check the addresses and the routes of this host (ip addr, ip route)".into()
            }
            PropagationError::TooMany(_) => "measure fewer at a time".into(),
            PropagationError::Families => "measure each family in a run of its own".into(),
            PropagationError::Twice(_) => "name each secondary once".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, PropagationError::Socket(..)) { 1 } else { 2 }
    }
}

/// Makes changes and watches them arrive until all have, or someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = authorise(arguments)?;
    check(arguments)?;
    let zones = zones(arguments)?;
    let stop = Stop::new(arguments.until_eof)?;
    // A wait ends when it is over, not up to 50 µs later (prctl(2)). Without it, brackets are that much wider.
    let _ = set_timerslack(1);
    let socket = bind(arguments.primary)?;
    let primary = Primary::learn(&socket, arguments.primary, &zones, arguments.tsig.clone())?;
    socket.set_nonblocking(true).map_err(|error| PropagationError::Socket("set up", error))?;
    let anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let settings = settings(arguments, authority, zones.count(), start_ns)?;
    let mut probe = Propagation {
        core: Core::new(settings, &primary.serials(), start_ns),
        report: Report::new(start_ns, anchors),
        secondaries: arguments.secondaries.clone(),
        zones,
        socket,
        primary,
    };
    let interrupted = !probe.watch(&stop)?;
    if let Some(path) = &arguments.out {
        rows::write(path, &probe.zones, &probe.secondaries, &probe.core)?;
    }
    let outcome = report::outcome(&probe.core, settings.changes, interrupted);
    probe.report.summary(outcome, &probe.core, &probe.secondaries, settings)?;
    Ok(outcome.exit_code())
}

fn authorise(arguments: &Arguments) -> Result<Authority, Failure> {
    let mut authority = Authority::Rig;
    for server in arguments.secondaries.iter().chain([&arguments.primary]) {
        let vouched = arguments.i_am_authorized.iter().find(|v| v.to_canonical() == server.ip().to_canonical());
        if target::authorise(server.ip(), vouched.copied())? == Authority::Vouched {
            authority = Authority::Vouched;
        }
    }
    Ok(authority)
}

fn check(arguments: &Arguments) -> Result<(), PropagationError> {
    let secondaries = &arguments.secondaries;
    if secondaries.len() > SECONDARIES_MAX {
        return Err(PropagationError::TooMany(format!("more than {SECONDARIES_MAX} secondaries")));
    }
    if secondaries.iter().any(|secondary| secondary.is_ipv4() != arguments.primary.is_ipv4()) {
        return Err(PropagationError::Families);
    }
    match (1..secondaries.len()).find(|place| secondaries[..*place].contains(&secondaries[*place])) {
        Some(place) => Err(PropagationError::Twice(secondaries[place])),
        None => Ok(()),
    }
}

fn zones(arguments: &Arguments) -> Result<Zones, Failure> {
    let zones = match &arguments.zones {
        Some(path) => Zones::read(path)?,
        None => Zones::named(&arguments.names).map_err(ZonesError::Name)?,
    };
    if zones.count() > ZONES_MAX {
        return Err(PropagationError::TooMany(format!("more than {ZONES_MAX} zones")).into());
    }
    Ok(zones)
}

fn settings(
    arguments: &Arguments,
    authority: Authority,
    zones: u32,
    start_ns: i64,
) -> Result<Settings, PropagationError> {
    let duration_s = arguments.duration_s.unwrap_or(Duration::from_secs(10)).as_secs_f64();
    let by_rate = arguments.rate.map_or(10.0, |rate| (rate * duration_s).ceil().max(1.0));
    let changes = arguments.changes.unwrap_or(by_rate.min(1e9) as u32);
    if u64::from(changes) * arguments.secondaries.len() as u64 > SIGHTINGS_MAX {
        return Err(PropagationError::TooMany(format!("more than {SIGHTINGS_MAX} changes times secondaries")));
    }
    let rate = if authority == Authority::Rig { POLL_RATE_DEFAULT } else { POLL_RATE_VOUCHED };
    let [pause_ns, spread_ns] =
        [arguments.pause_ms, arguments.pause_spread_ms].map(|ms| nanoseconds(Duration::from_millis(ms)));
    Ok(Settings {
        zones,
        secondaries: arguments.secondaries.len(),
        changes,
        pace: arguments.rate.map_or(Pace::Single { pause_ns, spread_ns }, |rate_per_s| Pace::Stream { rate_per_s }),
        poll_spacing_ns: i64::from(1_000_000_000_u32.div_ceil(arguments.poll_rate_per_s.unwrap_or(rate))),
        poll_timeout_ns: POLL_TIMEOUT_NS,
        accept_timeout_ns: ACCEPT_TIMEOUT_NS,
        end_ns: arguments.stop_after_s.map_or(i64::MAX, |after| start_ns.saturating_add(nanoseconds(after))),
        limit_ns: nanoseconds(arguments.limit_s),
    })
}

/// One socket for all servers: one descriptor to wait for, and whoever answers is told by the address.
fn bind(primary: SocketAddr) -> Result<UdpSocket, PropagationError> {
    let any: IpAddr = match primary {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).map_err(|error| PropagationError::Socket("make", error))?;
    let sized = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_OCTETS);
    sized.map_err(|error| PropagationError::Socket("set up", error.into()))?;
    Ok(socket)
}

struct Propagation {
    primary: Primary,
    secondaries: Vec<SocketAddr>,
    zones: Zones,
    socket: UdpSocket,
    core: Core,
    report: Report,
}

impl Propagation {
    /// True when it came to its end, false when it was interrupted.
    fn watch(&mut self, stop: &Stop) -> Result<bool, Failure> {
        let mut turns = 0;
        loop {
            self.receive()?;
            let now_ns = clock::monotonic_ns();
            let action = self.core.next(now_ns);
            let wait_ns = match action {
                Action::Done => return Ok(true),
                Action::Wait { until_ns } => self.report.due_ns().min(until_ns) - now_ns,
                Action::Change { number, zone, serial } => {
                    self.change(number, zone, serial)?;
                    0
                }
                Action::Poll { id, secondary, zone } => {
                    self.poll(id, secondary, zone);
                    0
                }
            };
            turns += 1;
            if wait_ns == 0 && turns % TURNS_BETWEEN_CHECKS != 0 {
                continue;
            }
            self.report.emit_if_due(now_ns, &self.core)?;
            if stop.wait(Some(self.socket.as_fd()), wait_ns)? == Wake::Stop {
                return Ok(false);
            }
        }
    }

    fn change(&mut self, number: u32, zone: u32, serial: u32) -> Result<(), Failure> {
        let octets = self.primary.update(number, self.zones.name(zone), zone, serial);
        let octets = octets.map_err(change::ChangeError::from)?;
        if self.socket.send_to(&octets, self.primary.address()).is_err() {
            self.report.count_send_error();
        }
        Ok(())
    }

    fn poll(&mut self, id: u16, secondary: usize, zone: u32) {
        let mut query = [0; QUERY_OCTETS_MAX];
        let length = message::write_query(&mut query, id, self.zones.name(zone).as_slice());
        if self.socket.send_to(&query[..length], self.secondaries[secondary]).is_err() {
            self.report.count_send_error();
        }
    }

    /// Takes in all answers that have come.
    fn receive(&mut self) -> Result<(), PropagationError> {
        let mut buffer = [0; ANSWER_OCTETS_MAX + 1];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.take_in(clock::monotonic_ns(), from, &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted || is_unreachable(&error) => {}
                Err(error) => return Err(PropagationError::Socket("receive from", error)),
            }
        }
    }

    fn take_in(&mut self, now_ns: i64, from: SocketAddr, octets: &[u8]) {
        if let Some((id, rcode)) = change::message::read_answer(octets).filter(|_| from == self.primary.address()) {
            match self.core.change_of(id) {
                Some(number) if self.primary.is_genuine(id, octets) => {
                    self.report.count_rcode(&self.core, number, rcode);
                    self.core.on_accepted(now_ns, number, rcode);
                }
                _ => self.report.count_unexpected(),
            }
            return;
        }
        let asked = message::response_id(octets)
            .and_then(|(id, _)| Some((id, self.core.poll_of(id)?)))
            .filter(|(_, (secondary, _))| self.secondaries[*secondary] == from);
        let Some((id, (_, zone))) = asked else {
            self.report.count_unexpected();
            return;
        };
        match message::read_answer(octets, self.zones.name(zone), None) {
            Verdict::Malformed | Verdict::Mismatched => self.report.count_unexpected(),
            Verdict::Seen { serial } => self.core.on_polled(now_ns, id, Some(serial)),
            _ => {
                self.report.count_without_serial();
                self.core.on_polled(now_ns, id, None);
            }
        }
    }
}
