//! Gives the threads one period to work through, or periods of a ramp.

use std::{process::ExitCode, sync::Arc, thread, time::Duration};

use super::{
    Arguments, LoadError,
    arguments::{Plan, Segmentation, TransportKind},
    arrivals::{Model, Order, Part, Period},
    human_report::opening,
    in_flight::{self, InFlight, MessageId},
    interval_stats::IntervalStats,
    ramp::{Limits, Search, Settings},
    report::Reporter,
    source::Source,
    stream,
    summary::{Step, Summary},
    team::{HEAD_START_NS, Outcome, Supervision, Team, Tools},
    transport::Transport,
    udp::Udp,
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
    net::tls::DOT,
    stats::histogram::{Distribution, percentile},
};

/// Between two rates of a ramp the server's queues run empty.
const RAMP_PAUSE_NS: i64 = 100_000_000;

/// Of the queries due, the instrument must send this share in time for a step to say something of the server.
const SENT_SHARE_MIN: f64 = 0.99;

/// Puts the load on the server.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    arguments.check()?;
    if arguments.instrument.until_eof && arguments.queries.reads_standard_input() {
        return Err(
            LoadError::Arguments("--until-eof and queries from standard input exclude each other".into()).into()
        );
    }
    let plan = arguments.plan(authority)?;
    let stop = Stop::new(arguments.instrument.until_eof)?;
    let reporter = Reporter::find(arguments.instrument.json, nanoseconds(arguments.timeout_s));
    let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
    let readers = Threads::new()?;
    let mut team = start(arguments, plan, Supervision { stop, reporter, anchors, readers })?;
    reporter.say(|| opening(arguments, plan));
    let cpu_ns = clock::process_cpu_ns();
    let mut summary = match plan {
        Plan::Once(model) => once(arguments, &mut team, model)?,
        Plan::Ramp(limits, settings) => ramp(arguments, &mut team, limits, settings)?,
    };
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    summary.clients = team.clients.iter().sum();
    summary.threads = team.clients.len();
    reporter.summary(&summary, arguments.server())?;
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The threads, each with its part of the clients.
fn start(arguments: &Arguments, plan: Plan, supervision: Supervision) -> Result<Team, Failure> {
    let queries = Arc::new(arguments.queries.prepare()?);
    let (clients, table) = arguments.clients(plan)?;
    open_files::allow(clients.iter().sum::<usize>() as u64, "--clients")?;
    let timeout_ns = nanoseconds(arguments.timeout_s);
    let equip = |part: Part| {
        let clients = clients[part.thread];
        let settings = in_flight::Settings {
            source: Source::Prepared(queries.clone()),
            signer: arguments.queries.signer()?,
            message_id: MessageId::Handle,
            timeout_ns,
            clients,
            connections: 0,
            flows: clients,
            asks_again: false,
            table,
        };
        let interval_stats = IntervalStats::new(0, 1, nanoseconds(arguments.instrument.interval_s), clients);
        let in_flight = InFlight::new(settings, interval_stats);
        let count = queries.len() as u32;
        let order = Order { next: count / part.threads as u32 * part.thread as u32, count };
        let transport = open(arguments, clients, in_flight.bytes_max())?;
        Ok(Tools { in_flight, transport, order })
    };
    Team::start(clients.clone(), (timeout_ns, arguments.instrument.real_time), supervision, equip)
}

/// One period by `model`, written down if there is a folder for it.
fn once(arguments: &Arguments, team: &mut Team, model: Model) -> Result<Summary, Failure> {
    let period = period(model, arguments);
    let summary = empty_summary(arguments, period);
    team.measure(period, nanoseconds(arguments.instrument.interval_s), arguments.out.as_deref(), summary)
}

