//! What `load` says: JSON lines for programs, a few lines for people.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;

use super::{
    arguments::{Arguments, Plan, TransportKind},
    arrivals::Model,
    meter::{Counts, Interval, Losses, RCODES, Series, Strays, Times},
    transport::Connections,
};
use crate::{
    clock,
    events::{self, EventError},
};

/// Mnemonics of the response codes in a header (RFC 6895 §2.3).
const RCODE_NAMES: [&str; RCODES] = [
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "DSOTYPENI",
    "RCODE12",
    "RCODE13",
    "RCODE14",
    "RCODE15",
];

/// A distribution in a few numbers, in nanoseconds; percentiles are the highest values of their bins.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Distribution {
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
}

impl From<&Times> for Distribution {
    fn from(times: &Times) -> Self {
        let [p50, p90, p99, p99_9, p99_99] = percentiles(times, [5_000, 9_000, 9_900, 9_990, 9_999]);
        Distribution { mean: times.mean(), min: times.min(), p50, p90, p99, p99_9, p99_99, max: times.max() }
    }
}

/// One percentile, known to a hundredth of a percent.
pub fn percentile(times: &Times, percent: f64) -> u64 {
    percentiles(times, [(percent * 100.0).round() as u64])[0]
}

/// Percentiles, asked for in hundredths of a percent and in rising order: the smallest values with at least that share of
/// all at or below them. By whole numbers: a rank computed from a fraction such as 0.999 can be one too high.
fn percentiles<const N: usize>(times: &Times, wanted: [u64; N]) -> [u64; N] {
    let rank = |share: u64| (u128::from(times.len()) * u128::from(share)).div_ceil(10_000) as u64;
    let mut found = [0; N];
    let (mut at, mut passed) = (0, 0);
    for value in times.iter_recorded() {
        passed += value.count_at_value();
        while at < N && passed >= rank(wanted[at]) {
            found[at] = times.highest_equivalent(value.value_iterated_to());
            at += 1;
        }
    }
    found
}

/// One rate of a ramp.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Step {
    pub repeat: u32,
    pub rate_qps: f64,
    pub sent_qps: f64,
    pub answered_qps: f64,
    pub loss_share: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p99_9_ns: u64,
    pub lag_p99_ns: u64,
    pub busy_share: f64,
    pub holds: bool,
    /// The instrument did not send at this rate: the step says nothing of the server.
    pub instrument_failed: bool,
}

/// The final event.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub transport: TransportKind,
    pub model: &'static str,
    pub asked_qps: Option<f64>,
    pub poisson: bool,
    pub outstanding: Option<usize>,
    pub interrupted: bool,
    pub start_ns: i64,
    pub end_ns: i64,
    pub duration_s: f64,
    pub interval_s: f64,
    pub timeout_ns: i64,
    pub clients: usize,
    pub threads: usize,
    /// Whether every thread went before everything else on its CPU.
    pub real_time: bool,
    pub due: u64,
    pub sent: u64,
    pub unsent: u64,
    /// From the start to the last sending, in nanoseconds.
    pub sending_ns: i64,
    pub answered: u64,
    pub timeouts: u64,
    pub lost: Losses,
    #[serde(flatten)]
    pub strays: Strays,
    pub truncated: u64,
    pub unreachable: u64,
    pub rcodes: BTreeMap<&'static str, u64>,
    pub octets_sent: u64,
    pub octets_received: u64,
    pub connections: Connections,
    pub latency_ns: Distribution,
    pub sent_latency_ns: Distribution,
    pub lag_ns: Distribution,
    pub handshake_ns: Option<Distribution>,
    pub busy_share: f64,
    pub cpu_ns: i64,
    pub steps: Vec<Step>,
    pub capacity_qps: Option<f64>,
    /// The server may hold more: the instrument or the highest rate allowed ended the search.
    pub capacity_is_lower_bound: bool,
}

impl Summary {
    /// The parts that are counts and times.
    pub fn fill(&mut self, counts: &Counts, series: &Series) {
        self.due = counts.due;
        self.sent = counts.sent;
        self.unsent = counts.due - counts.sent;
        self.answered = counts.answered;
        self.timeouts = counts.timeouts;
        self.lost = counts.lost;
        self.strays = counts.strays;
        self.truncated = counts.truncated;
        self.unreachable = counts.unreachable;
        self.rcodes = RCODE_NAMES.into_iter().zip(counts.rcodes).filter(|(_, count)| *count > 0).collect();
        self.octets_sent = counts.octets_sent;
        self.octets_received = counts.octets_received;
        self.latency_ns = (&series.due).into();
        self.sent_latency_ns = (&series.sent).into();
        self.lag_ns = (&series.lag).into();
        self.handshake_ns = (!series.handshake.is_empty()).then(|| (&series.handshake).into());
    }
}

