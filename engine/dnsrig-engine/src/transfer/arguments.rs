//! The command line of `transfer`.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use super::{
    TransferError,
    schedule::{Policy, Retry, Settings, SoaFirst, ids, memory},
};
use crate::{
    base::{
        failure::Failure,
        target::{self, Authority, Endpoint},
        units::{nanoseconds, parse_delay, parse_duration, parse_number},
    },
    dns::{xfr::Limits, zone_arguments::ZoneArguments},
    net::{
        connection::{Close, SocketOptions},
        tls::{Client, XOT, arguments::TlsArguments},
    },
};

/// The most zones a second from a foreign server that the user vouches for, unless --rate names another number.
const RATE_VOUCHED: f64 = 100.0;

/// A transfer has no more messages than this: 16 TB of the largest.
const MESSAGES_MAX: u32 = 1 << 28;

/// A secondary keeps so many sessions for each of its connections, as a primary may give out several for each.
const SESSIONS_A_CONNECTION: usize = 4;

/// So many sessions of a secondary are kept at most, a kilobyte or two each.
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
}

/// Transfer zones from a primary as one or many secondaries do, keep nothing, and see how fast and in what order they
/// come.
///
/// It asks for every zone of a list by AXFR or IXFR (RFC 5936, RFC 1995) over TCP or TLS (RFC 9103). How connections
/// are used is chosen by --policy. Messages are told apart by their ids, so answers may come interleaved and in any
/// order.
///
/// What may go better next time is asked for again (--retries, --retry-after, doubled each time): SERVFAIL, REFUSED,
/// ends of connections and silence. Zones whose answer is wrong in itself are not. When a connection ends, only
/// transfers in the middle, or the first if nothing came at all, use up a retry; the others are asked for again at
/// once.
///
/// On a terminal progress and a summary for people are shown; into a pipe go JSON lines, one a second and a summary.
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
    /// The primary: an IP address and perhaps a port [default port: 53, with --transport xot 853]
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
    /// Ask for what changed since this serial (RFC 1995), not for whole zones
    #[arg(long, value_name = "SERIAL", help_heading = "What")]
    pub ixfr: Option<u32>,
    /// Stay, answer NOTIFY (RFC 1996; UDP and TCP, port 53), and ask for a zone each time that one comes for it
    #[arg(long, conflicts_with = "repeat", help_heading = "What")]
    pub on_notify: bool,
    /// With --on-notify: the serial that all secondaries have; a NOTIFY whose SOA is not newer begins no transfer
    #[arg(long, value_name = "SERIAL", requires = "on_notify", help_heading = "What")]
    pub serial: Option<u32>,
    /// With --on-notify: listen on another port
    #[arg(long, value_name = "PORT", default_value_t = 53, requires = "on_notify", help_heading = "What")]
    pub notify_port: u16,
    /// Begin again with the first zone when all have ended, until --duration is over
    #[arg(long, requires = "duration", help_heading = "What")]
    pub repeat: bool,
}

/// Who asks, and how connections are used.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ConnectionArguments {
    /// How zones travel
    #[arg(long, value_enum, default_value = "tcp", help_heading = "Connections")]
    pub transport: TransportKind,
    /// Sign queries and check all answers (RFC 8945): hmac-sha256, -sha512 … : the key's name : its secret in base64
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET", help_heading = "Connections")]
    pub tsig: Option<String>,
    /// How connections are used
    #[arg(long, value_enum, default_value = "pipelined", help_heading = "Connections")]
    pub policy: Policy,
    /// With --policy pipelined: so many zones at a time on a connection; 0: all, as far as there are message ids. All
    /// connections together may need 4 GB of memory
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=65_535), help_heading = "Connections")]
    pub window: u32,
    /// So many connections at a time, of each secondary
    #[arg(id = "connections", long = "connections", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Connections")]
    pub count: u32,
    /// How a connection is closed
    #[arg(long, value_enum, default_value = "fin", help_heading = "Connections")]
    pub close: Close,
    /// Ask for the SOA before the zone; with --ixfr a zone whose serial is not newer is not asked for
    #[arg(long, value_enum, default_value = "none", help_heading = "Connections")]
    pub soa: SoaFirst,
    /// Play so many secondaries, each of which transfers all zones by itself
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Connections")]
    pub secondaries: u32,
    /// Addresses of this host, FIRST-LAST or one; may be given several times: the secondaries have them in turn
    #[arg(long = "source", value_name = "ADDRESS", value_parser = target::parse_range, help_heading = "Connections")]
    pub sources: Vec<target::Range>,
}

