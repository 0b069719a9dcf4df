//! The command line of `transfer`.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use dnsrig_core::{
    failure::Failure,
    target::{self, Authority, Endpoint},
    units::{nanoseconds, parse_delay, parse_duration, parse_number},
};
use dnsrig_dns::{
    tsig::sign::{Signer, parse_key},
    xfr::Limits,
};
use dnsrig_net::{
    connection::{Close, SocketOptions},
    outstanding::OUTSTANDING_MAX,
    quic::{self, arguments::QuicArguments},
    tls::{
        self, Client, DOQ, XOT,
        arguments::{TlsArguments, Verify},
    },
};

use super::schedule::{Policy, Retry, Settings, SoaFirst, policy::MEMORY_BYTES_MAX};
use crate::dataset::zone_list::ZoneArguments;

/// The most zones a second from a foreign server that the user vouches for, unless --rate names another number.
const RATE_VOUCHED: f64 = 100.0;

/// The highest number of messages of a transfer: 16 TB of the largest.
const MESSAGES_MAX: u32 = 1 << 28;

/// The number of sessions that a secondary keeps for each of its connections: a primary may give out several for each.
const SESSIONS_A_CONNECTION: usize = 4;

/// The highest number of sessions of a secondary that are kept, a kilobyte or two each.
const SESSIONS_MAX: usize = 1_024;

/// Slots of all secondaries together.
const SLOTS_MAX: u64 = 100_000;

/// Zones of all secondaries together that can wait for NOTIFY.
const NOTIFIED_MAX: u64 = 100_000_000;

/// How zones travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    #[default]
    Tcp,
    /// Zone transfer over TLS (RFC 9103)
    Xot,
    /// Zone transfer over QUIC (RFC 9250)
    Xoq,
}

/// Transfer zones from a primary like one or many secondaries, keep nothing, and measure how fast and in what order
/// they come.
///
/// `transfer` asks for every zone of a list by AXFR or IXFR (RFC 5936, RFC 1995) over TCP, TLS (RFC 9103) or QUIC
/// (RFC 9250). --policy decides how connections are used. Messages are matched by their ids, over QUIC by their stream,
/// so answers may come interleaved and in any order.
///
/// What can succeed later is asked for again (--retries, --retry-after, doubled each time): SERVFAIL, REFUSED, ends of
/// connections and silence. Zones with a wrong answer are not asked for again. When a connection ends, only transfers
/// that were in the middle use up a retry, or the first one if nothing came at all; the others are asked for again at
/// once.
///
/// On a terminal, `transfer` shows progress and a summary for people. Into a pipe, it writes JSON lines: one per
/// second, and a summary.
///
/// Exit codes: 0 every zone is done or up to date, 1 otherwise, 130 interrupted (all three with a summary), 2 bad
/// input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dnsrig transfer 198.18.0.2 --zone-list zones.list\n  \
    dnsrig transfer 198.18.0.2 --zone example --policy one --out /tmp/transfer\n  \
    dnsrig transfer 198.18.0.2 --catalog catalog.example --transport xot --tsig hmac-sha256:transfer:c2VjcmV0\n  \
    dnsrig transfer 198.18.0.2 --count 10000 --suffix example --secondaries 100 --source 198.18.1.1-198.18.1.100")]
pub struct Arguments {
    /// Primary to ask: an IP address and optionally a port [default port: 53; 853 with --transport xot or xoq]
    #[arg(value_name = "PRIMARY[:PORT]", value_parser = target::parse_endpoint)]
    pub primary: Endpoint,

    #[command(flatten)]
    pub zones: ZoneArguments,
    #[command(flatten)]
    pub wanted: WantedArguments,

    #[command(flatten)]
    pub connections: ConnectionArguments,
    #[command(flatten)]
    pub tls: TlsArguments,
    #[command(flatten)]
    pub sessions: SessionArguments,
    #[command(flatten)]
    pub quic: QuicArguments,
    #[command(flatten)]
    pub socket: SocketArguments,
    #[command(flatten)]
    pub limits: LimitArguments,
    #[command(flatten)]
    pub checks: CheckArguments,
    #[command(flatten)]
    pub instrument: InstrumentArguments,
}

