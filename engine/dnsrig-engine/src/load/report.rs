//! What `load` reports: JSON lines for programs, text for people.

use std::{
    fs,
    io::{self, IsTerminal},
    net::SocketAddr,
    path::Path,
};

use dnsrig_core::{
    clock, events,
    failure::Failure,
    output,
    stats::{Distribution, NOTHING, grouped, latency, milliseconds, percentiles},
};
use serde::Serialize;

use super::{
    arguments::{Arguments, Plan, TransportKind},
    arrivals::Model,
    client_totals::ClassTotal,
    counts::{Connections, Losses, WrongAnswers},
    hold::{Lifetimes, Opening},
    interval_stats::Interval,
    notes::{notes, without_real_time},
    queries::Queries,
    ramp::Step,
    record,
    summary::{ClassResult, Summary},
};

/// An interval's event.
#[derive(Serialize)]
struct Progress {
    interval: u64,
    due: u64,
    sent: u64,
    answered: u64,
    wrong: u64,
    unanswered: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    lag_p99_ns: u64,
}

/// The readers of what is reported.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// JSON lines on standard output.
    pub program: bool,
    /// Text on standard error.
    pub person: bool,
    /// Latencies from this limit on are shown as "at least": queries without an answer count at it.
    pub timeout_ns: u64,
}

impl Reporter {
    /// Finds out who reads: a program reads a pipe, and a person a terminal.
    pub fn find(json: bool, timeout_ns: i64) -> Self {
        let terminal = io::stdout().is_terminal();
        let person = io::stderr().is_terminal() || terminal;
        Reporter { program: json || !terminal, person, timeout_ns: timeout_ns.unsigned_abs() }
    }

    /// Prints text for people.
    pub fn say(self, text: impl FnOnce() -> String) {
        if self.person {
            events::say(text());
        }
    }

    /// Reports an interval.
    pub fn interval(self, interval: &Interval, interval_s: f64) -> Result<(), Failure> {
        let (counts, series) = (&interval.counts, &interval.series);
        let [p50_ns, p99_ns] = percentiles(&series.due, [5_000, 9_900]);
        let [lag_p99_ns] = percentiles(&series.lag, [9_900]);
        let progress = Progress {
            interval: interval.number,
            due: counts.due,
            sent: counts.sent,
            answered: counts.answered,
            wrong: counts.wrong.total(),
            unanswered: counts.unanswered(),
            p50_ns,
            p99_ns,
            max_ns: series.due.max(),
            lag_p99_ns,
        };
        if self.person && interval_s >= 0.5 {
            events::say(format!(
                "{:>7.1} s  sent {:>9}  answered {:>9}  p50 {:>9}  p99 {:>9}  max {:>9}\n",
                interval.number as f64 * interval_s,
                grouped(progress.sent),
                grouped(progress.answered),
                latency(progress.p50_ns, Some(self.timeout_ns)),
                latency(progress.p99_ns, Some(self.timeout_ns)),
                latency(progress.max_ns, Some(self.timeout_ns)),
            ));
        }
        if self.program { events::emit("progress", clock::monotonic_ns(), &progress) } else { Ok(()) }
    }

    /// Reports that connections are open.
    pub fn opened(self, opening: &Opening) -> Result<(), Failure> {
        if self.person {
            events::say(format!("opened in {:.1} s: {}\n", opening.duration_s, opened(opening)));
        }
        if self.program { events::emit("opened", clock::monotonic_ns(), opening) } else { Ok(()) }
    }

    /// Reports a rate of a ramp.
    pub fn step(self, step: &Step) -> Result<(), Failure> {
        if self.person {
            let verdict = if step.instrument_failed {
                "the instrument cannot send faster"
            } else if step.holds {
                "holds"
            } else if step.holds_but_for_loss {
                "holds but for the loss"
            } else {
                "does not hold"
            };
            events::say(format!(
                "{:>9} queries/s  answered {:>9}/s  lost {:>7.3} %  p50 {:>9}  p99 {:>9}  {verdict}\n",
                grouped(step.rate_qps as u64),
                grouped(step.answered_qps as u64),
                step.loss_share * 100.0,
                latency(step.p50_ns, Some(self.timeout_ns)),
                latency(step.p99_ns, Some(self.timeout_ns)),
            ));
        }
        if self.program { events::emit("step", clock::monotonic_ns(), step) } else { Ok(()) }
    }

