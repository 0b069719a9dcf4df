//! What `transfer` says to people at the end.

use std::net::SocketAddr;

use super::{arguments::TransportKind, schedule::Policy, summary::Summary};
use crate::stats::format::{NOTHING, grouped, milliseconds};

/// The summary for people.
pub fn text(summary: &Summary, server: SocketAddr) -> String {
    let mut lines = vec![headline(summary, server)];
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<24}{text}"));
    row(
        "zones",
        format!(
            "{} done, {} up to date, {} failed, {} not finished",
            grouped(summary.done),
            grouped(summary.up_to_date),
            grouped(summary.failed),
            grouped(summary.unfinished)
        ),
    );
    row("records", format!("{}  ({}/s)", grouped(summary.totals.records), grouped(summary.records_per_s as u64)));
    row("bytes", format!("{}  ({:.1} MB/s)", grouped(summary.totals.bytes), summary.bytes_per_s / 1e6));
    let messages = summary.totals.messages as f64 / (summary.done + summary.up_to_date).max(1) as f64;
    row("messages", format!("{}  ({messages:.1} a zone)", grouped(summary.totals.messages)));
    let connections = &summary.connections;
    row(
        "connections",
        format!(
            "{} begun, {} established ({} full and {} resumed TLS handshakes), {} closed by the primary, {} reset, {} \
             refused",
            grouped(connections.attempted),
            grouped(connections.established),
            grouped(connections.full_handshakes),
            grouped(connections.resumed),
            grouped(connections.closed_by_primary),
            grouped(connections.reset),
            grouped(connections.refused)
        ),
    );
    row(
        "order",
        format!(
            "{} out of order, {} interleaved",
            grouped(summary.totals.out_of_order),
            grouped(summary.totals.interleaved)
        ),
    );
    let took = &summary.transfer_ns;
    let cells = [took.min, took.p50, took.p90, took.p99, took.max];
    row("", format!("{:>11} {:>11} {:>11} {:>11} {:>11}", "min", "p50", "p90", "p99", "max"));
    // A transfer takes some time: 0 is the most where none was done.
    let cell = |ns| if took.max == 0 { NOTHING.into() } else { milliseconds(ns, None) };
    row("a transfer took", cells.map(|ns| format!("{:>11}", cell(ns))).join(" "));
    for (name, count) in &summary.attempt_outcomes {
        if !matches!(*name, "done" | "up-to-date") {
            let ended = summary.outcomes.get(name).copied().unwrap_or(0);
            row(name, format!("{} attempts, {} zones for good: {}", grouped(*count), grouped(ended), advice(name)));
        }
    }
    lines.extend(verdicts(summary).into_iter().map(|verdict| format!("  note: {verdict}")));
    lines.join("\n") + "\n"
}

fn headline(summary: &Summary, server: SocketAddr) -> String {
    let transport = match summary.transport {
        TransportKind::Tcp => "TCP",
        TransportKind::Xot => "TLS",
    };
    let policy = match summary.policy {
        Policy::One => "a connection for each zone".to_owned(),
        Policy::Reused => "connections used again".to_owned(),
        Policy::Pipelined if summary.window == 0 => "pipelined without a window".to_owned(),
        Policy::Pipelined => format!("pipelined, {} at a time", grouped(summary.window.into())),
    };
    let seconds = (summary.elapsed_ns as f64 / 1e6).round() / 1e3;
    let interrupted = if summary.interrupted { ", then interrupted" } else { "" };
    format!(
        "{server} over {transport}, {policy}: {} zones a second for {seconds} s{interrupted}",
        grouped(summary.zones_per_s as u64)
    )
}

/// What an outcome means, and what to do about it.
fn advice(outcome: &str) -> &'static str {
    match outcome {
        "servfail" => {
            "the primary met its limit of transfers at a time (BIND: transfers-out), or has not loaded the zone: lower \
             --window or raise the limit"
        }
        "refused" => "the primary does not allow it to this address or without a key: see allow-transfer and --tsig",
        "notauth" => "the primary does not serve the zone, or does not know the key of --tsig",
        "formerr" | "notimp" | "other-rcode" => "the primary does not take this kind of query",
        "closed" => "the primary closed the connection before it answered: see its limits of connections and queries",
        "cut" => "the primary closed the connection in the middle of the zone",
        "reset" => "the connection was reset: see the primary's log and limits",
        "no-connection" => "nobody answered there: is the primary running, and on this port?",
        "timed-out" => "nothing came for as long as --timeout says: see the primary's log, or raise it",
        "no-progress" => "messages or parts of one came, but no record for as long as --timeout says: see the primary's log",
        "too-long" => "records came for as long as --time-max-s says: the zone has no end, or raise it",
        "out-of-zone" => {
            "a record lies outside of the zone: BIND, Knot and NSD skip it and take the zone, which is counted as wrong here"
        }
        "wrong-class" => "a record is of another class than IN",
        "tsig-missing" | "tsig-wrong" | "tsig-error" => "key, secret or clock differ from the primary's",
        "limit-exceeded" => "the zone is larger than --bytes-max or --records-max allow",
        "wrong-count" => "the zone has another number of records than --expect-records says",
        "zonemd-missing" => "the zone has no ZONEMD record of a kind that can be checked",
        "zonemd-wrong" => "what came is not what the zone's ZONEMD record says",
        "not-written" => "a file could not be written: see --write, and the room that is left (df)",
        _ => "the answer is no zone transfer as the RFCs have it",
    }
}

/// What a reader must know before using the numbers.
fn verdicts(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(sentence) = summary.tls_sentence {
        found.push(format!("TLS failed: {sentence}"));
    }
    if summary.busy_share > 0.98 {
        found.push("the instrument had no idle time: the primary may be faster than this".into());
    }
    if summary.rows_lost > 0 {
        found.push(format!("{} rows were lost: the disk of --out is too slow", grouped(summary.rows_lost)));
    }
    if summary.connections.no_port > 0 {
        found.push("this host ran out of ports: use --close rst, several --source, or connections that stay".into());
    }
    if summary.totals.unmatched > 0 {
        found.push(format!("{} messages answered nothing that was asked", grouped(summary.totals.unmatched)));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::dns::xfr::Outcome;

    fn told(summary: &Summary) -> String {
        text(summary, "127.0.0.1:5300".parse().unwrap())
    }

    #[test]
    fn each_failure_is_told_with_what_to_do() {
        let outcomes: BTreeMap<_, _> = Outcome::ALL.iter().map(|outcome| (outcome.word(), 3)).collect();
        let text = told(&Summary { attempt_outcomes: outcomes, ..Summary::default() });
        for outcome in Outcome::ALL.into_iter().filter(|outcome| !outcome.is_good()) {
            assert!(text.contains(&format!("\n  {:<24}3 attempts", outcome.word())), "{outcome} in {text}");
        }
        assert!(text.contains("transfers-out"));
    }

    #[test]
    fn a_good_run_has_no_notes() {
        let summary = Summary { done: 3, elapsed_ns: 1, ..Summary::default() };
        assert!(!told(&summary).contains("note"), "{}", told(&summary));
    }
}
