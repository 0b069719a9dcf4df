use proptest::{collection::vec, prelude::*};

use dnsrig_testing::{any_bytes, harm, harms, inputs};

use super::*;
use crate::load::{
    arrivals::{Model, Period},
    collect::Outcome,
    counts::Counts,
    interval_stats::Series,
    ramp::{RampLimits, judge},
};

const SECOND: i64 = 1_000_000_000;

/// What was measured with these latencies, in nanoseconds.
fn measured(latencies_ns: &[u64]) -> Measured {
    let mut series = Series::default();
    latencies_ns.iter().for_each(|latency_ns| series.due.saturating_record(*latency_ns));
    latencies_ns.iter().for_each(|latency_ns| series.lag.saturating_record(latency_ns / 7));
    let sent = latencies_ns.len() as u64;
    let lost = Losses { reset: sent / 3, ..Losses::default() };
    let counts = Counts { due: sent, sent, answered: sent - sent / 3, lost, ..Counts::default() };
    let outcome =
        Outcome { counts, series, sending_ns: SECOND + sent as i64, busy_ns: SECOND / 2, ..Outcome::default() };
    let period = Period { model: Model::Outstanding(1), start_ns: 0, end_ns: SECOND, seed: 0 };
    outcome.measured(period)
}

fn line(tried: &Tried) -> String {
    // The event has these fields, too.
    let mut line = serde_json::to_value(tried).unwrap();
    line["event"] = "tried".into();
    line["monotonic_ns"] = 7.into();
    line.to_string()
}