/// What of the zones is asked for, and when.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct WantedArguments {
    /// Serial from which to ask for changes (RFC 1995), instead of for whole zones
    #[arg(long, value_name = "SERIAL", help_heading = "What")]
    pub ixfr: Option<u32>,
    /// Keep running, answer NOTIFY (RFC 1996; UDP and TCP, port 53), and ask for a zone each time that a NOTIFY for it
    /// comes
    #[arg(long, conflicts_with = "repeat", help_heading = "What")]
    pub on_notify: bool,
    /// With --on-notify: serial that all secondaries have. A NOTIFY whose SOA record is not newer starts no transfer
    #[arg(long, value_name = "SERIAL", requires = "on_notify", help_heading = "What")]
    pub serial: Option<u32>,
    /// With --on-notify: port to listen on
    #[arg(long, value_name = "PORT", default_value_t = 53, requires = "on_notify", help_heading = "What")]
    pub notify_port: u16,
    /// Start again with the first zone after the last, until --duration is over
    #[arg(long, requires = "duration", help_heading = "What")]
    pub repeat: bool,
}

/// The secondaries, and how they use connections.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ConnectionArguments {
    /// Transport of the zones
    #[arg(long, value_enum, default_value = "tcp", help_heading = "Connections")]
    pub transport: TransportKind,
    /// TSIG key that queries are signed with and all answers are checked with (RFC 8945): the algorithm (hmac-sha256,
    /// -sha512 …), then the name, then the secret in base64
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", help_heading = "Connections")]
    pub tsig: Option<String>,
    /// File with the TSIG key, one line as for --tsig: no other user sees it in the list of processes
    #[arg(long, value_name = "FILE", conflicts_with = "tsig", help_heading = "Connections")]
    pub tsig_file: Option<PathBuf>,
    /// How connections are used
    #[arg(long, value_enum, default_value = "pipelined", help_heading = "Connections")]
    pub policy: Policy,
    /// With --policy pipelined: number of zones at a time on a connection, or 0 for all, as far as there are message
    /// ids. All connections together can need 4 GB of memory
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=65_535), help_heading = "Connections")]
    pub window: u32,
    /// Number of connections at a time, of each secondary
    #[arg(id = "connections", long = "connections", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Connections")]
    pub count: u32,
    /// How a connection is closed
    #[arg(long, value_enum, default_value = "fin", help_heading = "Connections")]
    pub close: Close,
    /// Whether the SOA record is asked for before the zone. With --ixfr, a zone whose serial is not newer is then not
    /// asked for
    #[arg(long, value_enum, default_value = "none", help_heading = "Connections")]
    pub soa: SoaFirst,
    /// Number of secondaries to play. Each transfers all zones on its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Connections")]
    pub secondaries: u32,
    /// Address of this host that secondaries use, or a range FIRST-LAST. May be repeated; the secondaries use the
    /// addresses in turn
    #[arg(long = "source", value_name = "ADDRESS", value_parser = target::parse_range, help_heading = "Connections")]
    pub sources: Vec<target::Range>,
}

/// Sessions of TLS (RFC 9103: version 1.3, ALPN `dot`).
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct SessionArguments {
    /// Do a full handshake for every connection, and resume no session
    #[arg(long, help_heading = "TLS")]
    pub no_resumption: bool,
    /// Refuse connections on which the primary does not agree to the protocol `dot` (ALPN), as RFC 9103 §7.1 requires
    #[arg(long, help_heading = "TLS")]
    pub require_alpn: bool,
}

/// The kernel's side of connections.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct SocketArguments {
    /// Acknowledge at once (TCP_QUICKACK), not up to 40 ms later
    #[arg(long, help_heading = "Socket")]
    pub quickack: bool,
    /// Let queries wait for acknowledgements (no TCP_NODELAY)
    #[arg(long, help_heading = "Socket")]
    pub nagle: bool,
    /// Congestion control of this side [default: the system's]
    #[arg(long, value_name = "NAME", help_heading = "Socket")]
    pub congestion: Option<String>,
    /// Longest TCP segment, in bytes (TCP_MAXSEG) [default: the system's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(88..=32_767), help_heading = "Socket")]
    pub mss: Option<u32>,
    /// Size of the receive buffer, in bytes, which then does not grow (SO_RCVBUF) [default: the system's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4_096..=1 << 30), help_heading = "Socket")]
    pub receive_buffer_bytes: Option<u32>,
}

