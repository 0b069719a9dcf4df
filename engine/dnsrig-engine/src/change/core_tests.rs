//! Streams in virtual time, against servers that answer, lag, lose and never answer.

use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;
const START_NS: i64 = 1_000 * MS;

fn settings(rate_per_s: f64, changes: u64, window: usize) -> Settings {
    Settings { rate_per_s, changes, window, timeout_ns: 100 * MS, end_ns: START_NS + 10_000 * MS }
}

/// Plays a stream; `delay` gives how long the server takes for a change, None if it never answers.
fn play(settings: Settings, delay: impl Fn(u64) -> Option<i64>) -> Core {
    let mut core = Core::new(settings, START_NS);
    let mut answers: Vec<(i64, u16)> = Vec::new();
    let mut now_ns = START_NS;
    loop {
        answers.sort_unstable();
        while answers.first().is_some_and(|(when_ns, _)| *when_ns <= now_ns) {
            let (when_ns, id) = answers.remove(0);
            core.on_answer(when_ns, id, 0);
        }
        match core.next(now_ns) {
            Action::Send { id, number } => answers.extend(delay(number).map(|delay_ns| (now_ns + delay_ns, id))),
            Action::Wait { until_ns } => {
                let next_ns = until_ns.min(answers.first().map_or(i64::MAX, |(when_ns, _)| *when_ns));
                assert!(next_ns > now_ns, "time goes on");
                now_ns = next_ns;
            }
            Action::Done => return core,
        }
        assert!(core.open() <= settings.window);
    }
}

#[test]
fn changes_are_due_at_a_constant_rate() {
    let core = play(settings(100.0, 50, 8), |_| Some(MS));
    let times: Vec<_> = core.sent().iter().map(|sent| (sent.due_ns, sent.sent_ns)).collect();
    let expected: Vec<_> = (0..50).map(|n| START_NS + n * 10 * MS).map(|due_ns| (due_ns, due_ns)).collect();
    assert_eq!(times, expected);
    assert!(core.sent().iter().all(|s| s.end == End::Answered { answered_ns: s.sent_ns + MS, rcode: 0 }));
}

#[test]
fn a_full_window_makes_changes_late_and_says_so() {
    let core = play(settings(1000.0, 10, 1), |_| Some(5 * MS));
    let lags: Vec<_> = core.sent().iter().map(|sent| (sent.sent_ns - sent.due_ns) / MS).collect();
    assert_eq!(lags, (0..10).map(|n| 4 * n).collect::<Vec<_>>());
}

#[test]
fn a_server_that_never_answers_gets_each_change_once() {
    let core = play(settings(1000.0, 20, 4), |_| None);
    assert_eq!(core.sent().len(), 20);
    assert!(core.sent().iter().all(|sent| sent.end == End::Timeout));
}

#[test]
fn what_cannot_be_sent_before_the_end_is_left_out() {
    let short = Settings { end_ns: START_NS + 250 * MS, ..settings(1000.0, 1000, 1) };
    let core = play(short, |_| None);
    assert_eq!(core.sent().len(), 3, "one each 100 ms");
    assert_eq!(core.open(), 0);
}

#[test]
fn answers_are_expected_late_or_unexpected() {
    let mut core = Core::new(settings(10.0, 3, 4), START_NS);
    assert_eq!(core.on_answer(START_NS, 0, 0), Answer::Unexpected, "nothing was sent yet");
    assert_eq!(core.next(START_NS), Action::Send { id: 0, number: 0 });
    assert_eq!(core.on_answer(START_NS + MS, 1, 0), Answer::Unexpected);
    assert_eq!(core.on_answer(START_NS + MS, 0, 5), Answer::Expected);
    assert_eq!(core.on_answer(START_NS + MS, 0, 5), Answer::Unexpected, "twice");
    assert_eq!(core.next(START_NS + 100 * MS), Action::Send { id: 1, number: 1 });
    core.next(START_NS + 200 * MS);
    assert_eq!(core.on_answer(START_NS + 201 * MS, 1, 0), Answer::Late);
    assert_eq!(core.sent()[1].end, End::Timeout, "whenever it comes, it was given up");
}

proptest! {
    #[test]
    fn every_change_ends_whatever_the_server_does(
        delays in proptest::collection::vec(proptest::option::of(0_i64..200), 1..200),
        rate_per_s in 1.0_f64..5000.0,
        window in 1_usize..64,
    ) {
        let core = play(settings(rate_per_s, delays.len() as u64, window), |n| delays[n as usize].map(|ms| ms * MS));
        prop_assert_eq!(core.open(), 0);
        for (sent, delay) in core.sent().iter().zip(&delays) {
            prop_assert!(sent.sent_ns >= sent.due_ns);
            let expected = match delay {
                Some(ms) if *ms < 100 => End::Answered { answered_ns: sent.sent_ns + ms * MS, rcode: 0 },
                Some(100) => sent.end,
                _ => End::Timeout,
            };
            prop_assert_eq!(sent.end, expected);
        }
    }
}
