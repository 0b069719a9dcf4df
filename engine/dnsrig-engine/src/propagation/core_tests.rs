//! Propagation in virtual time: secondaries that lag, a network that loses and reorders, a primary that refuses.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;
const START_NS: i64 = 1_000 * MS;

fn settings(zones: u32, secondaries: usize, changes: u32, pace: Pace) -> Settings {
    Settings {
        zones,
        secondaries,
        changes,
        pace,
        poll_rate_per_s: 1_000,
        poll_timeout_ns: 50 * MS,
        accept_timeout_ns: 200 * MS,
        end_ns: i64::MAX,
        limit_ns: 2_000 * MS,
    }
}

const SINGLE: Pace = Pace::Single { pause_ns: 10 * MS, spread_ns: 0 };

/// The servers and the network: what they do, as functions of what happens.
struct World<'a> {
    /// After how long the primary answers a change, and how; None: never (it makes the change all the same).
    accept: &'a dyn Fn(u32) -> Option<(i64, u8)>,
    /// After how long a change is on a secondary; None: never.
    lag: &'a dyn Fn(u32, usize) -> Option<i64>,
    /// After how long the n-th poll is answered; None: it is lost.
    answer: &'a dyn Fn(u64) -> Option<i64>,
}

enum Event {
    Accepted(u32, u8),
    Polled(u16, u32),
}

/// Plays a measurement until it is done.
fn play(settings: Settings, first_serial: u32, world: &World) -> Core {
    let mut core = Core::new(settings, &vec![first_serial; settings.zones as usize], START_NS);
    let mut events: BTreeMap<(i64, u64), Event> = BTreeMap::new();
    // By secondary and zone: the serials and when they come to be served, in the order in which they do.
    let mut served: Vec<Vec<Vec<(i64, u32)>>> = vec![vec![Vec::new(); settings.zones as usize]; settings.secondaries];
    let (mut now_ns, mut count, mut polls) = (START_NS, 0_u64, 0);
    loop {
        while let Some(entry) = events.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            match entry.remove() {
                Event::Accepted(number, rcode) => core.on_accepted(now_ns, number, rcode),
                Event::Polled(id, serial) => core.on_polled(now_ns, id, Some(serial)),
            }
        }
        count += 1;
        match core.next(now_ns) {
            Action::Change { number, zone, serial } => {
                let answer = (world.accept)(number);
                if let Some((delay_ns, rcode)) = answer {
                    events.insert((now_ns + delay_ns, count), Event::Accepted(number, rcode));
                }
                if answer.is_none_or(|(_, rcode)| rcode == 0) {
                    for (secondary, zones) in served.iter_mut().enumerate() {
                        zones[zone as usize]
                            .extend((world.lag)(number, secondary).map(|lag_ns| (now_ns + lag_ns, serial)));
                    }
                }
            }
            Action::Poll { id, secondary, zone } => {
                polls += 1;
                let shown = served[secondary][zone as usize].iter().filter(|(when_ns, _)| *when_ns <= now_ns);
                let serial =
                    shown.map(|(_, serial)| *serial).fold(first_serial, |a, b| if is_newer(b, a) { b } else { a });
                if let Some(delay_ns) = (world.answer)(polls) {
                    events.insert((now_ns + delay_ns, count), Event::Polled(id, serial));
                }
            }
            Action::Wait { until_ns } => {
                let next_ns = until_ns.min(events.first_key_value().map_or(i64::MAX, |(key, _)| key.0));
                assert!(next_ns > now_ns && next_ns < i64::MAX, "time goes on");
                now_ns = next_ns;
            }
            Action::Done => return core,
        }
    }
}

fn prompt(_: u32) -> Option<(i64, u8)> {
    Some((MS / 2, 0))
}

#[test]
fn one_change_is_bracketed_to_a_poll() {
    let world = World {
        accept: &prompt,
        lag: &|_, secondary| Some(20 * MS * (secondary as i64 + 1)),
        answer: &|_| Some(MS / 10),
    };
    let core = play(settings(1, 3, 5, SINGLE), 1, &world);
    assert_eq!(core.changes().len(), 5);
    for (number, change) in core.changes().iter().enumerate() {
        assert_eq!((change.serial, change.accepted_ns()), (number as u32 + 2, Some(change.sent_ns + MS / 2)));
        for (secondary, sighting) in core.sightings(number).iter().enumerate() {
            let (unseen_ns, seen_ns) = (sighting.last_unseen_ns.unwrap(), sighting.seen_ns.unwrap());
            let true_ns = change.sent_ns + 20 * MS * (secondary as i64 + 1);
            assert!(unseen_ns < true_ns && true_ns <= seen_ns);
            assert!(seen_ns - unseen_ns <= MS + MS / 10, "a poll's spacing, and its way back");
        }
    }
    let gaps = core.changes().windows(2).map(|pair| pair[1].sent_ns - pair[0].sent_ns);
    assert!(gaps.clone().all(|gap_ns| (70 * MS..72 * MS).contains(&gap_ns)), "the last has it, then the pause");
}

