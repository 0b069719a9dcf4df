//! What is counted of one direction. No I/O, no clock.

use std::ops::Sub;

use dnsrig_core::stats::{Times, percentiles, times};
use serde::Serialize;

use super::delay_queue::{Departure, Fate};

/// Packets and bytes (of IP) since the link began. What was taken is what was delivered, lost, overflowed, too big or
/// refused, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Taken from the interface where the direction begins.
    pub packets: u64,
    pub bytes: u64,
    /// Received by the interface where it ends.
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    /// By chance.
    pub lost: u64,
    /// Beyond the limit.
    pub overflowed: u64,
    /// For the path's MTU.
    pub too_big: u64,
    /// Not taken by the interface where it ends: it was down.
    pub refused: u64,
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            delivered_packets: self.delivered_packets - earlier.delivered_packets,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            lost: self.lost - earlier.lost,
            overflowed: self.overflowed - earlier.overflowed,
            too_big: self.too_big - earlier.too_big,
            refused: self.refused - earlier.refused,
        }
    }
}

/// How long packets were under way, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Delay {
    mean: f64,
    min: u64,
    p50: u64,
    p99: u64,
    max: u64,
}

/// How long after their due times they left, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Late {
    p50: u64,
    p90: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p99_9: u64,
    max: u64,
}

/// The counters of one direction.
pub struct Counters {
    counts: Counts,
    queue_packets_max: u32,
    delay: Times,
    late: Times,
    /// What the last row had.
    told: Counts,
    late_ns_max: u64,
}

impl Default for Counters {
    /// Nothing yet.
    fn default() -> Self {
        let counts = Counts::default();
        Counters { counts, queue_packets_max: 0, delay: times(), late: times(), told: counts, late_ns_max: 0 }
    }
}

impl Counters {
    /// Counts a packet that was taken, and how many packets and bytes wait now.
    pub fn took(&mut self, bytes: usize, fate: Fate, waiting_packets: u32) {
        self.counts.packets += 1;
        self.counts.bytes += bytes as u64;
        match fate {
            Fate::Waits => self.queue_packets_max = self.queue_packets_max.max(waiting_packets),
            Fate::Lost => self.counts.lost += 1,
            Fate::TooBig => self.counts.too_big += 1,
            Fate::Overflowed => self.counts.overflowed += 1,
        }
    }

    /// A packet was delivered at `now_ns`, or refused.
    pub fn gave(&mut self, departure: Departure<'_>, now_ns: i64, delivered: bool) {
        if !delivered {
            self.counts.refused += 1;
            return;
        }
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += departure.bytes.len() as u64;
        let late_ns = since(departure.due_ns, now_ns);
        self.late_ns_max = self.late_ns_max.max(late_ns);
        self.late.saturating_record(late_ns);
        self.delay.saturating_record(since(departure.taken_ns, now_ns));
    }

    /// All that was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The most packets that ever waited.
    pub fn queue_packets_max(&self) -> u32 {
        self.queue_packets_max
    }

    /// What was counted since the last call, and the largest lateness in that time.
    pub fn interval(&mut self) -> (Counts, u64) {
        let since = self.counts - self.told;
        self.told = self.counts;
        (since, std::mem::take(&mut self.late_ns_max))
    }

    /// The time under way of all packets that were delivered; zeros if none was.
    pub fn delay(&self) -> Delay {
        let [p50, p99] = percentiles(&self.delay, [5_000, 9_900]);
        if self.delay.is_empty() {
            return Delay::default();
        }
        Delay { mean: self.delay.mean(), min: self.delay.min(), p50, p99, max: self.delay.max() }
    }

    /// The lateness of all packets that were delivered.
    pub fn late(&self) -> Late {
        let [p50, p90, p99, p99_9] = percentiles(&self.late, [5_000, 9_000, 9_900, 9_990]);
        Late { p50, p90, p99, p99_9, max: self.late.max() }
    }
}

fn since(earlier_ns: i64, now_ns: i64) -> u64 {
    (now_ns - earlier_ns).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(taken_ns: i64, due_ns: i64) -> Departure<'static> {
        Departure { taken_ns, due_ns, bytes: &[0; 100] }
    }

    #[test]
    fn every_packet_is_counted_once() {
        let mut counters = Counters::default();
        for fate in [Fate::Waits, Fate::Waits, Fate::Lost, Fate::TooBig, Fate::Overflowed] {
            counters.took(100, fate, 2);
        }
        counters.gave(departure(0, 10), 15, true);
        counters.gave(departure(0, 20), 20, false);
        let Counts { packets, bytes, delivered_packets, delivered_bytes, lost, overflowed, too_big, refused } =
            counters.counts();
        assert_eq!((packets, bytes, delivered_packets, delivered_bytes), (5, 500, 1, 100));
        assert_eq!((lost, overflowed, too_big, refused), (1, 1, 1, 1));
        assert_eq!(counters.queue_packets_max(), 2);
    }

    #[test]
    fn a_row_has_what_came_since_the_one_before() {
        let mut counters = Counters::default();
        counters.took(100, Fate::Waits, 1);
        counters.gave(departure(0, 10), 17, true);
        let (first, late_ns) = counters.interval();
        assert_eq!((first.packets, first.delivered_bytes, late_ns), (1, 100, 7));
        counters.took(50, Fate::Lost, 0);
        let (second, late_ns) = counters.interval();
        assert_eq!((second.packets, second.bytes, second.lost, second.delivered_packets, late_ns), (1, 50, 1, 0, 0));
        assert_eq!(counters.counts().packets, 2, "the sum stays");
    }

    #[test]
    fn times_are_those_of_delivered_packets() {
        let mut counters = Counters::default();
        assert_eq!((counters.delay(), counters.late()), (Delay::default(), Late::default()));
        for late_ns in 0..100 {
            counters.gave(departure(0, 1000), 1000 + late_ns, true);
        }
        counters.gave(departure(0, 0), 5_000_000, false);
        let (delay, late) = (counters.delay(), counters.late());
        assert_eq!((delay.min, late.p50, late.p99, late.max), (1000, 49, 98, 99));
        assert!((1099..=1100).contains(&delay.max), "{delay:?}");
    }

    #[test]
    fn each_count_of_an_interval_is_a_difference() {
        let of = |times: u64| Counts {
            packets: times,
            bytes: 2 * times,
            delivered_packets: 3 * times,
            delivered_bytes: 4 * times,
            lost: 5 * times,
            overflowed: 6 * times,
            too_big: 7 * times,
            refused: 8 * times,
        };
        assert_eq!(of(10) - of(3), of(7));
        assert_eq!(of(3) - of(3), Counts::default());
    }

    #[test]
    fn a_row_has_the_largest_lateness_since_the_one_before() {
        let mut counters = Counters::default();
        for late_ns in [5, 9, 7] {
            counters.gave(departure(0, 10), 10 + late_ns, true);
        }
        assert_eq!(counters.interval().1, 9);
        counters.gave(departure(0, 10), 8, true);
        assert_eq!(counters.interval().1, 0, "before its time is not late");
        for (waiting, most) in [(3, 3), (7, 7), (2, 7)] {
            counters.took(100, Fate::Waits, waiting);
            assert_eq!(counters.queue_packets_max(), most);
        }
    }
}
