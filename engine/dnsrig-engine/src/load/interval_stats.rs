//! What is counted and timed, an interval at a time: no clock, no socket, no allocation but at an interval's edge.
//!
//! A query belongs to the interval in which it was *due*. An interval is complete when no more queries fall due in it
//! and each of its queries has ended, so a few are open at a time: as many as the client timeout spans, and two.
//!
//! So the counts of an interval do not show that nothing was answered for a while. Its [`Bins`] of 10 ms do: they count
//! what was sent and answered in them, for all clients of a thread together. Each keeps when its first and its last
//! answer came, so the time without an answer is known to the nanosecond, and how many queries were sent, so that a
//! silent server differs from one that nobody asked.

use std::collections::VecDeque;

use dnsrig_core::stats::{TIME_MAX_NS, Times, times};

use super::{
    answer::RCODES,
    client_totals::{self, ClientCounts, ClientTotals, End},
    counter::Counter as _,
    counts::Counts,
};

/// Series of times: of queries, and of connections.
#[derive(Clone, Debug)]
pub struct Series {
    /// From the due time to the answer, or to the timeout.
    pub due: Times,
    /// From the sending to the answer, or to the timeout.
    pub sent: Times,
    /// The time that the server would have taken at least if the instrument had been in time: see [`super::lateness`].
    pub lower: Times,
    /// From the due time to the sending.
    pub lag: Times,
    /// From connecting to established, with TLS if there is any.
    pub handshake: Times,
}

impl Default for Series {
    fn default() -> Self {
        Series { due: times(), sent: times(), lower: times(), lag: times(), handshake: times() }
    }
}

impl Series {
    /// Adds what another timed.
    pub fn add(&mut self, other: &Series) {
        for (mine, other) in [
            (&mut self.due, &other.due),
            (&mut self.sent, &other.sent),
            (&mut self.lower, &other.lower),
            (&mut self.lag, &other.lag),
            (&mut self.handshake, &other.handshake),
        ] {
            mine.add(other).expect("all histograms have the same bounds");
        }
    }

    fn clear(&mut self) {
        for times in [&mut self.due, &mut self.sent, &mut self.lower, &mut self.lag, &mut self.handshake] {
            times.reset();
        }
    }
}

/// The length of a bin.
const BIN_NS: i64 = 10_000_000;

/// The highest number of bins of an interval. The bins of a longer interval are longer.
const BINS_MAX: i64 = 16_384;

/// What was sent and answered in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    pub sent: u32,
    /// Every answer to a query of ours, also a late one or a second one.
    pub answered: u32,
    /// When the first and the last answer came. 0 if none came.
    pub first_ns: i64,
    pub last_ns: i64,
}

impl Bin {
    /// Counts an answer. Answers come in the order of time, except on different sockets.
    pub fn answered(&mut self, received_ns: i64) {
        self.first_ns = if self.answered == 0 { received_ns } else { self.first_ns.min(received_ns) };
        self.last_ns = self.last_ns.max(received_ns);
        self.answered += 1;
    }

    /// Adds what another thread counted.
    fn add(&mut self, other: &Bin) {
        if other.answered > 0 {
            self.first_ns = if self.answered == 0 { other.first_ns } else { self.first_ns.min(other.first_ns) };
            self.last_ns = self.last_ns.max(other.last_ns);
        }
        self.sent += other.sent;
        self.answered += other.answered;
    }
}

/// The bins of an interval, allocated with it.
#[derive(Clone, Debug, Default)]
pub struct Bins {
    bin_ns: i64,
    bins: Vec<Bin>,
}

impl Bins {
    /// Empty bins for an interval of `interval_ns`.
    pub fn new(interval_ns: i64) -> Self {
        let bin_ns = BIN_NS.max((interval_ns + BINS_MAX - 1) / BINS_MAX);
        let count = (interval_ns + bin_ns - 1) / bin_ns;
        Bins { bin_ns, bins: vec![Bin::default(); count.unsigned_abs() as usize] }
    }

    /// The bin of the time `into_ns` after the interval's start. `None` if that is beyond its end.
    pub fn at(&mut self, into_ns: i64) -> Option<&mut Bin> {
        self.bins.get_mut((into_ns / self.bin_ns).unsigned_abs() as usize)
    }

    /// The bins in which anything happened, each with the time from the interval's start to its own.
    pub fn used(&self) -> impl Iterator<Item = (i64, &Bin)> {
        let starts_ns = (0_i64..).map(|number| number * self.bin_ns);
        starts_ns.zip(&self.bins).filter(|(_, bin)| bin.sent > 0 || bin.answered > 0)
    }

