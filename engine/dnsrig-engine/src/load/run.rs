//! Gives the threads one period to work through, or the periods of a ramp: rising and falling rates, until the highest
//! rate that holds is known.

use std::{net::IpAddr, process::ExitCode, sync::Arc, thread, time::Duration};

use dnsrig_core::{
    clock, events,
    failure::Failure,
    open_files, output,
    stats::grouped,
    stop::INTERRUPTED,
    target::{self, Authority},
    units::nanoseconds,
};
use dnsrig_dns::query::QUERY_BYTES_MAX;
use dnsrig_net::{
    source,
    tls::{self, DOH, DOQ, DOT},
};

use super::{
    Arguments,
    announced::Announced,
    arguments::{Clients, Instrument, Plan, Segmentation, TransportKind},
    arrivals::{Model, Order, Period},
    classes::Usage,
    collect::Outcome,
    doq::{self, Doq},
    expect::judge::{Expectation, Judge},
    hold::{Held, Opening, check_ports, resident_bytes},
    in_flight::{self, InFlight},
    interval_stats::IntervalStats,
    led::{self, FIRST_PATIENCE, MORE_PATIENCE, Next, Starts, Tried},
    priority::Priority,
    queries::{Described, Queries, QueryArguments, Skipped},
    ramp::{self, Measured, RampLimits, RampSettings, Search, Step, Try, TryOutcome},
    record::FILES,
    report::{Reporter, opening},
    segment::Part,
    source::Source,
    summary::Summary,
    tcp::{self, Tcp},
    team::{HEAD_START_NS, Supervision, Team, TeamSettings, ThreadSetup},
    transport::Transport,
    udp::Udp,
};