#[test]
fn lines_say_when_to_start_what_was_tried_and_when_to_end() {
    let start = |start_ns, rate_qps| Line::Start(Start { start_ns, rate_qps });
    for (text, expected) in [
        (r#"{"start_ns": 12}"#, start(12, None)),
        (r#"{"rate_qps": 2e3, "start_ns": -1}"#, start(-1, Some(2_000.0))),
        (r#"{"start_ns":1,"rate_qps":null}"#, start(1, None)),
        (r#" {"end": true} "#, Line::End),
    ] {
        assert_eq!(Line::parse(text).unwrap(), expected, "{text}");
    }
    let wrong =
        ["", "{}", "7", "{\"start_ns\": 1.5}", "{\"start_ns\": 1, \"at\": 2}", "{\"end\": false}", "{\"start_ns\""];
    for text in wrong.into_iter().chain([r#"{"event": "tried"}"#, r#"{"event": "step", "start_ns": 1}"#]) {
        let error = Line::parse(text).unwrap_err();
        assert!(error.exit_code == 2 && error.hint.contains("start_ns"), "{text}: {error}");
    }
}

#[test]
fn a_start_is_yet_to_come_and_soon() {
    let check = |start_ns| Start { start_ns, rate_qps: None }.check(100 * SECOND).map_err(|error| error.to_string());
    assert!([100, 101, 160].iter().all(|at_s| check(at_s * SECOND).is_ok()));
    assert_eq!(check(98 * SECOND).unwrap_err(), "`start_ns` is 2000 ms in the past");
    assert_eq!(check(161 * SECOND).unwrap_err(), "`start_ns` is 61 s ahead, more than 60 s");
    assert!(check(i64::MIN).is_err() && check(i64::MAX).is_err());
}

#[test]
fn a_ramp_has_rates_that_can_be_tried() {
    let with = |rate_qps| rate(Start { start_ns: 1, rate_qps }).ok();
    assert_eq!([None, Some(0.0), Some(-1.0), Some(1e9), Some(7.5)].map(with), [None, None, None, None, Some(7.5)]);
    let wanted = Try { rate_qps: 2_000.0, repeat: 1 };
    assert!(rate_for(Start { start_ns: 1, rate_qps: Some(2_000.1) }, wanted).is_err());
}

#[test]
fn each_follower_tries_a_rate_once_and_who_is_missing_is_known() {
    let mut followers = Followers::new(3, 1_000.0);
    let tried = |number, of, rate_qps| Tried::of(Segment { number, of }, rate_qps, &measured(&[5]));
    assert!(followers.take(&tried(3, 3, 1_000.0)).is_ok());
    for foreign in [tried(3, 3, 1_000.0), tried(1, 3, 1_000.0), tried(2, 2, 1_000.0), tried(2, 3, 999.0)] {
        assert!(followers.take(&foreign).unwrap_err().sentence.contains("is not one of the followers"), "{foreign:?}");
    }
    assert_eq!(followers.missing(), Some(Segment { number: 2, of: 3 }));
    assert!(followers.take(&tried(2, 3, 1_000.0)).is_ok() && followers.missing().is_none());
    assert!(Followers::new(1, 1.0).missing().is_none());
}

#[test]
fn a_histogram_of_other_bounds_is_refused() {
    let mut tried = Tried::of(Segment { number: 2, of: 2 }, 1.0, &measured(&[5]));
    let mut other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1_000_000, 2).unwrap();
    other.record(7).unwrap();
    tried.lag_histogram = encode(&other);
    assert!(tried.measured().unwrap_err().to_string().contains("2/2 cannot be read: its values have 2 digits"));
}

proptest! {
    #![proptest_config(inputs(40))]

    #[test]
    fn what_generators_measured_is_judged_as_if_one_had(
        parts in vec(vec(1..TIME_MAX_NS, 1..50), 1..5),
        rate_qps in 0.01..1e8_f64,
    ) {
        let of = parts.len() as u32;
        let mut all = measured(&parts[0]);
        let mut followers = Followers::new(of, rate_qps);
        for (number, latencies_ns) in (2..).zip(&parts[1..]) {
            let text = line(&Tried::of(Segment { number, of }, rate_qps, &measured(latencies_ns)));
            let Line::Tried(tried) = Line::parse(&text).unwrap() else { panic!("{text}") };
            all.add(&followers.take(&tried).unwrap());
        }
        prop_assert!(followers.missing().is_none());
        let mut alone = measured(&parts.concat());
        (alone.answered, alone.lost, alone.sending_ns) = (all.answered, all.lost, all.sending_ns);
        alone.busy_share = all.busy_share;
        prop_assert_eq!((&all.due_times, &all.lag_times), (&alone.due_times, &alone.lag_times));
        prop_assert_eq!((all.sent, all.due), (alone.sent, alone.due));
        let limits = RampLimits { loss_share: 0.5, percentile: 99.0, latency_ns: TIME_MAX_NS / 2 };
        let judged = [&all, &alone].map(|measured| format!("{:?}", judge(measured, SECOND, limits, Try { rate_qps: 10.0, repeat: 0 }, 0.0)));
        prop_assert_eq!(&judged[0], &judged[1]);
    }

    #[test]
    fn no_line_harms_who_reads_it(bytes in any_bytes(400), harms in vec(harms(), 1..4)) {
        let _ = Line::parse(&String::from_utf8_lossy(&bytes));
        let segment = Segment { number: 2, of: 2 };
        let tried = Tried::of(segment, 5.0, &measured(&[3, 5, 1_000_000, 77_000_000_000]));
        let mut text = line(&tried).into_bytes();
        harms.iter().for_each(|done| harm(&mut text, *done));
        if let Ok(Line::Tried(read)) = Line::parse(&String::from_utf8_lossy(&text)) {
            let mut own = measured(&[1]);
            if let Ok(other) = Followers::new(2, 5.0).take(&read) {
                own.add(&other);
            }
        }
        // The histogram itself, whose text is right.
        let mut histogram = BASE64_STANDARD.decode(&tried.due_histogram).unwrap();
        harms.iter().for_each(|done| harm(&mut histogram, *done));
        let _ = decode(&BASE64_STANDARD.encode(histogram));
    }
}

fn lines(input: &[u8]) -> Vec<Result<String, Failure>> {
    let (sender, lines) = sync_channel(WAITING_MAX);
    read(input, &sender);
    drop(sender);
    lines.into_iter().collect()
}

#[test]
fn lines_are_passed_on_as_far_as_they_are_right() {
    let lines_of = |input: &[u8]| lines(input).into_iter().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(lines_of(b"one\n\ntwo"), ["one", "", "two"]);
    assert_eq!(lines_of(b""), [""; 0]);
    let longest = [&[b'x'; LINE_BYTES_MAX][..], b"\nnext\n"].concat();
    assert_eq!(lines_of(&longest).iter().map(String::len).collect::<Vec<_>>(), [LINE_BYTES_MAX, 4]);
    for (wrong, part) in [(vec![b'x'; LINE_BYTES_MAX + 1], "longer"), (vec![0xff, b'\n', b'a'], "UTF-8")] {
        let [Err(error)] = &lines(&wrong)[..] else { panic!("one error") };
        assert!(error.sentence.contains(part) && error.exit_code == 2);
    }
}
