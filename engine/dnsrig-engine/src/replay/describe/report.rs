//! What `replay describe` says.

use std::collections::BTreeMap;

use dnsrig_core::stats::grouped;
use serde::Serialize;

use crate::query_stream::{
    Header, Transport,
    cache::{HitRatio, Simulated},
};

/// How queries spread over clients.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Clients {
    /// Queries of the client in the middle.
    pub median: u64,
    /// Queries of the client with the most.
    pub largest: u64,
    /// Queries of the heaviest 1 % of the clients, and of the heaviest 10 %.
    pub heaviest_1_percent: u64,
    pub heaviest_10_percent: u64,
    /// Clients with fewer than 10 queries, and with more than 100.
    pub below_10: u64,
    pub above_100: u64,
}

/// One of the clients that ask most.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Heavy {
    pub queries: u64,
    /// Distinct ones; more than 1,048,576 are not counted.
    pub questions: u64,
}

/// The `summary` event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub elapsed_ns: i64,
    pub cpu_ns: i64,
    pub stream: Header,
    pub queries_per_s: f64,
    /// The most queries in a second, from the begin of the stream.
    pub busiest_second: u64,
    pub clients: Clients,
    /// The ten with the most queries.
    pub heaviest: Vec<Heavy>,
    /// The most frequent types.
    pub types: Vec<(String, u64)>,
    pub transports: BTreeMap<Transport, u64>,
    /// Names with their types; those that do not exist without. More than 16,777,216 are not counted.
    pub distinct_questions: u64,
    /// What a cache that forgets nothing would answer, of shares of the clients and of all of them.
    pub hit_ratios: Vec<HitRatio>,
    pub retransmissions: u64,
    pub connections: u64,
    pub edns: u64,
    pub dnssec_ok: u64,
    /// Queries with RD (RFC 1035 §4.1.1), which clients set, and resolvers clear when they ask an authority.
    pub recursion_desired: u64,
    pub message_bytes: u64,
    /// Queries in each part of the time, and how long a part is.
    pub intervals: Vec<u64>,
    pub interval_ns: i64,
    /// The variance of the number of queries in 10 ms by its mean: 1 where queries are independent.
    pub dispersion_10_ms: f64,
    /// With --cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Simulated>,
}

/// The summary for people.
pub fn text(summary: &Summary) -> String {
    let Header { queries, clients, duration_ns, .. } = summary.stream;
    let percent = |part: u64| format!("{:.1} %", 100.0 * part as f64 / queries.max(1) as f64);
    let seconds = duration_ns as f64 / 1e9;
    let mut lines = vec![format!(
        "{} queries from {} clients in {seconds:.3} s: {:.0} per second, {} in the busiest second",
        grouped(queries),
        grouped(clients),
        summary.queries_per_s,
        grouped(summary.busiest_second)
    )];
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<12}{text}"));
    let spread = &summary.clients;
    row(
        "clients",
        format!(
            "median {} queries, largest {}; the heaviest 1 % have {}, the heaviest 10 % {}; {:.1} % have fewer than 10, \
             {:.1} % more than 100",
            grouped(spread.median),
            grouped(spread.largest),
            percent(spread.heaviest_1_percent),
            percent(spread.heaviest_10_percent),
            100.0 * spread.below_10 as f64 / clients.max(1) as f64,
            100.0 * spread.above_100 as f64 / clients.max(1) as f64
        ),
    );
    let types: Vec<_> =
        summary.types.iter().take(8).map(|(name, count)| format!("{name} {}", percent(*count))).collect();
    row("types", types.join(", "));
    let used = summary.transports.iter().filter(|(_, count)| **count > 0);
    row(
        "transports",
        used.map(|(kind, count)| format!("{} {}", kind.name(), percent(*count))).collect::<Vec<_>>().join(", "),
    );
    row("questions", format!("{} distinct", grouped(summary.distinct_questions)));
    if let [.., half, whole] = &summary.hit_ratios[..] {
        let [half, whole] = [half.middle, whole.middle].map(|ratio| 100.0 * ratio);
        row(
            "cache",
            format!(
                "one that forgets nothing answers {whole:.1} %, and {half:.1} % of the queries of half of the clients"
            ),
        );
    }
    row("EDNS", format!("{}, DO {}", percent(summary.edns), percent(summary.dnssec_ok)));
    row("RD", percent(summary.recursion_desired));
    row("sent again", percent(summary.retransmissions));
    let part_s = summary.interval_ns as f64 / 1e9;
    row("over time", format!("{} ({part_s:.3} s per column)", columns(&summary.intervals)));
    row("bursts", format!("variance by mean in 10 ms {:.2}", summary.dispersion_10_ms));
    if let Some(cache) = &summary.cache {
        cache_rows(cache, &mut row);
    }
    lines.join("\n") + "\n"
}

