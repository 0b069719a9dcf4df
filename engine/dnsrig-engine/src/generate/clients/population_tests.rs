//! Populations of any kind are streams, and the default population is as published.

use std::collections::HashMap;

use clap::Parser;
use dnsrig_core::hash::fnv1a;
use dnsrig_dns::header::HEADER_BYTES;
use dnsrig_testing::inputs;
use domain::base::{Message, iana::Rtype};
use proptest::prelude::*;

use super::{Arguments, population::Population};
use crate::{
    dataset::{is_missing, name_table::NameTable},
    query_stream::{RETRANSMISSION, Record, Transport},
};

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

pub fn arguments(text: &str) -> Arguments {
    let words = ["generate", "--out", "unused"].into_iter().chain(text.split_whitespace());
    CommandLine::parse_from(words).arguments
}

fn table() -> NameTable {
    NameTable::delegations(10_000, 1, "example").unwrap()
}

/// Every record of a population, with its message.
fn records(arguments: &Arguments, table: &NameTable) -> Vec<(i64, u32, Transport, u8, Vec<u8>)> {
    let mut population = Population::new(arguments, arguments.size().unwrap(), table);
    let mut all = Vec::new();
    while let Some(Record { due_ns, client, transport, flags, message }) = population.next() {
        all.push((due_ns, client, transport, flags, message.to_vec()));
    }
    all
}

proptest! {
    #![proptest_config(inputs(50))]

    #[test]
    fn every_population_is_a_stream(
        seed: u64, clients in 1_u32..500, qps in 1_u32..2000, spread in 0.0..4.0, shares in prop::array::uniform6(0.0..0.5),
    ) {
        let [once, missing, page_share, repeats, edns, tcp] = shares;
        let arguments = arguments(&format!(
            "--seed {seed} --clients {clients} --qps {qps} --duration 1s --spread {spread} --once {once} \
             --missing {missing} --page-share {page_share} --repeats {repeats} --edns-share {edns} --do-share 0 \
             --tcp-share {tcp}"
        ));
        let table = NameTable::delegations(100, 1, "example").unwrap();
        let all = records(&arguments, &table);
        prop_assert_eq!(&all, &records(&arguments, &table));
        prop_assert!(all.is_sorted_by_key(|record| record.0));
        prop_assert!(all.first().is_none_or(|first| first.0 == 0));
        prop_assert!(all.last().is_none_or(|last| last.0 < 1_000_000_000));
        let mut known = 0;
        for (_, client, _, _, message) in &all {
            prop_assert!(*client <= known && *client < clients, "clients are numbered in the order of first queries");
            known = known.max(client + 1);
            let message = Message::from_octets(message.as_slice()).unwrap();
            let question = message.sole_question().unwrap();
            prop_assert!(!message.header().qr() && message.header().rd());
            prop_assert!(!question.qname().to_string().is_empty());
            prop_assert_eq!(message.opt().is_some(), message.header_counts().arcount() == 1);
        }
    }
}

/// The share of records for which something holds.
fn share<T>(all: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|record| holds(record)).count() as f64 / all.len() as f64
}

#[test]
fn the_defaults_are_as_published() {
    let arguments = arguments("--clients 20000 --qps 2000 --duration 100s");
    let table = table();
    let all = records(&arguments, &table);
    // 200,000 queries in bursts: their number has a deviation of about 1,400.
    assert!((190_000..210_000).contains(&all.len()), "{}", all.len());
    let asks = |wanted: Rtype| {
        share(&all, |record| Message::from_octets(&record.4[..]).unwrap().sole_question().unwrap().qtype() == wanted)
    };
    // A share p of n independent draws is off by sqrt(p (1 - p) / n), below 0.1 % here; the bounds are five times that.
    assert!((asks(Rtype::A) - 0.879).abs() < 0.005);
    assert!((asks(Rtype::AAAA) - 0.09).abs() < 0.005);
    assert!((asks(Rtype::PTR) - 0.019).abs() < 0.003);
    assert!((share(&all, |record| record.3 & RETRANSMISSION != 0) - 0.008).abs() < 0.002);
    assert!((share(&all, |record| is_missing(&record.4[HEADER_BYTES..])) - 0.161).abs() < 0.005);
    // EDNS belongs to clients, of which the heaviest have a percent of the queries each.
    let edns = share(&all, |record| Message::from_octets(&record.4[..]).unwrap().opt().is_some());
    assert!((0.002..0.04).contains(&edns), "{edns}");
    let mut queries: HashMap<u32, u64> = HashMap::new();
    all.iter().for_each(|record| *queries.entry(record.1).or_default() += 1);
    let mut queries: Vec<u64> = queries.into_values().collect();
    queries.sort_unstable_by(|a, b| b.cmp(a));
    let heaviest: u64 = queries.iter().take(200).sum();
    // The log-normal distribution gives the heaviest 1 % a share of 21.9 %; 200 clients of a heavy tail vary.
    let heaviest = heaviest as f64 / all.len() as f64;
    assert!((0.17..0.30).contains(&heaviest), "{heaviest}");
}

