use super::*;

const MS: i64 = 1_000_000;

fn faults(settings: Settings) -> Faults {
    Faults::new(settings, 0, 1_000)
}

#[test]
fn without_faults_all_is_now() {
    let settings = Settings::default();
    assert!(!settings.is_any());
    let mut faults = faults(settings);
    for now_ns in 0..1000 {
        assert_eq!(faults.fate(now_ns), Fate::Now);
        assert_eq!(faults.stalled_until_ns(now_ns), None);
    }
}

#[test]
fn a_fixed_delay_is_exact() {
    let mut faults = faults(Settings { delay_ns: 10 * MS, ..Settings::default() });
    assert_eq!(faults.fate(7), Fate::At(10 * MS + 7));
}

#[test]
fn jitter_is_uniform_around_the_delay_and_reorders() {
    let mut faults = faults(Settings { delay_ns: 1000, jitter_ns: 100, ..Settings::default() });
    let count = 100_000;
    let dues: Vec<i64> = (0..count)
        .map(|_| match faults.fate(0) {
            Fate::At(due_ns) => due_ns,
            fate => panic!("{fate:?}"),
        })
        .collect();
    assert_eq!((dues.iter().min(), dues.iter().max()), (Some(&900), Some(&1100)));
    let mean = dues.iter().sum::<i64>() as f64 / f64::from(count);
    // The standard error of the mean is 201 / sqrt(12 × 100,000) = 0.18.
    assert!((mean - 1000.0).abs() < 1.0, "{mean}");
    assert!(dues.windows(2).any(|pair| pair[1] < pair[0]));
}

#[test]
fn the_lost_share_is_the_share_asked_for() {
    let lost = |loss: f64, seed: u64| {
        let mut faults = faults(Settings { loss, seed, ..Settings::default() });
        (0..100_000).filter(|now_ns| faults.fate(*now_ns) == Fate::Lost).count()
    };
    assert_eq!((lost(0.0, 1), lost(1.0, 1)), (0, 100_000));
    // The standard deviation is sqrt(100,000 × 0.01 × 0.99) = 31.
    assert!((800..1200).contains(&lost(0.01, 1)));
    assert_ne!(lost(0.5, 1), lost(0.5, 2));
}

#[test]
fn a_seed_and_a_thread_repeat_themselves() {
    let settings = Settings { delay_ns: 100, jitter_ns: 50, loss: 0.3, seed: 5, ..Settings::default() };
    let fates = |thread| {
        let mut faults = Faults::new(settings, thread, 0);
        (0..100).map(|now_ns| faults.fate(now_ns)).collect::<Vec<_>>()
    };
    assert_eq!(fates(0), fates(0));
    assert_ne!(fates(0), fates(1));
}

#[test]
fn a_stall_ends_each_period() {
    let faults = faults(Settings { stall_ns: 200 * MS, stall_every_ns: 1000 * MS, ..Settings::default() });
    let at = |ms: i64, ns: i64| faults.stalled_until_ns(1_000 + ms * MS + ns);
    assert_eq!((at(0, 0), at(799, 0), at(800, -1)), (None, None, None));
    for period in 0..3 {
        let end_ns = Some(1_000 + (period + 1) * 1000 * MS);
        assert_eq!(at(period * 1000 + 800, 0), end_ns);
        assert_eq!(at(period * 1000 + 1000, -1), end_ns);
        assert_eq!(at(period * 1000 + 1000, 0), None, "the end belongs to the next period");
    }
}

#[test]
fn the_mean_wait_of_a_stall_is_as_by_hand() {
    // A query in each millisecond: 200 of 1000 wait, on average 100 ms.
    let faults = faults(Settings { stall_ns: 200 * MS, stall_every_ns: 1000 * MS, ..Settings::default() });
    let waits: Vec<i64> =
        (0..1000).map(|ms| 1_000 + ms * MS).filter_map(|at| Some(faults.stalled_until_ns(at)? - at)).collect();
    assert_eq!(waits.len(), 200);
    assert_eq!((waits[0], waits[199]), (200 * MS, MS));
}
