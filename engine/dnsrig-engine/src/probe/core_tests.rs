//! The core in virtual time, against simulated servers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;

fn settings() -> Settings {
    Settings { rate: 2000, window: 64, timeout_ns: 250 * MS, refund: true }
}

/// What becomes of a query that arrives at `now_ns`.
#[derive(Clone)]
enum Fate {
    Answered { after_ns: i64, found: Found },
    Lost,
    Refused,
}

const READY: Found = Found::Ready { serial: 1 };

/// What is on its way back, by the time at which it comes, and in the order of sending: an answer for a zone under an
/// id, or an ICMP error.
type Answers = BTreeMap<(i64, u64), Option<(u16, u32, Found)>>;

/// Runs a core against a server until it is done or `limit_ns` has come. Returns the core and the time.
///
/// Every turn takes a microsecond, as a system call would, so that "as fast as possible" means something.
fn run(zones: u32, settings: Settings, limit_ns: i64, mut server: impl FnMut(i64, u32) -> Fate) -> (Core, i64) {
    let mut core = Core::new(zones, settings);
    let mut answers = Answers::new();
    let (mut now_ns, mut order) = (1, 0);
    while now_ns < limit_ns {
        while let Some(entry) = answers.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            match entry.remove() {
                Some((id, zone, found)) if core.zone_of(id) == Some(zone) => {
                    core.on_answer(now_ns, id, found);
                }
                Some(_) => {}
                None => core.on_unreachable(now_ns),
            }
        }
        check_account(&core);
        match core.next(now_ns) {
            Action::Done => return (core, now_ns),
            Action::Send { id, zone } => {
                order += 1;
                match server(now_ns, zone) {
                    Fate::Answered { after_ns, found } => {
                        answers.insert((now_ns + after_ns, order), Some((id, zone, found)));
                    }
                    Fate::Refused => {
                        answers.insert((now_ns + MS / 20, order), None);
                    }
                    Fate::Lost => {}
                }
                now_ns += 1000;
            }
            Action::Wait { until_ns } => {
                assert!(until_ns > now_ns, "a wait must end later");
                let answer_ns = answers.keys().next().map_or(i64::MAX, |key| key.0);
                now_ns = until_ns.min(answer_ns).min(limit_ns).max(now_ns + 1);
            }
        }
    }
    (core, now_ns)
}

/// Every poll ends in one way, and those that have not ended are outstanding.
fn check_account(core: &Core) {
    let Counts { polls, answered, timeouts, unreachable, .. } = core.counts();
    assert_eq!(polls, answered + timeouts + unreachable + core.outstanding.len() as u64);
    assert!(core.outstanding.len() <= (core.settings.window as usize).max(SILENT_WINDOW_MAX));
}

/// The load that we promise not to exceed.
fn polls_max(zones: u32, settings: Settings, elapsed_ns: i64) -> u64 {
    let refunded = if settings.refund { u64::from(zones) } else { 0 };
    let earned = elapsed_ns as u128 * u128::from(settings.rate) / SECOND as u128;
    refunded + earned as u64 + u64::from(burst(settings.rate)) + 1
}

fn answered(found: Found) -> Fate {
    Fate::Answered { after_ns: MS / 10, found }
}

#[test]
fn zones_that_are_ready_are_seen_at_the_speed_of_the_server() {
    let (core, now_ns) = run(100_000, settings(), 100 * SECOND, |_, _| answered(READY));
    assert_eq!(core.counts().seen, 100_000);
    assert_eq!(core.counts().polls, 100_000);
    // By the rate alone it would be 50 s. A burst of 20 a round trip of 0.1 ms is 200,000 a second.
    assert!(now_ns < 2 * SECOND, "{now_ns}");
}

#[test]
fn without_refund_the_rate_holds_for_all_polls() {
    let settings = Settings { rate: 100, refund: false, ..settings() };
    let (core, now_ns) = run(1000, settings, 100 * SECOND, |_, _| answered(READY));
    assert_eq!(core.counts().polls, 1000);
    assert!(core.counts().polls <= polls_max(1000, settings, now_ns));
    assert!(now_ns >= 9 * SECOND, "{now_ns}");
}

