use super::*;
use dnsrig_core::{random::Random, stats::times};

const SETTINGS: RampSettings = RampSettings { start_qps: 1_000.0, max_qps: 1e6, precision: 0.03, repeats: 3 };

/// A try in which nothing was lost.
fn tried(holds: bool) -> TryOutcome {
    TryOutcome { holds, holds_but_for_loss: holds, loss: Loss { lost: 0, sent: 1_000 } }
}

/// Searches with a server that holds a rate if `holds` says so; returns the tries.
fn search(settings: RampSettings, mut holds: impl FnMut(f64, u32) -> bool) -> (Search, Vec<f64>) {
    search_with(settings, |_, rate_qps, repeat| tried(holds(rate_qps, repeat)))
}

fn search_with(settings: RampSettings, mut a_try: impl FnMut(&Search, f64, u32) -> TryOutcome) -> (Search, Vec<f64>) {
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
    let settings = RampSettings { start_qps: 2_000.0, ..SETTINGS };
    search_with(settings, |search, rate_qps, _| {
        let sent = (rate_qps * seconds) as u64;
        let beyond = ((rate_qps - capacity_qps) * seconds).max(0.0) as u64;
        let lost =
            beyond + (0..sent - beyond).filter(|_| (random.below(1_000_000) as f64) < share * 1e6).count() as u64;
        let limit = 0.001 + search.base_loss_share().unwrap_or(0.0);
        let holds = lost as f64 <= limit * sent as f64;
        TryOutcome { holds, holds_but_for_loss: true, loss: Loss { lost, sent } }
    })
}

#[test]
fn a_first_try_that_fails_does_not_count() {
    for repeats in [1, 3] {
        let settings = RampSettings { repeats, ..SETTINGS };
        let mut is_first = true;
        let (search, tries) = search(settings, |rate_qps, _| !std::mem::take(&mut is_first) && rate_qps <= 50_000.0);
        assert!((48_000.0..=50_000.0).contains(&search.capacity_qps().unwrap()), "{tries:?}");
        assert_eq!(tries[..2], [1_000.0; 2]);
    }
    let mut search = Search::new(SETTINGS);
    assert!(!search.instrument_failed(), "the first failure does not count");
    assert_eq!((search.next(), search.is_lower_bound()), (Some((1_000.0, 1)), true));
    assert!(search.instrument_failed(), "the second one does");
    assert_eq!((search.next(), search.is_lower_bound()), (Some((500.0, 0)), true));
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
        TryOutcome { holds: false, holds_but_for_loss: false, loss }
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
        let counts = if rate_qps > 60_000.0 { search.instrument_failed() } else { search.tried(tried(true)) };
        assert!(counts);
    }
    assert!(search.is_lower_bound() && highest_qps <= 64_000.0);
    assert!((57_000.0..=60_000.0).contains(&search.capacity_qps().unwrap()));
}

const MS: u64 = 1_000_000;

/// A thousand queries in a second, of which so many have no answer within it.
fn measured(lost: u64) -> Measured {
    let mut due_times = times();
    due_times.record_n(MS, 1_000 - lost).unwrap();
    due_times.record_n(1_000 * MS, lost).unwrap();
    Measured {
        due: 1_000,
        sent: 1_000,
        answered: 1_000 - lost,
        wrong: 0,
        timeouts: lost,
        lost: Losses::default(),
        sending_ns: 1_000_000_000,
        busy_share: 0.0,
        due_times,
        lag_times: times(),
    }
}

#[test]
fn a_wrong_answer_is_lost_like_none() {
    let wrong = Measured { wrong: 5, timeouts: 0, ..measured(5) };
    assert_eq!(wrong.loss(), measured(5).loss());
    let mut both = measured(1);
    both.add(&wrong);
    assert_eq!(both.loss(), Loss { lost: 6, sent: 2_000 });
}

/// Whether a rate holds, and whether it does but for the loss, if that is a part of what is lost at every rate.
fn judged(lost: u64, base: f64) -> (bool, bool) {
    let limits = RampLimits { loss_share: 0.001, percentile: 99.0, latency_ns: 10 * MS };
    let step = judge(&measured(lost), 1_000_000_000, limits, Try { rate_qps: 1_000.0, repeat: 0 }, base);
    (step.holds, step.holds_but_for_loss)
}

#[test]
fn a_loss_of_every_rate_counts_neither_as_loss_nor_in_the_percentile() {
    assert_eq!((judged(1, 0.0), judged(3, 0.0), judged(30, 0.0)), ((true, true), (false, true), (false, true)));
    assert_eq!((judged(3, 0.003), judged(30, 0.03), judged(40, 0.03)), ((true, true), (true, true), (false, true)));
    assert_eq!(judged(1_000, 0.0), (false, false), "no answer was in time");
}