    /// Adds the bins of another thread for the same interval.
    pub fn add(&mut self, other: &Bins) {
        if self.bins.len() < other.bins.len() {
            self.bin_ns = other.bin_ns;
            self.bins.resize(other.bins.len(), Bin::default());
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, other)| mine.add(other));
    }

    /// Empties all bins.
    pub fn clear(&mut self) {
        self.bins.fill(Bin::default());
    }
}

/// An interval of one thread.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Counted from 0 at the start.
    pub number: u64,
    pub counts: Counts,
    pub series: Series,
    /// By the number of the client on its thread.
    pub clients: Vec<ClientCounts>,
    /// What was sent and answered *during* it, whenever it was due.
    pub bins: Bins,
    /// How long the thread had work.
    pub busy_ns: i64,
    /// The number of queries that were sent and have not ended yet.
    open: u64,
}

impl Interval {
    fn new(number: u64, clients: usize, bins: Bins) -> Self {
        Interval {
            number,
            counts: Counts::default(),
            series: Series::default(),
            clients: vec![ClientCounts::default(); clients],
            bins,
            busy_ns: 0,
            open: 0,
        }
    }

    /// An interval without clients, to which others are added.
    pub fn empty(number: u64) -> Self {
        Interval::new(number, 0, Bins::default())
    }

    /// Adds what another thread counted and timed. Its clients have the numbers from `first` on.
    pub fn add(&mut self, other: &Interval, first: usize) {
        self.counts.add(&other.counts);
        self.series.add(&other.series);
        self.bins.add(&other.bins);
        client_totals::add_from(&mut self.clients, first, &other.clients);
    }

    fn clear(&mut self, number: u64) {
        self.number = number;
        self.counts = Counts::default();
        self.series.clear();
        self.clients.fill(ClientCounts::default());
        self.bins.clear();
        (self.busy_ns, self.open) = (0, 0);
    }
}

/// The times of a query that ended. Without an answer `ended_ns` is sending plus timeout, whenever it was noticed.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub due_ns: i64,
    pub sent_ns: i64,
    pub ended_ns: i64,
    /// A latency, not a moment: the time that the server would have taken at least.
    pub lower_ns: i64,
    pub end: End,
}

/// The measurements of one thread.
pub struct IntervalStats {
    start_ns: i64,
    end_ns: i64,
    interval_ns: i64,
    clients: usize,
    /// The counts of clients over all intervals. `None`: each interval has its own.
    pub totals: Option<ClientTotals>,
    /// Intervals that are not complete, in order.
    open: VecDeque<Box<Interval>>,
    /// Empty intervals that can be used again. They are in boxes, because they are handed to and fro.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Interval>>,
}

impl IntervalStats {
    /// Measurements of queries that are due from `start_ns` to before `end_ns`, by `clients` clients.
    pub fn new(start_ns: i64, end_ns: i64, interval_ns: i64, clients: usize) -> Self {
        assert!(start_ns < end_ns && interval_ns > 0);
        let first = Box::new(Interval::new(0, clients, Bins::new(interval_ns)));
        let (open, spare, totals) = (VecDeque::from([first]), Vec::new(), None);
        IntervalStats { start_ns, end_ns, interval_ns, clients, totals, open, spare }
    }

    /// Measurements of many clients, each of which is counted over all intervals only.
    pub fn with_totals(interval_ns: i64, totals: ClientTotals) -> Self {
        IntervalStats { totals: Some(totals), ..IntervalStats::new(0, 1, interval_ns, 0) }
    }

    /// Begins another period. Intervals that were not taken are gone.
    pub fn restart(&mut self, start_ns: i64, end_ns: i64) {
        assert!(start_ns < end_ns);
        (self.start_ns, self.end_ns) = (start_ns, end_ns);
        self.spare.extend(self.open.drain(..));
        let first = self.empty(0);
        self.open.push_back(first);
    }

    /// Ends the period earlier.
    pub fn cut(&mut self, end_ns: i64) {
        self.end_ns = end_ns.max(self.start_ns + 1);
    }

    /// The number of all intervals.
    pub fn intervals(&self) -> u64 {
        ((self.end_ns - self.start_ns + self.interval_ns - 1) / self.interval_ns).unsigned_abs()
    }

    /// The interval of a time. Times before the first interval or after the last belong to these.
    pub fn at(&mut self, time_ns: i64) -> &mut Interval {
        let within = (time_ns.min(self.end_ns - 1) - self.start_ns).max(0);
        let number = (within / self.interval_ns).unsigned_abs();
        let first = self.open.front().map_or(0, |interval| interval.number);
        // An interval that was given away gets no further counts of queries. Other counts, such as busy time, go to the
        // oldest open one.
        let place = number.saturating_sub(first) as usize;
        while self.open.len() <= place {
            let next = self.empty(first + self.open.len() as u64);
            self.open.push_back(next);
        }
        &mut self.open[place]
    }

