//! Notes that a reader of the summary needs before using its numbers: a sentence for each cause, with what to do. No
//! clock, no socket.

use dnsrig_core::stats::{grouped, milliseconds};

use super::{
    arguments::{CLIENTS_MAX, TransportKind},
    client_queries::{TABLE_MAX, rest_ns_min},
    client_totals::UnequalClients,
    counts::UnmatchedResponses,
    summary::{LoopBound, Summary},
};

/// The share of time without a CPU above which the result depends on more than the server.
const CPU_WAIT_SHARE: f64 = 0.05;

/// The lateness of queries above which the instrument lacks CPU.
const LAG_NS_MAX: u64 = 1_000_000;

/// All notes that apply.
pub fn notes(summary: &Summary) -> Vec<String> {
    let all = [
        real_time,
        silence,
        tls_faults,
        too_few_streams,
        too_slow,
        lost_in_loop,
        lost_at_every_rate,
        own_drops,
        wrong_matches,
        incomplete_answers,
        intervals_lost,
        no_cpu,
        one_flow,
        unequal_clients,
        truncated,
        refusals,
    ];
    all.iter().filter_map(|note| note(summary)).collect()
}

fn real_time(summary: &Summary) -> Option<String> {
    summary.real_time_missing.map(without_real_time)
}

/// The note that there was no real-time priority.
pub fn without_real_time(why: &str) -> String {
    format!("--real-time had no effect: {why}")
}

/// Why nothing at all was answered, as far as it is known: messages that came show more than messages that did not.
fn silence(summary: &Summary) -> Option<String> {
    if summary.answered > 0 || summary.sent == 0 {
        return None;
    }
    if summary.wrong.total() > 0 {
        return Some("no answer was as expected: check that --expect is about what this server serves".into());
    }
    let (refused, ended) = (summary.lost.refused, summary.lost.closed + summary.lost.reset);
    let UnmatchedResponses { late, duplicates, unexpected, mismatched, malformed, incomplete } = summary.unmatched;
    let foreign = duplicates + unexpected + mismatched + malformed + incomplete;
    Some(if summary.truncated > 0 {
        format!(
            "no query was answered in full: {} answers over UDP were truncated, and over TCP {}: check that the server \
             answers over TCP, on this port",
            grouped(summary.truncated),
            if refused > 0 {
                "the connection was refused"
            } else if ended > 0 {
                "the server ended the connection"
            } else {
                "nothing came"
            },
        )
    } else if late > 0 {
        format!(
            "nothing was answered in time, but {} answers came later than {} s: raise --timeout",
            grouped(late),
            summary.timeout_ns as f64 / 1e9
        )
    } else if foreign > 0 {
        format!(
            "nothing was answered, though {} messages came that answer no query: the lines above name what was wrong with \
             them. Check that this is a DNS server, and that it gets the queries unchanged",
            grouped(foreign)
        )
    } else if let Some(sentence) = summary.tls_sentence {
        format!(
            "nothing was answered, because TLS failed: {sentence}. Check that this is the server's port for {}",
            over_tls(summary.transport)
        )
    } else if let Some((kind, count)) = summary.http_faults.iter().max_by_key(|(_, count)| **count) {
        format!(
            "nothing was answered, because HTTP failed, mostly as follows: {kind} ({} times). Check that the server answers \
             DNS over HTTPS on this port, at the path of --doh-path",
            grouped(*count)
        )
    } else if ended > refused {
        format!(
            "nothing was answered: the server ended connections before it had answered {} queries. Check that it answers \
             over TCP, on this port and to this address",
            grouped(ended)
        )
    } else if summary.unreachable + refused > 0 {
        format!(
            "nothing was answered, and {} times the network reported that nothing is there: check that the server is \
             running, and its port",
            grouped(summary.unreachable + refused)
        )
    } else if summary.connections.attempted > 0 && summary.connections.established == 0 {
        let (kind, what) = match summary.transport {
            TransportKind::Dot | TransportKind::Doh => ("TLS ", over_tls(summary.transport)),
            TransportKind::Doq => ("QUIC ", over_tls(summary.transport)),
            _ => ("", "TCP, or for TLS where it was asked for"),
        };
        format!("no {kind}connection was established: check that this is the server's port for {what}")
    } else {
        "nothing was answered: check that a DNS server listens there, and that nothing on the path drops queries".into()
    })
}

