//! The command line of `propagation`.

use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use dnsrig_core::{
    target,
    units::{duration, parse_changes_per_s, parse_duration},
};

/// How long a change can wait for the next one.
const PAUSES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Measure how long a change takes from a primary to each of its secondaries.
///
/// A change is a dynamic update (RFC 2136) over UDP: a TXT record of the zone gets a new text, and the SOA record the
/// next serial. Each secondary is then asked for the SOA record over UDP until it answers with that serial or a later
/// one. Secondaries are asked only while a change is missing there, and at most --poll-rate-per-s times a second.
/// Several zones are changed in turn.
///
/// Without --rate, one change is made at a time, and the next one follows --pause after every secondary had it. With
/// --rate, changes are due at a constant rate.
///
/// For each change and secondary, two times bracket the moment of arrival: last_unseen_ns is when the last poll was
/// sent that still showed an older serial, and seen_ns is when the answer came that showed the new one.
///
/// Before the first change, the primary is asked for the SOA record of each zone, one after the other.
///
/// Exit codes: 0 all changes were seen on all secondaries, 3 not all within --limit or not all accepted, 130
/// interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten changes, one after the other, on two secondaries:\n  \
    dnsrig propagation --primary 198.18.0.1 --secondary 198.18.0.2 --secondary 198.18.0.3 \\\n    \
    --zone z000000.example --changes 10 --out propagation.arrow")]
pub struct Arguments {
    /// Primary on which changes are made: an IP address and optionally a port
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub primary: SocketAddr,
    /// Secondary to ask. May be repeated, up to 64 times
    #[arg(long = "secondary", value_name = "ADDRESS[:PORT]", required = true, value_parser = target::parse)]
    pub secondaries: Vec<SocketAddr>,
    /// Zone to change. May be repeated
    #[arg(long = "zone", value_name = "NAME", required_unless_present = "zones")]
    pub names: Vec<String>,
    /// File with the zones to change, one per line. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE", conflicts_with = "names")]
    pub zones: Option<PathBuf>,
    /// Number of changes [default: 10, or --rate × --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub changes: Option<u32>,
    /// Changes per second, made whether or not earlier ones have arrived
    #[arg(long, value_name = "RATE", value_parser = parse_changes_per_s)]
    pub rate: Option<f64>,
    /// Time of CLOCK_MONOTONIC, in nanoseconds, from which the primary, a `serve zones`, makes the changes itself at
    /// --rate. It must have exactly the listed zones
    #[arg(long, value_name = "NS", requires = "rate", conflicts_with = "tsig")]
    pub made_from_ns: Option<i64>,
    /// Duration of the changes at --rate
    #[arg(long, value_name = "TIME", requires = "rate", conflicts_with = "changes", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Without --rate: pause between a change that has arrived everywhere and the next one
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration(PAUSES))]
    pub pause: Duration,
    /// Largest random addition to each pause, spread evenly, so that changes do not fall in step with a server's timers
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration(PAUSES))]
    pub pause_spread: Duration,
    /// Time after which a change that is not everywhere is given up
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub limit: Duration,
    /// Time within which the primary must show the SOA record of every zone before the first change. If it does not,
    /// the exit code is 1
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub learn_limit: Duration,
    /// Time after which no further changes are made, however few there were. Changes that were made before are still
    /// waited for
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub stop_after: Option<Duration>,
    /// Highest number of polls per second of each secondary [default: 5000, or 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub poll_rate_per_s: Option<u32>,
    /// TSIG key that updates are signed with
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    pub tsig: Option<String>,
    /// File for the rows, one for each change and secondary (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Vec<IpAddr>,
}
