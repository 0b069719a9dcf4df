//! Sets up what a replay needs, and has the threads work through the stream.

use std::{
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
};

use super::{
    Arguments,
    arguments::{PortChoice, Retransmissions},
    classes::{Class, TransportChoice},
    local,
    read_ahead::{MESSAGE_BYTES_MAX, Selection, Skipped, read_ahead},
    transports::Transports,
};
use crate::{
    base::{clock, failure::Failure, open_files, output, stop::INTERRUPTED, target, units::nanoseconds},
    dns::stream::{Header, StreamReader},
    load::{
        LoadError,
        arrivals::{Model, Order, Period},
        captured::{self, Captured},
        classes::Classes,
        client_totals::ClientTotals,
        in_flight::{self, InFlight},
        interval_stats::IntervalStats,
        record::FILES,
        segment::{ClientAddresses, Part},
        source::Source,
        start::say_ready,
        stream,
        summary::{Replayed, Summary},
        team::{self, Supervision, Team, Tools},
        transport::Transport,
        udp::{Pool, Udp},
    },
    net::{connection::Close, tls::DOT},
    stats::format::grouped,
};

/// Replays the stream.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    if let Some(folder) = &arguments.out {
        output::check_folder(folder, &FILES, &[Some(&arguments.stream)])?;
    }
    let header = *StreamReader::open(&arguments.stream)?.header();
    arguments.check(&header, authority)?;
    if let Some(prefix) = arguments.clients_from {
        local::check(prefix, arguments.instrument.segment.clients(header.clients))?;
    }
    let classes = arguments.classes()?;
    let connections = if has_connections(&classes) { 2 * arguments.connections } else { 0 };
    open_files::allow(u64::from(arguments.ports + connections), "--ports or --connections")?;
    let supervision = Supervision::start(&arguments.instrument, arguments.timeout)?;
    let (reporter, skipped) = (supervision.reporter, Arc::new(Skipped::default()));
    let mut team = equip(arguments, &classes, &header, &skipped, supervision)?;
    reporter.say(|| opening(arguments, &header));
    let cpu_ns = clock::process_cpu_ns();
    if team.is_led() {
        say_ready(arguments.instrument.segment)?;
    }
    let start_ns = team.only_start_ns()?;
    let model = Model::Stream { qps: arguments.mean_qps(&header) };
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

/// Two threads for each part of the clients: one that reads and one that sends.
fn equip(
    arguments: &Arguments,
    classes: &[Class],
    header: &Header,
    skipped: &Arc<Skipped>,
    mut supervision: Supervision,
) -> Result<Team, Failure> {
    let (ports, table) = arguments.ports(header)?;
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
        let (mut sender, receiver) = captured::channel();
        let read = move |_| Ok(read_ahead(stream, &selection, &skipped, &mut sender)?);
        supervision.readers.spawn("stream", read)?;
        sources.push(Captured::new(receiver, MESSAGE_BYTES_MAX));
    }
    let mut sources = sources.into_iter();
    let connections =
        if has_connections(classes) { (arguments.connections / arguments.threads).max(1) as usize } else { 0 };
    let tools = |part| {
        let settings = in_flight::Settings {
            source: Source::Captured(sources.next().expect("one for each thread")),
            signer: None,
            timeout_ns,
            clients: ports,
            connections: 2 * connections,
            asks_again: connections > 0,
            flows: if keeps_port { clients } else { 0 },
            table,
        };
        let totals = ClientTotals::new(clients, arguments.out.is_some()).with_classes(members.clone());
        let interval_stats = IntervalStats::with_totals(nanoseconds(arguments.instrument.interval), totals);
        let mut in_flight = InFlight::new(settings, interval_stats);
        in_flight.rows = arguments.instrument.rows(part, 0);
        let addresses = ClientAddresses { prefix: arguments.clients_from, segment };
        let pool = Pool { ports, addresses, keeps_port };
        let udp = Udp::open_pool(arguments.server(), pool, in_flight.bytes_max())?;
        let transport: Box<dyn Transport> = match connections {
            0 => Box::new(udp),
            _ => {
                let many = stream::Many { addresses, classes: members.clone(), first: ports };
                Box::new(with_connections(arguments, classes, udp, many, connections, in_flight.bytes_max())?)
            }
        };
        Ok(Tools { in_flight, transport, order: Order { next: 0, count: 1 } })
    };
    // No client has counts of its own in each interval.
    let settings =
        team::Settings { segment, first_client: 0, timeout_ns, wants_real_time: arguments.instrument.real_time };
    Team::start(vec![0; threads], settings, supervision, tools)
}

/// Whether any client may have one.
fn has_connections(classes: &[Class]) -> bool {
    classes.iter().any(|class| class.transport != TransportChoice::Udp)
}

/// UDP, TCP and DoT, whose places in the table of queries in flight stand in this order.
fn with_connections(
    arguments: &Arguments,
    classes: &[Class],
    udp: Udp,
    many: stream::Many,
    connections: usize,
    bytes_max: usize,
) -> Result<Transports, LoadError> {
    let open = |server, many, tls| {
        let settings = stream::Settings {
            tls,
            classes: classes.iter().map(Class::usage).collect(),
            burst: 1,
            close: Close::Fin,
            bytes_max,
            timeout_ns: nanoseconds(arguments.timeout),
        };
        stream::Stream::open_many(server, many, connections, settings)
    };
    let behind = stream::Many { first: many.first + connections, ..many.clone() };
    let tcp = open(arguments.server(), many, None)?;
    let dot = open(arguments.dot_server(), behind, Some(DOT))?;
    Transports::new(udp, tcp, dot).map_err(LoadError::Wait)
}

/// What is about to happen, for people.
fn opening(arguments: &Arguments, header: &Header) -> String {
    let from = match arguments.clients_from {
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
