//! The command line of `change`.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use dnsrig_core::{
    target,
    units::{parse_changes_per_s, parse_duration},
};

/// Changes a second that a foreign target gets at most.
pub const RATE_VOUCHED_MAX: f64 = 10.0;

/// At most this many changes, each kept in memory with 48 bytes.
pub const CHANGES_MAX: u64 = 10_000_000;

/// Change zones of a primary at a constant rate, by dynamic updates (RFC 2136).
///
/// With --catalog, members leave the catalog zone (RFC 9432) and come back: the first --absent changes remove members,
/// and from then on members come back and leave alternately. With --zone-list, each zone in turn gets a new text in its
/// own TXT record (dnsrig.ZONE), and the server raises the serial.
///
/// Updates are sent over UDP, one change per message, in at most 512 bytes. An update without an answer is given up and
/// counted, and is not repeated.
///
/// Exit codes: 0 all changes were sent and have ended, 130 interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten members of a catalog zone leave or come back each second, for one minute:\n  \
    dnsrig change 198.18.0.1 --catalog catalog.example --members /tmp/zones-10k/zones.list \\\n    \
    --changes-per-s 10 --duration 60s --out changes.arrow")]
pub struct Arguments {
    /// Primary to change: an IP address and optionally a port, such as 198.18.0.1 or 127.0.0.1:5300
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub primary: SocketAddr,
    /// Catalog zone whose members change
    #[arg(
        long,
        value_name = "NAME",
        requires = "members",
        conflicts_with = "zones",
        required_unless_present = "zones"
    )]
    pub catalog: Option<String>,
    /// File with all members of the catalog, one per line: the zones.list that `dnsrig generate` made with the catalog
    #[arg(long, value_name = "FILE", requires = "catalog")]
    pub members: Option<PathBuf>,
    /// Number of the first member that may change, counted from 0. The members before it stay, so that they can be
    /// queried meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, requires = "catalog")]
    pub first_member: u32,
    /// Number of members that are missing at a time, at most half of those that may change
    #[arg(long, value_name = "N", default_value_t = 100, requires = "catalog", value_parser = clap::value_parser!(u32).range(1..))]
    pub absent: u32,
    /// File with the zones to change, one per line. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    pub zones: Option<PathBuf>,
    /// Changes per second
    #[arg(long, value_name = "RATE", alias = "members-changed-per-s", value_parser = parse_changes_per_s)]
    pub changes_per_s: f64,
    /// Time during which changes are due. Changes that had to wait are still sent for --timeout after that
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Number of changes that can wait for an answer at a time. Changes that fall due meanwhile are sent later
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub window: u32,
    /// Time after which a change without an answer is given up
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// TSIG key that updates are signed with
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    pub tsig: Option<String>,
    /// File for the rows, one for each change (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// IP address that you are allowed to change. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
}
