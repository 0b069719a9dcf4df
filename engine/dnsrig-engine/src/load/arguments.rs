//! The command line of `load`.

use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use clap::ValueEnum as _;
use dnsrig_core::{
    failure::Failure,
    target::{self, Authority, Endpoint},
    units::{MINUTE, duration, nanoseconds, parse_number},
};
use dnsrig_net::{
    connection::Close,
    http2::{Method, Path, Requests},
    prefix::{self, Prefix},
    quic::Congestion,
    tls::arguments::{TlsArguments, Verify},
    udp_batch::BATCH_MAX,
};

use super::{
    announced::Announced,
    arrivals::{Model, Period},
    client_queries::{PLACES_MIN, PLACES_MIN_HELD, TABLE_MAX, rest_ns_min, table_for},
    expect::Expect,
    hold::{HELD_MAX, HeldAs, HoldArguments},
    queries::QueryArguments,
    ramp::{RampLimits, RampSettings},
    record::{ROWS_MAX, Rows},
    refused,
    segment::{self, Part, Segment},
};

/// The rate if no option names one, in queries per second.
const RATE_DEFAULT_QPS: f64 = 1_000.0;

/// The highest rate that a ramp tries if no option names one.
const RAMP_MAX_QPS: f64 = 1e7;

/// The most queries per second on a foreign target that the user vouches for, unless --rate or --ramp-max
/// names another rate.
pub const RATE_VOUCHED_QPS: f64 = 100.0;

/// Queries in a row from one client over UDP, where each is a packet of its own anyway.
const BURST_UDP: usize = 16;

/// The durations that sending and intervals can have.
pub const DURATIONS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(86_400);

/// The times for which a query can wait for its answer.
pub const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=MINUTE;

/// The number of intervals that can be open at a time. Each takes about a megabyte for each thread.
const OPEN_INTERVALS_MAX: i64 = 100;

/// How queries travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    #[default]
    Udp,
    Tcp,
    /// DNS over TLS (RFC 7858)
    Dot,
    /// DNS over HTTPS (RFC 8484), over HTTP/2
    Doh,
    /// DNS over QUIC (RFC 9250)
    Doq,
}

impl TransportKind {
    /// The port of a server where none is named (RFC 1035 §4.2, RFC 7858 §3.1, RFC 8484 §4.1, RFC 9250 §4.1.1).
    fn port(self) -> u16 {
        match self {
            TransportKind::Udp | TransportKind::Tcp => 53,
            TransportKind::Dot | TransportKind::Doq => 853,
            TransportKind::Doh => 443,
        }
    }

    /// Whether connections have TLS, or QUIC, which contains it.
    fn has_tls(self) -> bool {
        matches!(self, TransportKind::Dot | TransportKind::Doh | TransportKind::Doq)
    }
}

/// Whether large buffers are cut into datagrams by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Segmentation {
    Auto,
    Off,
}

