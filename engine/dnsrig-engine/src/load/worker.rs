//! One thread: takes queries as they fall due, sends them, takes answers in, hands complete intervals over.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use nix::{sched::CpuSet, unistd::Pid};

use super::{
    LoadError,
    arrivals::{Model, Part},
    duty::Duty,
    ledger::Ledger,
    meter::Interval,
    priority,
    transport::{Connections, Transport},
};
use crate::clock;

/// A period in which queries fall due.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub model: Model,
    pub start_ns: i64,
    pub end_ns: i64,
    pub seed: u64,
}

/// What a thread tells.
pub enum Report {
    /// An interval is complete.
    Interval(Box<Interval>),
    /// The period is over and every query has ended.
    Ended { connections: Connections, sending_ns: i64, real_time: bool },
    /// It cannot go on.
    Failed(LoadError),
}

/// A thread's end of the lines between it and the one that collects.
pub struct Lines {
    pub periods: mpsc::Receiver<Period>,
    pub reports: mpsc::Sender<(usize, Report)>,
    /// Intervals that come back to be used again.
    pub spare: mpsc::Receiver<Box<Interval>>,
    pub stop: Arc<AtomicBool>,
}

/// A thread's state.
pub struct Worker {
    pub part: Part,
    pub ledger: Ledger,
    pub transport: Box<dyn Transport>,
    pub lines: Lines,
    pub timeout_ns: i64,
    /// Whether to go before everything else on the CPU, and whether it does.
    pub wants_real_time: bool,
    pub real_time: bool,
    /// So long before a query is due it is awake.
    pub early_ns: i64,
}

impl Worker {
    /// Works through periods until there are no more.
    pub fn run(mut self) {
        settle(self.part);
        while let Ok(period) = self.lines.periods.recv() {
            let report = match self.work(period) {
                Ok(sending_ns) => {
                    Report::Ended { connections: self.transport.connections(), sending_ns, real_time: self.real_time }
                }
                Err(error) => Report::Failed(error),
            };
            if self.lines.reports.send((self.part.thread, report)).is_err() {
                return;
            }
        }
    }

    /// One period; returns from the start to the last sending, in nanoseconds.
    fn work(&mut self, period: Period) -> Result<i64, LoadError> {
        (self.real_time, self.early_ns) = priority::choose(self.wants_real_time, period.model, self.part);
        let mut duty = Duty::new(period, self.part, self.timeout_ns, &mut self.ledger);
        // Before the first query: one that is signed for another time is refused (BADTIME, RFC 8945 §5.2.3).
        self.ledger.set_wall_time(clock::wall_time_s());
        let mut now_ns = clock::monotonic_ns();
        loop {
            let due_ns = duty.due(now_ns);
            let sent = if due_ns.is_empty() { 0 } else { self.transport.send(due_ns, &mut self.ledger)? };
            duty.sent(sent, now_ns);
            let received = self.transport.receive(&mut self.ledger)?;
            duty.learn(&mut self.ledger);
            if duty.is_check_due(now_ns) {
                let horizon_ns = duty.check(now_ns, self.lines.stop.load(Ordering::Relaxed), &mut self.ledger);
                self.ledger.set_wall_time(clock::wall_time_s());
                self.hand_over(horizon_ns);
            }
            if duty.is_over(now_ns, &self.ledger) {
                self.hand_over(i64::MAX);
                return Ok(duty.last_sent_ns() - period.start_ns);
            }
            now_ns = self.pause(now_ns, sent + received > 0, &duty)?;
        }
    }

    /// Ends a turn that began at `turn_ns`: waits if it had no work, and returns the time.
    fn pause(&mut self, turn_ns: i64, had_work: bool, duty: &Duty) -> Result<i64, LoadError> {
        let now_ns = clock::monotonic_ns();
        if had_work {
            self.ledger.meter.at(now_ns).busy_ns += now_ns - turn_ns;
            return Ok(now_ns);
        }
        let wait_ns = duty.idle_until_ns(self.early_ns) - now_ns;
        if wait_ns <= 0 {
            return Ok(now_ns);
        }
        self.transport.wait(wait_ns)?;
        Ok(clock::monotonic_ns())
    }

    /// Gives complete intervals away and takes used ones back.
    fn hand_over(&mut self, next_due_ns: i64) {
        while let Some(interval) = self.ledger.meter.complete(next_due_ns) {
            // Nobody listens only when the whole process ends.
            let _ = self.lines.reports.send((self.part.thread, Report::Interval(interval)));
        }
        while let Ok(interval) = self.lines.spare.try_recv() {
            self.ledger.meter.reuse(interval);
        }
    }
}

/// Gives the thread a CPU of its own, as far as there are enough, and timers that are exact.
fn settle(part: Part) {
    // Where it is refused, queries are late by as much, and the lag shows it.
    let _ = clock::wait_exactly();
    let this = Pid::from_raw(0);
    let Ok(allowed) = nix::sched::sched_getaffinity(this) else { return };
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    if part.threads > 1 && part.threads <= cpus.len() {
        let mut mine = CpuSet::new();
        if mine.set(cpus[part.thread]).is_ok() {
            // It is for evenness only; a refusal costs nothing but that.
            let _ = nix::sched::sched_setaffinity(this, &mine);
        }
    }
}
