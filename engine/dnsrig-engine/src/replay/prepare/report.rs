//! What `replay prepare` says in the end.

use std::net::Ipv6Addr;

use dnsrig_core::stats::grouped;
use serde::Serialize;

use super::{
    accounting::{Accounting, OverUdp, Unread},
    finish::Written,
    server::Seen,
};

use crate::replay::capture::CaptureReport;

/// Where a record has no address.
const NO_ADDRESS: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// Packets that come by several ways are out of order by less.
const CLOCK_SET_NS: i64 = 60_000_000_000;

/// The `summary` event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub elapsed_ns: i64,
    pub cpu_ns: i64,
    pub captures: Vec<CaptureReport>,
    /// The servers whose queries were kept.
    pub servers: Vec<String>,
    /// The busiest servers, from which one was chosen if no server was given.
    pub servers_seen: Vec<Seen>,
    /// The number of queries from which the server was chosen.
    pub queries_first: u64,
    pub is_anonymised: bool,
    /// Packets with an earlier time than the one before in the same capture, and by how much at most.
    pub times_backwards: u64,
    pub back_max_ns: i64,
    /// What was not read, by its numbers.
    pub unread: Unread,
    /// Queries that only answers tell of.
    pub from_answers: u64,
    pub ledger: Accounting,
    pub stream: Written,
}

/// The summary for people.
pub fn text(summary: &Summary) -> String {
    let Summary { ledger, stream, .. } = summary;
    let mut lines = vec![headline(summary)];
    let mut row = |name: &str, parts: &[(u64, &str)]| {
        let parts: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        if !parts.is_empty() {
            lines.push(format!("  {name:<12}{}", parts.join(", ")));
        }
    };
    let packets = &ledger.packets;
    row(
        "packets",
        &[
            (packets.read, "read"),
            (packets.datagrams, "datagrams"),
            (packets.fragments, "fragments"),
            (packets.unknown_link, "with an unknown link layer"),
            (packets.not_ip, "not IP"),
            (packets.malformed, "malformed"),
        ],
    );
    let fragments = &ledger.fragments;
    row(
        "fragments",
        &[
            (fragments.used, "put together"),
            (fragments.repeated, "repeated"),
            (fragments.incomplete, "of incomplete datagrams"),
            (fragments.overlapping, "overlapping"),
            (fragments.malformed, "malformed"),
        ],
    );
    let datagrams = &ledger.datagrams;
    row(
        "datagrams",
        &[
            (datagrams.udp, "messages over UDP"),
            (datagrams.tcp_segments, "TCP segments to a server"),
            (datagrams.tcp_answers, "TCP segments from a server"),
            (datagrams.other_protocol, "neither UDP nor TCP"),
            (datagrams.other_port, "of other ports"),
            (datagrams.cut, "cut by the capture"),
            (datagrams.malformed, "malformed"),
        ],
    );
    let segments = &ledger.tcp_segments;
    row(
        "segments",
        &[
            (segments.used, "with messages"),
            (segments.empty, "empty"),
            (segments.repeated, "repeated"),
            (segments.behind_hole, "after a hole"),
            (segments.without_begin, "without the start of their connection"),
            (segments.unusable, "unusable"),
            (segments.connections, "connections"),
            (segments.messages_cut, "messages cut"),
            (segments.holes, "holes"),
            (segments.missing_bytes, "bytes missing in them"),
        ],
    );
    let messages = &ledger.messages;
    row(
        "messages",
        &[
            (messages.records, "recorded"),
            (messages.kept, "queries kept"),
            (messages.answers, "answers"),
            (messages.after_truncation, "queries over TCP after truncated answers"),
            (messages.upstream, "queries of the server itself"),
            (messages.other_server, "queries to other servers"),
            (messages.other_operation, "with another operation than QUERY"),
            (messages.other_port, "queries to other ports"),
            (messages.other_record, "records of other kinds"),
            (messages.malformed, "malformed"),
            (messages.not_in_share, "from clients that are left out"),
            (messages.outside_cut, "outside --cut"),
        ],
    );
    row(
        "stream",
        &[(stream.queries, "queries"), (stream.clients, "clients"), (stream.retransmissions, "retransmissions")],
    );
    let unread = summary.unread.text();
    if !unread.is_empty() {
        lines.push(format!("  {:<12}{unread}", "not read"));
    }
    lines.extend(notes(summary).into_iter().map(|note| format!("  note: {note}")));
    lines.join("\n") + "\n"
}

