//! The threads, the channels to them, and what they measure together.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use dnsrig_core::{clock, events::Anchors, failure::Failure, stop::Stop, threads::Threads, units::nanoseconds};

use super::{
    arguments::Instrument,
    arrivals::{Order, Period},
    collect::{Collected, Collection, Outcome, ThreadReport, handover},
    in_flight::InFlight,
    interval_stats::Interval,
    priority::{Priority, Waking},
    record::{self, Record},
    report::Reporter,
    segment::{Part, Segment},
    summary::Summary,
    transport::Transport,
    worker::{Channels, Worker},
};

/// The time that threads have to get ready before the first query is due.
pub const HEAD_START_NS: i64 = 20_000_000;

/// How often a request to stop is looked for while threads work.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What a thread works with.
pub struct ThreadSetup {
    pub in_flight: InFlight,
    pub transport: Box<dyn Transport>,
    /// Where the thread begins in the order of queries.
    pub order: Order,
}

/// What all threads have in common.
#[derive(Clone, Copy, Debug)]
pub struct TeamSettings {
    pub segment: Segment,
    /// The number of this generator's first client, counted over all generators.
    pub first_client: u32,
    /// The time after which a query is given up.
    pub timeout_ns: i64,
    pub wants_real_time: bool,
}

/// What is looked after while the threads work.
pub struct Supervision {
    pub stop: Stop,
    pub reporter: Reporter,
    anchors: Option<Anchors>,
    /// Threads that read captured queries. They end when they have read all.
    pub readers: Threads<()>,
}

impl Supervision {
    /// Begins to look for a request to stop, and prints that the instrument has started.
    pub fn start(instrument: &Instrument, timeout: Duration) -> Result<Self, Failure> {
        let Instrument { led, until_eof, .. } = *instrument;
        // The end of standard input comes behind the lines that lead a generator: whoever reads these finds it.
        let stop = Stop::new(until_eof && !led)?;
        let reporter = Reporter::find(instrument.json || led, nanoseconds(timeout));
        let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
        Ok(Supervision { stop, reporter, anchors, readers: Threads::new()? })
    }
}

/// The threads and the channels to them.
pub struct Team {
    /// The number of clients of each thread.
    pub clients: Vec<usize>,
    threads: Threads<()>,
    periods: Vec<mpsc::Sender<Period>>,
    collected: Vec<Collected>,
    supervision: Supervision,
    stopping: Arc<AtomicBool>,
    settings: TeamSettings,
}

impl Team {
    /// Starts a thread for each number of clients, with what `set_up` makes for it.
    pub fn start(
        clients: Vec<usize>,
        settings: TeamSettings,
        supervision: Supervision,
        mut set_up: impl FnMut(Part) -> Result<ThreadSetup, Failure>,
    ) -> Result<Self, Failure> {
        let stopping = Arc::new(AtomicBool::new(false));
        let threads = Threads::new()?;
        let (periods, collected) = (Vec::new(), Vec::new());
        let mut team = Team { threads, periods, collected, supervision, stopping, clients, settings };
        let TeamSettings { segment, timeout_ns, wants_real_time, .. } = settings;
        for thread in 0..team.clients.len() {
            let part = Part { thread, threads: team.clients.len(), segment };
            let (to_worker, periods) = mpsc::channel();
            let ThreadSetup { in_flight, transport, order } = set_up(part)?;
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

    /// Has all threads work through `period`. `each` gets every interval of all threads together.
    pub fn work(
        &mut self,
        period: Period,
        mut each: impl FnMut(&Interval) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        for to_worker in &self.periods {
            // If nobody takes it, a thread has ended, and the supervision finds how.
            let _ = to_worker.send(period);
        }
        let mut collection = Collection::new(&self.clients);
        let mut working = self.clients.len();
        while working > 0 {
            self.supervise()?;
            let mut is_idle = true;
            for (thread, collected) in self.collected.iter_mut().enumerate() {
                let Ok(report) = collected.reports.pop() else { continue };
                is_idle = false;
                match report {
                    ThreadReport::Interval(interval) => {
                        if let Some(whole) = collection.add(thread, &interval) {
                            each(&whole)?;
                        }
                        collected.give_back(interval);
                    }
                    ThreadReport::Ended(end) => {
                        collection.end(thread, *end);
                        working -= 1;
                    }
                }
            }
            if is_idle {
                // Each report wakes this thread.
                thread::park_timeout(LOOK_INTERVAL);
            }
        }
        Ok(collection.finish())
    }

    /// Checks that all threads run, passes a request to stop on to them, and prints anchors when they are due.
    pub fn supervise(&mut self) -> Result<(), Failure> {
        if self.threads.look()? < self.clients.len() {
            return Err(Failure::new("a thread ended early", "this is a bug in dnsrig: please report it"));
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

    /// Whether someone asked the threads to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Waits until a period is about to begin. After a request to stop it is moved to now, and will end at once.
    pub fn wait_for(&mut self, period: Period) -> Result<Period, Failure> {
        loop {
            self.supervise()?;
            let now_ns = clock::monotonic_ns();
            let left_ns = period.start_ns - HEAD_START_NS - now_ns;
            if left_ns <= 0 {
                return Ok(period);
            }
            if self.is_stopping() {
                let start_ns = now_ns + HEAD_START_NS;
                return Ok(Period { start_ns, end_ns: start_ns + period.end_ns - period.start_ns, ..period });
            }
            thread::park_timeout(LOOK_INTERVAL.min(Duration::from_nanos(left_ns.unsigned_abs())));
        }
    }

    /// Measures one period, and writes it down if there is a folder for it. `summary` has what was asked for.
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
            reporter.interval(interval, interval_ns as f64 / 1e9)
        })?;
        if let Some(record) = record {
            record.finish(outcome.clients.as_ref(), self.settings.segment)?;
        }
        if let Some(folder) = folder.filter(|_| !outcome.rows.is_empty()) {
            summary.rows_dropped = Some(record::write_rows(&folder.join(record::QUERIES), &outcome.rows)?);
        }
        // A file of captured queries may be found damaged behind its last query.
        self.supervision.readers.look()?;
        summary.interrupted = self.is_stopping();
        let stopped_ns = if summary.interrupted { period.start_ns + outcome.sending_ns } else { period.end_ns };
        summary.set_outcome(&outcome, Period { end_ns: stopped_ns.min(period.end_ns), ..period });
        Ok(summary)
    }

    /// Where results are reported.
    pub fn reporter(&self) -> Reporter {
        self.supervision.reporter
    }
}
