//! Queries of datasets as `generate` makes them, compared with the zone files themselves.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use clap::Parser;
use dnsrig_testing::inputs;
use domain::base::Message;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{
    generate::{tld, zones},
    load::queries::asked,
};

#[derive(Parser)]
struct ZonesLine {
    #[command(flatten)]
    arguments: zones::Arguments,
}

#[derive(Parser)]
struct TldLine {
    #[command(flatten)]
    arguments: tld::Arguments,
}

fn words<'a>(words: &'a str, out: &'a str) -> impl Iterator<Item = &'a str> {
    std::iter::once("generate").chain(words.split(' ')).chain(["--out", out])
}

/// A dataset of `generate zones` with these arguments.
fn zones_dataset(arguments: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let line = ZonesLine::parse_from(words(arguments, directory.path().to_str().unwrap()));
    zones::generate(&line.arguments).unwrap();
    directory
}

/// A dataset of `generate tld` with these arguments.
fn tld_dataset(arguments: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let line = TldLine::parse_from(words(arguments, directory.path().to_str().unwrap()));
    tld::generate(&line.arguments).unwrap();
    directory
}

fn plan(positions: u32) -> Plan {
    Plan { types: vec![Rtype::A], popularity: Popularity::Uniform, missing_share: 0.0, positions, seed: 1 }
}

fn list(directory: &TempDir) -> std::path::PathBuf {
    directory.path().join("zones.list")
}

fn questions(directory: &TempDir, plan: &Plan) -> Vec<String> {
    asked(&prepare(&list(directory), plan, Made::default()).unwrap())
}

/// Names and types in the zone files, as `name TYPE`.
fn records(directory: &TempDir) -> HashSet<String> {
    let mut records = HashSet::new();
    for line in fs::read_to_string(list(directory)).unwrap().lines() {
        let (zone, file) = line.split_once('\t').unwrap();
        let mut owner = String::new();
        for line in fs::read_to_string(directory.path().join(file)).unwrap().lines().skip(2) {
            let (name, rest) = line.split_once('\t').unwrap();
            match name {
                "" => {}
                "@" => zone.clone_into(&mut owner),
                _ => owner = format!("{name}.{zone}"),
            }
            let rtype = rest.split(' ').skip_while(|word| *word != "IN").nth(1).unwrap();
            records.insert(format!("{owner} {rtype}"));
        }
    }
    records
}

#[test]
fn a_handful_of_queries_stays_what_it_is() {
    let directory = zones_dataset("--count 1000 --records 12");
    let plan = Plan {
        types: vec![Rtype::A, Rtype::AAAA, Rtype::MX],
        popularity: Popularity::Zipf { exponent: 1.0 },
        missing_share: 0.25,
        positions: 8,
        seed: 7,
    };
    let queries = prepare(&list(&directory), &plan, Made::default()).unwrap();
    let expected = [
        "lftpwdfcbqhc-nx.z000285.example A",
        "mail.z000762.example AAAA",
        "z000381.example MX",
        "www.z000201.example A",
        "z000809.example AAAA",
        "z000095.example MX",
        "www.z000512.example A",
        "www.z000000.example AAAA",
    ];
    assert_eq!(asked(&queries), expected);
    let third = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x07z000381\x07example\0\0\x0f\0\x01";
    assert_eq!(queries.message(2), third);
}

#[test]
fn names_in_tiny_zones_are_those_of_the_zone_files() {
    for records_per_zone in 2..16 {
        let directory = zones_dataset(&format!("--count 3 --records {records_per_zone}"));
        let records = records(&directory);
        let types = [Rtype::SOA, Rtype::NS, Rtype::A, Rtype::AAAA, Rtype::MX, Rtype::TXT];
        for rtype in types {
            let asked: HashSet<_> =
                questions(&directory, &Plan { types: vec![rtype], ..plan(500) }).into_iter().collect();
            let end = format!(" {rtype}");
            let existing: HashSet<_> = records.iter().filter(|record| record.ends_with(&end)).cloned().collect();
            if existing.is_empty() {
                assert_eq!(asked.len(), 3, "without such records the three apexes are asked: {asked:?}");
            } else {
                assert_eq!(asked, existing, "{rtype}, {records_per_zone} records");
            }
        }
    }
}

#[test]
fn delegations_are_those_of_the_zone_file() {
    let directory = tld_dataset("--delegations 50 --seed 3 --origin test");
    let records = records(&directory);
    let delegations = records.iter().filter_map(|record| {
        let name = record.strip_suffix(" NS").filter(|name| *name != "test")?;
        Some(format!("{name} A"))
    });
    let delegations: HashSet<_> = delegations.collect();
    assert_eq!(delegations.len(), 51);
    let asked: HashSet<_> = questions(&directory, &plan(2000)).into_iter().collect();
    assert_eq!(asked, delegations);
}