/// What is asked over TLS.
fn over_tls(transport: TransportKind) -> &'static str {
    match transport {
        TransportKind::Doh => "DNS over HTTPS",
        TransportKind::Doq => "DNS over QUIC",
        _ => "DNS over TLS",
    }
}

fn tls_faults(summary: &Summary) -> Option<String> {
    let sentence = summary.tls_sentence.filter(|_| summary.answered > 0)?;
    Some(format!("TLS failed on some connections: {sentence}"))
}

fn too_few_streams(summary: &Summary) -> Option<String> {
    (summary.waited_for_stream > 0).then(|| {
        let hint = match (summary.clients * 2).min(CLIENTS_MAX as usize) {
            more if more > summary.clients => format!(" Use --clients {more} or more"),
            _ => String::new(),
        };
        format!(
            "{} queries waited for a stream, because the server limits how many streams a connection has open. The wait is \
             part of the latency.{hint}",
            grouped(summary.waited_for_stream),
        )
    })
}

/// The first reason why the instrument did not send what was asked for.
fn too_slow(summary: &Summary) -> Option<String> {
    if summary.waited_for_id > 0 {
        Some(too_few_ids(summary))
    } else if summary.unsent > 0 && summary.waited_for_stream > 0 {
        None
    } else if summary.unsent > 0 && summary.connections.no_port > 0 {
        Some(
            "not all queries could be sent, because this host had no free port for a connection: use --close rst, several \
             --source addresses, or more queries per connection"
                .into(),
        )
    } else if summary.unsent > 0 && !summary.interrupted {
        // A query that falls due at the moment of an interruption is not sent, and that is no fault.
        Some(
            "not all queries could be sent: the instrument was too slow, and the result says little about the server"
                .into(),
        )
    } else if matches!(summary.model, "rate" | "stream") && summary.lag_ns.p99 > LAG_NS_MAX {
        Some(format!(
            "queries were sent up to {} late (p99): the instrument lacked CPU; lower --{} or add --threads",
            milliseconds(summary.lag_ns.p99, None).trim(),
            if summary.replayed.is_some() { "speed" } else { "rate" },
        ))
    } else if summary.model == "closed" && summary.busy_share > 0.98 {
        Some("the instrument had no idle time: the server may be faster than this; add --threads".into())
    } else {
        None
    }
}

/// The note that message ids were missing, with the option that gives enough.
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
        "queries waited for a free message id, or were not sent because there was none: the id of a query without an \
         answer is not used again for {rest_s} s, because its answer may come late. Use {enough}"
    )
}

fn lost_in_loop(summary: &Summary) -> Option<String> {
    let LoopBound { waiting_share, qps_without_loss } = summary.loop_bound?;
    Some(format!(
        "queries without an answer limited the rate: each stays outstanding for {} s, which was {:.0} % of the time of all \
         outstanding queries. Without that loss the server would have had about {} queries per second, if it had answered \
         them as fast. Use --rate, or a shorter --timeout",
        summary.timeout_ns as f64 / 1e9,
        waiting_share * 100.0,
        grouped(qps_without_loss as u64),
    ))
}

fn lost_at_every_rate(summary: &Summary) -> Option<String> {
    let share = summary.base_loss_share?;
    Some(format!(
        "{} % of the queries had no answer whatever the rate: a rate holds here if the loss is at most that share plus \
         --ramp-loss. Find what loses queries on the way to the server: a link, a full buffer (nstat -az UdpRcvbufErrors), a \
         rate limit",
        (share * 1e5).round() / 1e3,
    ))
}

fn own_drops(summary: &Summary) -> Option<String> {
    let count = summary.datagrams_dropped;
    (count > 0).then(|| {
        format!(
            "{} datagrams came and were dropped by this host, because the receive buffers of this program's sockets were \
             full. They count as unanswered, though the server answered. Add --clients or --threads, or run as root, which \
             allows larger buffers",
            grouped(count)
        )
    })
}

