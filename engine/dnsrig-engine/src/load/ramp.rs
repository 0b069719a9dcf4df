//! The search for the highest rate that a server holds. No clock, no socket.
//!
//! The rate is doubled until one does not hold, then the gap between the highest that held and the lowest that did not
//! is halved (geometrically) until it is narrow enough. A rate is tried up to `repeats` times and the majority counts,
//! so that one hiccup of the machine does not decide.
//!
//! A rate at which only too many queries are lost fails if more are lost there than at the rates far below it.
//! Otherwise the loss does not depend on the rate: it says nothing of the capacity, and the search goes on for the rate
//! at which it grows.

use serde::{Deserialize, Serialize};

/// One try of a rate; also the event of generator 1 that wants it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    pub rate_qps: f64,
    pub repeat: u32,
}

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

/// The search ends when so many rates were decided, whatever came of them.
const RATES_MAX: usize = 200;

/// By so many standard deviations one loss must exceed another to be called greater: chance alone does so once in 700
/// comparisons.
const DEVIATIONS: f64 = 3.0;

/// The losses of rates are compared if they are apart by this factor, a little less than two: between neighbours the
/// loss of a server that is overloaded grows by less than chance does.
const APART: f64 = 1.9;

/// One try of a rate.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Within all limits.
    pub holds: bool,
    /// Within all limits but the one of lost queries.
    pub holds_but_for_loss: bool,
    pub loss: Loss,
}

/// How many queries were lost, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    pub lost: u64,
    pub sent: u64,
}

impl Loss {
    fn add(&mut self, other: Loss) {
        self.lost += other.lost;
        self.sent += other.sent;
    }

    pub fn share(self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    /// Whether a greater share is lost than of `other`, beyond what chance does: all lost queries would fall on the two
    /// in proportion to what was sent, with the variance of the hypergeometric distribution.
    fn exceeds(self, other: Loss) -> bool {
        let [lost, sent, all_lost, all_sent] =
            [self.lost, self.sent, self.lost + other.lost, self.sent + other.sent].map(|count| count as f64);
        let expected = all_lost * sent / all_sent.max(1.0);
        let variance = expected * (1.0 - sent / all_sent.max(1.0)) * (1.0 - all_lost / all_sent.max(1.0));
        // Half a query is the correction for a count that is compared with a continuous distribution.
        lost - 0.5 - expected > DEVIATIONS * variance.sqrt()
    }
}

/// What the tries of a rate came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    /// Only too many queries are lost.
    Loses,
    Fails,
    /// The instrument could not send at this rate.
    Unsent,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    qps: f64,
    loss: Loss,
    verdict: Verdict,
}

/// What is known of the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    held_qps: Option<f64>,
    failed_qps: Option<f64>,
    /// The instrument could not send at the rate that failed.
    is_unsent: bool,
    /// The loss up to the rate that held, if it is greater than asked for.
    base: Option<Loss>,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// The rates that were decided, in ascending order.
    rates: Vec<Rate>,
    bounds: Bounds,
    rate_qps: f64,
    tries: Vec<Tried>,
}

impl Search {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Self {
        let rate_qps = settings.start_qps.min(settings.max_qps);
        Search { settings, rates: Vec::new(), bounds: Bounds::default(), rate_qps, tries: Vec::new() }
    }

    /// The rate to try now and which try of it that is; None when the search is over.
    pub fn next(&self) -> Option<(f64, u32)> {
        (!self.is_over()).then_some((self.rate_qps, self.tries.len() as u32))
    }

    /// Takes in what came of the rate that [`Search::next`] named.
    pub fn tried(&mut self, tried: Tried) {
        self.tries.push(tried);
        let majority = self.settings.repeats as usize / 2 + 1;
        let count = |is: fn(&Tried) -> bool| self.tries.iter().filter(|tried| is(tried)).count();
        let held = count(|tried| tried.holds);
        let verdict = if held >= majority {
            Verdict::Holds
        } else if self.tries.len() - held < majority {
            return;
        } else if count(|tried| tried.holds || tried.holds_but_for_loss) >= majority {
            Verdict::Loses
        } else {
            Verdict::Fails
        };
        self.decide(verdict);
    }

