//! The summary of all generators, in the format of `load`'s.

use dnsrig_core::{
    failure::Failure,
    stats::{Distribution, Times},
};
use serde_json::{Map, Value, json};

use super::{generator::Generator, latency_log::Totals};

type Object = Map<String, Value>;

/// What is counted, in the summary, and of each class.
const ADDED: [&str; 31] = [
    "answered",
    "authenticated",
    "bytes_received",
    "bytes_sent",
    "clients",
    "connections",
    "cpu_ns",
    "due",
    "duplicates",
    "http_faults",
    "incomplete",
    "intervals_lost",
    "late",
    "lost",
    "malformed",
    "mismatched",
    "rcodes",
    "rows_dropped",
    "sent",
    "threads",
    "timeouts",
    "truncated",
    "unanswered",
    "unexpected",
    "unlisted",
    "unreachable",
    "unsent",
    "waited_for_id",
    "waited_for_stream",
    "wrong",
    "wrong_matches_max",
];

/// What a rate, and a number of outstanding queries, are in all: each generator of a segment tells those of all.
const SHARED: [&str; 2] = ["asked_qps", "outstanding"];

const LARGEST: [&str; 3] = ["busy_share", "cpu_wait_ns", "sending_ns"];

/// Distributions, and the histograms that they are of.
const DISTRIBUTIONS: [(&str, &str); 5] = [
    ("latency_ns", "due"),
    ("sent_latency_ns", "sent"),
    ("lower_latency_ns", "lower"),
    ("lag_ns", "lag"),
    ("handshake_ns", "handshake"),
];

/// Fields of the event, or of one generator only, which the merged summary does not have.
const LEFT_OUT: [&str; 6] = ["event", "monotonic_ns", "events_dropped", "segment", "loop_bound", "unequal_clients"];

/// The summaries of all put together, with the distributions of `times`.
pub fn merge(generators: &[Generator], times: &Totals) -> Result<Object, Failure> {
    let (first, others) = generators.split_first().expect("there is a generator");
    let mut merged = first.summary.clone();
    let is_shared = merged.contains_key("segment");
    LEFT_OUT.iter().for_each(|key| drop(merged.remove(*key)));
    for other in others {
        add_counts(&mut merged, &other.summary);
        for key in LARGEST {
            let number = |summary: &Object| summary.get(key).and_then(Value::as_f64).unwrap_or(0.0);
            if number(&other.summary) > number(&merged) {
                merged.insert(key.into(), other.summary[key].clone());
            }
        }
        if !is_shared {
            SHARED.iter().for_each(|key| add_value(&mut merged, &other.summary, key));
        }
        add_classes(&mut merged, other)?;
        add_skipped(&mut merged, &other.summary);
    }
    set_period(&mut merged, generators);
    for (key, tag) in DISTRIBUTIONS {
        if let Some(times) = times.get(tag) {
            merged.insert(key.into(), distribution(times));
        }
    }
    for (number, class) in classes(&mut merged).into_iter().flatten().enumerate() {
        if let (Some(class), Some(times)) = (class.as_object_mut(), times.get(&format!("class-{number}"))) {
            class.insert("latency_ns".into(), distribution(times));
        }
    }
    merged.insert("generators".into(), generators.iter().map(describe).collect());
    Ok(merged)
}

/// Where from and to, whether all were in time, whether any was interrupted.
fn set_period(merged: &mut Object, generators: &[Generator]) {
    let first = &generators[0];
    let ends_ns = generators.iter().map(|generator| generator.facts.end_ns + generator.shift_ns());
    let end_ns = ends_ns.max().unwrap_or(first.facts.end_ns);
    merged.insert("start_ns".into(), first.begin_ns.into());
    merged.insert("end_ns".into(), end_ns.into());
    merged.insert("duration_s".into(), ((end_ns - first.begin_ns) as f64 / 1e9).into());
    merged.insert("interrupted".into(), generators.iter().any(|generator| generator.facts.interrupted).into());
    let is_real_time = |generator: &Generator| generator.summary.get("real_time") == Some(&true.into());
    merged.insert("real_time".into(), generators.iter().all(is_real_time).into());
}

