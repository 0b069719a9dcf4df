//! What `load` says to people: a few lines before, and a summary after.

use std::net::SocketAddr;

use super::{
    arguments::{Arguments, Plan, TransportKind},
    arrivals::Model,
    client_totals::ClassTotal,
    closed_loop::LoopBound,
    id_rest::rest_ns_min,
    in_flight::TABLE_MAX,
    interval_stats::Losses,
    summary::{ClassResult, Summary},
    transport::Connections,
};
use crate::stats::{
    format::{NOTHING, grouped, milliseconds},
    histogram::Distribution,
};

/// What is about to happen, for people.
pub fn opening(arguments: &Arguments, plan: Plan) -> String {
    let (server, transport) = (arguments.server(), transport_name(arguments.transport));
    let duration_s = arguments.duration_s.as_secs_f64();
    match plan {
        Plan::Once(model) => {
            let load = match model {
                Model::Rate { qps, .. } => format!("{} queries a second", grouped(qps as u64)),
                Model::Outstanding(count) => format!("{} queries outstanding", grouped(count as u64)),
                Model::Stream { qps } => format!("a stream of {} queries a second", grouped(qps as u64)),
            };
            format!(
                "{server} over {transport}: {load} for {duration_s} s; Ctrl-C ends it early\n\
                 A line an interval, as soon as each of its queries is answered or given up after {} s:\n",
                arguments.timeout_s.as_secs_f64()
            )
        }
        Plan::Ramp(limits, settings) => format!(
            "{server} over {transport}: searching the highest rate that holds: at most {} % of the queries unanswered, and \
             {} % of them within {} ms\nEach rate is tried for {duration_s} s{}; Ctrl-C ends it early\n",
            limits.loss_share * 100.0,
            limits.percentile,
            limits.latency_ns as f64 / 1e6,
            if settings.repeats > 1 {
                format!(", {} times at most, and the majority decides", settings.repeats)
            } else {
                String::new()
            },
        ),
    }
}

/// The summary for people.
pub fn text(summary: &Summary, server: SocketAddr) -> String {
    let mut lines = vec![String::new(), headline(summary, server)];
    let share = |count: u64| format!("{:.4} %", 100.0 * count as f64 / summary.sent.max(1) as f64);
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<24}{text}"));
    if summary.model != "ramp" {
        let codes: Vec<_> = summary.rcodes.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
        let codes = if codes.is_empty() { String::new() } else { format!("  ({})", codes.join(", ")) };
        row("answered", format!("{}  {}{codes}", grouped(summary.answered), share(summary.answered)));
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
        if summary.connections.attempted > 0 {
            row("connections", connections(&summary.connections));
        }
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
    lines.extend(verdicts(summary).into_iter().map(|verdict| format!("  note: {verdict}")));
    lines.join("\n") + "\n"
}

/// A time of a distribution, or a dash where it has none: 0.000 ms would be the best of all times.
fn measured(times: &Distribution, time_ns: u64, limit_ns: Option<u64>) -> String {
    if times.count == 0 { NOTHING.into() } else { milliseconds(time_ns, limit_ns) }
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
    if early_accepted + early_rejected > 0 {
        let (accepted, rejected) = (grouped(early_accepted), grouped(early_rejected));
        text += &format!("; early data: {accepted} queries accepted, {rejected} rejected");
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
    let transport = transport_name(summary.transport);
    let answered_qps = summary.answered as f64 / summary.duration_s;
    let duration = format!("{} s", (summary.duration_s * 1e3).round() / 1e3);
    let duration = if summary.interrupted { format!("{duration}, then interrupted") } else { duration };
    if let Some(replayed) = &summary.replayed {
        let (queries, clients) = (grouped(replayed.stream.queries), grouped(replayed.stream.clients));
        return format!("{server}: {queries} queries of {clients} clients in {duration}");
    }
    match (summary.asked_qps, summary.outstanding, summary.capacity_qps) {
        (Some(qps), ..) => {
            format!("{server} over {transport}: {} queries a second for {duration}", grouped(qps as u64))
        }
        (_, Some(count), _) => format!(
            "{server} over {transport}: {} queries outstanding for {duration}: {} answers a second",
            grouped(count as u64),
            grouped(answered_qps as u64)
        ),
        (_, _, Some(qps)) => {
            let bound = if summary.capacity_is_lower_bound { "at least " } else { "" };
            format!("{server} over {transport}: holds {bound}{} queries a second", grouped(qps as u64))
        }
        _ if summary.interrupted => format!("{server} over {transport}: interrupted before any rate was known to hold"),
        _ => format!("{server} over {transport}: no rate held; try a lower --ramp-start, or is the server there?"),
    }
}

fn losses(summary: &Summary) -> String {
    let Losses { closed, reset, refused, tls } = summary.lost;
    let kinds = [("closed", closed), ("reset", reset), ("refused", refused), ("TLS", tls)];
    let told: Vec<_> =
        kinds.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("; {name}: {count}")).collect();
    told.concat()
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
        ("came too late", unmatched.late),
        ("answered twice", unmatched.duplicates),
        ("unknown id", unmatched.unexpected),
        ("other question", unmatched.mismatched),
        ("malformed", unmatched.malformed),
        ("never sent", summary.unsent),
        ("ICMP unreachable", summary.unreachable),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

fn transport_name(transport: TransportKind) -> &'static str {
    match transport {
        TransportKind::Udp => "UDP",
        TransportKind::Tcp => "TCP",
        TransportKind::Dot => "TLS",
    }
}

