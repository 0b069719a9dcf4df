//! The population that a stream was made of is found again, and another population is distinguished from it.

use std::path::Path;

use dnsrig_core::failure::Failure;
use dnsrig_dns::{query::Options, testing::name};

use super::{Likeness, Measure, Model, Rare, Visit, Visits};
use crate::{
    dataset::name_table::NameTable,
    generate::clients::{generate, population_tests::arguments},
    query_stream::{RETRANSMISSION, Record, StreamWriter, Transport},
};

/// Unlike the defaults in everything.
const UNUSUAL: &str = "--clients 3000 --qps 300 --duration 300s --seed 7 --names-count 20000 --exponent 0.9 --once 4% \
    --missing 8% --missing-once 60% --missing-names 300 --spread 0.9 --page-share 70% --page-median 4 --page-mean 6 \
    --page-gap 40ms --repeats 4% --types A=50,AAAA=30,HTTPS=20 --edns-share 60% --do-share 30% --tcp-share 3% \
    --no-recursion-desired";

/// What a fit finds less exactly, because other exponents do as well with other numbers.
const KNOWN: &str = "--names-count 20000 --missing-names 300";

fn unusual(path: &Path) {
    let mut arguments = arguments(UNUSUAL);
    arguments.out = path.into();
    generate(&arguments).unwrap();
}

/// What comes of `--like` with further arguments: each time of the same stream.
fn likenesses(path: &Path, words: &[&str]) -> Result<Vec<Likeness>, Failure> {
    let model = Model::read(path, 1, None)?;
    let likeness = |words: &&str| {
        let mut arguments = arguments(&format!("--like {} {words}", path.display()));
        let parameters = model.fit(&mut arguments, None);
        let table = NameTable::delegations(arguments.names.names_count.into(), 1, "example").unwrap();
        model.test(&arguments, parameters, &table, false)
    };
    Ok(words.iter().map(likeness).collect())
}

fn likeness(path: &Path, words: &str) -> Result<Likeness, Failure> {
    likenesses(path, &[words]).map(|mut all| all.remove(0))
}

fn is_inside(likeness: &Likeness, quantity: &str) -> bool {
    likeness.quantity(quantity).is_inside
}

#[test]
fn a_population_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream");
    unusual(&path);
    let found = likeness(&path, KNOWN).unwrap();
    let near = |option: &str, value: f64, most: f64| {
        let parameter: f64 = found.parameter(option).value.trim_end_matches("ms").parse().unwrap();
        assert!((parameter - value).abs() <= most, "--{option} {parameter}");
    };
    for (option, value, most) in [
        ("clients", 3000.0, 300.0),
        ("qps", 300.0, 30.0),
        ("exponent", 0.9, 0.05),
        ("once", 0.04, 0.01),
        ("missing", 0.08, 0.01),
        ("missing-once", 0.6, 0.05),
        ("spread", 0.9, 0.1),
        ("page-share", 0.7, 0.05),
        ("page-median", 4.0, 0.4),
        ("page-mean", 6.0, 0.5),
        ("page-gap", 40.0, 4.0),
        ("repeats", 0.04, 0.005),
        ("edns-share", 0.6, 0.05),
        ("do-share", 0.3, 0.05),
        ("tcp-share", 0.03, 0.005),
    ] {
        near(option, value, most);
    }
    let text = super::text(&found);
    assert_eq!(found.outside, 0, "{text}");
    assert!(text.contains(" --no-recursion-desired "), "{text}");
}

#[test]
fn another_population_is_outside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream");
    unusual(&path);
    let first = format!("{KNOWN} --exponent 1.3 --once 4% --page-share 10% --edns-share 30% --do-share 30%");
    let second =
        format!("{KNOWN} --once 10% --spread 2 --page-gap 300ms --repeats 0 --types A=1 --tcp-share 0 --missing 1%");
    let found = likenesses(&path, &[&first, &second]).unwrap();
    let outside = [
        &["hit ratio, answers hold for their TTLs", "within 1 s", "EDNS"][..],
        &[
            "hit ratio, answers hold forever",
            "queries of the heaviest 10 %",
            "within 100 ms",
            "sent again",
            "AAAA",
            "not over UDP",
            "names that do not exist",
        ],
    ];
    for (found, quantities) in found.iter().zip(outside) {
        for quantity in quantities {
            assert!(!is_inside(found, quantity), "{quantity}: {}", super::text(found));
        }
    }
}

/// Clients that all ask a name of their own each half a minute, every third without RD.
fn regular(path: &Path, clients: u32, rounds: i64) {
    let mut writer = StreamWriter::create(path).unwrap();
    for round in 0..rounds {
        for client in 0..clients {
            let due_ns = 30_000_000_000 * round + 30_000_000_000 / i64::from(clients) * i64::from(client);
            let options = Options { recursion_desired: client % 3 != 0, edns: None };
            let message = [&options.header()[..], &name(&format!("c{client}.example")), &[0, 1, 0, 1]].concat();
            writer.push(Record { due_ns, client, transport: Transport::Udp, flags: 0, message: &message }).unwrap();
        }
    }
    writer.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
}

