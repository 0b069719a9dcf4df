//! What `transfer` reports: JSON lines to programs, text to people.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
};

use dnsrig_core::{
    clock,
    events::{self},
    failure::Failure,
    stats::{NOTHING, grouped, milliseconds},
};
use serde::Serialize;

use super::{
    arguments::TransportKind,
    counters::ConnectionCounts,
    schedule::Policy,
    summary::{QuicSummary, Summary},
    worker::Progress,
};

/// Each second's event.
#[derive(Serialize)]
struct ProgressEvent {
    done: u64,
    failed: u64,
    outstanding: u64,
    zones: u64,
    records: u64,
    bytes: u64,
    connections_open: u64,
}

#[derive(Serialize)]
struct Ready {
    port: u16,
}

/// The readers of the output.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// JSON lines on standard output.
    pub program: bool,
    /// Text on standard error.
    pub person: bool,
    /// A line that is written over and over, on a terminal.
    pub rewrites: bool,
}

impl Reporter {
    /// Finds the readers: a program reads a pipe, a person a terminal.
    pub fn find(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let rewrites = io::stderr().is_terminal();
        Reporter { program: events::are_wanted(json), person: rewrites || terminal, rewrites }
    }

    /// Reports that NOTIFY is waited for.
    pub fn ready(self, port: u16) -> Result<(), Failure> {
        if self.person {
            events::say(format!("waiting for NOTIFY on port {port}; Ctrl-C ends it\n"));
        }
        if self.program { events::emit("ready", clock::monotonic_ns(), &Ready { port }) } else { Ok(()) }
    }

    /// Reports the progress of all threads together, of `zones` in all (0: unknown).
    pub fn progress(self, progress: &Progress, zones: u64) -> Result<(), Failure> {
        let Progress { done, failed, outstanding, records, bytes, connections_open, .. } = *progress;
        if self.person {
            let of = if zones > 0 { format!(" of {}", grouped(zones)) } else { String::new() };
            let line = format!(
                "{}{of} zones done, {} failed, {} under way on {} connections; {} records, {} MB",
                grouped(done),
                grouped(failed),
                grouped(outstanding),
                grouped(connections_open),
                grouped(records),
                grouped(bytes / 1_000_000),
            );
            // Back to the beginning of the line, and what was there is erased (ECMA-48 EL).
            let (begin, end) = if self.rewrites { ("\r", "\x1b[K") } else { ("", "\n") };
            events::say(format!("{begin}{line}{end}"));
        }
        let event = ProgressEvent { done, failed, outstanding, zones, records, bytes, connections_open };
        if self.program { events::emit("progress", clock::monotonic_ns(), &event) } else { Ok(()) }
    }

    /// Reports the summary.
    pub fn summary(self, summary: &Summary, server: SocketAddr) -> Result<(), Failure> {
        if self.person {
            let begin = if self.rewrites { "\r\x1b[K" } else { "" };
            events::say(format!("{begin}{}", text(summary, server)));
        }
        if self.program { events::summary(summary.end_ns, summary) } else { Ok(()) }
    }
}

/// The summary for people.
fn text(summary: &Summary, server: SocketAddr) -> String {
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
    row("messages", format!("{}  ({messages:.1} per zone)", grouped(summary.totals.messages)));
    row("connections", connections(&summary.connections));
    row(
        "order",
        format!(
            "{} out of order, {} interleaved",
            grouped(summary.totals.out_of_order),
            grouped(summary.totals.interleaved)
        ),
    );
    if let Some(quic) = &summary.quic {
        row("QUIC", of_quic(quic));
    }
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
                format!(
                    "{} attempts, {} zones never transferred: {}",
                    grouped(*count),
                    grouped(ended),
                    advice(name, summary)
                ),
            );
        }
    }
    lines.extend(verdicts(summary).into_iter().map(|verdict| format!("  note: {verdict}")));
    lines.join("\n") + "\n"
}

