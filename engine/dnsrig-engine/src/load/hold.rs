//! Connections that clients hold: opened at a bounded rate, kept open, and asked on now and then.
//!
//! Two periods do it. In the first, each client has one query, so each opens its connection. In the second, the clients
//! have queries in turn: each connection has one every [`HoldArguments::hold`], spread evenly over that time.

use std::{fs, net::IpAddr, time::Duration};

use dnsrig_core::{
    failure::Failure,
    stats::{Distribution, Times, grouped},
    units::duration,
};
use serde::Serialize;

use super::{
    arrivals::Period,
    collect::Outcome,
    counts::{Connections, Losses},
};

/// The rate of opening if no option names one, in connections per second.
const OPEN_RATE_DEFAULT: u32 = 1_000;

/// The most connections opened per second on a foreign target that the user vouches for, unless --open-rate names
/// another rate.
const OPEN_RATE_VOUCHED: u32 = 100;

/// The highest number of connections that can be held.
pub const HELD_MAX: i64 = 1_000_000;

/// The range of ports that connections leave from, and what it is if it cannot be read (ip-sysctl).
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const PORT_RANGE_DEFAULT: &str = "32768 60999";

/// What clients do with the connections that they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldAs {
    /// Ask one query every --hold, and read the answer
    #[default]
    Idle,
    /// Ask nothing: send the first byte of a query and no more or, over DoT and DoH, not even the first byte of TLS
    HalfOpen,
    /// Ask one query every --hold, and never read: the queries count as timeouts
    SlowReader,
}

/// The options for connections that are held.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct HoldArguments {
    /// Over all but UDP: hold a connection for each of --clients. First all are opened, at --open-rate, each with a
    /// query. Then, for --duration, each has one query every TIME, spread evenly. A connection that the server closed
    /// is opened again for its next query
    #[arg(long, value_name = "TIME", requires = "clients", value_parser = duration(Duration::from_millis(10)..=Duration::from_secs(86_400)),
          conflicts_with_all = ["rate", "poisson", "outstanding", "ramp", "passes"], help_heading = "Held connections")]
    pub hold: Option<Duration>,
    /// With --hold: number of connections opened per second [default: 1000; 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "hold", help_heading = "Held connections")]
    open_rate: Option<u32>,
    /// With --hold: what clients do with their connections
    #[arg(long, value_enum, default_value = "idle", requires = "hold", help_heading = "Held connections")]
    pub held_as: HeldAs,
}

impl HoldArguments {
    /// The number of connections opened per second. A foreign target is loaded gently unless the user names a rate.
    pub fn open_rate(&self, vouched: bool) -> u32 {
        self.open_rate.unwrap_or(if vouched { OPEN_RATE_VOUCHED } else { OPEN_RATE_DEFAULT })
    }
}

/// Refuses more connections than the addresses of this host have ports for.
pub fn check_ports(connections: usize, sources: &[IpAddr]) -> Result<(), Failure> {
    let range = fs::read_to_string(PORT_RANGE).unwrap_or_default();
    let ports = ports_of(&range).or_else(|| ports_of(PORT_RANGE_DEFAULT)).unwrap_or(usize::MAX);
    let addresses = sources.len().max(1);
    if connections.div_ceil(addresses) <= ports {
        return Ok(());
    }
    let (most, needed) = (grouped((ports * addresses) as u64), connections.div_ceil(ports));
    Err(Failure::bad_input(
        format!(
            "{} connections to one server need as many source ports, and {} {most} (net.ipv4.ip_local_port_range)",
            grouped(connections as u64),
            if addresses == 1 { "one address here has".into() } else { format!("{addresses} addresses here have") },
        ),
        format!(
            "give {needed} --source addresses, lower --clients to {most}, or widen the range as root: \
             `sysctl -w net.ipv4.ip_local_port_range='1024 65535'`"
        ),
    ))
}

/// The number of ports in a range, both ends included.
fn ports_of(range: &str) -> Option<usize> {
    let (low, high) = range.trim().split_once(char::is_whitespace)?;
    let (low, high) = (low.parse::<usize>().ok()?, high.trim().parse::<usize>().ok()?);
    (high >= low).then(|| high - low + 1)
}