/// What a reader must know before using the numbers.
fn verdicts(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(summary.real_time_missing.map(without_real_time));
    if summary.answered == 0 && summary.sent > 0 {
        found.push(silence(summary).into());
    }
    if summary.waited_for_id > 0 {
        found.push(too_few_ids(summary));
    } else if summary.unsent > 0 && !summary.interrupted {
        // What falls due at the moment of an interruption is not sent, and that is nobody's fault.
        found.push(
            "not all queries could be sent: the instrument was too slow, and the result says little of the server"
                .into(),
        );
    } else if matches!(summary.model, "rate" | "stream") && summary.lag_ns.p99 > 1_000_000 {
        found.push(format!(
            "queries were sent up to {} late (p99): the instrument lacked CPU; lower --{} or add --threads",
            milliseconds(summary.lag_ns.p99, None).trim(),
            if summary.replayed.is_some() { "speed" } else { "rate" },
        ));
    } else if summary.model == "closed" && summary.busy_share > 0.98 {
        found.push("the instrument had no idle time: the server may be faster than this; add --threads".into());
    }
    if let Some(LoopBound { waiting_share, qps_without_loss }) = summary.loop_bound {
        found.push(format!(
            "queries without an answer bound the rate: each stays outstanding for {} s, which was {:.0} % of the time of \
             all outstanding queries. Without that loss the server would have had about {} queries a second, if it \
             answered them as fast; use --rate, or a shorter --timeout-s",
            summary.timeout_ns as f64 / 1e9,
            waiting_share * 100.0,
            grouped(qps_without_loss as u64),
        ));
    }
    if let Some(share) = summary.base_loss_share {
        found.push(format!(
            "{} % of the queries had no answer whatever the rate: a rate holds here if no more than that and --ramp-loss \
             have none. Look for what loses them on the way to the server: a link, a full buffer (nstat -az \
             UdpRcvbufErrors), a rate limit",
            (share * 1e5).round() / 1e3,
        ));
    }
    if summary.wrong_matches_max > 0 {
        found.push(format!(
            "at most {} answers belong to an earlier query with the same id, which had no answer for {} s or more: to \
             rule that out, use more --{}",
            grouped(summary.wrong_matches_max),
            rest_ns_min(summary.timeout_ns) as f64 / 1e9,
            if summary.replayed.is_some() { "ports" } else { "clients" },
        ));
    }
    if summary.intervals_lost > 0 {
        found.push(format!(
            "{} intervals are missing from --out: the disk is too slow for --interval-s",
            grouped(summary.intervals_lost)
        ));
    }
    let most = |name| summary.rcodes.get(name).is_some_and(|count| *count * 2 > summary.answered);
    if most("REFUSED") {
        found.push("most answers are REFUSED: does the server serve the names that are asked for?".into());
    }
    if most("NOTAUTH") {
        found.push("most answers are NOTAUTH: with --tsig, does the server know that key, and allow it to ask?".into());
    }
    found
}

/// What a wish for real-time priority came to.
pub fn without_real_time(why: &str) -> String {
    format!("--real-time had no effect: {why}")
}