fn connections(counts: &ConnectionCounts) -> String {
    format!(
        "{} begun, {} established ({} full and {} resumed TLS handshakes), {} closed by the primary, {} reset, {} refused",
        grouped(counts.attempted),
        grouped(counts.established),
        grouped(counts.full_handshakes),
        grouped(counts.resumed),
        grouped(counts.closed_by_primary),
        grouped(counts.reset),
        grouped(counts.refused)
    )
}

fn of_quic(quic: &QuicSummary) -> String {
    let congestion = format!("congestion control: {:?}", quic.congestion).to_lowercase();
    let window = format!("window: {} bytes", grouped(quic.window_bytes.into()));
    [congestion, window].into_iter().chain(quic.counts.words()).collect::<Vec<_>>().join("; ")
}

fn headline(summary: &Summary, server: SocketAddr) -> String {
    let transport = match summary.transport {
        TransportKind::Tcp => "TCP",
        TransportKind::Xot => "TLS",
        TransportKind::Xoq => "QUIC",
    };
    let policy = match summary.policy {
        Policy::One => "a connection for each zone".to_owned(),
        Policy::Reused => "reused connections".to_owned(),
        Policy::Pipelined if summary.window == 0 => "pipelined without a window".to_owned(),
        Policy::Pipelined => format!("pipelined, {} at a time", grouped(summary.window.into())),
    };
    let seconds = (summary.elapsed_ns as f64 / 1e6).round() / 1e3;
    let interrupted = if summary.interrupted { ", then interrupted" } else { "" };
    format!(
        "{server} over {transport}, {policy}: {} zones per second for {seconds} s{interrupted}",
        grouped(summary.zones_per_s as u64)
    )
}

/// What an outcome means, and what to do about it. The words depend on what else was counted.
fn advice(outcome: &str, summary: &Summary) -> String {
    let sentence = match outcome {
        "servfail" => {
            "the primary reached its limit of transfers at a time (BIND: transfers-out), or has not loaded the zone: lower \
             --window, or raise the limit"
        }
        "refused" => {
            "the primary does not allow the transfer to this address, or without a key: see allow-transfer and --tsig"
        }
        "notauth" => "the primary does not serve the zone, or does not know the key of --tsig",
        "formerr" | "notimp" | "other-rcode" => "the primary does not support this kind of query",
        "closed" => {
            "the primary closed the connection or the stream before it answered: see its limits of connections and queries"
        }
        "cut" => "the primary closed the connection or the stream in the middle of the zone",
        "reset" => "the connection or the stream was reset: see the primary's log and limits",
        "no-connection" => return no_connection(&summary.connections).to_owned(),
        "tls-failed" => {
            let fault = summary.tls_sentence.unwrap_or("see the primary's log");
            return format!("the connection was made, but TLS failed on it: {fault}");
        }
        "abandoned" => "this side closed the connection, because another transfer on it did not end",
        "timed-out" => return timed_out(summary.totals.unmatched),
        "stalled" => {
            "the zone began (for IXFR, perhaps with the SOA record alone), and then nothing came within --timeout"
        }
        "no-progress" => "messages or parts of a message came, but no record within --timeout: see the primary's log",
        "too-long" => "records came until --time-max was over: the zone has no end, or --time-max is too short",
        "soa-missing" => "the answer does not begin with the SOA record of the zone",
        "soa-different" => {
            "the answer ends with another SOA record than it begins with, or its serials do not form a chain"
        }
        "out-of-zone" => {
            "a record is outside the zone: BIND, Knot and NSD skip it and accept the zone, which counts as wrong here"
        }
        "wrong-class" => "a record has another class than IN",
        "serial-backwards" => "the primary's serial is older than --ixfr, or a change leads to an older serial",
        "bad-message" => "a message cannot be read: bytes are missing, or too many",
        "no-header" => "a message was shorter than a header, such as one of length 0",
        "not-a-response" => "a message was not a response to a query",
        "tc-set" => "a response was marked as truncated (TC), which is never needed over TCP",
        "behind-the-end" => "records came after the SOA record that ends the zone",
        "compression-loop" => "a name is compressed with a pointer that does not point backwards",
        "wrong-question" => "the answer contains another question than the query, or none",
        "tsig-missing" => "a message that must be signed was not, or too many messages in a row were not",
        "tsig-wrong" => "a signature does not match: the key, the secret or the clock differs from the primary's",
        "tsig-error" => {
            "the primary does not accept the signature: the key, the secret or the clock differs from its own"
        }
        "limit-exceeded" => "the zone is larger than --bytes-max or --records-max or, with --zonemd, than 4 GB",
        "wrong-count" => "the number of records in the zone differs from --expect-records",
        "zonemd-missing" => "the zone has no ZONEMD record of a kind that can be checked",
        "zonemd-wrong" => "the zone does not match its ZONEMD record",
        "not-written" => "a file could not be written: check --write and the free space (df)",
        other => other,
    };
    sentence.to_owned()
}

