//! One thread: takes queries as they fall due, sends them, takes answers in, hands complete intervals over.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use super::{
    LoadError,
    arrivals::{Order, Period},
    handover::{Ended, Handover, Report},
    in_flight::InFlight,
    priority::{self, Priority},
    segment::Part,
    send_schedule::SendSchedule,
    transport::{Transport, Wait},
    waking::Waking,
};
use crate::base::{clock, threads};

/// A thread's end of the channels between it and the one that collects.
pub struct Channels {
    pub periods: mpsc::Receiver<Period>,
    pub handover: Handover,
    pub stop: Arc<AtomicBool>,
}

/// A thread's state.
pub struct Worker {
    pub part: Part,
    pub in_flight: InFlight,
    pub transport: Box<dyn Transport>,
    pub channels: Channels,
    /// The clock of all times but the wall's.
    pub now_ns: fn() -> i64,
    /// Which query is next.
    pub order: Order,
    pub timeout_ns: i64,
    /// Whether to go before everything else on the CPU, and what came of it.
    pub wants_real_time: bool,
    pub priority: Priority,
    /// How long before a query is due it is awake.
    pub waking: Waking,
}

impl Worker {
    /// Works through periods until there are no more.
    pub fn run(mut self) -> Result<(), LoadError> {
        threads::take_cpu(self.part.thread, self.part.threads);
        // Where it is refused, queries are late by as much, and the lag shows it.
        let _ = clock::wait_exactly();
        while let Ok(period) = self.channels.periods.recv() {
            let waited_ns = threads::cpu_wait_ns();
            let sending_ns = self.work(period)?;
            let cpu_wait_ns = threads::cpu_wait_ns() - waited_ns;
            let (connections, priority) = (self.transport.connections(), self.priority);
            let (rest, intervals) = self.channels.handover.end();
            let clients = self.in_flight.interval_stats.totals.take();
            let rows = self.in_flight.rows.take();
            let ended = Ended { connections, sending_ns, priority, cpu_wait_ns, rest, intervals, clients, rows };
            self.channels.handover.tell(Report::Ended(ended));
        }
        Ok(())
    }

    /// One period; returns from the start to the last sending, in nanoseconds.
    fn work(&mut self, period: Period) -> Result<i64, LoadError> {
        (self.priority, self.waking) = priority::choose(self.wants_real_time, period.model, self.part);
        let mut send_schedule = SendSchedule::new(period, self.part, self.order, self.timeout_ns, &mut self.in_flight);
        // Before the first query: one that is signed for another time is refused (BADTIME, RFC 8945 §5.2.3).
        self.in_flight.set_wall_time(clock::wall_time_s());
        let mut now_ns = (self.now_ns)();
        loop {
            let mut sent = self.send(now_ns, &mut send_schedule)?;
            let received = self.transport.receive(&mut self.in_flight)?;
            send_schedule.learn(&mut self.in_flight);
            if send_schedule.is_check_due(now_ns) {
                sent += self.try_aside(now_ns, &mut send_schedule)?;
                let horizon_ns =
                    send_schedule.check(now_ns, self.channels.stop.load(Ordering::Relaxed), &mut self.in_flight);
                self.in_flight.set_wall_time(clock::wall_time_s());
                self.channels.handover.give(&mut self.in_flight.interval_stats, horizon_ns);
            }
            if send_schedule.is_over(now_ns, &self.in_flight) {
                self.channels.handover.give(&mut self.in_flight.interval_stats, i64::MAX);
                self.order = send_schedule.order();
                return Ok(send_schedule.last_sent_ns() - period.start_ns);
            }
            now_ns = self.pause(now_ns, sent + received > 0, &send_schedule)?;
        }
    }

    /// Sends what is due; returns how many queries that were.
    fn send(&mut self, now_ns: i64, send_schedule: &mut SendSchedule) -> Result<usize, LoadError> {
        let mut sent = 0;
        loop {
            let due = send_schedule.due(now_ns, &mut self.in_flight);
            let count = if due.is_empty() { 0 } else { self.transport.send(due, &mut self.in_flight)? };
            send_schedule.sent(count, now_ns);
            sent += count;
            let Some(due) = send_schedule.unsent() else { return Ok(sent) };
            match self.transport.waits_for(due, &self.in_flight) {
                Wait::All => {
                    self.in_flight.waits(due);
                    return Ok(sent);
                }
                wait => send_schedule.set_aside(wait, &mut self.in_flight),
            }
        }
    }

    /// Sends what was set aside, as far as its clients' connections take it by now.
    fn try_aside(&mut self, now_ns: i64, send_schedule: &mut SendSchedule) -> Result<usize, LoadError> {
        let transport = &mut self.transport;
        send_schedule.try_aside(
            now_ns,
            &mut self.in_flight,
            |due, in_flight| Ok(transport.send(&[due], in_flight)? > 0),
        )
    }

    /// Ends a turn that began at `turn_ns`: waits if it had no work, and returns the time.
    fn pause(&mut self, turn_ns: i64, had_work: bool, send_schedule: &SendSchedule) -> Result<i64, LoadError> {
        let now_ns = (self.now_ns)();
        if had_work {
            self.in_flight.interval_stats.at(now_ns).busy_ns += now_ns - turn_ns;
            return Ok(now_ns);
        }
        let until_ns = send_schedule.idle_until_ns(turn_ns, self.waking.early_ns());
        let wait_ns = until_ns - now_ns;
        if wait_ns <= 0 {
            return Ok(now_ns);
        }
        self.transport.wait(wait_ns, send_schedule.is_closed_loop())?;
        let woke_ns = (self.now_ns)();
        self.waking.woke(woke_ns - now_ns - wait_ns);
        Ok(woke_ns)
    }
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
