//! `change`: a stream of dynamic updates (RFC 2136) on a primary, so that something happens there while others measure.
//!
//! [`plan`] says what the k-th change is, [`core`] when it is sent and how it ended, [`message`] is its octets; here is
//! what touches the socket.

pub mod core;
pub mod key;
pub mod message;
pub mod plan;
pub mod report;
mod rows;
pub mod spread;

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use domain::{base::Name, tsig::Key};

use crate::{
    clock,
    events::Anchors,
    failure::{Advice, Failure},
    probe::zones::Zones,
    stop::{Stop, Wake},
    target::{self, Authority},
};
use core::{Action, Answer, Core, Settings};
use message::{ANSWER_OCTETS_MAX, TooLong, Transaction};
use plan::Plan;
use report::{Outcome, Report};

/// Changes a second that a foreign target gets at most.
const RATE_VOUCHED_MAX: f64 = 10.0;

/// At most this many changes, each kept in memory with 48 octets.
const CHANGES_MAX: u64 = 10_000_000;

/// After so many packets in a row, look whether we are to stop, or an event is due.
const TURNS_BETWEEN_CHECKS: u32 = 64;

/// Change zones of a primary at a constant rate, by dynamic updates (RFC 2136).
///
/// With --catalog, members leave the catalog zone (RFC 9432) and come back: the first --absent changes are removals,
/// from then on members come back and leave alternately. With --zones, each zone in turn gets a new text in a TXT record
/// of its own (dnsrig.ZONE), and the server raises the serial.
///
/// Updates go over UDP, one change a message of at most 512 octets. One without an answer is given up, counted, and
/// never repeated.
///
/// Exit codes: 0 all changes were sent and ended, 130 interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten members of a catalog zone leave or come back each second, for a minute:\n  \
    dnsrig-engine change 198.18.0.1 --catalog catalog.example --members /tmp/zones-10k/zones.list \\\n    \
    --changes-per-s 10 --duration-s 60 --out changes.arrow")]
pub struct Arguments {
    /// The primary: an IP address and perhaps a port, such as 198.18.0.1 or 127.0.0.1:5300
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    primary: SocketAddr,
    /// Change the members of this catalog zone
    #[arg(
        long,
        value_name = "NAME",
        requires = "members",
        conflicts_with = "zones",
        required_unless_present = "zones"
    )]
    catalog: Option<String>,
    /// All members of the catalog, one a line, as in the zones.list that `dnsrig-engine generate` made with it
    #[arg(long, value_name = "FILE", requires = "catalog")]
    members: Option<PathBuf>,
    /// Leave alone the members before this one, counted from 0, so that they can be asked for meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, requires = "catalog")]
    first_member: u32,
    /// So many members are missing at a time; at most half of those that may change
    #[arg(long, value_name = "N", default_value_t = 100, requires = "catalog", value_parser = clap::value_parser!(u32).range(1..))]
    absent: u32,
    /// Change these zones, one a line; what stands behind a TAB is ignored
    #[arg(long, value_name = "FILE")]
    zones: Option<PathBuf>,
    /// Changes a second [aliases: --members-changed-per-s]
    #[arg(long, value_name = "RATE", alias = "members-changed-per-s", value_parser = parse_rate)]
    changes_per_s: f64,
    /// For how long changes are due; those that had to wait are still sent for --timeout-s after that
    #[arg(long, value_name = "S", default_value = "10", value_parser = parse_seconds)]
    duration_s: Duration,
    /// Changes that may wait for an answer at a time; what is due meanwhile is sent later
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    window: u32,
    /// Give up a change that has no answer after this long
    #[arg(long, value_name = "S", default_value = "5", value_parser = parse_seconds)]
    timeout_s: Duration,
    /// Sign updates with this key
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", value_parser = key::parse)]
    tsig: Option<Arc<Key>>,
    /// Write a row for each change to this file (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// Confirm that this address, neither loopback nor in 198.18.0.0/15 or 2001:2::/48, is yours to change
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Option<IpAddr>,
}

/// Changes could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no way to the server.
    #[error("cannot make a UDP socket to {0}: {1}")]
    Connect(SocketAddr, io::Error),
    /// Receiving failed in a way that is not the server's doing.
    #[error("cannot receive from {0}: {1}")]
    Receive(SocketAddr, io::Error),
    /// The catalog's name is none.
    #[error("`{0}` is no domain name")]
    Name(String),
    /// There are too few members to change.
    #[error("--first-member {first} leaves fewer than two of {members} members to change")]
    Members { first: u32, members: u32 },
    /// More than memory is planned for.
    #[error("that would be more than {CHANGES_MAX} changes")]
    TooMany,
    /// A foreign server is not ours to flood.
    #[error("more than {RATE_VOUCHED_MAX} changes a second are too many for a server outside the rig")]
    TooFast,
    /// An update would not fit.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl Advice for ChangeError {
    fn hint(&self) -> String {
        match self {
            ChangeError::Connect(primary, _) => {
                format!("see `ip route get {}`: run it on a host that has a route there", primary.ip())
            }
            ChangeError::Receive(..) => "check the link of this host (ip link, ip route)".into(),
            ChangeError::Name(_) => "give the name as in the catalog's zone file, such as catalog.example".into(),
            ChangeError::Members { .. } => "lower --first-member, or take a catalog with more members".into(),
            ChangeError::TooMany | ChangeError::TooFast => "lower --changes-per-s or --duration-s".into(),
            ChangeError::TooLong(_) => "leave out zones with such long names".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, ChangeError::Connect(..) | ChangeError::Receive(..)) { 1 } else { 2 }
    }
}