/// What a cache would answer, where TTLs are known.
fn cache_rows(cache: &Simulated, row: &mut impl FnMut(&str, String)) {
    let percent = |part: u64, all: u64| format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64);
    let first = cache.minutes.first().copied().unwrap_or_default();
    let half = &cache.second_half;
    row(
        "with TTLs",
        format!(
            "{} in the first minute and {} in the second half; with {} entries {} and {}",
            percent(first.hits, first.queries),
            percent(half.hits, half.queries),
            grouped(cache.entries_limited as u64),
            percent(first.hits_limited, first.queries),
            percent(half.hits_limited, half.queries)
        ),
    );
    let queries: u64 = cache.minutes.iter().map(|minute| minute.queries).sum();
    row(
        "names",
        format!(
            "{} distinct, {} of them asked for once, and {} of those that exist; {} of the queries are for others, {} for types that names do not have",
            grouped(cache.names),
            percent(cache.names_once, cache.names),
            percent(cache.names_existing_once, cache.names_existing),
            percent(cache.missing, queries),
            percent(cache.no_data, queries)
        ),
    );
    row(
        "upstream",
        format!(
            "{:.3} queries a query in the second half, {:.2} a miss, {} of them for names that do not exist",
            cache.upstream as f64 / half.queries.max(1) as f64,
            cache.upstream as f64 / (half.queries - half.hits).max(1) as f64,
            percent(cache.upstream_missing, cache.upstream)
        ),
    );
}

/// The heights of a column.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column a number, the highest for the largest; where there is nothing, a blank.
pub fn columns(numbers: &[u64]) -> String {
    let largest = numbers.iter().copied().max().unwrap_or(0);
    let column = |&number: &u64| match number {
        0 => ' ',
        _ => BARS[((u128::from(number) * BARS.len() as u128).div_ceil(u128::from(largest)) as usize - 1).min(7)],
    };
    numbers.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_stream::cache::Minute;

    #[test]
    fn the_largest_is_the_highest() {
        assert_eq!(columns(&[0, 1, 50, 100, u64::MAX]), " ▁▁▁█");
        assert_eq!(columns(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(columns(&[0, 0]), "  ");
        assert_eq!(columns(&[]), "");
    }

    fn described() -> Summary {
        let ratio = |share, middle| HitRatio { share, lowest: 0.0, middle, highest: 1.0 };
        Summary {
            stream: Header { queries: 1_000, clients: 200, duration_ns: 99_900_000_000, ..Header::default() },
            queries_per_s: 10.01,
            busiest_second: 1_012,
            clients: Clients {
                median: 5,
                largest: 1_234,
                heaviest_1_percent: 10,
                heaviest_10_percent: 100,
                below_10: 150,
                above_100: 3,
            },
            types: vec![("A".into(), 750), ("AAAA".into(), 250)],
            transports: [(Transport::Udp, 900), (Transport::Tcp, 100), (Transport::Dot, 0)].into(),
            distinct_questions: 1_200,
            hit_ratios: vec![ratio(0.25, 0.1), ratio(0.5, 0.25), ratio(1.0, 0.5)],
            retransmissions: 5,
            edns: 500,
            dnssec_ok: 250,
            recursion_desired: 1_000,
            intervals: vec![1, 2, 4, 8, 0],
            interval_ns: 1_500_000_000,
            dispersion_10_ms: 1.234,
            ..Summary::default()
        }
    }

    const TEXT: &str = "\
1,000 queries from 200 clients in 99.900 s: 10 per second, 1,012 in the busiest second
  clients     median 5 queries, largest 1,234; the heaviest 1 % have 1.0 %, the heaviest 10 % 10.0 %; \
        75.0 % have fewer than 10, 1.5 % more than 100
  types       A 75.0 %, AAAA 25.0 %
  transports  UDP 90.0 %, TCP 10.0 %
  questions   1,200 distinct
  cache       one that forgets nothing answers 50.0 %, and 25.0 % of the queries of half of the clients
  EDNS        50.0 %, DO 25.0 %
  RD          100.0 %
  sent again  0.5 %
  over time   ▁▂▄█  (1.500 s per column)
  bursts      variance by mean in 10 ms 1.23
";

    const CACHE: &str = "  with TTLs   50.0 % in the first minute and 75.0 % in the second half; \
        with 1,000 entries 40.0 % and 25.0 %
  names       50 distinct, 50.0 % of them asked for once, and 25.0 % of those that exist; \
        10.0 % of the queries are for others, 5.0 % for types that names do not have
  upstream    0.375 queries a query in the second half, 1.50 a miss, 10.0 % of them for names that do not exist
";

    #[test]
    fn the_text_is_what_it_was() {
        assert_eq!(text(&described()), TEXT);
        let minute = |queries, hits, hits_limited| Minute { queries, hits, hits_limited };
        let cache = Simulated {
            entries_limited: 1_000,
            minutes: vec![minute(100, 50, 40), minute(100, 60, 50)],
            missing: 20,
            no_data: 10,
            second_half: minute(80, 60, 20),
            upstream: 30,
            upstream_missing: 3,
            names: 50,
            names_once: 25,
            names_existing: 40,
            names_existing_once: 10,
        };
        assert_eq!(text(&Summary { cache: Some(cache), ..described() }), format!("{TEXT}{CACHE}"));
    }

    /// Where there is nothing, nothing is divided by it.
    #[test]
    fn a_stream_without_queries_has_a_text() {
        let summary = Summary { cache: Some(Simulated::default()), ..Summary::default() };
        let text = text(&summary);
        assert!(
            text.starts_with("0 queries from 0 clients in 0.000 s: 0 per second, 0 in the busiest second\n"),
            "{text}"
        );
        assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("  cache "), "{text}");
    }
}