fn headline(summary: &Summary) -> String {
    let servers = summary.servers.join(", ");
    let seconds = summary.stream.duration_ns as f64 / 1e9;
    let items: u64 = summary.captures.iter().map(|capture| capture.items).sum();
    let items_per_s = items as f64 / (summary.elapsed_ns.max(1) as f64 / 1e9);
    let (items, items_per_s) = (grouped(items), grouped(items_per_s as u64));
    if summary.stream.queries == 0 {
        return format!("no query in {items} packets or records");
    }
    format!(
        "{} queries to {servers} in {seconds:.3} s, from {items} packets or records ({items_per_s}/s)",
        grouped(summary.stream.queries),
    )
}

/// What a reader must know before using the stream.
fn notes(summary: &Summary) -> Vec<String> {
    let mut found = Vec::new();
    if summary.servers.iter().any(|server| *server == NO_ADDRESS.to_string()) {
        found.push(
            "the capture does not say which server was asked: queries of all servers in it may be together; have the program \
             that wrote it write addresses"
                .into(),
        );
    } else if let [busiest, others @ ..] = summary.servers_seen.as_slice() {
        let share = 100.0 * busiest.queries as f64 / summary.queries_first.max(1) as f64;
        let others: Vec<_> =
            others.iter().take(3).map(|seen| format!("{} {}", seen.address, grouped(seen.queries))).collect();
        let others = if others.is_empty() { String::new() } else { format!("; others: {}", others.join(", ")) };
        found.push(format!(
            "{} was chosen because {share:.1} % of the first {} queries went there{others}. To choose another server, use --server",
            busiest.address,
            grouped(summary.queries_first)
        ));
    }
    for capture in &summary.captures {
        if let Some(ended) = &capture.ended {
            found.push(format!("{} is {ended}; everything before that was read", capture.path));
        }
        if let Some(dropped @ 1..) = capture.dropped {
            found.push(format!(
                "{}: according to the file, the capturing program dropped {} packets, perhaps with queries",
                capture.path,
                grouped(dropped)
            ));
        }
    }
    if summary.is_anonymised {
        found.push(
            "names, client subnets, cookies and padding are rewritten; times, types, lengths of names, and what one client \
             asked still may tell of someone"
                .into(),
        );
    }
    if summary.ledger.messages.from_servers > 0 {
        found.push(format!(
            "{} queries kept are from addresses that others ask, so they may be what a resolver asks for its clients; --server \
             names the one whose clients are wanted",
            grouped(summary.ledger.messages.from_servers)
        ));
    }
    if summary.stream.repeated_at_once * 20 > summary.ledger.messages.kept {
        found.push(format!(
            "{} queries came again within a millisecond: the capture has packets twice, as `tcpdump -i any` gives them on a \
             host with bridges or VLANs; capture on one interface",
            grouped(summary.stream.repeated_at_once)
        ));
    }
    if summary.stream.retransmissions > 0 && summary.ledger.messages.answers == 0 {
        found.push(format!(
            "no answer was captured: {} queries that came again within 5 s count as retransmissions, whether they had been \
             answered or not; capture both directions",
            grouped(summary.stream.retransmissions)
        ));
    }
    let OverUdp { queries, answers } = summary.ledger.over_udp;
    if summary.from_answers == 0 && answers > queries + queries / 50 + 10 {
        found.push(format!(
            "the server gave {} answers over UDP, and only {} queries to it were captured: the capture lost queries (tcpdump -B \
             gives it a larger buffer), or it sees some of them only on their way back",
            grouped(answers),
            grouped(queries)
        ));
    }
    let segments = &summary.ledger.tcp_segments;
    if segments.holes > 0 {
        found.push(format!(
            "{} bytes are missing from connections, in {} holes: queries in them are lost, and the capture dropped packets",
            grouped(segments.missing_bytes),
            grouped(segments.holes)
        ));
    }
    if summary.ledger.messages.after_truncation > 0 {
        found.push(format!(
            "{} queries over TCP followed truncated answers and were left out: `replay play` asks again by itself where an \
             answer is truncated",
            grouped(summary.ledger.messages.after_truncation)
        ));
    }
    if summary.from_answers > 0 {
        found.push(format!(
            "no query was written down, only answers: {} queries are made of these, with the time, the client and the question; \
             of EDNS only DO is known, and queries without an answer are missing",
            grouped(summary.from_answers)
        ));
    }
    if summary.times_backwards > 0 {
        found.push(backwards(summary));
    }
    let dns_ports = summary.unread.dns_text();
    if !dns_ports.is_empty() {
        found.push(format!("messages on other ports look like DNS: {dns_ports}. To read these ports, use --port"));
    }
    let counted = [
        (summary.stream.edns_left, "queries have more than EDNS after their question: they are unchanged"),
        (summary.stream.gaps, "gaps without a query were shortened to --gap: see `gaps_ns`"),
        (summary.ledger.datagrams.cut, "datagrams were cut by the capture: capture with tcpdump -s 0"),
    ];
    for (count, sentence) in counted {
        if count > 0 {
            found.push(format!("{} {sentence}", grouped(count)));
        }
    }
    found
}