#[test]
fn zones_that_come_one_by_one_are_seen_when_they_come() {
    // 20 zones a second, the default of a secondary that is slow: 200 zones in 10 s.
    let ready_ns = |zone: u32| i64::from(zone + 1) * SECOND / 20;
    let found = |now_ns, zone| if now_ns >= ready_ns(zone) { READY } else { Found::NotReady };
    let (core, now_ns) = run(200, settings(), 100 * SECOND, |now_ns, zone| answered(found(now_ns, zone)));
    assert!(core.counts().polls <= polls_max(200, settings(), now_ns));
    for (zone, state) in core.zones().enumerate() {
        let ready_ns = ready_ns(zone as u32);
        let (seen_ns, _) = state.seen.unwrap();
        assert!(state.last_unseen_ns.unwrap() < ready_ns && ready_ns <= seen_ns, "zone {zone}");
        // A round of 200 unseen zones takes 100 ms at 2,000 polls a second.
        assert!(seen_ns - ready_ns <= 110 * MS, "zone {zone}");
    }
    // At the end few zones are left, and each is polled often.
    assert!(now_ns - ready_ns(199) <= 2 * MS, "{now_ns}");
}

#[test]
fn a_server_that_never_has_them_gets_the_rate_and_no_more() {
    let (core, now_ns) = run(50, settings(), 10 * SECOND, |_, _| answered(Found::NotReady));
    let polls = core.counts().polls;
    assert!(polls <= polls_max(0, settings(), now_ns), "{polls}");
    assert!(polls >= 19_900, "the rate is used: {polls}");
    assert_eq!(core.counts().seen, 0);
}

#[test]
fn a_server_that_starts_is_found_within_a_millisecond_or_two() {
    let start_ns = 1234 * MS + 567;
    // Few zones must be polled again soon, or all of them wait for their timeout when the server starts.
    for zones in [1, 3, 100, 1000] {
        for (before, within_ns) in [(Fate::Refused, 3 * MS), (Fate::Lost, start_ns / SILENT_SPACING_DIVISOR + MS)] {
            let server = |now_ns, _| if now_ns < start_ns { before.clone() } else { answered(READY) };
            let (core, _) = run(zones, settings(), 10 * SECOND, server);
            let first_ns = core.zones().filter_map(|zone| zone.seen).map(|(seen_ns, _)| seen_ns).min().unwrap();
            assert!(first_ns >= start_ns && first_ns - start_ns <= within_ns, "{zones} zones: {first_ns}");
        }
    }
}

#[test]
fn a_busy_server_that_answers_all_at_once_is_seen_at_that_moment() {
    // Bound but not answering until 700 ms: the polls wait in its buffer.
    let start_ns = 700 * MS;
    let server = |now_ns: i64, _| Fate::Answered { after_ns: (start_ns - now_ns).max(MS / 10), found: READY };
    let (core, now_ns) = run(100, settings(), 10 * SECOND, server);
    assert_eq!(core.counts().seen, 100);
    assert!(now_ns - start_ns <= MS, "{now_ns}");
    assert!(core.counts().polls <= 256, "its buffer holds them: {:?}", core.counts());
}

#[test]
fn a_server_that_refuses_gets_a_poll_a_millisecond() {
    let (core, _) = run(1000, settings(), 10 * SECOND, |_, _| Fate::Refused);
    assert!((9_000..=10_001).contains(&core.counts().polls), "{:?}", core.counts());
}

#[test]
fn a_silent_server_gets_fewer_polls_the_longer_it_is_silent() {
    let polls = |limit_ns| run(1000, settings(), limit_ns, |_, _| Fate::Lost).0.counts().polls;
    let (short, long) = (polls(2 * SECOND), polls(20 * SECOND));
    assert!((100..=320).contains(&short), "{short}");
    assert!(long - short < short, "{long}");
}

#[test]
fn answers_slower_than_the_timeout_still_count() {
    let slow = Fate::Answered { after_ns: 400 * MS, found: READY };
    let mut fate = Some(slow);
    let (core, now_ns) = run(1, settings(), 10 * SECOND, |_, _| fate.take().unwrap_or(Fate::Lost));
    assert_eq!((core.counts().seen, core.counts().late), (1, 1));
    assert_eq!(now_ns, 1 + 400 * MS);
    // The poll at 1 ns was answered in the end: there is no time at which the zone is known not to be ready.
    let state = core.zone(0);
    assert_eq!((state.last_unseen_ns, state.seen), (None, Some((1 + 400 * MS, 1))));
    assert!(core.counts().timeouts >= 1);
}

#[test]
fn a_late_refusal_says_nothing_new() {
    let mut core = Core::new(1, settings());
    let Action::Send { id, .. } = core.next(1) else { panic!("the first poll is due at once") };
    assert!(matches!(core.next(250 * MS + 1), Action::Send { .. }));
    assert!(!core.on_answer(251 * MS, id, Found::NotReady));
    assert_eq!(core.counts().late, 1);
    assert_eq!(core.zone(0).last_unseen_ns, None);
}

