//! The search for the highest rate that a server holds. No clock, no socket.
//!
//! The rate is doubled until one does not hold, then the gap between the highest that held and the lowest that did not
//! is halved (geometrically) until it is narrow enough. A rate is tried up to `repeats` times and the majority counts,
//! so that one hiccup of the machine does not decide.

/// What a server must do at a rate to hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// At most this share of the queries without an answer, 0 to 1.
    pub loss_share: f64,
    /// This percentile of the latency from the due time …
    pub percentile: f64,
    /// … is at most so long.
    pub latency_ns: u64,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub start_qps: f64,
    pub max_qps: f64,
    /// The search ends when the rates that held and did not differ by less than this share.
    pub precision: f64,
    /// Each rate is tried so often at most; odd.
    pub repeats: u32,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    held_qps: Option<f64>,
    failed_qps: Option<f64>,
    rate_qps: f64,
    tries_held: u32,
    tries_failed: u32,
    bound: bool,
}

impl Search {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Self {
        let rate_qps = settings.start_qps.min(settings.max_qps);
        Search { settings, held_qps: None, failed_qps: None, rate_qps, tries_held: 0, tries_failed: 0, bound: false }
    }

    /// The rate to try now and which try of it that is; None when the search is over.
    pub fn next(&self) -> Option<(f64, u32)> {
        (!self.is_over()).then_some((self.rate_qps, self.tries_held + self.tries_failed))
    }

    /// Takes in whether the rate that [`Search::next`] named held.
    pub fn tried(&mut self, held: bool) {
        *(if held { &mut self.tries_held } else { &mut self.tries_failed }) += 1;
        let majority = self.settings.repeats / 2 + 1;
        if self.tries_held >= majority {
            self.held_qps = Some(self.rate_qps);
        } else if self.tries_failed >= majority {
            self.failed_qps = Some(self.rate_qps);
        } else {
            return;
        }
        (self.tries_held, self.tries_failed) = (0, 0);
        self.rate_qps = match (self.held_qps, self.failed_qps) {
            (Some(held), None) => (held * 2.0).min(self.settings.max_qps),
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (None, Some(failed)) => failed / 2.0,
            (None, None) => self.rate_qps,
        };
    }

    /// The instrument could not send at that rate: no higher one is tried, and what held is only known to be a lower
    /// bound.
    pub fn instrument_failed(&mut self) {
        self.bound = true;
        self.failed_qps = Some(self.rate_qps);
        (self.tries_held, self.tries_failed) = (0, 0);
        self.rate_qps = self.held_qps.map_or(self.rate_qps / 2.0, |held| (held * self.rate_qps).sqrt());
    }

    /// The highest rate that held.
    pub fn capacity_qps(&self) -> Option<f64> {
        self.held_qps
    }

    /// Whether the instrument, or the highest rate allowed, ended the search rather than the server.
    pub fn is_lower_bound(&self) -> bool {
        self.bound || self.failed_qps.is_none()
    }

    fn is_over(&self) -> bool {
        match (self.held_qps, self.failed_qps) {
            (Some(held), Some(failed)) => failed / held <= 1.0 + self.settings.precision,
            (Some(held), None) => held >= self.settings.max_qps,
            // Below one query a second there is nothing to search.
            (None, Some(failed)) => failed < 2.0,
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { start_qps: 1_000.0, max_qps: 1e6, precision: 0.03, repeats: 3 };

    /// Searches with a server that holds a rate if `holds` says so; returns the tries.
    fn search(settings: Settings, mut holds: impl FnMut(f64, u32) -> bool) -> (Search, Vec<f64>) {
        let mut search = Search::new(settings);
        let mut tried = Vec::new();
        while let Some((rate_qps, repeat)) = search.next() {
            tried.push(rate_qps);
            assert!(tried.len() < 200, "the search ends");
            search.tried(holds(rate_qps, repeat));
        }
        (search, tried)
    }

    #[test]
    fn it_finds_the_capacity_to_its_precision() {
        for capacity_qps in [3.0, 300.0, 1_000.0, 1_001.0, 77_777.0, 999_999.0] {
            let (search, tried) = search(SETTINGS, |rate_qps, _| rate_qps <= capacity_qps);
            let found = search.capacity_qps().unwrap();
            assert!(found <= capacity_qps && found * 1.031 > capacity_qps, "{capacity_qps}: {found}");
            assert!(tried.len() < 70 && !search.is_lower_bound());
        }
    }

    #[test]
    fn one_hiccup_at_each_rate_changes_nothing() {
        let (search, _) = search(SETTINGS, |rate_qps, repeat| rate_qps <= 50_000.0 && repeat != 0);
        assert!((48_500.0..=50_000.0).contains(&search.capacity_qps().unwrap()));
    }

    #[test]
    fn a_server_that_holds_everything_gives_a_lower_bound() {
        let (search, _) = search(SETTINGS, |_, _| true);
        assert_eq!((search.capacity_qps(), search.is_lower_bound()), (Some(1e6), true));
    }

    #[test]
    fn a_server_that_holds_nothing_has_no_capacity() {
        let (search, _) = search(SETTINGS, |_, _| false);
        assert_eq!(search.capacity_qps(), None);
    }

    #[test]
    fn where_the_instrument_fails_no_higher_rate_is_tried() {
        let mut search = Search::new(SETTINGS);
        let mut highest_qps: f64 = 0.0;
        while let Some((rate_qps, _)) = search.next() {
            highest_qps = highest_qps.max(rate_qps);
            if rate_qps > 60_000.0 { search.instrument_failed() } else { search.tried(true) }
        }
        assert!(search.is_lower_bound() && highest_qps <= 64_000.0);
        assert!((57_000.0..=60_000.0).contains(&search.capacity_qps().unwrap()));
    }
}