/// When it is enough.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct LimitArguments {
    /// Number of times that a zone is asked for again. Also the number of further connections in a row that may bring
    /// nothing
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1_000), help_heading = "Limits")]
    pub retries: u16,
    /// Time after which a zone is asked for again. It doubles each time, up to a minute
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive, help_heading = "Limits")]
    pub retry_after: i64,
    /// Time without a record after which a transfer is given up, and without any sign of life after which a connection
    /// is. While parts of a message come, a transfer has six times as long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive, help_heading = "Limits")]
    pub timeout: i64,
    /// Time after its first message at which a transfer is given up. BIND has the same default (max-transfer-time-in)
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = parse_duration, help_heading = "Limits")]
    pub time_max: Duration,
    /// Largest size of a zone, in bytes
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub bytes_max: u64,
    /// Largest size of a zone, in records
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub records_max: u64,
    /// Highest number of zones to ask for per second [default: no limit; 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = parse_rate, help_heading = "Limits")]
    pub rate: Option<f64>,
    /// Duration of the whole measurement [default: until all zones have ended]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub duration: Option<Duration>,
}

/// What is done with what comes.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct CheckArguments {
    /// Existing folder in which each zone is written to ZONE.zone
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ixfr", "on_notify", "repeat"], help_heading = "Checks")]
    pub write: Option<PathBuf>,
    /// Number of records that a zone must have to be done
    #[arg(long, value_name = "N", conflicts_with = "ixfr", help_heading = "Checks")]
    pub expect_records: Option<u64>,
    /// Check the ZONEMD record (RFC 8976): a zone that does not match it is not done
    #[arg(long, conflicts_with = "ixfr", help_heading = "Checks")]
    pub zonemd: bool,
}

/// The instrument itself.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct InstrumentArguments {
    /// Number of threads, each on its own CPU if there are enough. Secondaries are shared among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Instrument")]
    pub threads: u32,
    /// Existing folder for transfers.arrow, connections.arrow and tcp-info.arrow
    #[arg(long, value_name = "DIR", help_heading = "Instrument")]
    pub out: Option<PathBuf>,
    /// With --out: time between two looks at the connections (TCP_INFO), or 0 for never
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "out", value_parser = parse_delay, help_heading = "Instrument")]
    pub info_interval: i64,
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

impl Arguments {
    /// The primary, on the port of the transport unless another was named (RFC 9103 §7.1, RFC 9250 §4.1.1).
    pub fn server(&self) -> SocketAddr {
        self.primary.or_port(if self.connections.transport == TransportKind::Tcp { 53 } else { 853 })
    }

    /// What signs queries, if there is a key.
    pub fn signer(&self) -> Result<Option<Arc<Signer>>, Failure> {
        let ConnectionArguments { tsig, tsig_file, .. } = &self.connections;
        let Some(path) = tsig_file else { return tsig.as_deref().map(parse_key).transpose() };
        let text = fs::read_to_string(path).map_err(|error| {
            let hint = "write the key to it as one line ALGORITHM:NAME:SECRET";
            Failure::bad_input(format!("--tsig-file {}: {error}", path.display()), hint)
        })?;
        parse_key(text.trim()).map(Some)
    }

    /// The address for queries over UDP: it has the same port, or the port of DNS if transfers use TLS or QUIC.
    pub fn server_udp(&self) -> SocketAddr {
        match self.connections.transport {
            TransportKind::Tcp => self.server(),
            TransportKind::Xot | TransportKind::Xoq => SocketAddr::new(self.primary.address, 53),
        }
    }

    /// The settings of a schedule with this `share` of the rate, at most 1. A foreign server is asked at a low rate
    /// unless the user gives one.
    pub fn settings(&self, authority: Authority, share: f64) -> Settings {
        let vouched = (authority == Authority::Vouched).then_some(RATE_VOUCHED);
        let Arguments { wanted, connections, limits, .. } = self;
        Settings {
            policy: connections.policy,
            streams: connections.transport == TransportKind::Xoq,
            window: if connections.window == 0 { OUTSTANDING_MAX } else { connections.window },
            connections: connections.count,
            soa: connections.soa,
            serial: wanted.ixfr,
            serial_before: wanted.serial,
            retry: Retry { times: limits.retries, after_ns: limits.retry_after },
            timeout_ns: limits.timeout,
            time_ns_max: nanoseconds(limits.time_max),
            limits: Limits { bytes_max: limits.bytes_max, records_max: limits.records_max, messages_max: MESSAGES_MAX },
            records_expected: self.checks.expect_records,
            rate: limits.rate.or(vouched).map(|rate| rate * share),
            repeat: wanted.repeat,
            on_notify: wanted.on_notify,
        }
    }

