//! The threads, the channels to them, and what they measure together.

use std::{
    iter,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::{
    LoadError,
    arguments::Instrument,
    arrivals::{Order, Period},
    client_totals::ClientTotals,
    collect::Collection,
    handover::{Collected, Report, handover},
    in_flight::InFlight,
    interval_stats::{Counts, Interval, Series},
    lines::Lines,
    priority::Priority,
    record::{self, Record},
    report::Reporter,
    rows::{self, Rows},
    segment::{Part, Segment},
    summary::{ClassResult, LoopBound, Summary, model_words},
    transport::{Connections, Transport},
    unequal_clients::UnequalClients,
    waking::Waking,
    worker::{Channels, Worker},
};
use crate::base::{clock, events::Anchors, failure::Failure, stop::Stop, threads::Threads, units::nanoseconds};

/// Threads have this long to get ready before the first query is due.
pub const HEAD_START_NS: i64 = 20_000_000;

/// How often the wish to stop is looked at while threads work.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What a thread works with.
pub struct Tools {
    pub in_flight: InFlight,
    pub transport: Box<dyn Transport>,
    /// Which query is its first.
    pub order: Order,
}

/// How threads work.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub segment: Segment,
    /// The number of the first client among those of all generators.
    pub first_client: u32,
    /// A query is given up after so long.
    pub timeout_ns: i64,
    pub wants_real_time: bool,
}

/// Who looks at what the threads do.
pub struct Supervision {
    pub stop: Stop,
    pub reporter: Reporter,
    pub anchors: Option<Anchors>,
    /// What says when periods begin; none: they begin soon.
    pub lines: Option<Lines>,
    /// Threads that bring queries; those that have brought all have ended.
    pub readers: Threads<()>,
}

impl Supervision {
    /// Begins to look for a wish to stop and, if led, for lines; says that the instrument has started.
    pub fn start(instrument: &Instrument, timeout_s: Duration) -> Result<Self, Failure> {
        let Instrument { led, until_eof, .. } = *instrument;
        // Who is led hears the end of standard input behind its lines.
        let stop = Stop::new(until_eof && !led)?;
        let lines = if led { Some(Lines::start(&stop, until_eof)?) } else { None };
        let reporter = Reporter::find(instrument.json || led, nanoseconds(timeout_s));
        let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
        Ok(Supervision { stop, reporter, anchors, lines, readers: Threads::new()? })
    }
}

/// The threads and the channels to them.
pub struct Team {
    /// How many clients each thread has.
    pub clients: Vec<usize>,
    threads: Threads<()>,
    periods: Vec<mpsc::Sender<Period>>,
    collected: Vec<Collected>,
    supervision: Supervision,
    stopping: Arc<AtomicBool>,
    settings: Settings,
}

/// What became of a period.
#[derive(Default)]
pub struct Outcome {
    pub counts: Counts,
    pub series: Series,
    /// By class of clients.
    pub connections: Vec<Connections>,
    pub sending_ns: i64,
    pub busy_ns: i64,
    /// The worst of all threads.
    pub priority: Priority,
    pub intervals_lost: u64,
    /// Which of the clients of intervals are not served alike.
    pub unequal_clients: Option<UnequalClients>,
    /// The longest time that a thread was ready to run and had no CPU.
    pub cpu_wait_ns: i64,
    /// What clients saw, where intervals do not say it.
    pub clients: Option<ClientTotals>,
    /// Of queries, a list a thread; none where they are not wanted.
    pub rows: Vec<Rows>,
}

impl Outcome {
    /// Those of all classes together.
    pub fn connections(&self) -> Connections {
        let mut all = Connections::default();
        self.connections.iter().for_each(|counts| all.add(counts));
        all
    }

    /// The share of the period's time that the busiest thread had work.
    pub fn busy_share(&self, period: Period) -> f64 {
        (self.busy_ns as f64 / self.sending_ns.max(period.end_ns - period.start_ns).max(1) as f64).min(1.0)
    }
}

impl Team {
    /// Starts a thread for each number of clients, with what `equip` gives it.
    pub fn start(
        clients: Vec<usize>,
        settings: Settings,
        supervision: Supervision,
        mut equip: impl FnMut(Part) -> Result<Tools, Failure>,
    ) -> Result<Self, Failure> {
        let stopping = Arc::new(AtomicBool::new(false));
        let threads = Threads::new()?;
        let (periods, collected) = (Vec::new(), Vec::new());
        let mut team = Team { threads, periods, collected, supervision, stopping, clients, settings };
        let Settings { segment, timeout_ns, wants_real_time, .. } = settings;
        for thread in 0..team.clients.len() {
            let part = Part { thread, threads: team.clients.len(), segment };
            let (to_worker, periods) = mpsc::channel();
            let Tools { in_flight, transport, order } = equip(part)?;
            let (handover, collected) = handover();
            let channels = Channels { periods, handover, stop: team.stopping.clone() };
            let worker = Worker {
                part,
                in_flight,
                transport,
                channels,
                now_ns: clock::monotonic_ns,
                order,
                timeout_ns,
                wants_real_time,
                priority: Priority::default(),
                waking: Waking::always(0),
            };
            team.threads.spawn("load", move |_| worker.run())?;
            team.periods.push(to_worker);
            team.collected.push(collected);
        }
        Ok(team)
    }

