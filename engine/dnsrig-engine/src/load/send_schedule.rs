//! What a thread has to do in a period: which queries are due, which have timed out, when it can wait, when it is done.
//! No clock, no socket.

use std::collections::VecDeque;

use dnsrig_net::udp_batch::BATCH_MAX;

use super::{
    arrivals::{Arrivals, Due, Order, Period},
    in_flight::InFlight,
    segment::Part,
    transport::Wait,
};

/// How often timeouts, complete intervals and requests to stop are looked for.
const CHECK_INTERVAL_NS: i64 = 1_000_000;

/// A closed loop's next query is due when one before has ended, which may be noticed this much later.
const NOTICED_LATE_NS: i64 = 5 * CHECK_INTERVAL_NS;

/// How often queries that are due and not read yet are looked for. In between, the thread that reads them has the CPU.
const READ_INTERVAL_NS: i64 = 100_000;

/// The number of queries that can wait for their clients' connections at a time: to try all of them again takes about
/// 0.1 ms. One query more is given up, because no query of another client may wait for it.
const ASIDE_MAX: usize = 1_024;

/// What one thread sends in one period.
pub struct SendSchedule {
    end_ns: i64,
    timeout_ns: i64,
    arrivals: Arrivals,
    /// Queries that are due and not sent.
    due: Vec<Due>,
    /// Queries that were set aside, oldest first, with what each waits for.
    aside: VecDeque<(Due, Wait)>,
    check_ns: i64,
    last_sent_ns: i64,
    stopped: bool,
}

impl SendSchedule {
    /// Prepares the table of queries in flight for `period`.
    pub fn new(period: Period, part: Part, order: Order, timeout_ns: i64, in_flight: &mut InFlight) -> Self {
        let Period { start_ns, end_ns, .. } = period;
        let arrivals = Arrivals::new(period, part, order);
        in_flight.restart(start_ns, end_ns, arrivals.is_closed_loop());
        SendSchedule {
            end_ns,
            timeout_ns,
            arrivals,
            due: Vec::with_capacity(BATCH_MAX),
            aside: VecDeque::new(),
            // At once: a request to stop may have come before the start.
            check_ns: i64::MIN,
            last_sent_ns: start_ns,
            stopped: false,
        }
    }

    /// The queries that are to be sent now, oldest first, and at most a batch.
    pub fn due(&mut self, now_ns: i64, in_flight: &mut InFlight) -> &[Due] {
        while self.due.len() < BATCH_MAX
            && let Some(due) = in_flight.take_due(&mut self.arrivals, now_ns)
        {
            self.due.push(due);
        }
        &self.due
    }

    /// Takes in that the first `count` queries that are due were sent.
    pub fn sent(&mut self, count: usize, now_ns: i64) {
        if count > 0 {
            self.due.drain(..count);
            self.last_sent_ns = now_ns;
        }
    }

    /// The first query that is due and was not sent.
    pub fn unsent(&self) -> Option<Due> {
        self.due.first().copied()
    }

    /// Sets the first query that is due aside, so that the others do not wait for its client.
    pub fn set_aside(&mut self, wait: Wait, in_flight: &mut InFlight) {
        let due = self.due.remove(0);
        if self.aside.len() < ASIDE_MAX {
            self.aside.push_back((due, wait));
        } else {
            give_up(due, wait, in_flight);
        }
    }

    /// Has `send` try the queries that were set aside, and gives up those that have timed out. Returns the number of
    /// queries that were sent.
    pub fn try_aside<E>(
        &mut self,
        now_ns: i64,
        in_flight: &mut InFlight,
        mut send: impl FnMut(Due, &mut InFlight) -> Result<bool, E>,
    ) -> Result<usize, E> {
        let mut sent = 0;
        for _ in 0..self.aside.len() {
            let Some((due, wait)) = self.aside.pop_front() else { break };
            if due.at_ns + self.timeout_ns <= now_ns {
                give_up(due, wait, in_flight);
            } else if send(due, in_flight)? {
                (sent, self.last_sent_ns) = (sent + 1, now_ns);
            } else {
                self.aside.push_back((due, wait));
            }
        }
        Ok(sent)
    }

    /// Takes in which queries have ended.
    pub fn learn(&mut self, in_flight: &mut InFlight) {
        in_flight.take_ended(|ended_ns| self.arrivals.ended(ended_ns));
    }

