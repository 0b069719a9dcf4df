//! `serve zones` from outside, over loopback: UDP, TCP, TLS, signatures, NOTIFY, faults, and what it needs of memory.

use std::{
    collections::HashMap,
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream, UdpSocket},
    path::Path,
    process::{Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

use dnsrig_dns::{
    query::{Ask, write_query},
    xfr::{Incoming, Limits, Outcome, Step},
};
use dnsrig_net::tls::DOT;
use domain::{
    base::{Message, MessageBuilder, Name, ParsedName, Rtype},
    rdata::{Soa, tsig::Time48},
    tsig::{ClientSequence, Key, KeyName},
    utils::base64,
};
use nix::{sys::signal::Signal, unistd::Pid};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use serde_json::Value;

use crate::{
    process::{ENGINE, PATIENCE, Server},
    rows::{batch, batches},
};

const LIMITS: Limits = Limits { bytes_max: 1 << 40, records_max: 1 << 40, messages_max: 1 << 30 };

fn start(arguments: &str) -> Server {
    Server::start(&format!("zones 127.0.0.1:0 --xot-port 0 {arguments}"))
}

/// What it has of memory, in KiB.
fn resident_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn zone(number: u32) -> Vec<u8> {
    [format!("\x07z{number:06}").as_bytes(), b"\x07example\0"].concat()
}

fn query(id: u16, number: u32, ask: Ask) -> Vec<u8> {
    let mut message = Vec::new();
    write_query(&mut message, id, &zone(number), ask);
    message
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn framed_transfers(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(|number| framed(&query(number as u16, number, Ask::Axfr))).collect()
}

/// The next message; none at the end.
fn next(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).unwrap();
    Some(message)
}

fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

/// Reads answers to AXFRs of zones whose ids are their numbers until all of them have ended, and how: in that order.
fn outcomes(stream: &mut impl Read, numbers: std::ops::Range<u32>) -> Vec<(u32, Outcome)> {
    let mut running: HashMap<u32, Incoming> = numbers.map(|number| (number, Incoming::new(Ask::Axfr, None))).collect();
    let mut ended = Vec::new();
    while !running.is_empty() {
        let Some(message) = next(stream) else { break };
        let number = u32::from(id(&message));
        let incoming = running.get_mut(&number).expect("an answer to a question");
        if let Step::Done(outcome) = incoming.take(&message, &zone(number), 0, &LIMITS, &mut ()) {
            running.remove(&number);
            ended.push((number, outcome));
        }
    }
    ended
}

fn all_done(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, Outcome)> {
    numbers.into_iter().map(|number| (number, Outcome::Done)).collect()
}

#[test]
fn thousands_of_zones_come_on_one_connection_and_in_order() {
    let zones = start("--count 3000 --records 12 --threads 2 --transport tcp,udp");
    assert_eq!(zones.address("tcp").port(), zones.address("udp").port());
    let mut stream = zones.tcp();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        writer.write_all(&framed_transfers(0..3000)).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(outcomes(&mut stream, 0..3000), all_done(0..3000));
    writing.join().unwrap();
    assert_eq!(next(&mut stream), None, "closed, as there will be no more queries");
    let summary = zones.end();
    assert_eq!((&summary["transfers"]["axfr"], &summary["outcomes"]["done"]), (&3000.into(), &3000.into()));
    assert_eq!((&summary["messages"], &summary["connections"]["accepted"]), (&3000.into(), &1.into()));
}

#[test]
fn a_small_zone_overtakes_a_large_one_only_if_interleaved() {
    for (order, expected) in [("in-order", [0, 1, 2]), ("interleaved", [1, 2, 0])] {
        let zones = start(&format!("--count 3 --large 1:2000000 --order {order} --transport tcp --threads 1"));
        let mut stream = zones.tcp();
        stream.write_all(&framed_transfers(0..1)).unwrap();
        let mut message = next(&mut stream).unwrap();
        // The large transfer is under way when the others are asked for: it would fill every buffer there is.
        stream.write_all(&framed_transfers(1..3)).unwrap();
        let mut left = HashMap::from([(0, 2_000_001), (1, 5), (2, 5)]);
        let mut ended = Vec::new();
        loop {
            let records = left.get_mut(&id(&message)).unwrap();
            *records -= i64::from(u16::from_be_bytes([message[6], message[7]]));
            if *records == 0 {
                ended.push(id(&message));
            }
            if ended.len() == left.len() {
                break;
            }
            message = next(&mut stream).unwrap();
        }
        assert_eq!(ended, expected, "{order}");
    }
}

#[test]
fn who_does_not_read_is_waited_for_in_bounded_memory() {
    let zones = start("--count 1000000 --records 1000 --threads 1 --transport tcp --order interleaved");
    let before_kib = resident_kib(&zones);
    let mut stream = zones.tcp();
    stream.set_nonblocking(true).unwrap();
    let queries = framed_transfers(0..60_000);
    let mut sent = 0;
    let mut idle = 0;
    // Until nothing more is taken for a while: 60,000 zones of 27 kB fit nowhere.
    while idle < 20 && sent < queries.len() {
        match stream.write(&queries[sent..]) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(_) => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let grown_kib = resident_kib(&zones).saturating_sub(before_kib);
    assert!(grown_kib < 8 * 1024, "{grown_kib} KiB for one connection that does not read");
    drop(stream);
    let summary = zones.end();
    assert!(summary["outcomes"]["abandoned"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn memory_grows_with_neither_the_number_nor_the_size_of_zones() {
    const READ_BYTES: usize = 64 << 20;
    let mut resident = Vec::new();
    for shape in ["--count 10000000 --records 2", "--count 1 --records 1000000000", "--count 10 --records 2"] {
        let zones = start(&format!("{shape} --threads 1 --transport tcp"));
        let mut stream = zones.tcp();
        let catalog = [&b"\0\x07\0\0\0\x01\0\0\0\0\0\0"[..], b"\x07catalog\x07example\0", &[0, 252, 0, 1]].concat();
        stream.write_all(&framed_transfers(0..1)).unwrap();
        stream.write_all(&framed(&catalog)).unwrap();
        let mut read = 0;
        let mut buffer = vec![0; 1 << 20];
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        while read < READ_BYTES {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => read += count,
            }
        }
        resident.push(resident_kib(&zones));
    }
    let smallest = resident.iter().min().unwrap();
    assert!(resident.iter().all(|kib| *kib < smallest + 4096), "{resident:?} KiB");
}

#[test]
fn soas_and_notifies_are_answered_over_udp_and_transfers_are_not() {
    let zones = start("--count 5 --serial 7 --changes-before 3 --threads 1");
    let socket = zones.udp();
    let mut buffer = [0; 1500];
    let mut ask = |message: &[u8]| {
        socket.send(message).unwrap();
        let length = socket.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    };
    let soa = ask(&query(1, 4, Ask::Soa));
    assert_eq!((id(&soa), &soa[2..8]), (1, &[0x84, 0, 0, 1, 0, 1][..]));
    let mut incoming = Incoming::new(Ask::Soa, None);
    assert_eq!(incoming.take(&soa, &zone(4), 0, &LIMITS, &mut ()), Step::Done(Outcome::Done));
    assert_eq!(incoming.counts().serial, Some(10));
    assert_eq!(ask(&query(2, 4, Ask::Ixfr { serial: 9 }))[6..8], [0, 1], "the SOA alone");
    assert_eq!(ask(&query(3, 4, Ask::Axfr))[3], 1, "FORMERR");
    let mut notify = query(4, 4, Ask::Soa);
    notify[2] |= 4 << 3;
    assert_eq!(ask(&notify)[2..4], [0x84 | 4 << 3, 0]);
    socket.send(&[0; 5]).unwrap();
    socket.send(&soa).unwrap();
    assert_eq!(id(&ask(&query(5, 1, Ask::Soa))), 5);
    let summary = zones.end();
    assert_eq!((&summary["queries"], &summary["ignored"], &summary["soa"]), (&5.into(), &2.into(), &2.into()));
}

#[test]
fn changes_are_told_again_until_they_are_answered_and_can_be_fetched() {
    let secondary = UdpSocket::bind("127.0.0.1:0").unwrap();
    secondary.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = secondary.local_addr().unwrap();
    let zones = start(&format!("--count 3 --changes-per-s 2 --threads 1 --notify {told}"));
    let mut buffer = [0; 1500];
    let mut next_notify = || {
        let (length, from) = secondary.recv_from(&mut buffer).unwrap();
        assert_eq!(from.ip(), told.ip());
        assert_eq!(buffer[2..8], [4 << 3 | 4, 0, 0, 1, 0, 1], "NOTIFY with a question and a SOA");
        (buffer[..length].to_vec(), from)
    };
    let (first, from) = next_notify();
    assert_eq!(first[12..29], zone(0));
    // The first stays without an answer, so it comes again; all others are answered.
    loop {
        let (message, _) = next_notify();
        let mut answer = message.clone();
        answer[2] |= 0x80;
        secondary.send_to(&answer, from).unwrap();
        if message[..2] == first[..2] {
            break;
        }
    }
    // What was told of can be had.
    let mut stream = zones.tcp();
    stream.write_all(&framed(&query(9, 0, Ask::Ixfr { serial: 1 }))).unwrap();
    let mut incoming = Incoming::new(Ask::Ixfr { serial: 1 }, None);
    let step = incoming.take(&next(&mut stream).unwrap(), &zone(0), 0, &LIMITS, &mut ());
    assert_eq!(step, Step::Done(Outcome::Done));
    assert!(incoming.counts().serial >= Some(2));
    // Closing the socket makes the rest unreachable, which ends nothing.
    drop(secondary);
    std::thread::sleep(Duration::from_millis(700));
    let notify = zones.end()["notify"].clone();
    let count = |name: &str| notify[name].as_u64().unwrap();
    assert!(count("retries") >= 1 && count("answered") >= 1 && count("sent") > count("answered"), "{notify}");
}

/// What signals say: changes begin, and end.
fn signal(zones: &Server, signal: Signal) {
    nix::sys::signal::kill(Pid::from_raw(zones.id() as i32), signal).unwrap();
}

/// Fetches the catalog as `what` asks for it: the serial that came, and how many records.
fn catalog(stream: &mut TcpStream, what: Ask) -> (u32, u64) {
    let name = b"\x07catalog\x07example\0";
    let mut message = Vec::new();
    write_query(&mut message, 3, name, what);
    stream.write_all(&framed(&message)).unwrap();
    let mut incoming = Incoming::new(what, None);
    while incoming.take(&next(stream).unwrap(), name, 0, &LIMITS, &mut ()) != Step::Done(Outcome::Done) {}
    (incoming.counts().serial.unwrap(), incoming.counts().records)
}

#[test]
fn members_leave_the_catalog_and_come_back_when_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("changes.arrow");
    let secondary = UdpSocket::bind("127.0.0.1:0").unwrap();
    secondary.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut zones = start(&format!(
        "--count 100000 --changes-of catalog --changes-per-s 1000 --absent 50 --changes-on-signal --threads 2 \
         --notify {} --notify-interval 20ms --out {}",
        secondary.local_addr().unwrap(),
        out.display()
    ));
    let mut stream = zones.tcp();
    assert_eq!(catalog(&mut stream, Ask::Axfr), (1, 100_003), "nothing happens before it is asked for");
    signal(&zones, Signal::SIGUSR1);
    let begun = zones.event("changes-begun");
    // NOTIFYs come as long as there are changes; a SOA query sees at once what each of them says.
    let soa = zones.udp();
    let mut told = Vec::new();
    while told.len() < 5 {
        let mut buffer = [0; 1500];
        let (length, from) = secondary.recv_from(&mut buffer).unwrap();
        let notify = Message::from_octets(&buffer[..length]).unwrap();
        let record = notify.answer().unwrap().limit_to_in::<Soa<ParsedName<_>>>().next().unwrap().unwrap();
        told.push(record.data().serial().into_int());
        buffer[2] |= 0x80;
        secondary.send_to(&buffer[..length], from).unwrap();
        let mut query = Vec::new();
        write_query(&mut query, 1, b"\x07catalog\x07example\0", Ask::Soa);
        soa.send(&query).unwrap();
        let length = soa.recv(&mut buffer).unwrap();
        let mut incoming = Incoming::new(Ask::Soa, None);
        let step = incoming.take(&buffer[..length], b"\x07catalog\x07example\0", 0, &LIMITS, &mut ());
        assert_eq!(step, Step::Done(Outcome::Done));
        assert!(incoming.counts().serial >= told.last().copied());
    }
    let (serial, records) = catalog(&mut stream, Ask::Ixfr { serial: 1 });
    assert_eq!(records, 1 + 3 * u64::from(serial - 1), "a member a serial");
    signal(&zones, Signal::SIGUSR2);
    let ended = zones.event("changes-ended");
    let changes = ended["changes"].as_u64().unwrap();
    let elapsed_ns = ended["end_ns"].as_i64().unwrap() - begun["begin_ns"].as_i64().unwrap();
    assert_eq!(changes, elapsed_ns as u64 / 1_000_000, "a thousand a second");
    std::thread::sleep(Duration::from_millis(30));
    let last = catalog(&mut stream, Ask::Ixfr { serial });
    assert_eq!(last.0, 1 + changes as u32, "and then no more");
    let missing = ended["removed"].as_u64().unwrap() - ended["added"].as_u64().unwrap();
    assert_eq!(catalog(&mut stream, Ask::Axfr).1, 100_003 - missing);

    let rows = batch(&out);
    assert!(rows.values::<u32>("serial").unwrap().into_iter().eq(2..2 + changes as u32));
    let due: Vec<i64> = rows.values("due_ns").unwrap();
    assert!(due.windows(2).all(|pair| (999_999..=1_000_001).contains(&(pair[1] - pair[0]))));
    assert_eq!(rows.values::<String>("zone").unwrap()[7], "z000007.example");

    drop(stream);
    let summary = zones.end();
    assert_eq!(summary["changes"]["changes"], changes);
    let [secondary] = &summary["secondaries"].as_array().unwrap()[..] else { panic!("{summary}") };
    assert_eq!((&secondary["address"], &secondary["serial"]), (&"127.0.0.1".into(), &(1 + changes).into()));
    assert_eq!((&secondary["asked"], &secondary["served"]["ixfr"]), (&secondary["served"], &2.into()));
    assert!(secondary["notifies_answered"].as_u64() >= Some(5), "{secondary}");
}

#[test]
fn a_probe_knows_when_each_change_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("propagation.arrow");
    let rate = "--count 3 --changes-per-s 200 --changes-on-signal --changes-delay 3s --threads 1";
    let mut zones = start(rate);
    signal(&zones, Signal::SIGUSR1);
    let begin_ns = zones.event("changes-begun")["begin_ns"].as_i64().unwrap();
    let address = zones.address("udp");
    let output = Command::new(ENGINE)
        .args(["propagation", "--rate=200", "--changes=60", "--limit=5s"])
        .args([format!("--made-from-ns={begin_ns}"), format!("--out={}", out.display())])
        .args([format!("--primary={address}"), format!("--secondary={address}")])
        .args(["--zone=z000000.example", "--zone=z000001.example", "--zone=z000002.example"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = batches(&out).remove(0);
    let times = |name: &str| rows.optional_values::<i64>(name).unwrap();
    let (changed, unseen, seen) = (times("changed_ns"), times("last_unseen_ns"), times("seen_ns"));
    assert_eq!(changed[0], Some(begin_ns + 5_000_000));
    for row in 0..60 {
        assert!(seen[row].unwrap() >= changed[row].unwrap(), "not before it is made");
        assert!(unseen[row] <= changed[row].map(|changed_ns| changed_ns + 1_000), "and at once from then on");
    }
}

const SECRET: &str = "c2VjcmV0IG9mIGEga2V5IQ==";

/// A signed query for a zone and what checks the answers.
fn signed(number: u32, secret: &str) -> (Vec<u8>, ClientSequence<Arc<Key>>) {
    let secret: Vec<u8> = base64::decode(secret).unwrap();
    let name = "transfer.example".parse::<KeyName>().unwrap();
    let key = Arc::new(Key::new("hmac-sha256".parse().unwrap(), &secret, name, None, None).unwrap());
    let mut question = MessageBuilder::new_vec().question();
    question.push((Name::<Vec<u8>>::from_octets(zone(number)).unwrap(), Rtype::AXFR)).unwrap();
    let mut additional = question.additional();
    let sequence = ClientSequence::request(key, &mut additional, Time48::now()).unwrap();
    (additional.finish(), sequence)
}

#[test]
fn signatures_are_asked_for_and_given() {
    let key = format!("--tsig hmac-sha256:transfer.example:{SECRET} --tsig-every 7");
    let zones = start(&format!("--count 9 --records 3000 --message-bytes 1000 --transport tcp {key}"));
    let mut stream = zones.tcp();
    let (query_of_4, mut sequence) = signed(4, SECRET);
    stream.write_all(&framed(&query_of_4)).unwrap();
    let mut count = 0;
    let mut soas = 0;
    while soas < 2 {
        let mut message = Message::from_octets(next(&mut stream).unwrap()).unwrap();
        sequence.answer(&mut message, Time48::now()).unwrap();
        let records = message.answer().unwrap().map(|record| record.unwrap().rtype());
        soas += records.filter(|rtype| *rtype == Rtype::SOA).count();
        count += 1;
    }
    sequence.done().unwrap();
    assert!(count > 50, "{count} messages");
    stream.write_all(&framed(&query(1, 4, Ask::Axfr))).unwrap();
    assert_eq!(next(&mut stream).unwrap()[3], 5, "REFUSED without a signature");
    stream.write_all(&framed(&signed(4, "b3RoZXIgc2VjcmV0IGtleQ==").0)).unwrap();
    assert_eq!(next(&mut stream).unwrap()[3], 9, "NOTAUTH with a wrong one");
    let outcomes = &zones.end()["outcomes"];
    assert_eq!((&outcomes["done"], &outcomes["refused"], &outcomes["notauth"]), (&1.into(), &1.into(), &1.into()));
}

/// A certificate for 127.0.0.1 and its key, in PEM files and as DER.
fn identity(directory: &Path, name: &str) -> (String, String, CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, key] = ["certificate", "key"].map(|what| directory.join(format!("{name}-{what}.pem")));
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let key_der = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    (text(&certificate), text(&key), made.cert.der().clone(), key_der)
}

fn client_config(
    trusted: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
    own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![DOT.alpn.to_vec()];
    Arc::new(config)
}

fn connect_tls(zones: &Server, config: &Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let socket = TcpStream::connect(zones.address("xot")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), socket)
}

#[test]
fn transfers_come_over_tls_13_which_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key, trusted, _) = identity(directory.path(), "server");
    let files = format!("--certificate {certificate} --key {key}");
    let zones = start(&format!("--count 400 --large 1:20000 --transport xot --threads 2 {files}"));
    let config = client_config(&trusted, &TLS13, None);
    for attempt in 0..4 {
        let mut stream = connect_tls(&zones, &config);
        stream.write_all(&framed_transfers(0..400)).unwrap();
        assert_eq!(outcomes(&mut stream, 0..400), all_done(0..400));
        assert_eq!(stream.conn.alpn_protocol(), Some(DOT.alpn));
        assert_eq!(stream.conn.handshake_kind() == Some(HandshakeKind::Resumed), attempt > 0);
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    let old = client_config(&trusted, &TLS12, None);
    assert!(connect_tls(&zones, &old).write_all(&framed_transfers(0..1)).is_err(), "RFC 9103 asks for TLS 1.3");
    let summary = zones.end();
    let connections = &summary["connections"];
    assert_eq!((&connections["handshakes"], &connections["resumed"]), (&4.into(), &3.into()));
    assert_eq!((&connections["tls_failed"], &summary["outcomes"]["done"]), (&1.into(), &1600.into()));
}

#[test]
fn clients_can_be_asked_for_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key, trusted, _) = identity(directory.path(), "server");
    let (client_ca, _, own, own_key) = identity(directory.path(), "client");
    let files = format!("--certificate {certificate} --key {key} --client-ca {client_ca}");
    let zones = start(&format!("--count 4 --transport xot --threads 1 {files}"));
    let mut stream = connect_tls(&zones, &client_config(&trusted, &TLS13, Some((own, own_key))));
    stream.write_all(&framed_transfers(0..1)).unwrap();
    assert_eq!(outcomes(&mut stream, 0..1), all_done([0]));
    let mut stranger = connect_tls(&zones, &client_config(&trusted, &TLS13, None));
    let refused = stranger.write_all(&framed_transfers(0..1)).is_err() || next(&mut stranger).is_none();
    assert!(refused);
    assert_eq!(zones.end()["connections"]["tls_failed"], 1);
}

