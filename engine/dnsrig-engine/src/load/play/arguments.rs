//! The command line of `replay play`.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use dnsrig_core::{
    failure::Failure,
    target::{self, Authority, Endpoint},
    units::{duration, nanoseconds, parse_number},
};
use dnsrig_net::{
    http2::{Method, Path, Requests},
    prefix::{self, Prefix},
};

use crate::{
    load::{
        announced::Announced,
        arguments::{DURATIONS, Instrument, RATE_VOUCHED_QPS, TIMEOUTS, check_intervals, requests},
        classes::{self, Class, TransportChoice},
        client_queries::{PLACES_MIN, TABLE_MAX, table_for},
        refused,
        segment::Segment,
    },
    query_stream::{Header, StreamReader, Transport},
};

/// The factor by which the number of outstanding queries can exceed its mean.
const PEAK: f64 = 4.0;

/// The choice of the port that a query is sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PortChoice {
    /// The next port for each query, as most clients do
    Fresh,
    /// The same port for all queries of a client
    Kept,
}

/// What happens to queries that clients had sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Retransmissions {
    /// Sent as they were, whether or not the server has answered by now
    AsCaptured,
    /// Left out
    Off,
}

/// Replay the queries of a stream against a server, each at its time and from its own client.
///
/// With --clients-from, each client of the stream keeps one source address throughout. This host must receive what is
/// sent to those addresses, which one command sets up: `ip route add local 198.19.0.0/16 dev lo`. On loopback nothing
/// is needed: 127.1.0.0/16. Clients share a pool of sockets, so that many clients need few sockets. Message ids are
/// new, because captured ids of clients that share a socket would collide.
///
/// Over TCP, DoT, DoH and DoQ, a client keeps its connection until it has been idle for a while. A query whose answer
/// over UDP is truncated is asked again over TCP, and its latency ends there; with --transport udp, it counts as
/// answered.
/// Latencies, lateness and files are as for `load`; clients.arrow has a row for each client.
///
/// For clients that connect in another way, define a class: --class gives a share of the clients their own settings,
/// and may be repeated. Hashes of the client numbers decide which clients are in a class. The settings are separated by
/// commas:
///
/// share=20%: share of the clients. Required.
///
/// transport=dot: as-captured, udp, tcp, dot, doh or doq.
///
/// idle=30s: time without a query after which a connection is closed.
///
/// reuse=no: each query has its own connection.
///
/// resumption=no: a full TLS handshake for every connection. Otherwise a client resumes its own sessions, as hosts do.
///
/// early-data=yes: over DoT and DoQ with a resumed session, queries are sent before the handshake is done (0-RTT, RFC
/// 8446 §2.3) if the ticket of the server permits it. What the server does not accept in this way is sent again after
/// the handshake.
///
/// What a class leaves out is as for all other clients: --transport and --idle-timeout apply, connections are reused,
/// sessions are resumed, and there is no early data. The summary reports each class.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dnsrig replay play clients.stream --server 127.0.0.1:5300 --clients-from 127.1.0.0/16\n  \
    dnsrig replay play clients.stream --server 198.18.0.2 --clients-from 198.19.0.0/16 --speed 2\n  \
    dnsrig replay play clients.stream --server 198.18.0.2 --clients-from 198.19.0.0/16 \\\n    \
    --class share=20%,transport=dot,idle=30s,early-data=yes --class share=5%,transport=tcp,reuse=no")]
pub struct Arguments {
    /// Stream to replay, as `replay prepare` writes it
    pub stream: PathBuf,
    /// Server to load: an IP address and optionally a port [default port: 53]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = target::parse_endpoint)]
    server: Endpoint,

    /// Transport of the queries
    #[arg(long, value_enum, default_value = "as-captured")]
    pub transport: TransportChoice,
    /// Port of the server for DNS over TLS
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    dot_port: u16,
    /// Port of the server for DNS over HTTPS
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    doh_port: u16,
    /// Port of the server for DNS over QUIC
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    doq_port: u16,
    /// Over DoH: method of the requests
    #[arg(long, value_enum, default_value = "post")]
    doh_method: Method,
    /// Over DoH: path of the server's URI template
    #[arg(long, value_name = "PATH", default_value = Path::DEFAULT, value_parser = Path::parse)]
    doh_path: Path,