/// What would have left a message id for each query.
fn too_few_ids(summary: &Summary) -> String {
    let rest_s = rest_ns_min(summary.timeout_ns) as f64 / 1e9;
    let enough = match (&summary.replayed, summary.asked_qps) {
        (Some(replayed), _) => format!("--ports {}", replayed.ports * 2),
        (None, Some(qps)) => {
            let fitting = (qps * rest_s / TABLE_MAX as f64).ceil() as usize;
            format!("--clients {}", fitting.max(summary.clients + 1))
        }
        (None, None) => format!("--clients {}", summary.clients * 2),
    };
    format!(
        "queries waited for a free message id, or were not sent for lack of one: the id of a query without an answer is \
         not used again for {rest_s} s, as its answer may come late; use {enough}"
    )
}

/// Why nothing at all was answered, as far as it can be told.
fn silence(summary: &Summary) -> &'static str {
    let Losses { refused, .. } = summary.lost;
    if summary.unreachable > 0 || refused > 0 {
        "nothing was answered, and the network said that nothing is there: is the server running, and on this port?"
    } else if summary.transport == TransportKind::Dot && summary.connections.established == 0 {
        "no TLS connection was established: is this the server's port for DNS over TLS?"
    } else {
        "nothing was answered: is a DNS server listening there, and is nothing between that drops queries?"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let cells = [410_000, 4_100_000, 41_000_000, 410_000_000].map(|ns| milliseconds(ns, None));
        assert_eq!(cells, ["0.410 ms", "4.10 ms", "41.0 ms", "410 ms"]);
        assert_eq!(milliseconds(1_000_341_503, Some(1_000_000_000)), "≥ 1000 ms");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    fn told(summary: &Summary) -> String {
        text(summary, "127.0.0.1:5300".parse().unwrap())
    }

    fn of_a_rate() -> Summary {
        Summary { model: "rate", asked_qps: Some(1_000.0), duration_s: 1.0, sent: 1_000, ..Summary::default() }
    }

    #[test]
    fn silence_is_told_from_an_absent_server_and_a_wrong_port() {
        let silent = of_a_rate();
        assert!(told(&silent).contains("drops queries"));
        assert!(!told(&silent).contains("()"), "no empty list of response codes");
        assert!(told(&Summary { unreachable: 900, ..of_a_rate() }).contains("nothing is there"));
        assert!(told(&Summary { transport: TransportKind::Dot, ..of_a_rate() }).contains("port for DNS over TLS"));
        let answered = Summary { answered: 1, unreachable: 900, ..of_a_rate() };
        assert!(!told(&answered).contains("nothing"));
    }

    #[test]
    fn what_an_interruption_left_unsent_is_not_held_against_the_instrument() {
        let late = Summary { unsent: 10, ..of_a_rate() };
        assert!(told(&late).contains("too slow"));
        let interrupted = Summary { interrupted: true, ..late };
        assert!(!told(&interrupted).contains("too slow"));
        assert!(told(&interrupted).contains("1 s, then interrupted"));
    }

    #[test]
    fn where_nothing_was_measured_there_is_no_time() {
        let failed = Summary { handshake_ns: Some(Distribution::default()), unsent: 1_000, sent: 0, ..of_a_rate() };
        assert!(!told(&failed).contains("0.000 ms") && told(&failed).contains("connecting"), "{}", told(&failed));
        let quick = Distribution { count: 1, ..Distribution::default() };
        assert!(told(&Summary { latency_ns: quick, ..failed }).contains("0.000 ms"));
    }

    #[test]
    fn a_class_is_told_with_its_connections() {
        let counts = |attempted| Connections { attempted, established: 9, failed: 1, ..Connections::default() };
        let over_tls = Connections { handshakes: 9, resumed: 6, early_accepted: 5, early_rejected: 1, ..counts(10) };
        let seen = ClassTotal { clients: 3, answered: 1_200, unanswered: 4, ..ClassTotal::default() };
        let classes = [Connections::default(), counts(10), over_tls].map(|counts| ClassResult::new(seen, counts));
        let told = told(&Summary { classes: classes.to_vec(), ..of_a_rate() });
        assert!(told.contains("other clients, 0 %") && told.contains("3 clients, 1,200 queries answered, 4 not"));
        assert_eq!(told.matches("connections: ").count(), 2, "none without any: {told}");
        assert!(told.contains("10 begun, 9 established, 1 failed\n"), "{told}");
        let tls =
            "9 established (3 full TLS handshakes, 6 resumed), 1 failed; early data: 5 queries accepted, 1 rejected";
        assert!(told.contains(tls), "{told}");
    }
}