#[test]
fn nobody_is_polled_for_what_it_has() {
    let world = World {
        accept: &prompt,
        lag: &|_, secondary| Some(if secondary == 0 { MS } else { 100 * MS }),
        answer: &|_| Some(0),
    };
    let core = play(settings(1, 2, 1, SINGLE), 1, &world);
    assert!(core.polls(0).sent <= 3, "{:?}", core.polls(0));
    assert!((100..=102).contains(&core.polls(1).sent), "{:?}", core.polls(1));
}

#[test]
fn a_stream_keeps_its_rate_and_a_later_serial_shows_all_before() {
    // The secondary takes over what there is every 50 ms: five changes at a time.
    let world = World {
        accept: &prompt,
        lag: &|number, _| Some(50 * MS - i64::from(number % 5) * 10 * MS),
        answer: &|_| Some(MS / 10),
    };
    let core = play(settings(1, 1, 20, Pace::Stream { rate_per_s: 100.0 }), 1, &world);
    for (number, change) in core.changes().iter().enumerate() {
        assert_eq!((change.sent_ns, change.due_ns), (START_NS + number as i64 * 10 * MS, change.sent_ns));
        let seen_ns = core.sightings(number)[0].seen_ns.unwrap();
        let true_ns = START_NS + (number as i64 / 5 + 1) * 50 * MS;
        assert!((true_ns..true_ns + 2 * MS).contains(&seen_ns));
    }
}

#[test]
fn changes_of_one_zone_wait_for_each_other_at_the_primary() {
    let world = World { accept: &|_| Some((30 * MS, 0)), lag: &|_, _| Some(40 * MS), answer: &|_| Some(0) };
    let core = play(settings(1, 1, 5, Pace::Stream { rate_per_s: 100.0 }), 1, &world);
    let lags: Vec<_> = core.changes().iter().map(|change| (change.sent_ns - change.due_ns) / MS).collect();
    assert_eq!(lags, [0, 20, 40, 60, 80]);
    let several = play(settings(3, 1, 5, Pace::Stream { rate_per_s: 100.0 }), 1, &world);
    assert!(
        several.changes().iter().all(|change| change.sent_ns == change.due_ns),
        "changes of other zones do not wait"
    );
}

#[test]
fn what_is_refused_or_never_comes_is_no_sighting() {
    let world = World {
        accept: &|number| Some((MS, if number == 1 { 5 } else { 0 })),
        lag: &|number, secondary| (number != 2 || secondary == 0).then_some(5 * MS),
        answer: &|_| Some(0),
    };
    let core = play(settings(1, 2, 4, SINGLE), 1, &world);
    let seen: Vec<Vec<bool>> =
        (0..4).map(|number| core.sightings(number).iter().map(|s| s.seen_ns.is_some()).collect()).collect();
    assert_eq!(seen, [[true, true], [false, false], [true, false], [true, true]]);
    assert!(core.changes()[1].is_refused() && !core.changes()[2].is_refused());
    assert!(core.changes()[3].sent_ns - core.changes()[2].sent_ns >= 2_000 * MS, "it was waited for");
}

#[test]
fn a_silent_primary_and_silent_secondaries_end() {
    let world = World { accept: &|_| None, lag: &|_, _| None, answer: &|_| None };
    let core = play(settings(2, 2, 3, SINGLE), 1, &world);
    assert!(core.changes().iter().all(|change| change.answered.is_none()));
    assert_eq!(core.polls(0).answered, 0);
    let Polls { sent, timeouts, .. } = core.polls(0);
    assert!(timeouts > 0 && sent - timeouts <= 50, "what was sent in the last 50 ms is still open");
}

#[test]
fn answers_out_of_order_widen_the_bracket_but_do_not_break_it() {
    let mut core = Core::new(settings(1, 1, 1, SINGLE), &[7], START_NS);
    assert_eq!(core.next(START_NS), Action::Change { number: 0, zone: 0, serial: 8 });
    let first = core.next(START_NS);
    let second = core.next(START_NS + MS);
    let (Action::Poll { id: a, .. }, Action::Poll { id: b, .. }) = (first, second) else {
        panic!("{first:?} {second:?}")
    };
    core.on_polled(START_NS + 2 * MS, b, Some(8));
    core.on_polled(START_NS + 3 * MS, a, Some(7));
    let sighting = core.sightings(0)[0];
    assert_eq!(sighting, Sighting { last_unseen_ns: None, seen_ns: Some(START_NS + 2 * MS) });
}