fn add_counts(mine: &mut Object, other: &Object) {
    ADDED.iter().for_each(|key| add_value(mine, other, key));
}

fn add_value(mine: &mut Object, other: &Object, key: &str) {
    let Some(other) = other.get(key) else { return };
    let mine = mine.entry(key).or_insert(Value::Null);
    if key.ends_with("_min") { keep_least(mine, other) } else { add(mine, other) }
}

/// Keeps the smaller number; 0 means that there is no number.
fn keep_least(mine: &mut Value, other: &Value) {
    let least = [mine.as_u64(), other.as_u64()].into_iter().flatten().filter(|number| *number > 0).min();
    *mine = least.unwrap_or(0).into();
}

/// Adds numbers, and those within objects.
fn add(mine: &mut Value, other: &Value) {
    match (&mut *mine, other) {
        (Value::Object(mine), Value::Object(other)) => other.keys().for_each(|key| add_value(mine, other, key)),
        (Value::Number(one), Value::Number(other)) => {
            *mine = match (one.as_u64(), other.as_u64()) {
                (Some(one), Some(other)) => one.saturating_add(other).into(),
                _ => (one.as_f64().unwrap_or(0.0) + other.as_f64().unwrap_or(0.0)).into(),
            }
        }
        (Value::Null, other) => *mine = other.clone(),
        _ => {}
    }
}

fn classes(summary: &mut Object) -> Option<&mut Vec<Value>> {
    summary.get_mut("classes").and_then(Value::as_array_mut)
}

/// Adds the counts of the classes of clients; their latencies are in the log.
fn add_classes(merged: &mut Object, other: &Generator) -> Result<(), Failure> {
    let none = Vec::new();
    let others = other.summary.get("classes").and_then(Value::as_array).unwrap_or(&none);
    let mine = classes(merged).map_or(&mut [][..], Vec::as_mut_slice);
    if mine.len() != others.len() {
        return Err(other.damaged("summary.json", "it has another number of classes than the first directory"));
    }
    for (mine, other) in mine.iter_mut().zip(others) {
        if let (Some(mine), Some(other)) = (mine.as_object_mut(), other.as_object()) {
            add_counts(mine, other);
        }
    }
    Ok(())
}

/// Adds what of a stream was left out.
fn add_skipped(merged: &mut Object, other: &Object) {
    let replayed = merged.get_mut("replayed").and_then(Value::as_object_mut);
    if let (Some(mine), Some(other)) = (replayed, other.get("replayed").and_then(Value::as_object)) {
        ["retransmissions_skipped", "too_long_skipped"].iter().for_each(|key| add_value(mine, other, key));
    }
}

fn distribution(times: &Times) -> Value {
    serde_json::to_value(Distribution::from(times)).expect("numbers can be written")
}

/// The entry of a generator in the summary.
fn describe(generator: &Generator) -> Value {
    let Generator { dir, summary, .. } = generator;
    let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
    json!({
        "dir": name,
        "sent": summary.get("sent"),
        "answered": summary.get("answered"),
        "unsent": summary.get("unsent"),
        "busy_share": summary.get("busy_share"),
        "lag_p99_ns": summary.get("lag_ns").and_then(|lag| lag.get("p99")),
        "real_time": summary.get("real_time"),
    })
}

#[cfg(test)]
mod tests {
    use dnsrig_core::stats::times;

    use super::{super::testing, *};
    use crate::merge::generator;

    fn generator(number: usize, more: Value) -> Generator {
        let mut generator = testing::generator(number);
        let Value::Object(more) = more else { panic!("{more}") };
        generator.summary.extend(more);
        generator
    }