    /// Counts a query as sent.
    pub fn sent(&mut self, due_ns: i64, sent_ns: i64, bytes: usize) {
        let interval = self.at(due_ns);
        interval.counts.due += 1;
        interval.counts.sent += 1;
        interval.counts.bytes_sent += bytes as u64;
        interval.open += 1;
        record(&mut interval.series.lag, sent_ns - due_ns);
        if let Some(bin) = self.bin(sent_ns) {
            bin.sent += 1;
        }
    }

    /// Counts an answer to a query, in time or not, in its bin.
    pub fn answer_came(&mut self, received_ns: i64) {
        if let Some(bin) = self.bin(received_ns) {
            bin.answered(received_ns);
        }
    }

    /// Counts a query that was due and will not be sent any more.
    pub fn given_up(&mut self, due_ns: i64) {
        self.at(due_ns).counts.due += 1;
    }

    /// Counts a truncated answer to a query of `client`, which is asked again.
    pub fn truncated(&mut self, client: usize, due_ns: i64) {
        if let Some(totals) = &mut self.totals {
            totals.truncated(client);
        }
        self.at(due_ns).counts.truncated += 1;
    }

    /// Ends a query of `client` that was sent.
    pub fn end(&mut self, client: usize, ended: Ended) {
        let Ended { due_ns, sent_ns, ended_ns, lower_ns, end } = ended;
        let (latency_ns, is_answered) = (ended_ns - due_ns, matches!(end, End::Answered { .. }));
        if let Some(totals) = &mut self.totals {
            totals.end(client, latency_ns, ended_ns - sent_ns, end);
        }
        let interval = self.at(due_ns);
        interval.open -= 1;
        if let Some(client) = interval.clients.get_mut(client) {
            client.count(latency_ns, ended_ns - sent_ns, is_answered);
        }
        record(&mut interval.series.due, latency_ns);
        record(&mut interval.series.sent, ended_ns - sent_ns);
        record(&mut interval.series.lower, lower_ns);
        let counts = &mut interval.counts;
        match end {
            End::Answered { .. } => counts.answered += 1,
            End::Wrong { kind, .. } => counts.wrong.count(kind),
            End::Timeout => counts.timeouts += 1,
            End::Lost(loss) => counts.lose(loss),
        }
        if let End::Answered { rcode, truncated, authenticated } | End::Wrong { rcode, truncated, authenticated, .. } =
            end
        {
            counts.truncated += u64::from(truncated);
            counts.authenticated += u64::from(authenticated);
            counts.rcodes[usize::from(rcode) % RCODES] += 1;
        }
    }

    /// Counts a connection that was established, `started_ns` being when connecting began.
    pub fn established(&mut self, started_ns: i64, established_ns: i64) {
        record(&mut self.at(started_ns).series.handshake, established_ns - started_ns);
    }

    /// The next complete interval. `next_due_ns` is when the next query falls due.
    pub fn complete(&mut self, next_due_ns: i64) -> Option<Box<Interval>> {
        let first = self.open.front()?;
        let ends_ns = self.start_ns + (first.number as i64 + 1) * self.interval_ns;
        if first.open > 0 || next_due_ns < ends_ns.min(self.end_ns) || first.number >= self.intervals() {
            return None;
        }
        let next = first.number + 1;
        let complete = self.open.pop_front();
        if self.open.is_empty() {
            let empty = self.empty(next);
            self.open.push_back(empty);
        }
        complete
    }

    /// Gives an interval back, to be used again.
    pub fn reuse(&mut self, interval: Box<Interval>) {
        self.spare.push(interval);
    }

    /// The bin of a time. `None` outside the period, or in an interval that was given away.
    fn bin(&mut self, time_ns: i64) -> Option<&mut Bin> {
        let within_ns = time_ns - self.start_ns;
        let (number, into_ns) = (within_ns / self.interval_ns, within_ns % self.interval_ns);
        let is_open = self.open.front().is_some_and(|first| first.number <= number.unsigned_abs());
        if within_ns < 0 || time_ns >= self.end_ns || !is_open {
            return None;
        }
        self.at(time_ns).bins.at(into_ns)
    }

    fn empty(&mut self, number: u64) -> Box<Interval> {
        match self.spare.pop() {
            Some(mut interval) => {
                interval.clear(number);
                interval
            }
            None => Box::new(Interval::new(number, self.clients, Bins::new(self.interval_ns))),
        }
    }
}

fn record(times: &mut Times, time_ns: i64) {
    times.saturating_record(time_ns.max(0).unsigned_abs().min(TIME_MAX_NS));
}

#[cfg(test)]
#[path = "interval_stats_tests.rs"]
mod tests;
