//! `compare-answers`: the same queries to two servers, and how their answers differ.
//!
//! [`difference`] compares two answers; this file asks. A number of queries is outstanding at both servers at a time.
//! If answers differ, both servers are asked once again, so that what is different only for a moment is no difference;
//! a truncated answer is asked for again over TCP. Memory is bounded by the queries, the outstanding answers and the
//! examples.

mod asking;
mod difference;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    stats::grouped,
    stop::{INTERRUPTED, Stop},
    target::{self, Authority},
    units::{MINUTE, duration},
};
use dnsrig_dns::{header::RCODE, query::Question};
use serde::Serialize;

use self::{
    asking::{Asking, OUTSTANDING_MAX, is_truncated},
    difference::{Comparer, KINDS, Kind, show},
};
use super::{
    answer::rcode_name,
    queries::{Queries, QueryArguments},
    refused,
};

/// The most differences in the JSON.
const EXAMPLES_MAX: usize = 100;

/// The most differences in the text.
const SHOWN_MAX: usize = 10;

/// The exit code if answers differ.
const DIFFERENT: u8 = 1;

/// The exit code if nothing differs, but some queries had no answer from either server.
const UNDECIDED: u8 = 3;

/// The pause between two queries to a foreign server that the user vouches for.
const PAUSE_VOUCHED_NS: i64 = 10_000_000;

/// Ask two servers the same queries, and report the answers that differ.
///
/// Each different query is asked once, over UDP, as fast as both servers answer. The command compares the rcode, the
/// flags (AA, TC, RA, AD, CD), and the records and TTLs of the answer section. If the answer section is empty, the
/// authority section is compared. The order of records, compression and the case of letters do not matter. If answers
/// differ, both servers are asked once again, over TCP if an answer was truncated. A difference is reported only if it
/// appears twice. A truncated answer counts as missing if TCP fails. A difference is counted by the first of these
/// kinds that applies: an answer is missing or damaged; the rcode, the records (rrset) or the flags differ; a TTL
/// differs by more than --ttl-limit. The same answers are counted by rcode: two servers that refuse every query answer
/// alike.
///
/// Exit codes: 0 no difference, 1 differences (and other errors), 3 no difference, but queries without any answer, 2
/// bad input, 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  dnsrig-engine compare-answers 127.0.0.1:5300 127.0.0.1:5301 --queries queries.txt")]
pub struct Arguments {
    /// First server: an IP address and optionally a port
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    one: SocketAddr,
    /// Second server, which is compared with the first
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    other: SocketAddr,
    #[command(flatten)]
    queries: QueryArguments,
    /// Largest TTL difference to ignore, in seconds [default: 0; with --recursion-desired TTLs are not compared,
    /// because the TTLs of a cache count down]
    #[arg(long, value_name = "SECONDS", help_heading = "Comparison")]
    ttl_limit: Option<u32>,
    /// Number of queries that are outstanding at a time
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=OUTSTANDING_MAX), help_heading = "Comparison")]
    outstanding: u16,
    /// Time after which an answer counts as missing
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration(Duration::from_millis(1)..=MINUTE), help_heading = "Comparison")]
    timeout: Duration,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// IP address that you are allowed to load; may be repeated. Not needed for loopback, nor for 198.18.0.0/15 and
    /// 2001:2::/48 if packets stay on this machine. With it at most 100 queries per second are sent
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Vec<IpAddr>,
}

/// The numbers of queries by how their answers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Differences {
    missing: u64,
    damaged: u64,
    rcode: u64,
    rrset: u64,
    flags: u64,
    ttl: u64,
}

impl Differences {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Missing => &mut self.missing,
            Kind::Damaged => &mut self.damaged,
            Kind::Rcode => &mut self.rcode,
            Kind::Rrset => &mut self.rrset,
            Kind::Flags => &mut self.flags,
            Kind::Ttl => &mut self.ttl,
        }
    }
}

/// A query whose answers differ.
#[derive(Debug, Serialize)]
struct Example {
    /// Name and type.
    query: String,
    kind: Kind,
    /// The answers of both servers.
    answers: [String; 2],
}

/// The final event.
#[derive(Debug, Default, Serialize)]
struct Summary {
    interrupted: bool,
    start_ns: i64,
    elapsed_ns: i64,
    /// The number of different queries.
    queries: u64,
    same: u64,
    /// Queries with the same answers, by rcode.
    rcodes: BTreeMap<&'static str, u64>,
    /// Queries with the same answers that had to be asked again: the answers differed at first, or were truncated.
    asked_again: u64,
    /// Queries that neither server answered.
    unanswered: u64,
    different: u64,
    differences: Differences,
    /// The first [`EXAMPLES_MAX`].
    examples: Vec<Example>,
}

/// What became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Unanswered,
    Different(Kind),
}