/// Send queries to a server and measure the answers: how many, how fast, which not.
///
/// There are three ways to decide when a query is sent. --rate sends at a fixed rate, whatever the server does, which
/// is most like many independent clients. --outstanding keeps a number of queries unanswered, and so sends as fast as
/// the server answers. --ramp searches for the highest rate that the server holds.
///
/// Every latency counts from the moment when the query was due, so that a server that stalls also pays for the queries
/// that it delayed. The output also has the time from sending, how late the sending was, and a lower bound
/// for the server alone: the shortest time that it would have taken if no query had been sent late. A query without an
/// answer counts with the time of --timeout.
///
/// RD is not set unless you ask for it: use --recursion-desired for a resolver, and leave it out for an authoritative
/// server.
///
/// On a terminal, `load` shows progress and a summary for people. Into a pipe, it writes JSON lines: one for each
/// interval, and a summary. --out keeps histograms of every interval, with the tags due, sent, lower, lag and
/// handshake.
///
/// Exit codes: 0 the measurement finished, even if the server never answered; 130 interrupted, 2 bad input, 1 other
/// errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dnsrig load 127.0.0.1 --queries queries.txt --rate 20000\n  \
    dnsrig load 198.18.0.2 --zone-list zones.list --outstanding 100 --duration 5s\n  \
    dnsrig load 198.18.0.2 --zone-list zones.list --ramp --transport tcp --clients 64\n\
    A query file has one query per line, a name and a type: `www.example.com A` (dnsperf's format).")]
pub struct Arguments {
    /// Server to load: an IP address and optionally a port [default port: 53; 853 with --transport dot or doq, 443 with
    /// doh]
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse_endpoint)]
    server: Endpoint,
    /// Transport of the queries
    #[arg(long, value_enum, default_value = "udp")]
    pub transport: TransportKind,

    #[command(flatten)]
    pub queries: QueryArguments,

    /// Queries per second, whatever the server does [default: 1000; 100 with --i-am-authorized]
    #[arg(long, value_name = "QPS", value_parser = parse_rate, conflicts_with_all = ["outstanding", "ramp"], help_heading = "When")]
    pub rate: Option<f64>,
    /// With --rate: send at random moments (a Poisson process) instead of regular ones
    #[arg(long, conflicts_with_all = ["outstanding", "ramp"], help_heading = "When")]
    pub poisson: bool,
    /// Number of queries to keep outstanding. The next query is sent when one is answered or given up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "ramp", help_heading = "When")]
    pub outstanding: Option<u32>,
    /// Search for the highest rate that holds
    #[arg(long, help_heading = "When")]
    pub ramp: bool,
    /// With --rate: end after each query of --queries was sent this often, if that is before the end of --duration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["zones", "poisson", "outstanding", "ramp"], help_heading = "When")]
    pub passes: Option<u32>,
    /// Duration of the sending. With --ramp: at each rate
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration(DURATIONS), help_heading = "When")]
    pub duration: Duration,
    #[command(flatten)]
    pub hold: HoldArguments,
    /// Time after which a query without an answer is given up
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration(TIMEOUTS), help_heading = "When")]
    pub timeout: Duration,

    /// First rate to try, in queries per second
    #[arg(long, value_name = "QPS", default_value = "2000", value_parser = parse_rate, requires = "ramp", help_heading = "Ramp")]
    pub ramp_start: f64,
    /// Highest rate to try, in queries per second [default: 10000000; 100 with --i-am-authorized]
    #[arg(long, value_name = "QPS", value_parser = parse_rate, requires = "ramp", help_heading = "Ramp")]
    pub ramp_max: Option<f64>,
    /// Highest share of unanswered queries, in percent, at which a rate holds
    #[arg(long, value_name = "PERCENT", default_value = "0.1", value_parser = parse_percent, requires = "ramp", help_heading = "Ramp")]
    pub ramp_loss: f64,
    /// Highest latency, at --ramp-percentile, at which a rate holds
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration(Duration::from_micros(1)..=MINUTE), requires = "ramp", help_heading = "Ramp")]
    pub ramp_latency: Duration,
    /// Percentile of the latency that --ramp-latency limits
    #[arg(long, value_name = "P", default_value = "99", value_parser = parse_percent, requires = "ramp", help_heading = "Ramp")]
    pub ramp_percentile: f64,
    /// Number of times that each rate is tried, an odd number. The majority decides
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_repeats, requires = "ramp", help_heading = "Ramp")]
    pub ramp_repeats: u32,
    /// Precision of the capacity at which the search ends, in percent
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_percent, requires = "ramp", help_heading = "Ramp")]
    pub ramp_precision: f64,

    /// What each answer must be: `noerror-nonempty` for NOERROR with a record in the answer section, or a file
    ///
    /// Each line of the file is about the answers to a name and a type, and ends with an rcode (`www.example A
    /// NXDOMAIN`), with NODATA, or with the data of one record as in a zone file (`www.example A 192.0.2.1`). Several
    /// lines make an RRset; name each of its records once. Lines that begin with # are comments. Order, TTL and case of
    /// letters do not matter. A wrong answer is counted by kind, and its query is recorded with the latency of a
    /// timeout. Queries without a line are counted and not judged.
    #[arg(long, value_name = "noerror-nonempty|FILE", help_heading = "Queries")]
    pub expect: Option<Expect>,

    /// Number of clients: each has its own socket or connection [default: 16; more if there are more --source
    /// addresses, or if a server that answers nothing would leave too few message ids at that rate]. At most 65,536, or
    /// a million with --hold
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=HELD_MAX), help_heading = "Clients")]
    pub clients: Option<u32>,
    /// Address of this host that clients send from. May be repeated; the addresses are used in turn
    #[arg(long = "source", value_name = "ADDRESS", help_heading = "Clients")]
    pub sources: Vec<IpAddr>,
    /// Announce an address and a port of each client with the PROXY protocol, version 2: before each query over UDP,
    /// and at the start of each connection over TCP, DoT and DoH. The server must be set up for it
    #[arg(long, help_heading = "Clients")]
    pub proxy_protocol: bool,
    /// Prefix from which --proxy-protocol announces an address for each client [default: 192.0.2.0/24 or 2001:db8::/32]
    #[arg(long, value_name = "PREFIX", value_parser = prefix::parse, requires = "proxy_protocol", help_heading = "Clients")]
    announce_from: Option<Prefix>,
    /// Highest number of queries in a row from one client [default: 16 over UDP; 1 over the others, where queries
    /// in a row share packets and so cost both sides less than queries of independent clients]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Clients")]
    burst: Option<u32>,
    /// Over DoH: method of the requests
    #[arg(long, value_enum, default_value = "post", help_heading = "HTTP")]
    pub doh_method: Method,
    /// Over DoH: path of the server's URI template
    #[arg(long, value_name = "PATH", default_value = Path::DEFAULT, value_parser = Path::parse, help_heading = "HTTP")]
    pub doh_path: Path,
    #[command(flatten)]
    pub tls: TlsArguments,

    /// Over all but UDP: number of queries after which a connection is closed and a new one opened, or 0 for never
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Clients")]
    pub queries_per_connection: u32,
    /// Over DoT, DoH and DoQ: do a full handshake for every connection, and resume no session
    #[arg(long, help_heading = "Clients")]
    pub no_resumption: bool,
    /// Over DoT, DoH and DoQ: send queries with the first flight of a resumed session (0-RTT), if the server permits
    /// it. Over DoH it needs --doh-method get (RFC 8470)
    #[arg(long, conflicts_with = "no_resumption", help_heading = "Clients")]
    pub early_data: bool,
    /// Over DoQ: how fast a connection sends, and how it reacts to loss [default: cubic]
    #[arg(long, value_enum, value_name = "NAME", help_heading = "Clients")]
    congestion: Option<Congestion>,
    /// Over TCP, DoT and DoH: how a connection is closed [default: rst]
    #[arg(long, value_enum, help_heading = "Clients")]
    close: Option<Close>,

    /// Number of threads, each on its own CPU if there are enough. Clients and rate are shared among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Instrument")]
    pub threads: u32,
    /// Over UDP: whether the kernel cuts large buffers into datagrams (UDP_SEGMENT), which costs less CPU time
    #[arg(long, value_enum, default_value = "auto", help_heading = "Instrument")]
    pub segmentation: Segmentation,
    /// Existing folder for latency.hlog, intervals.arrow, clients.arrow, answers.arrow and summary.json
    #[arg(long, value_name = "DIR", conflicts_with = "ramp", help_heading = "Instrument")]
    pub out: Option<PathBuf>,
    /// Read or make the queries, print what they are, and send nothing
    #[arg(long, help_heading = "Instrument")]
    pub dry_run: bool,
    #[command(flatten)]
    pub instrument: Instrument,
}

