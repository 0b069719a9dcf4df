//! `replay play`: captured queries against a server, each at its time and from its own client.
//!
//! It is `load` with other arrivals: [`read_ahead`] brings the queries, and many clients share the sockets. All that
//! sends, receives, matches, counts and writes is the same.

mod arguments;
mod read_ahead;
mod transports;

use std::{
    fs,
    net::{IpAddr, Ipv6Addr},
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
};

use dnsrig_core::{
    clock, failure::Failure, open_files, output, stats::grouped, stop::INTERRUPTED, target, units::nanoseconds,
};
use dnsrig_net::{
    connection::Close,
    prefix::Prefix,
    quic::Congestion,
    source as source_address,
    tls::{self, DOH, DOT},
};

pub use self::arguments::Arguments;
use self::{
    arguments::{PortChoice, Retransmissions},
    read_ahead::{MESSAGE_BYTES_MAX, Selection, Skipped, read_ahead},
    transports::{Connected, Connecting, Transports},
};
use super::{
    announced::Announced,
    arrivals::{Model, Order, Period},
    classes::{Class, Classes},
    client_totals::ClientTotals,
    doq::{self, Doq},
    hold::HeldAs,
    in_flight::{self, InFlight},
    interval_stats::IntervalStats,
    led::Starts,
    record::FILES,
    segment::{ClientAddresses, Part},
    source::{self, Captured, Source},
    summary::{Replayed, Summary},
    tcp::{self, Tcp, many::ManyClients},
    team::{Supervision, Team, TeamSettings, ThreadSetup},
    transport::{Transport, cannot_wait},
    udp::{Pool, Udp},
};
use crate::query_stream::{Header, StreamReader, Transport as Kind};

/// Replays the captured queries.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    if let Some(folder) = &arguments.out {
        output::check_folder(folder, &FILES, &[Some(&arguments.stream)])?;
    }
    let header = *StreamReader::open(&arguments.stream)?.header();
    arguments.check(&header, authority)?;
    if let Some(prefix) = arguments.source_prefix() {
        check_is_local(prefix, arguments.instrument.segment.clients(header.clients))?;
    }
    let classes = arguments.classes()?;
    let connections = with_connections(&classes).len() as u64 * u64::from(arguments.connections);
    open_files::allow(u64::from(arguments.ports) + connections, "--ports or --connections")?;
    let supervision = Supervision::start(&arguments.instrument, arguments.timeout)?;
    let starts = Starts::new(&arguments.instrument, &supervision.stop)?;
    let (reporter, skipped) = (supervision.reporter, Arc::new(Skipped::default()));
    let mut team = start_team(arguments, &classes, &header, &skipped, supervision)?;
    reporter.say(|| opening(arguments, &header));
    let cpu_ns = clock::process_cpu_ns();
    starts.emit_ready()?;
    let start_ns = starts.only_start_ns(&mut team)?;
    let model = Model::Captured { qps: arguments.mean_qps(&header) };
    let period = Period { model, start_ns, end_ns: start_ns + arguments.sending_ns(&header), seed: 0 };
    let interval_ns = nanoseconds(arguments.instrument.interval);
    let summary = Summary {
        segment: arguments.instrument.segment.if_shared(),
        interval_s: arguments.instrument.interval.as_secs_f64(),
        timeout_ns: nanoseconds(arguments.timeout),
        clients: arguments.instrument.segment.clients(header.clients) as usize,
        threads: arguments.threads as usize,
        ..Summary::default()
    };
    let mut summary = team.measure(period, interval_ns, arguments.out.as_deref(), summary)?;
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    for (result, class) in summary.classes.iter_mut().zip(classes) {
        result.asked = Some(class);
    }
    summary.replayed = Some(Replayed {
        stream: header,
        speed: arguments.speed(),
        transport: arguments.transport,
        ports: arguments.ports as usize,
        retransmissions_skipped: skipped.retransmissions.load(Ordering::Relaxed),
        too_long_skipped: skipped.too_long.load(Ordering::Relaxed),
    });
    reporter.summary(&summary, arguments.server(), arguments.out.as_deref())?;
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Starts two threads for each part of the clients: one that reads and one that sends.
fn start_team(
    arguments: &Arguments,
    classes: &[Class],
    header: &Header,
    skipped: &Arc<Skipped>,
    mut supervision: Supervision,
) -> Result<Team, Failure> {
    let (ports, table) = arguments.ports(header)?;
    let announced = arguments.announced(header)?;
    let keeps_port = arguments.port == PortChoice::Kept;
    let clients = header.clients as usize;
    let timeout_ns = nanoseconds(arguments.timeout);
    let (speed, retransmissions) = (arguments.speed(), arguments.retransmissions == Retransmissions::AsCaptured);
    let shares: Vec<_> = classes[1..].iter().map(|class| class.share).collect();
    let members = Classes::by_shares(clients, &shares, arguments.class_seed);
    let transports: Vec<_> = classes.iter().map(|class| class.transport.for_all()).collect();
    let mut sources = Vec::new();
    let (threads, segment) = (arguments.threads as usize, arguments.instrument.segment);
    for thread in 0..threads {
        let (part, classes, transports) = (Part { thread, threads, segment }, members.clone(), transports.clone());
        let selection = Selection { part, speed, retransmissions, classes, transports };
        let (stream, skipped) = (StreamReader::open(&arguments.stream)?, skipped.clone());
        let (mut sender, receiver) = source::channel();
        let read = move |_| read_ahead(stream, &selection, &skipped, &mut sender);
        supervision.readers.spawn("stream", read)?;
        sources.push(Captured::new(receiver, MESSAGE_BYTES_MAX));
    }
    let mut sources = sources.into_iter();
    let (kinds, slots) = (with_connections(classes), (arguments.connections / arguments.threads).max(1) as usize);
    let set_up = |part| {
        let totals = ClientTotals::new(clients, arguments.out.is_some()).with_classes(members.clone());
        let in_flight = InFlight::new(in_flight::Settings {
            source: Source::Captured(sources.next().expect("one for each thread")),
            signer: None,
            timeout_ns,
            clients: ports,
            connections: kinds.len() * slots,
            asks_again: kinds.contains(&Kind::Tcp),
            flows: if keeps_port { clients } else { 0 },
            table,
            interval_stats: IntervalStats::with_totals(nanoseconds(arguments.instrument.interval), totals),
            rows: arguments.instrument.rows(part, 0),
        });
        let addresses = ClientAddresses { prefix: arguments.source_prefix(), segment };
        let pool = Pool { ports, addresses, keeps_port };
        let announced = announced.clone().map(|announced| (announced, 0));
        let udp = Udp::open_pool(arguments.server(), pool, in_flight.bytes_max())?;
        let udp = udp.announcing(announced.clone(), in_flight.bytes_max());
        let connected = kinds.iter().enumerate().map(|(place, kind)| {
            let many = ManyClients { addresses, classes: members.clone(), first: ports + place * slots };
            Ok((*kind, connect(arguments, classes, *kind, &announced, many, slots, in_flight.bytes_max())?))
        });
        let connected: Vec<Connected> = connected.collect::<Result<_, Failure>>()?;
        let transport: Box<dyn Transport> = match connected.is_empty() {
            true => Box::new(udp),
            false => Box::new(Transports::new(udp, connected).map_err(cannot_wait)?),
        };
        Ok(ThreadSetup { in_flight, transport, order: Order { next: 0, count: 1 } })
    };
    // No client has counts of its own in each interval.
    let settings =
        TeamSettings { segment, first_client: 0, timeout_ns, wants_real_time: arguments.instrument.real_time };
    Team::start(vec![0; threads], settings, supervision, set_up)
}

