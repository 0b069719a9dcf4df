//! `serve echo` from outside, over loopback: UDP, TCP, DNS over TLS, and every fault.

use std::{
    collections::HashSet,
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream, UdpSocket},
    ops::Deref,
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use dnsrig_core::clock::monotonic_ns;
use dnsrig_net::tls::DOT;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;

use crate::process::{
    ENGINE, PATIENCE, Server,
    descriptors::{cpu_time, limit_files, lowest_free},
};

/// `serve echo`.
struct Echo(Server);

impl Deref for Echo {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl Echo {
    fn start(arguments: &str) -> Self {
        Echo(Server::start(&format!("echo 127.0.0.1:0 --dot-port 0 {arguments}")))
    }

    /// Ends it, checks the sum of what it counted, and returns the summary.
    fn end(self) -> Value {
        let summary = self.0.end();
        let count = |name: &Value| name.as_u64().unwrap();
        let dropped = ["too_long", "lost", "queue_full", "unsent"].map(|kind| count(&summary["dropped"][kind]));
        let unanswered = dropped.iter().sum::<u64>() + count(&summary["waiting"]);
        assert_eq!(count(&summary["queries"]), count(&summary["answers"]) + unanswered, "{summary}");
        let threads = summary["threads"].as_array().unwrap();
        assert_eq!(count(&summary["queries"]), threads.iter().map(|one| count(&one["queries"])).sum::<u64>());
        summary
    }
}

/// A query for the root's SOA with RD set.
fn query(id: u16) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1]].concat()
}

fn answer(id: u16) -> Vec<u8> {
    let mut bytes = query(id);
    bytes[2] = 0x85;
    bytes
}

fn framed(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    messages.into_iter().flat_map(|message| [&(message.len() as u16).to_be_bytes()[..], &message].concat()).collect()
}

fn send(socket: &UdpSocket, ids: impl IntoIterator<Item = u16>) {
    for id in ids {
        socket.send(&query(id)).unwrap();
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).expect("an answer");
    buffer[..length].to_vec()
}

fn receive_id(socket: &UdpSocket) -> u16 {
    let bytes = receive(socket);
    let id = u16::from_be_bytes([bytes[0], bytes[1]]);
    assert_eq!(bytes, answer(id));
    id
}

fn read_exactly(from: &mut impl Read, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).unwrap();
    bytes
}

fn is_closed(mut stream: TcpStream) -> bool {
    matches!(stream.read(&mut [0; 1]), Ok(0))
}

#[test]
fn udp_answers_queries_and_counts_all_else() {
    for arguments in ["--transport udp --threads 2", "--transport udp --threads 1 --segmentation"] {
        let echo = Echo::start(arguments);
        assert_eq!((&echo.ready["tcp"], &echo.ready["dot"]), (&Value::Null, &Value::Null));
        let socket = echo.udp();
        for not_answered in [vec![], vec![0; 11], answer(1), vec![0; 1233], vec![0xff; 3000]] {
            socket.send(&not_answered).unwrap();
        }
        socket.send(&[0; 1232]).unwrap();
        assert_eq!(receive(&socket).len(), 1232);
        send(&socket, 0..200);
        let ids: Vec<u16> = (0..200).map(|_| receive_id(&socket)).collect();
        assert!(ids.iter().copied().eq(0..200), "one socket, one thread, in order");
        let summary = echo.end();
        assert_eq!((&summary["answers"], &summary["dropped"]["too_long"]), (&201.into(), &1.into()));
        assert_eq!(summary["dropped"]["malformed"], 4);
    }
}

#[test]
fn tcp_answers_however_the_queries_are_cut() {
    let echo = Echo::start("--transport tcp,udp --threads 2");
    assert_eq!(echo.address("tcp").port(), echo.address("udp").port());
    let mut stream = echo.tcp();
    for byte in framed([query(1), query(2)]) {
        stream.write_all(&[byte]).unwrap();
    }
    let expected = framed([answer(1), answer(2)]);
    assert_eq!(read_exactly(&mut stream, expected.len()), expected);

    // Many at once, one the largest there can be, one no query; then the end, but for reading.
    let large: Vec<u8> = query(9).into_iter().chain([7; 65_535 - 17]).collect();
    let mut large_answer = large.clone();
    large_answer[2] = 0x85;
    let sent = framed((0..1000).map(query).chain([vec![1, 2, 3], vec![], large, query(10)]));
    let expected = framed((0..1000).map(answer).chain([large_answer, answer(10)]));
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(read_exactly(&mut stream, expected.len()), expected);
    writing.join().unwrap();
    assert!(is_closed(stream));
    let summary = echo.end();
    assert_eq!((&summary["answers"], &summary["dropped"]["malformed"]), (&1004.into(), &2.into()));
    assert_eq!(summary["connections"]["accepted"], 1);
}

