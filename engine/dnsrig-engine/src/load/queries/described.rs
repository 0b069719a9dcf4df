//! What queries are, for `--dry-run`.

use std::{collections::BTreeMap, fmt::Write as _};

use dnsrig_core::stats::grouped;
use dnsrig_dns::{
    header::{Header, RD},
    query::{Asked, Question},
};
use domain::base::iana::Rtype;
use serde::Serialize;

use super::{Queries, format::Format};

/// The numbers of queries by what they have. A message that is asked several times counts each time.
#[derive(Debug, Serialize)]
pub struct Described {
    /// How the file was read; none for a list of zones.
    format: Option<Format>,
    queries: usize,
    /// Messages that are prepared, and their bytes.
    messages: usize,
    message_bytes: usize,
    types: BTreeMap<String, u64>,
    with_edns: u64,
    with_dnssec_ok: u64,
    with_recursion_desired: u64,
    /// The number of different queries of which nothing is expected, if something is expected of any.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlisted: Option<usize>,
    skipped: u64,
    /// The first of them, each with its place and the reason.
    first_skipped: Vec<String>,
}

impl Described {
    pub fn new(queries: &Queries, unlisted: Option<usize>) -> Self {
        let (messages, message_bytes) = queries.distinct();
        let mut types = BTreeMap::<u16, u64>::new();
        let (mut with_edns, mut with_dnssec_ok, mut with_recursion_desired) = (0, 0, 0);
        for at in 0..queries.len() {
            let message = queries.message(at);
            if let Ok(question) = Question::read(message) {
                *types.entry(question.rtype.to_int()).or_default() += 1;
            }
            if let Some(edns) = Asked::read(message).and_then(|asked| asked.edns) {
                with_edns += 1;
                with_dnssec_ok += u64::from(edns.dnssec_ok);
            }
            let flags = Header::read(message).map_or(0, |header| header.flags);
            with_recursion_desired += u64::from(flags & RD != 0);
        }
        let named = types.into_iter().map(|(rtype, count)| (Rtype::from_int(rtype).to_string(), count));
        Described {
            format: queries.format,
            queries: queries.len(),
            messages,
            message_bytes,
            types: named.collect(),
            with_edns,
            with_dnssec_ok,
            with_recursion_desired,
            unlisted,
            skipped: queries.skipped.count,
            first_skipped: queries.skipped.first.clone(),
        }
    }

    /// The text for people.
    pub fn text(&self) -> String {
        let mut text = format!("{} queries", grouped(self.queries as u64));
        let mut types: Vec<_> = self.types.iter().collect();
        types.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let share = |count: u64| 100.0 * count as f64 / self.queries as f64;
        for (place, (rtype, count)) in types.iter().enumerate() {
            let _ = write!(text, "{}{:.3} % {rtype}", if place == 0 { ": " } else { ", " }, share(**count));
        }
        let _ = write!(
            text,
            "\n{:.3} % with EDNS, {:.3} % with DO, {:.3} % with RD; {} messages of {} bytes are prepared\n",
            share(self.with_edns),
            share(self.with_dnssec_ok),
            share(self.with_recursion_desired),
            grouped(self.messages as u64),
            grouped(self.message_bytes as u64)
        );
        if let Some(unlisted) = self.unlisted {
            let listed = grouped((self.messages - unlisted) as u64);
            let _ = writeln!(text, "{listed} of the different queries have an expectation");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load::queries::{
        Made,
        file::{Plan, parse},
    };

    #[test]
    fn queries_are_counted_by_type_and_flags() {
        let plan = Plan { skips_bad_lines: true, ..Plan::default() };
        let made = Made { recursion_desired: true, ..Made::default() };
        let text = b"a A\nb A E\nc TYPE65280 D\nd\n";
        let queries = parse(&text[..], Path::new("file"), &plan, made).unwrap();
        let found = Described::new(&queries, Some(1));
        assert_eq!((found.queries, found.messages, found.skipped), (3, 3, 1));
        assert_eq!(found.types, BTreeMap::from([("A".into(), 2), ("TYPE65280".into(), 1)]));
        assert_eq!((found.with_edns, found.with_dnssec_ok, found.with_recursion_desired), (2, 1, 3));
        let lines = "\
3 queries: 66.667 % A, 33.333 % TYPE65280
66.667 % with EDNS, 33.333 % with DO, 100.000 % with RD; 3 messages of 79 bytes are prepared
";
        assert_eq!(found.text(), format!("{lines}2 of the different queries have an expectation\n"));
        assert_eq!(Described::new(&queries, None).text(), lines);
    }
}