/// What to do where no query was found, by what there was instead.
pub fn empty_hint(summary: &Summary) -> String {
    let Accounting { packets, datagrams, messages, .. } = &summary.ledger;
    let dns_ports = summary.unread.dns_text();
    if packets.read + messages.records == 0 {
        no_item(summary).into()
    } else if messages.outside_cut > 0 {
        "--cut contains no query: give times from the first query on, such as 60s..120s".into()
    } else if messages.not_in_share > 0 {
        "--keep-share contains no client that asked: raise it, or choose other clients with --seed".into()
    } else if messages.other_server > 0 {
        "queries went to other servers than --server: leave --server out to choose the busiest server".into()
    } else if messages.upstream > 0 {
        "there are only queries of the server itself: make it record the queries of its clients, or give another --server"
            .into()
    } else if !dns_ports.is_empty() {
        format!("messages on other ports look like DNS: give --port ({dns_ports})")
    } else if datagrams.cut > 0 {
        "datagrams were cut by the capture: capture with tcpdump -s 0".into()
    } else if messages.answers > messages.other_record {
        "there are only answers: capture both directions".into()
    } else {
        no_message(&summary.ledger, &summary.unread.text())
    }
}

/// Where nothing could be read at all.
fn no_item(summary: &Summary) -> &'static str {
    let is = |format: &str| summary.captures.iter().all(|capture| capture.format == format);
    if summary.captures.iter().any(|capture| capture.ended.is_some()) {
        "the file ends or is damaged before its first packet or record: see the note above"
    } else if is("dnstap") || is("C-DNS") {
        "the file has no record: check that the server was asked while it wrote the file, and that it writes client queries"
    } else {
        "the capture has no packet: tcpdump prints at its end how many it captured"
    }
}

/// Where packets or records were read, and none was a message that could be kept.
fn no_message(
    Accounting { packets, fragments, datagrams, tcp_segments, messages, .. }: &Accounting,
    unread: &str,
) -> String {
    let other = packets.unknown_link + packets.not_ip + datagrams.other_protocol + datagrams.other_port;
    let most = [
        (
            messages.malformed,
            "the messages cannot be read as DNS: check that they are complete, and that --port carries DNS",
        ),
        (messages.other_operation, "there are only messages such as NOTIFY and UPDATE: capture what clients ask"),
        (messages.other_record, "the records are neither client queries nor auth queries: make the server write these"),
        (tcp_segments.without_begin, "the connections began before the capture: start it before clients connect"),
        (
            fragments.incomplete,
            "datagrams are incomplete, because fragments are missing: capture without a filter for ports",
        ),
    ];
    match most.into_iter().max_by_key(|(count, _)| *count) {
        Some((count, sentence)) if count > 0 && count >= other => sentence.into(),
        _ if other > 0 => format!(
            "packets of other kinds were not read ({unread}): capture DNS over UDP and TCP, or have the server write \
             dnstap, which also has what is encrypted"
        ),
        _ => "the summary above shows what there was instead: give a capture of the queries of the server's clients"
            .into(),
    }
}

