//! One thread: takes queries as they fall due, sends them, takes answers in, hands complete intervals over.

use dnsrig_core::{clock, failure::Failure, threads};

use super::{
    arrivals::{Order, Period},
    collect::{Handover, PeriodEnd, ThreadReport},
    in_flight::InFlight,
    priority::{self, Priority, Waking},
    segment::Part,
    send_schedule::SendSchedule,
    transport::{Transport, Wait},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};

/// A thread's side of the channels between it and the collecting thread.
pub struct Channels {
    pub periods: mpsc::Receiver<Period>,
    pub handover: Handover,
    pub stop: Arc<AtomicBool>,
}

/// The state of a thread.
pub struct Worker {
    pub part: Part,
    pub in_flight: InFlight,
    pub transport: Box<dyn Transport>,
    pub channels: Channels,
    /// The clock of all times but wall time.
    pub now_ns: fn() -> i64,
    /// Where the next period begins in the order of queries.
    pub order: Order,
    pub timeout_ns: i64,
    /// Whether real-time priority is asked for.
    pub wants_real_time: bool,
    pub priority: Priority,
    /// How long before a query is due the thread is awake.
    pub waking: Waking,
}

impl Worker {
    /// Works through periods until there are no further ones.
    pub fn run(mut self) -> Result<(), Failure> {
        threads::take_cpu(self.part.thread, self.part.threads);
        // If the kernel refuses it, queries are late by as much, and the lag shows it.
        let _ = clock::wait_exactly();
        while let Ok(period) = self.channels.periods.recv() {
            let waited_ns = threads::cpu_wait_ns();
            let sending_ns = self.work(period)?;
            let cpu_wait_ns = threads::cpu_wait_ns() - waited_ns;
            let (connections, priority) = (self.transport.connections(), self.priority);
            let datagrams_dropped = self.transport.datagrams_dropped();
            let lifetimes_us = self.transport.lifetimes_us().cloned();
            let (rest, intervals) = self.channels.handover.end();
            let (clients, rows, wrong) = self.in_flight.take_period();
            let end = PeriodEnd {
                connections,
                datagrams_dropped,
                lifetimes_us,
                sending_ns,
                priority,
                cpu_wait_ns,
                rest,
                intervals,
                clients,
                rows,
                wrong,
            };
            self.channels.handover.report(ThreadReport::Ended(Box::new(end)));
        }
        Ok(())
    }