/// How the instrument works, whatever it sends.
#[derive(Debug, clap::Args)]
pub struct Instrument {
    /// Run before every other program on the CPU (SCHED_FIFO; needs root), while the rate leaves time to sleep between
    /// queries
    #[arg(long, help_heading = "Instrument")]
    pub real_time: bool,
    /// Position of this generator among N that share one schedule, each on its own machine. Rate, clients, outstanding
    /// queries or the stream count for all together. Give all generators the same options; only --threads may differ
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = segment::parse, help_heading = "Several generators")]
    pub segment: Segment,
    /// Start when a line on standard input says when: `load` prints `ready`, then waits for {"start_ns": T}, a time of
    /// CLOCK_MONOTONIC of this machine, at most 60 s ahead. With --ramp, the first generator leads the others
    /// (docs/how-to/load.md)
    #[arg(long, help_heading = "Several generators")]
    pub led: bool,
    /// Length of an interval. Histograms and progress are kept for each interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration(DURATIONS), help_heading = "Instrument")]
    pub interval: Duration,
    /// Highest number of queries to write one by one to queries.arrow in the folder of --out. A row takes 48 bytes of
    /// memory, and the rows are shared evenly among threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX), requires = "out", help_heading = "Instrument")]
    rows: Option<u64>,
    /// Print JSON lines even on a terminal
    #[arg(long, help_heading = "Instrument")]
    pub json: bool,
    /// Stop when standard input ends
    #[arg(long, help_heading = "Instrument")]
    pub until_eof: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS", help_heading = "Instrument")]
    pub i_am_authorized: Option<IpAddr>,
}

