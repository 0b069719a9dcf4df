//! When queries were sent and when answers came, in bins of 10 ms, for all clients of a thread together.
//!
//! An interval's counts belong to queries that were due in it, whenever they were answered: they do not show that
//! nothing was answered for a while. These bins do. Each keeps when its first and its last answer came, so the time
//! without an answer is known to the nanosecond, and how many were sent, so that a silent server is told from one that
//! nobody asked.

/// The length of a bin.
pub const BIN_NS: i64 = 10_000_000;

/// An interval has at most so many bins; those of a longer one are longer.
const BINS_MAX: i64 = 16_384;

/// What was sent and answered in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    pub sent: u32,
    /// Every answer to a query of ours, also a late one or a second one.
    pub answered: u32,
    /// When the first and the last answer came; 0 without any.
    pub first_ns: i64,
    pub last_ns: i64,
}

impl Bin {
    /// Counts an answer. They come in the order of time, but for those of different sockets.
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
    /// For an interval of `interval_ns`.
    pub fn new(interval_ns: i64) -> Self {
        let bin_ns = BIN_NS.max((interval_ns + BINS_MAX - 1) / BINS_MAX);
        let count = (interval_ns + bin_ns - 1) / bin_ns;
        Bins { bin_ns, bins: vec![Bin::default(); count.unsigned_abs() as usize] }
    }

    /// The bin that begins at most `into_ns` after the interval; none if that is beyond its end.
    pub fn at(&mut self, into_ns: i64) -> Option<&mut Bin> {
        self.bins.get_mut((into_ns / self.bin_ns).unsigned_abs() as usize)
    }

    /// Those in which anything happened, each with the time from the interval's start to its own.
    pub fn used(&self) -> impl Iterator<Item = (i64, &Bin)> {
        let starts_ns = (0_i64..).map(|number| number * self.bin_ns);
        starts_ns.zip(&self.bins).filter(|(_, bin)| bin.sent > 0 || bin.answered > 0)
    }

    /// Adds those of another thread for the same interval.
    pub fn add(&mut self, other: &Bins) {
        if self.bins.len() < other.bins.len() {
            self.bin_ns = other.bin_ns;
            self.bins.resize(other.bins.len(), Bin::default());
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, other)| mine.add(other));
    }

    /// Empties all.
    pub fn clear(&mut self) {
        self.bins.fill(Bin::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_all_threads_keep_the_first_and_the_last_answer() {
        let [mut one, mut other, mut all] = [Bins::new(25_000_000), Bins::new(25_000_000), Bins::default()];
        one.at(9_999_999).unwrap().answered(109);
        one.at(0).unwrap().answered(105);
        one.at(24_999_999).unwrap().sent += 1;
        other.at(0).unwrap().answered(103);
        all.add(&one);
        all.add(&other);
        let used: Vec<_> = all.used().map(|(start_ns, bin)| (start_ns, *bin)).collect();
        let answered = Bin { sent: 0, answered: 3, first_ns: 103, last_ns: 109 };
        assert_eq!(used, [(0, answered), (20_000_000, Bin { sent: 1, ..Bin::default() })]);
        all.clear();
        assert_eq!(all.used().count(), 0);
    }

    #[test]
    fn an_interval_of_an_hour_has_a_bounded_number_of_bins() {
        let mut hour = Bins::new(3_600_000_000_000);
        assert!(hour.bins.len() <= BINS_MAX as usize);
        assert!(hour.at(3_599_999_999_999).is_some() && hour.at(3_700_000_000_000).is_none());
    }
}
