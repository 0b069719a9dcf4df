//! Files of queries, and other files.

use dnsrig_dns::{
    edns::add_keepalive,
    query::{self, soa_query},
};
use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::base::{Message, ToName};
use proptest::prelude::*;

use super::*;
use crate::{
    load::queries::{
        asked,
        client_edns::{ClientEdns, Wanted},
    },
    query_stream::{Record, StreamWriter, Transport},
};

fn parse_bytes(bytes: &[u8]) -> Result<Queries, Failure> {
    parse(bytes, Path::new("file"), &Plan::default(), Made::default())
}

fn questions(text: &str) -> Vec<String> {
    asked(&parse_bytes(text.as_bytes()).unwrap())
}

fn fault(bytes: &[u8]) -> String {
    parse_bytes(bytes).unwrap_err().to_string()
}

#[test]
fn a_line_is_a_name_and_a_type() {
    let text = "; comment\n\n# comment\nwww.example A\n  b.example.\taaaa \r\n. NS\n\\035x TYPE65\na\\ b any";
    assert_eq!(questions(text), ["www.example A", "b.example AAAA", ". NS", "#x HTTPS", "a\\ b ANY"]);
}

#[test]
fn equal_lines_stay_apart_and_the_order_begins_anew() {
    let queries = parse_bytes(b"a A\nbb A\na A\n").unwrap();
    assert_eq!((queries.len(), queries.distinct()), (3, (3, 2 * 19 + 20)));
    assert_eq!(queries.bytes_max(), 20);
    assert_eq!(queries.message(0), queries.message(2));
    for at in 0..3 {
        assert_eq!(queries.message(at), queries.message(at + 3));
        assert_eq!(queries.message(at), queries.message(at + 3000));
    }
    assert_ne!(queries.message(1), queries.message(2));
}

#[test]
fn an_unreadable_line_is_named() {
    assert_eq!(
        fault(b"a A\nb\n"),
        "file, line 2: no type after the name `b`: a line needs a name and a type. For a file of names alone, give --types, \
         such as --types A,AAAA"
    );
    assert_eq!(fault(b"\n\na B"), "file, line 3: `B` is no type, such as A, HTTPS or TYPE65");
    assert_eq!(
        fault(b"a A IN"),
        "file, line 1: `IN` after the type: a line is a name and a type, and perhaps a flag \
         of kxdpgun, E (EDNS) or D (EDNS with DO)"
    );
    assert_eq!(fault(b"a..b A"), "file, line 1: `a..b`: an empty label: a dot where none may stand");
    assert_eq!(fault(b"a IN A"), "file, line 1: `IN` is no type, such as A, HTTPS or TYPE65");
    assert!(fault(b"a AXFR").contains("use `dnsrig transfer`"));
    assert!(parse_bytes(b"a B").unwrap_err().hint.contains("www.example A"));
}

#[test]
fn what_other_tools_read_is_refused_with_what_does_it_here() {
    for decorated in ["http://a.example/ A\n", "a.example, A\n", "\"a.example\" A\n"] {
        assert!(fault(decorated.as_bytes()).contains("for example with `"), "{decorated}");
    }
    for ranked in ["1,a.example\n", "1,a.example A\n"] {
        assert!(fault(ranked.as_bytes()).contains("`1,a.example` is a rank and a name"), "{ranked}");
    }
    assert!(fault(b"a\\b\\300 A").contains("`a\\b\\300`"), "each backslash once: {}", fault(b"a\\b\\300 A"));
}

#[test]
fn a_mark_at_the_beginning_of_a_line_is_no_part_of_its_name() {
    assert_eq!(questions("\u{feff}www.example A\n"), ["www.example A"]);
    // Two files, one behind the other.
    assert_eq!(questions("\u{feff}a A\n\u{feff}b A\n"), ["a A", "b A"]);
    assert_eq!(questions("\u{feff}; comment\nwww.example A\n"), ["www.example A"]);
    assert!(fault(b"\xff\xfew\0").contains("iconv -f UTF-16"));
}