#[test]
fn pauses_are_spread_evenly() {
    let world = World { accept: &prompt, lag: &|_, _| Some(MS), answer: &|_| Some(0) };
    let pace = Pace::Single { pause_ns: 10 * MS, spread_ns: 1_000 * MS };
    let core = play(settings(1, 1, 101, pace), 1, &world);
    let gaps = core.changes().windows(2).map(|pair| (pair[1].sent_ns - pair[0].sent_ns) / MS);
    let mut tenths = [0; 10];
    gaps.for_each(|gap_ms| tenths[((gap_ms - 11) / 100) as usize] += 1);
    assert!(tenths.iter().all(|count| (9..=11).contains(count)), "{tenths:?}");
}

#[test]
fn no_change_is_sent_after_the_end_and_those_before_are_waited_for() {
    let world = World { accept: &prompt, lag: &|_, _| Some(90 * MS), answer: &|_| Some(0) };
    for (pace, expected) in [(SINGLE, 3), (Pace::Stream { rate_per_s: 100.0 }, 25)] {
        let ending = Settings { end_ns: START_NS + 250 * MS, ..settings(1, 1, 1_000, pace) };
        let core = play(ending, 1, &world);
        assert_eq!(core.changes().len(), expected);
        assert!((0..expected).all(|number| core.sightings(number)[0].seen_ns.is_some()));
    }
}

#[test]
fn serials_wrap() {
    let world = World { accept: &prompt, lag: &|_, _| Some(3 * MS), answer: &|_| Some(0) };
    let core = play(settings(1, 1, 3, SINGLE), u32::MAX - 1, &world);
    assert_eq!(core.changes().iter().map(|change| change.serial).collect::<Vec<_>>(), [u32::MAX, 1, 2]);
    assert!((0..3).all(|number| core.sightings(number)[0].seen_ns.is_some()));
}

proptest! {
    /// Whatever is lost or late, what is seen was there, and what was unseen was not.
    #[test]
    fn brackets_hold_the_truth(
        lags in proptest::collection::vec(0_i64..300, 40),
        fates in proptest::collection::vec(proptest::option::weighted(0.7, 0_i64..120), 64),
        stream: bool,
        zones in 1_u32..4,
    ) {
        let pace = if stream { Pace::Stream { rate_per_s: 50.0 } } else { SINGLE };
        let lag = |number: u32, secondary: usize| Some(lags[(number as usize * 2 + secondary) % 40] * MS);
        let world = World {
            accept: &prompt,
            lag: &lag,
            answer: &|poll| fates[poll as usize % 64].map(|ms| ms * MS),
        };
        let core = play(settings(zones, 2, 12, pace), 1, &world);
        prop_assert_eq!(core.changes().len(), 12);
        for (number, change) in core.changes().iter().enumerate() {
            for (secondary, sighting) in core.sightings(number).iter().enumerate() {
                // A later change of the zone shows it as well.
                let later = core.changes().iter().enumerate().skip(number).filter(|(_, other)| other.zone == change.zone);
                let true_ns = later.map(|(n, other)| other.sent_ns + lag(n as u32, secondary).unwrap()).min().unwrap();
                if let Some(seen_ns) = sighting.seen_ns {
                    prop_assert!(seen_ns >= true_ns);
                }
                prop_assert!(sighting.last_unseen_ns.is_none_or(|unseen_ns| unseen_ns < true_ns));
            }
        }
    }
}

#[test]
fn changes_that_the_primary_makes_by_itself_are_looked_for_and_not_sent() {
    let own = settings(2, 1, 5, Pace::Own { rate_per_s: 100.0 });
    let mut core = Core::new(own, &[7, 7], START_NS);
    assert_eq!(core.next(START_NS - MS), Action::Wait { until_ns: START_NS });
    // We come late, three are due by now; zone 0 shows the latest, before which there was another.
    let now_ns = START_NS + 25 * MS;
    let Action::Poll { id, secondary: 0, zone: 0 } = core.next(now_ns) else { panic!("a poll of the first zone") };
    core.on_polled(now_ns + MS, id, Some(9));
    let Action::Poll { id, zone: 1, .. } = core.next(now_ns + MS) else { panic!("a poll of the second zone") };
    core.on_polled(now_ns + 2 * MS, id, Some(7));
    let made: Vec<_> = core.changes().iter().map(|c| (c.zone, c.serial, (c.sent_ns - START_NS) / MS)).collect();
    assert_eq!(made, [(0, 8, 0), (1, 8, 10), (0, 9, 20)]);
    assert!(core.changes().iter().all(|change| change.accepted_ns() == Some(change.due_ns)));
    let seen: Vec<_> = (0..3).map(|number| core.sightings(number)[0].seen_ns).collect();
    assert_eq!(seen, [Some(now_ns + MS), None, Some(now_ns + MS)]);
    // Zone 1 has all of its changes before the next one of zone 0: what it shows then is still ahead of it.
    let Action::Poll { id, zone: 1, .. } = core.next(now_ns + 6 * MS) else { panic!("it is missing there") };
    core.on_polled(now_ns + 6 * MS, id, Some(9));
    core.next(START_NS + 45 * MS);
    assert_eq!((core.changes()[3].serial, core.changes()[4].serial), (9, 10));
}