    /// Reports the summary, and writes it to a file if there is a folder for it.
    pub fn summary(self, summary: &Summary, server: SocketAddr, folder: Option<&Path>) -> Result<(), Failure> {
        if self.person {
            events::say(text(summary, server));
        } else if let Some(why) = summary.real_time_missing {
            events::say(format!("note: {}\n", without_real_time(why)));
        }
        let line = events::summary_line(clock::monotonic_ns(), summary)?;
        if let Some(path) = folder.map(|folder| folder.join(record::SUMMARY)) {
            fs::write(&path, &line).map_err(|error| output::unwritten(&path, &error))?;
        }
        if self.program {
            events::say_last(line)?;
        }
        Ok(())
    }
}

/// The text for people before the load.
pub fn opening(arguments: &Arguments, plan: Plan, queries: &Queries) -> String {
    let server = arguments.server();
    let way = way(arguments.transport, (!queries.are_complete()).then_some(arguments.queries.recursion_desired));
    let duration = match plan {
        Plan::Once(model) => arguments.sending_time(model, queries.len()),
        Plan::Ramp(..) => arguments.duration,
    };
    let duration_s = duration.as_secs_f64();
    match plan {
        Plan::Once(model) => {
            let load = match model {
                Model::Rate { qps, .. } => format!("{} queries per second", grouped(qps as u64)),
                Model::Outstanding(count) => format!("{} queries outstanding", grouped(count as u64)),
                Model::Captured { qps } => format!("a stream of {} queries per second", grouped(qps as u64)),
            };
            format!(
                "{server} {way}: {load} for {duration_s} s; Ctrl-C ends it early\n\
                 A line appears for each interval when all its queries are answered or, after {} s, given up:\n",
                arguments.timeout.as_secs_f64()
            )
        }
        Plan::Ramp(limits, settings) => format!(
            "{server} {way}: searching for the highest rate that holds: at most {} % of the queries unanswered, and \
             {} % of them answered within {} ms\nEach rate is tried for {duration_s} s{}; Ctrl-C ends it early\n",
            limits.loss_share * 100.0,
            limits.percentile,
            limits.latency_ns as f64 / 1e6,
            if settings.repeats > 1 {
                format!(", at most {} times, and the majority decides", settings.repeats)
            } else {
                String::new()
            },
        ),
    }
}

