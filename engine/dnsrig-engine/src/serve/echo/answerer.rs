//! Decides what happens to each query of a thread: answered now, later or never.

use std::ops::AddAssign;

use dnsrig_core::clock;
use dnsrig_dns::header::{AA, HEADER_BYTES, QR, RCODE, TC};
use dnsrig_net::connection::limits::Connections;
use serde::Serialize;

use super::faults::{Fate, Faults, Settings};
use crate::serve::shell::{
    delayed::{BYTES_MAX, Delayed},
    service::Destination,
};

/// When the answer to a query is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// By the caller, at once.
    Now,
    /// When it is due: see [`Answerer::pop_due`].
    Later,
    /// Never; it is counted.
    Never,
}

/// Counts and, where there are faults, delays and drops.
pub struct Answerer {
    /// What was counted so far.
    pub counts: Counts,
    // Without faults neither the clock nor the queue is touched.
    faults: Option<Faults>,
    delayed: Delayed<Destination>,
    now_ns: i64,
}

impl Answerer {
    /// The answerer of thread number `thread`; up to `delayed_max` of its answers wait at a time.
    pub fn new(settings: Settings, thread: usize, start_ns: i64, delayed_max: usize) -> Self {
        let capacity = if settings.has_delay() { delayed_max } else { 0 };
        let faults = settings.is_any().then(|| Faults::new(settings, thread, start_ns));
        Answerer { counts: Counts::default(), faults, delayed: Delayed::new(capacity), now_ns: start_ns }
    }

    /// Whether anything happens to any answer.
    fn has_faults(&self) -> bool {
        self.faults.is_some()
    }

    /// Looks at the clock, for the queries that were just read.
    pub fn tick(&mut self) {
        if self.has_faults() {
            self.now_ns = clock::monotonic_ns();
        }
    }

    /// The end of the stall that we are in, if we are.
    pub fn stalled_until_ns(&self) -> Option<i64> {
        self.faults.as_ref()?.stalled_until_ns(clock::monotonic_ns())
    }

    /// Takes in a message that had `length` bytes when it came, `bytes` being those that there was room for.
    #[inline]
    pub fn take(&mut self, bytes: &[u8], length: usize, to: Destination) -> Turn {
        if !is_query(bytes) {
            self.counts.dropped.malformed += 1;
            return Turn::Never;
        }
        self.counts.queries += 1;
        if length > bytes.len() {
            self.counts.dropped.too_long += 1;
            return Turn::Never;
        }
        let Some(faults) = &mut self.faults else { return Turn::Now };
        match faults.fate(self.now_ns) {
            Fate::Now => Turn::Now,
            Fate::At(due_ns) => self.keep(bytes, due_ns, to),
            Fate::Lost => {
                self.counts.dropped.lost += 1;
                Turn::Never
            }
        }
    }

    fn keep(&mut self, bytes: &[u8], due_ns: i64, to: Destination) -> Turn {
        if bytes.len() > BYTES_MAX {
            self.counts.dropped.too_long += 1;
            return Turn::Never;
        }
        if !self.delayed.push(due_ns, to, bytes) {
            self.counts.dropped.queue_full += 1;
            return Turn::Never;
        }
        Turn::Later
    }

    /// When the next answer that waits is due.
    pub fn due_ns(&self) -> Option<i64> {
        self.delayed.due_ns()
    }

    /// The next query whose answer is due, as it came.
    pub fn pop_due(&mut self) -> Option<(Destination, &[u8])> {
        self.delayed.due_ns()?;
        self.delayed.pop(clock::monotonic_ns())
    }

    /// The counts at the end.
    pub fn finish(mut self) -> Counts {
        self.counts.waiting = self.delayed.len() as u64;
        self.counts
    }
}

/// Whether it is a query at all: a header that is whole, and no answer, lest two servers answer each other for ever.
#[inline]
pub fn is_query(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER_BYTES && bytes[2] & QR == 0
}

/// Makes a query its own answer: QR and AA set, TC clear, NOERROR. All else stays as it came, OPT and TSIG too.
#[inline]
pub fn answer(query: &mut [u8]) {
    query[2] = query[2] & !TC | QR | AA;
    query[3] &= !RCODE;
}

/// `queries` = `answers` + all of `dropped` but `malformed` + `waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that are queries.
    pub queries: u64,
    /// Answers handed to the kernel or to a connection.
    pub answers: u64,
    /// What was not answered, by reason.
    pub dropped: Dropped,
    /// Answers that still waited for their delay at the end.
    pub waiting: u64,
    /// Datagrams that found the receive buffer full; the thread never saw them, and `queries` does not count them.
    pub receive_buffer_drops: u64,
    /// Connections of TCP and DoT.
    pub connections: Connections,
    /// CPU time of the thread, user and system.
    pub cpu_ns: i64,
}