    /// How sockets are set up.
    pub fn socket_options(&self) -> SocketOptions {
        SocketOptions {
            close: self.connections.close,
            nodelay: !self.socket.nagle,
            quickack: self.socket.quickack,
            congestion: self.socket.congestion.clone(),
            mss: self.socket.mss,
            receive_buffer: self.socket.receive_buffer_bytes,
            ..SocketOptions::default()
        }
    }

    /// A client with TLS over TCP for each secondary, with sessions of its own; none without TLS.
    pub fn clients(&self) -> Result<Vec<Client>, Failure> {
        if self.connections.transport != TransportKind::Xot {
            return Ok(Vec::new());
        }
        let require_alpn = self.sessions.require_alpn;
        let make = self.tls.clients(self.primary.address, XOT, require_alpn, self.sessions_max())?;
        (0..self.connections.secondaries).map(|_| make()).collect()
    }

    /// The number of sessions that a secondary keeps.
    fn sessions_max(&self) -> usize {
        let kept = (self.connections.count as usize * SESSIONS_A_CONNECTION).min(SESSIONS_MAX);
        if self.sessions.no_resumption { 0 } else { kept }
    }

    /// How each of this number of secondaries connects over QUIC, with sessions of its own; None over TCP.
    pub fn quic(&self, secondaries: u32) -> Result<Option<Vec<quic::client::Config>>, Failure> {
        if self.connections.transport != TransportKind::Xoq {
            return Ok(None);
        }
        let tls = tls::Settings { sessions_max: self.sessions_max(), ..self.tls.settings(DOQ)? };
        let config = quic::client::Config::new(self.server().ip(), tls, self.quic.flow())?;
        Ok(Some((0..secondaries).map(|_| config.another()).collect()))
    }

    /// The address of each secondary; None: any of this host.
    pub fn sources(&self) -> Vec<Option<IpAddr>> {
        let listed: Vec<_> = self.connections.sources.iter().flat_map(target::Range::addresses).collect();
        let address = |number: usize| (!listed.is_empty()).then(|| listed[number % listed.len()]);
        (0..self.connections.secondaries as usize).map(address).collect()
    }

    /// An option that has no effect, and what it needs for one.
    fn idle_option(&self) -> Option<(&'static str, &'static str)> {
        let Arguments { tls, sessions, socket, quic, connections, .. } = self;
        let (is_tcp, is_quic) =
            (connections.transport == TransportKind::Tcp, connections.transport == TransportKind::Xoq);
        [
            ("--verify", "--transport xot or xoq", is_tcp && tls.verify != Verify::None),
            ("--server-name", "--transport xot or xoq", is_tcp && tls.server_name.is_some()),
            ("--certificate", "--transport xot or xoq", is_tcp && tls.certificate.is_some()),
            ("--no-resumption", "--transport xot or xoq", is_tcp && sessions.no_resumption),
            ("--require-alpn", "--transport xot", (is_tcp || is_quic) && sessions.require_alpn),
            ("--quic-congestion", "--transport xoq", !is_quic && quic.quic_congestion.is_some()),
            ("--quic-window-bytes", "--transport xoq", !is_quic && quic.quic_window_bytes.is_some()),
            ("--close rst", "--transport tcp or xot", is_quic && connections.close == Close::Rst),
            ("--quickack", "--transport tcp or xot", is_quic && socket.quickack),
            ("--nagle", "--transport tcp or xot", is_quic && socket.nagle),
            ("--congestion", "--transport tcp or xot", is_quic && socket.congestion.is_some()),
            ("--mss", "--transport tcp or xot", is_quic && socket.mss.is_some()),
            ("--ca", "--verify ca", tls.verify != Verify::Ca && tls.ca.is_some()),
            ("--pin", "--verify pin", tls.verify != Verify::Pin && !tls.pins.is_empty()),
        ]
        .into_iter()
        .find_map(|(option, needed, is_idle)| is_idle.then_some((option, needed)))
    }

