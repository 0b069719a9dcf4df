//! The command line of `generate clients`. Each default has its source.

use std::{collections::BTreeSet, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::{ArgMatches, Command, parser::ValueSource, value_parser};
use dnsrig_core::units::{duration, parse_delay, parse_number, parse_share};
use dnsrig_dns::edns::UDP_PAYLOAD_BYTES_MIN;
use domain::base::iana::Rtype;

/// The most clients.
pub const CLIENTS_MAX: u32 = 10_000_000;

/// How long a stream can be.
const DURATIONS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10_000_000);

/// Make a stream of queries from a simulated population of clients, if you have no capture.
///
/// The stream has the format of `replay prepare`: `replay describe` shows it, and `replay play` sends it. Clients open
/// pages, which are bursts of queries, and ask single questions. Each client has its own rate. The names come from a
/// table, in which some are popular; others are asked for once and lie below a name of the table; others do not exist:
/// their first label ends with `-nx`, or they are the reverse name of an address in 10.0.0.0/8. The same arguments
/// always give the same bytes.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example: ten minutes with 9,000 queries per second, and the names for a server:\n  \
    dnsrig generate clients --clients 100000 --qps 9000 --duration 600s \\\n    \
    --out clients.stream --names-out names\n  \
    dnsrig replay describe clients.stream\n\n\
    Example: clients of a TLD's servers. They are resolvers, and most set DO and leave RD out:\n  \
    dnsrig generate clients --clients 20000 --qps 5000 --duration 60s --out tld.stream \\\n    \
    --names tld/zones.list --types A=70,AAAA=20,DS=10 --edns-share 95% --do-share 80% --no-recursion-desired\n\n\
    Example: a population like the clients of a capture:\n  \
    dnsrig generate clients --like captured.stream --out population.stream")]
pub struct Arguments {
    #[command(flatten)]
    pub given: Given,
    /// Stream file to make. An existing file is replaced
    #[arg(long, value_name = "STREAM")]
    pub out: PathBuf,
    /// Seed of the random numbers. Another seed gives other clients and queries of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of clients. Clients that ask nothing in that time are not in the stream
    #[arg(long, value_name = "N", required_unless_present = "like",
          value_parser = value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub clients: Option<u32>,
    /// Average rate of all clients together, in queries per second
    #[arg(long, value_name = "QPS", required_unless_present = "like", value_parser = parse_qps)]
    pub qps: Option<f64>,
    /// Length of the stream
    #[arg(long, value_name = "TIME", required_unless_present = "like", value_parser = duration(DURATIONS))]
    pub duration: Option<Duration>,
    /// Stream to imitate: the population is fitted to half of its clients, and tested on the other half
    ///
    /// A table shows the fitted values. For each quantity of the other half, it shows the result and whether it is
    /// inside an interval (bootstrap over clients). What a stream cannot show keeps its default, and the table marks
    /// it. Options that you give are kept. No name of the stream is asked for unless --names contains it. --clients,
    /// --qps and --duration default to the values of the stream.
    #[arg(long, value_name = "STREAM")]
    pub like: Option<PathBuf>,
    #[command(flatten)]
    pub names: Names,
    #[command(flatten)]
    pub clients_habits: Habits,
    #[command(flatten)]
    pub messages: Messages,
    #[command(flatten)]
    pub sample: Sample,
}

/// How large a population is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub clients: u32,
    pub qps: f64,
    pub duration_s: f64,
}

impl Arguments {
    /// None where a part of it was not said.
    pub fn size(&self) -> Option<Size> {
        Some(Size { clients: self.clients?, qps: self.qps?, duration_s: self.duration?.as_secs_f64() })
    }
}

/// Which arguments were given, rather than taken from their defaults.
#[derive(Clone, Debug, Default)]
pub struct Given(BTreeSet<String>);

impl Given {
    /// Whether the one of this field was.
    pub fn has(&self, field: &str) -> bool {
        self.0.contains(field)
    }
}

