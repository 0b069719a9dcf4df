//! `probe`: when does a server answer for each of many zones?
//!
//! It asks for the SOA of every zone over UDP, again and again, until the answer is authoritative and has the awaited
//! serial. [`core`] decides what to ask and when, [`soa`] what an answer means; this file has the socket.

mod core;
mod follow;
mod identify;
mod receive;
mod records;
mod report;

use std::{
    fs::File,
    io::BufReader,
    net::{IpAddr, SocketAddr, UdpSocket},
    ops::ControlFlow,
    path::{Path, PathBuf},
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
    units::{MINUTE, duration, nanoseconds, parse_duration},
};
use dnsrig_dns::{
    query::soa_query,
    soa::{self, Verdict},
    zones::Zones,
};
use dnsrig_net::{
    udp_batch::is_unreachable,
    udp_client::{self, UdpClient},
};

use crate::dataset::{
    text_file::{LineError, Lines},
    zone_list,
};
use core::{Action, Core, Found, Settings};
use report::Report;

/// The default polls per second on hosts of the rig: well below a percent of what a server can answer.
const RATE_DEFAULT: u32 = 2000;

/// The default polls per second on a foreign target that the user vouches for.
const RATE_VOUCHED: u32 = 100;

/// Measure when a server answers for each of many zones: readiness, progress, propagation.
///
/// `probe` asks for the SOA record of each zone over UDP until the server answers authoritatively and, with --serial,
/// with that serial or a newer one. Zones that were seen are not asked for again. A poll that finds its zone does not
/// count towards --rate, so the load on the server is at most zones + rate × time + a burst of 10 ms, and zones that
/// are ready are found as fast as the server answers.
///
/// For each zone, two times bracket the moment when it became ready: last_unseen_ns is when the last poll that did not
/// find it was sent, and seen_ns is when the answer came that found it. In the summary, resolution_ns is the width of
/// this bracket for the whole set.
///
/// Exit codes: 0 all zones were seen, 3 not all within --limit, 130 interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Example: wait until a secondary serves 10,000 zones with serial 7:\n  \
    dnsrig probe 198.18.0.2 --zone-list /tmp/zones-10k/zones.list --serial 7 --out zones.arrow")]
pub struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    zones: Option<ZonesArguments>,
}

/// Another kind of measurement.
#[derive(Debug, clap::Subcommand)]
enum Other {
    Follow(follow::Arguments),
    Identify(identify::Arguments),
    Records(records::Arguments),
}

/// The options of `probe` itself.
#[derive(Debug, clap::Args)]
pub struct ZonesArguments {
    /// Server to ask: an IP address and optionally a port, such as 198.18.0.2, 127.0.0.1:5300 or [::1]:53
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    server: SocketAddr,
    /// File with the zones, one name per line. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    zones: PathBuf,
    /// Serial to wait for, or a newer one (RFC 1982) [default: any serial]
    #[arg(long, value_name = "SERIAL")]
    serial: Option<u32>,
    /// File with the serial to wait for of each zone, or a newer one, one per line in the order of the zones
    #[arg(long, value_name = "FILE", conflicts_with = "serial")]
    serials: Option<PathBuf>,
    /// Polls per second, not counting polls that find their zone [default: 2000, or 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Number of polls that can wait for an answer at a time. On a long path, at most that many zones are found per
    /// round trip
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    window: u32,
    /// Time after which a poll is given up and its zone asked for again later. It must exceed the round trip time
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = duration(Duration::from_millis(1)..=MINUTE))]
    timeout: Duration,
    /// Time after which the measurement ends even if zones are missing (exit code 3)
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_duration)]
    limit: Duration,
    /// File for the rows, one for each zone (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Shortest time between two progress events
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration(Duration::from_millis(1)..=MINUTE))]
    progress: Duration,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Option<IpAddr>,
}

/// Does what the arguments ask for: watches zones until they are there, or follows them.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match (&arguments.other, &arguments.zones) {
        (Some(Other::Follow(arguments)), _) => follow::run(arguments),
        (Some(Other::Identify(arguments)), _) => identify::run(arguments),
        (Some(Other::Records(arguments)), _) => records::run(arguments),
        (None, Some(arguments)) => run_zones(arguments),
        (None, None) => unreachable!("clap asks for one of them"),
    }
}

/// Probes until all zones are seen, the time is over, or someone ends it.
fn run_zones(arguments: &ZonesArguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server.ip(), arguments.i_am_authorized)?;
    output::check(&[arguments.out.as_deref()], &[Some(&arguments.zones), arguments.serials.as_deref()])?;
    let zones = zone_list::read(&arguments.zones)?;
    let settings = settings(arguments, authority);
    let stop = Stop::new(arguments.until_eof)?;
    let socket = udp_client::connect(arguments.server, Some(arguments.window))?;
    let anchors = Anchors::start()?;
    let started_ns = clock::monotonic_ns();
    let mut probe = Probe {
        awaited: match &arguments.serials {
            Some(path) => Awaited::Each(read_serials(path, zones.count())?),
            None => arguments.serial.map_or(Awaited::Any, Awaited::One),
        },
        limit_ns: started_ns.saturating_add(nanoseconds(arguments.limit)),
        report: Report::new(started_ns, nanoseconds(arguments.progress), anchors),
        core: Core::new(zones.count(), settings),
        zones,
    };
    let outcome = udp_client::run(&mut probe, &socket, arguments.server, &stop)?;
    if let Some(path) = &arguments.out {
        report::write_rows(path, &probe.zones, &probe.core)?;
    }
    probe.report.summary(outcome, &probe.core, settings)?;
    Ok(outcome.exit_code())
}