fn no_connection(connections: &ConnectionCounts) -> &'static str {
    match connections {
        ConnectionCounts { no_port: 1.., .. } => "this host had no port left",
        ConnectionCounts { refused: 1.., .. } => {
            "nothing listens there: check that the primary is running, and its port"
        }
        _ => "no connection was made within --timeout: check that the primary is running, and its port",
    }
}

fn timed_out(unmatched: u64) -> String {
    match unmatched {
        0 => "nothing came within --timeout: see the primary's log, or raise --timeout".into(),
        _ => format!(
            "no answer came within --timeout, only {} messages with ids that no transfer waited for",
            grouped(unmatched)
        ),
    }
}

/// What a reader must know before the numbers are used.
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
        found.push(
            "this host ran out of ports: use --close rst, several --source addresses, or another --policy than one"
                .into(),
        );
    }
    if summary.totals.unmatched > 0 {
        found.push(format!("{} messages had ids that no transfer was waiting for", grouped(summary.totals.unmatched)));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dnsrig_dns::xfr::Outcome;

    use super::*;
    use crate::transfer::{counters::Totals, summary::Took};

    fn report_of(summary: &Summary) -> String {
        text(summary, "127.0.0.1:5300".parse().unwrap())
    }

    #[test]
    fn each_failure_is_reported_with_what_to_do() {
        let outcomes: BTreeMap<_, _> = Outcome::ALL.iter().map(|outcome| (outcome.word(), 3)).collect();
        let text = report_of(&Summary { attempt_outcomes: outcomes, ..Summary::default() });
        for outcome in Outcome::ALL.into_iter().filter(|outcome| !outcome.is_good()) {
            assert!(text.contains(&format!("\n  {:<24}3 attempts", outcome.word())), "{outcome} in {text}");
            assert!(!text.contains(&format!(": {}\n", outcome.word())), "{outcome} has a sentence");
        }
        assert!(text.contains("transfers-out"));
    }

    #[test]
    fn no_sentence_contradicts_what_was_counted() {
        let of = |outcome: &'static str, summary: Summary| {
            report_of(&Summary { attempt_outcomes: BTreeMap::from([(outcome, 1)]), ..summary })
        };
        let unmatched = Summary { totals: Totals { unmatched: 5, ..Totals::default() }, ..Summary::default() };
        assert!(!of("timed-out", unmatched).contains("nothing came"));
        assert!(of("timed-out", Summary::default()).contains("nothing came"));
        assert!(!of("stalled", Summary::default()).contains(": nothing came"));
        let alpn = Summary { tls_sentence: Some("no `dot`"), ..Summary::default() };
        let text = of("tls-failed", alpn);
        assert!(text.contains("TLS failed on it: no `dot`") && !text.contains("nobody"), "{text}");
        let connections = |refused, no_port| Summary {
            connections: ConnectionCounts { refused, no_port, ..ConnectionCounts::default() },
            ..Summary::default()
        };
        assert!(of("no-connection", connections(1, 0)).contains("nothing listens there"));
        assert!(of("no-connection", connections(0, 1)).contains("no port left"));
        assert!(!of("no-connection", connections(0, 0)).contains("nothing listens"));
    }

    #[test]
    fn a_good_run_has_no_notes() {
        let summary = Summary { done: 3, elapsed_ns: 1, ..Summary::default() };
        assert!(!report_of(&summary).contains("note"), "{}", report_of(&summary));
    }

    #[test]
    fn the_summary_for_people_has_every_count_in_its_place() {
        let connections = ConnectionCounts {
            attempted: 1_001,
            established: 2,
            full_handshakes: 3,
            resumed: 4,
            closed_by_primary: 5,
            reset: 6,
            refused: 7,
            ..ConnectionCounts::default()
        };
        let totals = Totals {
            records: 30_000,
            messages: 2_406,
            bytes: 3_000_000,
            out_of_order: 8,
            interleaved: 9,
            ..Totals::default()
        };
        let took =
            Took { mean: 0.0, min: 1_000_000, p50: 2_000_000, p90: 30_000_000, p99: 400_000_000, max: 5_000_000_000 };
        let summary = Summary {
            policy: Policy::One,
            done: 1_200,
            up_to_date: 3,
            failed: 4,
            unfinished: 5,
            elapsed_ns: 2_500_400_000,
            zones_per_s: 481.9,
            records_per_s: 12_345.6,
            bytes_per_s: 1_234_567.0,
            transfer_ns: took,
            interrupted: true,
            totals,
            connections,
            ..Summary::default()
        };
        let expected = [
            "127.0.0.1:5300 over TCP, a connection for each zone: 481 zones per second for 2.5 s, then interrupted",
            "  zones                   1,200 done, 3 up to date, 4 failed, 5 not finished",
            "  records                 30,000  (12,345/s)",
            "  bytes                   3,000,000  (1.2 MB/s)",
            "  messages                2,406  (2.0 per zone)",
            "  connections             1,001 begun, 2 established (3 full and 4 resumed TLS handshakes), 5 closed by \
             the primary, 6 reset, 7 refused",
            "  order                   8 out of order, 9 interleaved",
            "                                  min         p50         p90         p99         max",
            "  a transfer took             1.00 ms     2.00 ms     30.0 ms      400 ms     5000 ms",
        ];
        assert_eq!(report_of(&summary), expected.join("\n") + "\n");
        let nothing = report_of(&Summary::default());
        assert!(
            nothing
                .ends_with("  a transfer took                   –           –           –           –           –\n")
        );
    }

    #[test]
    fn the_first_line_has_the_transport_and_the_use_of_connections() {
        for (transport, policy, window, expected) in [
            (TransportKind::Tcp, Policy::Reused, 5, "over TCP, reused connections: "),
            (TransportKind::Xot, Policy::Pipelined, 0, "over TLS, pipelined without a window: "),
            (TransportKind::Xoq, Policy::Pipelined, 1_000, "over QUIC, pipelined, 1,000 at a time: "),
        ] {
            let text = report_of(&Summary { transport, policy, window, ..Summary::default() });
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_note_reports_what_a_reader_must_know() {
        let connections = ConnectionCounts { no_port: 1, ..ConnectionCounts::default() };
        let totals = Totals { unmatched: 1, ..Totals::default() };
        let failed = BTreeMap::from([("tls-failed", 1)]);
        for (summary, expected) in [
            (Summary { busy_share: 0.98, ..Summary::default() }, None),
            (Summary { busy_share: 0.99, ..Summary::default() }, Some("had no idle time")),
            (Summary { rows_lost: 1, ..Summary::default() }, Some("1 rows were lost")),
            (Summary { connections, ..Summary::default() }, Some("ran out of ports")),
            (Summary { totals, ..Summary::default() }, Some("1 messages had ids")),
            (
                Summary { tls_sentence: Some("no pin"), ..Summary::default() },
                Some("TLS failed on a connection: no pin"),
            ),
            (Summary { tls_sentence: Some("no pin"), attempt_outcomes: failed, ..Summary::default() }, None),
        ] {
            let notes = verdicts(&summary);
            assert_eq!(notes.len(), usize::from(expected.is_some()), "{notes:?}");
            assert!(notes.iter().all(|note| note.contains(expected.unwrap())), "{notes:?}");
        }
    }
}