/// Periods of rising and falling rates, until the highest that holds is known.
fn ramp(arguments: &Arguments, team: &mut Team, limits: Limits, settings: Settings) -> Result<Summary, Failure> {
    let mut search = Search::new(settings);
    let mut all = Outcome::default();
    let mut steps = Vec::new();
    while let Some((qps, repeat)) = search.next() {
        let period = period(Model::Rate { qps, poisson: false }, arguments);
        let outcome = team.work(period, |_| Ok(()))?;
        if team.is_stopping() {
            break;
        }
        let step = step(&outcome, period, limits, qps, repeat);
        if step.instrument_failed {
            search.instrument_failed()
        } else {
            search.tried(step.holds)
        }
        team.reporter().step(&step)?;
        steps.push(step);
        all.counts.add(&outcome.counts);
        all.series.add(&outcome.series);
        all.connections = outcome.connections;
        thread::sleep(Duration::from_nanos(RAMP_PAUSE_NS.unsigned_abs()));
    }
    let mut summary = empty_summary(arguments, period(Model::Outstanding(1), arguments));
    summary.model = "ramp";
    summary.fill(&all.counts, &all.series);
    summary.connections = all.connections();
    summary.busy_share = steps.iter().map(|step: &Step| step.busy_share).fold(0.0, f64::max);
    summary.capacity_qps = search.capacity_qps();
    summary.capacity_is_lower_bound = search.is_lower_bound();
    summary.steps = steps;
    summary.interrupted = team.is_stopping();
    Ok(summary)
}

/// Judges one rate.
fn step(outcome: &Outcome, period: Period, limits: Limits, rate_qps: f64, repeat: u32) -> Step {
    let Outcome { counts, series, .. } = outcome;
    let duration_s = (period.end_ns - period.start_ns) as f64 / 1e9;
    let sending_s = (outcome.sending_ns as f64 / 1e9).max(duration_s);
    let latency = Distribution::from(&series.due);
    let loss_share = counts.unanswered() as f64 / counts.sent.max(1) as f64;
    let in_time = percentile(&series.due, limits.percentile) <= limits.latency_ns;
    let sent_qps = counts.sent as f64 / sending_s;
    let lag_ns = percentile(&series.lag, 99.0);
    // A full table of ids, too: with answers missing for a whole timeout, that is the server's doing.
    let late = sent_qps < SENT_SHARE_MIN * rate_qps || lag_ns > limits.latency_ns;
    Step {
        repeat,
        rate_qps,
        sent_qps,
        answered_qps: counts.answered as f64 / sending_s,
        loss_share,
        p50_ns: latency.p50,
        p99_ns: latency.p99,
        p99_9_ns: latency.p99_9,
        lag_p99_ns: lag_ns,
        busy_share: outcome.busy_share(period),
        holds: !late && loss_share <= limits.loss_share && in_time,
        instrument_failed: late && loss_share <= limits.loss_share,
    }
}

/// From soon on, for as long as is asked.
fn period(model: Model, arguments: &Arguments) -> Period {
    let start_ns = clock::monotonic_ns() + HEAD_START_NS;
    Period { model, start_ns, end_ns: start_ns + nanoseconds(arguments.duration_s), seed: arguments.queries.seed }
}

fn open(arguments: &Arguments, clients: usize, bytes_max: usize) -> Result<Box<dyn Transport>, LoadError> {
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
        close: arguments.close,
        bytes_max,
        timeout_ns: nanoseconds(arguments.timeout_s),
    };
    match arguments.transport {
        TransportKind::Udp => {
            let segmentation = arguments.segmentation == Segmentation::Auto;
            Ok(Box::new(Udp::open(server, &arguments.sources, clients, bytes_max, segmentation, burst)?))
        }
        TransportKind::Tcp | TransportKind::Dot => stream::open(server, &arguments.sources, clients, settings),
    }
}

fn empty_summary(arguments: &Arguments, period: Period) -> Summary {
    Summary {
        transport: arguments.transport,
        interval_s: arguments.instrument.interval_s.as_secs_f64(),
        timeout_ns: nanoseconds(arguments.timeout_s),
        ..Summary::of(period)
    }
}
