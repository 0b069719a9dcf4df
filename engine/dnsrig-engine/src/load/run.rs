//! Gives the threads one period to work through, or periods of a ramp.

use std::{net::IpAddr, process::ExitCode, sync::Arc};

use super::{
    Arguments, LoadError,
    arguments::{Clients, Instrument, Plan, Segmentation, TransportKind},
    arrivals::{Model, Order},
    human_report::opening,
    in_flight::{self, InFlight},
    interval_stats::IntervalStats,
    queries::QueryArguments,
    record::FILES,
    search,
    segment::Part,
    source::Source,
    start, stream,
    summary::Summary,
    team::{self, Supervision, Team, Tools},
    transport::Transport,
    udp::Udp,
};
use crate::{
    base::{clock, failure::Failure, open_files, output, stop::INTERRUPTED, target, units::nanoseconds},
    net::{source, tls::DOT},
};

/// Puts the load on the server.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    arguments.check()?;
    if let Some(folder) = &arguments.out {
        let QueryArguments { queries, zones, .. } = &arguments.queries;
        output::check_folder(folder, &FILES, &[queries.as_deref(), zones.as_deref()])?;
    }
    source::check(arguments.sources.iter().copied())?;
    let plan = arguments.plan(authority)?;
    let supervision = Supervision::start(&arguments.instrument, arguments.timeout)?;
    let reporter = supervision.reporter;
    let mut team = equip(arguments, plan, supervision)?;
    reporter.say(|| opening(arguments, plan));
    if team.is_led() {
        start::say_ready(arguments.instrument.segment)?;
    }
    let cpu_ns = clock::process_cpu_ns();
    let mut summary = match plan {
        Plan::Once(model) => once(arguments, &mut team, model)?,
        Plan::Ramp(..) if arguments.instrument.segment.number > 1 => search::follow(arguments, &mut team)?,
        Plan::Ramp(limits, settings) => search::lead(arguments, &mut team, limits, settings)?,
    };
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    summary.clients = team.clients.iter().sum();
    summary.threads = team.clients.len();
    reporter.summary(&summary, arguments.server(), arguments.out.as_deref())?;
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The threads, each with its part of the clients.
fn equip(arguments: &Arguments, plan: Plan, supervision: Supervision) -> Result<Team, Failure> {
    let queries = Arc::new(arguments.queries.prepare()?);
    let Clients { of_threads, first: first_client, table } = arguments.clients(plan)?;
    open_files::allow(of_threads.iter().sum::<usize>() as u64, "--clients")?;
    let timeout_ns = nanoseconds(arguments.timeout);
    let tools = |part: Part| {
        let clients = of_threads[part.thread];
        let settings = in_flight::Settings {
            source: Source::Prepared(queries.clone()),
            signer: arguments.queries.signer()?,
            timeout_ns,
            clients,
            connections: 0,
            flows: clients,
            asks_again: false,
            table,
        };
        let interval_stats = IntervalStats::new(0, 1, nanoseconds(arguments.instrument.interval), clients);
        let mut in_flight = InFlight::new(settings, interval_stats);
        let before = of_threads[..part.thread].iter().sum::<usize>() as u32;
        in_flight.rows = arguments.instrument.rows(part, first_client + before);
        let order = Order { next: 0, count: queries.len() as u32 };
        let sources = arguments.sources_of(before as usize, clients);
        let transport = open(arguments, &sources, clients, in_flight.bytes_max())?;
        Ok(Tools { in_flight, transport, order })
    };
    let Instrument { segment, real_time, .. } = arguments.instrument;
    let settings = team::Settings { segment, first_client, timeout_ns, wants_real_time: real_time };
    Team::start(of_threads.clone(), settings, supervision, tools)
}

/// One period by `model`, written down if there is a folder for it.
fn once(arguments: &Arguments, team: &mut Team, model: Model) -> Result<Summary, Failure> {
    let period = arguments.period(model, team.only_start_ns()?);
    let summary = Summary::asked(arguments, period);
    team.measure(period, nanoseconds(arguments.instrument.interval), arguments.out.as_deref(), summary)
}

/// The transport of a thread, whose clients send from `sources`, or from any address.
fn open(
    arguments: &Arguments,
    sources: &[IpAddr],
    clients: usize,
    bytes_max: usize,
) -> Result<Box<dyn Transport>, LoadError> {
    let server = arguments.server();
    let burst = arguments.burst();
    let settings = stream::Settings {
        tls: (arguments.transport == TransportKind::Dot).then_some(DOT),
        classes: vec![stream::Usage {
            per_connection: arguments.queries_per_connection,
            idle_ns: 0,
            resumption: !arguments.no_resumption,
            early_data: false,
        }],
        burst,
        close: arguments.close(),
        bytes_max,
        timeout_ns: nanoseconds(arguments.timeout),
    };
    match arguments.transport {
        TransportKind::Udp => {
            let segmentation = arguments.segmentation == Segmentation::Auto;
            Ok(Box::new(Udp::open(server, sources, clients, bytes_max, segmentation, burst)?))
        }
        TransportKind::Tcp | TransportKind::Dot => stream::open(server, sources, clients, settings),
    }
}
