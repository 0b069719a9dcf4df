//! The command line of `serve zones`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::ValueEnum;
use dnsrig_core::{
    failure::Failure,
    target,
    units::{parse_delay, parse_number, parse_refresh_s},
};
use dnsrig_dns::{catalog::Schema, tsig::sign::Signer};
use dnsrig_net::{
    quic::{self, arguments::QuicArguments, server::Config},
    tls::{self, Protocol, identity},
};
use rustls::ServerConfig;

use super::{
    faults::{self, Fault, Faults},
    names,
    primary::{Concurrent, Cut, Order, Period, Primary},
    records::RECORDS_MAX,
    shape::{Changes, Shape, Timers},
};
use crate::{
    dataset::{churn::Churn, parse_name},
    serve::{failure::bad_arguments, shell},
};

/// Highest number of secondaries that get NOTIFY messages.
const NOTIFIED_MAX: usize = 65_536;

/// Default numbers of changes of a zone, and of the catalog, that IXFR goes back.
const ZONE_CHANGES_KEPT: u32 = 100;
const CATALOG_CHANGES_KEPT: u32 = 10_000;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChangesOf {
    /// Addresses of one zone after another
    Zones,
    /// Members of the catalog, which leave and come back
    Catalog,
}

/// How queries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// UDP: SOA queries, and IXFR if a SOA record answers it
    Udp,
    /// TCP (RFC 5936, RFC 7766)
    Tcp,
    /// Zone transfer over TLS (RFC 9103)
    Xot,
    /// Zone transfer over QUIC (RFC 9250)
    Xoq,
}

/// Run a primary with any number of zones of any size. All records are computed from a seed, and nothing is stored.
///
/// It answers AXFR, IXFR and SOA queries over UDP (SOA only), TCP, TLS and QUIC, and lists its zones in a catalog (RFC
/// 9432). Zones are named as `generate zones` names them, z000000.SUFFIX, z000001.SUFFIX and so on, and have the same
/// kinds of records in the same order: SOA, two NS, A and AAAA of the apex, of www, MX, A and AAAA of mail, TXT, then A
/// of h0, h1 … The TTLs are one hour. Memory does not grow with the number or the size of zones.
///
/// With --changes-per-s, one zone after another gets a new serial and new addresses for some of its records, round and
/// round. With --changes-of catalog, members leave the catalog and come back instead, one with each serial: the first
/// --absent changes remove members, and from then on members come back and leave alternately. Zones that are not listed
/// are still served. The content of a zone at a given time depends on the time alone. IXFR goes back --changes-kept
/// serials; an older serial gets the whole zone.
///
/// Each change of a zone is sent to every --notify address (RFC 1996), and repeated each second up to five times until
/// it is answered. For the catalog, only the newest version is sent, at most once in --notify-interval.
///
/// With --changes-on-signal, changes begin with SIGUSR1 and end for good with SIGUSR2.
///
/// If a peer sends queries and does not read, only a limited number of its queries is read, and the rest waits in the
/// socket. --concurrent-max counts a transfer from the time when its query is read until its last message is written.
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `changes-begun`, `changes-ended`
/// (the rows are written), `summary`. It ends on a signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when
/// standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a large zone and a million tiny ones, then a transfer of the large one:\n  \
    dnsrig serve zones 127.0.0.1:5300 --count 1000000 --records 4 --large 1:10000000\n  \
    dig @127.0.0.1 -p 5300 z000000.example axfr | tail")]
