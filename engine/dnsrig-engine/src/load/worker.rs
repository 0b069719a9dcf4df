//! One thread: takes queries as they fall due, sends them, takes answers in, hands complete intervals over.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use nix::{sched::CpuSet, unistd::Pid};

use super::{
    LoadError,
    arrivals::{Arrivals, Model, Part},
    ledger::Ledger,
    meter::Interval,
    transport::{Connections, Transport},
};
use crate::{clock, datagrams::BATCH_MAX};

/// Timeouts, complete intervals and the wish to stop are looked at this often.
const CHECK_INTERVAL_NS: i64 = 1_000_000;

/// The last so many nanoseconds before a query is due are spent looking, not sleeping: to be woken takes as long, and more
/// on a virtual machine.
const SPIN_NS: i64 = 80_000;

/// A closed loop's next query is due when one before has ended, which may be noticed this much later.
const NOTICED_LATE_NS: i64 = 5 * CHECK_INTERVAL_NS;

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
    Ended { connections: Connections, sending_ns: i64 },
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
}

impl Worker {
    /// Works through periods until there are no more.
    pub fn run(mut self) {
        settle(self.part);
        while let Ok(period) = self.lines.periods.recv() {
            let report = match self.work(period) {
                Ok(sending_ns) => Report::Ended { connections: self.transport.connections(), sending_ns },
                Err(error) => Report::Failed(error),
            };
            if self.lines.reports.send((self.part.thread, report)).is_err() {
                return;
            }
        }
    }

    /// One period; returns from the start to the last sending, in nanoseconds.
    fn work(&mut self, mut period: Period) -> Result<i64, LoadError> {
        let Period { model, start_ns, end_ns, seed } = period;
        let mut arrivals = Arrivals::new(model, self.part, start_ns, end_ns, seed);
        self.ledger.restart(start_ns, end_ns, arrivals.is_closed_loop());
        let mut due_ns: Vec<i64> = Vec::with_capacity(BATCH_MAX);
        let mut now_ns = clock::monotonic_ns();
        let (mut last_sent_ns, mut check_ns, mut stopped) = (start_ns, now_ns, false);
        loop {
            while due_ns.len() < BATCH_MAX
                && let Some(next_ns) = arrivals.take(now_ns)
            {
                due_ns.push(next_ns);
            }
            let sent = if due_ns.is_empty() { 0 } else { self.transport.send(&due_ns, &mut self.ledger)? };
            if sent > 0 {
                due_ns.drain(..sent);
                last_sent_ns = now_ns;
            }
            let received = self.transport.receive(&mut self.ledger)?;
            self.ledger.take_ended(|ended_ns| arrivals.ended(ended_ns));
            if now_ns >= check_ns {
                check_ns = now_ns + CHECK_INTERVAL_NS;
                self.ledger.expire(now_ns);
                self.ledger.take_ended(|ended_ns| arrivals.ended(ended_ns));
                self.ledger.set_wall_time(clock::wall_time_s());
                if !stopped && self.lines.stop.load(Ordering::Relaxed) {
                    stopped = true;
                    period.end_ns = period.end_ns.min(now_ns.max(start_ns + 1));
                    arrivals.cut(period.end_ns);
                    self.ledger.meter.cut(period.end_ns);
                }
                let unsent_ns = due_ns.first().copied().unwrap_or(i64::MAX).min(arrivals.next_due_ns());
                let horizon_ns = if arrivals.is_closed_loop() && now_ns < period.end_ns + NOTICED_LATE_NS {
                    unsent_ns.min(now_ns - NOTICED_LATE_NS)
                } else {
                    unsent_ns
                };
                self.hand_over(horizon_ns);
                if now_ns >= period.end_ns + self.timeout_ns || (stopped && unsent_ns < i64::MAX) {
                    // What could not be sent for a whole timeout will not be.
                    due_ns.drain(..).for_each(|due_ns| self.ledger.meter.given_up(due_ns));
                    while let Some(due_ns) = arrivals.take(i64::MAX - 1) {
                        self.ledger.meter.given_up(due_ns);
                    }
                }
            }
            let nothing_due = due_ns.is_empty() && arrivals.next_due_ns() == i64::MAX;
            if nothing_due && now_ns >= period.end_ns && self.ledger.outstanding() == 0 {
                self.hand_over(i64::MAX);
                return Ok(last_sent_ns - start_ns);
            }
            let turn_ns = now_ns;
            if sent + received == 0 {
                let next_ns = if due_ns.is_empty() { arrivals.next_due_ns() } else { i64::MAX };
                let wait_ns = next_ns.saturating_sub(SPIN_NS).min(check_ns) - clock::monotonic_ns();
                if wait_ns > 0 {
                    self.transport.wait(wait_ns)?;
                }
                now_ns = clock::monotonic_ns();
            } else {
                now_ns = clock::monotonic_ns();
                self.ledger.meter.at(now_ns).busy_ns += now_ns - turn_ns;
            }
        }
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
    // Default timers may fire 50 µs late, so that the kernel can gather several (prctl(2), PR_SET_TIMERSLACK).
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
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
