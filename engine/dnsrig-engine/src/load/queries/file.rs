//! A file of queries in dnsperf's format: a name and a type in each line.

use dnsrig_core::failure::Failure;
use dnsrig_dns::query::Options;

use super::{Builder, Queries, cannot_read, text};
use crate::dataset::text_file::{after_mark, refuse_other_lists};
use domain::base::iana::Rtype;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

/// The length of the longest line, with its end. dnsperf's own limit is the same.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The number of bytes of the pieces in which the file is read.
const READ_BYTES: usize = 1 << 20;

/// The number of types that are remembered as they were written, to be recognised at once.
const TYPES_REMEMBERED_MAX: usize = 16;

/// What to do if a file has another format.
const FORMAT_HINT: &str = "--queries takes a query a line, a name and a type, such as `www.example A`; lines that begin \
                           with ; or # are comments";

/// The commands in dnsperf's blocks of dynamic updates.
const UPDATE_COMMANDS: [&[u8]; 7] = [b"add", b"delete", b"prohibit", b"quit", b"require", b"send", b"show"];

/// Reads the queries of a file, or of standard input if `path` is `-`.
pub fn read(path: &Path, options: Options) -> Result<Queries, Failure> {
    if path == Path::new("-") {
        return parse(BufReader::with_capacity(READ_BYTES, io::stdin()), Path::new("standard input"), options);
    }
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    parse(BufReader::with_capacity(READ_BYTES, file), path, options)
}

/// Reads queries. Errors name `path`. Lines that are empty or begin with ; or # are ignored.
pub fn parse(mut input: impl BufRead, path: &Path, options: Options) -> Result<Queries, Failure> {
    let mut builder = Builder::new(options);
    let mut types = Types::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        // With a byte more than is allowed, a line that is too long differs from one that just fits.
        let limited = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if limited.map_err(|error| cannot_read(path, &error))? == 0 {
            break;
        }
        after_mark(&line).and_then(|text| parse_line(&mut builder, &mut types, text)).map_err(|reason| {
            Failure::bad_input(format!("{}, line {number}: {reason}", path.display()), FORMAT_HINT)
        })?;
    }
    let empty = || Failure::bad_input(format!("{} contains no query", path.display()), FORMAT_HINT);
    builder.finish_in_order().ok_or_else(empty)
}

fn parse_line(builder: &mut Builder, types: &mut Types, line: &[u8]) -> Result<(), String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
    }
    let line = line.trim_ascii();
    if matches!(line, [] | [b';' | b'#', ..]) {
        return Ok(());
    }
    if line.contains(&0) {
        return Err("it is not text: dnsperf's binary format (-B) is not read".into());
    }
    let (name, rest) = text::split_word(line);
    let (qtype, behind) = text::split_word(rest);
    if (qtype.is_empty() || !behind.is_empty()) && UPDATE_COMMANDS.contains(&name.to_ascii_lowercase().as_slice()) {
        let command = text::show(name);
        return Err(format!("`{command}` belongs to a dynamic update (dnsperf -u): only queries are read"));
    }
    refuse_other_lists(&text::show(name))?;
    if qtype.is_empty() {
        return Err(format!(
            "no type after the name `{}`: a line needs a name and a type. For a list of names alone, use --zone-list",
            text::show(name)
        ));
    }
    let qtype = types.parse(qtype)?;
    if !behind.is_empty() {
        return Err(format!("`{}` after the type: a line is a name and a type{}", text::show(behind), flag(behind)));
    }
    let pushed = builder.push(qtype, |bytes| text::push_name(bytes, name));
    pushed.map(|_| ()).map_err(|reason| format!("`{}`: {reason}", text::show(name)))
}

/// The options that replace the flags that kxdpgun reads after the type (kxdpgun(8)).
fn flag(behind: &[u8]) -> &'static str {
    match behind {
        b"D" | b"d" => ". To ask for DNSSEC records use --dnssec-ok, which is for all queries",
        b"E" | b"e" => ". All queries have EDNS, unless --edns is 0",
        _ => "",
    }
}

/// The types that were read. There are a hundred mnemonics to compare with, and a file has a few of them.
#[derive(Default)]
struct Types(Vec<(Vec<u8>, Rtype)>);

