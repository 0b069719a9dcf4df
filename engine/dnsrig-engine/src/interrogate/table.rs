//! The table for people.

use std::{env, io::IsTerminal};

use super::{
    answer::{Answer, Feature, Transport, Verdict},
    checks::XOT_CHECK,
};

/// How wide a line may be where the terminal's width is not known.
const WIDTH: usize = 120;

/// Whether signs are shown instead of words: on a terminal that shows UTF-8.
pub fn shows_signs(output: &impl IsTerminal) -> bool {
    // The first that is set decides (locale(7)).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    output.is_terminal() && locale.is_some_and(|it| it.to_ascii_uppercase().replace('-', "").contains("UTF8"))
}

/// A line a feature: its name, over what it was asked, the answer, and why. Without XoT, one line reports that.
pub fn text(features: &[Feature], signs: bool) -> String {
    let has_no_xot = features.iter().any(|it| it.name == XOT_CHECK && it.answer.verdict == Verdict::No);
    let is_left_out = |it: &Feature| has_no_xot && it.transport == Transport::Xot && it.name != XOT_CHECK;
    let features: Vec<_> = features.iter().filter(|it| !is_left_out(it)).collect();
    let rows: Vec<[String; 3]> = features
        .iter()
        .map(|it| [it.name.to_owned(), over(it.transport).to_owned(), said(&it.answer, signs)])
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let indent = widths.iter().sum::<usize>() + 2 * widths.len();
    let line = |row: &[String; 3], detail: &str| {
        let cells: String = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        let broken = wrapped(detail, WIDTH.saturating_sub(indent)).join(&format!("\n{:indent$}", ""));
        format!("{cells}{broken}").trim_end().to_owned() + "\n"
    };
    rows.iter().zip(&features).map(|(row, feature)| line(row, &feature.answer.detail)).collect()
}

fn over(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "TCP",
        Transport::Xot => "XoT",
        Transport::Xoq => "XoQ",
    }
}

fn said(answer: &Answer, signs: bool) -> String {
    let verdict = match (answer.verdict, signs) {
        (Verdict::Yes, true) => "✔",
        (Verdict::No, true) => "✘",
        (Verdict::Partly, true) => "~",
        (Verdict::CannotTell, true) => "–",
        (Verdict::Yes, false) => "yes",
        (Verdict::No, false) => "no",
        (Verdict::Partly, false) => "partly",
        (Verdict::CannotTell, false) => "unknown",
    };
    match &answer.value {
        Some(value) if signs => format!("{verdict} {value}"),
        Some(value) => format!("{verdict}: {value}"),
        None => verdict.to_owned(),
    }
}

/// The words of `text` in lines of at most `width` characters, if they are not longer themselves.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features() -> [Feature; 2] {
        let feature = |name, answer| Feature { name, transport: Transport::Tcp, answer };
        [
            feature("axfr", Answer::yes("all of 3 zones that were tried")),
            feature(
                "order",
                Answer::no("5 of 60 transfers ended before one that was asked for earlier").value("out-of-order"),
            ),
        ]
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            text(&features(), false),
            "axfr   TCP  yes               all of 3 zones that were tried\n\
             order  TCP  no: out-of-order  5 of 60 transfers ended before one that was asked for earlier\n"
        );
        assert!(text(&features(), true).contains("✘ out-of-order  5 of 60"));
    }

    #[test]
    fn that_there_is_no_xot_is_said_once() {
        let feature = |name, answer| Feature { name, transport: Transport::Xot, answer };
        let without =
            [feature("order", Answer::cannot_tell("no connection")), feature(XOT_CHECK, Answer::no("refused"))];
        assert_eq!(text(&without, false), "xot  XoT  no  refused\n");
        let with = [feature("order", Answer::cannot_tell("closed")), feature(XOT_CHECK, Answer::yes("served"))];
        assert_eq!(text(&with, false).lines().count(), 2);
    }

    #[test]
    fn long_sentences_go_on_below() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("exceedingly long", 4), ["exceedingly", "long"]);
    }
}