#[test]
fn clients_that_are_no_population_are_outside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream");
    regular(&path, 400, 20);
    let found = likeness(&path, "--names-count 1000").unwrap();
    assert_eq!((found.parameter("page-share").value.as_str(), found.parameter("types").value.as_str()), ("0", "A=100"));
    for quantity in ["queries of the heaviest 10 %", "variance by mean in 1 s", "without RD"] {
        assert!(!is_inside(&found, quantity), "{quantity}: {}", super::text(&found));
    }
    assert_eq!(found.parameter("missing").origin, super::parameters::Origin::Default);
}

#[test]
fn a_stream_of_too_little_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream");
    for (clients, rounds) in [(1, 1000), (0, 0), (90, 10), (300, 0)] {
        regular(&path, clients, rounds);
        let error = likeness(&path, "").err().unwrap().to_string();
        assert!(error.contains("each needs 50 at least"), "{error}");
    }
    assert!(likeness(&directory.path().join("none"), "").is_err());
}

const MS: i64 = 1_000_000;

/// A query that is due at a time in milliseconds.
fn record(client: u32, due_ns: i64, flags: u8, message: &[u8]) -> Record<'_> {
    Record { due_ns, client, transport: Transport::Udp, flags, message }
}

/// Any query for an address.
fn message() -> Vec<u8> {
    [&Options::default().header()[..], &name("a.example"), &[0, 1, 0, 1]].concat()
}

#[test]
fn a_visit_ends_with_a_pause_of_a_second_and_counts_if_all_of_it_is_in_the_stream() {
    let none = Visit { first_ns: 0, last_ns: 0, queries: 0 };
    let visits = vec![Some(none), None, Some(none)];
    let mut rare = Rare { duration_ns: 10_000 * MS, visits, found: Visits::default() };
    let message = message();
    let mut ask = |client: u32, due_ns: i64, flags: u8| rare.add(client, &record(client, due_ns, flags, &message));
    // It may have begun before the stream.
    [999 * MS, 1_500 * MS].into_iter().for_each(|due_ns| ask(0, due_ns, 0));
    // A second later another visit begins, and less than a second later it goes on.
    [2_500 * MS, 3_500 * MS - 1].into_iter().for_each(|due_ns| ask(0, due_ns, 0));
    // One query that was sent again; three queries; and a visit that may go on behind the end.
    ask(0, 5_000 * MS, 0);
    ask(0, 5_100 * MS, RETRANSMISSION);
    [7_000 * MS, 7_001 * MS, 7_003 * MS, 9_000 * MS + 1].into_iter().for_each(|due_ns| ask(0, due_ns, 0));
    // This client comes often.
    [2_000 * MS, 2_001 * MS].into_iter().for_each(|due_ns| ask(1, due_ns, 0));
    // From the first moment on, and up to the last.
    [1_000 * MS, 9_000 * MS].into_iter().for_each(|due_ns| ask(2, due_ns, 0));
    let found = rare.finish();
    assert_eq!(found.sizes, [0.0, 3.0, 1.0, 1.0]);
    let gaps_ns = 501 * MS + (1_000 * MS - 1) + MS + 2 * MS;
    assert_eq!((found.gaps, found.gaps_ns), (4.0, gaps_ns as f64));
}

#[test]
fn clients_come_rarely_up_to_once_in_twenty_seconds() {
    let message = message();
    for (duration_s, are_rare, met) in [
        // With n visits a client meets itself n (n - 1) times; those with one visit too many for rare ones count, too.
        (10, [true, false, false, false], 2.0),
        (20, [true, false, false, false], 2.0),
        (39, [true, false, false, false], 2.0),
        (40, [true, true, false, false], 2.0 + 6.0),
        (60, [true, true, true, false], 2.0 + 6.0 + 12.0),
    ] {
        let mut measure = Measure::new(duration_s * 1_000 * MS, None);
        // Client 0 has one visit, client 3 has four.
        for (visit, client) in (0..4).flat_map(|visit| (visit..4).map(move |client| (visit, client))) {
            measure.add(client, &record(client, 2_000 * MS * i64::from(visit), 0, &message));
        }
        let rare = Rare::new(&measure.finish());
        assert_eq!(rare.visits.iter().map(Option::is_some).collect::<Vec<_>>(), are_rare, "in {duration_s} s");
        assert_eq!(rare.found.met_a_ns, met / (duration_s * 1_000 * MS) as f64, "in {duration_s} s");
    }
}
