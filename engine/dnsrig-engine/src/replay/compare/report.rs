//! What `replay compare` says.

use dnsrig_core::stats::{Distribution, NOTHING, grouped};
use serde::Serialize;

/// The `summary` event.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// Queries of the stream, and their bytes.
    pub queries: u64,
    pub bytes: u64,
    pub arrived: u64,
    pub arrived_bytes: u64,
    /// Queries of the stream that did not arrive as they are.
    pub missing: u64,
    /// Missing queries that were encrypted.
    pub encrypted: u64,
    /// What arrived and is no query of the stream: of others, changed, or once more.
    pub unknown: u64,
    /// Queries that one behind them in the stream overtook (RFC 4737 §3.3), and by how long at most (§4.2.2).
    pub out_of_order: u64,
    pub out_of_order_max_ns: u64,
    /// Between queries that follow each other: in the stream, and as they came.
    pub due_gap_ns: Distribution,
    pub gap_ns: Distribution,
    /// How much each interval between two that follow each other in both is longer or shorter than it was.
    pub gap_deviation_ns: Distribution,
}

/// The summary for people.
pub fn text(summary: &Summary) -> String {
    let Summary { queries, arrived, missing, encrypted, unknown, out_of_order, .. } = *summary;
    let percent = |part: u64, all: u64| format!("{:.4} %", 100.0 * part as f64 / all.max(1) as f64);
    let same = queries - missing - encrypted;
    let mut lines = vec![format!(
        "{} of {} queries arrived byte by byte ({}); {} others did",
        grouped(same),
        grouped(queries - encrypted),
        percent(same, queries - encrypted),
        grouped(unknown)
    )];
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<14}{text}"));
    if encrypted > 0 {
        row("encrypted", format!("{}: a capture does not show them", grouped(encrypted)));
    }
    row(
        "bytes",
        format!(
            "{} in {} queries, of {} in {}",
            grouped(summary.arrived_bytes),
            grouped(arrived),
            grouped(summary.bytes),
            grouped(queries)
        ),
    );
    row(
        "out of order",
        format!(
            "{} ({}), by at most {}",
            grouped(out_of_order),
            percent(out_of_order, same),
            microseconds(summary.out_of_order_max_ns)
        ),
    );
    for (name, times) in
        [("intervals", &summary.due_gap_ns), ("  arrived", &summary.gap_ns), ("  deviation", &summary.gap_deviation_ns)]
    {
        if times.count == 0 {
            row(name, NOTHING.into());
            continue;
        }
        let cells = [("p50", times.p50), ("p99", times.p99), ("p99.9", times.p99_9), ("max", times.max)];
        row(name, cells.map(|(percentile, ns)| format!("{percentile} {}", microseconds(ns))).join(", "));
    }
    lines.join("\n") + "\n"
}

fn microseconds(ns: u64) -> String {
    format!("{:.1} µs", ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_it_was() {
        let times =
            Distribution { count: 1, p50: 1_000, p99: 2_000, p99_9: 3_100, max: 4_000_000, ..Default::default() };
        let summary = Summary {
            queries: 1_010,
            bytes: 20_200,
            arrived: 1_001,
            arrived_bytes: 20_020,
            missing: 5,
            encrypted: 10,
            unknown: 6,
            out_of_order: 2,
            out_of_order_max_ns: 1_500,
            due_gap_ns: times,
            gap_deviation_ns: times,
            ..Summary::default()
        };
        let expected = "\
995 of 1,000 queries arrived byte by byte (99.5000 %); 6 others did
  encrypted     10: a capture does not show them
  bytes         20,020 in 1,001 queries, of 20,200 in 1,010
  out of order  2 (0.2010 %), by at most 1.5 µs
  intervals     p50 1.0 µs, p99 2.0 µs, p99.9 3.1 µs, max 4000.0 µs
    arrived     –
    deviation   p50 1.0 µs, p99 2.0 µs, p99.9 3.1 µs, max 4000.0 µs
";
        assert_eq!(text(&summary), expected);
        let nothing = text(&Summary::default());
        assert!(
            nothing.starts_with("0 of 0 queries arrived byte by byte (0.0000 %); 0 others did\n  bytes "),
            "{nothing}"
        );
    }
}
