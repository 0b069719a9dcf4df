use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    load: Arguments,
}

fn parse(words: &str) -> Result<Arguments, String> {
    let words = format!("load 127.0.0.1 --queries - {words}");
    CommandLine::try_parse_from(words.split_whitespace()).map(|line| line.load).map_err(|error| error.to_string())
}

/// The clients of each thread, or the sentence that refuses the arguments.
fn clients(words: &str) -> Result<Vec<usize>, String> {
    let arguments = parse(words)?;
    let clients = || arguments.check().and_then(|()| arguments.clients(arguments.plan(Authority::Rig)?));
    clients().map(|clients| clients.of_threads).map_err(|error| error.to_string())
}

fn sources(count: u32) -> String {
    (1..=count).map(|number| format!("--source 127.0.{}.{} ", number / 256, number % 256)).collect()
}

#[test]
fn every_source_is_used_or_the_load_is_refused() {
    assert_eq!(clients(&sources(200)), Ok(vec![200]));
    assert_eq!(clients(&sources(3)), Ok(vec![16]));
    assert_eq!(clients(&(sources(2) + "--clients 2")), Ok(vec![2]));
    let refused = clients(&(sources(200) + "--clients 16")).unwrap_err();
    assert_eq!(
        refused,
        "16 clients are too few for the addresses of --source: use --clients 200 or more, or leave addresses out"
    );
    // Each of two generators has addresses of its own.
    assert_eq!(clients(&(sources(20) + "--segment 2/2")), Ok(vec![20]));
    assert!(clients(&(sources(20) + "--segment 2/2 --clients 39")).unwrap_err().contains("--clients 40"));
}

#[test]
fn threads_share_the_sources_among_their_clients() {
    let arguments = parse(&(sources(5) + "--threads 2")).unwrap();
    let of = |first, count| {
        let last = |address: IpAddr| address.to_string().rsplit_once('.').map(|(_, last)| last.to_owned()).unwrap();
        arguments.sources_of(first, count).into_iter().map(last).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((of(0, 3), of(3, 3)), ("1 2 3".into(), "4 5 1".into()));
    assert_eq!(parse("").unwrap().sources_of(3, 3), Vec::<IpAddr>::new());
}

#[test]
fn held_connections_have_a_rate_and_small_tables() {
    let arguments = parse("--transport tcp --clients 3000 --hold 30s").unwrap();
    let plan = arguments.plan(Authority::Rig).unwrap();
    assert_eq!(plan, Plan::Once(Model::Rate { qps: 100.0, poisson: false }));
    assert_eq!(arguments.clients(plan).unwrap().table, PLACES_MIN_HELD);
    let rates = |words: &str| {
        let hold = parse(&format!("--transport dot --clients 9 --hold 1s {words}")).unwrap().hold;
        [false, true].map(|vouched| hold.open_rate(vouched))
    };
    assert_eq!((rates(""), rates("--open-rate 7")), ([1_000, 100], [7, 7]));
    for (words, part) in [
        ("--hold 1s", "--clients"),
        ("--open-rate 7", "--hold"),
        ("--held-as half-open", "--hold"),
        ("--hold 1s --clients 9 --rate 5", "cannot be used with"),
    ] {
        assert!(parse(words).unwrap_err().contains(part), "{words}");
    }
}

#[test]
fn what_would_be_ignored_is_refused() {
    for (words, part) in [
        ("--hold 1s --clients 5", "--hold has no effect with --transport udp"),
        ("--hold 1s --clients 5 --held-as slow-reader --transport doq", "--held-as has no effect with --transport doq"),
        (
            "--hold 1s --clients 5 --held-as half-open --transport tcp --queries-per-connection 1",
            "--held-as half-open asks nothing",
        ),
        ("--clients 65537", "more than 65536 clients need --hold"),
        ("--queries-per-connection 1", "--queries-per-connection has no effect with --transport udp: leave it out"),
        ("--close fin", "--close has no effect with --transport udp"),
        ("--no-resumption --transport tcp", "--no-resumption has no effect with --transport tcp"),
        ("--segmentation off --transport dot", "--segmentation off has no effect"),
        ("--doh-method get --transport dot", "--doh-method has no effect with --transport dot"),
        ("--early-data --transport tcp", "--early-data has no effect with --transport tcp"),
        ("--early-data --transport doh", "add --doh-method get"),
        ("--doh-path /q --transport doq", "--doh-path has no effect with --transport doq"),
        ("--verify pin --pin AAAA --transport tcp", "--verify has no effect with --transport tcp"),
        ("--verify ca --transport doh", "--ca"),
        ("--doh-path dns-query --transport doh", "expected a path such as /dns-query"),
        ("--threads 4 --clients 2", "2 clients are too few for --threads: use --clients 4 or more"),
        ("--ramp-max 5000", "--ramp"),
        ("--ramp-repeats 3", "--ramp"),
        ("--ramp --ramp-repeats 2", "an odd number"),
        ("--ramp --ramp-max 1000", "--ramp-max is below --ramp-start"),
    ] {
        let refused = clients(words).unwrap_err();
        assert!(refused.contains(part), "{words}: {refused}");
    }
    for words in [
        "--queries-per-connection 0",
        "--close fin --no-resumption --queries-per-connection 1 --transport dot",
        "--close fin --no-resumption --queries-per-connection 1 --transport doh --doh-method get --server-name dns.example",
        "--early-data --transport doh --doh-method get",
        "--ramp --ramp-repeats 5 --ramp-max 3000",
        "--threads 20",
    ] {
        assert!(clients(words).is_ok(), "{words}");
    }
}

#[test]
fn a_foreign_server_is_asked_gently_unless_a_rate_is_named() {
    let max_qps = |words: &str| match parse(words).unwrap().plan(Authority::Vouched) {
        Ok(Plan::Ramp(_, settings)) => settings.max_qps,
        plan => panic!("{plan:?}"),
    };
    assert_eq!((max_qps("--ramp"), max_qps("--ramp --ramp-max 5000")), (100.0, 5_000.0));
}

#[test]
fn clients_have_ids_for_a_server_that_answers_nothing() {
    // 2 s of 600,000 queries per second, with 65,536 ids for each client.
    assert_eq!(clients("--rate 600000 --timeout 0.1s").unwrap(), [19]);
    assert_eq!(clients("--rate 1000").unwrap(), [16]);
    assert!(clients("--rate 60000 --clients 1").unwrap_err().contains("use --clients 2 or more"));
}