impl Instrument {
    /// Rows for the queries of a thread, if they are wanted. Its first client has the number `first_client`.
    pub fn rows(&self, part: Part, first_client: u32) -> Option<Rows> {
        let alone = Part { segment: Segment::default(), ..part };
        self.rows.map(|most| Rows::new(alone.share(most as usize), first_client))
    }
}

/// The most clients of a run, unless they hold their connections and ask seldom.
pub const CLIENTS_MAX: i64 = 65_536;

/// The clients of one generator.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The number of clients of each thread.
    pub of_threads: Vec<usize>,
    /// The number of the first client, counted over all generators.
    pub first: u32,
    /// The number of places in the table of each client.
    pub table: usize,
}

/// What the arguments ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    Once(Model),
    Ramp(RampLimits, RampSettings),
}

impl Arguments {
    /// The server, on the port of the transport unless another was named.
    pub fn server(&self) -> SocketAddr {
        self.server.or_port(self.transport.port())
    }

    /// What requests of DNS over HTTPS look like. The server's name is the one that its certificate is for.
    pub fn requests(&self) -> Requests {
        requests(self.server(), self.tls.server_name.clone(), self.doh_method, &self.doh_path)
    }

    /// The congestion control of this side's connections, over QUIC.
    pub fn congestion(&self) -> Option<Congestion> {
        (self.transport == TransportKind::Doq).then(|| self.congestion.unwrap_or_default())
    }

    /// The highest number of queries in a row from one client.
    pub fn burst(&self) -> usize {
        let default = match (self.transport, self.clients) {
            (TransportKind::Udp, Some(1)) => BATCH_MAX,
            (TransportKind::Udp, _) => BURST_UDP,
            _ => 1,
        };
        self.burst.map_or(default, |burst| burst as usize)
    }

    /// What is to be done. A foreign target is loaded gently unless the user names a rate.
    pub fn plan(&self, authority: Authority) -> Result<Plan, Failure> {
        let vouched = authority == Authority::Vouched;
        if self.ramp {
            let max_qps = self.ramp_max.unwrap_or(if vouched { RATE_VOUCHED_QPS } else { RAMP_MAX_QPS });
            let limits = RampLimits {
                loss_share: self.ramp_loss / 100.0,
                percentile: self.ramp_percentile,
                latency_ns: self.ramp_latency.as_nanos() as u64,
            };
            let settings = RampSettings {
                start_qps: self.ramp_start,
                max_qps,
                precision: self.ramp_precision / 100.0,
                repeats: self.ramp_repeats,
            };
            return Ok(Plan::Ramp(limits, settings));
        }
        if let (Some(every), Some(clients)) = (self.hold.hold, self.clients) {
            return Ok(Plan::Once(Model::Rate { qps: f64::from(clients) / every.as_secs_f64(), poisson: false }));
        }
        match self.outstanding {
            Some(_) if vouched => Err(refused(
                "--outstanding loads a server as fast as it answers: for a server outside the rig, give a --rate"
                    .into(),
            )),
            Some(count) => Ok(Plan::Once(Model::Outstanding(count as usize))),
            None => {
                let default_qps = if vouched { RATE_VOUCHED_QPS } else { RATE_DEFAULT_QPS };
                Ok(Plan::Once(Model::Rate { qps: self.rate.unwrap_or(default_qps), poisson: self.poisson }))
            }
        }
    }

    /// The time for which queries are sent, if there are `queries` in their order. It is shorter than the duration
    /// that is asked for if --passes ends the load before.
    pub fn sending_time(&self, model: Model, queries: usize) -> Duration {
        match (self.passes, model) {
            (Some(passes), Model::Rate { qps, .. }) => {
                // The first query that is not sent would be due then.
                let all_ns = f64::from(passes) * queries as f64 * 1e9 / qps;
                self.duration.min(Duration::from_nanos(all_ns as u64))
            }
            _ => self.duration,
        }
    }