    /// What cannot be checked for each argument alone.
    pub fn check(&self, zones: u32) -> Result<(), Failure> {
        let wrong = |sentence: String| Err(Failure::bad_input(sentence, "see `dnsrig transfer --help`"));
        let address = self.primary.address;
        let of_family = |source: &&target::Range| source.first.is_ipv4() != address.is_ipv4();
        if let Some(source) = self.connections.sources.iter().find(of_family) {
            return wrong(format!(
                "--source {} and {address} are of different address families: give addresses of the primary's family",
                source.first
            ));
        }
        if let Some((option, needed)) = self.idle_option() {
            return wrong(format!("{option} has no effect without {needed}: add that, or leave {option} out"));
        }
        let secondaries = u64::from(self.connections.secondaries);
        let addresses: u64 = self.connections.sources.iter().map(|range| range.addresses().count() as u64).sum();
        if addresses > secondaries {
            return wrong(format!(
                "--source has {addresses} addresses for {secondaries} secondaries: raise --secondaries, or leave addresses out"
            ));
        }
        let slots = secondaries * (u64::from(self.connections.count) + 1);
        if slots > SLOTS_MAX {
            return wrong(format!("--secondaries × --connections is more than {SLOTS_MAX}: lower one of them"));
        }
        // The memory is the same for a foreign server: only its rate differs.
        let bytes = self.settings(Authority::Rig, 1.0).memory_bytes(self.connections.secondaries, zones);
        if bytes > MEMORY_BYTES_MAX {
            let [needed, limit] = [bytes, MEMORY_BYTES_MAX].map(|bytes| bytes / 1_000_000_000);
            return wrong(format!(
                "this number of zones at a time on all connections can need {needed} GB of memory, more than {limit} GB: \
                lower --window, --connections or --secondaries"
            ));
        }
        if self.wanted.on_notify && self.instrument.threads > 1 {
            return wrong("--on-notify works with one thread: leave --threads out".into());
        }
        if self.wanted.on_notify && secondaries * u64::from(zones) > NOTIFIED_MAX {
            return wrong(format!(
                "with --on-notify, secondaries × zones can be at most {NOTIFIED_MAX}: lower --secondaries, or the number of zones"
            ));
        }
        Ok(())
    }
}