pub struct Arguments {
    /// Address to listen on: an IP address and optionally a port, such as 198.18.0.2, 127.0.0.1:5300 or [::1]:53
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub address: SocketAddr,
    /// Number of zones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    count: u32,
    /// Number of records in each zone, including the SOA record. The smallest zone has 2
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=RECORDS_MAX))]
    records: u64,
    /// Number of records in the first N zones, instead of --records
    #[arg(long, value_name = "N:RECORDS", value_parser = parse_large)]
    large: Option<(u32, u64)>,
    /// Domain name that all zones are below
    #[arg(long, value_name = "NAME", default_value = "example", value_parser = parse_name)]
    suffix: String,
    /// Name of the catalog zone [default: catalog.SUFFIX]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    catalog: Option<String>,
    /// Schema version of the catalog: 2 for RFC 9432, 1 for BIND before 9.18.3
    #[arg(long, value_enum, default_value = "2")]
    catalog_schema: Schema,
    /// Seed of the random numbers. Another seed gives other addresses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Serial of a zone that has never changed
    #[arg(long, value_name = "SERIAL", default_value_t = 1)]
    serial: u32,
    /// Refresh timer in every SOA record. The retry timer is a quarter of it
    #[arg(long = "refresh", value_name = "TIME", default_value = "1h", value_parser = parse_refresh_s)]
    refresh_s: u32,
    /// Transports to listen on
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "udp,tcp")]
    pub transport: Vec<Transport>,
    /// Port for zone transfer over TLS
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub xot_port: u16,
    /// Port for zone transfer over QUIC
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub xoq_port: u16,
    /// Over QUIC: highest number of streams that a client may have open at a time, which is one for each query
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams_max: u32,
    #[command(flatten)]
    quic: QuicArguments,
    /// Over TLS and QUIC: file with authorities (PEM), one of which must have signed the certificate of a client
    #[arg(long, value_name = "PEM")]
    pub client_ca: Option<PathBuf>,
    /// TSIG key that transfers must be signed with, and other queries may be, such as hmac-sha256:transfer:c2VjcmV0
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    tsig: Option<String>,
    /// Number of messages for each signature, besides the first and the last message of a transfer (RFC 8945 allows up
    /// to 100)
    #[arg(long, value_name = "N", default_value_t = 1, requires = "tsig", value_parser = clap::value_parser!(u32).range(1..))]
    tsig_every: u32,
    /// Largest size of a message, in bytes
    #[arg(long, value_name = "N", default_value_t = 65_535, value_parser = clap::value_parser!(u16).range(512..))]
    message_bytes: u16,
    /// Highest number of records in a message [default: as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    records_per_message: Option<u16>,
    /// Order in which the messages of a connection are sent
    #[arg(long, value_enum, default_value = "in-order")]
    order: Order,
    /// Changes per second
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_rate)]
    changes_per_s: f64,
    /// What changes
    #[arg(long, value_enum, default_value = "zones")]
    changes_of: ChangesOf,
    /// Number of the first member that may leave the catalog, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "changes_of")]
    first_member: u32,
    /// Number of members that are missing in the catalog at a time, at most half of those that may leave
    #[arg(long, value_name = "N", default_value_t = 100, requires = "changes_of", value_parser = clap::value_parser!(u32).range(1..))]
    absent: u32,
    /// Begin changes with SIGUSR1, and end them with SIGUSR2
    #[arg(long, requires = "changes_per_s")]
    changes_on_signal: bool,
    /// Time from the signal to the first change
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay, requires = "changes_on_signal")]
    changes_delay: i64,
    /// Number of changes that every changing zone has behind it at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    changes_before: u32,
    /// Number of records that a change replaces, at most the number of addresses in the zone
    #[arg(long, value_name = "N", default_value_t = 1)]
    change_records: u32,
    /// Number of changes of a zone that IXFR goes back [default: 100; 10000 for the catalog]
    #[arg(long, value_name = "N")]
    changes_kept: Option<u32>,
    /// Address that changes are sent to (NOTIFY), on port 53 unless you give another. May be repeated
    #[arg(long, value_name = "ADDRESS[:PORT]|FIRST-LAST", value_parser = parse_notified)]
    notify: Vec<Notified>,
    /// Shortest time between two NOTIFY messages for the catalog
    #[arg(long, value_name = "TIME", default_value = "100ms", requires = "notify", value_parser = parse_delay)]
    pub notify_interval: i64,
    /// File for the rows, one for each change (Arrow IPC stream), as `change` writes them
    #[arg(long, value_name = "FILE", requires = "changes_per_s")]
    pub out: Option<PathBuf>,
    /// Highest number of transfers at a time on all connections. Further ones are answered with SERVFAIL [default: no
    /// limit]
    #[arg(long, value_name = "N")]
    concurrent_max: Option<u32>,
    /// Deliberate fault. May be repeated: servfail-after=N, refused-after=N, close-after=N (transfers of a connection),
    /// cut-after=N (messages of a transfer; over QUIC its stream is reset), slow=TIME (a message), wrong-serial,
    /// soa-different, soa-missing, out-of-zone, tsig-missing, tsig-wrong, wrong-id, endless, truncated,
    /// serial-backwards, length-zero, compression-loop
    #[arg(long, value_name = "KIND", value_parser = faults::parse)]
    pub fault: Vec<Fault>,
    /// Number N: faults that concern a transfer apply to zones whose number is a multiple of N
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fault", value_parser = clap::value_parser!(u32).range(1..))]
    fault_every: u32,
    #[command(flatten)]
    pub shell: shell::options::Options,
}