#[test]
fn what_only_dnsperf_reads_is_refused() {
    for block in ["send\n", "add www 300 A 192.0.2.1\n", "DELETE www A 192.0.2.1\n", "require a\n"] {
        // `require a` has two words, of which the second is no type but `A`.
        let readable = block.starts_with("require");
        assert_eq!(parse_bytes(block.as_bytes()).is_ok(), readable, "{block}");
        assert!(fault(&[block.as_bytes(), b"send"].concat()).contains("a dynamic update"), "{block}");
    }
}

#[test]
fn a_line_has_a_limit() {
    let line = |length: usize| [&vec![b';'; length - 1][..], b"\n"].concat();
    let with_query = |length| [line(length), b"a A".to_vec()].concat();
    assert!(parse_bytes(&with_query(LINE_BYTES_MAX)).is_ok());
    assert!(fault(&with_query(LINE_BYTES_MAX + 1)).contains("line 1: a line of more than 65536 bytes"));
}

#[test]
fn nothing_to_ask_is_an_error() {
    assert_eq!(fault(b"; nothing\n\n"), "file contains no query");
    for path in ["/", "/nonexistent"] {
        let failure = read(Path::new(path), &Plan::default(), Made::default()).unwrap_err();
        assert!(failure.sentence.starts_with(&format!("cannot read {path}: ")), "{failure}");
    }
}

#[test]
fn more_types_than_are_remembered_are_read_as_well() {
    let text: String = (1..100).map(|number| format!("a TYPE{number}\n")).collect();
    let queries = parse_bytes(text.as_bytes()).unwrap();
    for at in 0..99 {
        assert_eq!(query::question(queries.message(at)), [1, b'a', 0, 0, at as u8 + 1, 0, 1]);
    }
}

/// Names and types, with what is likely to be wrong in them.
fn lines() -> impl Strategy<Value = String> {
    let name = "[a-zA-Z0-9.\\\\ _*;#-]{0,70}";
    let qtype = prop_oneof!["A|AAAA|ns|TYPE[0-9]{1,5}|AXFR", "[A-Z]{1,5}", ""];
    proptest::collection::vec((name, qtype, prop_oneof![Just("\n"), Just("\r\n"), Just(" x\n")]), 0..4)
        .prop_map(|lines| lines.into_iter().map(|(name, qtype, end)| format!("{name} {qtype}{end}")).collect())
}

/// How files are read in properties: with EDNS in all queries, and perhaps with lines left out.
fn read_any(bytes: &[u8], skips_bad_lines: bool, format: Option<Format>) -> Result<Queries, Failure> {
    let subnets = ["192.0.2.0/24".parse().unwrap()];
    let wanted = Wanted { cookie: true, subnets: &subnets, padded: true, ..Wanted::default() };
    let edns = ClientEdns::new(1232, 1.0, &wanted).unwrap();
    let plan = Plan { format, skips_bad_lines, ..Plan::default() };
    parse(bytes, Path::new("file"), &plan, Made { recursion_desired: true, edns, seed: 1 })
}

fn any_bytes_are_queries_or_an_error(bytes: &[u8]) {
    match read_any(bytes, false, Some(Format::Text)) {
        Ok(queries) => {
            for at in 0..queries.len() {
                let wire = queries.message(at);
                let message = Message::from_octets(wire).unwrap();
                let question = message.sole_question().unwrap();
                assert!(message.header().rd() && message.opt().is_some());
                assert!(wire.len().is_multiple_of(128));
                let mut expected = question.qname().to_vec().into_octets();
                expected.extend(question.qtype().to_int().to_be_bytes());
                expected.extend([0, 1]);
                assert_eq!(query::question(wire), expected);
                assert!(wire.len() <= queries.bytes_max());
            }
        }
        Err(failure) => match failure.sentence.strip_prefix("file, line ").and_then(|rest| rest.split_once(':')) {
            Some((line, _)) => {
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
                assert!((1..=lines).contains(&line.parse().unwrap()));
            }
            None => assert_eq!(failure.sentence, "file contains no query"),
        },
    }
}

