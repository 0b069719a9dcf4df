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

#[test]
fn as_many_intervals_are_open_as_there_is_memory_for() {
    let (ms, minute) = (Duration::from_millis(1), MINUTE);
    for (timeout, interval, is_permitted) in [
        (100 * ms, ms, true),
        (101 * ms, ms, false),
        (minute, 600 * ms, true),
        (minute, 594 * ms, false),
        (ms, minute, true),
    ] {
        let checked = check_intervals(timeout, interval);
        assert_eq!(checked.is_ok(), is_permitted, "{timeout:?} of {interval:?}");
        assert!(checked.err().is_none_or(|failure| failure.sentence.contains("spans more than 100 intervals")));
    }
}

#[test]
fn the_number_of_repeats_is_odd_and_has_two_digits_at_most() {
    let read = |text| parse_repeats(text).ok();
    assert_eq!(["1", "3", "97", "99"].map(read), [Some(1), Some(3), Some(97), Some(99)]);
    assert_eq!(["0", "2", "98", "100", "101", "-1", "three"].map(read), [None; 7]);
}

#[test]
fn rates_and_percentages_have_limits() {
    for (text, rate) in [("0.01", Some(0.01)), ("100000000", Some(1e8)), ("0.009", None), ("100000001", None)] {
        assert_eq!(parse_rate(text).ok(), rate, "{text}");
    }
    for (text, percent) in [("0.0001", Some(0.0001)), ("100", Some(100.0)), ("0.00009", None), ("100.01", None)] {
        assert_eq!(parse_percent(text).ok(), percent, "{text}");
    }
}

/// Each transport has its own port (RFC 1035, RFC 7858, RFC 8484, RFC 9250), and congestion control is of QUIC alone.
#[test]
fn a_transport_has_its_port_and_its_congestion_control() {
    for (transport, port, control) in [
        ("udp", 53, None),
        ("tcp", 53, None),
        ("dot", 853, None),
        ("doh", 443, None),
        ("doq", 853, Some(Congestion::Cubic)),
    ] {
        let arguments = parse(&format!("--transport {transport}")).unwrap();
        assert_eq!((arguments.server().port(), arguments.congestion()), (port, control), "{transport}");
    }
    assert_eq!(parse("--transport doq --congestion bbr").unwrap().congestion(), Some(Congestion::Bbr));
}

#[test]
fn options_of_other_transports_are_refused() {
    let options = [
        ("--proxy-protocol", "udp tcp dot doh"),
        ("--congestion bbr", "doq"),
        ("--close rst", "tcp dot doh"),
        ("--queries-per-connection 1", "tcp dot doh doq"),
        ("--no-resumption", "dot doh doq"),
        ("--early-data --doh-method get", "doh"),
        ("--server-name a.example", "dot doh doq"),
        ("--doh-path /q", "doh"),
        ("--segmentation off", "udp"),
        ("--hold 1s --clients 9", "tcp dot doh doq"),
        ("--hold 1s --clients 9 --held-as slow-reader", "tcp dot doh"),
    ];
    for (option, transports) in options {
        for transport in ["udp", "tcp", "dot", "doh", "doq"] {
            let refused = clients(&format!("{option} --transport {transport}")).err();
            let name = option.split(' ').next().unwrap();
            assert_eq!(refused.is_none(), transports.contains(transport), "{option} with {transport}: {refused:?}");
            assert!(refused.is_none_or(|refused| refused.contains(" has no effect with ")), "{name}");
        }
    }
}

#[test]
fn a_request_names_its_server_with_a_port_that_is_not_the_usual_one() {
    let path = Path::default();
    for (server, name, authority) in [
        ("192.0.2.1:443", None, "192.0.2.1"),
        ("192.0.2.1:8443", None, "192.0.2.1:8443"),
        ("[2001:db8::1]:443", None, "[2001:db8::1]"),
        ("[2001:db8::1]:444", None, "[2001:db8::1]:444"),
        ("192.0.2.1:443", Some("dns.example"), "dns.example"),
        ("192.0.2.1:442", Some("dns.example"), "dns.example:442"),
    ] {
        let made = requests(server.parse().unwrap(), name.map(str::to_owned), Method::Post, &path);
        assert_eq!(format!("{made:?}"), format!("{:?}", Requests::new(Method::Post, authority.to_owned(), &path)));
    }
}

#[test]
fn each_address_family_has_sources_of_its_own() {
    assert!(clients("--source 127.0.0.2").is_ok());
    assert!(clients("--source ::1").unwrap_err().contains("are of different address families"));
}

/// 65,536 clients ask, more only hold their connections.
#[test]
fn the_number_of_clients_has_a_limit() {
    assert_eq!(clients("--clients 65536 --rate 1").map(|clients| clients.len()), Ok(1));
    assert!(clients("--clients 65537 --rate 1").unwrap_err().contains("--hold"));
    assert_eq!(clients("--clients 65537 --hold 60s --transport tcp"), Ok(vec![65_537]));
    assert_eq!(clients("--clients 5 --threads 3"), Ok(vec![2, 2, 1]));
}