    /// Speed of the replay: 2 is twice as fast as the stream [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed, help_heading = "When")]
    speed: Option<f64>,
    /// Highest duration of the sending [default: the whole stream]
    #[arg(long, value_name = "TIME", value_parser = duration(DURATIONS), help_heading = "When")]
    pub duration: Option<Duration>,
    /// Time after which a query without an answer is given up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration(TIMEOUTS), help_heading = "When")]
    pub timeout: Duration,
    /// What happens to queries that clients had sent again
    #[arg(long, value_enum, default_value = "as-captured", help_heading = "When")]
    pub retransmissions: Retransmissions,

    /// Prefix from which each client gets a source address [default: all send from the address of this host]
    #[arg(long, value_name = "PREFIX", value_parser = prefix::parse, help_heading = "Clients")]
    pub clients_from: Option<Prefix>,
    /// Announce the address of each client with the PROXY protocol, version 2, instead of sending from it. The
    /// addresses come from --clients-from, or else from the stream if it was prepared with --addresses, or else from
    /// 192.0.2.0/24 or 2001:db8::/32. The server must be set up for it
    #[arg(long, help_heading = "Clients")]
    pub proxy_protocol: bool,
    /// Number of UDP sockets that clients share, each with its own port
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384), help_heading = "Clients")]
    pub ports: u32,
    /// Choice of the port that a query is sent from
    #[arg(long = "source-port", alias = "port", value_enum, default_value = "fresh", help_heading = "Clients")]
    pub port: PortChoice,

    /// Highest number of connections that are open at a time, over TCP, DoT, DoH and DoQ each. One client more closes
    /// the connection that was used longest ago
    #[arg(long, value_name = "N", default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Clients")]
    pub connections: u32,
    /// Time without a query after which a connection is closed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration(DURATIONS), help_heading = "Clients")]
    pub idle_timeout: Duration,
    /// Settings for a share of the clients, such as share=20%,transport=dot,idle=30s. May be repeated
    #[arg(long = "class", value_name = "SETTINGS", value_parser = classes::parse, help_heading = "Clients")]
    classes: Vec<classes::ClassSettings>,
    /// Seed that decides which clients are in the classes
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Clients")]
    pub class_seed: u64,

    /// Number of threads, each on its own CPU if there are enough. Clients and ports are shared among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Instrument")]
    pub threads: u32,
    /// Existing folder for latency.hlog, intervals.arrow, clients.arrow, answers.arrow and summary.json
    #[arg(long, value_name = "DIR", help_heading = "Instrument")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub instrument: Instrument,
}

impl Arguments {
    /// The server, over UDP and TCP.
    pub fn server(&self) -> SocketAddr {
        self.server.or_port(53)
    }

    /// The server, on its port for a transport.
    pub fn server_over(&self, transport: Transport) -> SocketAddr {
        let port = match transport {
            Transport::Udp | Transport::Tcp => return self.server(),
            Transport::Dot => self.dot_port,
            Transport::Doh => self.doh_port,
            Transport::Doq => self.doq_port,
        };
        SocketAddr::new(self.server.address, port)
    }

    /// What requests of DNS over HTTPS look like.
    pub fn requests(&self) -> Requests {
        requests(self.server_over(Transport::Doh), None, self.doh_method, &self.doh_path)
    }

    /// The classes of clients. The first has the clients that no --class has.
    pub fn classes(&self) -> Result<Vec<Class>, Failure> {
        let rest = Class {
            share: 1.0,
            transport: self.transport,
            idle_timeout_s: self.idle_timeout.as_secs_f64(),
            reuse: true,
            resumption: true,
            early_data: false,
        };
        classes::with_rest(&self.classes, &rest)
    }

    /// The prefix of the addresses that clients send from.
    pub fn source_prefix(&self) -> Option<Prefix> {
        self.clients_from.filter(|_| !self.proxy_protocol)
    }