impl Arguments {
    /// How long after the signal changes begin; none: they begin at once.
    pub fn changes_delay_ns(&self) -> Option<i64> {
        self.changes_on_signal.then_some(self.changes_delay)
    }

    /// Refuses options that have no effect.
    fn check(&self) -> Result<(), Failure> {
        use Fault::{CloseAfter, RefusedAfter, ServfailAfter, Slow};
        let over_quic = self.transport.contains(&Transport::Xoq);
        let has_tls = over_quic || self.transport.contains(&Transport::Xot);
        if !has_tls && (self.client_ca.is_some() || self.shell.certificate.is_some()) {
            return Err(bad_arguments(
                "--client-ca and --certificate have no effect without TLS: add xot or xoq to --transport, or leave them \
                 out",
            ));
        }
        if !over_quic && (self.quic.quic_congestion.is_some() || self.quic.quic_window_bytes.is_some()) {
            return Err(bad_arguments(
                "--quic-congestion and --quic-window-bytes have no effect without QUIC: add xoq to --transport, or leave \
                 them out",
            ));
        }
        let counts_connections =
            |fault: &Fault| matches!(fault, CloseAfter(_) | RefusedAfter(_) | ServfailAfter(_) | Slow(_));
        if over_quic && self.fault.iter().any(counts_connections) {
            return Err(bad_arguments(
                "the faults servfail-after, refused-after, close-after and slow concern the messages of a TCP \
                 connection: leave xoq out of --transport, or choose another fault",
            ));
        }
        if self.changes_of == ChangesOf::Catalog && self.change_records != 1 {
            return Err(bad_arguments("--change-records has no effect with --changes-of catalog: leave it out"));
        }
        if self.changes_of == ChangesOf::Zones && self.first_member > 0 {
            return Err(bad_arguments("--first-member has no effect without --changes-of catalog: add that"));
        }
        Ok(())
    }

    /// How connections use TLS with this protocol.
    pub fn tls_config(&self, address: SocketAddr, protocol: Protocol) -> Result<Arc<ServerConfig>, Failure> {
        let config = identity::server_config(self.shell.identity(address)?, protocol, self.client_ca.as_ref())?;
        Ok(if self.fault.contains(&Fault::NoTickets) { identity::without_tickets(&config) } else { config })
    }

    /// The settings of QUIC, with a certificate for `address`.
    pub fn quic_config(&self, address: SocketAddr) -> Result<Config, Failure> {
        Ok(Config::new(&quic::server::Settings {
            tls: self.tls_config(address, tls::DOQ)?,
            flow: self.quic.flow(),
            streams_max: self.streams_max,
            idle_ns: self.shell.idle_timeout,
            connections_max: (self.shell.connections_max as usize).div_ceil(self.shell.threads()),
            retry: false,
        }))
    }

    /// The server's nature; changes begin at `start_ns`.
    pub fn primary(&self, start_ns: i64) -> Result<Primary, Failure> {
        self.check()?;
        let key = self.tsig.as_deref().map(Signer::parse).transpose()?;
        if key.is_none() && self.fault.iter().any(|fault| matches!(fault, Fault::TsigMissing | Fault::TsigWrong)) {
            return Err(bad_arguments("faults of signatures need a key: add --tsig"));
        }
        let cut = Cut {
            bytes_max: self.message_bytes.into(),
            records_max: self.records_per_message.unwrap_or(u16::MAX),
            order: self.order,
            signed_every: self.tsig_every,
        };
        Ok(Primary {
            shape: self.shape()?,
            cut,
            faults: Faults::new(&self.fault, self.fault_every),
            key,
            concurrent: self.concurrent_max.map(Concurrent::new),
            period: if self.changes_on_signal { Period::new() } else { Period::since(start_ns) },
        })
    }

    /// Addresses that get NOTIFY messages, all of which we may send to.
    pub fn notified(&self) -> Result<Vec<SocketAddr>, Failure> {
        let mut all = Vec::new();
        for notified in &self.notify {
            match notified {
                Notified::One(address) => all.push(*address),
                Notified::Range(range) => {
                    all.extend(range.addresses().map(|address| SocketAddr::new(address, target::DNS_PORT)))
                }
            }
        }
        if all.len() > NOTIFIED_MAX {
            return Err(bad_arguments("--notify has more than 65,536 addresses: give fewer"));
        }
        if all.iter().any(|one| one.is_ipv4() != self.address.is_ipv4()) {
            return Err(bad_arguments(
                "--notify has an address of another family than the server: use a server for each address family",
            ));
        }
        for address in &all {
            target::authorise(address.ip(), self.shell.i_am_authorized)?;
        }
        Ok(all)
    }