/// The text for people after the load.
pub fn text(summary: &Summary, server: SocketAddr) -> String {
    let mut lines = vec![String::new(), headline(summary, server)];
    let share = |count: u64| format!("{:.4} %", 100.0 * count as f64 / summary.sent.max(1) as f64);
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<24}{text}"));
    if summary.model != "ramp" {
        let codes: Vec<_> = summary.rcodes.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
        let codes = if codes.is_empty() { String::new() } else { format!("  ({})", codes.join(", ")) };
        row("answered", format!("{}  {}{codes}", grouped(summary.answered), share(summary.answered)));
        let wrong = summary.wrong.total();
        if wrong > 0 {
            row("wrong answers", format!("{}  {}  ({})", grouped(wrong), share(wrong), wrong_kinds(&summary.wrong)));
            for example in &summary.wrong_examples {
                row("", example.text());
            }
        }
        let unanswered = summary.timeouts + summary.lost.total();
        let limit_s = summary.timeout_ns as f64 / 1e9;
        row(
            "unanswered",
            format!(
                "{}  {}  (timeouts after {limit_s} s: {}{})",
                grouped(unanswered),
                share(unanswered),
                grouped(summary.timeouts),
                losses(summary)
            ),
        );
        for (name, count) in oddities(summary) {
            row(name, grouped(count));
        }
        if !summary.http_faults.is_empty() {
            let kinds = summary.http_faults.iter().map(|(name, count)| format!("{name}: {}", grouped(*count)));
            row("HTTP", kinds.collect::<Vec<_>>().join("; "));
        }
        if let Some(held) = &summary.held {
            row("opening", opened(&held.opening));
        }
        if summary.connections.attempted > 0 {
            row("connections", connections(&summary.connections));
            let control =
                summary.congestion.map(|congestion| format!("congestion control: {congestion:?}").to_lowercase());
            for words in control.into_iter().chain(summary.connections.quic.words()) {
                row("QUIC", words);
            }
        }
        if let Some(Lifetimes { count, min_s, p50_s, p99_s, max_s, .. }) = summary.lifetimes {
            let times = format!("after {min_s:.1} s at least, median {p50_s:.1} s, p99 {p99_s:.1} s, max {max_s:.1} s");
            row("ended by the server", format!("{} that were open: {times}", grouped(count)));
        }
        row("this program", format!("{:.0} % busy{}", 100.0 * summary.busy_share, dropped(summary)));
        for (number, class) in (0..).zip(&summary.classes) {
            row(&class_name(number, class), class_text(class, summary.timeout_ns.unsigned_abs()));
        }
        row("", format!("{:>11} {:>11} {:>11} {:>11} {:>11}", "p50", "p99", "p99.9", "p99.99", "max"));
        for (name, times) in [
            ("latency, from due", Some(&summary.latency_ns)),
            ("latency, from sent", Some(&summary.sent_latency_ns)),
            ("latency, lower end", Some(&summary.lower_latency_ns)),
            ("sent late by", Some(&summary.lag_ns)),
            ("connecting", summary.handshake_ns.as_ref()),
        ] {
            let Some(times) = times else { continue };
            let limit_ns = name.starts_with("latency").then_some(summary.timeout_ns.unsigned_abs());
            let cells = [times.p50, times.p99, times.p99_9, times.p99_99, times.max];
            row(name, cells.map(|ns| format!("{:>11}", measured(times, ns, limit_ns))).join(" "));
        }
    }
    lines.extend(notes(summary).into_iter().map(|note| format!("  note: {note}")));
    lines.join("\n") + "\n"
}

/// A time of a distribution, or a dash if the distribution is empty: 0.000 ms would be the best of all times.
fn measured(times: &Distribution, time_ns: u64, limit_ns: Option<u64>) -> String {
    if times.count == 0 { NOTHING.into() } else { milliseconds(time_ns, limit_ns) }
}

/// What this program itself lost.
fn dropped(summary: &Summary) -> String {
    match summary.datagrams_dropped {
        0 if summary.transport == TransportKind::Udp => ", and no datagram was dropped at its sockets".into(),
        0 => String::new(),
        count => format!(", and {} datagrams were dropped at its sockets", grouped(count)),
    }
}

fn wrong_kinds(wrong: &WrongAnswers) -> String {
    let WrongAnswers { rcode, empty, rrset, truncated, damaged } = *wrong;
    let kinds = [
        ("another rcode", rcode),
        ("no record of the type", empty),
        ("other records", rrset),
        ("truncated", truncated),
        ("unreadable records", damaged),
    ];
    let kinds = kinds.into_iter().filter(|(_, count)| *count > 0);
    kinds.map(|(name, count)| format!("{name} {}", grouped(count))).collect::<Vec<_>>().join(", ")
}

fn connections(counts: &Connections) -> String {
    let Connections { attempted, established, handshakes, resumed, failed, early_accepted, early_rejected, .. } =
        *counts;
    let mut text = format!("{} begun, {} established", grouped(attempted), grouped(established));
    if handshakes > 0 {
        let (full, resumed) = (grouped(handshakes - resumed), grouped(resumed));
        text += &format!(" ({full} full TLS handshakes, {resumed} resumed)");
    }
    text += &format!(", {} failed", grouped(failed));
    let Losses { closed, reset, refused, .. } = counts.ended;
    for (name, count) in [("refused", refused), ("closed by the server", closed), ("reset by the server", reset)] {
        if count > 0 {
            text += &format!(", {} {name}", grouped(count));
        }
    }
    if counts.went_away > 0 {
        text += &format!(", {} left because the server asked for it (GOAWAY)", grouped(counts.went_away));
    }
    if early_accepted + early_rejected > 0 {
        let (accepted, rejected) = (grouped(early_accepted), grouped(early_rejected));
        text += &format!("; early data: {accepted} queries accepted, {rejected} rejected and sent again");
    }
    text
}