impl Types {
    fn parse(&mut self, text: &[u8]) -> Result<Rtype, String> {
        if let Some((_, known)) = self.0.iter().find(|(written, _)| written == text) {
            return Ok(*known);
        }
        let rtype = text::parse_type(text)?;
        if self.0.len() < TYPES_REMEMBERED_MAX {
            self.0.push((text.to_vec(), rtype));
        }
        Ok(rtype)
    }
}

#[cfg(test)]
mod tests {
    //! Files of queries, and other files.

    use dnsrig_dns::{edns::Edns, query};
    use dnsrig_testing::{fuzz::fuzz, inputs};
    use domain::base::{Message, ToName};
    use proptest::prelude::*;

    use super::*;
    use crate::load::queries::asked;

    fn parse_bytes(bytes: &[u8]) -> Result<Queries, Failure> {
        parse(bytes, Path::new("file"), Options::default())
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
            "file, line 2: no type after the name `b`: a line needs a name and a type. For a list of names alone, use --zone-list"
        );
        assert_eq!(fault(b"\n\na B"), "file, line 3: `B` is no type, such as A, HTTPS or TYPE65");
        assert_eq!(fault(b"a A IN"), "file, line 1: `IN` after the type: a line is a name and a type");
        assert_eq!(fault(b"a..b A"), "file, line 1: `a..b`: an empty label: a dot where none may stand");
        assert_eq!(fault(b"a IN A"), "file, line 1: `IN` is no type, such as A, HTTPS or TYPE65");
        assert!(fault(b"a AXFR").contains("use `dnsrig transfer`"));
        assert!(parse_bytes(b"a B").unwrap_err().hint.contains("www.example A"));
    }

    #[test]
    fn what_other_tools_read_is_refused_with_what_does_it_here() {
        assert!(fault(b"a A D\n").ends_with("To ask for DNSSEC records use --dnssec-ok, which is for all queries"));
        assert!(fault(b"a A E\n").contains("unless --edns is 0"));
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
        // A length of two bytes before a message in wire format.
        assert!(fault(b"\0\x11\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01").contains("binary"));
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
            let failure = read(Path::new(path), Options::default()).unwrap_err();
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

    fn any_bytes_are_queries_or_an_error(bytes: &[u8]) -> Result<(), TestCaseError> {
        let edns = Some(Edns { udp_payload_bytes: 1232, dnssec_ok: true });
        match parse(bytes, Path::new("file"), Options { recursion_desired: true, edns }) {
            Ok(queries) => {
                for at in 0..queries.len() {
                    let wire = queries.message(at);
                    let message = Message::from_octets(wire).unwrap();
                    let question = message.sole_question().unwrap();
                    prop_assert!(message.header().rd() && message.opt().unwrap().dnssec_ok());
                    let mut expected = question.qname().to_vec().into_octets();
                    expected.extend(question.qtype().to_int().to_be_bytes());
                    expected.extend([0, 1]);
                    prop_assert_eq!(query::question(wire), expected);
                    prop_assert!(wire.len() <= queries.bytes_max());
                }
            }
            Err(failure) => match failure.sentence.strip_prefix("file, line ").and_then(|rest| rest.split_once(':')) {
                Some((line, _)) => {
                    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
                    prop_assert!((1..=lines).contains(&line.parse().unwrap()));
                }
                None => prop_assert_eq!(failure.sentence, "file contains no query"),
            },
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(inputs(5_000))]

        /// 5,000 files of any bytes.
        #[test]
        fn any_bytes_are_queries_or_name_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            any_bytes_are_queries_or_an_error(&bytes)?;
        }

        /// 5,000 files that look like files of queries.
        #[test]
        fn any_text_is_queries_or_names_a_line(text in lines()) {
            any_bytes_are_queries_or_an_error(text.as_bytes())?;
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
            b"a.example A D\nupdate x\nadd www 300 A 192.0.2.1\nsend\n",
        ];
        fuzz(2_000, &corpus.map(<[u8]>::to_vec), |bytes, _| any_bytes_are_queries_or_an_error(bytes).unwrap());
    }
}
