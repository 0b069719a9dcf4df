//! The counters of a thread, and their sum over threads.

use dnsrig_core::stats::{Times, times};
use dnsrig_dns::xfr::{Answered, Counts, Outcome};
use serde::Serialize;

use super::schedule::slots::{Ended, Handshake};

/// Counts of connections, as the summary has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    pub attempted: u64,
    pub established: u64,
    /// With TLS.
    pub full_handshakes: u64,
    pub resumed: u64,
    pub closed_by_primary: u64,
    pub reset: u64,
    pub refused: u64,
    /// Not begun, because this host had no port left. Another attempt was made a little later.
    pub no_port: u64,
    pub closed_by_us: u64,
}

/// What is counted of transfers, as the summary has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub attempts: u64,
    pub retries: u64,
    /// Zones that came whole, and as changes.
    pub axfr: u64,
    pub ixfr: u64,
    pub records: u64,
    pub messages: u64,
    pub bytes: u64,
    pub bytes_sent: u64,
    pub unmatched: u64,
    pub interleaved: u64,
    pub out_of_order: u64,
    pub behind_ns_max: i64,
    pub notifies: u64,
    /// 0: none came.
    pub first_message_ns: i64,
}

/// Counts of transfers and connections.
pub struct Counters {
    /// How zones ended, by [`Outcome`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// How attempts ended, by [`Outcome`].
    pub attempt_outcomes: [u64; Outcome::ALL.len()],
    pub totals: Totals,
    /// When a zone was done last; 0: none was.
    pub last_done_ns: i64,
    /// From asking for a zone to its last message.
    pub times: Times,
    pub connections: ConnectionCounts,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            outcomes: [0; Outcome::ALL.len()],
            attempt_outcomes: [0; Outcome::ALL.len()],
            totals: Totals::default(),
            last_done_ns: 0,
            times: times(),
            connections: ConnectionCounts::default(),
        }
    }
}

impl Counters {
    /// The number of zones that were transferred.
    pub fn done(&self) -> u64 {
        self.outcomes[Outcome::Done as usize]
    }

    pub fn up_to_date(&self) -> u64 {
        self.outcomes[Outcome::UpToDate as usize]
    }

    pub fn failed(&self) -> u64 {
        self.outcomes.iter().sum::<u64>() - self.done() - self.up_to_date()
    }

    /// What came of one query.
    pub fn answered(&mut self, counts: &Counts) {
        self.totals.records += counts.records;
        self.totals.messages += u64::from(counts.messages);
        self.totals.bytes += counts.bytes;
    }

    /// A zone came, `waited_ns` after it was asked for, and its last message `took_ns` after.
    pub fn came(&mut self, answered: Answered, waited_ns: i64, took_ns: i64, now_ns: i64) {
        match answered {
            Answered::Axfr => self.totals.axfr += 1,
            Answered::Ixfr => self.totals.ixfr += 1,
            _ => {}
        }
        self.totals.behind_ns_max = self.totals.behind_ns_max.max(waited_ns);
        self.last_done_ns = now_ns;
        // A longer time than the histogram can hold counts as the longest.
        self.times.saturating_record(took_ns.max(0).unsigned_abs());
    }

    /// A connection is established.
    pub fn established(&mut self, handshake: Handshake) {
        self.connections.established += 1;
        match handshake {
            Handshake::None => {}
            Handshake::Full => self.connections.full_handshakes += 1,
            Handshake::Resumed => self.connections.resumed += 1,
        }
    }

    /// A connection is over.
    pub fn ended(&mut self, ended: Ended) {
        let connections = &mut self.connections;
        match ended {
            Ended::Ours | Ended::TimedOut | Ended::UsedUp => connections.closed_by_us += 1,
            Ended::Closed => connections.closed_by_primary += 1,
            Ended::Reset | Ended::Tls => connections.reset += 1,
            Ended::Refused => connections.refused += 1,
            Ended::NoPort => connections.no_port += 1,
        }
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Counters) {
        let both =
            |mine: &mut [u64], theirs: &[u64]| mine.iter_mut().zip(theirs).for_each(|(mine, other)| *mine += other);
        both(&mut self.outcomes, &other.outcomes);
        both(&mut self.attempt_outcomes, &other.attempt_outcomes);
        self.totals.add(&other.totals);
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
        self.times.add(&other.times).expect("all have the same range");
        self.connections.add(&other.connections);
    }
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        for (mine, other) in [
            (&mut self.attempts, other.attempts),
            (&mut self.retries, other.retries),
            (&mut self.axfr, other.axfr),
            (&mut self.ixfr, other.ixfr),
            (&mut self.records, other.records),
            (&mut self.messages, other.messages),
            (&mut self.bytes, other.bytes),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.unmatched, other.unmatched),
            (&mut self.interleaved, other.interleaved),
            (&mut self.out_of_order, other.out_of_order),
            (&mut self.notifies, other.notifies),
        ] {
            *mine += other;
        }
        self.behind_ns_max = self.behind_ns_max.max(other.behind_ns_max);
        self.first_message_ns = match (self.first_message_ns, other.first_message_ns) {
            (0, first_ns) | (first_ns, 0) => first_ns,
            (mine_ns, other_ns) => mine_ns.min(other_ns),
        };
    }
}