/// Times of a capture that run backwards: a little where packets come from several queues, and much where a clock was
/// set.
fn backwards(summary: &Summary) -> String {
    let (count, seconds) = (grouped(summary.times_backwards), summary.back_max_ns as f64 / 1e9);
    let text = format!("{count} packets are earlier than the one before, by at most {seconds:.6} s: they were sorted");
    if summary.back_max_ns < CLOCK_SET_NS {
        return text;
    }
    text + "; a clock was set back, or captures stand behind each other in one file, and now queries of both times are \
            mixed: cut the capture there (editcap -A, -B), and prepare the parts one by one"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{
        packet::{fragments, tcp},
        prepare::accounting::{Datagrams, Messages, Packets},
    };

    /// A change of a summary by a number, the highest number without a note, the lowest one with it, and the note.
    type Limit = (fn(&mut Summary, u64), u64, u64, &'static str);

    /// A change of a summary, and the hint that follows from it.
    type Step = (fn(&mut Summary), &'static str);

    /// A change of a ledger, and the hint that follows from it.
    type Most = (fn(&mut Accounting), &'static str);

    /// A ledger in which every count differs from its neighbours.
    fn ledger() -> Accounting {
        Accounting {
            packets: Packets { read: 1_000, datagrams: 2_000, fragments: 3, unknown_link: 4, not_ip: 5, malformed: 6 },
            fragments: fragments::Counts { read: 7, used: 1, repeated: 2, incomplete: 3, overlapping: 4, malformed: 5 },
            datagrams: Datagrams {
                whole: 8,
                reassembled: 9,
                udp: 1,
                tcp_segments: 2,
                tcp_answers: 3,
                other_protocol: 4,
                other_port: 5,
                cut: 6,
                malformed: 7,
            },
            tcp_segments: tcp::Counts {
                read: 11,
                empty: 2,
                used: 1,
                repeated: 3,
                behind_hole: 4,
                without_begin: 5,
                unusable: 6,
                connections: 7,
                messages_cut: 8,
                holes: 9,
                missing_bytes: 10,
            },
            messages: Messages {
                udp: 13,
                tcp: 14,
                records: 1,
                kept: 2,
                from_servers: 0,
                answers: 3,
                truncated: 15,
                after_truncation: 4,
                upstream: 5,
                other_server: 6,
                other_operation: 7,
                other_port: 8,
                other_record: 9,
                malformed: 10,
                not_in_share: 11,
                outside_cut: 12,
            },
            over_udp: OverUdp::default(),
        }
    }

    #[test]
    fn the_text_is_what_it_was() {
        let capture = |items| CaptureReport { items, ..CaptureReport::default() };
        let summary = Summary {
            elapsed_ns: 500_000_000,
            captures: vec![capture(1_500), capture(500)],
            servers: vec!["192.0.2.1".into(), "192.0.2.2".into()],
            ledger: ledger(),
            stream: Written {
                queries: 1_234,
                clients: 56,
                duration_ns: 1_500_000_000,
                retransmissions: 7,
                ..Written::default()
            },
            ..Summary::default()
        };
        let expected = "\
1,234 queries to 192.0.2.1, 192.0.2.2 in 1.500 s, from 2,000 packets or records (4,000/s)
  packets     1,000 read, 2,000 datagrams, 3 fragments, 4 with an unknown link layer, 5 not IP, 6 malformed
  fragments   1 put together, 2 repeated, 3 of incomplete datagrams, 4 overlapping, 5 malformed
  datagrams   1 messages over UDP, 2 TCP segments to a server, 3 TCP segments from a server, 4 neither UDP nor TCP, \
        5 of other ports, 6 cut by the capture, 7 malformed
  segments    1 with messages, 2 empty, 3 repeated, 4 after a hole, 5 without the start of their connection, \
        6 unusable, 7 connections, 8 messages cut, 9 holes, 10 bytes missing in them
  messages    1 recorded, 2 queries kept, 3 answers, 4 queries over TCP after truncated answers, \
        5 queries of the server itself, 6 queries to other servers, 7 with another operation than QUERY, \
        8 queries to other ports, 9 records of other kinds, 10 malformed, 11 from clients that are left out, \
        12 outside --cut
  stream      1,234 queries, 56 clients, 7 retransmissions
";
        let (table, notes) = text(&summary).split_once("  note: ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(table, expected);
        let begins: Vec<_> =
            notes.split("\n  note: ").map(|note| note.split(' ').take(4).collect::<Vec<_>>()).collect();
        let expected = ["10 bytes are missing", "4 queries over TCP", "6 datagrams were cut"];
        assert_eq!(begins, expected.map(|begin| begin.split(' ').collect::<Vec<_>>()));
        assert_eq!(text(&Summary::default()), "no query in 0 packets or records\n");
    }

    #[test]
    fn a_note_comes_only_above_its_limit() {
        let stream = |written: Written| Summary { stream: written, ..Summary::default() };
        let with = |change: fn(&mut Summary, u64), number| {
            let mut summary = stream(Written { queries: 1, ..Written::default() });
            change(&mut summary, number);
            text(&summary)
        };
        let cases: [Limit; 13] = [
            (
                |summary, count| {
                    summary.ledger.messages.kept = 100;
                    summary.stream.repeated_at_once = count;
                },
                5,
                6,
                "6 queries came again within a millisecond",
            ),
            (
                |summary, count| {
                    summary.ledger.messages.answers = 2 - count;
                    summary.stream.retransmissions = 3;
                },
                1,
                2,
                "no answer was captured: 3 queries that came again within 5 s",
            ),
            (
                |summary, count| summary.ledger.over_udp = OverUdp { queries: 100, answers: count },
                112,
                113,
                "the server gave 113 answers over UDP, and only 100 queries to it were captured",
            ),
            (
                |summary, count| {
                    summary.ledger.over_udp = OverUdp { queries: 0, answers: 11 };
                    summary.from_answers = 2 - count;
                },
                1,
                2,
                "the server gave 11 answers over UDP, and only 0 queries",
            ),
            (
                |summary, count| summary.ledger.tcp_segments.holes = count,
                0,
                1,
                "0 bytes are missing from connections, in 1 holes",
            ),
            (|summary, count| summary.ledger.messages.from_servers = count, 0, 1, "1 queries kept are from addresses"),
            (|summary, count| summary.from_answers = count, 0, 1, "only answers: 1 queries are made of these"),
            (|summary, count| summary.stream.edns_left = count, 0, 1, "1 queries have more than EDNS"),
            (|summary, count| summary.stream.gaps = count, 0, 1, "1 gaps without a query were shortened"),
            (|summary, count| summary.ledger.datagrams.cut = count, 0, 1, "1 datagrams were cut by the capture"),
            (|summary, count| summary.ledger.messages.after_truncation = count, 0, 1, "1 queries over TCP followed"),
            (
                |summary, count| {
                    (summary.times_backwards, summary.back_max_ns) = (count, 1_500_000_000);
                },
                0,
                1,
                "1 packets are earlier than the one before, by at most 1.500000 s: they were sorted\n",
            ),
            (
                |summary, count| (summary.times_backwards, summary.back_max_ns) = (1, count as i64),
                59_999_999_999,
                60_000_000_000,
                "by at most 60.000000 s: they were sorted; a clock was set back",
            ),
        ];
        for (change, below, above, part) in cases {
            assert!(!with(change, below).contains(part), "{part}: {}", with(change, below));
            assert!(with(change, above).contains(part), "{part}: {}", with(change, above));
        }
    }

    #[test]
    fn what_the_capturing_program_dropped_and_the_server_that_was_chosen_are_named() {
        let capture = |dropped| CaptureReport { path: "a.pcap".into(), dropped, ..CaptureReport::default() };
        let text_of = |dropped| text(&Summary { captures: vec![capture(dropped)], ..Summary::default() });
        assert!(!text_of(None).contains("dropped") && !text_of(Some(0)).contains("dropped"));
        assert!(text_of(Some(1)).contains("a.pcap: according to the file, the capturing program dropped 1 packets"));
        let seen = |number: u64, queries| Seen { address: format!("192.0.2.{number}"), queries };
        let all = [seen(1, 714), seen(2, 200), seen(3, 50), seen(4, 30), seen(5, 6)];
        let chosen = |count: usize| {
            let servers_seen = all[..count].to_vec();
            text(&Summary { servers_seen, queries_first: 1_000, ..Summary::default() })
        };
        for (count, others) in
            [(1, ""), (2, "; others: 192.0.2.2 200"), (5, "; others: 192.0.2.2 200, 192.0.2.3 50, 192.0.2.4 30")]
        {
            let expected =
                format!("192.0.2.1 was chosen because 71.4 % of the first 1,000 queries went there{others}. To");
            assert!(chosen(count).contains(&expected), "{}", chosen(count));
        }
        let nameless = Summary { servers: vec!["::".into()], servers_seen: all.to_vec(), ..Summary::default() };
        assert!(text(&nameless).contains("does not say which server was asked") && !text(&nameless).contains("chosen"));
    }

    /// The first reason that applies is the hint, in this order.
    #[test]
    fn where_there_is_no_query_the_first_reason_is_named() {
        let mut summary = Summary { captures: vec![CaptureReport::default()], ..Summary::default() };
        let steps: [Step; 15] = [
            (|_| (), "the capture has no packet"),
            (|summary| summary.captures[0].format = "dnstap", "the file has no record"),
            (|summary| summary.captures[0].format = "C-DNS", "the file has no record"),
            (|summary| summary.captures[0].ended = Some("cut".into()), "ends or is damaged before its first"),
            (|summary| summary.ledger.packets.read = 1, "the summary above shows what there was instead"),
            (|summary| summary.ledger.packets.not_ip = 1, "packets of other kinds were not read"),
            (|summary| summary.ledger.messages.other_record = 1, "neither client queries nor auth queries"),
            (|summary| summary.ledger.messages.answers = 1, "neither client queries nor auth queries"),
            (|summary| summary.ledger.messages.answers = 2, "there are only answers: capture both directions"),
            (|summary| summary.ledger.datagrams.cut = 1, "datagrams were cut by the capture"),
            (
                |summary| *summary.unread.dns_over_udp.entry(5_353).or_default() = 3,
                "messages on other ports look like DNS: give --port (UDP port 5353 3)",
            ),
            (|summary| summary.ledger.messages.upstream = 1, "only queries of the server itself"),
            (|summary| summary.ledger.messages.other_server = 1, "other servers than --server"),
            (|summary| summary.ledger.messages.not_in_share = 1, "--keep-share contains no client"),
            (|summary| summary.ledger.messages.outside_cut = 1, "--cut contains no query"),
        ];
        for (step, part) in steps {
            step(&mut summary);
            let hint = empty_hint(&summary);
            assert!(hint.contains(part), "{part}: {hint}");
        }
    }

    #[test]
    fn what_there_was_most_of_is_named() {
        let hint = |change: fn(&mut Accounting)| {
            let mut summary = Summary::default();
            summary.ledger.packets.read = 9;
            change(&mut summary.ledger);
            empty_hint(&summary)
        };
        let cases: [Most; 7] = [
            (|ledger| ledger.messages.malformed = 1, "the messages cannot be read as DNS"),
            (|ledger| ledger.messages.other_operation = 1, "only messages such as NOTIFY and UPDATE"),
            (|ledger| ledger.tcp_segments.without_begin = 1, "the connections began before the capture"),
            (|ledger| ledger.fragments.incomplete = 1, "because fragments are missing"),
            (
                |ledger| (ledger.messages.malformed, ledger.messages.other_operation) = (1, 2),
                "only messages such as NOTIFY and UPDATE",
            ),
            (
                |ledger| (ledger.messages.malformed, ledger.packets.unknown_link, ledger.packets.not_ip) = (2, 1, 1),
                "the messages cannot be read as DNS",
            ),
            (
                |ledger| {
                    (ledger.messages.malformed, ledger.packets.unknown_link, ledger.packets.not_ip) = (3, 1, 1);
                    (ledger.datagrams.other_protocol, ledger.datagrams.other_port) = (1, 1);
                },
                "packets of other kinds were not read",
            ),
        ];
        for (change, part) in cases {
            assert!(hint(change).contains(part), "{part}: {}", hint(change));
        }
    }
}
