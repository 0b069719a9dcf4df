//! Command lines, from words to queries.

use std::fs;

use clap::Parser;
use domain::base::Message;

use super::*;
use crate::load::queries::asked;

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    queries: QueryArguments,
    /// Whatever else `load` takes: the names of arguments must not collide.
    #[arg(long)]
    source: Option<String>,
}

fn parse(words: &str) -> Result<QueryArguments, String> {
    let line = CommandLine::try_parse_from(std::iter::once("load").chain(words.split_whitespace()));
    line.map(|line| line.queries).map_err(|error| error.to_string())
}

/// The first message of a file with one query, and its parsed form.
fn first(words: &str) -> Message<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queries");
    fs::write(&path, "www.example A\n").unwrap();
    let queries = parse(&format!("--queries {} {words}", path.display())).unwrap().prepare().unwrap();
    Message::from_octets(queries.message(0).to_vec()).unwrap()
}

#[test]
fn exactly_one_source_is_given() {
    assert!(parse("").unwrap_err().contains("<--queries <FILE>|--zone-list <FILE>>"));
    assert!(parse("--queries a --zone-list b").unwrap_err().contains("cannot be used with"));
    assert!(parse("--queries a").is_ok());
    assert!(parse("--zone-list a --types A,AAAA --popularity zipf:0.9 --missing 10% --sequence 5").is_ok());
    for generated in ["--types A", "--popularity zipf", "--missing 0.1", "--sequence 5"] {
        assert!(parse(&format!("--queries a {generated}")).is_err(), "{generated}");
    }
}

#[test]
fn what_is_out_of_range_is_told() {
    for (words, part) in [
        ("--missing 1.1", "share"),
        ("--missing 101%", "share"),
        ("--missing nan", "share"),
        ("--edns 511", "bytes from 512"),
        ("--edns 65536", "bytes from 512"),
        ("--popularity pareto", "zipf:S"),
        ("--types A,B", "`B` is no type"),
        ("--types A,,NS", "is no type"),
        ("--types AXFR", "a transfer"),
        ("--sequence 0", "1..="),
        ("--sequence 16777217", "1..="),
    ] {
        let sentence = parse(&format!("--zone-list a {words}")).unwrap_err();
        assert!(sentence.contains(part), "{words}: {sentence}");
    }
    assert_eq!(parse("--zone-list a --missing 12.5%").unwrap().missing, 0.125);
}

#[test]
fn flags_and_edns_are_in_the_message() {
    let plain = first("");
    assert!(!plain.header().rd());
    let opt = plain.opt().unwrap();
    assert_eq!((opt.udp_payload_size(), opt.dnssec_ok()), (1232, false));
    let all = first("--recursion-desired --dnssec-ok --edns 4096");
    let opt = all.opt().unwrap();
    assert_eq!((all.header().rd(), opt.udp_payload_size(), opt.dnssec_ok()), (true, 4096, true));
    assert!(first("--edns 0").opt().is_none());
    let contradiction = parse("--queries a --edns 0 --dnssec-ok").unwrap().prepare();
    assert!(matches!(contradiction, Err(QueryError::Arguments(_))));
}

#[test]
fn a_key_is_read_but_never_printed() {
    let secret = "c2VjcmV0IG9mIGEga2V5";
    let arguments = parse(&format!("--queries a --tsig hmac-sha256:key.example:{secret}")).unwrap();
    assert!(!format!("{arguments:?}").contains(secret));
    assert!(arguments.signer().unwrap().is_some());
    assert!(parse("--queries a").unwrap().signer().unwrap().is_none());
    let wrong = parse(&format!("--queries a --tsig {secret}")).unwrap().signer().unwrap_err();
    assert!(!wrong.to_string().contains(secret));
}

#[test]
fn a_list_of_zones_is_asked_with_all_its_arguments() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("zones.list");
    fs::write(&list, "a.example\nb.example\n").unwrap();
    let prepare = |words: &str| {
        let line = format!("--zone-list {} --sequence 40 --types SOA,NS {words}", list.display());
        asked(&parse(&line).unwrap().prepare().unwrap())
    };
    let queries = prepare("");
    assert_eq!(queries.len(), 40);
    assert!(queries.iter().step_by(2).all(|query| query.ends_with(".example SOA")));
    assert!(queries.iter().skip(1).step_by(2).all(|query| query.ends_with(".example NS")));
    assert_ne!(queries, prepare("--seed 2"));
    assert_ne!(queries, prepare("--popularity zipf:2"));
    assert!(prepare("--missing 100%").iter().all(|query| query.contains("-nx.")));
}