impl ConnectionCounts {
    fn add(&mut self, other: &ConnectionCounts) {
        for (mine, other) in [
            (&mut self.attempted, other.attempted),
            (&mut self.established, other.established),
            (&mut self.full_handshakes, other.full_handshakes),
            (&mut self.resumed, other.resumed),
            (&mut self.closed_by_primary, other.closed_by_primary),
            (&mut self.reset, other.reset),
            (&mut self.refused, other.refused),
            (&mut self.no_port, other.no_port),
            (&mut self.closed_by_us, other.closed_by_us),
        ] {
            *mine += other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_adds_each;

    #[test]
    fn counts_of_threads_are_added() {
        let connections = ConnectionCounts {
            attempted: 1,
            established: 2,
            full_handshakes: 3,
            resumed: 4,
            closed_by_primary: 5,
            reset: 6,
            refused: 7,
            no_port: 8,
            closed_by_us: 9,
        };
        assert_adds_each(&connections, ConnectionCounts::add);
        let totals = Totals {
            attempts: 1,
            retries: 2,
            axfr: 3,
            ixfr: 4,
            records: 5,
            messages: 6,
            bytes: 7,
            bytes_sent: 8,
            unmatched: 9,
            interleaved: 10,
            out_of_order: 11,
            behind_ns_max: 120,
            notifies: 13,
            first_message_ns: 140,
        };
        let twice = Totals {
            attempts: 2,
            retries: 4,
            axfr: 6,
            ixfr: 8,
            records: 10,
            messages: 12,
            bytes: 14,
            bytes_sent: 16,
            unmatched: 18,
            interleaved: 20,
            out_of_order: 22,
            notifies: 26,
            ..totals
        };
        let mut sum = totals;
        sum.add(&totals);
        assert_eq!(sum, twice);
        // The longest time and the first moment; 0 is no moment.
        for ([one, other], expected) in [([0, 0], 0), ([0, 5], 5), ([5, 0], 5), ([5, 7], 5), ([7, 5], 5)] {
            let mut sum = Totals { first_message_ns: one, behind_ns_max: one, ..totals };
            sum.add(&Totals { first_message_ns: other, behind_ns_max: other, ..totals });
            assert_eq!((sum.first_message_ns, sum.behind_ns_max), (expected, one.max(other)));
        }
    }

    #[test]
    fn all_that_a_thread_counted_is_added() {
        let mut counters = Counters::default();
        counters.outcomes[Outcome::Done as usize] = 3;
        counters.outcomes[Outcome::UpToDate as usize] = 4;
        counters.outcomes[Outcome::Cut as usize] = 5;
        counters.attempt_outcomes[Outcome::Cut as usize] = 6;
        counters.answered(&Counts { records: 7, messages: 8, bytes: 9, ..Counts::default() });
        counters.came(Answered::Axfr, 50, 2_000, 900);
        counters.came(Answered::Ixfr, 40, 1_000, 800);
        counters.came(Answered::Soa, 45, -1, 850);
        let mut sum = Counters { last_done_ns: 870, ..Counters::default() };
        sum.add(&counters);
        sum.add(&counters);
        assert_eq!((sum.done(), sum.up_to_date(), sum.failed()), (6, 8, 10));
        assert_eq!((sum.attempt_outcomes[Outcome::Cut as usize], sum.last_done_ns), (12, 870));
        let Totals { axfr, ixfr, records, messages, bytes, behind_ns_max, .. } = sum.totals;
        assert_eq!((axfr, ixfr, records, messages, bytes, behind_ns_max), (2, 2, 14, 16, 18, 50));
        assert_eq!((sum.times.len(), sum.times.max()), (6, 2_000));
    }

    #[test]
    fn a_connection_is_counted_by_how_it_began_and_ended() {
        let begun = [Handshake::None, Handshake::Full, Handshake::Resumed].map(|handshake| {
            let mut counters = Counters::default();
            counters.established(handshake);
            let ConnectionCounts { established, full_handshakes, resumed, .. } = counters.connections;
            [established, full_handshakes, resumed]
        });
        assert_eq!(begun, [[1, 0, 0], [1, 1, 0], [1, 0, 1]]);
        for (ended, expected) in [
            (Ended::Ours, ConnectionCounts { closed_by_us: 1, ..ConnectionCounts::default() }),
            (Ended::TimedOut, ConnectionCounts { closed_by_us: 1, ..ConnectionCounts::default() }),
            (Ended::UsedUp, ConnectionCounts { closed_by_us: 1, ..ConnectionCounts::default() }),
            (Ended::Closed, ConnectionCounts { closed_by_primary: 1, ..ConnectionCounts::default() }),
            (Ended::Reset, ConnectionCounts { reset: 1, ..ConnectionCounts::default() }),
            (Ended::Tls, ConnectionCounts { reset: 1, ..ConnectionCounts::default() }),
            (Ended::Refused, ConnectionCounts { refused: 1, ..ConnectionCounts::default() }),
            (Ended::NoPort, ConnectionCounts { no_port: 1, ..ConnectionCounts::default() }),
        ] {
            let mut counters = Counters::default();
            counters.ended(ended);
            assert_eq!(counters.connections, expected, "{ended:?}");
        }
    }
}