#[test]
fn silence_proves_nothing_and_a_refusal_only_of_the_oldest_poll() {
    let mut core = Core::new(3, settings());
    assert!(matches!(core.next(1), Action::Send { zone: 0, .. }));
    assert!(matches!(core.next(1 + MS), Action::Send { zone: 1, .. }));
    core.on_unreachable(1 + MS + MS / 2);
    assert_eq!([core.zone(0), core.zone(1)].map(|zone| zone.last_unseen_ns), [Some(1), Some(1)]);
    assert!(matches!(core.next(3 * MS), Action::Send { zone: 2, .. }));
    assert!(matches!(core.next(300 * MS), Action::Send { .. }));
    assert_eq!((core.counts().timeouts, core.zone(2).last_unseen_ns), (1, None));
}

#[test]
fn a_query_that_was_not_sent_leaves_no_trace() {
    let mut core = Core::new(2, settings());
    let Action::Send { id, zone } = core.next(1) else { panic!("the first poll is due at once") };
    core.on_not_sent(1, id);
    assert_eq!((core.counts(), core.zone(zone).polls, core.zone_of(id)), (Counts::default(), 0, None));
    assert_eq!(core.next(1), Action::Wait { until_ns: 1 + MS });
    assert!(matches!(core.next(1 + MS), Action::Send { zone: again, .. } if again == zone));
}

#[test]
fn an_answer_without_a_query_is_nothing() {
    let mut core = Core::new(1, settings());
    assert_eq!(core.zone_of(7), None);
    assert!(!core.on_answer(1, 7, READY));
    assert_eq!(core.counts(), Counts::default());
}

#[test]
fn one_lost_answer_does_not_hold_up_the_others() {
    let mut lost = false;
    let server = |_, _| if std::mem::replace(&mut lost, true) { answered(READY) } else { Fate::Lost };
    let (core, now_ns) = run(20_000, settings(), 10 * SECOND, server);
    assert_eq!((core.counts().seen, core.counts().timeouts), (20_000, 1));
    assert!(now_ns <= 260 * MS, "{now_ns}");
}

#[derive(Debug, Clone)]
struct Server {
    starts_ns: i64,
    refuses: bool,
    spacing_ns: i64,
    delay_ns: i64,
    jitter_ns: u64,
    loss_percent: u64,
    seed: u64,
}