/// What became of the opening, and what it took.
fn opened(opening: &Opening) -> String {
    let Opening { sent, answered, connections, .. } = opening;
    let mut text = format!("{} of {} connections open", grouped(connections.open), grouped(connections.attempted));
    if *sent > 0 {
        text += &format!(", {} of {} queries answered", grouped(*answered), grouped(*sent));
    }
    if let Some(times) = &opening.handshake_ns {
        let [p50, p99] = [times.p50, times.p99].map(|time_ns| milliseconds(time_ns, None));
        text += &format!("; connecting p50 {p50}, p99 {p99}");
    }
    if let Some(bytes) = opening.memory_per_connection_bytes {
        text += &format!("; memory of this process {:.1} kB a connection", bytes / 1e3);
    }
    text
}

fn class_name(number: usize, class: &ClassResult) -> String {
    let percent = class.asked.map_or(0.0, |asked| (asked.share * 1e6).round() / 1e4);
    let name = if number == 0 { "other clients".into() } else { format!("class {number}") };
    format!("{name}, {percent} %")
}

fn class_text(class: &ClassResult, limit_ns: u64) -> String {
    let ClassTotal { clients, answered, unanswered, latency_ns, .. } = class.seen;
    let latency = |ns| measured(&latency_ns, ns, Some(limit_ns));
    let mut text = format!(
        "{} clients, {} queries answered, {} not; p50 {}, p99 {}",
        grouped(clients),
        grouped(answered),
        grouped(unanswered),
        latency(latency_ns.p50),
        latency(latency_ns.p99)
    );
    if class.connections.attempted > 0 {
        text += &format!("; connections: {}", connections(&class.connections));
    }
    text
}

fn headline(summary: &Summary, server: SocketAddr) -> String {
    let way = way(summary.transport, summary.recursion_desired);
    let answered_qps = summary.answered as f64 / summary.duration_s;
    let duration = format!("{} s", (summary.duration_s * 1e3).round() / 1e3);
    let duration = if summary.interrupted { format!("{duration}, then interrupted") } else { duration };
    if let Some(replayed) = &summary.replayed {
        let (queries, clients) = (grouped(replayed.stream.queries), grouped(replayed.stream.clients));
        return format!("{server}: {queries} queries of {clients} clients in {duration}");
    }
    match (summary.asked_qps, summary.outstanding, summary.capacity_qps) {
        (Some(qps), ..) => {
            format!("{server} {way}: {} queries per second for {duration}", grouped(qps as u64))
        }
        (_, Some(count), _) => format!(
            "{server} {way}: {} queries outstanding for {duration}: {} answers per second",
            grouped(count as u64),
            grouped(answered_qps as u64)
        ),
        (_, _, Some(qps)) => {
            let bound = if summary.capacity_is_lower_bound { "at least " } else { "" };
            format!("{server} {way}: holds {bound}{} queries per second", grouped(qps as u64))
        }
        _ if summary.interrupted => format!("{server} {way}: interrupted before any rate was known to hold"),
        _ => format!("{server} {way}: no rate held: try a lower --ramp-start, and check that the server is running"),
    }
}

fn losses(summary: &Summary) -> String {
    let Losses { closed, reset, refused, tls, http } = summary.lost;
    let kinds = [("closed", closed), ("reset", reset), ("refused", refused), ("TLS", tls), ("HTTP", http)];
    let shown: Vec<_> =
        kinds.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("; {name}: {count}")).collect();
    shown.concat()
}

