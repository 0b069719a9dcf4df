//! `propagation`: how long does a change on a primary take to its secondaries?
//!
//! It makes the change itself, by a dynamic update (RFC 2136) that raises the serial to one it knows, and asks every
//! secondary for the SOA until it shows that serial. [`core`] decides what is sent when and what answers mean,
//! [`primary`] knows the zones' SOA records; here is what touches the socket.

mod arguments;
pub mod core;
mod primary;
mod report;
mod rows;

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsFd,
    process::ExitCode,
    time::Duration,
};

use nix::sys::socket::{setsockopt, sockopt};

pub use self::arguments::{Arguments, PropagationError};
use crate::{
    base::{
        clock,
        events::Anchors,
        failure::Failure,
        stop::{Stop, Wake},
        target::{self, Authority},
        units::nanoseconds,
    },
    dns::{
        soa::{self, ANSWER_OCTETS_MAX, QUERY_OCTETS_MAX, Verdict},
        update,
        zone_list::{Zones, ZonesError},
    },
    net::udp_batch::is_unreachable,
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

/// Makes changes and watches them arrive until all have, or someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = authorise(arguments)?;
    check(arguments)?;
    let zones = zones(arguments)?;
    let stop = Stop::new(arguments.until_eof)?;
    // Without it, brackets are wider by what waits take longer.
    let _ = clock::wait_exactly();
    let socket = bind(arguments.primary)?;
    let primary = Primary::learn(&socket, arguments.primary, &zones, arguments.tsig.clone())?;
    socket.set_nonblocking(true).map_err(|error| PropagationError::Socket("set up", error))?;
    let anchors = Anchors::start()?;
    let start_ns = first_change_ns(arguments, clock::monotonic_ns())?;
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
        pace: match (arguments.rate, arguments.made_from_ns) {
            (None, _) => Pace::Single { pause_ns, spread_ns },
            (Some(rate_per_s), None) => Pace::Stream { rate_per_s },
            (Some(rate_per_s), Some(_)) => Pace::Own { rate_per_s },
        },
        poll_spacing_ns: i64::from(1_000_000_000_u32.div_ceil(arguments.poll_rate_per_s.unwrap_or(rate))),
        poll_timeout_ns: POLL_TIMEOUT_NS,
        accept_timeout_ns: ACCEPT_TIMEOUT_NS,
        end_ns: arguments.stop_after_s.map_or(i64::MAX, |after| start_ns.saturating_add(nanoseconds(after))),
        limit_ns: nanoseconds(arguments.limit_s),
    })
}

/// When the first change is due: at once, or when a primary that makes them by itself makes its first.
fn first_change_ns(arguments: &Arguments, now_ns: i64) -> Result<i64, PropagationError> {
    let Some((begin_ns, rate_per_s)) = arguments.made_from_ns.zip(arguments.rate) else { return Ok(now_ns) };
    let first_ns = begin_ns.saturating_add((1e9 / rate_per_s).ceil() as i64);
    if first_ns <= now_ns {
        return Err(PropagationError::Late((now_ns - first_ns) as f64 / 1e9));
    }
    Ok(first_ns)
}

/// One socket for all servers: one descriptor to wait for, and whoever answers is told by the address.
fn bind(primary: SocketAddr) -> Result<UdpSocket, PropagationError> {
    let socket =
        UdpSocket::bind((target::unspecified(primary), 0)).map_err(|error| PropagationError::Socket("make", error))?;
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
        let octets = octets?;
        if self.socket.send_to(&octets, self.primary.address()).is_err() {
            self.report.count_send_error();
        }
        Ok(())
    }

    fn poll(&mut self, id: u16, secondary: usize, zone: u32) {
        let mut query = [0; QUERY_OCTETS_MAX];
        let length = soa::write_query(&mut query, id, self.zones.name(zone).as_slice());
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
        if let Some((id, rcode)) = update::read_answer(octets).filter(|_| from == self.primary.address()) {
            match self.core.change_of(id) {
                Some(number) if self.primary.is_genuine(id, octets) => {
                    self.report.count_rcode(&self.core, number, rcode);
                    self.core.on_accepted(now_ns, number, rcode);
                }
                _ => self.report.count_unexpected(),
            }
            return;
        }
        let asked = soa::response_id(octets)
            .and_then(|(id, _)| Some((id, self.core.poll_of(id)?)))
            .filter(|(_, (secondary, _))| self.secondaries[*secondary] == from);
        let Some((id, (_, zone))) = asked else {
            self.report.count_unexpected();
            return;
        };
        match soa::read_answer(octets, self.zones.name(zone), None) {
            Verdict::Malformed | Verdict::Mismatched => self.report.count_unexpected(),
            Verdict::Seen { serial } => self.core.on_polled(now_ns, id, Some(serial)),
            _ => {
                self.report.count_without_serial();
                self.core.on_polled(now_ns, id, None);
            }
        }
    }
}