/// With bad lines left out, every file is read, and good and bad lines are all its lines.
fn any_bytes_are_read_without_their_bad_lines(bytes: &[u8]) {
    let (found, skipped) = match read_any(bytes, true, Some(Format::Text)) {
        Ok(queries) => (queries.len() as u64, queries.skipped().count),
        Err(failure) => {
            let rest = failure.sentence.strip_prefix("file contains no query").expect("any line can be left out");
            (0, rest.split(' ').nth(2).map_or(0, |count| count.parse().unwrap()))
        }
    };
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    assert!(found + skipped <= lines, "{found} and {skipped} of {lines}");
}

/// A name alone is asked for each type.
fn any_bytes_are_names_for_all_types(bytes: &[u8]) {
    let plan = Plan { types: vec![Rtype::A, Rtype::AAAA], skips_bad_lines: true, ..Plan::default() };
    let Ok(queries) = parse(bytes, Path::new("file"), &plan, Made::default()) else { return };
    if !queries.are_complete() {
        let types = [Rtype::A, Rtype::AAAA].iter().cycle();
        let found = (0..queries.len()).map(|at| query::Question::read(queries.message(at)).unwrap().rtype);
        assert!(queries.len().is_multiple_of(2) && found.eq(types.copied().take(queries.len())));
    }
}

/// Whatever is taken from a file of complete queries is a query for another library, too.
fn any_bytes_are_complete_queries_or_an_error(bytes: &[u8]) {
    for format in [None, Some(Format::Binary)] {
        let Ok(queries) = read_any(bytes, true, format) else { continue };
        if !queries.are_complete() {
            continue;
        }
        for at in 0..queries.len() {
            let message = Message::from_octets(queries.message(at)).unwrap();
            let header = message.header();
            assert!(!header.qr() && header.opcode().to_int() == 0 && header.id() == 0);
            message.sole_question().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(inputs(5_000))]

    /// 5,000 files of any bytes.
    #[test]
    fn any_bytes_are_queries_or_name_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        any_bytes_are_queries_or_an_error(&bytes);
        any_bytes_are_read_without_their_bad_lines(&bytes);
    }

    /// 5,000 files that look like files of queries.
    #[test]
    fn any_text_is_queries_or_names_a_line(text in lines()) {
        any_bytes_are_queries_or_an_error(text.as_bytes());
        any_bytes_are_read_without_their_bad_lines(text.as_bytes());
    }

    /// 5,000 names and types: what was written is what is asked.
    #[test]
    fn what_is_written_is_asked(
        labels in proptest::collection::vec("[a-z0-9_-]{1,20}", 1..6), number in 1_u16.., dot: bool,
    ) {
        prop_assume!(number != 251 && number != 252);
        let name = labels.join(".");
        let queries = parse_bytes(format!("{name}{} TYPE{number}", if dot { "." } else { "" }).as_bytes()).unwrap();
        let message = Message::from_octets(queries.message(0)).unwrap();
        let question = message.sole_question().unwrap();
        prop_assert_eq!((question.qname().to_string(), question.qtype().to_int()), (name, number));
    }
}

/// Lines that are right, with harm done to them.
#[test]
fn harmed_lists_are_queries_or_name_a_line() {
    let corpus = [
        &b"; comment\n\nwww.example A\n  b.example.\taaaa \r\n. NS\n\\035x TYPE65\na\\ b any"[..],
        b"\xef\xbb\xbfwww.example A\nw\\.w.example. TYPE65535\n*.a HTTPS\n",
        b"1,a.example A\n",
        b"a.example A D\nb.example. TYPE65 e\nupdate x\nadd www 300 A 192.0.2.1\nsend\n",
    ];
    fuzz(2_000, &corpus.map(<[u8]>::to_vec), |bytes, _| {
        any_bytes_are_queries_or_an_error(bytes);
        any_bytes_are_read_without_their_bad_lines(bytes);
        any_bytes_are_names_for_all_types(bytes);
    });
}

