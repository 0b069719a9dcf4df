//! What `change` is told, and what it refuses.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use crate::{
    base::{
        failure::Advice,
        target,
        units::{parse_changes_per_s, parse_duration},
    },
    dns::update::TooLong,
};

/// Changes a second that a foreign target gets at most.
pub const RATE_VOUCHED_MAX: f64 = 10.0;

/// At most this many changes, each kept in memory with 48 bytes.
pub const CHANGES_MAX: u64 = 10_000_000;

/// Change zones of a primary at a constant rate, by dynamic updates (RFC 2136).
///
/// With --catalog, members leave the catalog zone (RFC 9432) and come back: the first --absent changes are removals,
/// from then on members come back and leave alternately. With --zone-list, each zone in turn gets a new text in a TXT
/// record of its own (dnsrig.ZONE), and the server raises the serial.
///
/// Updates go over UDP, one change a message of at most 512 bytes. One without an answer is given up, counted, and
/// never repeated.
///
/// Exit codes: 0 all changes were sent and ended, 130 interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: ten members of a catalog zone leave or come back each second, for a minute:\n  \
    dnsrig change 198.18.0.1 --catalog catalog.example --members /tmp/zones-10k/zones.list \\\n    \
    --changes-per-s 10 --duration 60s --out changes.arrow")]
pub struct Arguments {
    /// The primary: an IP address and perhaps a port, such as 198.18.0.1 or 127.0.0.1:5300
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub primary: SocketAddr,
    /// Change the members of this catalog zone
    #[arg(
        long,
        value_name = "NAME",
        requires = "members",
        conflicts_with = "zones",
        required_unless_present = "zones"
    )]
    pub catalog: Option<String>,
    /// All members of the catalog, one a line, as in the zones.list that `dnsrig generate` made with it
    #[arg(long, value_name = "FILE", requires = "catalog")]
    pub members: Option<PathBuf>,
    /// Leave alone the members before this one, counted from 0, so that they can be asked for meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, requires = "catalog")]
    pub first_member: u32,
    /// So many members are missing at a time; at most half of those that may change
    #[arg(long, value_name = "N", default_value_t = 100, requires = "catalog", value_parser = clap::value_parser!(u32).range(1..))]
    pub absent: u32,
    /// Change these zones, one a line; what stands behind a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE")]
    pub zones: Option<PathBuf>,
    /// Changes a second [aliases: --members-changed-per-s]
    #[arg(long, value_name = "RATE", alias = "members-changed-per-s", value_parser = parse_changes_per_s)]
    pub changes_per_s: f64,
    /// For how long changes are due; those that had to wait are still sent for --timeout after that
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Changes that may wait for an answer at a time; what is due meanwhile is sent later
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub window: u32,
    /// Give up a change that has no answer after this long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Sign updates with this key
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    pub tsig: Option<String>,
    /// Write a row for each change to this file (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Confirm that this address is yours to change; not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48
    /// where packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
}

/// These changes cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
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
            ChangeError::Name(_) => "give the name as in the catalog's zone file, such as catalog.example".into(),
            ChangeError::Members { .. } => "lower --first-member, or take a catalog with more members".into(),
            ChangeError::TooMany | ChangeError::TooFast => "lower --changes-per-s or --duration".into(),
            ChangeError::TooLong(error) => error.hint(),
        }
    }

    fn exit_code(&self) -> u8 {
        2
    }
}
