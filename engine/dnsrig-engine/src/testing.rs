//! For tests of several subcommands.

use std::collections::BTreeSet;

use dnsrig_net::connection::limits::Connections;
use serde::Serialize;
use serde_json::Value;

/// Counts of connections, each another one.
pub const CONNECTIONS: Connections = Connections {
    accepted: 101,
    refused: 102,
    handshakes: 103,
    resumed: 104,
    early_data: 105,
    tls_failed: 106,
    reset: 107,
    idle: 108,
};

/// Checks that `add` adds each of `counts`, all of which are different and above 0.
pub fn assert_adds_each<C: Default + Serialize>(counts: &C, add: impl Fn(&mut C, &C)) {
    let each = numbers(counts);
    let distinct: BTreeSet<_> = each.iter().filter(|number| **number > 0).collect();
    assert_eq!(distinct.len(), each.len(), "different, and above 0: {each:?}");
    let mut sum = C::default();
    for times in 1..=2 {
        add(&mut sum, counts);
        assert_eq!(numbers(&sum), each.iter().map(|number| times * number).collect::<Vec<_>>(), "added {times} times");
    }
}

/// Every number in what is reported as JSON, in its order.
fn numbers(reported: &impl Serialize) -> Vec<i64> {
    fn push(value: &Value, to: &mut Vec<i64>) {
        match value {
            Value::Object(fields) => fields.values().for_each(|field| push(field, to)),
            Value::Array(values) => values.iter().for_each(|value| push(value, to)),
            other => to.extend(other.as_i64()),
        }
    }
    let mut found = Vec::new();
    push(&serde_json::to_value(reported).unwrap(), &mut found);
    found
}
