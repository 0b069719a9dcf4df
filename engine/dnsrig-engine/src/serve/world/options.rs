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

/// Be a whole Internet: the root, the TLDs and all other zones, each on its own servers' addresses.
///
/// Everything is a function of a specification, which `generate world` writes. A query is answered from the zone that
/// the server with the address asked has, so referrals are real: lead the networks of the servers to this host (`ip
/// route add local 198.18.64.0/18 dev lo`), and give resolvers the hints. Answers are over UDP (at most 1232 bytes) and
/// TCP. Nothing is slow but the zones that the specification wants so: delays belong to the path. Zones are signed as
/// it says; signatures are made when they are asked for, or before that (--sign-ahead), and kept.
///
/// DIR gets root.hints (the root's servers), root.anchor (its key and DS), manifest.json, queries.arrow (queries by
/// second, level, type, response code, fault, DO, transport and family) and, in the end, not-in-world.arrow (the names
/// that were asked for and that the world does not have, but for those that `generate clients` makes not to exist; at
/// most 10,000 a thread).
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `summary`; with --explain only
/// `explained`, one for each name. It ends by a signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with
/// --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a world on loopback, and what it is asked by:\n  \
    dnsrig generate world --zones 1000 --out world.toml\n  \
    dnsrig serve world world.toml --out world --ipv4 127.64.0.0/18 --family ipv4 --port 5300 &\n  \
    dig @127.64.0.1 -p 5300 . NS\n\n\
    Example: what becomes of a name:\n  \
    dnsrig serve world world.toml --explain www.nic.com")]
pub struct Arguments {
    /// The specification
    #[arg(value_name = "SPEC")]
    pub specification: PathBuf,
    /// The directory for hints, manifest and rows; files there are replaced
    #[arg(long, value_name = "DIR", required_unless_present = "explain")]
    pub out: Option<PathBuf>,
    /// The network of the servers' IPv4 addresses
    #[arg(long, value_name = "NETWORK", default_value = "198.18.64.0/18", value_parser = servers::parse_ipv4)]
    pub ipv4: Prefix,
    /// The network of the servers' IPv6 addresses
    #[arg(long, value_name = "NETWORK", default_value = "2001:2:0:3::/64", value_parser = servers::parse_ipv6)]
    pub ipv6: Prefix,
    /// Over which families to answer
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ipv4,ipv6")]
    pub family: Vec<Family>,
    /// The port of all servers
    #[arg(long, default_value_t = 53)]
    pub port: u16,
    /// Give the same question the same bytes as answer: ECDSA signatures have nonces of RFC 6979, and take four times
    /// as long
    #[arg(long)]
    pub reproducible: bool,
    /// The memory for signatures that are kept, of all threads together; 0 makes each anew
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub signature_cache_mib: usize,
    /// Before anybody can ask, make the signatures that a resolver is given for the questions of this stream
    #[arg(long, value_name = "STREAM")]
    pub sign_ahead: Option<PathBuf>,
    /// Say what these names are, and end
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = Labels::parse)]
    pub explain: Vec<Labels>,
    #[command(flatten)]
    pub shell: shell::options::Options,
}