/// A rate is doubled until it does not hold; then the gap is halved until it is narrow enough.
#[test]
fn rates_are_tried_in_a_known_order() {
    let once = RampSettings { precision: 0.25, repeats: 1, ..SETTINGS };
    for (settings, capacity_qps, expected, capacity) in [
        (once, 3_000.0, vec![1_000, 2_000, 4_000, 2_828, 3_364], Some(2_828)),
        (
            RampSettings { precision: 0.18, ..once },
            3_000.0,
            vec![1_000, 2_000, 4_000, 2_828, 3_364, 3_084],
            Some(2_828),
        ),
        (once, 600.0, vec![1_000, 1_000, 500, 707, 595], Some(595)),
        (RampSettings { max_qps: 2_500.0, ..once }, 9_000.0, vec![1_000, 2_000, 2_500], Some(2_500)),
        (RampSettings { max_qps: 1_000.0, ..once }, 9_000.0, vec![1_000], Some(1_000)),
        (RampSettings { max_qps: 500.0, ..once }, 9_000.0, vec![500], Some(500)),
        // The first try does not count, and below one query a second there is nothing to search.
        (RampSettings { start_qps: 3.0, ..once }, 0.0, vec![3, 3, 2], None),
        (RampSettings { start_qps: 4.0, ..once }, 0.0, vec![4, 4, 2, 1], None),
    ] {
        let (search, tries) = search(settings, |rate_qps, _| rate_qps <= capacity_qps);
        assert_eq!(tries.iter().map(|qps| qps.round() as u64).collect::<Vec<_>>(), expected);
        assert_eq!(search.capacity_qps().map(|qps| qps.round() as u64), capacity);
    }
}

/// A rate is tried until the majority of all its tries is known.
#[test]
fn the_majority_of_the_tries_decides() {
    let settings = RampSettings { max_qps: 1_000.0, repeats: 3, ..SETTINGS };
    for (results, repeats, holds) in [
        ("hh", "01", true),
        ("hfh", "012", true),
        ("hff", "012", false),
        // The first try of all does not count if it fails.
        ("fhh", "012", true),
        ("fhfh", "0123", true),
        ("ffhf", "0123", false),
        ("fff", "012", false),
    ] {
        let (mut search, mut found) = (Search::new(settings), String::new());
        for result in results.chars() {
            let (rate_qps, repeat) = search.next().unwrap();
            assert_eq!(rate_qps, 1_000.0, "{results}");
            found += &repeat.to_string();
            search.tried(tried(result == 'h'));
        }
        assert_eq!((found.as_str(), search.capacity_qps().is_some()), (repeats, holds), "{results}");
        assert_eq!(search.next().map(|(rate_qps, _)| rate_qps), (!holds).then_some(500.0), "{results}");
    }
}

#[test]
fn a_loss_exceeds_another_from_eleven_lost_queries_on() {
    let loss = |lost| Loss { lost, sent: 10_000 };
    assert_eq!([10, 11].map(|lost| loss(lost).exceeds(loss(0))), [false, true]);
    assert_eq!([47, 48].map(|lost| loss(100 + lost).exceeds(loss(100))), [false, true]);
    assert_eq!([(1, 4), (0, 0), (3, 3)].map(|(lost, sent)| Loss { lost, sent }.share()), [0.25, 0.0, 1.0]);
}

/// Whether a rate of 1,000 holds, and whether the instrument failed.
fn judged_as(change: impl FnOnce(&mut Measured)) -> (bool, bool) {
    let limits = RampLimits { loss_share: 0.001, percentile: 99.0, latency_ns: 10 * MS };
    let mut seen = measured(0);
    change(&mut seen);
    let step = judge(&seen, 1_000_000_000, limits, Try { rate_qps: 1_000.0, repeat: 0 }, 0.0);
    (step.holds, step.instrument_failed)
}

#[test]
fn a_rate_holds_within_all_its_limits() {
    let lag = |ns| move |seen: &mut Measured| seen.lag_times.record(ns).unwrap();
    let latency = |ns, count| move |seen: &mut Measured| seen.due_times.record_n(ns, count).unwrap();
    assert_eq!(judged_as(|_| ()), (true, false));
    assert_eq!(judged_as(|seen| seen.sent = 990), (true, false), "99 % were sent in time");
    assert_eq!(judged_as(|seen| seen.sent = 989), (false, true));
    assert_eq!(judged_as(|seen| seen.sending_ns = 1_010_101_010), (true, false));
    assert_eq!(judged_as(|seen| seen.sending_ns = 1_020_000_000), (false, true));
    assert_eq!(judged_as(|seen| seen.sending_ns = 1), (true, false), "the period lasted a second all the same");
    assert_eq!([9_900_000, 10_100_000].map(|ns| judged_as(lag(ns))), [(true, false), (false, true)]);
    assert_eq!([9_900_000, 10_100_000].map(|ns| judged_as(latency(ns, 11))), [(true, false), (false, false)]);
    assert_eq!(judged_as(latency(10_100_000, 10)), (true, false), "99 % came in time");
    assert_eq!([1, 2].map(|lost| judged(lost, 0.0)), [(true, true), (false, true)]);
    // Who is late because answers are missing has not failed itself.
    assert_eq!(judged_as(|seen| (seen.sent, seen.timeouts) = (900, 500)), (false, false));
}

#[test]
fn a_step_has_what_was_measured() {
    let limits = RampLimits { loss_share: 0.5, percentile: 50.0, latency_ns: 10 * MS };
    let seen = Measured { busy_share: 0.25, sending_ns: 2_000_000_000, ..measured(100) };
    let step = judge(&seen, 1_000_000_000, limits, Try { rate_qps: 500.0, repeat: 2 }, 0.0);
    assert_eq!((step.repeat, step.rate_qps, step.sent_qps, step.answered_qps), (2, 500.0, 500.0, 450.0));
    assert_eq!((step.loss_share, step.busy_share, step.lag_p99_ns), (0.1, 0.25, 0));
    assert_eq!([step.p50_ns / 10_000, step.p99_ns / 1_000_000, step.p99_9_ns / 1_000_000], [100, 1_000, 1_000]);
    assert!(step.holds && step.holds_but_for_loss && !step.instrument_failed);
}
