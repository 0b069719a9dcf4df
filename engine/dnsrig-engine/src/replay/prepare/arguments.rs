//! The command line of `replay prepare`.

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::value_parser;
use dnsrig_core::units::{duration, nanoseconds, parse_number, parse_share};

use super::operations::parse_transport;
use crate::query_stream::Transport;

/// How long a stretch without a query can be.
const GAPS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(1_000_000_000);

/// Make a stream from captures: the queries of a server's clients, for a replay.
///
/// `replay prepare` reads captures of packets, keeps the queries to the server, sorts them by time, numbers the
/// clients, and writes a stream. The summary on standard output accounts for every packet. The addresses of clients are
/// stored only if you ask for them. Names, cookies and client subnets in the queries stay as they are unless you use
/// --anonymise.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Captures to read: pcap, pcapng, dnstap or C-DNS (RFC 8618), optionally compressed (gzip, xz, zstd, lz4). - is
    /// standard input
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<PathBuf>,
    /// Stream file to make. An existing file is replaced
    #[arg(long, value_name = "STREAM")]
    pub out: PathBuf,
    /// Address of the server whose queries are kept. May be repeated [default: the busiest among the first 100,000
    /// queries]
    #[arg(long = "server", value_name = "ADDRESS")]
    pub servers: Vec<IpAddr>,
    /// Port of the DNS server. May be repeated
    #[arg(long = "port", value_name = "PORT", default_values_t = [53])]
    pub ports: Vec<u16>,
    /// Approximate limit on memory, such as 512M or 4G. The rest is kept in files beside --out
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    pub memory: u64,
    /// Highest number of bytes to read from a compressed capture
    #[arg(long, value_name = "BYTES", default_value = "1T", value_parser = parse_bytes)]
    pub decompressed_max: u64,
    /// Store the addresses of the clients in the stream
    #[arg(long)]
    pub addresses: bool,
    /// Longest time without a query. Longer gaps are shortened to it: clocks jump, and captures of several days have
    /// gaps
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration(GAPS))]
    pub gap: Duration,
    /// Rewrite names label by label, client subnets, cookies and padding, so that the stream can be given away
    #[arg(long, conflicts_with = "addresses")]
    pub anonymise: bool,
    /// Keep the last label of names that have several labels
    #[arg(long, requires = "anonymise")]
    pub keep_tld: bool,
    /// Share of the clients to keep, with all their queries, such as 10%
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share, help_heading = OPERATIONS)]
    pub keep_share: f64,
    /// Time to keep, counted from the first query, such as 60s..120s
    #[arg(long, value_name = "FROM..TO", value_parser = parse_cut, help_heading = OPERATIONS)]
    pub cut: Option<(i64, i64)>,
    /// Factor by which the number of clients grows. Each new client asks what one of the others does, at another time
    /// of the stream
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1000), help_heading = OPERATIONS)]
    pub multiply: u16,
    /// Factor by which the time of the stream runs faster
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed, help_heading = OPERATIONS)]
    pub speed: f64,
    /// Share of the clients that ask over another transport, such as tcp=10%. May be repeated
    #[arg(long = "transport-share", alias = "transport", value_name = "NAME=SHARE", value_parser = parse_transport, help_heading = OPERATIONS)]
    pub transports: Vec<(Transport, f64)>,
    /// Share of the clients that use EDNS, such as 80%. EDNS with 1232 bytes of payload is added to their queries, and
    /// removed from the queries of the other clients
    #[arg(long = "edns-share", alias = "edns", value_name = "SHARE", value_parser = parse_share, help_heading = OPERATIONS)]
    pub edns: Option<f64>,
    /// Share of the clients that set DO, which needs EDNS. It is set in their queries, and cleared in all others
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = OPERATIONS)]
    pub do_share: Option<f64>,
    /// Seed of the random numbers. Another seed chooses other clients of the same kind
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = OPERATIONS)]
    pub seed: u64,
}

const OPERATIONS: &str = "Operations";

/// Reads a number of bytes such as `64M`, from 64 MiB to 1 TiB.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("K", 1u64 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1));
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let bytes = bytes.filter(|bytes| (64 << 20..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| "expected a number of bytes from 64M to 1T, such as 512M or 4G".into())
}

fn parse_speed(text: &str) -> Result<f64, String> {
    parse_number(text, 0.001..=1000.0, "a factor")
}

/// Reads a stretch of time such as `60..120`, in nanoseconds.
fn parse_cut(text: &str) -> Result<(i64, i64), String> {
    // A bare number is in seconds, as it always was here.
    let seconds = |text: &str| parse_number(text, 0.0..=1e9, "seconds").map(Duration::from_secs_f64);
    let time = |text: &str| duration(Duration::ZERO..=*GAPS.end())(text).or_else(|_| seconds(text)).map(nanoseconds);
    let (from, to) = text.split_once("..").ok_or("write a time from and a time to, such as 60s..120s")?;
    let (from_ns, to_ns) = (time(from)?, time(to)?);
    if from_ns < to_ns { Ok((from_ns, to_ns)) } else { Err("the end is not after the start: swap them".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_and_limits() {
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("2G"), Ok(2 << 30));
        assert_eq!(parse_bytes("100000000"), Ok(100_000_000));
        for wrong in ["", "G", "63M", "2T", "-1G", "18446744073709551615T", "1 G"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cut_has_a_begin_and_an_end() {
        assert_eq!(parse_cut("0.5..2"), Ok((500_000_000, 2_000_000_000)));
        assert_eq!(parse_cut("500ms..1m"), Ok((500_000_000, 60_000_000_000)));
        for wrong in ["", "1", "..", "2..1", "1..1", "-1..1", "1..NaN"] {
            assert!(parse_cut(wrong).is_err(), "{wrong}");
        }
    }
}
