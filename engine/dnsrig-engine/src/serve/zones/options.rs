//! The command line of `serve zones`.

use std::{net::SocketAddr, path::PathBuf};

use clap::ValueEnum;

use super::{
    faults::{self, Fault, Faults},
    names,
    primary::{Concurrent, Cut, Order, Period, Primary},
    records::RECORDS_MAX,
    shape::{Changes, Shape, Timers},
};
use crate::{
    base::{
        failure::Failure,
        target,
        units::{parse_delay, parse_number, parse_refresh_s},
    },
    dns::{catalog::Schema, churn::Churn, dataset::parse_name, tsig::sign::Signer},
    serve::{error::ServeError, shell},
};

/// So many secondaries are told of changes at most.
const NOTIFIED_MAX: usize = 65_536;

/// IXFR goes back so many changes of a zone, or of the catalog, unless told otherwise.
const ZONE_CHANGES_KEPT: u32 = 100;
const CATALOG_CHANGES_KEPT: u32 = 10_000;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChangesOf {
    /// Addresses of one zone after another
    Zones,
    /// The catalog: its members leave and come back
    Catalog,
}

/// How queries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// UDP: SOA queries, and IXFR as far as a SOA answers it
    Udp,
    /// TCP (RFC 5936, RFC 7766)
    Tcp,
    /// Zone transfer over TLS (RFC 9103)
    Xot,
}

/// Be a primary with any number of zones of any size, all computed from a seed, nothing stored.
///
/// It answers AXFR, IXFR and SOA queries, over UDP (SOA alone), TCP and TLS, and lists its zones in a catalog (RFC
/// 9432). Zones are named as by `generate zones`, z000000.SUFFIX, z000001.SUFFIX …, and their records are of the same
/// kinds in the same order: SOA, two NS, A and AAAA of the apex, of www, MX, A and AAAA of mail, TXT, then A of h0, h1
/// … TTLs are an hour. Memory grows with neither the number nor the size of zones.
///
/// With --changes-per-s, one zone in turn gets a new serial and new addresses for some of its records: those with the
/// next numbers, round and round. With --changes-of catalog, members leave the catalog and come back instead, one with
/// each serial: the first --absent changes are removals, from then on members come back and leave alternately; zones
/// that are not listed are still served. What a zone has at a time follows from the time alone. IXFR goes back
/// --changes-kept serials; who asks with an older one gets the whole zone.
///
/// Each change of a zone is told to every --notify (RFC 1996), again each second up to five times until it is answered.
/// Of the catalog the newest version is told, once in --notify-interval at most.
///
/// With --changes-on-signal, changes begin with SIGUSR1 and end for good with SIGUSR2.
///
/// Of queries that a connection sends while its peer reads nothing only so many are taken in; the rest waits in the
/// socket. --concurrent-max counts a transfer from when its query is read until its last message is written.
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `changes-begun`, `changes-ended`
/// (the rows are written), `summary`. It ends by a signal
/// (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a million tiny zones behind a large one, then fetch that:\n  \
    dnsrig serve zones 127.0.0.1:5300 --count 1000000 --records 4 --large 1:10000000\n  \
    dig @127.0.0.1 -p 5300 z000000.example axfr | tail")]
