//! `propagation`: how long does a change on a primary take to its secondaries?
//!
//! It makes the change itself, by a dynamic update (RFC 2136) that raises the serial to one it knows, and asks every
//! secondary for the SOA until it shows that serial. [`core`] decides what is sent when and what answers mean,
//! [`primary`] knows the zones' SOA records; this file has the socket.

mod arguments;
mod core;
mod primary;
mod report;

use std::{
    net::{SocketAddr, UdpSocket},
    ops::ControlFlow,
    process::ExitCode,
    time::Duration,
};

use dnsrig_core::{
    clock,
    events::Anchors,
    failure::Failure,
    output,
    stop::{Outcome, Stop},
    target::{self, Authority},
    units::nanoseconds,
};
use dnsrig_dns::{
    query::soa_query,
    soa::{self, Verdict},
    tsig::sign::parse_key,
    update,
    zones::Zones,
};
use dnsrig_net::udp_client::{self, UdpClient};

pub use self::arguments::Arguments;
use crate::dataset::zone_list::{self, not_a_name};
use core::{Action, Core, Pace, SECONDARIES_MAX, Settings};
use primary::Primary;
use report::Report;

/// The default polls of a secondary per second, on hosts of the rig and on a foreign host.
const POLL_RATE_DEFAULT: u32 = 5000;
const POLL_RATE_VOUCHED: u32 = 100;

/// The time after which a poll, or a change at the primary, counts as unanswered.
const POLL_TIMEOUT_NS: i64 = 250_000_000;
const ACCEPT_TIMEOUT_NS: i64 = 5_000_000_000;

/// The highest number of zones, and of changes times secondaries, which take 32 bytes each.
const ZONES_MAX: u32 = 10_000;
const SIGHTINGS_MAX: u64 = 4_000_000;

/// The number of answers for which the kernel has room while they wait to be read.
const ANSWERS_WAITING: u32 = 2048;