/// The memory that this process has, in bytes. 0 if the system does not show it.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1_024
}

/// After which time the server ended connections, from established.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lifetimes {
    pub count: u64,
    pub min_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
}

impl Lifetimes {
    /// The distribution of times in microseconds. `None` without any.
    pub fn of(times_us: &Times) -> Option<Self> {
        let Distribution { count, min, p50, p90, p99, max, .. } = times_us.into();
        let [min_s, p50_s, p90_s, p99_s, max_s] = [min, p50, p90, p99, max].map(|time_us| time_us as f64 / 1e6);
        (count > 0).then_some(Lifetimes { count, min_s, p50_s, p90_s, p99_s, max_s })
    }
}

/// The result of the opening.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Opening {
    pub asked_per_s: f64,
    pub start_ns: i64,
    pub duration_s: f64,
    pub sent: u64,
    pub answered: u64,
    pub timeouts: u64,
    pub lost: Losses,
    pub connections: Connections,
    pub latency_ns: Distribution,
    pub handshake_ns: Option<Distribution>,
    /// The memory that this process took for its connections, with the tables of its clients.
    pub memory_bytes: u64,
    pub memory_per_connection_bytes: Option<f64>,
}

impl Opening {
    /// The result of the period of the opening. `before_bytes` is the memory of this process before it prepared for
    /// connections.
    pub fn new(outcome: &Outcome, period: Period, asked_per_s: f64, before_bytes: u64) -> Self {
        let Outcome { counts, series, .. } = outcome;
        let connections = outcome.connections();
        let memory_bytes = resident_bytes().saturating_sub(before_bytes);
        Opening {
            asked_per_s,
            start_ns: period.start_ns,
            duration_s: outcome.sending_ns as f64 / 1e9,
            sent: counts.sent,
            answered: counts.answered,
            timeouts: counts.timeouts,
            lost: counts.lost,
            connections,
            latency_ns: (&series.due).into(),
            handshake_ns: (!series.handshake.is_empty()).then(|| (&series.handshake).into()),
            memory_bytes,
            memory_per_connection_bytes: (connections.open > 0).then(|| memory_bytes as f64 / connections.open as f64),
        }
    }
}

/// How connections were held.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Held {
    pub held_as: HeldAs,
    pub every_s: f64,
    pub opening: Opening,
}

#[cfg(test)]
mod tests {
    use dnsrig_core::stats::times;

    use super::*;

    #[test]
    fn a_range_of_ports_has_both_its_ends() {
        assert_eq!(ports_of("32768\t60999\n"), Some(28_232));
        assert_eq!(ports_of(PORT_RANGE_DEFAULT), Some(28_232));
        assert_eq!([ports_of(""), ports_of("9 1"), ports_of("a b")], [None; 3]);
    }

    #[test]
    fn more_connections_than_ports_are_refused_with_what_to_do() {
        let addresses: Vec<IpAddr> = (1..=2).map(|last| IpAddr::from([127, 0, 0, last])).collect();
        assert_eq!(check_ports(1, &[]), Ok(()));
        let refused = check_ports(1_000_000, &addresses).unwrap_err();
        assert!(refused.sentence.starts_with("1,000,000 connections to one server need"), "{}", refused.sentence);
        assert!(refused.sentence.contains("2 addresses here have"), "{}", refused.sentence);
        assert!(refused.hint.contains("--source addresses, lower --clients to"), "{}", refused.hint);
    }

    #[test]
    fn memory_is_measured() {
        let before = resident_bytes();
        let space = vec![1_u8; 32 << 20];
        assert!(resident_bytes() - before > 24 << 20, "{}", space.len());
    }

    #[test]
    fn lifetimes_are_in_seconds_and_none_without_an_end() {
        let mut times_us = times();
        assert_eq!(Lifetimes::of(&times_us), None);
        (1..=100).for_each(|s| times_us.record(s * 1_000_000).unwrap());
        let found = Lifetimes::of(&times_us).unwrap();
        assert!((found.p50_s - 50.0).abs() < 1.0 && (found.max_s - 100.0).abs() < 1.0, "{found:?}");
    }
}
