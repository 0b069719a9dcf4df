//! What `transfer` says to people at the end.

use std::net::SocketAddr;

use super::{arguments::TransportKind, counters::Connections, schedule::Policy, summary::Summary};
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
            row(
                name,
                format!("{} attempts, {} zones for good: {}", grouped(*count), grouped(ended), advice(name, summary)),
            );
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

/// What an outcome means, and what to do about it. What was seen besides decides the words.
fn advice(outcome: &str, summary: &Summary) -> String {
    let sentence = match outcome {
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
        "no-connection" => return no_connection(&summary.connections).to_owned(),
        "tls-failed" => {
            let fault = summary.tls_sentence.unwrap_or("see the primary's log");
            return format!("the connection was there, and TLS failed on it: {fault}");
        }
        "abandoned" => "this side closed the connection, as another transfer on it did not end",
        "timed-out" => return timed_out(summary.totals.unmatched),
        "stalled" => {
            "the zone began, with an IXFR perhaps with its SOA alone, and then nothing came for as long as --timeout says"
        }
        "no-progress" => {
            "messages or parts of one came, but no record for as long as --timeout says: see the primary's log"
        }
        "too-long" => "records came for as long as --time-max says: the zone has no end, or raise it",
        "soa-missing" => "the answer does not begin with the SOA of the zone",
        "soa-different" => "the answer ends with another SOA than it begins with, or its serials make no chain",
        "out-of-zone" => {
            "a record lies outside of the zone: BIND, Knot and NSD skip it and take the zone, which is counted as wrong here"
        }
        "wrong-class" => "a record is of another class than IN",
        "serial-backwards" => "the primary's serial is older than --ixfr, or a change leads to an older serial",
        "bad-message" => "a message cannot be read: bytes are missing, or too many",
        "no-header" => "a message was shorter than a header, such as one of length 0",
        "not-a-response" => "a message was no response to a query",
        "tc-set" => "a response was marked as cut (TC), which none has to be over TCP",
        "behind-the-end" => "records came behind the SOA that ends the zone",
        "compression-loop" => "a name is compressed by a pointer that does not lead backwards",
        "wrong-question" => "the answer repeats another question than was asked, or none",
        "tsig-missing" => "a message that has to be signed was not, or too many in a row were not",
        "tsig-wrong" => "a signature does not fit: key, secret or clock differ from the primary's",
        "tsig-error" => "the primary does not take the signature: key, secret or clock differ from its own",
        "limit-exceeded" => {
            "the zone has more than --bytes-max or --records-max allow, or, with --zonemd, than fits into 4 GB"
        }
        "wrong-count" => "the zone has another number of records than --expect-records says",
        "zonemd-missing" => "the zone has no ZONEMD record of a kind that can be checked",
        "zonemd-wrong" => "what came is not what the zone's ZONEMD record says",
        "not-written" => "a file could not be written: see --write, and the room that is left (df)",
        other => other,
    };
    sentence.to_owned()
}

fn no_connection(connections: &Connections) -> &'static str {
    match connections {
        Connections { no_port: 1.., .. } => "this host had no port left",
        Connections { refused: 1.., .. } => "nothing listens there: is the primary running, and on this port?",
        _ => "no connection was made within --timeout: is the primary running, and what listens on this port?",
    }
}

fn timed_out(unmatched: u64) -> String {
    match unmatched {
        0 => "nothing came for as long as --timeout says: see the primary's log, or raise it".into(),
        _ => format!(
            "no answer came for as long as --timeout says, but {} messages with ids that nobody waited for",
            grouped(unmatched)
        ),
    }
}

/// What a reader must know before using the numbers.
fn verdicts(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(sentence) = summary.tls_sentence.filter(|_| !summary.attempt_outcomes.contains_key("tls-failed")) {
        found.push(format!("TLS failed on a connection: {sentence}"));
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
        found.push(format!(
            "{} messages had ids that no transfer waited for, or waited for no longer",
            grouped(summary.totals.unmatched)
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{dns::xfr::Outcome, transfer::counters::Totals};

    fn told(summary: &Summary) -> String {
        text(summary, "127.0.0.1:5300".parse().unwrap())
    }

    #[test]
    fn each_failure_is_told_with_what_to_do() {
        let outcomes: BTreeMap<_, _> = Outcome::ALL.iter().map(|outcome| (outcome.word(), 3)).collect();
        let text = told(&Summary { attempt_outcomes: outcomes, ..Summary::default() });
        for outcome in Outcome::ALL.into_iter().filter(|outcome| !outcome.is_good()) {
            assert!(text.contains(&format!("\n  {:<24}3 attempts", outcome.word())), "{outcome} in {text}");
            assert!(!text.contains(&format!(": {}\n", outcome.word())), "{outcome} has a sentence");
        }
        assert!(text.contains("transfers-out"));
    }

    #[test]
    fn no_sentence_contradicts_what_was_counted() {
        let of = |outcome: &'static str, summary: Summary| {
            told(&Summary { attempt_outcomes: BTreeMap::from([(outcome, 1)]), ..summary })
        };
        let unmatched = Summary { totals: Totals { unmatched: 5, ..Totals::default() }, ..Summary::default() };
        assert!(!of("timed-out", unmatched).contains("nothing came"));
        assert!(of("timed-out", Summary::default()).contains("nothing came"));
        assert!(!of("stalled", Summary::default()).contains(": nothing came"));
        let alpn = Summary { tls_sentence: Some("no `dot`"), ..Summary::default() };
        let text = of("tls-failed", alpn);
        assert!(text.contains("TLS failed on it: no `dot`") && !text.contains("nobody"), "{text}");
        let connections = |refused, no_port| Summary {
            connections: Connections { refused, no_port, ..Connections::default() },
            ..Summary::default()
        };
        assert!(of("no-connection", connections(1, 0)).contains("nothing listens there"));
        assert!(of("no-connection", connections(0, 1)).contains("no port left"));
        assert!(!of("no-connection", connections(0, 0)).contains("nothing listens"));
    }

    #[test]
    fn a_good_run_has_no_notes() {
        let summary = Summary { done: 3, elapsed_ns: 1, ..Summary::default() };
        assert!(!told(&summary).contains("note"), "{}", told(&summary));
    }
}