#[test]
fn missing_names_are_asked_in_their_share_and_do_not_exist() {
    for directory in [zones_dataset("--count 20 --records 20"), tld_dataset("--delegations 20")] {
        let names: HashSet<_> =
            records(&directory).iter().map(|record| record.split(' ').next().unwrap().to_owned()).collect();
        let all = questions(&directory, &plan(10_000));
        let some = questions(&directory, &Plan { missing_share: 0.3, ..plan(10_000) });
        let is_missing = |query: &String| !names.contains(query.split(' ').next().unwrap());
        assert!(!all.iter().any(is_missing));
        let missing = some.iter().filter(|query| is_missing(query)).count();
        // 3000 are expected, with a standard deviation of 46.
        assert!((2800..3200).contains(&missing), "{missing}");
        let unchanged = all.iter().zip(&some).filter(|(all, some)| all == some).count();
        assert_eq!(unchanged + missing, 10_000, "the other questions are the same");
    }
}

#[test]
fn popular_zones_are_asked_more_often() {
    let directory = zones_dataset("--count 100 --records 4");
    let times_most = |popularity| {
        let mut times = HashMap::new();
        for query in questions(&directory, &Plan { popularity, ..plan(10_000) }) {
            *times.entry(query).or_insert(0) += 1;
        }
        times.into_values().max().unwrap()
    };
    // 10,000 / H(100) = 1928 for Zipf's law, and 100 if all are equal.
    assert!((1700..2150).contains(&times_most(Popularity::Zipf { exponent: 1.0 })));
    assert!((100..160).contains(&times_most(Popularity::Uniform)));
}

#[test]
fn equal_queries_share_a_message() {
    let directory = zones_dataset("--count 10 --records 4");
    let types = vec![Rtype::A, Rtype::A, Rtype::SOA];
    let queries = prepare(&list(&directory), &Plan { types, ..plan(10_000) }, Made::default()).unwrap();
    assert_eq!((queries.len(), queries.distinct().0), (10_000, 20));
    assert_eq!(asked(&queries).iter().filter(|query| query.ends_with(" SOA")).count(), 3333);
}

#[test]
fn a_list_without_a_dataset_is_asked_for_its_zones() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(list(&directory), "A.example\n.\n").unwrap();
    let asked: HashSet<_> = questions(&directory, &plan(100)).into_iter().collect();
    assert_eq!(asked, HashSet::from(["A.example A".to_owned(), ". A".to_owned()]));
}

#[test]
fn datasets_that_do_not_fit_the_list_are_refused() {
    let fault =
        |directory: &TempDir, plan: &Plan| prepare(&list(directory), plan, Made::default()).unwrap_err().to_string();
    let directory = tld_dataset("--delegations 5");
    fs::write(list(&directory), "other\n").unwrap();
    assert!(
        fault(&directory, &plan(1)).contains("dataset.json: it describes the zone example, which is not the only one")
    );
    fs::write(directory.path().join("dataset.json"), "{}").unwrap();
    assert!(fault(&directory, &plan(1)).contains("dataset.json: it describes no dataset"));

    let directory = tempfile::tempdir().unwrap();
    assert!(fault(&directory, &plan(1)).contains("cannot read"));
    let label = "a".repeat(60);
    fs::write(list(&directory), format!("{label}.{label}.{label}.{label}\n")).unwrap();
    assert_eq!(questions(&directory, &plan(1)).len(), 1);
    let all_missing = Plan { missing_share: 1.0, ..plan(1) };
    assert!(fault(&directory, &all_missing).contains("more than 255 bytes"));
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let types = proptest::collection::vec((1_u16..).prop_map(Rtype::from_int), 1..5);
    let popularity =
        prop_oneof![Just(Popularity::Uniform), (0.0..5.0).prop_map(|exponent| Popularity::Zipf { exponent })];
    (types, popularity, 0.0..=1.0, 1_u32..200, any::<u64>()).prop_map(
        |(types, popularity, missing_share, positions, seed)| Plan {
            types,
            popularity,
            missing_share,
            positions,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(inputs(200))]

    /// 200 plans: every message is a query for a name in one of the zones, of the type whose turn it is, and the same
    /// plan gives the same bytes.
    #[test]
    fn any_plan_gives_queries_for_the_zones(plan in any_plan()) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(list(&directory), "a.example\nb.c.example\nd\n").unwrap();
        let prepare = || prepare(&list(&directory), &plan, Made::default()).unwrap();
        let queries = prepare();
        prop_assert_eq!(queries.len(), plan.positions as usize);
        for at in 0..queries.len() {
            let message = Message::from_octets(queries.message(at)).unwrap();
            let question = message.sole_question().unwrap();
            let name = question.qname().to_string();
            prop_assert!(["a.example", "b.c.example", "d"].iter().any(|zone| {
                name == *zone || name.strip_suffix(zone).is_some_and(|label| label.ends_with("-nx."))
            }), "{}", name);
            prop_assert_eq!(question.qtype(), plan.types[at % plan.types.len()]);
            prop_assert_eq!(message.header().id(), 0);
        }
        prop_assert_eq!(queries, prepare());
    }
}

#[test]
fn owners_are_those_that_the_zone_has() {
    assert_eq!(owners(Rtype::A, 2), [""], "no A at all: the apex is asked");
    assert_eq!(owners(Rtype::A, 4), [""]);
    assert_eq!(owners(Rtype::A, 13), ["", "www", "mail", "h0", "h1"]);
    assert_eq!(owners(Rtype::AAAA, 7), ["", "www"]);
    assert_eq!(owners(Rtype::MX, 13), [""]);
}