#[test]
fn a_client_that_does_not_read_is_waited_for() {
    let echo = Echo::start("--transport tcp --threads 1");
    let mut stream = echo.tcp();
    let count = 400;
    let large = |id: u16| [&query(id)[..], &[7; 50_000]].concat();
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for id in 0..count {
            writer.write_all(&framed([large(id)])).unwrap();
        }
    });
    // 20 MB do not fit the sockets' buffers: the echo has to stop reading.
    std::thread::sleep(Duration::from_millis(300));
    for id in 0..count {
        let bytes = read_exactly(&mut stream, 2 + 17 + 50_000);
        assert_eq!(bytes[2..4], id.to_be_bytes());
    }
    writing.join().unwrap();
    assert_eq!(echo.end()["answers"], u64::from(count));
}

#[test]
fn connections_have_limits() {
    let echo = Echo::start("--transport tcp --threads 1 --connections-max 2 --idle-timeout 100ms");
    let streams = [echo.tcp(), echo.tcp(), echo.tcp()];
    // The third is refused at once, the others when they have been idle.
    let [first, second, third] = streams;
    assert!(is_closed(third) && is_closed(first) && is_closed(second));
    let mut again = echo.tcp();
    again.write_all(&framed([query(5)])).unwrap();
    assert_eq!(read_exactly(&mut again, 19), framed([answer(5)]));
    let connections = &echo.end()["connections"];
    assert_eq!(
        (&connections["accepted"], &connections["refused"], &connections["idle"]),
        (&3.into(), &1.into(), &2.into())
    );
}

#[test]
fn bytes_that_complete_nothing_keep_no_connection() {
    // Parts of a query, and parts of a TLS handshake, each before the idle time is over.
    let echo = Echo::start("--transport tcp,dot --threads 1 --idle-timeout 300ms");
    for address in [echo.address("tcp"), echo.address("dot")] {
        let mut stream = TcpStream::connect(address).unwrap();
        let parts = [&[22, 3, 1, 2, 0][..], &[0; 512]].concat();
        let is_taken = |byte: &u8| {
            thread::sleep(Duration::from_millis(50));
            stream.write_all(&[*byte]).is_ok()
        };
        assert!(!parts.iter().all(is_taken), "it is still open");
    }
    assert_eq!(echo.end()["connections"]["idle"], 2);
}

/// A client that trusts `certificate`, with or without ALPN.
#[test]
fn without_descriptors_each_connection_is_refused_once_and_no_cpu_is_used() {
    let echo = Echo::start("--transport tcp --threads 1");
    let id = echo.id();
    limit_files(id, lowest_free(id));
    let before = cpu_time(id);
    assert!((0..3).all(|_| is_closed(echo.tcp())));
    // Not even a descriptor that is given up for it serves.
    limit_files(id, 3);
    let mut waiting = echo.tcp();
    thread::sleep(Duration::from_millis(1_500));
    assert!(cpu_time(id) - before < Duration::from_millis(200), "{:?}", cpu_time(id) - before);
    limit_files(id, 64);
    waiting.write_all(&framed([query(1)])).unwrap();
    assert_eq!(read_exactly(&mut waiting, answer(1).len() + 2), framed([answer(1)]));
    let connections = &echo.end()["connections"];
    assert_eq!((&connections["refused"], &connections["accepted"]), (&3.into(), &1.into()));
}

fn client_config(certificate: CertificateDer<'static>, alpn: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

fn connect_tls(echo: &Echo, config: &Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let socket = TcpStream::connect(echo.address("dot")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), socket)
}

