//! The command line of `serve world`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::{
    net::prefix::Prefix,
    serve::shell,
    world::{labels::Labels, servers},
};

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    Ipv4,
    Ipv6,
}

/// Simulate a whole Internet: the root, the TLDs and all other zones, each on the addresses of its own servers.
///
/// A specification, which `generate world` writes, decides everything. A query is answered from the zone of the server
/// whose address was asked, so referrals are real. Route the networks of the servers to this host (`ip route add local
/// 198.18.64.0/18 dev lo`), and give resolvers the hints. Answers go over UDP (at most 1232 bytes) and TCP. Only zones
/// that the specification makes slow are slow: other delays belong to the path. Zones are signed as the specification
/// states. Signatures are made when they are asked for, or before that (--sign-ahead), and are kept.
///
/// DIR gets root.hints (the servers of the root), root.anchor (its key and DS), manifest.json, queries.arrow (queries
/// by second, level, type, response code, fault, DO, transport and family) and, at the end, not-in-world.arrow (names
/// that were asked for and do not exist in the world, except names that `generate clients` makes up as missing; at most
/// 10,000 per thread).
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `summary`. With --explain, the only
/// events are `explained`, one for each name. It ends on a signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with
/// --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a world on loopback, and a query:\n  \
    dnsrig generate world --zones 1000 --out world.toml\n  \
    dnsrig serve world world.toml --out world --ipv4 127.64.0.0/18 --family ipv4 --port 5300 &\n  \
    dig @127.64.0.1 -p 5300 . NS\n\n\
    Example: explain a name:\n  \
    dnsrig serve world world.toml --explain www.nic.com")]
pub struct Arguments {
    /// Specification, as `generate world` writes it
    #[arg(value_name = "SPEC")]
    pub specification: PathBuf,
    /// Folder for hints, manifest and rows. Existing files are replaced
    #[arg(long, value_name = "DIR", required_unless_present = "explain")]
    pub out: Option<PathBuf>,
    /// Network of the IPv4 addresses of the servers
    #[arg(long, value_name = "NETWORK", default_value = "198.18.64.0/18", value_parser = servers::parse_ipv4)]
    pub ipv4: Prefix,
    /// Network of the IPv6 addresses of the servers
    #[arg(long, value_name = "NETWORK", default_value = "2001:2:0:3::/64", value_parser = servers::parse_ipv6)]
    pub ipv6: Prefix,
    /// Address families to answer over
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ipv4,ipv6")]
    pub family: Vec<Family>,
    /// Port of all servers
    #[arg(long, value_name = "PORT", default_value_t = 53)]
    pub port: u16,
    /// Give the same question the same bytes as answer: nonces of ECDSA signatures then follow RFC 6979, and signing
    /// takes four times as long
    #[arg(long)]
    pub reproducible: bool,
    /// Memory for signatures that are kept, in MiB for all threads together. With 0, each signature is made anew
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub signature_cache_mib: usize,
    /// Stream for whose questions the signatures are made before the server answers
    #[arg(long, value_name = "STREAM")]
    pub sign_ahead: Option<PathBuf>,
    /// Names to explain, instead of serving
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = Labels::parse)]
    pub explain: Vec<Labels>,
    #[command(flatten)]
    pub shell: shell::options::Options,
}