/// Messages without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// No query: too short for a header, or a response.
    pub malformed: u64,
    /// Longer than an answer over UDP, or one that waits, may be.
    pub too_long: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// More answers wait for their delay than there is room for.
    pub queue_full: u64,
    /// The kernel did not take the answer, or the connection was gone or did not read.
    pub unsent: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.queries += other.queries;
        self.answers += other.answers;
        self.dropped += other.dropped;
        self.waiting += other.waiting;
        self.receive_buffer_drops += other.receive_buffer_drops;
        self.connections += other.connections;
        self.cpu_ns += other.cpu_ns;
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, other: Dropped) {
        self.malformed += other.malformed;
        self.too_long += other.too_long;
        self.lost += other.lost;
        self.queue_full += other.queue_full;
        self.unsent += other.unsent;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::testing::{CONNECTIONS, assert_adds_each};

    const TO: Destination = Destination::Datagram { peer: None, source: None };

    fn balanced(counts: &Counts) -> bool {
        let dropped = counts.dropped;
        let unanswered = dropped.too_long + dropped.lost + dropped.queue_full + dropped.unsent + counts.waiting;
        counts.queries == counts.answers + unanswered
    }

    #[test]
    fn what_is_too_long_or_finds_no_room_is_counted() {
        let settings = Settings { delay_ns: 1, ..Settings::default() };
        let mut answerer = Answerer::new(settings, 0, 0, 1);
        assert_eq!(answerer.take(&[0; 12], 13, TO), Turn::Never);
        assert_eq!(answerer.take(&[0; BYTES_MAX + 1], BYTES_MAX + 1, TO), Turn::Never);
        assert_eq!(answerer.take(&[0; 12], 12, TO), Turn::Later);
        assert_eq!(answerer.take(&[0; 12], 12, TO), Turn::Never);
        assert_eq!(answerer.take(&[0; 11], 11, TO), Turn::Never);
        let counts = answerer.finish();
        assert_eq!((counts.dropped.too_long, counts.dropped.queue_full, counts.waiting), (2, 1, 1));
        assert_eq!((counts.queries, counts.dropped.malformed), (4, 1));
        assert!(balanced(&counts));
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_exactly_once(
            messages in vec((vec(any::<u8>(), 0..40), 0..3_usize), 0..50),
            delay_ns in 0..2_i64,
            loss in 0.0..0.5,
        ) {
            let settings = Settings { delay_ns, loss, ..Settings::default() };
            let mut answerer = Answerer::new(settings, 0, 0, 8);
            for (bytes, cut) in &messages {
                if answerer.take(bytes, bytes.len() + cut, TO) == Turn::Now {
                    answerer.counts.answers += 1;
                }
            }
            let counts = answerer.finish();
            prop_assert!(balanced(&counts));
            prop_assert_eq!(counts.queries + counts.dropped.malformed, messages.len() as u64);
        }
    }

    #[test]
    fn counts_of_threads_are_added() {
        let dropped = Dropped { malformed: 1, too_long: 2, lost: 3, queue_full: 4, unsent: 5 };
        let counts = Counts {
            queries: 6,
            answers: 7,
            dropped,
            waiting: 8,
            receive_buffer_drops: 9,
            connections: CONNECTIONS,
            cpu_ns: 10,
        };
        assert_adds_each(&counts, |sum, more| *sum += more);
    }

    #[test]
    fn only_a_whole_header_without_qr_is_a_query() {
        assert!(is_query(&[0; 12]));
        assert!(!is_query(&[0; 11]));
        assert!(!is_query(&[]));
        assert!(!is_query(&[0, 0, QR, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn an_answer_keeps_opcode_and_recursion_desired() {
        let mut message = [1, 2, 0x2b, 0x1f, 0, 1, 0, 0, 0, 0, 0, 0];
        answer(&mut message);
        assert_eq!(message, [1, 2, 0xad, 0x10, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn an_answer_is_never_answered_again(bytes in vec(any::<u8>(), 0..100)) {
            if is_query(&bytes) {
                let mut reply = bytes.clone();
                answer(&mut reply);
                prop_assert!(!is_query(&reply));
                prop_assert_eq!((&reply[..2], &reply[4..]), (&bytes[..2], &bytes[4..]));
                prop_assert_eq!((reply[2] & 0x79, reply[3] & RCODE), (bytes[2] & 0x79, 0));
            }
        }
    }
}