fn wrong_matches(summary: &Summary) -> Option<String> {
    (summary.wrong_matches_max > 0).then(|| {
        format!(
            "at most {} answers belong to an earlier query with the same id, which had no answer for {} s or more. To \
             rule this out, raise --{}",
            grouped(summary.wrong_matches_max),
            rest_ns_min(summary.timeout_ns) as f64 / 1e9,
            if summary.replayed.is_some() { "ports" } else { "clients" },
        )
    })
}

fn incomplete_answers(summary: &Summary) -> Option<String> {
    let count = summary.unmatched.incomplete;
    (count > 0).then(|| {
        format!(
            "{} answers were too short for the number of records in their header, and their queries count as unanswered. \
             The records themselves are not read",
            grouped(count)
        )
    })
}

fn intervals_lost(summary: &Summary) -> Option<String> {
    let lost = grouped(summary.intervals_lost);
    (summary.intervals_lost > 0)
        .then(|| format!("{lost} intervals are missing from --out: the disk is too slow for --interval"))
}

fn no_cpu(summary: &Summary) -> Option<String> {
    let share = summary.cpu_wait_ns as f64 / summary.sending_ns.max(1) as f64;
    (share > CPU_WAIT_SHARE).then(|| {
        format!(
            "the instrument was ready to run, but had no CPU, for {:.0} % of the time: another program uses the same CPU, \
             perhaps the server. Give each its own CPU (taskset)",
            100.0 * share,
        )
    })
}

fn one_flow(summary: &Summary) -> Option<String> {
    (summary.clients == 1 && matches!(summary.model, "closed" | "ramp")).then(|| {
        "all queries came from one client, and a server with several threads answers one flow with one of them \
         (SO_REUSEPORT): to measure all its threads, raise --clients"
            .into()
    })
}

fn unequal_clients(summary: &Summary) -> Option<String> {
    let UnequalClients { near, near_ns, far, far_ns, unanswered } = summary.unequal_clients?;
    let mut found = Vec::new();
    if far > 0 {
        let [near_ms, far_ms] = [near_ns, far_ns].map(|ns| milliseconds(ns.unsigned_abs(), None));
        found.push(format!("the fastest answer took {near_ms} or less for {near}, and {far_ms} or more for {far}"));
    }
    if unanswered > 0 {
        found.push(format!("{unanswered} had no answer at all"));
    }
    Some(format!(
        "clients were not served alike: {}. A client is one flow: perhaps several servers have this address, or a thread of \
         the server answers some clients differently (clients.arrow in --out has each client)",
        found.join("; ")
    ))
}

fn truncated(summary: &Summary) -> Option<String> {
    let Summary { answered, sent, truncated, .. } = *summary;
    if truncated * 2 <= answered || answered == 0 {
        return None;
    }
    let (unanswered, percent) = (sent.saturating_sub(answered), 100.0 * truncated as f64 / answered as f64);
    if unanswered * 10 > sent {
        return Some(format!(
            "{percent:.0} % of the answers are truncated, and {:.0} % of the queries have none: the server seems to limit \
             what one client gets (BIND rate-limit, Knot DNS mod-rrl, NSD rrl-ratelimit). Switch the limit off, or send from \
             addresses in several networks (--source)",
            100.0 * unanswered as f64 / sent as f64,
        ));
    }
    // A replay asks again over TCP, and measures that.
    let is_asked_again = summary.replayed.is_some() || summary.transport != TransportKind::Udp;
    (!is_asked_again).then(|| {
        format!(
            "{percent:.0} % of the answers are truncated: clients then ask again over TCP, which was not measured. Use a \
             larger --edns, or --transport tcp",
        )
    })
}

/// What to check if most answers have one RCODE.
const RCODE_NOTES: [(&str, &str); 5] = [
    ("REFUSED", "check that the server has the names that are asked for, and answers this address."),
    ("NOTAUTH", "with --tsig, check that the server knows that key, and lets it ask"),
    (
        "SERVFAIL",
        "the result shows how fast the server fails. Check that it has loaded its zones, and reaches its upstream servers",
    ),
    ("FORMERR", "the server does not understand the queries: see --edns"),
    ("NOTIMP", "the server does not support such queries: see the types that are asked for"),
];

