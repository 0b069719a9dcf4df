//! `generate world` and `serve world` from outside, over loopback.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    process::Command,
    time::{Duration, Instant},
};

use domain::base::{Message, Name, Rtype};
use serde_json::Value;

use crate::process::{ENGINE, PATIENCE, Process, Server};

fn generate(directory: &std::path::Path, arguments: &str) -> String {
    let spec = directory.join("world.toml").display().to_string();
    let words = format!("generate world --zones 200 --set tlds.count=20 --out {spec} {arguments}");
    let made = Command::new(ENGINE).args(words.split_whitespace()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    spec
}

fn query(name: &[u8], rtype: Rtype) -> Vec<u8> {
    let header = [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header[..], name, &rtype.to_int().to_be_bytes(), &[0, 1]].concat()
}

#[test]
fn each_server_answers_from_its_own_address_over_udp_and_tcp() {
    let directory = tempfile::tempdir().unwrap();
    let spec = generate(directory.path(), "");
    let out = directory.path().join("out");
    let arguments =
        format!("world {spec} --out {} --ipv4 127.64.0.0/18 --family ipv4 --port 0 --threads 2", out.display());
    let server = Server::start(&arguments);
    let port = server.ready["port"].as_u64().unwrap() as u16;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let names: [(&str, &[u8], Rtype, bool); 3] = [
        ("127.64.0.1", b"\0", Rtype::NS, true),
        ("127.64.0.13", b"\x03nic\x03com\0", Rtype::A, false),
        // The first operator runs arpa.
        ("127.64.0.14", b"\x07iN-addr\x04arpa\0", Rtype::SOA, true),
    ];
    for (address, name, rtype, is_authoritative) in names {
        let to: SocketAddr = format!("{address}:{port}").parse().unwrap();
        socket.send_to(&query(name, rtype), to).unwrap();
        let mut buffer = [0; 2000];
        let (length, from) = socket.recv_from(&mut buffer).expect("an answer");
        assert_eq!(from, to);
        let udp = Message::from_octets(&buffer[..length]).unwrap();
        assert_eq!((udp.header().aa(), udp.no_error()), (is_authoritative, true));
        assert_eq!(&buffer[12..12 + name.len()], name);
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let bytes = query(name, rtype);
        stream.write_all(&[&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat()).unwrap();
        let mut prefix = [0; 2];
        stream.read_exact(&mut prefix).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(prefix))];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(Message::from_octets(&answer).unwrap().header_counts().ancount(), udp.header_counts().ancount());
    }
    // Nobody's name, one that is made not to exist, and how BIND before 9.20 asks for a referral.
    for name in [&b"\x07no-such\0"[..], b"\x04a-nx\0", b"\x01_\x07no-such\0"] {
        socket.send_to(&query(name, Rtype::A), ("127.64.0.1", port)).unwrap();
        socket.recv_from(&mut [0; 2000]).expect("an answer");
    }
    let hints = fs::read_to_string(out.join("root.hints")).unwrap();
    assert!(hints.contains("a.root-servers. 3600000 IN A 127.64.0.1\n"), "{hints}");
    let anchor = fs::read_to_string(out.join("root.anchor")).unwrap();
    assert!(anchor.starts_with(". 172800 IN DNSKEY 257 3 8 AwEAA") && anchor.contains("\n. 172800 IN DS "), "{anchor}");
    // The same key is what the root has; with DO it is signed.
    let dnskey = query(b"\0", Rtype::DNSKEY);
    let dnskey = [&dnskey[..11], &[1], &dnskey[12..], &[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]].concat();
    socket.send_to(&dnskey, ("127.64.0.1", port)).unwrap();
    let mut buffer = [0; 2000];
    let length = socket.recv_from(&mut buffer).expect("an answer").0;
    let answer = Message::from_octets(&buffer[..length]).unwrap();
    assert_eq!(answer.answer().unwrap().limit_to::<domain::rdata::Rrsig<_, _>>().count(), 1);
    let public = answer.answer().unwrap().limit_to::<domain::rdata::Dnskey<_>>().next().unwrap().unwrap();
    assert!(anchor.contains(&domain::utils::base64::encode_string(public.data().public_key())));
    let manifest: Value = serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["root_servers"].as_array().unwrap().len(), 13);
    let summary = server.end();
    assert_eq!((&summary["answers"], &summary["not_in_world"], &summary["unsent"]), (&10.into(), &1.into(), &0.into()));
    assert_eq!(summary["signatures"], serde_json::json!({ "given": 1, "made": 1, "forgotten": 0 }));
    assert!(fs::metadata(out.join("queries.arrow")).unwrap().len() > 0);
    assert!(fs::metadata(out.join("not-in-world.arrow")).unwrap().len() > 0);
}