/// Compares the answers to all queries.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let servers = [arguments.one, arguments.other];
    if arguments.queries.tsig.is_some() {
        return Err(refused("--tsig: queries for a comparison are not signed. Leave it out".into()));
    }
    let mut pause_ns = 0;
    for server in servers {
        let vouched = arguments.i_am_authorized.iter().copied().find(|address| *address == server.ip());
        if target::authorise(server.ip(), vouched)? == Authority::Vouched {
            pause_ns = PAUSE_VOUCHED_NS;
        }
    }
    let queries = arguments.queries.prepare()?;
    let stop = Stop::new(arguments.until_eof)?;
    let speaks = events::are_wanted(arguments.json);
    if speaks {
        Anchors::start()?;
    }
    let ttl_limit_s = arguments.ttl_limit.or((!arguments.queries.recursion_desired).then_some(0));
    let mut comparer = Comparer::new(ttl_limit_s);
    let mut summary = Summary { start_ns: clock::monotonic_ns(), ..Summary::default() };
    summary.queries = queries.distinct().0 as u64;
    let mut asking = Asking::new(servers, &queries, arguments.outstanding, arguments.timeout, pause_ns)?;
    summary.interrupted = asking.run(&stop, |index, is_again, answers| {
        let verdict = judge(&mut comparer, answers);
        let is_whole = !answers.into_iter().flatten().any(is_truncated);
        if !is_again && (verdict != Verdict::Same || !is_whole) {
            return true;
        }
        summary.count(&queries, index, is_again, answers, verdict);
        false
    })?;
    let now_ns = clock::monotonic_ns();
    summary.elapsed_ns = now_ns - summary.start_ns;
    events::say(text(&summary, servers));
    if speaks {
        events::summary(now_ns, &summary)?;
    }
    Ok(summary.exit_code())
}

fn judge(comparer: &mut Comparer, answers: [Option<&[u8]>; 2]) -> Verdict {
    match answers {
        [None, None] => Verdict::Unanswered,
        [Some(one), Some(other)] => comparer.compare([one, other]).map_or(Verdict::Same, Verdict::Different),
        _ => Verdict::Different(Kind::Missing),
    }
}

impl Summary {
    /// Counts what became of a query.
    fn count(
        &mut self,
        queries: &Queries,
        index: usize,
        is_again: bool,
        answers: [Option<&[u8]>; 2],
        verdict: Verdict,
    ) {
        match verdict {
            Verdict::Same => {
                self.same += 1;
                if let Some(flags) = answers[0].and_then(|answer| answer.get(3)) {
                    *self.rcodes.entry(rcode_name(flags & RCODE)).or_default() += 1;
                }
                self.asked_again += u64::from(is_again);
            }
            Verdict::Unanswered => self.unanswered += 1,
            Verdict::Different(kind) => {
                self.different += 1;
                *self.differences.of(kind) += 1;
                if self.examples.len() < EXAMPLES_MAX {
                    let query = name_and_type(queries.different(index));
                    self.examples.push(Example { query, kind, answers: answers.map(show) });
                }
            }
        }
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            _ if self.interrupted => ExitCode::from(INTERRUPTED),
            _ if self.different > 0 => ExitCode::from(DIFFERENT),
            _ if self.unanswered > 0 => ExitCode::from(UNDECIDED),
            _ => ExitCode::SUCCESS,
        }
    }
}

/// The name and the type that a query asks for.
fn name_and_type(query: &[u8]) -> String {
    Question::read(query).map_or_else(
        |_| "a query without a question".into(),
        |question| format!("{} {}", dnsrig_dns::name::whole(question.name()).fmt_with_dot(), question.rtype),
    )
}

/// The numbers of queries by rcode, for people.
fn by_rcode(rcodes: &BTreeMap<&str, u64>) -> String {
    let counts: Vec<_> = rcodes.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    if counts.is_empty() { "none".into() } else { counts.join(", ") }
}

