//! Sets up what a replay needs, and has the threads work through the stream.

use std::{
    process::ExitCode,
    sync::{Arc, atomic::Ordering, mpsc},
};

use super::{
    Arguments,
    arguments::{PortChoice, Retransmissions, TransportChoice},
    local,
    read_ahead::{MESSAGE_BYTES_MAX, Selection, Skipped, read_ahead},
    transports::Transports,
};
use crate::{
    base::{
        clock,
        events::Anchors,
        failure::Failure,
        open_files,
        stop::{INTERRUPTED, Stop},
        target,
        threads::Threads,
        units::nanoseconds,
    },
    dns::stream::{Header, StreamReader},
    load::{
        LoadError,
        arrivals::{Model, Order, Part, Period},
        captured::{CHUNKS_AHEAD, Captured},
        client_totals::ClientTotals,
        in_flight::{self, InFlight, MessageId},
        interval_stats::IntervalStats,
        report::Reporter,
        source::Source,
        stream,
        summary::{Replayed, Summary},
        team::{HEAD_START_NS, Supervision, Team, Tools},
        transport::Transport,
        udp::{Pool, Udp},
    },
    net::{connection::Close, tls::DOT},
    stats::format::grouped,
};

/// Replays the stream.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    let header = *StreamReader::open(&arguments.stream)?.header();
    arguments.check(&header, authority)?;
    if let Some(prefix) = arguments.clients_from {
        local::check(prefix, header.clients)?;
    }
    let connections = if arguments.transport == TransportChoice::Udp { 0 } else { 2 * arguments.connections };
    open_files::allow(u64::from(arguments.ports + connections), "--ports or --connections")?;
    let stop = Stop::new(arguments.instrument.until_eof)?;
    let reporter = Reporter::find(arguments.instrument.json, nanoseconds(arguments.timeout_s));
    let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
    let skipped = Arc::new(Skipped::default());
    let supervision = Supervision { stop, reporter, anchors, readers: Threads::new()? };
    let mut team = start(arguments, &header, &skipped, supervision)?;
    reporter.say(|| opening(arguments, &header));
    let cpu_ns = clock::process_cpu_ns();
    let start_ns = clock::monotonic_ns() + HEAD_START_NS;
    let model = Model::Stream { qps: arguments.mean_qps(&header) };
    let period = Period { model, start_ns, end_ns: start_ns + arguments.sending_ns(&header), seed: 0 };
    let interval_ns = nanoseconds(arguments.instrument.interval_s);
    let summary = Summary {
        interval_s: arguments.instrument.interval_s.as_secs_f64(),
        timeout_ns: nanoseconds(arguments.timeout_s),
        clients: header.clients as usize,
        threads: arguments.threads as usize,
        ..Summary::default()
    };
    let mut summary = team.measure(period, interval_ns, arguments.out.as_deref(), summary)?;
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    summary.replayed = Some(Replayed {
        stream: header,
        speed: arguments.speed(),
        transport: arguments.transport,
        ports: arguments.ports as usize,
        retransmissions_skipped: skipped.retransmissions.load(Ordering::Relaxed),
        too_long_skipped: skipped.too_long.load(Ordering::Relaxed),
    });
    reporter.summary(&summary, arguments.server())?;
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Two threads for each part of the clients: one that reads and one that sends.
fn start(
    arguments: &Arguments,
    header: &Header,
    skipped: &Arc<Skipped>,
    mut supervision: Supervision,
) -> Result<Team, Failure> {
    let (ports, table) = arguments.ports(header)?;
    let keeps_port = arguments.port == PortChoice::Kept;
    let clients = header.clients as usize;
    let timeout_ns = nanoseconds(arguments.timeout_s);
    let (speed, retransmissions) = (arguments.speed(), arguments.retransmissions == Retransmissions::AsCaptured);
    let mut sources = Vec::new();
    let threads = arguments.threads as usize;
    for thread in 0..threads {
        let transport = arguments.transport.for_all();
        let selection = Selection { part: Part { thread, threads }, speed, retransmissions, transport };
        let (stream, skipped) = (StreamReader::open(&arguments.stream)?, skipped.clone());
        let (taker, ahead) = mpsc::sync_channel(CHUNKS_AHEAD);
        let (give_back, spare) = mpsc::channel();
        let read = move |_| Ok(read_ahead(stream, selection, &skipped, &taker, &spare)?);
        supervision.readers.spawn("stream", read)?;
        sources.push(Captured::new(ahead, give_back, MESSAGE_BYTES_MAX));
    }
    let mut sources = sources.into_iter();
    let connections = match arguments.transport {
        TransportChoice::Udp => 0,
        _ => (arguments.connections / arguments.threads).max(1) as usize,
    };
    let equip = |_| {
        let settings = in_flight::Settings {
            source: Source::Captured(sources.next().expect("one for each thread")),
            signer: None,
            message_id: MessageId::Handle,
            timeout_ns,
            clients: ports,
            connections: 2 * connections,
            asks_again: connections > 0,
            flows: if keeps_port { clients } else { 0 },
            table,
        };
        let totals = ClientTotals::new(clients, arguments.out.is_some());
        let interval_stats = IntervalStats::with_totals(nanoseconds(arguments.instrument.interval_s), totals);
        let in_flight = InFlight::new(settings, interval_stats);
        let pool = Pool { ports, clients_from: arguments.clients_from, keeps_port };
        let udp = Udp::open_pool(arguments.server(), pool, in_flight.bytes_max())?;
        let transport: Box<dyn Transport> = match connections {
            0 => Box::new(udp),
            _ => Box::new(with_connections(arguments, udp, ports, connections, in_flight.bytes_max())?),
        };
        Ok(Tools { in_flight, transport, order: Order { next: 0, count: 1 } })
    };
    // No client has counts of its own in each interval.
    Team::start(vec![0; threads], (timeout_ns, arguments.instrument.real_time), supervision, equip)
}

/// UDP, TCP and DoT, whose places in the table of queries in flight stand in this order.
fn with_connections(
    arguments: &Arguments,
    udp: Udp,
    ports: usize,
    connections: usize,
    bytes_max: usize,
) -> Result<Transports, LoadError> {
    let open = |server, first, tls| {
        let settings = stream::Settings {
            tls,
            queries_per_connection: 0,
            idle_ns: nanoseconds(arguments.idle_timeout_s),
            burst: 1,
            resumption: true,
            close: Close::Fin,
            bytes_max,
            timeout_ns: nanoseconds(arguments.timeout_s),
        };
        let many = stream::Many { clients_from: arguments.clients_from, first };
        stream::Stream::open_many(server, many, connections, settings)
    };
    let tcp = open(arguments.server(), ports, None)?;
    let dot = open(arguments.dot_server(), ports + connections, Some(DOT))?;
    Transports::new(udp, tcp, dot).map_err(LoadError::Wait)
}

/// What is about to happen, for people.
fn opening(arguments: &Arguments, header: &Header) -> String {
    let from = match arguments.clients_from {
        Some(prefix) => format!("addresses of {prefix}"),
        None => "this host's address, all the same one: name --clients-from for one each".into(),
    };
    format!(
        "{}: {} queries of {} clients in {:.1} s, {} a second on average; Ctrl-C ends it early\n\
         Clients send from {from}; ports: {}\n\
         A line an interval, as soon as each of its queries is answered or given up after {} s:\n",
        arguments.server(),
        grouped(header.queries),
        grouped(header.clients),
        arguments.sending_ns(header) as f64 / 1e9,
        grouped(arguments.mean_qps(header) as u64),
        arguments.ports,
        arguments.timeout_s.as_secs_f64(),
    )
}