/// The transports with connections that clients can need. Their connections have numbers in this order in the table of
/// queries in flight.
fn with_connections(classes: &[Class]) -> Vec<Kind> {
    let is_needed = |kind: &Kind| classes.iter().any(|class| class.transport.for_all().is_none_or(|all| all == *kind));
    [Kind::Tcp, Kind::Dot, Kind::Doh, Kind::Doq].into_iter().filter(is_needed).collect()
}

/// Opens a transport with connections.
fn connect(
    arguments: &Arguments,
    classes: &[Class],
    kind: Kind,
    announced: &Option<(Announced, u32)>,
    many: ManyClients,
    slots: usize,
    bytes_max: usize,
) -> Result<Box<dyn Connecting>, Failure> {
    let (server, timeout_ns, burst) = (arguments.server_over(kind), nanoseconds(arguments.timeout), 1);
    let classes = classes.iter().map(|class| class.usage(kind)).collect();
    let over = |protocol| tls::Settings { protocol, ..tls::Settings::default() };
    let (tls, http) = match kind {
        Kind::Udp | Kind::Tcp => (None, None),
        Kind::Dot => (Some(over(DOT)), None),
        Kind::Doh => (Some(tls::Settings { alpn_required: true, ..over(DOH) }), Some(Arc::new(arguments.requests()))),
        Kind::Doq => {
            let (tls, congestion) = (tls::Settings::default(), Congestion::default());
            let settings = doq::Settings { tls, classes, congestion, burst, bytes_max, timeout_ns };
            return Ok(Box::new(Doq::open_many(server, many, slots, settings)?));
        }
    };
    let announced = announced.as_ref().map(|(announced, first)| (announced.to(server), *first));
    let (close, held_as) = (Close::Fin, HeldAs::Idle);
    let settings = tcp::Settings { tls, http, announced, classes, burst, close, held_as, bytes_max, timeout_ns };
    Ok(Box::new(Tcp::open_many(server, many, slots, settings)?))
}