    fn shape(&self) -> Result<Shape, Failure> {
        let catalog = self.catalog.clone().unwrap_or_else(|| format!("catalog.{}", self.suffix));
        let (suffix, catalog) = (names::wire(&self.suffix), names::wire(&catalog));
        if names::zone_number(&catalog, &suffix).is_some() {
            return Err(bad_arguments("--catalog is also the name of a zone: give the catalog another name"));
        }
        let churn = match self.changes_of {
            ChangesOf::Zones => None,
            ChangesOf::Catalog => Some(Churn::new(self.count, self.first_member, self.absent).ok_or_else(|| bad_arguments("--first-member leaves fewer than two members that can leave and come back: lower it, or raise --count"),
            )?),
        };
        let kept = self.changes_kept.unwrap_or(if churn.is_some() { CATALOG_CHANGES_KEPT } else { ZONE_CHANGES_KEPT });
        let (large, large_records) = self.large.unwrap_or_default();
        let refresh_s = self.refresh_s;
        Ok(Shape {
            suffix: suffix.into(),
            catalog: catalog.into(),
            schema: b'0' + self.catalog_schema.version(),
            count: self.count,
            records: self.records,
            large,
            large_records,
            seed: self.seed,
            serial: self.serial,
            timers: Timers { refresh_s, retry_s: refresh_s.div_ceil(4), expire_s: 1_209_600, minimum_s: 300 },
            changes: Changes {
                per_s: self.changes_per_s,
                before: self.changes_before,
                records: self.change_records.into(),
                kept: kept.into(),
                churn,
            },
        })
    }
}

/// Whom one `--notify` names.
#[derive(Clone, Copy, Debug)]
enum Notified {
    One(SocketAddr),
    Range(target::Range),
}

fn parse_notified(text: &str) -> Result<Notified, String> {
    if text.contains('-') {
        target::parse_range(text).map(Notified::Range)
    } else {
        target::parse(text).map(Notified::One)
    }
}