#[test]
fn dns_over_tls_answers_and_resumes_on_any_thread() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let files = format!("--certificate {} --key {}", certificate.display(), key.display());
    let echo = Echo::start(&format!("--transport dot --threads 2 {files}"));
    let config = client_config(CertificateDer::from_pem_file(&certificate).unwrap(), &[DOT.alpn]);
    for attempt in 0..6 {
        let mut stream = connect_tls(&echo, &config);
        stream.write_all(&framed((0..100).map(query))).unwrap();
        let expected = framed((0..100).map(answer));
        assert_eq!(read_exactly(&mut stream, expected.len()), expected);
        let resumed = stream.conn.handshake_kind() == Some(HandshakeKind::Resumed);
        assert_eq!(resumed, attempt > 0);
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "a goodbye is answered with a goodbye");
    }
    // Another protocol is refused, none at all is not (RFC 7301 §3.2).
    let other = client_config(made.cert.der().clone(), &[b"h2"]);
    assert!(connect_tls(&echo, &other).write_all(&framed([query(1)])).is_err());
    let none = client_config(made.cert.der().clone(), &[]);
    let mut stream = connect_tls(&echo, &none);
    stream.write_all(&framed([query(1)])).unwrap();
    assert_eq!(read_exactly(&mut stream, 19), framed([answer(1)]));
    // What is no TLS is told so and closed.
    let mut plain = TcpStream::connect(echo.address("dot")).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(&framed([query(1)])).unwrap();
    let mut alert = Vec::new();
    let _ = plain.read_to_end(&mut alert);
    assert_eq!(alert.first(), Some(&21));
    let summary = echo.end();
    let connections = &summary["connections"];
    assert_eq!((&summary["answers"], &connections["accepted"]), (&601.into(), &9.into()));
    assert_eq!((&connections["handshakes"], &connections["resumed"]), (&7.into(), &5.into()));
    assert_eq!(connections["tls_failed"], 2);
}

#[test]
fn a_delayed_answer_does_not_come_early_on_any_transport() {
    let echo = Echo::start("--transport udp,tcp --delay 50ms --threads 1");
    let socket = echo.udp();
    let mut stream = echo.tcp();
    let sent_ns = monotonic_ns();
    socket.send(&query(1)).unwrap();
    stream.write_all(&framed([query(2), query(3)])).unwrap();
    // What is already asked is answered, though there will be no more.
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receive_id(&socket), 1);
    assert!(monotonic_ns() - sent_ns >= 50_000_000);
    assert_eq!(read_exactly(&mut stream, 38), framed([answer(2), answer(3)]));
    assert!(monotonic_ns() - sent_ns >= 50_000_000);
    assert!(is_closed(stream));
    assert_eq!(echo.end()["answers"], 3);
}

#[test]
fn answers_to_a_connection_that_is_gone_are_dropped() {
    let echo = Echo::start("--transport udp,tcp --delay 300ms --threads 1");
    let mut stream = echo.tcp();
    stream.write_all(&framed([query(1), query(2)])).unwrap();
    // Closed with a reset, as something was not read (RFC 1122 §4.2.2.13) or by this option.
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })
        .unwrap();
    // The query over UDP comes behind those two, and its answer behind theirs.
    std::thread::sleep(Duration::from_millis(100));
    drop(stream);
    let socket = echo.udp();
    socket.send(&query(3)).unwrap();
    assert_eq!(receive_id(&socket), 3);
    let summary = echo.end();
    assert_eq!((&summary["dropped"]["unsent"], &summary["connections"]["reset"]), (&2.into(), &1.into()));
}

#[test]
fn jitter_reorders_and_loses_nothing() {
    let echo = Echo::start("--transport udp --delay 100ms --jitter 100ms --threads 1");
    let socket = echo.udp();
    send(&socket, 0..100);
    let ids: Vec<u16> = (0..100).map(|_| receive_id(&socket)).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 100);
    assert!(ids.windows(2).any(|pair| pair[1] < pair[0]), "that 100 stay in order by chance is out of the question");
    assert_eq!(echo.end()["answers"], 100);
}

#[test]
fn a_seed_loses_the_same_queries_again() {
    let answered = |seed: u64| {
        let echo = Echo::start(&format!("--transport udp --loss 50% --threads 1 --seed {seed}"));
        let socket = echo.udp();
        send(&socket, 0..200);
        // One thread reads in order: once a marker is answered, so is all that stands before it.
        const MARKER: u16 = 1000;
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut ids = Vec::new();
        while ids.last() != Some(&MARKER) {
            send(&socket, [MARKER]);
            let mut buffer = [0; 100];
            while ids.last() != Some(&MARKER) && socket.recv(&mut buffer).is_ok() {
                ids.push(u16::from_be_bytes([buffer[0], buffer[1]]));
            }
        }
        ids.pop();
        assert!(echo.end()["dropped"]["lost"].as_u64() >= Some(200 - ids.len() as u64));
        assert!((50..150).contains(&ids.len()), "{} of 200", ids.len());
        ids
    };
    assert_eq!(answered(7), answered(7));
    assert_ne!(answered(7), answered(8));
}