// The fields that follow take their values out of the matches, so this one has to be the first.
impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Given(matches.ids().filter(is_given).map(ToString::to_string).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Names")]
pub struct Names {
    /// File with the names to ask for, one per line, optionally followed by a TAB and the TTL in seconds, and by a TAB
    /// and the types
    ///
    /// The zones.list of a dataset is such a table: for `generate tld` the delegations are asked for, for other
    /// datasets the zones. Write types as A,AAAA (see --no-data). TTLs do not change the stream; --names-out writes
    /// them.
    #[arg(long = "names", value_name = "TABLE")]
    pub table: Option<PathBuf>,
    /// Number of names to make up if there is no --names: the delegations that `generate tld` makes for that number and
    /// seed
    #[arg(long, value_name = "N", default_value_t = 1_000_000, conflicts_with = "table",
          value_parser = value_parser!(u32).range(1..=9_000_000))]
    pub names_count: u32,
    /// File for the table of names with TTLs, for setting up servers that have the names
    ///
    /// A name without a TTL gets one from a distribution with median 255 s and mean 9,780 s (kau.se, the pages of
    /// Alexa's list).
    #[arg(long, value_name = "FILE")]
    pub names_out: Option<PathBuf>,
    /// Exponent S of the popularity (Zipf): the name of rank k is asked for in proportion to 1 / k^S
    ///
    /// No trustworthy exponent is published. The default was fitted, see docs/explanation/population.md.
    #[arg(long, value_name = "S", default_value = "1.34", value_parser = parse_exponent)]
    pub exponent: f64,
    /// Share of the queries for names that exist and are asked for once: a random label below a name of the table
    ///
    /// The default was fitted, like the exponent.
    #[arg(long, value_name = "SHARE", default_value = "0.25%", value_parser = parse_share)]
    pub once: f64,
    /// Share of the queries for names that do not exist. On one BIND, 16.1 % of the answers were NXDOMAIN
    #[arg(long, value_name = "SHARE", default_value = "16.1%", value_parser = parse_share)]
    pub missing: f64,
    /// Share of the missing names that are random labels and asked for once
    ///
    /// The same BIND sent 0.130 upstream queries per query, and 29.9 % of these were answered with NXDOMAIN. That is
    /// 3.9 % of the clients' queries. It had the other missing names in its cache.
    #[arg(long, value_name = "SHARE", default_value = "23%", value_parser = parse_share)]
    pub missing_once: f64,
    /// Number of other missing names. No figure is published
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub missing_names: u32,
    /// Share of the questions that are kept although the table says that the name does not have the type
    ///
    /// The other such questions are for a type that the name has. On one BIND, 3.6 % of the answers had no data.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = parse_share)]
    pub no_data: f64,
}

/// How clients ask.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Clients")]
pub struct Habits {
    /// Inequality of the clients: the standard deviation of the logarithms of their rates, which are normally
    /// distributed
    ///
    /// With 1.55, one client in a hundred has ten times the rate that one in five has. Among the clients of resolvers,
    /// 80 % asked fewer than 10 queries, and 1 % more than 100 (documentation of DNS Shotgun).
    #[arg(long, value_name = "SIGMA", default_value = "1.55", value_parser = parse_deviation)]
    pub spread: f64,
    /// Share of the queries that belong to a page. The others come alone. No figure is published
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = parse_share)]
    pub page_share: f64,
    /// Median number of queries in a page. The pages of Alexa's list have a median of 10 and a mean of 12.2 (kau.se)
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_page)]
    pub page_median: f64,
    /// Mean number of queries in a page, at least the median
    #[arg(long, value_name = "N", default_value = "12.2", value_parser = parse_page)]
    pub page_mean: f64,
    /// Highest number of queries in a page (kau.se)
    #[arg(long, value_name = "N", default_value_t = 397, value_parser = value_parser!(u32).range(1..=10_000))]
    pub page_max: u32,
    /// Mean time between two queries of a page. No figure is published
    #[arg(long = "page-gap", value_name = "TIME", default_value = "100ms", value_parser = parse_gap_ms)]
    pub page_gap_ms: f64,
    /// Share of the queries that are sent again, flagged as retransmissions. On one BIND, 0.8 % were duplicates
    #[arg(long, value_name = "SHARE", default_value = "0.8%", value_parser = parse_share)]
    pub repeats: f64,
    /// Time after which a query is sent again. Stub resolvers wait from 1 s (Windows) to 5 s (glibc)
    #[arg(long = "repeat-after", value_name = "TIME", default_value = "1s", value_parser = parse_gap_ms)]
    pub repeat_after_ms: f64,
}