    /// The clients that are announced to the server.
    pub fn announced(&self, header: &Header) -> Result<Option<Announced>, Failure> {
        if !self.proxy_protocol {
            return Ok(None);
        }
        if self.clients_from.is_some() || header.addresses_at == 0 {
            // A generator has the prefix that it was given for itself, and shares the default one with the others.
            let segment = self.clients_from.map_or_else(Segment::default, |_| self.instrument.segment);
            let (server, clients) = (self.server(), segment.clients(header.clients));
            let announced = Announced::from_prefix(server, self.clients_from, clients, segment, "--clients-from");
            return announced.map(Some);
        }
        let stream = StreamReader::open(&self.stream)?;
        let address = |client| -> Result<IpAddr, Failure> {
            Ok(stream.address(client)?.expect("the stream has it").to_canonical())
        };
        let addresses = (0..header.clients as u32).map(address).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Announced::listed(self.server(), addresses)))
    }

    /// The factor by which the replay is faster than the stream.
    pub fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    /// The duration of the sending, in nanoseconds.
    pub fn sending_ns(&self, header: &Header) -> i64 {
        let whole_ns = (header.duration_ns as f64 / self.speed()) as i64;
        // The last query is due at the very end.
        let whole_ns = whole_ns.saturating_add(1);
        self.duration.map_or(whole_ns, |longest| whole_ns.min(nanoseconds(longest)))
    }

    /// The average number of queries per second.
    pub fn mean_qps(&self, header: &Header) -> f64 {
        let duration_s = header.duration_ns as f64 / 1e9 / self.speed();
        header.queries as f64 / duration_s.max(1.0)
    }

    /// The number of sockets of one thread, and the number of places in the table of each.
    pub fn ports(&self, header: &Header) -> Result<(usize, usize), Failure> {
        let ports = (self.ports / self.threads) as usize;
        let parts = f64::from(self.threads * self.instrument.segment.of);
        let outstanding = self.mean_qps(header) * self.timeout.as_secs_f64() / parts;
        let fitting = outstanding * 2.0 / TABLE_MAX as f64 * f64::from(self.threads);
        let least = if ports == 0 { None } else { table_for(outstanding, ports, PLACES_MIN) };
        let table = least.map(|_| table_for(outstanding * PEAK, ports, PLACES_MIN).unwrap_or(TABLE_MAX));
        let table = table.ok_or_else(|| {
            let enough = (fitting.ceil() as u32).max(self.threads);
            let why =
                if ports == 0 { "--threads, each of which needs one" } else { "the queries outstanding at a time" };
            refused(format!("{} ports are too few for {why}: use --ports {enough} or more", self.ports))
        })?;
        Ok((ports, table))
    }

    /// Checks that the arguments fit together, and to the stream.
    pub fn check(&self, header: &Header, authority: Authority) -> Result<(), Failure> {
        let wrong = |text| Err(refused(text));
        check_intervals(self.timeout, self.instrument.interval)?;
        if header.queries == 0 {
            return wrong(format!("{} has no queries", self.stream.display()));
        }
        let mean_qps = self.mean_qps(header);
        if authority == Authority::Vouched && self.speed.is_none() && mean_qps > RATE_VOUCHED_QPS {
            return wrong(format!(
                "the stream has {mean_qps:.0} queries per second: to send more than {RATE_VOUCHED_QPS} to a server outside the rig, give \
                 --speed"
            ));
        }
        let Some(prefix) = self.source_prefix() else { return Ok(()) };
        let (server, clients) = (self.server.address, self.instrument.segment.clients(header.clients));
        if !prefix.is_family_of(server) {
            return wrong(format!(
                "--clients-from {prefix} and {server} are of different address families: give a prefix of the server's family"
            ));
        }
        if prefix.contains(server) {
            return wrong(format!(
                "the server {server} is within --clients-from {prefix}: give a prefix that nobody uses"
            ));
        }
        if prefix.clients() < clients {
            let length = prefix.length_for(clients);
            return wrong(format!("--clients-from {prefix} is too small for {clients} clients: give a /{length}"));
        }
        Ok(())
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    parse_number(text, 0.001..=100_000.0, "a factor")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        play: Arguments,
    }

    fn parse(words: &str) -> Result<Arguments, String> {
        let words = format!("play clients.stream --server 127.0.0.1 {words}");
        CommandLine::try_parse_from(words.split_whitespace()).map(|line| line.play).map_err(|error| error.to_string())
    }

    fn header(queries: u64, clients: u64, duration_ns: i64) -> Header {
        Header { queries, clients, duration_ns, ..Header::default() }
    }

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_stream_is_played_up_to_its_last_query_or_for_as_long_as_is_asked() {
        for (words, sending_ns, mean_qps) in [
            ("", 10 * S + 1, 100.0),
            ("--speed 2", 5 * S + 1, 200.0),
            ("--speed 0.5", 20 * S + 1, 50.0),
            ("--duration 10s", 10 * S, 100.0),
            ("--duration 9s --speed 2", 5 * S + 1, 200.0),
            ("--duration 4s --speed 2", 4 * S, 200.0),
            ("--speed 20", S / 2 + 1, 1_000.0),
        ] {
            let (arguments, header) = (parse(words).unwrap(), header(1_000, 10, 10 * S));
            assert_eq!((arguments.sending_ns(&header), arguments.mean_qps(&header)), (sending_ns, mean_qps), "{words}");
        }
    }

    #[test]
    fn ports_have_tables_for_four_times_what_is_outstanding_on_average() {
        for (words, mean_qps, expected) in [
            ("", 1_000, Ok((256, 256))),
            ("--threads 3", 1_000, Ok((85, 256))),
            ("", 1_000_000, Ok((256, 65_536))),
            ("--threads 2 --ports 512", 100_000, Ok((256, 4_096))),
            ("--ports 1", 10_000, Ok((1, 65_536))),
            ("--ports 1 --timeout 1s", 4_000, Ok((1, 32_768))),
            ("--ports 1", 1_000_000, Err("the queries outstanding at a time: use --ports 62 or more")),
            ("--ports 3 --threads 4", 1_000, Err("--threads, each of which needs one: use --ports 4 or more")),
        ] {
            let header = header(10 * mean_qps, 10, 10 * S);
            let found = parse(words).unwrap().ports(&header).map_err(|failure| failure.sentence);
            match (found, expected) {
                (Err(sentence), Err(part)) => assert!(sentence.contains(part), "{words}: {sentence}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{words}"),
            }
        }
    }

    #[test]
    fn a_stream_has_to_fit_its_server_and_its_clients() {
        let clients_from = |prefix: &str| format!("--clients-from {prefix}");
        for (words, header, authority, refused) in [
            (String::new(), header(1_000, 10, 10 * S), Authority::Vouched, None),
            (String::new(), header(1_010, 10, 10 * S), Authority::Vouched, Some("has 101 queries per second")),
            ("--speed 1".into(), header(1_010, 10, 10 * S), Authority::Vouched, None),
            (String::new(), header(1_010, 10, 10 * S), Authority::Rig, None),
            (String::new(), header(0, 0, 0), Authority::Rig, Some("clients.stream has no queries")),
            (clients_from("127.1.0.0/30"), header(9, 2, S), Authority::Rig, None),
            (clients_from("127.1.0.0/30"), header(9, 3, S), Authority::Rig, Some("for 3 clients: give a /29")),
            (clients_from("127.0.0.0/24"), header(9, 2, S), Authority::Rig, Some("within --clients-from 127.0.0.0/24")),
            (clients_from("fd00::/64"), header(9, 2, S), Authority::Rig, Some("different address families")),
            (clients_from("fd00::/64 --proxy-protocol"), header(9, 2, S), Authority::Rig, None),
            ("--timeout 2s --interval 10ms".into(), header(9, 2, S), Authority::Rig, Some("more than 100 intervals")),
        ] {
            let checked = parse(&words).unwrap().check(&header, authority).err().map(|failure| failure.sentence);
            assert_eq!(checked.is_some(), refused.is_some(), "{words}: {checked:?}");
            assert!(checked.unwrap_or_default().contains(refused.unwrap_or_default()), "{words}");
        }
    }

    #[test]
    fn a_server_has_a_port_for_each_transport() {
        let ports = |words: &str| {
            let arguments = parse(words).unwrap();
            Transport::ALL.map(|transport| arguments.server_over(transport).port())
        };
        assert_eq!(ports(""), [53, 53, 853, 443, 853]);
        assert_eq!(ports("--dot-port 1 --doh-port 2 --doq-port 3"), [53, 53, 1, 2, 3]);
    }

    #[test]
    fn a_speed_has_limits() {
        assert_eq!(["0.001", "100000"].map(|text| parse_speed(text).ok()), [Some(0.001), Some(100_000.0)]);
        assert_eq!(["0.0009", "100001", "0"].map(|text| parse_speed(text).ok()), [None; 3]);
    }
}