    /// The period that begins at `start_ns`, with the duration that is asked for.
    pub fn period(&self, model: Model, start_ns: i64) -> Period {
        Period { model, start_ns, end_ns: start_ns + nanoseconds(self.duration), seed: self.queries.seed }
    }

    /// The clients of this generator. If there are several generators, each has its share.
    pub fn clients(&self, plan: Plan) -> Result<Clients, Failure> {
        let (timeout_s, rest_s) = (self.timeout.as_secs_f64(), rest_ns_min(nanoseconds(self.timeout)) as f64 / 1e9);
        let is_held = self.hold.hold.is_some();
        let (outstanding, ids) = match plan {
            // Each has one query at a time, unless queries wait for longer than until the next one.
            Plan::Once(Model::Rate { qps, .. }) if is_held => (qps * timeout_s, 0.0),
            Plan::Once(Model::Outstanding(count)) => (count as f64, count as f64 * 2.0),
            Plan::Once(Model::Rate { qps, .. } | Model::Captured { qps }) => (qps * timeout_s, qps * rest_s),
            // A ramp goes beyond what the server holds, but ends a rate as soon as tables are full.
            Plan::Ramp(_, RampSettings { max_qps, .. }) => (max_qps.min(1e6) * timeout_s, max_qps.min(1e6) * rest_s),
        };
        let threads = self.threads as usize;
        // Enough for a server that answers nothing.
        let fitting = (ids / TABLE_MAX as f64).ceil() as usize;
        let part = |thread| Part { thread, threads, segment: self.instrument.segment };
        let parts = part(0).count();
        // Each generator has its own addresses.
        let sources = self.sources.len() * self.instrument.segment.of as usize;
        let clients = self.clients.map_or(fitting.max(16).max(sources).max(parts), |clients| clients as usize);
        let too_few = |what| Err(refused(format!("{clients} clients are too few for {what}")));
        if clients < parts {
            return too_few(format!("--threads: use --clients {parts} or more, so that each thread has one"));
        }
        if clients < sources {
            return too_few(format!(
                "the addresses of --source: use --clients {sources} or more, or leave addresses out"
            ));
        }
        let places_min = if is_held { PLACES_MIN_HELD } else { PLACES_MIN };
        let table = table_for(outstanding, clients, places_min).ok_or_else(|| {
            refused(format!(
                "{clients} clients have too few message ids for {outstanding:.0} queries at a time: use --clients {} or more",
                fitting.max(clients + 1)
            ))
        })?;
        let first = part(0).before(clients) as u32;
        Ok(Clients { of_threads: (0..threads).map(|thread| part(thread).share(clients)).collect(), first, table })
    }

    /// The clients that are announced to the server: `clients` together with the clients of the generators before
    /// this one.
    pub fn announced(&self, clients: u64) -> Result<Option<Announced>, Failure> {
        let all = Segment::default();
        let announced = || Announced::from_prefix(self.server(), self.announce_from, clients, all, "--announce-from");
        self.proxy_protocol.then(announced).transpose()
    }

    /// How a connection is closed.
    pub fn close(&self) -> Close {
        self.close.unwrap_or(Close::Rst)
    }

    /// The addresses of a thread's clients, of which the first has the number `first` on this generator. Empty: any
    /// address.
    pub fn sources_of(&self, first: usize, clients: usize) -> Vec<IpAddr> {
        self.sources.iter().copied().cycle().skip(first % self.sources.len().max(1)).take(clients).collect()
    }