    /// Whether it is time for [`SendSchedule::check`].
    pub fn is_check_due(&self, now_ns: i64) -> bool {
        now_ns >= self.check_ns
    }

    /// Gives up queries that have timed out, or that cannot be sent any more. Ends the period now if `stop`.
    ///
    /// Returns the time before which no more queries will be due.
    pub fn check(&mut self, now_ns: i64, stop: bool, in_flight: &mut InFlight) -> i64 {
        self.check_ns = now_ns + CHECK_INTERVAL_NS;
        in_flight.expire(now_ns);
        self.learn(in_flight);
        if stop && !self.stopped {
            self.stopped = true;
            self.end_ns = self.end_ns.min(now_ns);
            self.arrivals.cut(self.end_ns);
            in_flight.cut(self.end_ns);
            self.give_up(in_flight);
        }
        // A query that could not be sent for a whole timeout after the end will not be sent.
        if now_ns >= self.end_ns + self.timeout_ns {
            self.give_up(in_flight);
        }
        let next_ns = self.next_due_ns();
        if self.arrivals.is_closed_loop() && now_ns < self.end_ns + NOTICED_LATE_NS {
            return next_ns.min(now_ns - NOTICED_LATE_NS);
        }
        next_ns
    }

    /// Whether no query will be due any more and none is outstanding.
    pub fn is_over(&self, now_ns: i64, in_flight: &InFlight) -> bool {
        now_ns >= self.end_ns && self.next_due_ns() == i64::MAX && in_flight.outstanding() == 0
    }

    /// Until when there is nothing to do but to receive, after all that was due at `now_ns` was taken. It is `early_ns`
    /// before a query is due.
    pub fn idle_until_ns(&self, now_ns: i64, early_ns: i64) -> i64 {
        // A query that could not be sent waits for room, not for a time.
        let next_ns = if self.due.is_empty() { self.arrivals.next_due_ns() } else { i64::MAX };
        if next_ns <= now_ns && self.arrivals.is_read_ahead() {
            return now_ns + READ_INTERVAL_NS;
        }
        next_ns.saturating_sub(early_ns).min(self.check_ns)
    }

    /// Whether an answer makes another query due.
    pub fn is_closed_loop(&self) -> bool {
        self.arrivals.is_closed_loop()
    }

    /// Where the next period goes on.
    pub fn order(&self) -> Order {
        self.arrivals.order_after()
    }

    /// When the last query was sent.
    pub fn last_sent_ns(&self) -> i64 {
        self.last_sent_ns
    }

    fn next_due_ns(&self) -> i64 {
        let aside = self.aside.front().map(|(due, _)| due);
        let unsent = [aside, self.due.first()].into_iter().flatten().map(|due| due.at_ns);
        unsent.min().unwrap_or(i64::MAX).min(self.arrivals.next_due_ns())
    }

    fn give_up(&mut self, in_flight: &mut InFlight) {
        let aside = self.aside.drain(..).map(|(due, _)| due);
        aside.chain(self.due.drain(..)).for_each(|due| in_flight.give_up(due));
        while let Some(due) = in_flight.take_due(&mut self.arrivals, i64::MAX - 1) {
            in_flight.give_up(due);
        }
    }
}