fn parse_positive(text: &str) -> Result<i64, String> {
    match parse_delay(text)? {
        0..1_000_000 => Err("at least 1ms".into()),
        ns => Ok(ns),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    parse_number(text, 0.01..=1e8, "zones a second")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &str) -> Arguments {
        let given = ["transfer", "127.0.0.1", "--zone", "example"];
        CommandLine::parse_from(given.into_iter().chain(words.split_whitespace())).arguments
    }

    /// What is wrong with a command line for this number of zones, if something is.
    fn wrong(words: &str, zones: u32) -> Option<String> {
        arguments(words).check(zones).err().map(|failure| failure.sentence)
    }

    #[test]
    fn an_option_without_effect_is_refused_with_what_it_needs() {
        let (tls, xot, xoq, tcp) =
            ("--transport xot or xoq", "--transport xot", "--transport xoq", "--transport tcp or xot");
        // The option, what it needs, and whether it has an effect over TCP, TLS and QUIC.
        for (option, needed, effects) in [
            ("--verify ca --ca a.pem", tls, [false, true, true]),
            ("--server-name a.example", tls, [false, true, true]),
            ("--certificate a.pem --key a.key", tls, [false, true, true]),
            ("--no-resumption", tls, [false, true, true]),
            ("--require-alpn", xot, [false, true, false]),
            ("--quic-congestion cubic", xoq, [false, false, true]),
            ("--quic-window-bytes 8192", xoq, [false, false, true]),
            ("--close rst", tcp, [true, true, false]),
            ("--quickack", tcp, [true, true, false]),
            ("--nagle", tcp, [true, true, false]),
            ("--congestion reno", tcp, [true, true, false]),
            ("--mss 1000", tcp, [true, true, false]),
            ("--ca a.pem", "--verify ca", [false; 3]),
            ("--pin c2VjcmV0", "--verify pin", [false; 3]),
            ("", "nothing", [true; 3]),
        ] {
            for (transport, has_effect) in ["tcp", "xot", "xoq"].into_iter().zip(effects) {
                let found = wrong(&format!("{option} --transport {transport}"), 1);
                assert_eq!(found.is_none(), has_effect, "{option} over {transport}: {found:?}");
                let has_word = |sentence: String| sentence.contains(&format!(" has no effect without {needed}: "));
                assert!(found.is_none_or(has_word), "{option} over {transport}");
            }
        }
        let ca = wrong("--ca a.pem --verify pin --pin c2VjcmV0 --transport xot", 1).unwrap();
        assert!(ca.starts_with("--ca has no effect without --verify ca: add that, or leave --ca out"), "{ca}");
        let verify = wrong("--verify pin --pin c2VjcmV0", 1).unwrap();
        assert!(verify.starts_with("--verify has no effect without --transport xot or xoq: add that"), "{verify}");
    }

    #[test]
    fn what_is_too_much_or_does_not_fit_together_is_refused() {
        for (words, zones, expected) in [
            ("--secondaries 2 --source 127.0.0.1-127.0.0.2", 1, None),
            ("--secondaries 2 --source 127.0.0.1-127.0.0.3", 1, Some("--source has 3 addresses for 2 secondaries")),
            ("--source ::1", 1, Some("different address families")),
            // Each secondary has one more slot, for UDP.
            ("--secondaries 50000", 1, None),
            ("--secondaries 50001", 1, Some("is more than 100000")),
            ("--connections 65536 --secondaries 2", 1, Some("is more than 100000")),
            ("--window 0 --secondaries 50000", 100_000, Some("GB of memory")),
            ("--on-notify", 100_000_000, None),
            ("--on-notify", 100_000_001, Some("secondaries × zones can be at most 100000000")),
            ("--on-notify --threads 2", 1, Some("one thread")),
            ("--threads 2", 1, None),
        ] {
            let found = wrong(words, zones);
            assert_eq!(found.is_some(), expected.is_some(), "{words}: {found:?}");
            assert!(found.is_none_or(|sentence| sentence.contains(expected.unwrap())), "{words}");
        }
    }

    #[test]
    fn the_port_is_that_of_the_transport_unless_another_is_named() {
        for (transport, port) in [("tcp", 53), ("xot", 853), ("xoq", 853)] {
            let arguments = arguments(&format!("--transport {transport}"));
            assert_eq!((arguments.server().port(), arguments.server_udp().port()), (port, 53), "{transport}");
        }
    }

    #[test]
    fn secondaries_use_the_addresses_in_turn() {
        let address = |last: u8| Some(IpAddr::from([127, 0, 0, last]));
        let sources = |words: &str| arguments(words).sources();
        assert_eq!(sources("--secondaries 2"), [None; 2]);
        let two = "--source 127.0.0.1-127.0.0.2 --source 127.0.0.7";
        assert_eq!(sources(&format!("{two} --secondaries 5")), [1, 2, 7, 1, 2].map(address));
    }

    #[test]
    fn a_foreign_primary_is_asked_at_a_low_rate_unless_another_is_given() {
        for (words, authority, share, rate) in [
            ("", Authority::Rig, 1.0, None),
            ("", Authority::Vouched, 1.0, Some(100.0)),
            ("", Authority::Vouched, 0.25, Some(25.0)),
            ("--rate 300", Authority::Vouched, 0.5, Some(150.0)),
            ("--rate 300", Authority::Rig, 1.0, Some(300.0)),
        ] {
            assert_eq!(arguments(words).settings(authority, share).rate, rate, "{words}");
        }
        let window = |words: &str| arguments(words).settings(Authority::Rig, 1.0).window;
        assert_eq!([window(""), window("--window 0"), window("--window 1")], [100, OUTSTANDING_MAX, 1]);
    }

    #[test]
    fn sessions_are_kept_for_all_connections_up_to_a_limit() {
        for (words, expected) in [
            ("", 4),
            ("--connections 255", 1_020),
            ("--connections 256", 1_024),
            ("--connections 257", 1_024),
            ("--no-resumption", 0),
        ] {
            assert_eq!(arguments(words).sessions_max(), expected, "{words}");
        }
    }

    #[test]
    fn a_time_to_wait_is_a_millisecond_at_least() {
        assert_eq!([parse_positive("1ms"), parse_positive("2s")], [Ok(1_000_000), Ok(2_000_000_000)]);
        assert!(["0.9ms", "0s", "999us", "x"].iter().all(|text| parse_positive(text).is_err()));
        assert_eq!([parse_rate("0.01"), parse_rate("1e8")], [Ok(0.01), Ok(1e8)]);
        assert!(["0.009", "0", "1.1e8", "-1", "x"].iter().all(|text| parse_rate(text).is_err()));
    }
}