/// The length of the longest message.
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// Time between two rates of a ramp, in which the server's queues run empty.
const PAUSE_NS: u64 = 100_000_000;

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
    if arguments.dry_run {
        return describe(arguments);
    }
    let supervision = Supervision::start(&arguments.instrument, arguments.timeout)?;
    let starts = Starts::new(&arguments.instrument, &supervision.stop)?;
    let reporter = supervision.reporter;
    let queries = Arc::new(arguments.queries.prepare()?);
    report_skipped(queries.skipped());
    let expectation = arguments.expect.as_ref().map(|expect| expect.read(&queries)).transpose()?.map(Arc::new);
    let before_bytes = resident_bytes();
    let team = start_team(arguments, plan, &queries, expectation, supervision)?;
    reporter.say(|| opening(arguments, plan, &queries));
    starts.emit_ready()?;
    let cpu_ns = clock::process_cpu_ns();
    let mut run = Run { arguments, queries, team, starts };
    let mut summary = match plan {
        Plan::Once(Model::Rate { qps, .. }) if let Some(every) = arguments.hold.hold => {
            let open_rate = arguments.hold.open_rate(authority == Authority::Vouched);
            run.hold(qps, every, f64::from(open_rate), before_bytes)?
        }
        Plan::Once(model) => run.once(model)?,
        Plan::Ramp(..) if arguments.instrument.segment.number > 1 => run.follow()?,
        Plan::Ramp(limits, settings) => run.ramp(limits, settings)?,
    };
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    if run.queries.are_complete() {
        summary.recursion_desired = None;
    }
    summary.clients = run.team.clients.iter().sum();
    summary.threads = run.team.clients.len();
    reporter.summary(&summary, arguments.server(), arguments.out.as_deref())?;
    Ok(if summary.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Prints what the queries are.
fn describe(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let reporter = Reporter::find(arguments.instrument.json, 0);
    if let Some(capture) = arguments.queries.capture()?
        && reporter.program
    {
        events::summary(clock::monotonic_ns(), &Capture { capture })?;
        return Ok(ExitCode::SUCCESS);
    }
    let queries = arguments.queries.prepare()?;
    report_skipped(queries.skipped());
    let expectation = arguments.expect.as_ref().map(|expect| expect.read(&queries)).transpose()?;
    let described = Described::new(&queries, expectation.map(|expectation| expectation.unlisted()));
    reporter.say(|| described.text());
    if reporter.program {
        events::summary(clock::monotonic_ns(), &described)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the format of a capture, of which a program can make a stream.
#[derive(serde::Serialize)]
struct Capture {
    capture: &'static str,
}

/// Says on standard error what was left out.
fn report_skipped(skipped: &Skipped) {
    if skipped.count == 0 {
        return;
    }
    let mut text = format!("note: {} bad lines were left out\n", grouped(skipped.count));
    skipped.first.iter().for_each(|line| text += &format!("  {line}\n"));
    if skipped.count > skipped.first.len() as u64 {
        text += "  …\n";
    }
    events::say(text);
}

/// Starts the threads, each with its part of the clients.
fn start_team(
    arguments: &Arguments,
    plan: Plan,
    queries: &Arc<Queries>,
    expectation: Option<Arc<Expectation>>,
    supervision: Supervision,
) -> Result<Team, Failure> {
    let Clients { of_threads, first: first_client, table } = arguments.clients(plan)?;
    let clients = of_threads.iter().sum::<usize>();
    let announced = arguments.announced(u64::from(first_client) + clients as u64)?;
    open_files::allow(clients as u64, "--clients")?;
    if arguments.hold.hold.is_some() {
        check_ports(clients, &arguments.sources)?;
    }
    let timeout_ns = nanoseconds(arguments.timeout);
    let Instrument { segment, real_time, interval, .. } = arguments.instrument;
    let set_up = |part: Part| {
        let clients = of_threads[part.thread];
        let before = of_threads[..part.thread].iter().sum::<usize>() as u32;
        let in_flight = InFlight::new(in_flight::Settings {
            source: Source::Prepared(queries.clone()),
            signer: arguments.queries.signer()?,
            timeout_ns,
            clients,
            connections: 0,
            flows: clients,
            asks_again: false,
            table,
            interval_stats: IntervalStats::new(0, 1, nanoseconds(interval), clients),
            rows: arguments.instrument.rows(part, first_client + before),
        });
        let numbers = u64::from(first_client + before)..;
        let judge = expectation.clone().map(|expectation| Judge::new(expectation, queries.clone()));
        let in_flight = in_flight.with_cookies(arguments.queries.cookies(numbers.take(clients))).with_judge(judge);
        let order = Order { next: 0, count: queries.len() as u32 };
        let sources = arguments.sources_of(before as usize, clients);
        let announced = announced.clone().map(|announced| (announced, first_client + before));
        let transport = open(arguments, &sources, clients, announced, in_flight.bytes_max())?;
        Ok(ThreadSetup { in_flight, transport, order })
    };
    let settings = TeamSettings { segment, first_client, timeout_ns, wants_real_time: real_time };
    Team::start(of_threads.clone(), settings, supervision, set_up)
}

/// Opens the transport of a thread, whose clients send from `sources`, or from any address if `sources` is
/// empty. The first of the clients that are `announced` has the number beside them.
fn open(
    arguments: &Arguments,
    sources: &[IpAddr],
    clients: usize,
    announced: Option<(Announced, u32)>,
    bytes_max: usize,
) -> Result<Box<dyn Transport>, Failure> {
    let (server, burst) = (arguments.server(), arguments.burst());
    if arguments.transport == TransportKind::Udp {
        let segmentation = arguments.segmentation == Segmentation::Auto;
        // Of an answer whose records are not looked at, the question is enough.
        let received_bytes_max = if arguments.expect.is_some() { MESSAGE_BYTES_MAX } else { QUERY_BYTES_MAX };
        let udp = Udp::open(server, sources, clients, bytes_max, segmentation, burst, received_bytes_max)?;
        return Ok(Box::new(udp.announcing(announced, bytes_max)));
    }
    let usage = Usage {
        per_connection: arguments.queries_per_connection,
        idle_ns: 0,
        resumption: !arguments.no_resumption,
        early_data: arguments.early_data,
    };
    let timeout_ns = nanoseconds(arguments.timeout);
    if let Some(congestion) = arguments.congestion() {
        let tls = arguments.tls.settings(DOQ)?;
        let settings = doq::Settings { tls, classes: vec![usage], congestion, burst, bytes_max, timeout_ns };
        return Ok(Box::new(Doq::open(server, sources, clients, settings)?));
    }
    let (tls, http) = match arguments.transport {
        TransportKind::Udp | TransportKind::Tcp | TransportKind::Doq => (None, None),
        TransportKind::Dot => (Some(arguments.tls.settings(DOT)?), None),
        TransportKind::Doh => {
            let settings = tls::Settings { alpn_required: true, ..arguments.tls.settings(DOH)? };
            (Some(settings), Some(Arc::new(arguments.requests())))
        }
    };
    let settings = tcp::Settings {
        tls,
        http,
        announced,
        classes: vec![usage],
        burst,
        close: arguments.close(),
        held_as: arguments.hold.held_as,
        bytes_max,
        timeout_ns,
    };
    Ok(Box::new(Tcp::open(server, sources, clients, settings)?))
}

/// Queries that are due at even distances.
fn even(qps: f64) -> Model {
    Model::Rate { qps, poisson: false }
}

/// A measurement that is under way.
struct Run<'a> {
    arguments: &'a Arguments,
    queries: Arc<Queries>,
    team: Team,
    starts: Starts,
}

impl Run<'_> {
    /// Measures one period by `model`, and writes it down if there is a folder for it.
    fn once(&mut self, model: Model) -> Result<Summary, Failure> {
        let Run { arguments, queries, team, starts } = self;
        let start_ns = starts.only_start_ns(team)?;
        let end_ns = start_ns + nanoseconds(arguments.sending_time(model, queries.len()));
        let period = Period { end_ns, ..arguments.period(model, start_ns) };
        let summary = Summary::asked(arguments, period);
        team.measure(period, nanoseconds(arguments.instrument.interval), arguments.out.as_deref(), summary)
    }

    /// Opens the connections of all clients at `open_rate` per second, then has each ask `every` so often.
    fn hold(&mut self, qps: f64, every: Duration, open_rate: f64, before_bytes: u64) -> Result<Summary, Failure> {
        let Run { arguments, team, starts, .. } = self;
        let clients = f64::from(arguments.clients.unwrap_or_default());
        let start_ns = starts.only_start_ns(team)?;
        let end_ns = start_ns + (clients * 1e9 / open_rate) as i64;
        let opening = Period { end_ns, ..arguments.period(even(open_rate), start_ns) };
        let opening = team.wait_for(opening)?;
        let outcome = team.work(opening, |_| Ok(()))?;
        let opening = Opening::new(&outcome, opening, open_rate, before_bytes);
        team.reporter().opened(&opening)?;
        // Generators that share the schedule begin at one moment, whenever the last of their answers came.
        let is_shared = arguments.instrument.segment.of > 1;
        let from_ns = if is_shared { end_ns + nanoseconds(arguments.timeout) } else { clock::monotonic_ns() };
        let start_ns = from_ns + HEAD_START_NS;
        let period = arguments.period(even(qps), start_ns);
        let summary = Summary::asked(arguments, period);
        let interval_ns = nanoseconds(arguments.instrument.interval);
        let summary = team.measure(period, interval_ns, arguments.out.as_deref(), summary)?;
        let held = Held { held_as: arguments.hold.held_as, every_s: every.as_secs_f64(), opening };
        Ok(Summary { held: Some(held), ..summary })
    }

    /// Searches for the highest rate that holds, with the generators that follow, if there are any.
    fn ramp(&mut self, limits: RampLimits, settings: RampSettings) -> Result<Summary, Failure> {
        let mut search = Search::new(settings);
        let (mut all, mut steps) = (Outcome::default(), Vec::<Step>::new());
        while let Some((rate_qps, repeat)) = search.next() {
            let wanted = Try { rate_qps, repeat };
            let patience = if steps.is_empty() { FIRST_PATIENCE } else { self.patience() };
            let Some((start_ns, rate_qps)) = self.starts.next_try(&mut self.team, wanted, patience)? else { break };
            let (outcome, mut measured, duration_ns) = self.try_rate(start_ns, rate_qps)?;
            all.add_period(outcome);
            let patience = self.patience();
            self.starts.add_followers(&mut self.team, rate_qps, patience, &mut measured)?;
            if self.team.is_stopping() {
                break;
            }
            let step = ramp::judge(&measured, duration_ns, limits, wanted, search.base_loss_share().unwrap_or(0.0));
            let counts = if step.instrument_failed {
                search.instrument_failed()
            } else {
                let Step { holds, holds_but_for_loss, .. } = step;
                search.tried(TryOutcome { holds, holds_but_for_loss, loss: measured.loss() })
            };
            if counts {
                self.team.reporter().step(&step)?;
                steps.push(step);
            }
            thread::sleep(Duration::from_nanos(PAUSE_NS));
        }
        let mut summary = self.ramp_summary(&all);
        summary.busy_share = steps.iter().map(|step| step.busy_share).fold(0.0, f64::max);
        summary.capacity_qps = search.capacity_qps();
        summary.capacity_is_lower_bound = search.is_lower_bound();
        summary.base_loss_share = search.base_loss_share();
        if let (Some(capacity_qps), Some(_)) = (summary.capacity_qps, summary.base_loss_share) {
            // Some were tried before the loss was known to be the same at every rate.
            steps.iter_mut().for_each(|step| step.holds |= step.holds_but_for_loss && step.rate_qps <= capacity_qps);
        }
        summary.steps = steps;
        Ok(summary)
    }

    /// Tries the rates that generator 1 wants to be tried, until a line ends the ramp.
    fn follow(&mut self) -> Result<Summary, Failure> {
        let segment = self.arguments.instrument.segment;
        let (mut all, mut busy_share, mut patience) = (Outcome::default(), 0.0_f64, FIRST_PATIENCE);
        while let Next::Start(start) = self.starts.next(&mut self.team, patience)? {
            let rate_qps = led::rate(start)?;
            let (outcome, measured, _) = self.try_rate(start.start_ns, rate_qps)?;
            all.add_period(outcome);
            busy_share = busy_share.max(measured.busy_share);
            if self.team.is_stopping() {
                break;
            }
            let tried = Tried::of(segment, rate_qps, &measured);
            events::emit_patiently("tried", clock::monotonic_ns(), &tried)?;
            patience = self.patience();
        }
        Ok(Summary { busy_share, ..self.ramp_summary(&all) })
    }

    /// Sends at a rate. Returns the result, what a ramp needs of it, and the duration in nanoseconds.
    fn try_rate(&mut self, start_ns: i64, qps: f64) -> Result<(Outcome, Measured, i64), Failure> {
        let period = self.arguments.period(even(qps), start_ns);
        let period = self.team.wait_for(period)?;
        let outcome = self.team.work(period, |_| Ok(()))?;
        let measured = outcome.measured(period);
        Ok((outcome, measured, period.end_ns - period.start_ns))
    }

    /// How long to wait for the next line.
    fn patience(&self) -> Duration {
        self.arguments.duration + self.arguments.timeout + MORE_PATIENCE
    }

    /// The summary of what this generator sent at all rates.
    fn ramp_summary(&self, all: &Outcome) -> Summary {
        let now_ns = clock::monotonic_ns();
        let period = self.arguments.period(Model::Outstanding(1), now_ns);
        let mut summary = Summary::asked(self.arguments, period);
        summary.model = "ramp";
        summary.fill(&all.counts, &all.series);
        summary.wrong_examples.clone_from(&all.wrong);
        summary.set_connections(all.connections());
        summary.datagrams_dropped = all.datagrams_dropped;
        if all.priority == Priority::Denied {
            summary.set_priority(all.priority);
        }
        summary.interrupted = self.team.is_stopping();
        summary
    }
}