fn any_server() -> impl Strategy<Value = Server> {
    (0..300 * MS, any::<bool>(), 0..5 * MS, 1000..300 * MS, 1..200_000_000_u64, 0..60_u64, any::<u64>()).prop_map(
        |(starts_ns, refuses, spacing_ns, delay_ns, jitter_ns, loss_percent, seed)| Server {
            starts_ns,
            refuses,
            spacing_ns,
            delay_ns,
            jitter_ns,
            loss_percent,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the server does (starts late, loses, delays beyond the timeout, reorders): every zone is seen in the
    /// end, its bracket is true, and the load stays below the promise.
    #[test]
    fn every_zone_is_seen_truly_and_the_load_is_bounded(
        server in any_server(), zones in 1_u32..300, window in 1_u32..200, rate in 50_u32..20_000, refund: bool,
    ) {
        let settings = Settings { rate, window, timeout_ns: 250 * MS, refund };
        let mut random = dnsrig_core::random::Random::new(server.seed, 0);
        let ready_ns = |zone: u32| server.starts_ns + i64::from(zone) * server.spacing_ns;
        let (core, now_ns) = run(zones, settings, 10_000 * SECOND, |now_ns, zone| {
            // The state is looked at on the way: after half of the delay.
            let after_ns = server.delay_ns + random.below(server.jitter_ns) as i64;
            let looked_ns = now_ns + after_ns / 2;
            match () {
                () if random.chance(server.loss_percent) => Fate::Lost,
                () if looked_ns < server.starts_ns && server.refuses => Fate::Refused,
                () if looked_ns < server.starts_ns => Fate::Lost,
                () if looked_ns < ready_ns(zone) => Fate::Answered { after_ns, found: Found::NotReady },
                () => Fate::Answered { after_ns, found: READY },
            }
        });
        prop_assert_eq!(core.counts().seen, u64::from(zones));
        prop_assert!(core.counts().polls <= polls_max(zones, settings, now_ns), "{:?}", core.counts());
        for (zone, state) in core.zones().enumerate() {
            let (seen_ns, _) = state.seen.unwrap();
            prop_assert!(seen_ns >= ready_ns(zone as u32));
            prop_assert!(state.last_unseen_ns.is_none_or(|unseen_ns| unseen_ns < seen_ns));
        }
    }

    /// Calls in any order, with any id and with a clock that only moves on: no panic, and the account stays right.
    #[test]
    fn no_order_of_calls_confuses_it(calls in proptest::collection::vec((0_u8..5, any::<u8>(), 0..50 * MS), 1..400)) {
        let mut core = Core::new(20, settings());
        let mut now_ns = 1;
        for (call, id, later_ns) in calls {
            now_ns += later_ns;
            match call {
                0 | 1 => drop(core.next(now_ns)),
                2 => drop(core.on_answer(now_ns, u16::from(id), if id % 2 == 0 { READY } else { Found::NotReady })),
                3 => core.on_unreachable(now_ns),
                _ => core.on_not_sent(now_ns, u16::from(id)),
            }
            check_account(&core);
            let seen = core.zones().filter(|zone| zone.seen.is_some()).count();
            prop_assert_eq!(core.counts().seen, seen as u64);
        }
    }
}

#[test]
fn a_burst_is_ten_milliseconds_of_the_rate_and_sixteen_at_least() {
    assert_eq!([1, 1_600, 1_699, 1_700, 100_000].map(burst), [16, 16, 16, 17, 1_000]);
}

/// While a server is silent, polls are apart by a 64th of the silence, between 1 and 100 ms.
#[test]
fn polls_of_a_silent_server_are_apart_by_a_part_of_the_silence() {
    for (silence_ns, spacing_ns) in
        [(5 * MS, 1_000_000), (64 * MS, MS), (640 * MS, 10 * MS), (3_200 * MS, 50 * MS), (60 * SECOND, 100 * MS)]
    {
        let mut core = Core::new(9, settings());
        assert!(matches!(core.next(1), Action::Send { zone: 0, .. }));
        let now_ns = 1 + silence_ns;
        assert!(matches!(core.next(now_ns), Action::Send { zone: 1, .. }), "{silence_ns}");
        assert_eq!(core.next(now_ns), Action::Wait { until_ns: now_ns + spacing_ns.min(2 * MS) });
        let given_up_ns = now_ns + 2 * MS;
        if spacing_ns > 2 * MS {
            assert_eq!(core.next(given_up_ns), Action::Wait { until_ns: now_ns + spacing_ns });
            assert_eq!(core.counts().timeouts, 2);
        }
    }
}

/// A server that answered within the last timeout has the whole timeout for each poll, and one more nanosecond makes it
/// silent.
#[test]
fn a_server_that_answers_has_the_whole_timeout_and_the_window() {
    let mut core = Core::new(9, Settings { window: 2, ..settings() });
    let Action::Send { id, zone: 0 } = core.next(1) else { panic!("the first poll is due at once") };
    assert!(!core.on_answer(2, id, Found::NotReady));
    assert!([1, 2].iter().all(|zone| matches!(core.next(2), Action::Send { zone: sent, .. } if sent == *zone)));
    assert_eq!(core.next(2), Action::Wait { until_ns: 2 + 250 * MS }, "two wait for an answer");
    assert_eq!(core.next(1 + 250 * MS), Action::Wait { until_ns: 2 + 250 * MS });
    assert!(
        [3, 4].iter().all(|zone| matches!(core.next(2 + 250 * MS), Action::Send { zone: sent, .. } if sent == *zone))
    );
    let Counts { polls, answered, timeouts, .. } = core.counts();
    assert_eq!((polls, answered, timeouts), (5, 1, 2));
    // Nothing was answered for longer than a timeout: a poll is given up after two milliseconds.
    assert_eq!(core.next(3 + 250 * MS), Action::Wait { until_ns: 2 + 252 * MS });
}

#[test]
fn each_zone_has_what_is_known_of_it() {
    let mut core = Core::new(2, settings());
    let Action::Send { id, zone: 0 } = core.next(5) else { panic!("the first poll is due at once") };
    assert!(!core.on_answer(7, id, Found::NotReady));
    let Action::Send { id, zone: 1 } = core.next(8) else { panic!("the next zone") };
    assert!(core.on_answer(9, id, Found::Ready { serial: 77 }));
    let known = |zone| {
        let ZoneState { last_unseen_ns, seen, polls } = core.zone(zone);
        (last_unseen_ns, seen, polls)
    };
    assert_eq!([known(0), known(1)], [(Some(5), None, 1), (None, Some((9, 77)), 1)]);
    let Counts { polls, answered, seen, timeouts, unreachable, late } = core.counts();
    assert_eq!((polls, answered, seen, timeouts, unreachable, late), (2, 2, 1, 0, 0, 0));
}