/// The text for people before the replay.
fn opening(arguments: &Arguments, header: &Header) -> String {
    let from = match arguments.source_prefix() {
        _ if arguments.proxy_protocol => "this host's address, and are announced with the PROXY protocol".into(),
        Some(prefix) => format!("addresses of {prefix}"),
        None => "this host's address, all the same one: name --clients-from for one each".into(),
    };
    let [whole_s, sent_s] = [header.duration_ns as f64 / arguments.speed(), arguments.sending_ns(header) as f64]
        .map(|ns| (ns / 1e8).round() / 10.0);
    let mut pace = format!("{whole_s} s");
    if whole_s >= 1.0 {
        pace += &format!(", {} a second on average", grouped(arguments.mean_qps(header) as u64));
    }
    if sent_s < whole_s {
        pace += &format!(", of which the first {sent_s} s are sent");
    }
    format!(
        "{}: {} queries of {} clients in {pace}; Ctrl-C ends it early\n\
         Clients send from {from}; ports: {}\n\
         A line an interval, as soon as each of its queries is answered or given up after {} s:\n",
        arguments.server(),
        grouped(header.queries),
        grouped(header.clients),
        arguments.ports,
        arguments.timeout.as_secs_f64(),
    )
}

/// The file with all IPv6 routes, also the routes of addresses. Without IPv6 there is no such file.
const IPV6_ROUTES: &str = "/proc/net/ipv6_route";

/// The flag of a route to this host itself (`linux/ipv6_route.h`).
const RTF_LOCAL: u32 = 0x8000_0000;

/// Checks that this host has the addresses of the first and the last client: only then are answers received.
fn check_is_local(prefix: Prefix, clients: u64) -> Result<(), Failure> {
    for number in [0, clients.saturating_sub(1) as u32] {
        let Some(address) = prefix.client(number) else { continue };
        let is_local = match address {
            IpAddr::V4(address) => !source_address::is_missing(address.into()),
            // A socket can be bound to addresses of devices only, not to addresses of local routes.
            IpAddr::V6(address) => fs::read_to_string(IPV6_ROUTES).map_or(true, |routes| is_local_v6(&routes, address)),
        };
        if !is_local {
            return Err(Failure::new(
                format!("this host does not have {address}, from which a client of --clients-from {prefix} sends"),
                format!(
                    "run, as root on the host that replays: `ip route add local {prefix} dev lo`. The server must have a route there"
                ),
            ));
        }
    }
    Ok(())
}

/// Whether a local route leads to `address`, whatever its table.
fn is_local_v6(routes: &str, address: Ipv6Addr) -> bool {
    routes.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [network, length, .., flags, _] = words[..] else { return false };
        let number = |text| u32::from_str_radix(text, 16).ok();
        let (Ok(network), Some(length), Some(flags)) =
            (u128::from_str_radix(network, 16), number(length), number(flags))
        else {
            return false;
        };
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0);
        flags & RTF_LOCAL != 0 && address.to_bits() & mask == network & mask
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_route_of_ipv6_makes_its_addresses_this_hosts() {
        let none = "00000000000000000000000000000000";
        let lines = [
            format!(
                "{none} 00 {none} 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0"
            ),
            format!(
                "20010002000000000000000000000000 30 {none} 00 {none} 00000400 00000001 00000000 80200001       lo"
            ),
            format!(
                "20010003000000000000000000000000 30 {none} 00 {none} 00000400 00000001 00000000 00000001     eth0"
            ),
        ];
        let routes = lines.join("\n");
        for (address, local) in
            [("2001:2::1", true), ("2001:2:0:ffff::1", true), ("2001:2:1::1", false), ("2001:3::1", false)]
        {
            assert_eq!(is_local_v6(&routes, address.parse().unwrap()), local, "{address}");
        }
        assert!(!is_local_v6("zz 30\n\nno route at all", "::1".parse().unwrap()));
    }

    #[derive(Debug, clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        play: Arguments,
    }

    #[test]
    fn the_text_before_a_replay_is_what_it_was() {
        let header = |duration_ns| Header { queries: 10_000, clients: 1_234, duration_ns, ..Header::default() };
        for (words, duration_ns, pace, from) in [
            (
                "",
                10_000_000_000,
                "10 s, 1,000 a second on average",
                "this host's address, all the same one: name --clients-from for one each",
            ),
            (
                "--speed 2 --duration 3s --clients-from 127.1.0.0/16",
                10_000_000_000,
                "5 s, 2,000 a second on average, of which the first 3 s are sent",
                "addresses of 127.1.0.0/16",
            ),
            (
                "--proxy-protocol --duration 1s",
                1_000_000_000,
                "1 s, 10,000 a second on average",
                "this host's address, and are announced with the PROXY protocol",
            ),
            (
                "--proxy-protocol",
                900_000_000,
                "0.9 s",
                "this host's address, and are announced with the PROXY protocol",
            ),
        ] {
            let words = format!("play x.stream --server 127.0.0.1 {words}");
            let line = <CommandLine as clap::Parser>::parse_from(words.split_whitespace());
            let expected = format!(
                "127.0.0.1:53: 10,000 queries of 1,234 clients in {pace}; Ctrl-C ends it early\n\
                 Clients send from {from}; ports: 256\n\
                 A line an interval, as soon as each of its queries is answered or given up after 2 s:\n"
            );
            assert_eq!(opening(&line.play, &header(duration_ns)), expected);
        }
    }
}