    /// An option that has no effect on this transport.
    fn idle_option(&self) -> Option<&'static str> {
        let (over_udp, over_tls) = (self.transport == TransportKind::Udp, self.transport.has_tls());
        let over_doq = self.transport == TransportKind::Doq;
        [
            ("--hold", over_udp && self.hold.hold.is_some()),
            ("--held-as", over_doq && self.hold.held_as != HeldAs::Idle),
            ("--queries-per-connection", over_udp && self.queries_per_connection > 0),
            ("--close", (over_udp || over_doq) && self.close.is_some()),
            ("--no-resumption", !over_tls && self.no_resumption),
            ("--early-data", !over_tls && self.early_data),
            ("--proxy-protocol", over_doq && self.proxy_protocol),
            ("--congestion", !over_doq && self.congestion.is_some()),
            ("--verify", !over_tls && self.tls.verify != Verify::None),
            ("--certificate", !over_tls && self.tls.certificate.is_some()),
            ("--server-name", !over_tls && self.tls.server_name.is_some()),
            ("--doh-method", self.transport != TransportKind::Doh && self.doh_method != Method::default()),
            ("--doh-path", self.transport != TransportKind::Doh && self.doh_path != Path::default()),
            ("--segmentation off", !over_udp && self.segmentation == Segmentation::Off),
        ]
        .into_iter()
        .find_map(|(option, is_idle)| is_idle.then_some(option))
    }

    /// Checks that the arguments fit together.
    pub fn check(&self) -> Result<(), Failure> {
        check_intervals(self.timeout, self.instrument.interval)?;
        let Instrument { until_eof, led, segment, .. } = self.instrument;
        let wrong = |text: &str| Err(refused(text.into()));
        if self.queries.reads_standard_input() && (until_eof || led) {
            return wrong(
                "--until-eof and --led read standard input, so queries cannot come from it: give --queries a file",
            );
        }
        if self.hold.hold.is_none() && self.clients.is_some_and(|clients| i64::from(clients) > CLIENTS_MAX) {
            return Err(refused(format!("more than {CLIENTS_MAX} clients need --hold: add it, or lower --clients")));
        }
        if self.hold.held_as == HeldAs::HalfOpen && self.queries_per_connection > 0 {
            return wrong("--held-as half-open asks nothing: leave out --queries-per-connection");
        }
        if self.ramp && !led && segment.of > 1 {
            return wrong(
                "--ramp with several generators needs --led: add it, and the first generator leads the others",
            );
        }
        if self.ramp && self.ramp_max.is_some_and(|max_qps| max_qps < self.ramp_start) {
            return wrong("--ramp-max is below --ramp-start: raise it, or lower --ramp-start");
        }
        if self.early_data && self.transport == TransportKind::Doh && self.doh_method == Method::Post {
            return wrong(
                "--early-data permits only requests that are safe to repeat (RFC 8470): add --doh-method get",
            );
        }
        if let Some(option) = self.idle_option() {
            return Err(refused(format!(
                "{option} has no effect with --transport {}: leave it out",
                self.transport.to_possible_value().expect("no transport is hidden").get_name()
            )));
        }
        if let Some(source) = self.sources.iter().find(|source| source.is_ipv4() != self.server.address.is_ipv4()) {
            let server = self.server.address;
            return Err(refused(format!(
                "--source {source} and {server} are of different address families: give addresses of the server's family"
            )));
        }
        Ok(())
    }
}

/// Requests of DNS over HTTPS to a server, which is known by its address if it has no name.
pub fn requests(server: SocketAddr, name: Option<String>, method: Method, path: &Path) -> Requests {
    let name = name.unwrap_or_else(|| match server.ip() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    });
    let is_usual = server.port() == TransportKind::Doh.port();
    Requests::new(method, if is_usual { name } else { format!("{name}:{}", server.port()) }, path)
}

/// Reads an odd number, so that there is a majority.
fn parse_repeats(text: &str) -> Result<u32, String> {
    let repeats = text.parse().ok().filter(|repeats: &u32| (1..=99).contains(repeats) && repeats % 2 == 1);
    repeats.ok_or_else(|| "give an odd number from 1 to 99, so that there is a majority".into())
}

/// Checks that there is memory for the intervals that are open at a time.
pub fn check_intervals(timeout: Duration, interval: Duration) -> Result<(), Failure> {
    if nanoseconds(timeout) / nanoseconds(interval).max(1) <= OPEN_INTERVALS_MAX {
        return Ok(());
    }
    Err(refused(format!(
        "--timeout spans more than {OPEN_INTERVALS_MAX} intervals: raise --interval or lower --timeout"
    )))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    parse_number(text, 0.01..=1e8, "queries per second")
}

fn parse_percent(text: &str) -> Result<f64, String> {
    parse_number(text, 0.000_1..=100.0, "a percentage")
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