    /// Works through one period. Returns the time from the start to the last sending, in nanoseconds.
    fn work(&mut self, period: Period) -> Result<i64, Failure> {
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
                self.in_flight.hand_over(&mut self.channels.handover, horizon_ns);
            }
            if send_schedule.is_over(now_ns, &self.in_flight) {
                self.in_flight.hand_over(&mut self.channels.handover, i64::MAX);
                self.order = send_schedule.order();
                return Ok(send_schedule.last_sent_ns() - period.start_ns);
            }
            now_ns = self.pause(now_ns, sent + received > 0, &send_schedule)?;
        }
    }

    /// Sends the queries that are due. Returns their number.
    fn send(&mut self, now_ns: i64, send_schedule: &mut SendSchedule) -> Result<usize, Failure> {
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

    /// Sends the queries that were set aside, as far as their clients' connections take them by now.
    fn try_aside(&mut self, now_ns: i64, send_schedule: &mut SendSchedule) -> Result<usize, Failure> {
        let transport = &mut self.transport;
        send_schedule.try_aside(
            now_ns,
            &mut self.in_flight,
            |due, in_flight| Ok(transport.send(&[due], in_flight)? > 0),
        )
    }

    /// Ends a turn that began at `turn_ns`: waits if there was no work, and returns the time.
    fn pause(&mut self, turn_ns: i64, had_work: bool, send_schedule: &SendSchedule) -> Result<i64, Failure> {
        let now_ns = (self.now_ns)();
        if had_work {
            self.in_flight.count_busy(now_ns, now_ns - turn_ns);
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
mod tests {
    //! A thread's loop, with a server and a link in virtual time: no real time passes.

    use std::{cell::Cell, collections::VecDeque};

    use super::*;
    use crate::load::{
        arrivals::{Due, Model},
        collect::handover,
        counts::Counts,
        in_flight::Sending,
        interval_stats::Series,
        segment::Segment,
    };

    const US: i64 = 1_000;
    const MS: i64 = 1_000 * US;
    const SECOND: i64 = 1_000 * MS;

    thread_local! {
        static NOW_NS: Cell<i64> = const { Cell::new(0) };
        /// From when to when something else keeps the instrument from working.
        static BUSY_NS: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
    }

    /// To look at the clock takes a microsecond.
    fn now_ns() -> i64 {
        let (from_ns, until_ns) = BUSY_NS.get();
        let now_ns = NOW_NS.get() + US;
        NOW_NS.set(if (from_ns..until_ns).contains(&now_ns) { until_ns } else { now_ns });
        NOW_NS.get()
    }

    /// The link and the server behind it, in virtual time.
    struct Link {
        /// When an answer to a query sent at a time arrives.
        server: fn(i64) -> Option<i64>,
        on_the_way: VecDeque<(i64, Vec<u8>)>,
    }

    impl Transport for Link {
        fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
            for due in due {
                let (mut space, now_ns) = ([0; 64], NOW_NS.get());
                let length = in_flight.draft(0, *due, &mut space).expect("the table is large");
                in_flight.sent(0, 1, length, Sending { began_ns: now_ns, ended_ns: now_ns });
                space[2] |= 0x80;
                if let Some(answered_ns) = (self.server)(now_ns) {
                    self.on_the_way.push_back((answered_ns, space[..length].to_vec()));
                }
            }
            Ok(due.len())
        }

        fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
            let mut count = 0;
            while let Some((arrived_ns, message)) = self.on_the_way.pop_front_if(|(at_ns, _)| *at_ns <= NOW_NS.get()) {
                in_flight.answer(0, &message, message.len(), arrived_ns);
                count += 1;
            }
            Ok(count)
        }

        fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), Failure> {
            let until_ns = NOW_NS.get() + timeout_ns;
            let arrives_ns = self.on_the_way.front().filter(|_| wanted).map_or(i64::MAX, |(arrives_ns, _)| *arrives_ns);
            NOW_NS.set(until_ns.min(arrives_ns.max(NOW_NS.get())));
            Ok(())
        }
    }

    impl Link {
        fn to(server: fn(i64) -> Option<i64>) -> Self {
            Link { server, on_the_way: VecDeque::new() }
        }

        /// Works through a period. Returns when it is over, the counts and the times.
        fn work(self, model: Model, end_ns: i64) -> (i64, Counts, Series) {
            let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
            let ((_to_worker, periods), (handover, mut collected)) = (mpsc::channel(), handover());
            let mut worker = Worker {
                part: Part { thread: 0, threads: 1, segment: Segment::default() },
                in_flight: InFlight::with_messages([query], 1, 1 << 14, SECOND),
                transport: Box::new(self),
                channels: Channels { periods, handover, stop: Arc::default() },
                now_ns,
                order: Order { next: 0, count: 1 },
                timeout_ns: SECOND,
                wants_real_time: false,
                priority: Priority::default(),
                waking: Waking::always(0),
            };
            NOW_NS.set(0);
            worker.work(Period { model, start_ns: 0, end_ns, seed: 1 }).unwrap();
            BUSY_NS.set((0, 0));
            let Ok(ThreadReport::Interval(whole)) = collected.reports.pop() else { panic!("one interval") };
            (NOW_NS.get(), whole.counts, whole.series)
        }
    }

    /// Answers after 1 ms, but nothing in the first 200 ms of each second, and then all that waits at once.
    fn stalls(sent_ns: i64) -> Option<i64> {
        let within_ns = sent_ns % SECOND;
        Some(sent_ns - within_ns + within_ns.max(200 * MS) + MS)
    }

    #[test]
    fn a_periodic_stall_shows_as_it_is_computed_by_hand() {
        let model = Model::Rate { qps: 1000.0, poisson: false };
        let (_, counts, series) = Link::to(stalls).work(model, 10 * SECOND);
        assert_eq!((counts.due, counts.sent, counts.answered), (10_000, 10_000, 10_000));
        // Of each second's 1,000 queries, due at 0, 1, 2 … ms, those at 0 to 199 take 201 down to 2 ms, and the others
        // 1 ms.
        for (percent, expected_ms) in
            [(50.0, 1.0), (80.0, 1.0), (85.0, 51.0), (90.0, 101.0), (99.0, 191.0), (100.0, 201.0)]
        {
            let found_ms = series.due.value_at_quantile(percent / 100.0) as f64 / MS as f64;
            assert!((found_ms / expected_ms - 1.0).abs() < 0.011, "{percent} %: {found_ms} ms, not {expected_ms}");
        }
        assert!(series.lag.max() < 10 * US as u64);
    }

    #[test]
    fn an_instrument_that_stalls_itself_says_so_in_the_lag_and_the_due_latency_only() {
        let model = Model::Rate { qps: 1000.0, poisson: false };
        BUSY_NS.set((400 * MS, 600 * MS));
        let (_, counts, series) = Link::to(|sent_ns| Some(sent_ns + MS)).work(model, SECOND);
        assert_eq!(counts.answered, 1_000);
        assert_eq!(series.sent.max() / MS as u64, 1);
        assert!((200..=201).contains(&(series.lag.max() / MS as u64)));
        assert!((201..=202).contains(&(series.due.max() / MS as u64)));
    }

    #[test]
    fn a_closed_loop_hides_the_stall_as_every_closed_loop_does() {
        let (_, counts, series) = Link::to(stalls).work(Model::Outstanding(1), SECOND);
        assert!(counts.answered > 350);
        assert!(series.due.value_at_quantile(0.99) / MS as u64 <= 2, "of hundreds of queries one met the stall");
    }

    #[test]
    fn a_server_that_never_answers_costs_a_timeout_and_ends() {
        let model = Model::Rate { qps: 100.0, poisson: true };
        let (ended_ns, counts, series) = Link::to(|_| None).work(model, SECOND);
        assert_eq!((counts.answered, counts.timeouts), (0, counts.sent));
        assert!(counts.sent > 50 && ended_ns <= 2 * SECOND + 5 * MS);
        assert!(series.sent.min() >= 999 * MS as u64, "each is recorded at the limit");
    }
}