/// An interval's event.
#[derive(Serialize)]
struct Progress {
    interval: u64,
    due: u64,
    sent: u64,
    answered: u64,
    unanswered: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    lag_p99_ns: u64,
}

/// Who reads what we say.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// JSON lines on standard output.
    pub program: bool,
    /// Text on standard error.
    pub person: bool,
    /// Latencies from here on are told as "at least so much": queries without an answer count at this limit.
    pub timeout_ns: u64,
}

impl Reader {
    /// A program reads a pipe; a person a terminal.
    pub fn find(json: bool, timeout_ns: i64) -> Self {
        let terminal = io::stdout().is_terminal();
        let person = io::stderr().is_terminal() || terminal;
        Reader { program: json || !terminal, person, timeout_ns: timeout_ns.unsigned_abs() }
    }

    /// Says what is about to happen.
    pub fn begin(self, arguments: &Arguments, plan: Plan) {
        if self.person {
            let _ = io::stderr().write_all(opening(arguments, plan).as_bytes());
        }
    }

    /// Says how an interval went.
    pub fn interval(self, interval: &Interval, interval_s: f64) -> Result<(), EventError> {
        let (counts, series) = (&interval.counts, &interval.series);
        let [p50_ns, p99_ns] = percentiles(&series.due, [5_000, 9_900]);
        let [lag_p99_ns] = percentiles(&series.lag, [9_900]);
        let progress = Progress {
            interval: interval.number,
            due: counts.due,
            sent: counts.sent,
            answered: counts.answered,
            unanswered: counts.unanswered(),
            p50_ns,
            p99_ns,
            max_ns: series.due.max(),
            lag_p99_ns,
        };
        if self.person && interval_s >= 0.5 {
            let _ = writeln!(
                io::stderr(),
                "{:>7.1} s  sent {:>9}  answered {:>9}  p50 {:>9}  p99 {:>9}  max {:>9}",
                interval.number as f64 * interval_s,
                grouped(progress.sent),
                grouped(progress.answered),
                milliseconds(progress.p50_ns, Some(self.timeout_ns)),
                milliseconds(progress.p99_ns, Some(self.timeout_ns)),
                milliseconds(progress.max_ns, Some(self.timeout_ns)),
            );
        }
        if self.program { events::emit("progress", clock::monotonic_ns(), &progress) } else { Ok(()) }
    }

    /// Says how a rate of a ramp went.
    pub fn step(self, step: &Step) -> Result<(), EventError> {
        if self.person {
            let verdict = if step.instrument_failed {
                "the instrument cannot send faster"
            } else if step.holds {
                "holds"
            } else {
                "does not hold"
            };
            let _ = writeln!(
                io::stderr(),
                "{:>9} queries/s  answered {:>9}/s  lost {:>7.3} %  p50 {:>9}  p99 {:>9}  {verdict}",
                grouped(step.rate_qps as u64),
                grouped(step.answered_qps as u64),
                step.loss_share * 100.0,
                milliseconds(step.p50_ns, Some(self.timeout_ns)),
                milliseconds(step.p99_ns, Some(self.timeout_ns)),
            );
        }
        if self.program { events::emit("step", clock::monotonic_ns(), step) } else { Ok(()) }
    }

    /// Says how it all went.
    pub fn summary(self, summary: &Summary, server: std::net::SocketAddr) -> Result<(), EventError> {
        if self.person {
            let _ = io::stderr().write_all(text(summary, server).as_bytes());
        }
        if self.program { events::emit("summary", clock::monotonic_ns(), summary) } else { Ok(()) }
    }
}