/// Sessions of TLS (RFC 9103: version 1.3, ALPN `dot`).
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct SessionArguments {
    /// A full handshake for every connection, never a resumed session
    #[arg(long, help_heading = "TLS")]
    pub no_resumption: bool,
    /// No connection where the primary does not agree on the protocol `dot` (ALPN), as RFC 9103 §7.1 has it
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
    /// The congestion control of this side
    #[arg(long, value_name = "NAME", help_heading = "Socket")]
    pub congestion: Option<String>,
    /// The longest segment, in bytes (TCP_MAXSEG)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(88..=32_767), help_heading = "Socket")]
    pub mss: Option<u32>,
    /// The receive buffer, which then does not grow (SO_RCVBUF)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4_096..=1 << 30), help_heading = "Socket")]
    pub receive_buffer_bytes: Option<u32>,
}

/// When it is enough.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct LimitArguments {
    /// Ask for a zone again so often, and make so many connections more in a row that bring nothing
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1_000), help_heading = "Limits")]
    pub retries: u16,
    /// Ask again after this, then after twice as long, and so on up to a minute
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive, help_heading = "Limits")]
    pub retry_after: i64,
    /// Give up a transfer after so long without a record, and a connection after so long without a sign of life. While
    /// parts of a message come, a transfer has six times as long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive, help_heading = "Limits")]
    pub timeout: i64,
    /// Give up a transfer so long after its first message; two hours are what BIND has (max-transfer-time-in)
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = parse_duration, help_heading = "Limits")]
    pub time_max: Duration,
    /// A zone has no more bytes than this
    #[arg(long, value_name = "N", default_value_t = 10_000_000_000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub bytes_max: u64,
    /// A zone has no more records than this
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub records_max: u64,
    /// Ask for so many zones a second at most [default: no limit; 100 with --i-am-authorized]
    #[arg(long, value_name = "N", value_parser = parse_rate, help_heading = "Limits")]
    pub rate: Option<f64>,
    /// End after so long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub duration: Option<Duration>,
}

/// What is done with what comes.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct CheckArguments {
    /// Write each zone to a file in this folder, ZONE.zone
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ixfr", "on_notify", "repeat"], help_heading = "Checks")]
    pub write: Option<PathBuf>,
    /// A zone with another number of records is not done
    #[arg(long, value_name = "N", conflicts_with = "ixfr", help_heading = "Checks")]
    pub expect_records: Option<u64>,
    /// A zone whose ZONEMD record (RFC 8976) does not fit it is not done
    #[arg(long, conflicts_with = "ixfr", help_heading = "Checks")]
    pub zonemd: bool,
}

/// The instrument itself.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct InstrumentArguments {
    /// Threads, each on a CPU of its own if there are as many; the secondaries are shared among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Instrument")]
    pub threads: u32,
    /// Write transfers.arrow, connections.arrow and tcp-info.arrow to this folder
    #[arg(long, value_name = "DIR", help_heading = "Instrument")]
    pub out: Option<PathBuf>,
    /// With --out: look at the connections (TCP_INFO) this often; 0: never
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_delay, help_heading = "Instrument")]
    pub info_interval: i64,
    /// Print JSON lines on a terminal too
    #[arg(long, help_heading = "Instrument")]
    pub json: bool,
    /// End when standard input ends
    #[arg(long, help_heading = "Instrument")]
    pub until_eof: bool,
    /// Confirm that this address is yours to load; not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 where
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS", help_heading = "Instrument")]
    pub i_am_authorized: Option<IpAddr>,
}