    /// Has all threads work through `period`; `each` gets every interval of all threads together.
    pub fn work(
        &mut self,
        period: Period,
        mut each: impl FnMut(&Interval) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        for to_worker in &self.periods {
            // Where nobody takes it, a thread has ended, and what follows says how.
            let _ = to_worker.send(period);
        }
        let mut collection = Collection::new(&self.clients);
        let (mut connections, mut sending_ns, mut priority) = (Vec::new(), 0, Priority::RealTime);
        let (mut clients, mut rows, mut cpu_wait_ns) = (None, Vec::new(), 0);
        let mut working = self.clients.len();
        while working > 0 {
            self.look_up()?;
            let mut is_idle = true;
            for (thread, collected) in self.collected.iter_mut().enumerate() {
                let Ok(report) = collected.reports.pop() else { continue };
                is_idle = false;
                match report {
                    Report::Interval(interval) => {
                        if let Some(whole) = collection.add(thread, &interval) {
                            each(&whole)?;
                        }
                        collected.give_back(interval);
                    }
                    Report::Ended(ended) => {
                        add_connections(&mut connections, &ended.connections);
                        sending_ns = sending_ns.max(ended.sending_ns);
                        priority = priority.max(ended.priority);
                        cpu_wait_ns = cpu_wait_ns.max(ended.cpu_wait_ns);
                        add_clients(&mut clients, ended.clients);
                        rows.extend(ended.rows);
                        collection.end(thread, ended.rest.as_deref(), ended.intervals);
                        working -= 1;
                    }
                }
            }
            if is_idle {
                // Each report wakes this thread.
                thread::park_timeout(LOOK_INTERVAL);
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
            priority,
            unequal_clients: UnequalClients::of(&collection.clients),
            cpu_wait_ns,
            clients,
            rows,
        })
    }

    /// Sees whether all threads are well, passes a wish to stop on, and gives anchors when they are due.
    pub fn look_up(&mut self) -> Result<(), Failure> {
        if self.threads.look()? < self.clients.len() {
            return Err(LoadError::Thread.into());
        }
        let Supervision { stop, anchors, readers, .. } = &mut self.supervision;
        readers.look()?;
        if stop.asked()? {
            self.stopping.store(true, Ordering::Relaxed);
        }
        if let Some(anchors) = anchors {
            anchors.emit_if_due(clock::monotonic_ns())?;
        }
        Ok(())
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether lines on standard input say when periods begin.
    pub fn is_led(&self) -> bool {
        self.supervision.lines.is_some()
    }

    /// The lines that lead it.
    pub fn lines(&self) -> &Lines {
        self.supervision.lines.as_ref().expect("only who is led looks for lines")
    }

    /// One period, written down if there is a folder for it; `summary` knows what was asked for.
    pub fn measure(
        &mut self,
        period: Period,
        interval_ns: i64,
        folder: Option<&Path>,
        mut summary: Summary,
    ) -> Result<Summary, Failure> {
        let period = self.wait_for(period)?;
        let mut record = match folder {
            Some(folder) => {
                Some(Record::create(folder, clock::anchor(), period, interval_ns, self.settings.first_client)?)
            }
            None => None,
        };
        let reporter = self.supervision.reporter;
        let outcome = self.work(period, |interval| {
            if let Some(record) = &mut record {
                record.write(interval)?;
            }
            Ok(reporter.interval(interval, interval_ns as f64 / 1e9)?)
        })?;
        if let Some(record) = record {
            record.finish(outcome.clients.as_ref(), self.settings.segment)?;
        }
        if let Some(folder) = folder.filter(|_| !outcome.rows.is_empty()) {
            summary.rows_dropped = Some(rows::write(&folder.join(record::QUERIES), &outcome.rows)?);
        }
        // A stream may be found damaged behind its last query.
        self.supervision.readers.look()?;
        let interrupted = self.is_stopping();
        let stopped_ns = if interrupted { period.start_ns + outcome.sending_ns } else { period.end_ns };
        let period = Period { end_ns: stopped_ns.min(period.end_ns), ..period };
        summary.set_period(period);
        (summary.model, summary.asked_qps, summary.poisson, summary.outstanding) = model_words(period.model);
        summary.fill(&outcome.counts, &outcome.series);
        summary.connections = outcome.connections();
        summary.classes = by_class(&outcome);
        summary.sending_ns = outcome.sending_ns;
        summary.busy_share = outcome.busy_share(period);
        summary.set_priority(outcome.priority);
        summary.intervals_lost = outcome.intervals_lost;
        summary.interrupted = interrupted;
        summary.loop_bound = LoopBound::of(&summary);
        summary.unequal_clients = outcome.unequal_clients;
        summary.cpu_wait_ns = outcome.cpu_wait_ns;
        Ok(summary)
    }

    /// To whom results are told.
    pub fn reporter(&self) -> Reporter {
        self.supervision.reporter
    }
}

/// What became of the queries and connections of each class; empty where clients have no classes.
fn by_class(outcome: &Outcome) -> Vec<ClassResult> {
    let of_clients = outcome.clients.as_ref().map(ClientTotals::by_class).unwrap_or_default();
    let none = Connections::default();
    let connections = outcome.connections.iter().chain(iter::repeat(&none));
    of_clients.into_iter().zip(connections).map(|(seen, counts)| ClassResult::new(seen, *counts)).collect()
}

/// Adds the connections of another thread, whose classes are the same.
fn add_connections(all: &mut Vec<Connections>, other: &[Connections]) {
    all.resize(all.len().max(other.len()), Connections::default());
    all.iter_mut().zip(other).for_each(|(mine, other)| mine.add(other));
}

/// Adds what clients saw on another thread.
fn add_clients(all: &mut Option<ClientTotals>, other: Option<ClientTotals>) {
    match (all.as_mut(), other) {
        (Some(all), Some(other)) => all.add(&other),
        (None, other) => *all = other,
        (Some(_), None) => {}
    }
}