    #[test]
    fn counts_add_and_what_is_the_worst_or_common_stays() {
        let class = json!({"share": 0.5, "answered": 2, "clients": 3, "connections": {"failed": 1}});
        let one = json!({
            "sent": 10, "rcodes": {"NOERROR": 7}, "lost": {"reset": 1}, "busy_share": 0.5, "sending_ns": 9, "threads": 2,
            "real_time": true, "asked_qps": 100.0, "event": "summary", "lag_ns": {"p99": 5}, "classes": [class],
            "waited_for_stream": 3, "connections": {"quic": {"full_handshake_bytes_min": 2_000}},
        });
        let other = json!({
            "sent": 5, "rcodes": {"NOERROR": 1, "REFUSED": 2}, "lost": {"reset": 2}, "busy_share": 0.75, "sending_ns": 8,
            "threads": 1, "real_time": false, "asked_qps": 50.0, "classes": [class], "http_faults": {"status 404": 2},
            "waited_for_stream": 4, "connections": {"quic": {"full_handshake_bytes_min": 1_900}},
        });
        let mut generators = [generator(3, one), generator(1, other)];
        (generators[1].facts.interrupted, generators[1].facts.end_ns) = (true, 2_000_000_000);
        generators.iter_mut().for_each(|generator| generator.begin_ns = 40_000_000_000);
        let mut latencies = times();
        latencies.record(7_000).unwrap();
        let totals = Totals::from([("due".into(), latencies.clone()), ("class-0".into(), latencies)]);
        let merged = Value::Object(merge(&generators, &totals).unwrap());
        let expected = json!({
            "sent": 15, "rcodes": {"NOERROR": 8, "REFUSED": 2}, "lost": {"reset": 3}, "busy_share": 0.75, "sending_ns": 9,
            "threads": 3, "real_time": false, "interrupted": true, "asked_qps": 150.0, "duration_s": 10.0,
            "start_ns": 40_000_000_000_i64, "end_ns": 50_000_000_000_i64, "transport": "udp",
            "http_faults": {"status 404": 2}, "waited_for_stream": 7,
            "connections": {"quic": {"full_handshake_bytes_min": 1_900}},
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&merged[key], value, "{key}");
        }
        assert!(merged.get("event").is_none());
        assert_eq!(merged["latency_ns"]["p50"], merged["classes"][0]["latency_ns"]["p50"]);
        assert_eq!(merged["classes"][0]["answered"], 4);
        assert_eq!(merged["classes"][0]["connections"]["failed"], 2);
        assert_eq!(merged["classes"][0]["share"], 0.5);
        assert_eq!(merged["generators"][0]["lag_p99_ns"], 5);
        assert_eq!(merged["generators"][1]["dir"], "1");
    }

    #[test]
    fn generators_of_a_segment_tell_the_rate_of_all() {
        let one = |number| {
            generator(number, json!({"asked_qps": 100.0, "segment": {"number": number, "of": 2}, "clients": 2}))
        };
        let merged = merge(&[one(1), one(2)], &Totals::new()).unwrap();
        assert_eq!((&merged["asked_qps"], &merged["clients"]), (&json!(100.0), &json!(4)));
        assert!(!merged.contains_key("segment"));
    }

    #[test]
    fn what_is_not_of_one_load_is_refused_with_a_sentence() {
        let refused = |other: Generator| generator::check(&[testing::generator(0), other]).unwrap_err().to_string();
        for (key, value) in [("transport", json!("tcp")), ("timeout_ns", json!(2)), ("model", json!("closed"))] {
            let error = refused(generator(1, json!({ key: value })));
            assert!(error.starts_with("0 and 1 do not belong together") && error.contains(key), "{error}");
        }
        let mut shorter = testing::generator(1);
        shorter.facts.end_ns -= 1_000_000_000;
        assert!(
            generator::check(&[
                testing::generator(0),
                Generator { facts: interrupted(&shorter), ..testing::generator(1) }
            ])
            .is_ok()
        );
        assert!(refused(shorter).contains("the number of intervals is 10 there and 9 here"));
    }

    fn interrupted(generator: &Generator) -> generator::Facts {
        let generator::Facts { start_ns, end_ns, interval_s, .. } = generator.facts;
        generator::Facts { start_ns, end_ns, interval_s, interrupted: true }
    }
}