#[test]
fn a_connection_that_is_closed_on_purpose_loses_nothing_that_was_sent() {
    let zones = start("--count 2000 --transport tcp --fault close-after=700 --threads 1");
    let mut stream = zones.tcp();
    let mut writer = stream.try_clone().unwrap();
    // More queries than are answered: closing while they lie unread would reset the connection.
    let writing = std::thread::spawn(move || writer.write_all(&framed_transfers(0..2000)));
    assert_eq!(outcomes(&mut stream, 0..2000), all_done(0..700));
    writing.join().unwrap().unwrap();
    drop(stream);
    let summary = zones.end();
    assert_eq!((&summary["outcomes"]["done"], &summary["connections"]["reset"]), (&700.into(), &0.into()));
    let count = |number: &Value| number.as_u64().unwrap();
    assert_eq!(count(&summary["outcomes"]["abandoned"]), count(&summary["transfers"]["axfr"]) - 700);
}

#[test]
fn faults_reach_the_other_side() {
    let run = |arguments: &str, numbers: std::ops::Range<u32>| {
        let zones = start(&format!("--count 100 --transport tcp --threads 1 {arguments}"));
        let mut stream = zones.tcp();
        stream.write_all(&framed_transfers(numbers.clone())).unwrap();
        outcomes(&mut stream, numbers)
    };
    let servfail = run("--fault servfail-after=2", 0..4);
    assert_eq!(servfail[1..], [(1, Outcome::Done), (2, Outcome::Servfail), (3, Outcome::Servfail)]);
    let busy = run("--concurrent-max 1", 0..3);
    assert_eq!(busy, [(0, Outcome::Done), (1, Outcome::Servfail), (2, Outcome::Servfail)]);
    let some = run("--fault soa-different --fault-every 2", 0..3);
    assert_eq!(some, [(0, Outcome::SoaDifferent), (1, Outcome::Done), (2, Outcome::SoaDifferent)]);
    assert_eq!(run("--fault cut-after=3 --records-per-message 1", 0..2), []);
    assert_eq!(run("--fault slow=20ms --records-per-message 2", 0..3), all_done(0..3));
}