fn refusals(summary: &Summary) -> Option<String> {
    let has_most =
        |name| summary.rcodes.get(name).is_some_and(|count| *count * 2 > summary.answered + summary.wrong.total());
    let (name, note) = RCODE_NOTES.iter().find(|(name, _)| has_most(name))?;
    let is_without_rd = *name == "REFUSED" && summary.recursion_desired == Some(false);
    let more =
        if is_without_rd { " A resolver can refuse queries without RD: for one, use --recursion-desired" } else { "" };
    Some(format!("most answers are {name}: {note}{more}"))
}

#[cfg(test)]
mod tests {
    use dnsrig_core::stats::Distribution;

    use super::*;
    use crate::load::counts::{Connections, Losses, WrongAnswers};

    fn of_a_rate() -> Summary {
        Summary { model: "rate", asked_qps: Some(1_000.0), duration_s: 1.0, sent: 1_000, ..Summary::default() }
    }

    fn text_of(summary: &Summary) -> String {
        notes(summary).join("\n")
    }

    #[test]
    fn silence_is_explained_by_what_came_first_and_then_by_what_did_not() {
        let unmatched = |late, mismatched| UnmatchedResponses { late, mismatched, ..UnmatchedResponses::default() };
        let refused = Losses { refused: 100, ..Losses::default() };
        let begun = Connections { attempted: 9, ..Connections::default() };
        let tls_sentence = Some("the server did not agree on the protocol inside TLS (ALPN)");
        for (summary, part) in [
            (of_a_rate(), "drops queries"),
            (Summary { unreachable: 900, ..of_a_rate() }, "900 times the network reported that nothing is there"),
            (
                Summary { lost: Losses { refused: 6, closed: 90, reset: 4, ..Losses::default() }, ..of_a_rate() },
                "answered 94 queries",
            ),
            (
                Summary { lost: Losses { refused: 94, closed: 6, ..Losses::default() }, ..of_a_rate() },
                "nothing is there",
            ),
            (
                Summary { truncated: 9, lost: Losses { closed: 9, ..Losses::default() }, ..of_a_rate() },
                "over TCP the server ended the connection",
            ),
            (Summary { connections: begun, ..of_a_rate() }, "no connection was established"),
            (Summary { transport: TransportKind::Dot, connections: begun, ..of_a_rate() }, "port for DNS over TLS"),
            (Summary { transport: TransportKind::Dot, tls_sentence, ..of_a_rate() }, "inside TLS (ALPN)"),
            (Summary { transport: TransportKind::Doh, connections: begun, ..of_a_rate() }, "port for DNS over HTTPS"),
            (
                Summary {
                    http_faults: [("status 404".into(), 90), ("wrong content type".into(), 10)].into(),
                    lost: Losses { http: 100, ..Losses::default() },
                    ..of_a_rate()
                },
                "status 404 (90 times)",
            ),
            (
                Summary { truncated: 100, lost: refused, ..of_a_rate() },
                "100 answers over UDP were truncated, and over TCP the connection was refused",
            ),
            (Summary { unmatched: unmatched(5, 0), unreachable: 1, ..of_a_rate() }, "5 answers came later than"),
            (
                Summary { unmatched: unmatched(0, 5), lost: refused, ..of_a_rate() },
                "5 messages came that answer no query",
            ),
        ] {
            let text = text_of(&summary);
            assert!(text.contains(part), "{part}: {text}");
            assert_eq!(text.contains("nothing is there"), part.ends_with("nothing is there"));
        }
        let answered = Summary { answered: 1, unreachable: 900, tls_sentence, ..of_a_rate() };
        assert!(!text_of(&answered).contains("nothing") && text_of(&answered).contains("on some connections"));
    }

    /// Messages that answer no query are added up, whatever is wrong with them.
    #[test]
    fn every_foreign_message_is_counted_in_the_silence() {
        let unmatched = UnmatchedResponses {
            late: 0,
            duplicates: 1,
            unexpected: 10,
            mismatched: 100,
            malformed: 1_000,
            incomplete: 10_000,
        };
        let text = text_of(&Summary { unmatched, ..of_a_rate() });
        assert!(text.contains("though 11,111 messages came that answer no query"), "{text}");
    }