    /// The instrument could not send at that rate: no higher one is tried, and what held is only known to be a lower
    /// bound.
    pub fn instrument_failed(&mut self) {
        self.decide(Verdict::Unsent);
    }

    /// The highest rate that held.
    pub fn capacity_qps(&self) -> Option<f64> {
        self.bounds.held_qps
    }

    /// Whether the instrument, or the highest rate allowed, ended the search rather than the server.
    pub fn is_lower_bound(&self) -> bool {
        self.bounds.is_unsent || self.bounds.failed_qps.is_none()
    }

    /// The share of queries that is lost at every rate up to the highest that held, if that is more than asked for.
    pub fn base_loss_share(&self) -> Option<f64> {
        self.bounds.base.map(Loss::share)
    }

    fn decide(&mut self, verdict: Verdict) {
        let mut loss = Loss::default();
        self.tries.drain(..).for_each(|tried| loss.add(tried.loss));
        let place = self.rates.partition_point(|rate| rate.qps < self.rate_qps);
        self.rates.insert(place, Rate { qps: self.rate_qps, loss, verdict });
        self.bounds = bounds(&self.rates);
        self.rate_qps = match (self.bounds.held_qps, self.bounds.failed_qps) {
            (Some(held), None) => (held * 2.0).min(self.settings.max_qps),
            (Some(held), Some(failed)) => (held * failed).sqrt(),
            (None, Some(failed)) => failed / 2.0,
            (None, None) => self.rate_qps,
        };
    }

    fn is_over(&self) -> bool {
        match (self.bounds.held_qps, self.bounds.failed_qps) {
            _ if self.rates.len() >= RATES_MAX => true,
            (Some(held), Some(failed)) => failed / held <= 1.0 + self.settings.precision,
            (Some(held), None) => held >= self.settings.max_qps,
            // Below one query a second there is nothing to search.
            (None, Some(failed)) => failed < 2.0,
            (None, None) => false,
        }
    }
}

/// What follows of rates in ascending order: all hold up to the first that does not.
fn bounds(rates: &[Rate]) -> Bounds {
    let (mut bounds, mut held, mut loses) = (Bounds::default(), Loss::default(), false);
    for rate in rates {
        let is_held = match rate.verdict {
            Verdict::Holds => true,
            Verdict::Loses => loses_at_every_rate(rate, rates),
            Verdict::Fails | Verdict::Unsent => false,
        };
        if !is_held {
            (bounds.failed_qps, bounds.is_unsent) = (Some(rate.qps), rate.verdict == Verdict::Unsent);
            break;
        }
        bounds.held_qps = Some(rate.qps);
        held.add(rate.loss);
        loses |= rate.verdict == Verdict::Loses;
    }
    bounds.base = loses.then_some(held);
    bounds
}

