//! What `propagation` is told, and what it refuses.

use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use crate::base::{
    failure::Advice,
    target,
    units::{duration, parse_changes_per_s, parse_duration},
};

/// How long a change can wait for the next one.
const PAUSES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Measure how long a change on a primary takes to each of its secondaries.
///
/// A change is a dynamic update (RFC 2136) over UDP: a TXT record of the zone gets a new text and the SOA the next
/// serial. Each secondary is then asked for the SOA, over UDP, until it answers with that serial or a later one; only
/// while a change is missing there, and at most --poll-rate-per-s times a second. With several zones, changes go round.
///
/// Without --rate, one change is made at a time, and the next one --pause after every secondary had it. With --rate,
/// changes are due at a constant rate.
///
/// For each change and secondary two times bracket the moment of arrival: last_unseen_ns, when the latest poll was sent
/// that still showed an older serial, and seen_ns, when the answer came that showed the new one.
///
/// Before the first change the primary is asked for the SOA of each zone, one after the other.
///
/// Exit codes: 0 all changes were seen everywhere, 3 not all within --limit or not all accepted, 130 interrupted,
/// 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten changes, one after the other, seen on two secondaries:\n  \
    dnsrig propagation --primary 198.18.0.1 --secondary 198.18.0.2 --secondary 198.18.0.3 \\\n    \
    --zone z000000.example --changes 10 --out propagation.arrow")]
pub struct Arguments {
    /// The primary, where changes are made: an IP address and perhaps a port
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub primary: SocketAddr,
    /// A secondary; up to 64 of them
    #[arg(long = "secondary", value_name = "ADDRESS[:PORT]", required = true, value_parser = target::parse)]
    pub secondaries: Vec<SocketAddr>,
    /// A zone to change; may be given several times
    #[arg(long = "zone", value_name = "NAME", required_unless_present = "zones")]
    pub names: Vec<String>,
    /// The zones to change, one a line; what stands behind a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE", conflicts_with = "names")]
    pub zones: Option<PathBuf>,
    /// So many changes [default: 10, or --rate × --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub changes: Option<u32>,
    /// Make changes at this rate a second, whether the earlier ones have arrived or not
    #[arg(long, value_name = "RATE", value_parser = parse_changes_per_s)]
    pub rate: Option<f64>,
    /// The primary, a `serve zones`, makes the changes by itself at --rate, from this time of CLOCK_MONOTONIC on; its
    /// zones must be the listed ones
    #[arg(long, value_name = "NS", requires = "rate", conflicts_with = "tsig")]
    pub made_from_ns: Option<i64>,
    /// For how long to make changes at --rate
    #[arg(long, value_name = "TIME", requires = "rate", conflicts_with = "changes", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Without --rate: wait so long between a change that has arrived everywhere and the next one
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration(PAUSES))]
    pub pause: Duration,
    /// Add up to this much to each pause, spread evenly, so that changes do not fall in step with a server's timers
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration(PAUSES))]
    pub pause_spread: Duration,
    /// Give up a change that is not everywhere after this long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub limit: Duration,
    /// Give up before the first change if the primary has not shown the SOA of every zone after this long (exit code 1)
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub learn_limit: Duration,
    /// Make no more changes after this long, however few were made; those made before are still waited for
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub stop_after: Option<Duration>,
    /// Polls of each secondary a second at most [default: 5000, or 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub poll_rate_per_s: Option<u32>,
    /// Sign updates with this key
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    pub tsig: Option<String>,
    /// Write a row for each change and secondary to this file (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Confirm that this address is yours to load; not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 where
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Vec<IpAddr>,
}

/// Propagation could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum PropagationError {
    /// More than is planned for.
    #[error("{0}")]
    TooMany(String),
    /// The first changes may have been missed.
    #[error("the primary began to change its zones {0:.3} s before their serials were known here")]
    Late(f64),
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
            PropagationError::Late(_) => "have it begin later: serve zones --changes-delay".into(),
            PropagationError::TooMany(_) => "measure fewer at a time".into(),
            PropagationError::Families => "measure each family in a run of its own".into(),
            PropagationError::Twice(_) => "name each secondary once".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, PropagationError::Late(_)) { 1 } else { 2 }
    }
}
