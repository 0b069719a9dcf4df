//! Starts the threads, gives them periods to work through, and collects what they measure.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::{
    Arguments, LoadError,
    arguments::{Plan, Segmentation, TransportKind},
    arrivals::{Model, Order, Part, Period},
    collect::Collection,
    handover::{Handover, Report},
    in_flight::{self, InFlight, MessageId},
    interval_stats::{Counts, Interval, IntervalStats, Series},
    queries::Queries,
    ramp::{Limits, Search, Settings},
    record::Record,
    report::Reporter,
    stream,
    summary::{Step, Summary, model_words},
    transport::{Connections, Transport},
    udp::Udp,
    waking::Waking,
    worker::{Channels, Worker},
};
use crate::{
    base::{
        clock, events::Anchors, failure::Failure, open_files, stop::Stop, target, threads::Threads, units::nanoseconds,
    },
    net::tls::DOT,
    stats::percentiles::{Distribution, percentile},
};

/// Threads have this long to get ready before the first query is due.
const HEAD_START_NS: i64 = 20_000_000;

/// How often the wish to stop is looked at while threads work.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Between two rates of a ramp the server's queues run empty.
const RAMP_PAUSE_NS: i64 = 100_000_000;

/// Of the queries due, the instrument must send this share in time for a step to say something of the server.
const SENT_SHARE_MIN: f64 = 0.99;

/// The exit code after an interruption, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

/// Puts the load on the server.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.i_am_authorized)?;
    arguments.check()?;
    if arguments.until_eof && arguments.queries.reads_standard_input() {
        return Err(
            LoadError::Arguments("--until-eof and queries from standard input exclude each other".into()).into()
        );
    }
    let plan = arguments.plan(authority)?;
    let queries = Arc::new(arguments.queries.prepare()?);
    let stop = Stop::new(arguments.until_eof)?;
    let reporter = Reporter::find(arguments.json, nanoseconds(arguments.timeout_s));
    let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
    let mut team = Team::start(arguments, plan, &queries, stop, reporter, anchors)?;
    reporter.begin(arguments, plan);
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

/// The threads and the channels to them.
struct Team {
    clients: Vec<usize>,
    threads: Threads<(), LoadError>,
    periods: Vec<mpsc::Sender<Period>>,
    spare: Vec<mpsc::Sender<Box<Interval>>>,
    reports: mpsc::Receiver<(usize, Report)>,
    stop: Stop,
    stopping: Arc<AtomicBool>,
    reporter: Reporter,
    anchors: Option<Anchors>,
}

/// What became of a period.
struct Outcome {
    counts: Counts,
    series: Series,
    connections: Connections,
    sending_ns: i64,
    busy_ns: i64,
    real_time: bool,
    intervals_lost: u64,
}

impl Team {
    fn start(
        arguments: &Arguments,
        plan: Plan,
        queries: &Arc<Queries>,
        stop: Stop,
        reporter: Reporter,
        anchors: Option<Anchors>,
    ) -> Result<Self, Failure> {
        let (clients, table) = arguments.clients(plan)?;
        open_files::allow(clients.iter().sum::<usize>() as u64, "--clients")?;
        let (to_team, reports) = mpsc::channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let mut team = Team {
            threads: Threads::new()?,
            periods: Vec::new(),
            spare: Vec::new(),
            reports,
            stop,
            stopping,
            reporter,
            anchors,
            clients,
        };
        for (thread, clients) in team.clients.clone().into_iter().enumerate() {
            let part = Part { thread, threads: team.clients.len() };
            let (to_worker, periods) = mpsc::channel();
            let (give_back, spare) = mpsc::channel();
            let settings = in_flight::Settings {
                queries: queries.clone(),
                signer: arguments.queries.signer()?,
                message_id: MessageId::Handle,
                timeout_ns: nanoseconds(arguments.timeout_s),
                clients,
                table,
            };
            let interval_stats = IntervalStats::new(0, 1, nanoseconds(arguments.interval_s), clients);
            let in_flight = InFlight::new(settings, interval_stats);
            let count = queries.len() as u32;
            let order = Order { next: count / part.threads as u32 * thread as u32, count };
            let transport = open(arguments, clients, in_flight.bytes_max())?;
            let handover = Handover::new(thread, to_team.clone(), spare);
            let channels = Channels { periods, handover, stop: team.stopping.clone() };
            let worker = Worker {
                part,
                in_flight,
                transport,
                channels,
                now_ns: clock::monotonic_ns,
                order,
                timeout_ns: nanoseconds(arguments.timeout_s),
                wants_real_time: arguments.real_time,
                real_time: false,
                waking: Waking::always(0),
            };
            team.threads.spawn("load", move |_| worker.run())?;
            team.periods.push(to_worker);
            team.spare.push(give_back);
        }
        Ok(team)
    }