/// Files of complete queries, with harm done to them.
#[test]
fn harmed_files_of_complete_queries_are_queries_or_an_error() {
    let mut with_opt = soa_query(2, b"\x01a\x07example\0");
    add_keepalive(&mut with_opt);
    let corpus = [framed(&[&soa_query(1, b"\0"), &with_opt]), framed(&[&with_opt])];
    fuzz(2_000, &corpus, |bytes, _| any_bytes_are_complete_queries_or_an_error(bytes));
}

fn framed(messages: &[&[u8]]) -> Vec<u8> {
    messages.iter().flat_map(|message| [&(message.len() as u16).to_be_bytes(), *message].concat()).collect()
}

#[test]
fn complete_queries_are_sent_as_they_are() {
    let mut with_opt = soa_query(0x1234, b"\x01a\x07example\0");
    add_keepalive(&mut with_opt);
    with_opt[2] |= 1;
    let queries = parse_bytes(&framed(&[&with_opt, &soa_query(7, b"\0")])).unwrap();
    assert_eq!((queries.len(), queries.are_complete()), (2, true));
    assert_eq!(queries.message(0)[..2], [0, 0]);
    assert_eq!(queries.message(0)[2..], with_opt[2..]);
    let mut response = soa_query(1, b"\0");
    response[2] = 0x80;
    let bytes = framed(&[&with_opt, &response, &with_opt]);
    assert_eq!(fault(&bytes), "file, query 2: it is a response");
    assert_eq!(fault(&bytes[..bytes.len() - 1]), "file, query 2: it is a response");
    let kept = read_any(&bytes[..bytes.len() - 1], true, None).unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept.skipped().first, ["query 2: it is a response", "query 3: the file ends in the middle of it"]);
}

#[test]
fn a_flag_of_kxdpgun_decides_about_the_edns_of_its_line() {
    let text = "a A\nb A E\nc A d\n";
    let edns = |queries: Queries| {
        (0..3)
            .map(|at| {
                let message = Message::from_octets(queries.message(at).to_vec()).unwrap();
                message.opt().map(|opt| (opt.udp_payload_size(), opt.dnssec_ok()))
            })
            .collect::<Vec<_>>()
    };
    let without = parse_bytes(text.as_bytes()).unwrap();
    assert_eq!(edns(without), [None, Some((1232, false)), Some((1232, true))]);
    let with = ClientEdns::new(4096, 1.0, &Wanted::default()).unwrap();
    let made = Made { edns: with, ..Made::default() };
    let all = parse(text.as_bytes(), Path::new("file"), &Plan::default(), made).unwrap();
    assert_eq!(edns(all), [Some((4096, true)), Some((4096, false)), Some((4096, true))]);
    assert!(fault(b"a A X\n").contains("`X` after the type"));
}

#[test]
fn names_alone_are_asked_for_each_type() {
    let plan = Plan { types: vec![Rtype::A, Rtype::AAAA], ..Plan::default() };
    let read = |text: &str| parse(text.as_bytes(), Path::new("file"), &plan, Made::default());
    let queries = read("www.example\n\nb.example.\r\n").unwrap();
    assert_eq!(asked(&queries), ["www.example A", "www.example AAAA", "b.example A", "b.example AAAA"]);
    let wrong = read("www.example A\n").unwrap_err().to_string();
    assert_eq!(wrong, "file, line 1: `A` after the name, but --types says that lines are names alone");
}