#[test]
fn a_name_is_explained_without_serving() {
    let directory = tempfile::tempdir().unwrap();
    let spec = generate(directory.path(), "--set signing.share=1.0");
    let mut process = Process::start(&format!("serve world {spec} --explain nic.com www.nic.com no.such.tld-x"));
    let [zone, host, missing] = [(); 3].map(|()| process.event("explained"));
    assert_eq!(zone["levels"].as_array().unwrap().len(), 3);
    assert!(zone["types"].as_array().unwrap().contains(&"SOA".into()), "{zone}");
    assert_eq!((&host["name"], &host["rcode"]), (&"www.nic.com".into(), &"NOERROR".into()));
    assert!(host["addresses"].as_u64().unwrap() > 0, "{host}");
    assert_eq!((&zone["security"], &zone["levels"][2]["signing"]["opt_out"]), (&"secure".into(), &false.into()));
    assert_eq!(zone["levels"][0]["signing"]["denial"], "NSEC");
    assert_eq!((&missing["rcode"], missing["levels"].as_array().unwrap().len()), (&"NXDOMAIN".into(), 1));
}

#[test]
fn explaining_waits_for_whoever_reads() {
    let directory = tempfile::tempdir().unwrap();
    let spec = generate(directory.path(), "");
    // More than a pipe and the engine's own queue take.
    let names: Vec<String> = (0..3_000).map(|number| format!("a{number}.nic.com")).collect();
    let mut process = Process::start(&format!("serve world {spec} --explain {}", names.join(" ")));
    assert_eq!(process.event("explained")["name"], names[0]);
    // Nothing is read for longer than other events are waited for at the end.
    std::thread::sleep(Duration::from_secs(1));
    let mut bytes = 0;
    for name in &names[1..] {
        let event = process.event("explained");
        assert_eq!(event["name"], *name);
        bytes += event.to_string().len();
    }
    assert!(bytes > 2 << 20, "{bytes}");
}

#[test]
fn a_world_is_written_with_its_names_and_zones() {
    let directory = tempfile::tempdir().unwrap();
    let (names, dump) = (directory.path().join("names"), directory.path().join("dump"));
    generate(directory.path(), &format!("--names-out {} --dump {}", names.display(), dump.display()));
    let names = fs::read_to_string(names).unwrap();
    assert!(names.lines().any(|line| line.starts_with("nic.com.\t")), "{names}");
    let root = fs::read_to_string(dump.join("zones/root.zone")).unwrap();
    assert!(root.contains("com. 172800 IN NS "), "{root}");
    let count = fs::read_dir(dump.join("zones")).unwrap().count();
    assert_eq!(fs::read_to_string(dump.join("zones.list")).unwrap().lines().count(), count);
    let wrong = Command::new(ENGINE).args(["generate", "world", "--out", "x", "--set", "zones.cuont=1"]).output();
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("cuont"));
}

#[test]
fn names_of_faulty_zones_are_written_apart() {
    let directory = tempfile::tempdir().unwrap();
    let [all, others, faulty] = ["all", "others", "faulty"].map(|name| directory.path().join(name));
    let lame = "--set faults.lame=0.3";
    generate(directory.path(), &format!("{lame} --names-out {}", all.display()));
    let apart = format!("{lame} --names-out {} --faulty-names-out {}", others.display(), faulty.display());
    generate(directory.path(), &apart);
    let lines = |path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (all, others, faulty) = (lines(all), lines(others), lines(faulty));
    assert!(!others.is_empty() && !faulty.is_empty() && others.is_disjoint(&faulty));
    assert_eq!(all, &others | &faulty);
}

/// A zone of each fault, as `--explain` has it.
fn faulty_zones(spec: &str, names: &str) -> BTreeMap<String, Value> {
    let zones: Vec<&str> = names.lines().filter_map(|line| line.split(".\t").next()).collect();
    let zones: Vec<&str> = zones.into_iter().filter(|name| !name.starts_with("www.")).collect();
    let mut process = Process::start(&format!("serve world {spec} --ipv4 127.64.0.0/18 --explain {}", zones.join(" ")));
    let explained = zones.iter().map(|_| process.event("explained"));
    let faulty = explained.filter(|one| one["fault"]["servers"] == "all");
    faulty.map(|one| (one["fault"]["fault"].as_str().unwrap().to_owned(), one)).collect()
}

fn over_tcp(query: &[u8], to: SocketAddr, limit: Duration) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(limit))?;
    stream.write_all(&[&(query.len() as u16).to_be_bytes()[..], query].concat())?;
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