pub struct Arguments {
    /// Where to listen: an IP address and perhaps a port, such as 198.18.0.2, 127.0.0.1:5300 or [::1]:53
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub address: SocketAddr,
    /// How many zones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    count: u32,
    /// How many records a zone, SOA included: 2 is the smallest zone there is
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=RECORDS_MAX))]
    records: u64,
    /// The first N zones have so many records
    #[arg(long, value_name = "N:RECORDS", value_parser = parse_large)]
    large: Option<(u32, u64)>,
    /// The name below which all zones lie
    #[arg(long, value_name = "NAME", default_value = "example", value_parser = parse_name)]
    suffix: String,
    /// The name of the catalog zone [default: catalog.SUFFIX]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    catalog: Option<String>,
    /// The version of the catalog's schema: 2, or 1 for BIND before 9.18.3
    #[arg(long, value_enum, default_value = "2")]
    catalog_schema: Schema,
    /// Another seed gives other addresses
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The serial of a zone that never changed
    #[arg(long, value_name = "N", default_value_t = 1)]
    serial: u32,
    /// The refresh timer of every SOA, and a quarter of it the retry timer
    #[arg(long = "refresh", value_name = "TIME", default_value = "1h", value_parser = parse_refresh_s)]
    refresh_s: u32,
    /// What to listen for
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "udp,tcp")]
    pub transport: Vec<Transport>,
    /// The port for zone transfer over TLS
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub xot_port: u16,
    /// Over TLS, ask clients for a certificate that one of these signed
    #[arg(long, value_name = "PEM")]
    pub client_ca: Option<PathBuf>,
    /// The key with which transfers have to be signed, and other queries may be: ALGORITHM:NAME:SECRET, such as
    /// hmac-sha256:transfer:c2VjcmV0
    #[arg(long, value_name = "ALGORITHM:NAME:SECRET")]
    tsig: Option<String>,
    /// Sign one message in so many, beside the first and the last of a transfer (RFC 8945 allows up to 100)
    #[arg(long, value_name = "N", default_value_t = 1, requires = "tsig", value_parser = clap::value_parser!(u32).range(1..))]
    tsig_every: u32,
    /// A message has at most so many bytes
    #[arg(long, value_name = "N", default_value_t = 65_535, value_parser = clap::value_parser!(u16).range(512..))]
    message_bytes: u16,
    /// And at most so many records [default: as many as fit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    records_per_message: Option<u16>,
    /// In which order a connection's messages leave
    #[arg(long, value_enum, default_value = "in-order")]
    order: Order,
    /// So many changes a second
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_rate)]
    changes_per_s: f64,
    /// What changes
    #[arg(long, value_enum, default_value = "zones")]
    changes_of: ChangesOf,
    /// Members of the catalog before this one, counted from 0, stay in it
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_member: u32,
    /// So many members are missing in the catalog at a time; at most half of those that may
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    absent: u32,
    /// Begin changes with SIGUSR1, and end them with SIGUSR2
    #[arg(long)]
    changes_on_signal: bool,
    /// Begin them so long after the signal
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay, requires = "changes_on_signal")]
    changes_delay: i64,
    /// So many changes of every zone that changes lie behind at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    changes_before: u32,
    /// A change replaces so many records, or as many addresses as the zone has
    #[arg(long, value_name = "N", default_value_t = 1)]
    change_records: u32,
    /// IXFR goes back so many changes of a zone [default: 100; of the catalog 10000]
    #[arg(long, value_name = "N")]
    changes_kept: Option<u32>,
    /// Whom to tell of changes (NOTIFY): may be given several times; port 53 unless given
    #[arg(long, value_name = "ADDRESS[:PORT]|FIRST-LAST", value_parser = parse_notified)]
    notify: Vec<Notified>,
    /// Tell of the catalog at most once in so long
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_delay)]
    pub notify_interval: i64,
    /// Write a row for each change to this file (Arrow IPC stream), as `change` does
    #[arg(long, value_name = "FILE", requires = "changes_per_s")]
    pub out: Option<PathBuf>,
    /// So many transfers at a time on all connections; more are answered with SERVFAIL
    #[arg(long, value_name = "N")]
    concurrent_max: Option<u32>,
    /// Something that is wrong on purpose: servfail-after=N, refused-after=N, close-after=N (transfers of a
    /// connection), cut-after=N (messages of a transfer), slow=TIME (a message), wrong-serial, soa-different,
    /// soa-missing, out-of-zone, tsig-missing, tsig-wrong, wrong-id, endless, truncated, serial-backwards, length-zero,
    /// compression-loop
    #[arg(long, value_name = "KIND", value_parser = faults::parse)]
    pub fault: Vec<Fault>,
    /// Of faults that concern a transfer, have them for one zone in so many: those whose number is a multiple of N
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

    /// The server's nature; changes begin at `start_ns`.
    pub fn primary(&self, start_ns: i64) -> Result<Primary, Failure> {
        let key = self.tsig.as_deref().map(Signer::parse).transpose()?;
        if key.is_none() && self.fault.iter().any(|fault| matches!(fault, Fault::TsigMissing | Fault::TsigWrong)) {
            return Err(ServeError::Arguments(
                "faults of signatures need a key, by --tsig: without one nothing is signed",
            )
            .into());
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

    /// Whom to tell of changes, none of whom we may not send to.
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
            return Err(ServeError::Arguments("--notify names more than 65,536 addresses: name fewer").into());
        }
        if all.iter().any(|one| one.is_ipv4() != self.address.is_ipv4()) {
            return Err(ServeError::Arguments(
                "--notify names an address of another family than the server's: use a server for each family",
            )
            .into());
        }
        for address in &all {
            target::authorise(address.ip(), self.shell.i_am_authorized)?;
        }
        Ok(all)
    }

    fn shape(&self) -> Result<Shape, ServeError> {
        let catalog = self.catalog.clone().unwrap_or_else(|| format!("catalog.{}", self.suffix));
        let (suffix, catalog) = (names::wire(&self.suffix), names::wire(&catalog));
        if names::zone_number(&catalog, &suffix).is_some() {
            return Err(ServeError::Arguments("--catalog is the name of one of the zones: give it another one"));
        }
        let churn = match self.changes_of {
            ChangesOf::Zones => None,
            ChangesOf::Catalog => Some(Churn::new(self.count, self.first_member, self.absent).ok_or(
                ServeError::Arguments("--first-member leaves fewer than two members that could leave and come back: lower it, or raise --count"),
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