#[test]
fn who_says_nothing_is_closed() {
    let zones = start("--count 1 --transport tcp --idle-timeout 200ms --threads 1");
    let mut stream = zones.tcp();
    assert_eq!(next(&mut stream), None);
    assert_eq!(zones.end()["connections"]["idle"], 1);
}

fn fails(arguments: &[&str]) -> Output {
    let output = Command::new(ENGINE).args(["serve", "zones"]).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    output
}

#[test]
fn bad_input_is_told() {
    let free = "127.0.0.1:0";
    let cases: [(&[&str], &str); 16] = [
        (&[free], "--count"),
        (&["192.0.2.1", "--count", "1"], "--i-am-authorized 192.0.2.1"),
        (&[free, "--count", "1", "--notify", "192.0.2.1"], "--i-am-authorized 192.0.2.1"),
        (&[free, "--count", "1", "--notify", "::1"], "another family"),
        (&[free, "--count", "1", "--fault", "nonsense"], "cut-after=N"),
        (&[free, "--count", "1", "--large", "7"], "N:RECORDS"),
        (&[free, "--count", "9", "--catalog", "z000000.example"], "--catalog"),
        (&[free, "--count", "9", "--changes-of", "catalog", "--first-member", "8"], "--first-member"),
        (&[free, "--count", "1", "--tsig", "nonsense"], "ALGORITHM:NAME:SECRET"),
        (&[free, "--count", "9", "--first-member", "1"], "--changes-of"),
        (&[free, "--count", "9", "--notify-interval", "1s"], "--notify "),
        (&[free, "--count", "9", "--changes-of", "catalog", "--change-records", "2"], "--change-records has no effect"),
        (&[free, "--count", "1", "--client-ca", "/nonexistent.pem"], "add xot or xoq to --transport"),
        (&[free, "--count", "1", "--quic-congestion", "bbr"], "add xoq to --transport"),
        (&[free, "--count", "1", "--transport", "xoq", "--fault", "slow=1ms"], "leave xoq out"),
        (
            &[free, "--count", "1", "--client-ca", "/nonexistent.pem", "--transport", "xot", "--xot-port", "0"],
            "/nonexistent.pem",
        ),
    ];
    for (arguments, text) in cases {
        let output = fails(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(text), "{message}");
    }
    let output = fails(&[free, "--count", "1", "--changes-per-s", "1", "--out", "/nonexistent/rows"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the folder /nonexistent:"), "{output:?}");
}
