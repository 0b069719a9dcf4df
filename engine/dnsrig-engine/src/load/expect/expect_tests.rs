//! Expectations: what a file expects, and which answers are as expected.

use std::{path::Path, sync::Arc};

use dnsrig_dns::{testing::messages, writer::append_record};
use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::base::{Rtype, iana::Class};
use proptest::{prelude::*, sample::Index};

use super::{judge::*, *};
use crate::load::queries::{self, Made, file::Plan};

const QUERIES: &str =
    "www.z.example A\nWWW.Z.example A\nz.example MX\nno.z.example A\nz.example HTTPS\nz.example TYPE97\n";
const NOERROR: u8 = 0;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;

fn asked(text: &str) -> Arc<Queries> {
    Arc::new(queries::file::parse(text.as_bytes(), Path::new("file"), &Plan::default(), Made::default()).unwrap())
}

fn expected(lines: &[u8]) -> Result<Box<[Expected]>, String> {
    file::parse(lines, Path::new("file"), &asked(QUERIES)).map_err(|failure| failure.sentence)
}

fn judge(lines: &str) -> Judge {
    Judge::new(Arc::new(Expectation::Listed(expected(lines.as_bytes()).unwrap())), asked(QUERIES))
}

/// The answer to the query at a position, with records of `rtype` whose owner is a pointer to the question.
fn answer(position: usize, rtype: Rtype, records: &[&[u8]]) -> Vec<u8> {
    let mut message = asked(QUERIES).message(position).to_vec();
    message[2] |= 0x80;
    message[7] = records.len() as u8;
    records.iter().for_each(|data| append_record(&mut message, &[0xc0, 12], rtype, Class::IN, 60, data));
    message
}

impl Judge {
    fn judge_message(&mut self, position: u32, message: &[u8], rcode: u8) -> Judged {
        self.judge(position, Answer { message, rcode, truncated: message[2] & 2 != 0 })
    }
}

#[test]
fn each_kind_of_wrong_answer_is_found() {
    let mut judge = judge(
        "# expected\nwww.z.example A 192.0.2.1\nwww.z.EXAMPLE. A 192.0.2.2\nz.example MX 10 mail.z.example\n\
         no.z.example A NXDOMAIN\nz.example HTTPS NODATA\n",
    );
    let (one, two) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let good = answer(0, Rtype::A, &[&two, &one]);
    for position in [0, 1] {
        assert_eq!(judge.judge_message(position, &good, NOERROR), Judged::Right, "any order, any case");
    }
    let wrong = |judge: &mut Judge, position, message: &[u8], rcode, kind| {
        assert_eq!(judge.judge_message(position, message, rcode), Judged::Wrong(kind));
    };
    wrong(&mut judge, 0, &good, SERVFAIL, WrongKind::Rcode);
    wrong(&mut judge, 0, &answer(0, Rtype::A, &[]), NOERROR, WrongKind::Empty);
    wrong(&mut judge, 0, &answer(0, Rtype::AAAA, &[&[0; 16]]), NOERROR, WrongKind::Empty);
    for other in [&[&one[..]][..], &[&one, &one], &[&one, &[192, 0, 2, 3]], &[&one, &two, &two]] {
        wrong(&mut judge, 0, &answer(0, Rtype::A, other), NOERROR, WrongKind::Rrset);
    }
    let mut truncated = answer(0, Rtype::A, &[]);
    truncated[2] |= 2;
    wrong(&mut judge, 0, &truncated, NOERROR, WrongKind::Truncated);
    wrong(&mut judge, 0, &good[..good.len() - 1], NOERROR, WrongKind::Damaged);
    // The host of the mail server is compressed: mail, and a pointer to the question.
    let mail = |label: &[u8]| [&[0, 10, 4][..], label, &[0xc0, 12]].concat();
    assert_eq!(judge.judge_message(2, &answer(2, Rtype::MX, &[&mail(b"MaIl")]), NOERROR), Judged::Right);
    wrong(&mut judge, 2, &answer(2, Rtype::MX, &[&mail(b"main")]), NOERROR, WrongKind::Rrset);
    assert_eq!(judge.judge_message(3, &answer(3, Rtype::A, &[]), NXDOMAIN), Judged::Right);
    wrong(&mut judge, 3, &answer(3, Rtype::A, &[&one]), NOERROR, WrongKind::Rcode);
    assert_eq!(judge.judge_message(4, &answer(4, Rtype::A, &[&one]), NOERROR), Judged::Right, "no record of the type");
    wrong(&mut judge, 4, &answer(4, Rtype::HTTPS, &[&[0, 1, 0]]), NOERROR, WrongKind::Rrset);
    // 65 and 97 are letters in two cases, and two types.
    assert_eq!(judge.judge_message(5, &answer(5, Rtype::A, &[]), SERVFAIL), Judged::Unlisted);
}