/// Whether no more is lost at a rate than at the rates far below it. If no such rate was tried: whether no more is lost
/// at the next rate far above.
fn loses_at_every_rate(rate: &Rate, rates: &[Rate]) -> bool {
    let mut below = Loss::default();
    rates.iter().filter(|other| other.qps * APART <= rate.qps).for_each(|other| below.add(other.loss));
    if below.sent > 0 {
        return !rate.loss.exceeds(below);
    }
    let above = rates.iter().find(|other| other.qps >= rate.qps * APART);
    above
        .is_some_and(|above| matches!(above.verdict, Verdict::Holds | Verdict::Loses) && !above.loss.exceeds(rate.loss))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    const SETTINGS: Settings = Settings { start_qps: 1_000.0, max_qps: 1e6, precision: 0.03, repeats: 3 };

    /// A try in which nothing was lost.
    fn tried(holds: bool) -> Tried {
        Tried { holds, holds_but_for_loss: holds, loss: Loss { lost: 0, sent: 1_000 } }
    }

    /// Searches with a server that holds a rate if `holds` says so; returns the tries.
    fn search(settings: Settings, mut holds: impl FnMut(f64, u32) -> bool) -> (Search, Vec<f64>) {
        search_with(settings, |_, rate_qps, repeat| tried(holds(rate_qps, repeat)))
    }

    fn search_with(settings: Settings, mut a_try: impl FnMut(&Search, f64, u32) -> Tried) -> (Search, Vec<f64>) {
        let mut search = Search::new(settings);
        let mut tries = Vec::new();
        while let Some((rate_qps, repeat)) = search.next() {
            tries.push(rate_qps);
            assert!(tries.len() < 200, "the search ends");
            search.tried(a_try(&search, rate_qps, repeat));
        }
        (search, tries)
    }

    /// A server that loses this share of the queries at every rate, and all that are beyond its capacity; a rate is
    /// tried for `seconds`, and 0.1 % may be lost.
    fn search_losing(share: f64, capacity_qps: f64, seconds: f64, seed: u64) -> (Search, Vec<f64>) {
        let mut random = Random::new(seed, 0);
        let settings = Settings { start_qps: 2_000.0, ..SETTINGS };
        search_with(settings, |search, rate_qps, _| {
            let sent = (rate_qps * seconds) as u64;
            let beyond = ((rate_qps - capacity_qps) * seconds).max(0.0) as u64;
            let lost =
                beyond + (0..sent - beyond).filter(|_| (random.below(1_000_000) as f64) < share * 1e6).count() as u64;
            let limit = 0.001 + search.base_loss_share().unwrap_or(0.0);
            let holds = lost as f64 <= limit * sent as f64;
            Tried { holds, holds_but_for_loss: true, loss: Loss { lost, sent } }
        })
    }

    #[test]
    fn a_loss_that_does_not_depend_on_the_rate_is_no_capacity() {
        for (seed, (share, seconds)) in (0..).zip([(0.003, 10.0), (0.003, 0.2), (0.02, 1.0), (0.5, 0.1)]) {
            let (search, tries) = search_losing(share, 50_000.0, seconds, seed);
            let found = search.capacity_qps().unwrap();
            // What chance does to the loss of both rates widens the interval of the capacity.
            assert!((48_000.0..=53_000.0).contains(&found), "{share}: {found}, {tries:?}");
            assert!(!search.is_lower_bound() && tries.len() < 60);
            let base = search.base_loss_share().unwrap();
            assert!((base / share - 1.0).abs() < 0.3, "{share}: {base}");
        }
    }

    #[test]
    fn a_server_that_loses_what_is_beyond_its_capacity_has_no_loss_of_its_own() {
        for capacity_qps in [20.0, 700.0, 1_500.0, 50_000.0] {
            let (search, _) = search_losing(0.0, capacity_qps, 2.0, 1);
            let found = search.capacity_qps().unwrap();
            assert!((0.96..1.04).contains(&(found / capacity_qps)), "{capacity_qps}: {found}");
            assert_eq!(search.base_loss_share(), None);
        }
    }

    #[test]
    fn a_silent_server_holds_no_rate() {
        let lost = |_: &Search, rate_qps: f64, _| {
            let loss = Loss { lost: rate_qps as u64, sent: rate_qps as u64 };
            Tried { holds: false, holds_but_for_loss: false, loss }
        };
        let (search, _) = search_with(SETTINGS, lost);
        assert_eq!((search.capacity_qps(), search.base_loss_share()), (None, None));
    }

    #[test]
    fn one_loss_exceeds_another_when_chance_hardly_does_that() {
        let loss = |lost, sent| Loss { lost, sent };
        assert!(loss(60, 10_000).exceeds(loss(0, 10_000)) && loss(10, 100).exceeds(loss(10, 1_000)));
        assert!(!loss(3, 2_000).exceeds(loss(0, 1_000)), "too few to know");
        assert!(!loss(60, 20_000).exceeds(loss(30, 10_000)) && !loss(5, 5).exceeds(loss(5, 5)));
        assert!(!loss(0, 0).exceeds(loss(0, 0)) && !loss(0, 10).exceeds(loss(5, 10)));
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
            if rate_qps > 60_000.0 { search.instrument_failed() } else { search.tried(tried(true)) }
        }
        assert!(search.is_lower_bound() && highest_qps <= 64_000.0);
        assert!((57_000.0..=60_000.0).contains(&search.capacity_qps().unwrap()));
    }
}