#[test]
fn more_than_may_wait_is_dropped_and_counted() {
    let echo = Echo::start("--transport udp --delay 2s --delayed-max 10 --threads 1");
    let socket = echo.udp();
    send(&socket, 0..30);
    let ids: Vec<u16> = (0..10).map(|_| receive_id(&socket)).collect();
    assert!(ids.into_iter().eq(0..10));
    let summary = echo.end();
    assert_eq!((&summary["answers"], &summary["dropped"]["queue_full"]), (&10.into(), &20.into()));
}

/// The end of the stall that `time_ns` lies in, if it does.
fn stall_end_ns(echo: &Echo, time_ns: i64, stall_ns: i64, every_ns: i64) -> Option<i64> {
    let since_ns = time_ns - echo.ready["start_ns"].as_i64().unwrap();
    let end_ns = time_ns + every_ns - since_ns % every_ns;
    (end_ns - time_ns <= stall_ns).then_some(end_ns)
}

#[test]
fn in_a_stall_nothing_is_answered_and_at_its_end_everything() {
    let echo = Echo::start("--transport udp --stall 300ms --stall-every 500ms --threads 1");
    let socket = echo.udp();
    let writer = socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || -> Vec<i64> {
        (0..300)
            .map(|id| {
                std::thread::sleep(Duration::from_millis(5));
                let sent_ns = monotonic_ns();
                writer.send(&query(id)).unwrap();
                sent_ns
            })
            .collect()
    });
    let received_ns: Vec<i64> = (0..300)
        .map(|id| {
            assert_eq!(receive_id(&socket), id);
            monotonic_ns()
        })
        .collect();
    let mut stalled = 0;
    for (sent_ns, received_ns) in writing.join().unwrap().into_iter().zip(received_ns) {
        if let Some(end_ns) = stall_end_ns(&echo, sent_ns, 300_000_000, 500_000_000) {
            stalled += 1;
            assert!(received_ns >= end_ns, "answered {} ns before the end of a stall", end_ns - received_ns);
        }
    }
    assert!(stalled > 0);
    assert_eq!(echo.end()["answers"], 300);
}

#[test]
fn one_stalled_thread_of_two_stalls_its_own_share() {
    let echo = Echo::start("--transport udp --stall 3s --stall-every 4s --stall-threads 1 --threads 2");
    let sockets: Vec<UdpSocket> = (0..64).map(|_| echo.udp()).collect();
    let end_ns = loop {
        if let Some(end_ns) = stall_end_ns(&echo, monotonic_ns(), 3_000_000_000, 4_000_000_000) {
            break end_ns;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    sockets.iter().for_each(|socket| send(socket, [1]));
    // Who has an answer well before the end is not stalled; half of the sockets should not be.
    let mut early = 0;
    for socket in &sockets {
        let left_ns = (end_ns - monotonic_ns()).max(1_000_000);
        socket.set_read_timeout(Some(Duration::from_nanos(left_ns.unsigned_abs().min(100_000_000)))).unwrap();
        if socket.recv(&mut [0; 100]).is_ok() && monotonic_ns() < end_ns {
            early += 1;
        }
    }
    assert!((1..64).contains(&early), "{early} of 64");
    let threads = &echo.end()["threads"];
    let queries = |thread: usize| threads[thread]["queries"].as_u64().unwrap();
    assert!(queries(1) >= early && queries(0) <= 64 - early, "{threads}");
}

fn fails(arguments: &[&str]) -> Output {
    let output = Command::new(ENGINE).args(["serve", "echo"]).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    output
}

#[test]
fn bad_input_is_told_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let free = "127.0.0.1:0";
    let cases: [(&[&str], i32, &str); 6] = [
        (&["192.0.2.1"], 2, "--i-am-authorized 192.0.2.1"),
        (&["0.0.0.0:5300"], 2, "--i-am-authorized"),
        (&[free, "--jitter", "1ms"], 2, "--jitter is more than --delay"),
        (&[free, "--stall", "2s", "--stall-every", "1s"], 2, "--stall is not less"),
        (&[free, "--transport", "dot", "--dot-port", "0", "--certificate", empty, "--key", empty], 2, "empty.pem"),
        (&[free, "--connections-max", "4000000000"], 1, "--connections-max"),
    ];
    for (arguments, code, text) in cases {
        let output = fails(arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(text) && message.contains("\nhint: "), "{message}");
    }
}

#[test]
fn an_address_that_another_echo_has_is_not_shared_in_silence() {
    let echo = Echo::start("--transport udp,tcp");
    for transport in ["udp", "tcp"] {
        let output = fails(&[&echo.address(transport).to_string(), "--transport", transport, "--until-eof"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("another server uses this address"), "{output:?}");
    }
    echo.end();
}