/// The summary for people.
fn text(summary: &Summary, [one, other]: [SocketAddr; 2]) -> String {
    let Summary { queries, same, asked_again, unanswered, different, .. } = *summary;
    let mut differences = summary.differences;
    let interrupted = if summary.interrupted { ", then interrupted" } else { "" };
    let mut lines = vec![
        format!(
            "{one} and {other}: {} queries in {:.1} s{interrupted}",
            grouped(queries),
            summary.elapsed_ns as f64 / 1e9
        ),
        format!("  same answers            {} ({} of them only when asked again)", grouped(same), grouped(asked_again)),
        format!("    by rcode              {}", by_rcode(&summary.rcodes)),
        format!("  no answer from either   {}", grouped(unanswered)),
        format!("  different answers       {}", grouped(different)),
    ];
    let names = ["one is missing", "unreadable records", "rcode", "records", "flags", "TTL"];
    for (kind, name) in KINDS.into_iter().zip(names) {
        if *differences.of(kind) > 0 {
            lines.push(format!("    {name:<22}{}", grouped(*differences.of(kind))));
        }
    }
    for Example { query, answers: [first, second], .. } in summary.examples.iter().take(SHOWN_MAX) {
        lines.extend([format!("  {query}"), format!("    {one}: {first}"), format!("    {other}: {second}")]);
    }
    if different > SHOWN_MAX as u64 {
        lines.push(format!("  --json prints the first {EXAMPLES_MAX} differences"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(number: usize) -> Example {
        let answers = ["NOERROR".into(), format!("REFUSED {number}")];
        Example { query: format!("n{number}. A"), kind: Kind::Rcode, answers }
    }

    fn text_of(summary: &Summary) -> String {
        text(summary, ["192.0.2.1:53", "192.0.2.2:53"].map(|server| server.parse().unwrap()))
    }

    #[test]
    fn the_text_is_what_it_was() {
        let summary = Summary {
            elapsed_ns: 1_500_000_000,
            queries: 1_000,
            same: 900,
            rcodes: [("NXDOMAIN", 100), ("NOERROR", 800)].into(),
            asked_again: 5,
            unanswered: 10,
            different: 95,
            differences: Differences { missing: 1, damaged: 2, rcode: 3, rrset: 80, flags: 4, ttl: 5 },
            examples: vec![example(1)],
            ..Summary::default()
        };
        let expected = "\
192.0.2.1:53 and 192.0.2.2:53: 1,000 queries in 1.5 s
  same answers            900 (5 of them only when asked again)
    by rcode              NOERROR 800, NXDOMAIN 100
  no answer from either   10
  different answers       95
    one is missing        1
    unreadable records    2
    rcode                 3
    records               80
    flags                 4
    TTL                   5
  n1. A
    192.0.2.1:53: NOERROR
    192.0.2.2:53: REFUSED 1
  --json prints the first 100 differences
";
        assert_eq!(text_of(&summary), expected);
        let expected = "\
192.0.2.1:53 and 192.0.2.2:53: 0 queries in 0.0 s, then interrupted
  same answers            0 (0 of them only when asked again)
    by rcode              none
  no answer from either   0
  different answers       0
";
        assert_eq!(text_of(&Summary { interrupted: true, ..Summary::default() }), expected);
    }

    #[test]
    fn ten_differences_are_shown_and_a_hundred_are_kept() {
        for (different, shown, has_more) in [(1, 1, false), (10, 10, false), (11, 10, true), (101, 10, true)] {
            let mut summary = Summary::default();
            let queries = Queries::from_messages([vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]]);
            for _ in 0..different {
                summary.count(&queries, 0, true, [None, None], Verdict::Different(Kind::Ttl));
            }
            assert_eq!((summary.different, summary.differences.ttl), (different, different));
            assert_eq!(summary.examples.len() as u64, different.min(100));
            let text = text_of(&summary);
            assert_eq!(text.matches("\n  . A\n").count(), shown, "{text}");
            assert_eq!(text.contains("--json prints"), has_more);
        }
    }

    #[test]
    fn what_became_of_a_query_is_counted_and_is_the_exit_code() {
        let queries = Queries::from_messages([vec![0; 12]]);
        let refused = [0, 0, 0x80, 5];
        let code_of = |verdicts: &[Verdict], interrupted| {
            let mut summary = Summary { interrupted, ..Summary::default() };
            for verdict in verdicts {
                summary.count(&queries, 0, true, [Some(&refused[..]), None], *verdict);
            }
            (format!("{:?}", summary.exit_code()), summary)
        };
        let (unanswered, different) = (Verdict::Unanswered, Verdict::Different(Kind::Flags));
        for (verdicts, interrupted, code) in [
            (&[Verdict::Same][..], false, 0),
            (&[Verdict::Same, unanswered], false, 3),
            (&[unanswered, different], false, 1),
            (&[different], true, 130),
            (&[], true, 130),
        ] {
            assert_eq!(code_of(verdicts, interrupted).0, format!("{:?}", ExitCode::from(code)), "{verdicts:?}");
        }
        let (_, summary) = code_of(&[Verdict::Same, Verdict::Same, unanswered, different], false);
        assert_eq!((summary.same, summary.asked_again, summary.unanswered, summary.different), (2, 2, 1, 1));
        assert_eq!((summary.rcodes, summary.differences.flags), ([("REFUSED", 2)].into(), 1));
        assert_eq!(summary.examples[0].query, "a query without a question");
    }

    #[test]
    fn an_answer_from_one_server_alone_is_a_difference() {
        let mut comparer = Comparer::new(None);
        let answer = &[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0][..];
        for (answers, expected) in [
            ([None, None], Verdict::Unanswered),
            ([Some(answer), None], Verdict::Different(Kind::Missing)),
            ([None, Some(answer)], Verdict::Different(Kind::Missing)),
            ([Some(answer), Some(answer)], Verdict::Same),
        ] {
            assert_eq!(judge(&mut comparer, answers), expected);
        }
    }
}
