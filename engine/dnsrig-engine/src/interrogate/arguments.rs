//! The command line of `interrogate`.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use dnsrig_core::{
    failure::Failure,
    target::{self, Endpoint},
};
use dnsrig_dns::tsig::sign::parse_key;
use dnsrig_net::tls::{DOQ, DOT, arguments::TlsArguments};

use super::server::Server;
use crate::dataset::zone_list::ZoneArguments;

/// The number of TLS sessions that are kept, to be resumed by checks that do not look at them.
const SESSIONS_MAX: usize = 4;

/// Ask a primary which features of zone transfer it supports, and print a table.
///
/// It takes less than a minute. It asks for at most 300 of the zones (the first, the last, and others between; up to 64
/// MB of them, and up to 8 MB of one zone), sends up to 200 transfers in one write, and opens up to 64 connections at a
/// time. Give it a large zone (128 kB or more) and some small ones, and --tsig if the primary has a key.
///
/// The table goes to standard error. Into a pipe, a summary goes too (JSON).
///
/// Exit codes: 0 the primary was asked, 1 otherwise, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    dnsrig interrogate 198.18.0.2 --zone-list zones.list --tsig hmac-sha256:transfer:c2VjcmV0 --out answers.json")]
pub struct Arguments {
    /// Primary to ask: an IP address and optionally a port [default port: 53]
    #[arg(value_name = "PRIMARY[:PORT]", value_parser = target::parse_endpoint)]
    pub primary: Endpoint,
    /// Port for zone transfer over TLS and over QUIC
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub xot_port: u16,
    /// TSIG key that queries for transfers are signed with and all answers are checked with (RFC 8945): the algorithm
    /// (hmac-sha256, -sha512 …), then the name, then the secret in base64
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    pub tsig: Option<String>,
    /// File for the summary (JSON)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    pub json: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
    #[command(flatten)]
    pub zones: ZoneArguments,
    #[command(flatten)]
    pub tls: TlsArguments,
}

impl Arguments {
    /// The server to ask, with its key.
    pub fn server(&self) -> Result<Server, Failure> {
        let signer = self.tsig.as_deref().map(parse_key).transpose()?;
        let make = self.tls.clients(self.primary.address, DOT, false, SESSIONS_MAX)?;
        Ok(Server {
            tcp: self.primary.or_port(target::DNS_PORT),
            xot: (self.primary.address, self.xot_port).into(),
            signer,
            tls: make()?,
            quic: Arc::new(self.tls.settings(DOQ)?),
        })
    }
}