impl Habits {
    /// The deviation of the logarithms of the numbers of queries of pages.
    pub fn page_deviation(&self) -> f64 {
        (2.0 * (self.page_mean / self.page_median).ln()).max(0.0).sqrt()
    }

    /// The share of visits that are pages; the others are single questions.
    pub fn page_probability(&self) -> f64 {
        let pages_per_question = self.page_share / self.page_mean;
        pages_per_question / (pages_per_question + 1.0 - self.page_share)
    }
}

/// What queries are like.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Messages")]
pub struct Messages {
    /// Query types, and how often each is asked for. The default is from the clients of one BIND, before HTTPS records
    /// existed
    #[arg(long, value_name = "TYPE=WEIGHT,…", value_delimiter = ',', value_parser = parse_type,
          default_value = "A=87.9,AAAA=9.0,PTR=1.9,ANY=0.8,TXT=0.27,SRV=0.08")]
    pub types: Vec<(Rtype, f64)>,
    /// Share of the clients that use EDNS. On one BIND, 1.4 % of the queries did
    #[arg(long, value_name = "SHARE", default_value = "1.4%", value_parser = parse_share)]
    pub edns_share: f64,
    /// Share of the clients that set DO, at most --edns-share. On one PowerDNS, 0.5 % of the queries did
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = parse_share)]
    pub do_share: f64,
    /// UDP payload size in EDNS, in bytes (DNS Flag Day 2020)
    #[arg(long, value_name = "BYTES", default_value_t = 1232,
          value_parser = value_parser!(u16).range(i64::from(UDP_PAYLOAD_BYTES_MIN)..))]
    pub edns_bytes: u16,
    /// Share of the queries over TCP, each on its own connection. On one BIND, it was 0.012 %
    #[arg(long, value_name = "SHARE", default_value = "0.012%", value_parser = parse_share)]
    pub tcp_share: f64,
    /// Leave RD out, as resolvers do when they ask authoritative servers
    #[arg(long)]
    pub no_recursion_desired: bool,
}

/// What of the population is in the stream: all of it, unless a replay is to show what less of it changes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sample")]
pub struct Sample {
    /// Share of the clients to keep, with all their queries
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = parse_share)]
    pub keep_share: f64,
    /// Share of the queries to keep, from all clients. A replay of such a stream has another cache hit ratio
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = parse_share)]
    pub keep_queries: f64,
}

fn parse_qps(text: &str) -> Result<f64, String> {
    parse_number(text, 0.001..=1e7, "queries per second")
}

fn parse_exponent(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0..=5.0, "an exponent")
}

fn parse_deviation(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0..=5.0, "a deviation")
}

fn parse_page(text: &str) -> Result<f64, String> {
    parse_number(text, 1.0..=1000.0, "queries")
}

/// Reads a duration of at most a minute, as milliseconds.
fn parse_gap_ms(text: &str) -> Result<f64, String> {
    parse_delay(text).map(|gap_ns| gap_ns as f64 / 1e6)
}

/// Reads a type and its weight, such as `A=87.9`.
fn parse_type(text: &str) -> Result<(Rtype, f64), String> {
    let (name, weight) = text.split_once('=').ok_or("expected a type and its weight, such as A=87.9")?;
    let rtype = Rtype::from_bytes(name.as_bytes()).filter(|rtype| !matches!(*rtype, Rtype::AXFR | Rtype::IXFR));
    let rtype = rtype.ok_or_else(|| format!("`{name}` is no type of a query, such as A, HTTPS or TYPE65"))?;
    Ok((rtype, parse_number(weight, 0.0..=1e9, "a weight")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_a_weight() {
        assert_eq!(parse_type("HTTPS=2.5"), Ok((Rtype::HTTPS, 2.5)));
        for wrong in ["A", "A=", "A=-1", "=1", "AXFR=1", "NONSENSE=1"] {
            assert!(parse_type(wrong).is_err(), "{wrong}");
        }
    }
}