/// Ends a query that was set aside: if it waits for the server it has timed out, and if it waits for this host it was
/// not sent.
fn give_up(due: Due, wait: Wait, in_flight: &mut InFlight) {
    if wait == Wait::Server { in_flight.time_out(due) } else { in_flight.give_up(due) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        load::{
            arrivals::Model,
            segment::Segment,
            source::{self, Captured, Chunk, Source, Way},
        },
        query_stream::Transport,
    };

    const MS: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MS;

    /// A rate of 100 queries per second for a minute, and a timeout of a second.
    fn schedule() -> (SendSchedule, InFlight) {
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        let mut in_flight = InFlight::with_messages([query], 1, 256, SECOND);
        let model = Model::Rate { qps: 100.0, poisson: false };
        let period = Period { model, start_ns: 0, end_ns: 60 * SECOND, seed: 1 };
        let alone = Part { thread: 0, threads: 1, segment: Segment::default() };
        let schedule = SendSchedule::new(period, alone, Order { next: 7, count: 10 }, SECOND, &mut in_flight);
        (schedule, in_flight)
    }

    #[test]
    fn a_request_to_stop_ends_the_period_and_counts_nothing_that_was_not_due() {
        let (mut schedule, mut in_flight) = schedule();
        assert_eq!(schedule.due(0, &mut in_flight).len(), 1);
        schedule.check(500 * MS, true, &mut in_flight);
        assert_eq!(schedule.due(SECOND, &mut in_flight).len(), 0);
        assert!(schedule.is_over(500 * MS, &in_flight));
        // Queries that were due until then and never sent: 0 to 490 ms.
        assert_eq!(in_flight.counts().due, 50);
    }

    #[test]
    fn what_waits_for_its_client_delays_no_other_and_is_given_up_in_time() {
        let (mut schedule, mut in_flight) = schedule();
        schedule.due(20 * MS, &mut in_flight);
        schedule.set_aside(Wait::NoConnection, &mut in_flight);
        assert_eq!(schedule.unsent().unwrap().at_ns, 10 * MS, "the next one can go");
        schedule.set_aside(Wait::NoConnection, &mut in_flight);
        schedule.set_aside(Wait::Server, &mut in_flight);
        assert_eq!(schedule.check(20 * MS, false, &mut in_flight), 0, "its interval is not complete");
        // The first one's client takes none, the second one's does.
        let mut tried = Vec::new();
        let sent = schedule.try_aside(30 * MS, &mut in_flight, |due, _| {
            tried.push(due.at_ns);
            Ok::<_, ()>(due.at_ns == 10 * MS)
        });
        assert_eq!((sent, &tried[..]), (Ok(1), &[0, 10 * MS, 20 * MS][..]));
        let late = |_, _: &mut InFlight| -> Result<bool, ()> { panic!("too late") };
        assert_eq!((schedule.try_aside(2 * SECOND, &mut in_flight, late), schedule.aside.len()), (Ok(0), 0));
        // One was not sent, because there was no connection. The other had no answer.
        let counts = in_flight.counts();
        assert_eq!((counts.due, counts.sent, counts.timeouts), (2, 1, 1));
    }

    #[test]
    fn queries_that_are_not_read_yet_leave_the_cpu_to_the_thread_that_reads() {
        let (mut sender, receiver) = source::channel();
        let chunk = |due_ns: i64| {
            let mut chunk = Chunk::default();
            let way = Way { transport: Transport::Udp, asks_again: false, begins_connection: false };
            chunk.push((0, due_ns), 0, way, &[0; 17]);
            chunk
        };
        sender.give(chunk(2 * MS)).unwrap();
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        let captured = Source::Captured(Captured::new(receiver, 17));
        let mut in_flight = InFlight::with_messages([query], 1, 256, SECOND).with_source(captured);
        let period = Period { model: Model::Captured { qps: 100.0 }, start_ns: 0, end_ns: SECOND, seed: 1 };
        let alone = Part { thread: 0, threads: 1, segment: Segment::default() };
        let mut schedule = SendSchedule::new(period, alone, Order { next: 0, count: 1 }, SECOND, &mut in_flight);
        schedule.check(0, false, &mut in_flight);
        schedule.check_ns = SECOND;
        assert!(schedule.due(MS, &mut in_flight).is_empty());
        assert_eq!(schedule.idle_until_ns(MS, 50_000), 2 * MS - 50_000);
        assert_eq!(schedule.due(2 * MS, &mut in_flight).len(), 1);
        schedule.sent(1, 2 * MS);
        for now_ns in [2 * MS, 3 * MS] {
            assert!(schedule.due(now_ns, &mut in_flight).is_empty(), "the next one has not been read");
            assert_eq!(schedule.idle_until_ns(now_ns, 50_000), now_ns + READ_INTERVAL_NS);
        }
        sender.give(chunk(2 * MS)).unwrap();
        assert_eq!(schedule.due(3 * MS, &mut in_flight).len(), 1);
        schedule.sent(1, 3 * MS);
        drop(sender);
        assert!(schedule.due(4 * MS, &mut in_flight).is_empty());
        assert_eq!(schedule.idle_until_ns(4 * MS, 50_000), SECOND, "nothing else is due");
    }

    #[test]
    fn the_next_period_goes_on_behind_all_queries_of_the_schedule() {
        let (mut schedule, mut in_flight) = schedule();
        let due: Vec<_> = schedule.due(40 * MS, &mut in_flight).iter().map(|due| (due.at_ns, due.query)).collect();
        assert_eq!(due, [(0, 7), (10 * MS, 8), (20 * MS, 9), (30 * MS, 0), (40 * MS, 1)]);
        schedule.sent(2, 40 * MS);
        assert_eq!(schedule.due(40 * MS, &mut in_flight)[0].query, 9, "those that could not be sent stay in front");
        schedule.check(62 * SECOND, false, &mut in_flight);
        // 6,000 were due, sent or not.
        assert_eq!(schedule.order(), Order { next: 7, count: 10 });
    }

    #[test]
    fn a_thread_wakes_for_a_query_and_for_a_check_every_millisecond() {
        let (mut schedule, mut in_flight) = schedule();
        assert!(schedule.is_check_due(i64::MIN), "a request to stop may have come before the start");
        assert_eq!(schedule.check(0, false, &mut in_flight), 0);
        assert_eq!([MS - 1, MS].map(|now_ns| schedule.is_check_due(now_ns)), [false, true]);
        assert_eq!(schedule.due(0, &mut in_flight).len(), 1);
        assert_eq!(schedule.idle_until_ns(0, 0), MS, "what could not be sent waits for no time");
        schedule.sent(0, 3);
        schedule.sent(1, 5);
        assert_eq!((schedule.last_sent_ns(), schedule.unsent()), (5, None));
        assert_eq!(schedule.check(9 * MS, false, &mut in_flight), 10 * MS);
        assert_eq!([0, 50_000].map(|early_ns| schedule.idle_until_ns(9 * MS, early_ns)), [10 * MS, 10 * MS - 50_000]);
    }

    #[test]
    fn a_period_is_over_at_its_end_and_what_is_not_sent_a_timeout_later_never_is() {
        let (mut one, mut in_flight) = schedule();
        one.check(500 * MS, true, &mut in_flight);
        assert_eq!([500 * MS - 1, 500 * MS].map(|now_ns| one.is_over(now_ns, &in_flight)), [false, true]);
        let (mut other, mut in_flight) = schedule();
        other.due(0, &mut in_flight);
        other.check(61 * SECOND - 1, false, &mut in_flight);
        assert_eq!((in_flight.counts().due, other.is_over(61 * SECOND, &in_flight)), (0, false));
        other.check(61 * SECOND, false, &mut in_flight);
        assert_eq!((in_flight.counts().due, other.is_over(61 * SECOND, &in_flight)), (6_000, true));
    }

    /// News of an answer may come five milliseconds late, so that the interval before waits for as long.
    #[test]
    fn an_interval_of_a_closed_loop_waits_for_late_news() {
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        let mut in_flight = InFlight::with_messages([query], 1, 256, SECOND);
        let period = Period { model: Model::Outstanding(1), start_ns: 0, end_ns: 100 * MS, seed: 1 };
        let alone = Part { thread: 0, threads: 1, segment: Segment::default() };
        let order = Order { next: 0, count: 1 };
        let mut schedule = SendSchedule::new(period, alone, order, SECOND, &mut in_flight);
        assert!(schedule.is_closed_loop() && schedule.due(0, &mut in_flight).len() == 1);
        schedule.sent(1, 0);
        let checks = [50 * MS, 105 * MS - 1, 105 * MS].map(|now_ns| schedule.check(now_ns, false, &mut in_flight));
        assert_eq!(checks, [45 * MS, 100 * MS - 1, i64::MAX]);
    }

    #[test]
    fn so_many_queries_wait_for_their_clients_and_one_more_is_given_up() {
        let (mut schedule, mut in_flight) = schedule();
        for number in 1..=1_026 {
            schedule.due(20 * SECOND, &mut in_flight);
            schedule.set_aside(if number == 1_026 { Wait::Server } else { Wait::NoConnection }, &mut in_flight);
            assert_eq!(in_flight.counts().due, (number - 1_024_i64).max(0).unsigned_abs(), "{number}");
        }
        let counts = in_flight.counts();
        assert_eq!((counts.due, counts.sent, counts.timeouts), (2, 1, 1));
        // All of them are tried, and what has waited for a whole timeout is given up.
        let tried = schedule.try_aside(SECOND, &mut in_flight, |due, _| Ok::<_, ()>(due.at_ns == 10 * MS));
        assert_eq!((tried, schedule.aside.len(), in_flight.counts().due), (Ok(1), 1_022, 3));
    }
}