#[test]
fn the_first_wrong_answers_are_named() {
    let mut judge = judge("www.z.example A NXDOMAIN\n");
    for _ in 0..2 * EXAMPLES_MAX {
        judge.judge_message(1, &answer(1, Rtype::A, &[]), SERVFAIL);
    }
    let examples = judge.take_examples();
    assert_eq!(examples.len(), EXAMPLES_MAX);
    assert_eq!(examples[0].text(), "WWW.Z.example. A: SERVFAIL");
    assert!(judge.take_examples().is_empty());
}

#[test]
fn an_answer_with_data_has_a_record_and_no_error() {
    let mut judge = Judge::new(Arc::new(Expectation::NoerrorNonempty), asked(QUERIES));
    let good = answer(0, Rtype::CNAME, &[b"\0"]);
    let empty = answer(0, Rtype::A, &[]);
    let mut truncated = good.clone();
    truncated[2] |= 2;
    for (message, rcode, judged) in [
        (&good, NOERROR, Judged::Right),
        (&good, SERVFAIL, Judged::Wrong(WrongKind::Rcode)),
        (&empty, NXDOMAIN, Judged::Wrong(WrongKind::Rcode)),
        (&empty, NOERROR, Judged::Wrong(WrongKind::Empty)),
        (&truncated, NOERROR, Judged::Wrong(WrongKind::Truncated)),
    ] {
        assert_eq!(judge.judge_message(0, message, rcode), judged);
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_the_reason() {
    for (lines, reason) in [
        ("www.z.example A\n", "line 1: `www.z.example A` has no expected answer after the type"),
        ("www.z.example\n", "has no expected answer"),
        ("\nwww.z.example X NOERROR", "line 2: `X` is no type"),
        ("www.z.example A 192.0.2.256", "`192.0.2.256` is not valid data for type A"),
        ("www.z.example A 192.0.2.1 192.0.2.2", "is not valid data for type A"),
        ("www..example A NOERROR", "an empty label"),
        ("www.z.example A NOERROR\nwww.z.example A 192.0.2.1", "line 2: another line for this name and type"),
        ("www.z.example A NODATA\nwww.z.example A NXDOMAIN", "contradicts"),
        ("www.z.example A (192.0.2.1", "line 1: `(192.0.2.1` has parentheses"),
        ("www.z.example TXT \"a\"b", "needs a space beside each text in quotes"),
        ("other.example A 192.0.2.1", "no line of file matches a query"),
        ("", "no line of file"),
        ("z.example MX 1 a\nz.example MX 2 a\nZ.example MX 1 A.", "line 3: an earlier line has the same record"),
        ("www.z.example ANY 192.0.2.1", "only an rcode can be expected for type ANY"),
        ("www.z.example ANY NODATA", "only an rcode"),
    ] {
        let sentence = expected(lines.as_bytes()).unwrap_err();
        assert!(sentence.contains(reason), "{lines}: {sentence}");
    }
    assert!(expected(b"www.z.example A NXDOMAIN\nwww.z.example A NXDOMAIN\n").is_ok());
    assert!(expected(b"z.example MX 1 a\nz.example ANY NOTIMP\n").is_ok());
    // In quotes, or with a dot, the word is data.
    assert!(expected(b"www.z.example TXT \"REFUSED\"\nz.example CNAME NODATA.\nz.example MX 1 a").is_ok());
}

#[test]
fn harmed_files_are_expectations_or_name_a_line() {
    let corpus = [
        &b"# comment\nwww.z.example A 192.0.2.1\nwww.z.example A 192.0.2.2 ; comment\n"[..],
        b"z.example MX 10 mail.example\nz.example TXT \"a b\" c\\\"\nz.example TYPE97 \\# 2 aabb\n",
        b"no.z.example A NXDOMAIN\r\nz.example HTTPS 1 . alpn=\"h2,h3\" port=8443\nz.example SOA a b 1 2 3 4 5\n",
        b"z.example HTTPS NODATA\nz.example RRSIG A 8 1 60 20300101000000 20200101000000 1 example. AAAA\n",
    ];
    fuzz(2_000, &corpus.map(<[u8]>::to_vec), |bytes, _| {
        let _ = expected(bytes);
    });
}

#[test]
fn harmed_answers_are_judged() {
    let mut corpus = messages();
    corpus.push(answer(0, Rtype::A, &[&[192, 0, 2, 1]]));
    corpus.push(answer(2, Rtype::MX, &[b"\0\x0a\x04mail\xc0\x0c", b"\0\x0b\0"]));
    let mut judge = judge("www.z.example A 192.0.2.1\nz.example MX 10 mail.z.example\nz.example MX 11 .\n");
    fuzz(5_000, &corpus, |bytes, random| {
        if bytes.len() > 2 {
            let judged = judge.judge_message(random.below(6) as u32, bytes, NOERROR);
            let is_empty = bytes.get(6..8).is_none_or(|count| count == [0, 0]);
            assert!(!is_empty || judged != Judged::Right, "each expectation here has records: {judged:?}");
        }
        judge.take_examples();
    });
}

proptest! {
    #![proptest_config(inputs(300))]

    /// Records in another order, with other TTLs, and names in another case or compressed, are the same. Any other
    /// record, or one more or less, is a difference.
    #[test]
    fn an_rrset_is_the_same_in_any_form(
        hosts in proptest::collection::btree_set("[a-z]{1,9}", 1..6), turn: Index, upper: bool, other: Index,
    ) {
        let hosts: Vec<_> = hosts.into_iter().collect();
        let lines: String = hosts.iter().map(|host| format!("z.example MX 10 {host}.z.example\n")).collect();
        let mut judge = judge(&lines);
        let data = |host: &String, upper: bool| {
            let host = if upper { host.to_uppercase() } else { host.clone() };
            let plain = [&b"\x01Z\x07example\0"[..], b"\xc0\x0c"][usize::from(upper)];
            [&[0, 10, host.len() as u8], host.as_bytes(), plain].concat()
        };
        let mut records: Vec<_> = hosts.iter().map(|host| data(host, upper)).collect();
        records.rotate_left(turn.index(hosts.len()));
        let as_answer = |records: &[Vec<u8>]| {
            answer(2, Rtype::MX, &records.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        prop_assert_eq!(judge.judge_message(2, &as_answer(&records), NOERROR), Judged::Right);
        let place = other.index(records.len());
        let mut fewer = records.clone();
        fewer.remove(place);
        let kind = if fewer.is_empty() { WrongKind::Empty } else { WrongKind::Rrset };
        prop_assert_eq!(judge.judge_message(2, &as_answer(&fewer), NOERROR), Judged::Wrong(kind));
        records[place][1] ^= 1;
        prop_assert_eq!(judge.judge_message(2, &as_answer(&records), NOERROR), Judged::Wrong(WrongKind::Rrset));
    }
}