#[test]
fn faults_are_explained_and_seen() {
    let directory = tempfile::tempdir().unwrap();
    let names = directory.path().join("names");
    let kinds = ["lame", "refused", "servfail", "silent", "slow", "truncated", "loop", "oversized"];
    let shares: String = kinds.iter().map(|kind| format!(" --set faults.{kind}=0.12")).collect();
    let spec = generate(directory.path(), &format!("--names-out {}{shares}", names.display()));
    let zones = faulty_zones(&spec, &fs::read_to_string(names).unwrap());
    let effects: Vec<_> = kinds.iter().map(|kind| zones[*kind]["fault"]["effect"].as_str().unwrap()).collect();
    assert_eq!(effects, ["fails", "fails", "fails", "fails", "late", "over-tcp", "fails", "over-tcp"]);
    let out = directory.path().join("out");
    let arguments =
        format!("world {spec} --out {} --ipv4 127.64.0.0/18 --family ipv4 --port 0 --threads 1", out.display());
    let server = Server::start(&arguments);
    let port = server.ready["port"].as_u64().unwrap() as u16;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut seen = BTreeMap::new();
    for (kind, zone) in &zones {
        let servers = &zone["levels"].as_array().unwrap().last().unwrap()["servers"];
        let address = servers[0]["ipv4"].as_str().unwrap();
        let to: SocketAddr = format!("{}:{port}", address).parse().unwrap();
        let name: Name<Vec<u8>> = zone["name"].as_str().unwrap().parse().unwrap();
        let query = query(name.as_slice(), Rtype::A);
        let limit = if kind == "silent" { Duration::from_millis(300) } else { PATIENCE };
        socket.set_read_timeout(Some(limit)).unwrap();
        let start = Instant::now();
        socket.send_to(&query, to).unwrap();
        let mut buffer = [0; 2000];
        let udp = socket.recv_from(&mut buffer).ok().map(|(length, from)| {
            assert_eq!(from, to, "{kind}");
            let answer = Message::from_octets(&buffer[..length]).unwrap();
            (answer.header().rcode().to_int(), answer.header().aa(), answer.header().tc())
        });
        assert!(kind != "slow" || start.elapsed() >= Duration::from_millis(700));
        let tcp = over_tcp(&query, to, limit).ok().map(|answer| {
            let length = answer.len();
            let answer = Message::from_octets(answer).unwrap();
            (answer.header().rcode().to_int(), answer.header().aa(), length > 30_000)
        });
        seen.insert(kind.as_str(), (udp, tcp));
    }
    let both = |rcode, aa| (Some((rcode, aa, false)), Some((rcode, aa, false)));
    let right = both(0, true);
    let expected = [
        ("lame", both(0, false)),
        ("loop", right),
        ("oversized", (Some((0, true, true)), Some((0, true, true)))),
        ("refused", both(5, false)),
        ("servfail", both(2, false)),
        ("silent", (None, None)),
        ("slow", right),
        ("truncated", (Some((0, true, true)), Some((0, true, false)))),
    ];
    assert_eq!(seen, BTreeMap::from(expected));
    let summary = server.end();
    let counts = ["answers", "faulty", "silent", "refused", "unsent"].map(|field| summary[field].as_u64().unwrap());
    assert_eq!(counts, [14, 16, 2, 0, 0]);
}

#[test]
fn a_world_has_all_names_of_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let [names, stream, spec] = ["names", "asked.stream", "covers.toml"].map(|name| directory.path().join(name));
    let asked = "www.shop.example.org.\t60\tA,MX\n_sip._udp.a-name.unheard-of.\t5\tSRV\n\
                 7.2.0.192.in-addr.arpa.\t5\tPTR\nplain.com.\t5\tA,AAAA,TXT\n";
    fs::write(&names, asked).unwrap();
    let run = |words: String| {
        let made = Command::new(ENGINE).args(words.split_whitespace()).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let last = made.stdout.trim_ascii().rsplit(|byte| *byte == b'\n').next().unwrap().to_vec();
        serde_json::from_slice::<Value>(&last).unwrap()
    };
    let paths = [&names, &stream, &spec].map(|path| path.display().to_string());
    let [names, stream, spec] = &paths;
    run(format!("generate clients --names {names} --clients 20 --qps 200 --duration 5s --once 0 --out {stream}"));
    let made = run(format!("generate world --zones 50 --set tlds.count=11 --from-stream {stream} --out {spec}"));
    // Beside these clients ask for reverse names of their own.
    assert!(made["asking"]["names"].as_u64().unwrap() >= 4, "{made}");
    assert!(made["asking"]["meant_to_be_missing"].as_u64().unwrap() > 0, "{made}");
    let listed: Vec<&str> = asked.lines().filter_map(|line| line.split(".\t").next()).collect();
    let mut process = Process::start(&format!("serve world {spec} --explain {} no.{}", listed.join(" "), listed[0]));
    for name in &listed {
        let one = process.event("explained");
        assert!(one["rcode"] == "NOERROR" && !one["types"].as_array().unwrap().is_empty(), "{name}: {one}");
    }
    assert_eq!(process.event("explained")["rcode"], "NXDOMAIN");
    // Another specification that begins with this one has its names, too, also where an older table lies.
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("covers.asked.names"), "a.b.\t1\tA\n").unwrap();
    let other = other.join("world.toml").display().to_string();
    run(format!("generate world --from {spec} --seed 5 --out {other}"));
    let mut process = Process::start(&format!("serve world {other} --explain {}", listed[1]));
    assert_eq!(process.event("explained")["rcode"], "NOERROR");
    // A table that was changed is another one.
    fs::write(directory.path().join("covers.asked.names"), "a.b.\t1\tA\n").unwrap();
    let wrong = Command::new(ENGINE).args(["serve", "world", spec, "--explain", "a.b"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("SHA-256"), "{wrong:?}");
}