/// Makes changes and watches them arrive until all have, or someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = authorise(arguments)?;
    check(arguments)?;
    let key = arguments.tsig.as_deref().map(parse_key).transpose()?;
    output::check(&[arguments.out.as_deref()], &[arguments.zones.as_deref()])?;
    let zones = zones(arguments)?;
    let stop = Stop::new(arguments.until_eof)?;
    // If it fails, waits take a little longer and brackets are wider.
    let _ = clock::wait_exactly();
    // One socket for all servers: one descriptor to wait for, and the address shows which server answers.
    let socket = udp_client::bind(arguments.primary, Some(ANSWERS_WAITING))?;
    let limit = arguments.learn_limit;
    let learnt = Primary::learn(&socket, arguments.primary, &zones, key, limit, &stop)?;
    let Some(primary) = learnt else { return Ok(Outcome::Interrupted.exit_code()) };
    let anchors = Anchors::start()?;
    let start_ns = first_change_ns(arguments, clock::monotonic_ns())?;
    let settings = settings(arguments, authority, zones.count(), start_ns)?;
    let mut probe = Propagation {
        core: Core::new(settings, &primary.serials(), start_ns),
        report: Report::new(start_ns, anchors),
        secondaries: arguments.secondaries.clone(),
        zones,
        primary,
    };
    let interrupted = udp_client::run(&mut probe, &socket, arguments.primary, &stop)? == Outcome::Interrupted;
    if let Some(path) = &arguments.out {
        report::write_rows(path, &probe.zones, &probe.secondaries, &probe.core)?;
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

fn check(arguments: &Arguments) -> Result<(), Failure> {
    let secondaries = &arguments.secondaries;
    if secondaries.len() > SECONDARIES_MAX {
        return Err(too_many(SECONDARIES_MAX as u64, "secondaries"));
    }
    if secondaries.iter().any(|secondary| secondary.is_ipv4() != arguments.primary.is_ipv4()) {
        return Err(Failure::bad_input(
            "the primary and the secondaries must all have IPv4 addresses, or all IPv6 addresses",
            "use a separate run for each address family",
        ));
    }
    match (1..secondaries.len()).find(|place| secondaries[..*place].contains(&secondaries[*place])) {
        Some(place) => Err(Failure::bad_input(
            format!("--secondary {} is given twice", secondaries[place]),
            "give each secondary once",
        )),
        None => Ok(()),
    }
}

fn too_many(count_max: u64, what: &str) -> Failure {
    let hint = "lower --changes, or measure fewer secondaries at a time";
    Failure::bad_input(format!("more than {count_max} {what}"), hint)
}

fn zones(arguments: &Arguments) -> Result<Zones, Failure> {
    let zones = match &arguments.zones {
        Some(path) => zone_list::read(path)?,
        None => Zones::named(&arguments.names).map_err(not_a_name)?,
    };
    if zones.count() > ZONES_MAX {
        return Err(too_many(ZONES_MAX.into(), "zones"));
    }
    Ok(zones)
}

fn settings(arguments: &Arguments, authority: Authority, zones: u32, start_ns: i64) -> Result<Settings, Failure> {
    let duration_s = arguments.duration.unwrap_or(Duration::from_secs(10)).as_secs_f64();
    let by_rate = arguments.rate.map_or(10.0, |rate| (rate * duration_s).ceil().max(1.0));
    let changes = arguments.changes.unwrap_or(by_rate.min(1e9) as u32);
    if u64::from(changes) * arguments.secondaries.len() as u64 > SIGHTINGS_MAX {
        return Err(too_many(SIGHTINGS_MAX, "changes times secondaries"));
    }
    let rate = if authority == Authority::Rig { POLL_RATE_DEFAULT } else { POLL_RATE_VOUCHED };
    let [pause_ns, spread_ns] = [arguments.pause, arguments.pause_spread].map(nanoseconds);
    Ok(Settings {
        zones,
        secondaries: arguments.secondaries.len(),
        changes,
        pace: match (arguments.rate, arguments.made_from_ns) {
            (None, _) => Pace::Single { pause_ns, spread_ns },
            (Some(rate_per_s), None) => Pace::Stream { rate_per_s },
            (Some(rate_per_s), Some(_)) => Pace::Own { rate_per_s },
        },
        poll_rate_per_s: arguments.poll_rate_per_s.unwrap_or(rate),
        poll_timeout_ns: POLL_TIMEOUT_NS,
        accept_timeout_ns: ACCEPT_TIMEOUT_NS,
        end_ns: arguments.stop_after.map_or(i64::MAX, |after| start_ns.saturating_add(nanoseconds(after))),
        limit_ns: nanoseconds(arguments.limit),
    })
}

/// When the first change is due: at once, or when a primary that changes its zones itself makes its first change.
fn first_change_ns(arguments: &Arguments, now_ns: i64) -> Result<i64, Failure> {
    let Some((begin_ns, rate_per_s)) = arguments.made_from_ns.zip(arguments.rate) else { return Ok(now_ns) };
    let first_ns = begin_ns.saturating_add((1e9 / rate_per_s).ceil() as i64);
    if first_ns <= now_ns {
        let late_s = (now_ns - first_ns) as f64 / 1e9;
        return Err(Failure::new(
            format!("the primary began to change its zones {late_s:.3} s before their serials were known here"),
            "make the primary start later: `serve zones --changes-delay`",
        ));
    }
    Ok(first_ns)
}

struct Propagation {
    primary: Primary,
    secondaries: Vec<SocketAddr>,
    zones: Zones,
    core: Core,
    report: Report,
}

impl Propagation {
    fn change(&mut self, socket: &UdpSocket, number: u32, zone: u32, serial: u32) -> Result<(), Failure> {
        let bytes = self.primary.update(number, self.zones.name(zone), zone, serial)?;
        if socket.send_to(&bytes, self.primary.address()).is_err() {
            self.report.send_errors += 1;
        }
        Ok(())
    }

    fn poll(&mut self, socket: &UdpSocket, id: u16, secondary: usize, zone: u32) {
        if socket.send_to(&soa_query(id, self.zones.wire(zone)), self.secondaries[secondary]).is_err() {
            self.report.send_errors += 1;
        }
    }

    fn take_in(&mut self, now_ns: i64, from: SocketAddr, message: &[u8]) {
        if let Some((id, rcode)) = update::read_answer(message).filter(|_| from == self.primary.address()) {
            match self.core.change_of(id) {
                Some(number) if self.primary.is_genuine(id, message) => {
                    self.report.count_rcode(&self.core, number, rcode);
                    self.core.on_accepted(now_ns, number, rcode);
                }
                _ => self.report.unexpected += 1,
            }
            return;
        }
        let asked = soa::response_id(message)
            .and_then(|(id, _)| Some((id, self.core.poll_of(id)?)))
            .filter(|(_, (secondary, _))| self.secondaries[*secondary] == from);
        let Some((id, (_, zone))) = asked else {
            self.report.unexpected += 1;
            return;
        };
        match soa::read_answer(message, self.zones.name(zone), None) {
            Verdict::Malformed | Verdict::Mismatched => self.report.unexpected += 1,
            Verdict::Seen { serial } => self.core.on_polled(now_ns, id, Some(serial)),
            _ => {
                self.report.without_serial += 1;
                self.core.on_polled(now_ns, id, None);
            }
        }
    }
}

impl UdpClient for Propagation {
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
        match self.core.next(now_ns) {
            Action::Done => return Ok(ControlFlow::Break(Outcome::Done)),
            Action::Wait { until_ns } => return Ok(ControlFlow::Continue(until_ns)),
            Action::Change { number, zone, serial } => self.change(socket, number, zone, serial)?,
            Action::Poll { id, secondary, zone } => self.poll(socket, id, secondary, zone),
        }
        Ok(ControlFlow::Continue(now_ns))
    }

    fn on_message(&mut self, now_ns: i64, from: SocketAddr, message: &[u8]) -> Result<(), Failure> {
        self.take_in(now_ns, from, message);
        Ok(())
    }

    fn on_unreachable(&mut self, _now_ns: i64) {
        // The error names no server; queries without an answer are given up in their time.
    }

    fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
        self.report.emit_if_due(now_ns, &self.core)?;
        Ok(self.report.due_ns())
    }
}