/// Changes zones until the time is over or someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.primary.ip(), arguments.i_am_authorized)?;
    if authority == Authority::Vouched && arguments.changes_per_s > RATE_VOUCHED_MAX {
        return Err(ChangeError::TooFast.into());
    }
    let plan = plan(arguments)?;
    let stop = Stop::new(arguments.until_eof)?;
    let socket = connect(arguments.primary).map_err(|error| ChangeError::Connect(arguments.primary, error))?;
    let anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let mut stream = Stream {
        primary: arguments.primary,
        socket,
        key: arguments.tsig.clone(),
        transactions: HashMap::new(),
        core: Core::new(settings(arguments, start_ns)?, start_ns),
        report: Report::new(start_ns, anchors),
        plan,
    };
    let outcome = stream.flow(&stop)?;
    if let Some(path) = &arguments.out {
        rows::write(path, &stream.plan, &stream.core)?;
    }
    let timeout_ns = nanoseconds(arguments.timeout_s);
    stream.report.summary(outcome, &stream.core, &stream.plan, arguments.changes_per_s, timeout_ns)?;
    Ok(outcome.exit_code())
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    if let Some(path) = &arguments.zones {
        return Ok(Plan::Zones(Zones::read(path)?));
    }
    let (Some(catalog), Some(members)) = (&arguments.catalog, &arguments.members) else {
        unreachable!("clap asks for --catalog with --members, or for --zones")
    };
    let catalog = Name::from_str(catalog).map_err(|_| ChangeError::Name(catalog.clone()))?;
    let (members, first) = (Zones::read(members)?, arguments.first_member);
    let to_change = members.count().saturating_sub(first);
    if to_change < 2 {
        return Err(ChangeError::Members { first, members: members.count() }.into());
    }
    Ok(Plan::Catalog { catalog, first, absent: arguments.absent.min(to_change / 2), members })
}

fn settings(arguments: &Arguments, start_ns: i64) -> Result<Settings, ChangeError> {
    let changes = (arguments.changes_per_s * arguments.duration_s.as_secs_f64()).ceil();
    if changes > CHANGES_MAX as f64 {
        return Err(ChangeError::TooMany);
    }
    Ok(Settings {
        rate_per_s: arguments.changes_per_s,
        changes: changes as u64,
        window: arguments.window as usize,
        timeout_ns: nanoseconds(arguments.timeout_s),
        end_ns: start_ns.saturating_add(nanoseconds(arguments.duration_s + arguments.timeout_s)),
    })
}

fn connect(primary: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match primary {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(primary)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Changes a second, perhaps with a fraction.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=100_000.0).contains(rate));
    rate.ok_or_else(|| "give changes a second, from 0.001 to 100000".into())
}

/// Seconds, perhaps with a fraction.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds from 0.001 to 1000000".into())
}

fn nanoseconds(duration: Duration) -> i64 {
    duration.as_nanos().try_into().unwrap_or(i64::MAX)
}

struct Stream {
    primary: SocketAddr,
    socket: UdpSocket,
    key: Option<Arc<Key>>,
    /// By id: what checks the answers that are waited for.
    transactions: HashMap<u16, Transaction>,
    plan: Plan,
    core: Core,
    report: Report,
}

impl Stream {
    fn flow(&mut self, stop: &Stop) -> Result<Outcome, Failure> {
        let mut turns = 0;
        loop {
            self.receive()?;
            let now_ns = clock::monotonic_ns();
            let wait_ns = match self.core.next(now_ns) {
                Action::Done => return Ok(Outcome::Done),
                Action::Send { id, number } => {
                    self.send(id, number)?;
                    turns += 1;
                    if turns % TURNS_BETWEEN_CHECKS != 0 {
                        continue;
                    }
                    0
                }
                Action::Wait { until_ns } => self.report.due_ns().min(until_ns) - now_ns,
            };
            self.report.emit_if_due(now_ns, &self.core)?;
            if stop.wait(Some(self.socket.as_fd()), wait_ns)? == Wake::Stop {
                return Ok(Outcome::Interrupted);
            }
        }
    }

    fn send(&mut self, id: u16, number: u64) -> Result<(), ChangeError> {
        let change = self.plan.change(number);
        let edits = self.plan.edits(number, change)?;
        let (octets, transaction) = message::write_update(id, self.plan.edited(change), &edits, self.key.as_ref())?;
        // An error may be that of an earlier datagram (ICMP): this one was not sent all the same.
        if self.socket.send(&octets).is_err() {
            self.core.on_not_sent(id);
        } else if let Some(transaction) = transaction {
            self.transactions.insert(id, transaction);
        }
        Ok(())
    }

    /// Takes in all answers that have come.
    fn receive(&mut self) -> Result<(), ChangeError> {
        let mut buffer = [0; ANSWER_OCTETS_MAX + 1];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.take_in(clock::monotonic_ns(), &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing listens: whatever waits is given up in its time.
                Err(error) if is_unreachable(&error) => self.report.count_unreachable(),
                Err(error) => return Err(ChangeError::Receive(self.primary, error)),
            }
        }
    }

    fn take_in(&mut self, now_ns: i64, octets: &[u8]) {
        let Some((id, rcode)) = message::read_answer(octets) else {
            self.report.count_unexpected();
            return;
        };
        if self.transactions.remove(&id).is_some_and(|transaction| !message::is_signed(octets, &transaction)) {
            self.report.count_unsigned();
        }
        match self.core.on_answer(now_ns, id, rcode) {
            Answer::Expected => self.report.count_rcode(rcode),
            Answer::Late => self.report.count_late(),
            Answer::Unexpected => self.report.count_unexpected(),
        }
    }
}

/// Whether an ICMP error came back: port, host or network unreachable (ip(7), icmp(7)).
pub fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}