#[test]
fn bad_lines_are_left_out_and_counted() {
    let long = "x".repeat(3 * LINE_BYTES_MAX);
    let bad: String = (0..11).map(|number| format!("{number}..x A\n")).collect();
    let text = format!("a A\n{long}\nb A\n{bad}c A\n{long}");
    let queries = read_any(text.as_bytes(), true, None).unwrap();
    assert_eq!(asked(&queries), ["a A", "b A", "c A"]);
    let skipped = queries.skipped();
    assert_eq!((skipped.count, skipped.first.len()), (13, 10));
    assert!(skipped.first[0].starts_with("line 2: a line of more than"), "{:?}", skipped.first);
    assert!(skipped.first[1].starts_with("line 4: `0..x`: an empty label"), "{:?}", skipped.first);
}

#[test]
fn too_many_queries_are_no_bad_line() {
    let plan = Plan { skips_bad_lines: true, ..Plan::default() };
    let (path, types, skipped) = (Path::new("file"), Types::default(), Skipped::default());
    let mut reading = Reading { builder: Builder::new(Made::default()), path, plan: &plan, types, skipped };
    reading.bad("line", 1, NotAdded::Bad("too many queries".into())).unwrap();
    let refused = reading.bad("line", 2, NotAdded::TooMany).unwrap_err();
    assert!(refused.sentence.starts_with("file, line 2: too many queries: more than 16777216"), "{refused}");
}

#[test]
fn orders_are_kept_shuffled_or_drawn() {
    let text: String = (0..100).map(|number| format!("n{number} A\n")).collect();
    let read = |arrangement, seed| {
        let plan = Plan { arrangement, ..Plan::default() };
        asked(&parse(text.as_bytes(), Path::new("file"), &plan, Made { seed, ..Made::default() }).unwrap())
    };
    let kept = read(Arrangement::AsInFile, 1);
    let mut shuffled = read(Arrangement::Shuffled, 1);
    assert_ne!(shuffled, kept);
    assert_eq!(shuffled, read(Arrangement::Shuffled, 1));
    assert_ne!(shuffled, read(Arrangement::Shuffled, 2));
    shuffled.sort();
    let mut sorted = kept;
    sorted.sort();
    assert_eq!(shuffled, sorted);
    let popularity = Popularity::Zipf { exponent: 1.0 };
    let drawn = read(Arrangement::Drawn { popularity, positions: 1000 }, 1);
    let mut counts = std::collections::HashMap::new();
    drawn.iter().for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let most = *counts.values().max().unwrap();
    // The most popular of 100 names has 1 / 5.19 of the queries; four deviations are 50.
    assert!(drawn.len() == 1000 && (140..250).contains(&most), "{most}");
}

#[test]
fn a_stream_of_captured_queries_is_read_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clients.stream");
    let messages = [soa_query(5, b"\x01a\0"), soa_query(6, b"\x01b\0")];
    let mut writer = StreamWriter::create(&path).unwrap();
    for (at, message) in messages.iter().enumerate() {
        let (client, transport) = (0, Transport::Udp);
        writer.push(Record { due_ns: at as i64, client, transport, flags: 0, message }).unwrap();
    }
    writer.finish(1, None::<Vec<std::net::Ipv6Addr>>).unwrap();
    let queries = read(&path, &Plan::default(), Made::default()).unwrap();
    assert_eq!(asked(&queries), ["a SOA", "b SOA"]);
}

#[test]
fn what_is_no_file_of_queries_is_named() {
    assert!(fault(b"\xd4\xc3\xb2\xa1\x02\0\x04\0").contains("a capture, or compressed (pcap)"));
    assert!(fault(b"\x7fELF\x02\x01\x01\0").contains("neither text nor a sequence of queries"));
    let failure = read_any(b"\x7fELF\x02\x01\x01\0\n", false, Some(Format::Text)).unwrap_err();
    assert!(failure.sentence.starts_with("file, line 1: "), "{failure}");
    let line = [&b"a.example ANY"[..], &vec![b'x'; 10 << 20]].concat();
    assert_eq!(fault(&line), "file, line 1: a line of more than 65536 bytes");
}