    #[test]
    fn what_became_of_queries_over_tcp_is_in_the_silence() {
        let lost = |refused, closed| Losses { refused, closed, ..Losses::default() };
        for (lost, what) in [
            (lost(0, 0), "nothing came"),
            (lost(1, 9), "the connection was refused"),
            (lost(0, 1), "the server ended the connection"),
        ] {
            let text = text_of(&Summary { truncated: 9, lost, ..of_a_rate() });
            assert!(text.contains(&format!("9 answers over UDP were truncated, and over TCP {what}: check")), "{text}");
        }
        // If as many connections ended as were refused, nothing is there.
        let text = text_of(&Summary { lost: lost(5, 5), unreachable: 2, ..of_a_rate() });
        assert!(text.contains("and 7 times the network reported that nothing is there"), "{text}");
    }

    #[test]
    fn a_note_comes_only_above_its_limit() {
        let clean = || Summary { answered: 1_000, clients: 16, sending_ns: 1_000_000_000, ..of_a_rate() };
        let losses = |truncated, answered| Summary { truncated, answered, ..clean() };
        let refused = |count, wrong| Summary {
            rcodes: [("REFUSED", count)].into(),
            wrong: WrongAnswers { rcode: wrong, ..WrongAnswers::default() },
            ..clean()
        };
        for (below, above, part) in [
            (
                Summary { cpu_wait_ns: 50_000_000, ..clean() },
                Summary { cpu_wait_ns: 51_000_000, ..clean() },
                "but had no CPU, for 5 % of the time",
            ),
            (
                Summary { lag_ns: Distribution { p99: 1_000_000, ..Distribution::default() }, ..clean() },
                Summary { lag_ns: Distribution { p99: 1_000_001, ..Distribution::default() }, ..clean() },
                "queries were sent up to 1.00 ms late (p99): the instrument lacked CPU; lower --rate",
            ),
            (
                Summary { model: "closed", busy_share: 0.98, ..clean() },
                Summary { model: "closed", busy_share: 0.99, ..clean() },
                "the instrument had no idle time",
            ),
            (
                Summary { waited_for_stream: 1, clients: 65_536, ..clean() },
                Summary { waited_for_stream: 1, clients: 40_000, ..clean() },
                "Use --clients 65536 or more",
            ),
            (losses(500, 1_000), losses(501, 1_000), "50 % of the answers are truncated: clients then ask"),
            (
                losses(900, 900),
                losses(899, 899),
                "100 % of the answers are truncated, and 10 % of the queries have none: the server seems to limit",
            ),
            (refused(500, 0), refused(501, 0), "most answers are REFUSED"),
            (refused(501, 10), refused(506, 10), "most answers are REFUSED"),
            (
                Summary { clients: 2, model: "closed", ..clean() },
                Summary { clients: 1, model: "ramp", ..clean() },
                "all queries came from one client",
            ),
            (
                Summary { truncated: 1_000, transport: TransportKind::Tcp, ..clean() },
                Summary { truncated: 1_000, ..clean() },
                "100 % of the answers are truncated: clients then ask again over TCP",
            ),
        ] {
            assert!(!text_of(&below).contains(part), "{part}: {}", text_of(&below));
            assert!(text_of(&above).contains(part), "{part}: {}", text_of(&above));
        }
    }

    #[test]
    fn each_count_of_what_was_lost_here_has_a_note() {
        let clean = || Summary { answered: 1_000, clients: 16, sending_ns: 1_000_000_000, ..of_a_rate() };
        let unmatched = UnmatchedResponses { incomplete: 1, ..UnmatchedResponses::default() };
        for (summary, part) in [
            (Summary { unmatched, ..clean() }, "1 answers were too short for the number of records"),
            (Summary { intervals_lost: 1, ..clean() }, "1 intervals are missing from --out"),
            (Summary { datagrams_dropped: 1, ..clean() }, "1 datagrams came and were dropped by this host"),
            (Summary { wrong_matches_max: 1, ..clean() }, "at most 1 answers belong to an earlier query"),
        ] {
            assert!(text_of(&summary).contains(part), "{part}: {}", text_of(&summary));
        }
    }