/// What is about to happen, for people.
fn opening(arguments: &Arguments, plan: Plan) -> String {
    let (server, transport) = (arguments.server(), transport_name(arguments.transport));
    let duration_s = arguments.duration_s.as_secs_f64();
    match plan {
        Plan::Once(model) => {
            let load = match model {
                Model::Rate { qps, .. } => format!("{} queries a second", grouped(qps as u64)),
                Model::Outstanding(count) => format!("{} queries outstanding", grouped(count as u64)),
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
pub fn text(summary: &Summary, server: std::net::SocketAddr) -> String {
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
            let Connections { attempted, established, resumed, failed, .. } = summary.connections;
            row(
                "connections",
                format!(
                    "{} begun, {} established, {} resumed, {} failed",
                    grouped(attempted),
                    grouped(established),
                    grouped(resumed),
                    grouped(failed)
                ),
            );
        }
        row("", format!("{:>11} {:>11} {:>11} {:>11} {:>11}", "p50", "p99", "p99.9", "p99.99", "max"));
        for (name, times) in [
            ("latency, from due", Some(&summary.latency_ns)),
            ("latency, from sent", Some(&summary.sent_latency_ns)),
            ("sent late by", Some(&summary.lag_ns)),
            ("connecting", summary.handshake_ns.as_ref()),
        ] {
            let Some(times) = times else { continue };
            let limit_ns = name.starts_with("latency").then_some(summary.timeout_ns.unsigned_abs());
            let cells = [times.p50, times.p99, times.p99_9, times.p99_99, times.max];
            row(name, cells.map(|ns| format!("{:>11}", milliseconds(ns, limit_ns))).join(" "));
        }
    }
    lines.extend(verdicts(summary).into_iter().map(|verdict| format!("  note: {verdict}")));
    lines.join("\n") + "\n"
}

fn headline(summary: &Summary, server: std::net::SocketAddr) -> String {
    let transport = transport_name(summary.transport);
    let answered_qps = summary.answered as f64 / summary.duration_s;
    let duration = format!("{} s", (summary.duration_s * 1e3).round() / 1e3);
    let duration = if summary.interrupted { format!("{duration}, then interrupted") } else { duration };
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
    let strays = summary.strays;
    [
        ("truncated", summary.truncated),
        ("came too late", strays.late),
        ("answered twice", strays.duplicates),
        ("unknown id", strays.unexpected),
        ("other question", strays.mismatched),
        ("malformed", strays.malformed),
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
    if summary.answered == 0 && summary.sent > 0 {
        found.push(silence(summary).into());
    }
    // What falls due at the moment of an interruption is not sent, and that is nobody's fault.
    if summary.unsent > 0 && !summary.interrupted {
        found.push(
            "not all queries could be sent: the instrument was too slow, and the result says little of the server"
                .into(),
        );
    } else if summary.model == "rate" && summary.lag_ns.p99 > 1_000_000 {
        found.push(format!(
            "queries were sent up to {} late (p99): the instrument lacked CPU; lower --rate or add --threads",
            milliseconds(summary.lag_ns.p99, None).trim()
        ));
    } else if summary.model == "closed" && summary.busy_share > 0.98 {
        found.push("the instrument had no idle time: the server may be faster than this; add --threads".into());
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

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds with three significant digits; at or beyond a limit `≥ limit`.
fn milliseconds(time_ns: u64, limit_ns: Option<u64>) -> String {
    let limit_ns = limit_ns.unwrap_or(u64::MAX);
    let ms = time_ns.min(limit_ns) as f64 / 1e6;
    let digits = if ms >= 100.0 {
        0
    } else if ms >= 10.0 {
        1
    } else if ms >= 1.0 {
        2
    } else {
        3
    };
    format!("{}{ms:.digits$} ms", if time_ns >= limit_ns { "≥ " } else { "" })
}

/// How a model is called in the summary, its rate and its outstanding queries.
pub fn model_words(model: Model) -> (&'static str, Option<f64>, bool, Option<usize>) {
    match model {
        Model::Rate { qps, poisson } => ("rate", Some(qps), poisson, None),
        Model::Outstanding(count) => ("closed", None, false, Some(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::meter::times;

    #[test]
    fn a_percentile_is_the_value_at_its_rank_exactly() {
        let mut recorded = times();
        (1..=10_000).for_each(|value| recorded.record(value).unwrap());
        let found = percentiles(&recorded, [1, 5_000, 9_990, 9_999, 10_000]);
        let expected = [1, 5_000, 9_990, 9_999, 10_000].map(|value| recorded.highest_equivalent(value));
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_recorded_has_percentiles_of_zero() {
        assert_eq!(percentiles(&times(), [5_000]), [0]);
        assert_eq!(Distribution::from(&times()).max, 0);
    }

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
}