fn oddities(summary: &Summary) -> Vec<(&'static str, u64)> {
    let unmatched = summary.unmatched;
    let (repeated, too_long) = summary
        .replayed
        .as_ref()
        .map_or((0, 0), |replayed| (replayed.retransmissions_skipped, replayed.too_long_skipped));
    [
        ("retransmissions left out", repeated),
        ("too long to be sent", too_long),
        ("truncated", summary.truncated),
        ("without expectation", summary.unlisted),
        ("came too late", unmatched.late),
        ("answered twice", unmatched.duplicates),
        ("unknown id", unmatched.unexpected),
        ("other question", unmatched.mismatched),
        ("malformed", unmatched.malformed),
        ("too short for records", unmatched.incomplete),
        ("never sent", summary.unsent),
        ("ICMP unreachable", summary.unreachable),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

/// How queries go to the server. Whether RD is set decides what a resolver does with them.
fn way(transport: TransportKind, recursion_desired: Option<bool>) -> String {
    let flag = match recursion_desired {
        Some(true) => ", RD set",
        Some(false) => ", RD not set",
        None => "",
    };
    format!("over {}{flag}", transport_name(transport))
}

fn transport_name(transport: TransportKind) -> &'static str {
    match transport {
        TransportKind::Udp => "UDP",
        TransportKind::Tcp => "TCP",
        TransportKind::Dot => "TLS",
        TransportKind::Doh => "HTTPS",
        TransportKind::Doq => "QUIC",
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_net::quic::Congestion;

    use super::*;
    use crate::load::counts::UnmatchedResponses;

    #[test]
    fn times_read_well() {
        let cells = [410_000, 4_100_000, 41_000_000, 410_000_000].map(|ns| milliseconds(ns, None));
        assert_eq!(cells, ["0.410 ms", "4.10 ms", "41.0 ms", "410 ms"]);
        assert_eq!(milliseconds(1_000_341_503, Some(1_000_000_000)), "≥ 1000 ms");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    fn text_of(summary: &Summary) -> String {
        text(summary, "127.0.0.1:5300".parse().unwrap())
    }

    fn of_a_rate() -> Summary {
        Summary { model: "rate", asked_qps: Some(1_000.0), duration_s: 1.0, sent: 1_000, ..Summary::default() }
    }

    /// A summary in which every line has something.
    fn of_much() -> Summary {
        let times = Distribution {
            count: 1,
            p50: 410_000,
            p99: 4_100_000,
            p99_9: 41_000_000,
            p99_99: 410_000_000,
            max: 1_000_000_000,
            ..Distribution::default()
        };
        Summary {
            model: "rate",
            asked_qps: Some(1_000.0),
            recursion_desired: Some(false),
            duration_s: 1.2344,
            timeout_ns: 1_000_000_000,
            sent: 10_000,
            answered: 9_000,
            rcodes: [("NOERROR", 8_990), ("NXDOMAIN", 10)].into(),
            wrong: WrongAnswers { rcode: 1, empty: 2, rrset: 3, truncated: 4, damaged: 5 },
            timeouts: 900,
            lost: Losses { closed: 1, reset: 2, refused: 3, tls: 4, http: 5 },
            truncated: 1,
            unlisted: 2,
            unmatched: UnmatchedResponses {
                late: 3,
                duplicates: 4,
                unexpected: 5,
                mismatched: 6,
                malformed: 7,
                incomplete: 8,
            },
            unsent: 9,
            unreachable: 10,
            http_faults: [("status 404".to_owned(), 4), ("wrong type".to_owned(), 1_000)].into(),
            connections: Connections {
                attempted: 1_234,
                established: 1_200,
                handshakes: 1_000,
                resumed: 400,
                failed: 34,
                early_accepted: 5,
                early_rejected: 1,
                went_away: 2,
                ended: Losses { closed: 7, reset: 8, refused: 9, ..Losses::default() },
                ..Connections::default()
            },
            congestion: Some(Congestion::Bbr),
            lifetimes: Some(Lifetimes { count: 3, min_s: 0.5, p50_s: 1.0, p90_s: 1.5, p99_s: 2.0, max_s: 2.5 }),
            busy_share: 0.123,
            latency_ns: times,
            lag_ns: times,
            handshake_ns: Some(times),
            ..Summary::default()
        }
    }

    #[test]
    fn the_text_is_what_it_was() {
        let expected = "
127.0.0.1:5300 over UDP, RD not set: 1,000 queries per second for 1.234 s
  answered                9,000  90.0000 %  (NOERROR 8,990, NXDOMAIN 10)
  wrong answers           15  0.1500 %  (another rcode 1, no record of the type 2, other records 3, truncated 4, \
        unreadable records 5)
  unanswered              915  9.1500 %  (timeouts after 1 s: 900; closed: 1; reset: 2; refused: 3; TLS: 4; HTTP: 5)
  truncated               1
  without expectation     2
  came too late           3
  answered twice          4
  unknown id              5
  other question          6
  malformed               7
  too short for records   8
  never sent              9
  ICMP unreachable        10
  HTTP                    status 404: 4; wrong type: 1,000
  connections             1,234 begun, 1,200 established (600 full TLS handshakes, 400 resumed), 34 failed, \
        9 refused, 7 closed by the server, 8 reset by the server, 2 left because the server asked for it (GOAWAY); \
        early data: 5 queries accepted, 1 rejected and sent again
  QUIC                    congestion control: bbr
  ended by the server     3 that were open: after 0.5 s at least, median 1.0 s, p99 2.0 s, max 2.5 s
  this program            12 % busy, and no datagram was dropped at its sockets
                                  p50         p99       p99.9      p99.99         max
  latency, from due          0.410 ms     4.10 ms     41.0 ms      410 ms   ≥ 1000 ms
  latency, from sent                –           –           –           –           –
  latency, lower end                –           –           –           –           –
  sent late by               0.410 ms     4.10 ms     41.0 ms      410 ms     1000 ms
  connecting                 0.410 ms     4.10 ms     41.0 ms      410 ms     1000 ms";
        let text = text_of(&of_much());
        assert_eq!(text.split("\n  note: ").next().unwrap(), expected);
    }

    /// What did not happen has no line.
    #[test]
    fn the_shortest_text_is_what_it_was() {
        let summary = Summary { answered: 1_000, clients: 16, sending_ns: 1, ..of_a_rate() };
        let dashes = "           –".repeat(5);
        let expected = format!(
            "
127.0.0.1:5300 over UDP: 1,000 queries per second for 1 s
  answered                1,000  100.0000 %
  unanswered              0  0.0000 %  (timeouts after 0 s: 0)
  this program            0 % busy, and no datagram was dropped at its sockets
                                  p50         p99       p99.9      p99.99         max
  latency, from due      {dashes}
  latency, from sent     {dashes}
  latency, lower end     {dashes}
  sent late by           {dashes}
"
        );
        assert_eq!(text_of(&summary), expected);
        assert_eq!(text_of(&Summary { sent: 0, answered: 0, ..summary }).matches("0.0000 %").count(), 2);
    }

    #[test]
    fn the_first_line_has_what_was_asked_for_and_what_came_of_it() {
        let ramp = || Summary { model: "ramp", duration_s: 2.0, ..Summary::default() };
        let way = "127.0.0.1:5300 over UDP";
        for (summary, line) in [
            (
                Summary { outstanding: Some(1_600), answered: 9_001, model: "closed", ..ramp() },
                format!("{way}: 1,600 queries outstanding for 2 s: 4,500 answers per second"),
            ),
            (
                Summary { outstanding: Some(1), interrupted: true, model: "closed", ..ramp() },
                format!("{way}: 1 queries outstanding for 2 s, then interrupted: 0 answers per second"),
            ),
            (Summary { capacity_qps: Some(1_234.0), ..ramp() }, format!("{way}: holds 1,234 queries per second")),
            (
                Summary { capacity_qps: Some(5.0), capacity_is_lower_bound: true, ..ramp() },
                format!("{way}: holds at least 5 queries per second"),
            ),
            (Summary { interrupted: true, ..ramp() }, format!("{way}: interrupted before any rate was known to hold")),
            (ramp(), format!("{way}: no rate held: try a lower --ramp-start, and check that the server is running")),
        ] {
            assert_eq!(text_of(&summary).lines().nth(1), Some(&line[..]));
        }
        for (transport, name) in [
            (TransportKind::Udp, "UDP"),
            (TransportKind::Tcp, "TCP"),
            (TransportKind::Dot, "TLS"),
            (TransportKind::Doh, "HTTPS"),
            (TransportKind::Doq, "QUIC"),
        ] {
            let line = format!("127.0.0.1:5300 over {name}: no rate held");
            assert!(text_of(&Summary { transport, ..ramp() }).contains(&line), "{line}");
        }
    }

    #[test]
    fn what_became_of_the_opening_is_shown() {
        let opening = |sent, memory_per_connection_bytes, handshake_ns| Opening {
            asked_per_s: 10.0,
            start_ns: 0,
            duration_s: 1.0,
            sent,
            answered: 1_999,
            timeouts: 0,
            lost: Losses::default(),
            connections: Connections { attempted: 2_000, open: 1_000, ..Connections::default() },
            latency_ns: Distribution::default(),
            handshake_ns,
            memory_bytes: 0,
            memory_per_connection_bytes,
        };
        let times = Distribution { p50: 1_500_000, p99: 20_000_000, ..Distribution::default() };
        for (opening, expected) in [
            (opening(0, None, None), "1,000 of 2,000 connections open"),
            (opening(1, None, None), "1,000 of 2,000 connections open, 1,999 of 1 queries answered"),
            (
                opening(0, Some(12_340.0), Some(times)),
                "1,000 of 2,000 connections open; connecting p50 1.50 ms, p99 20.0 ms; \
                 memory of this process 12.3 kB a connection",
            ),
        ] {
            assert_eq!(opened(&opening), expected);
        }
    }

    #[test]
    fn the_first_line_shows_whether_recursion_is_asked_for() {
        for (recursion_desired, way) in
            [(Some(false), "over UDP, RD not set: "), (Some(true), "over UDP, RD set: "), (None, "over UDP: ")]
        {
            let shown = text_of(&Summary { recursion_desired, ..of_a_rate() });
            assert!(shown.trim_start().starts_with(&format!("127.0.0.1:5300 {way}")), "{shown}");
        }
    }

    #[test]
    fn where_nothing_was_measured_there_is_no_time() {
        let failed = Summary { handshake_ns: Some(Distribution::default()), unsent: 1_000, sent: 0, ..of_a_rate() };
        assert!(
            !text_of(&failed).contains("0.000 ms") && text_of(&failed).contains("connecting"),
            "{}",
            text_of(&failed)
        );
        let quick = Distribution { count: 1, ..Distribution::default() };
        assert!(text_of(&Summary { latency_ns: quick, ..failed }).contains("0.000 ms"));
    }

    #[test]
    fn where_nothing_was_asked_there_is_no_latency() {
        let shown = text_of(&Summary {
            sent: 0,
            classes: vec![ClassResult::new(ClassTotal::default(), Connections::default())],
            ..of_a_rate()
        });
        let lines: Vec<_> = shown.lines().filter(|line| line.contains("0.000 ms")).collect();
        assert!(lines.iter().all(|line| line.trim_start().starts_with("sent late by")), "{shown}");
        assert!(shown.contains("p50 –, p99 –"), "{shown}");
    }

    #[test]
    fn what_this_program_itself_lost_is_shown() {
        let shown = text_of(&Summary { busy_share: 0.123, ..of_a_rate() });
        assert!(shown.contains("12 % busy, and no datagram was dropped at its sockets"), "{shown}");
        let shown = text_of(&Summary { datagrams_dropped: 1_234, ..of_a_rate() });
        assert!(shown.contains("and 1,234 datagrams were dropped at its sockets"), "{shown}");
        let over_tcp = Summary { transport: TransportKind::Tcp, ..of_a_rate() };
        assert!(!text_of(&over_tcp).contains("dropped"));
    }

    #[test]
    fn a_class_is_shown_with_its_connections() {
        let counts = |attempted| Connections { attempted, established: 9, failed: 1, ..Connections::default() };
        let over_tls = Connections { handshakes: 9, resumed: 6, early_accepted: 5, early_rejected: 1, ..counts(10) };
        let seen = ClassTotal { clients: 3, answered: 1_200, unanswered: 4, ..ClassTotal::default() };
        let classes = [Connections::default(), counts(10), over_tls].map(|counts| ClassResult::new(seen, counts));
        let shown = text_of(&Summary { classes: classes.to_vec(), ..of_a_rate() });
        assert!(shown.contains("other clients, 0 %") && shown.contains("3 clients, 1,200 queries answered, 4 not"));
        assert_eq!(shown.matches("connections: ").count(), 2, "none without any: {shown}");
        assert!(shown.contains("10 begun, 9 established, 1 failed\n"), "{shown}");
        let tls = "9 established (3 full TLS handshakes, 6 resumed), 1 failed; early data: 5 queries accepted, 1 rejected and sent again";
        assert!(shown.contains(tls), "{shown}");
    }
}