#[test]
fn a_sample_is_some_clients_or_some_queries_of_the_same_population() {
    let words = "--clients 2000 --qps 2000 --duration 20s";
    let table = table();
    let messages = |more: &str| {
        let all = records(&arguments(&format!("{words} {more}")), &table);
        let clients: std::collections::HashSet<u32> = all.iter().map(|record| record.1).collect();
        // Times count from the first query that is kept, numbers of clients in the order of theirs.
        (all.into_iter().map(|record| record.4).collect::<Vec<_>>(), clients.len() as f64)
    };
    let (all, clients) = messages("");
    let ids = |messages: &[Vec<u8>]| messages.iter().map(|message| message[..2].to_vec()).collect::<Vec<_>>();
    for (more, of_clients) in [("--keep-share 25%", 0.25), ("--keep-queries 25%", 0.9)] {
        let (kept, kept_clients) = messages(more);
        let mut whole = ids(&all).into_iter();
        assert!(ids(&kept).into_iter().all(|id| whole.any(|one| one == id)), "{more}: in the same order");
        let share = kept.len() as f64 / all.len() as f64;
        // The heaviest of 2,000 clients have a percent of the queries each.
        assert!((0.15..0.4).contains(&share), "{more}: {share}");
        assert!(if of_clients < 0.5 {
            (0.2..0.3).contains(&(kept_clients / clients))
        } else {
            kept_clients / clients > 0.5
        });
    }
    let one = arguments(&format!("{words} --keep-queries 0"));
    assert!(records(&one, &table).is_empty());
}

#[test]
fn a_page_has_as_many_queries_as_published() {
    // One page at a time: a client that asks again within a second is still on the same one.
    let arguments = arguments(
        "--clients 1 --qps 0.1 --duration 200000s --page-share 1 --repeats 0 --page-gap 1ms --names-count 10",
    );
    let table = table();
    let all = records(&arguments, &table);
    let mut pages = vec![0_u32];
    for pair in all.windows(2) {
        *pages.last_mut().unwrap() += 1;
        if pair[1].0 - pair[0].0 > 1_000_000_000 {
            pages.push(0);
        }
    }
    pages.sort_unstable();
    let mean = f64::from(pages.iter().sum::<u32>()) / pages.len() as f64;
    // 1,600 pages with a deviation of 8.5: the mean is off by 0.2, and one in a hundred meets another page.
    assert!((11.2..13.2).contains(&mean), "{mean}");
    assert!((9..=11).contains(&pages[pages.len() / 2]));
}

#[test]
fn names_are_asked_for_types_that_they_have() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("names");
    std::fs::write(&path, "a.example\t60\tA,DS\nb.example\t60\tMX\nc.example\n").unwrap();
    let table = NameTable::read(&path).unwrap();
    let asked = |words: &str| {
        let plan =
            format!("--clients 10 --qps 1000 --duration 5s --missing 0 --once 0 --types A=5,AAAA=4,DS=1 {words}");
        let mut asked: HashMap<String, HashMap<Rtype, usize>> = HashMap::new();
        for (_, _, _, _, message) in records(&arguments(&plan), &table) {
            let message = Message::from_octets(message).unwrap();
            let question = message.sole_question().unwrap();
            *asked.entry(question.qname().to_string()).or_default().entry(question.qtype()).or_default() += 1;
        }
        asked
    };
    let strict = asked("--no-data 0");
    let types = |name: &str| {
        let mut types: Vec<_> = strict[name].keys().copied().collect();
        types.sort();
        types
    };
    assert_eq!(types("a.example"), [Rtype::A, Rtype::DS]);
    assert_eq!(types("b.example"), [Rtype::MX]);
    assert_eq!(types("c.example"), [Rtype::A, Rtype::AAAA, Rtype::DS]);
    assert!(asked("")["b.example"].keys().all(|rtype| *rtype != Rtype::MX));
}

/// The same arguments always give the same bytes. If this differs, populations of earlier versions are others now.
#[test]
fn a_population_is_what_it_was() {
    let hash = |words: &str| {
        let mut bytes = Vec::new();
        for (due_ns, client, transport, flags, message) in records(&arguments(words), &table()) {
            bytes.extend(due_ns.to_be_bytes());
            bytes.extend(client.to_be_bytes());
            bytes.extend([transport as u8, flags]);
            bytes.extend(message);
        }
        (bytes.len(), fnv1a(&bytes))
    };
    let size = "--clients 200 --qps 200 --duration 10s";
    let unusual = "--seed 3 --exponent 1.1 --once 10% --missing 20% --missing-once 40% --missing-names 50 --spread 1 \
                   --page-share 60% --page-median 3 --page-mean 5 --page-gap 20ms --repeats 10% --tcp-share 20% \
                   --types A=40,AAAA=30,PTR=20,MX=10 --edns-share 50% --do-share 20% --no-recursion-desired";
    let found = [
        hash(size),
        hash(&format!("{size} {unusual}")),
        hash(&format!("{size} {unusual} --keep-share 50%")),
        hash(&format!("{size} {unusual} --keep-queries 50%")),
    ];
    let expected = [
        (108_832, 1_634_105_801_104_826_852),
        (108_693, 14_203_647_438_904_947_712),
        (53_473, 15_705_450_770_027_364_749),
        (55_851, 9_908_802_874_148_036_268),
    ];
    assert_eq!(found, expected);
}

#[test]
fn another_seed_is_another_population() {
    let of = |seed: u64| records(&arguments(&format!("--clients 50 --qps 100 --duration 2s --seed {seed}")), &table());
    assert_ne!(of(1), of(2));
}