fn settings(arguments: &ZonesArguments, authority: Authority) -> Settings {
    let rate = match authority {
        Authority::Rig => RATE_DEFAULT,
        Authority::Vouched => RATE_VOUCHED,
    };
    Settings {
        rate: arguments.rate.unwrap_or(rate),
        window: arguments.window,
        timeout_ns: nanoseconds(arguments.timeout),
        // On a foreign server the rate is a promise about all polls.
        refund: authority == Authority::Rig,
    }
}

/// The serials that zones must have at least.
enum Awaited {
    Any,
    One(u32),
    /// By the number of the zone.
    Each(Vec<u32>),
}

impl Awaited {
    fn of(&self, zone: u32) -> Option<u32> {
        match self {
            Awaited::Any => None,
            Awaited::One(serial) => Some(*serial),
            Awaited::Each(serials) => Some(serials[zone as usize]),
        }
    }
}

/// The serials in a file, as many as there are zones.
fn read_serials(path: &Path, zones: u32) -> Result<Vec<u32>, Failure> {
    let wrong = |reason: String| {
        Failure::bad_input(format!("{}: {reason}", path.display()), "give a serial for each zone, one per line")
    };
    let file = BufReader::new(File::open(path).map_err(|error| wrong(error.to_string()))?);
    let mut serials = Vec::with_capacity(zones as usize);
    let mut lines = Lines::new(file);
    loop {
        match lines.next_line() {
            Ok(Some(_)) if serials.len() == zones as usize => {
                return Err(wrong(format!("more serials than the {zones} zones")));
            }
            Ok(Some((line, text))) => {
                serials.push(text.parse().map_err(|_| wrong(format!("line {line}: `{text}` is no serial")))?);
            }
            Ok(None) if serials.len() < zones as usize => {
                return Err(wrong(format!("{} serials for {zones} zones", serials.len())));
            }
            Ok(None) => return Ok(serials),
            Err(LineError::Read(error)) => return Err(wrong(error.to_string())),
            Err(LineError::Line { line, reason }) => return Err(wrong(format!("line {line}: {reason}"))),
        }
    }
}

struct Probe {
    zones: Zones,
    awaited: Awaited,
    core: Core,
    report: Report,
    limit_ns: i64,
}

impl Probe {
    fn send(&mut self, socket: &UdpSocket, id: u16, zone: u32) {
        if let Err(error) = socket.send(&soa_query(id, self.zones.wire(zone))) {
            let now_ns = clock::monotonic_ns();
            self.core.on_not_sent(now_ns, id);
            if is_unreachable(&error) {
                // The error belongs to an earlier query; the kernel reports it instead of sending this one.
                self.core.on_unreachable(now_ns);
            } else {
                self.report.send_errors += 1;
            }
        }
    }
}

impl UdpClient for Probe {
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
        Ok(match self.core.next(now_ns) {
            Action::Done => ControlFlow::Break(Outcome::Done),
            _ if now_ns >= self.limit_ns => ControlFlow::Break(Outcome::Timeout),
            Action::Wait { until_ns } => ControlFlow::Continue(until_ns.min(self.limit_ns)),
            Action::Send { id, zone } => {
                self.send(socket, id, zone);
                ControlFlow::Continue(now_ns)
            }
        })
    }

    fn on_message(&mut self, now_ns: i64, _from: SocketAddr, message: &[u8]) -> Result<(), Failure> {
        let Some((id, rcode)) = soa::response_id(message) else {
            self.report.verdicts.count(Verdict::Malformed);
            return Ok(());
        };
        let verdict = match self.core.zone_of(id) {
            Some(zone) => soa::read_answer(message, self.zones.name(zone), self.awaited.of(zone)),
            None => Verdict::Mismatched,
        };
        self.report.verdicts.count(verdict);
        let found = match verdict {
            // Not the answer to our query, which is still outstanding.
            Verdict::Malformed | Verdict::Mismatched => return Ok(()),
            Verdict::Seen { serial } | Verdict::Newer { serial } => Found::Ready { serial },
            _ => Found::NotReady,
        };
        self.report.on_answer(now_ns, rcode)?;
        if self.core.on_answer(now_ns, id, found) {
            self.report.on_seen(now_ns)?;
        }
        Ok(())
    }

    fn on_unreachable(&mut self, now_ns: i64) {
        self.core.on_unreachable(now_ns);
    }

    fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
        self.report.emit_if_due(now_ns, &self.core)?;
        Ok(self.report.due_ns(&self.core))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_zone_has_a_serial_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serials.txt");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_serials(&path, 2).map_err(|failure| failure.sentence)
        };
        let serials = Awaited::Each(read("7\n4294967295\n").unwrap());
        assert_eq!((serials.of(0), serials.of(1)), (Some(7), Some(u32::MAX)));
        for (text, said) in [
            ("7\n", "1 serials for 2 zones"),
            ("1\n2\n3\n", "more serials than the 2 zones"),
            ("1\n-2\n", "line 2: `-2` is no serial"),
        ] {
            assert!(read(text).unwrap_err().ends_with(said), "{text}");
        }
    }
}