    /// Has all threads work through `period`; `each` gets every interval of all threads together.
    fn work(
        &mut self,
        period: Period,
        mut each: impl FnMut(&Interval) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        for to_worker in &self.periods {
            // Where nobody takes it, a thread has ended, and what follows says how.
            let _ = to_worker.send(period);
        }
        let mut collection = Collection::new(&self.clients);
        let (mut connections, mut sending_ns, mut real_time) = (Connections::default(), 0, true);
        let mut working = self.clients.len();
        while working > 0 {
            self.look_up()?;
            match self.reports.recv_timeout(LOOK_INTERVAL) {
                Ok((thread, Report::Interval(interval))) => {
                    if let Some(whole) = collection.add(thread, &interval) {
                        each(&whole)?;
                    }
                    let _ = self.spare[thread].send(interval);
                }
                Ok((thread, Report::Ended(ended))) => {
                    connections.add(&ended.connections);
                    sending_ns = sending_ns.max(ended.sending_ns);
                    real_time &= ended.real_time;
                    collection.end(thread, ended.rest.as_deref(), ended.intervals);
                    working -= 1;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(LoadError::Thread.into()),
            }
        }
        let busy_ns = collection.busy_ns.iter().copied().max().unwrap_or(0);
        let intervals_lost = collection.finish();
        Ok(Outcome {
            counts: collection.counts,
            series: collection.series,
            intervals_lost,
            connections,
            sending_ns,
            busy_ns,
            real_time,
        })
    }

    /// Sees whether all threads are well, passes a wish to stop on, and gives anchors when they are due.
    fn look_up(&mut self) -> Result<(), Failure> {
        if self.threads.look()? < self.clients.len() {
            return Err(LoadError::Thread.into());
        }
        if self.stop.asked()? {
            self.stopping.store(true, Ordering::Relaxed);
        }
        if let Some(anchors) = &mut self.anchors {
            anchors.emit_if_due(clock::monotonic_ns())?;
        }
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// One period by `model`, written down if there is a folder for it.
fn once(arguments: &Arguments, team: &mut Team, model: Model) -> Result<Summary, Failure> {
    let interval_ns = nanoseconds(arguments.interval_s);
    let period = period(model, arguments);
    let folder = arguments.out.as_deref();
    let mut record = match folder {
        Some(folder) => Some(Record::create(folder, clock::anchor(), period.start_ns, period.end_ns, interval_ns)?),
        None => None,
    };
    let (reporter, interval_s) = (team.reporter, arguments.interval_s.as_secs_f64());
    let outcome = team.work(period, |interval| {
        if let Some(record) = &mut record {
            record.write(interval)?;
        }
        Ok(reporter.interval(interval, interval_s)?)
    })?;
    if let Some(record) = record {
        record.finish()?;
    }
    let interrupted = team.is_stopping();
    let stopped_ns = if interrupted { period.start_ns + outcome.sending_ns } else { period.end_ns };
    let period = Period { end_ns: stopped_ns.min(period.end_ns), ..period };
    let mut summary = empty_summary(arguments, period);
    (summary.model, summary.asked_qps, summary.poisson, summary.outstanding) = model_words(model);
    summary.fill(&outcome.counts, &outcome.series);
    summary.connections = outcome.connections;
    summary.sending_ns = outcome.sending_ns;
    summary.busy_share = busy_share(&outcome, period);
    summary.real_time = outcome.real_time;
    summary.intervals_lost = outcome.intervals_lost;
    summary.interrupted = interrupted;
    Ok(summary)
}

/// Periods of rising and falling rates, until the highest that holds is known.
fn ramp(arguments: &Arguments, team: &mut Team, limits: Limits, settings: Settings) -> Result<Summary, Failure> {
    let mut search = Search::new(settings);
    let mut all = Outcome {
        counts: Counts::default(),
        series: Series::default(),
        connections: Connections::default(),
        sending_ns: 0,
        busy_ns: 0,
        real_time: false,
        intervals_lost: 0,
    };
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
        team.reporter.step(&step)?;
        steps.push(step);
        all.counts.add(&outcome.counts);
        all.series.add(&outcome.series);
        all.connections = outcome.connections;
        thread::sleep(Duration::from_nanos(RAMP_PAUSE_NS.unsigned_abs()));
    }
    let mut summary = empty_summary(arguments, period(Model::Outstanding(1), arguments));
    summary.model = "ramp";
    summary.fill(&all.counts, &all.series);
    summary.connections = all.connections;
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
        busy_share: busy_share(outcome, period),
        holds: !late && loss_share <= limits.loss_share && in_time,
        instrument_failed: late && loss_share <= limits.loss_share,
    }
}

fn busy_share(outcome: &Outcome, period: Period) -> f64 {
    (outcome.busy_ns as f64 / outcome.sending_ns.max(period.end_ns - period.start_ns).max(1) as f64).min(1.0)
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
        queries_per_connection: arguments.queries_per_connection,
        burst,
        resumption: !arguments.no_resumption,
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
        start_ns: period.start_ns,
        end_ns: period.end_ns,
        duration_s: (period.end_ns - period.start_ns) as f64 / 1e9,
        interval_s: arguments.interval_s.as_secs_f64(),
        timeout_ns: nanoseconds(arguments.timeout_s),
        ..Summary::default()
    }
}