impl Arguments {
    /// The primary, on the port of the transport unless another was named (RFC 9103 §7.1).
    pub fn server(&self) -> SocketAddr {
        self.primary.or_port(if self.connections.transport == TransportKind::Xot { 853 } else { 53 })
    }

    /// Where it is asked over UDP: the same port, but with TLS that of DNS.
    pub fn server_udp(&self) -> SocketAddr {
        match self.connections.transport {
            TransportKind::Tcp => self.server(),
            TransportKind::Xot => SocketAddr::new(self.primary.address, 53),
        }
    }

    /// What a schedule goes by; a foreign server is asked gently unless the user names a rate. The rate is that of
    /// `share`, a part of one.
    pub fn settings(&self, authority: Authority, share: f64) -> Settings {
        let vouched = (authority == Authority::Vouched).then_some(RATE_VOUCHED);
        let Arguments { wanted, connections, limits, .. } = self;
        Settings {
            policy: connections.policy,
            window: if connections.window == 0 { ids::OUTSTANDING_MAX } else { connections.window },
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

    /// A client with TLS for each secondary, with sessions of its own; none without TLS.
    pub fn clients(&self) -> Result<Vec<Client>, Failure> {
        if self.connections.transport == TransportKind::Tcp {
            return Ok(Vec::new());
        }
        let SessionArguments { no_resumption, require_alpn } = self.sessions;
        let kept = (self.connections.count as usize * SESSIONS_A_CONNECTION).min(SESSIONS_MAX);
        let sessions_max = if no_resumption { 0 } else { kept };
        let make = self.tls.clients(self.primary.address, XOT, require_alpn, sessions_max)?;
        (0..self.connections.secondaries).map(|_| make()).collect()
    }

    /// The address of each secondary; None: any of this host.
    pub fn sources(&self) -> Vec<Option<IpAddr>> {
        let listed: Vec<_> = self.connections.sources.iter().flat_map(target::Range::addresses).collect();
        let address = |number: usize| (!listed.is_empty()).then(|| listed[number % listed.len()]);
        (0..self.connections.secondaries as usize).map(address).collect()
    }

    /// What cannot be said with single arguments.
    pub fn check(&self, zones: u32) -> Result<(), TransferError> {
        let wrong = |sentence: String| Err(TransferError::Arguments(sentence));
        let address = self.primary.address;
        let of_family = |source: &&target::Range| source.first.is_ipv4() != address.is_ipv4();
        if let Some(source) = self.connections.sources.iter().find(of_family) {
            return wrong(format!(
                "--source {} and {address} are of different families: name addresses of the primary's family",
                source.first
            ));
        }
        let secondaries = u64::from(self.connections.secondaries);
        let slots = secondaries * (u64::from(self.connections.count) + 1);
        if slots > SLOTS_MAX {
            return wrong(format!("--secondaries times --connections are more than {SLOTS_MAX}"));
        }
        // As in the rig: who vouches for a foreign server gets another rate, and no other memory.
        let bytes = memory::bytes(&self.settings(Authority::Rig, 1.0), self.connections.secondaries, zones);
        if bytes > memory::BYTES_MAX {
            let [needed, limit] = [bytes, memory::BYTES_MAX].map(|bytes| bytes / 1_000_000_000);
            return wrong(format!(
                "so many zones at a time on so many connections may need {needed} GB of memory, more than {limit} GB: \
                lower --window, --connections or --secondaries"
            ));
        }
        if self.wanted.on_notify && self.instrument.threads > 1 {
            return wrong("--on-notify works with one thread: leave --threads away".into());
        }
        if self.wanted.on_notify && secondaries * u64::from(zones) > NOTIFIED_MAX {
            return wrong(format!("with --on-notify, secondaries times zones are at most {NOTIFIED_MAX}"));
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
