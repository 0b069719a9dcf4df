//! For tests.

use serde_json::{Value, json};

use super::generator::{Facts, Generator};

/// A generator of ten seconds, which began at its number in seconds.
pub fn generator(number: usize) -> Generator {
    let start_ns = number as i64 * 1_000_000_000;
    let facts = Facts { start_ns, end_ns: start_ns + 10_000_000_000, interval_s: 1.0, interrupted: false };
    let Value::Object(summary) = json!({
        "transport": "udp", "model": "rate", "timeout_ns": 1, "interval_s": 1.0, "interrupted": false,
        "start_ns": start_ns, "end_ns": start_ns + 10_000_000_000_i64,
    }) else {
        unreachable!()
    };
    // Merged files are on the clock of the first generator.
    Generator { dir: number.to_string().into(), summary, facts, begin_ns: 0 }
}