/// Reads `N:RECORDS`.
fn parse_large(text: &str) -> Result<(u32, u64), String> {
    let read = || {
        let (count, records) = text.split_once(':')?;
        let records = records.parse().ok().filter(|records| (2..=RECORDS_MAX).contains(records))?;
        Some((count.parse().ok()?, records))
    };
    read().ok_or_else(|| "expected N:RECORDS, such as 1:1000000".into())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0..=1e6, "changes a second")
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

    /// For ten zones.
    fn arguments(words: &str) -> Arguments {
        let given = ["serve", "127.0.0.1:5300", "--count", "10"];
        CommandLine::parse_from(given.into_iter().chain(words.split_whitespace())).arguments
    }

    #[test]
    fn an_option_without_effect_is_refused() {
        for (words, expected) in [
            ("", None),
            ("--client-ca a.pem", Some("no effect without TLS")),
            ("--certificate a.pem --key a.key", Some("no effect without TLS")),
            ("--client-ca a.pem --transport tcp,xot", None),
            ("--certificate a.pem --key a.key --transport xoq", None),
            ("--quic-congestion cubic --transport xot", Some("no effect without QUIC")),
            ("--quic-window-bytes 8192", Some("no effect without QUIC")),
            ("--quic-congestion cubic --transport xoq", None),
            ("--quic-window-bytes 8192 --transport tcp,xoq", None),
            ("--fault close-after=2", None),
            ("--fault close-after=2 --transport xoq", Some("leave xoq out")),
            ("--fault refused-after=2 --transport tcp,xoq", Some("leave xoq out")),
            ("--fault servfail-after=2 --transport tcp,xoq", Some("leave xoq out")),
            ("--fault endless --fault slow=1ms --transport xoq", Some("leave xoq out")),
            ("--fault cut-after=2 --transport xoq", None),
            ("--change-records 2", None),
            ("--change-records 2 --changes-of catalog", Some("--change-records has no effect")),
            ("--change-records 0 --changes-of catalog", Some("--change-records has no effect")),
            ("--first-member 1 --changes-of zones", Some("--first-member has no effect")),
            ("--first-member 8 --changes-of catalog", None),
            ("--first-member 9 --changes-of catalog", Some("fewer than two members")),
            ("--fault tsig-missing", Some("need a key")),
            ("--fault endless --fault tsig-wrong", Some("need a key")),
            ("--fault tsig-wrong --tsig hmac-sha256:a:c2VjcmV0", None),
            ("--catalog z000001.example", Some("also the name of a zone")),
            ("--catalog z000001.other", None),
        ] {
            let found = arguments(words).primary(0).err().map(|failure| failure.sentence);
            assert_eq!(found.is_some(), expected.is_some(), "{words}: {found:?}");
            assert!(found.is_none_or(|sentence| sentence.contains(expected.unwrap())), "{words}");
        }
    }

    #[test]
    fn the_zones_are_as_asked_for() {
        let shape = |words: &str| arguments(words).primary(0).unwrap().shape;
        let plain = shape("");
        assert_eq!(
            (&*plain.suffix, &*plain.catalog),
            (&names::wire("example")[..], &names::wire("catalog.example")[..])
        );
        assert_eq!((plain.schema, plain.count, plain.records, plain.large, plain.large_records), (b'2', 10, 4, 0, 0));
        let Timers { refresh_s, retry_s, expire_s, minimum_s } = plain.timers;
        assert_eq!([refresh_s, retry_s, expire_s, minimum_s], [3_600, 900, 1_209_600, 300]);
        assert_eq!((plain.changes.before, plain.changes.records, plain.changes.kept), (0, 1, 100));
        assert_eq!((shape("--refresh 9s").timers.retry_s, shape("--catalog-schema 1").schema), (3, b'1'));
        let kept =
            ["--changes-of catalog", "--changes-of catalog --changes-kept 7"].map(|words| shape(words).changes.kept);
        assert_eq!(kept, [10_000, 7]);
        let other = shape("--suffix a.test --catalog b.test --large 3:50");
        assert_eq!((&*other.catalog, other.large, other.large_records), (&names::wire("b.test")[..], 3, 50));
    }

    #[test]
    fn messages_and_signatures_are_as_asked_for() {
        let cut = |words: &str| {
            let Cut { bytes_max, records_max, order, signed_every } = arguments(words).primary(0).unwrap().cut;
            (bytes_max, records_max, order, signed_every)
        };
        assert_eq!(cut(""), (65_535, u16::MAX, Order::InOrder, 1));
        let words = "--message-bytes 512 --records-per-message 3 --order interleaved --tsig hmac-sha256:a:c2VjcmV0 \
                     --tsig-every 5";
        assert_eq!(cut(words), (512, 3, Order::Interleaved, 5));
        assert_eq!(arguments("--changes-per-s 1").changes_delay_ns(), None);
        assert_eq!(arguments("--changes-per-s 1 --changes-on-signal").changes_delay_ns(), Some(0));
    }

    #[test]
    fn secondaries_to_notify_are_addresses_and_ranges() {
        let notified = |words: &str| arguments(words).notified().map_err(|failure| failure.sentence);
        let found = notified("--notify 127.0.0.9:54 --notify 127.0.0.1-127.0.0.3 --notify 127.0.0.8");
        let expected = ["127.0.0.9:54", "127.0.0.1:53", "127.0.0.2:53", "127.0.0.3:53", "127.0.0.8:53"];
        assert_eq!(found, Ok(expected.map(|address| address.parse().unwrap()).into()));
        assert_eq!(notified("--notify 127.0.0.0-127.0.255.255").map(|all| all.len()), Ok(NOTIFIED_MAX));
        let one_more = notified("--notify 127.0.0.0-127.0.255.255 --notify 127.1.0.1");
        assert!(one_more.unwrap_err().contains("more than 65,536 addresses"));
        assert!(notified("--notify ::1").unwrap_err().contains("another family"));
    }

    #[test]
    fn large_zones_have_two_records_at_least() {
        assert_eq!([parse_large("1:2"), parse_large("0:1000")], [Ok((1, 2)), Ok((0, 1_000))]);
        assert_eq!(parse_large(&format!("7:{RECORDS_MAX}")), Ok((7, RECORDS_MAX)));
        let beyond = format!("7:{}", RECORDS_MAX + 1);
        assert!(["1:1", "1", "x:2", "1:x", ":", &beyond].iter().all(|text| parse_large(text).is_err()));
        assert_eq!([parse_rate("0"), parse_rate("1e6")], [Ok(0.0), Ok(1e6)]);
        assert!(["-1", "1.1e6", "x"].iter().all(|text| parse_rate(text).is_err()));
    }
}