    #[test]
    fn queries_that_an_interruption_left_unsent_are_no_fault_of_the_instrument() {
        let late = Summary { unsent: 10, ..of_a_rate() };
        assert!(text_of(&late).contains("too slow"));
        let connections = Connections { no_port: 1, ..Connections::default() };
        assert!(text_of(&Summary { connections, unsent: 10, ..of_a_rate() }).contains("had no free port"));
        let interrupted = Summary { interrupted: true, ..late };
        assert!(!text_of(&interrupted).contains("too slow"));
    }

    #[test]
    fn too_few_ids_name_enough_clients() {
        let short = Summary { waited_for_id: 1, unsent: 9, clients: 1, answered: 1, ..of_a_rate() };
        let fast = Summary { asked_qps: Some(55_000.0), ..short };
        assert!(
            text_of(&fast).contains("Use --clients 2") && !text_of(&fast).contains("too slow"),
            "{}",
            text_of(&fast)
        );
        let closed = Summary { waited_for_id: 1, clients: 16, model: "closed", answered: 1, ..Summary::default() };
        assert!(text_of(&closed).contains("Use --clients 32"));
    }

    #[test]
    fn each_condition_of_a_wrong_conclusion_has_a_sentence_and_a_clean_load_has_none() {
        let clean = || Summary { answered: 1_000, clients: 16, sending_ns: 1_000_000_000, ..of_a_rate() };
        assert_eq!(text_of(&clean()), "");
        let unequal = UnequalClients { near: 6, near_ns: 1_000_000, far: 10, far_ns: 50_000_000, unanswered: 2 };
        for (summary, part) in [
            (Summary { truncated: 490, answered: 500, ..clean() }, "98 % of the answers are truncated, and 50 %"),
            (
                Summary { truncated: 990, ..clean() },
                "99 % of the answers are truncated: clients then ask again over TCP",
            ),
            (
                Summary { rcodes: [("SERVFAIL", 990)].into(), ..clean() },
                "most answers are SERVFAIL: the result shows how",
            ),
            (Summary { rcodes: [("REFUSED", 990)].into(), ..clean() }, "most answers are REFUSED"),
            (
                Summary { rcodes: [("REFUSED", 990)].into(), recursion_desired: Some(false), ..clean() },
                "queries without RD: for one, use --recursion-desired",
            ),
            (Summary { rcodes: [("FORMERR", 990)].into(), ..clean() }, "see --edns"),
            (Summary { cpu_wait_ns: 430_000_000, ..clean() }, "had no CPU, for 43 %"),
            (Summary { clients: 1, model: "closed", ..clean() }, "one of them (SO_REUSEPORT)"),
            (
                Summary { unequal_clients: Some(unequal), ..clean() },
                "1.00 ms or less for 6, and 50.0 ms or more for 10; 2 had",
            ),
            (Summary { wrong_matches_max: 7, ..clean() }, "at most 7 answers"),
            (Summary { datagrams_dropped: 1_234, ..clean() }, "1,234 datagrams came and were dropped by this host"),
            (
                Summary { waited_for_stream: 70, unsent: 5, ..clean() },
                "70 queries waited for a stream, because the server limits how many streams a connection has open. The wait is \
                 part of the latency. Use --clients 32 or more",
            ),
            (
                Summary { base_loss_share: Some(0.003), ..clean() },
                "0.3 % of the queries had no answer whatever the rate",
            ),
            (
                Summary { loop_bound: Some(LoopBound { waiting_share: 0.92, qps_without_loss: 9e4 }), ..clean() },
                "92 % of the time of all outstanding queries. Without that loss the server would have had about 90,000",
            ),
            (Summary { real_time_missing: Some("no"), ..clean() }, "--real-time had no effect: no"),
        ] {
            assert!(text_of(&summary).contains(part), "{part}: {}", text_of(&summary));
        }
    }
}
