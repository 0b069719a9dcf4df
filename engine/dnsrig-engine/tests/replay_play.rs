//! `replay play` over loopback: who sends what when, what is counted, and what is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    iter,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use dnsrig_engine::query_stream::{NEW_CONNECTION, RETRANSMISSION, Record, StreamWriter, Transport};
use serde_json::Value;

use crate::{
    process::{self, ENGINE},
    rows::batches,
};

const MS: i64 = 1_000_000;

/// What a server received: when, from where, and what without its id.
type Received = (Instant, SocketAddr, Vec<u8>);

/// A server that answers as `react` says, and keeps what it received. Each has an address of its own, so that no other
/// test has its port over TCP.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Received>>,
}

impl Server {
    fn start(react: impl Fn(&mut Vec<u8>) -> bool + Send + 'static) -> Self {
        static STARTED: AtomicU8 = AtomicU8::new(0);
        let host = Ipv4Addr::new(127, 98, 0, STARTED.fetch_add(1, Ordering::Relaxed));
        let socket = UdpSocket::bind((host, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stopping = stop.clone();
        let thread = thread::spawn(move || {
            let (mut buffer, mut received) = ([0; 4096], Vec::new());
            while !stopping.load(Ordering::Relaxed) {
                let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
                received.push((Instant::now(), peer, buffer[2..length].to_vec()));
                let mut answer = buffer[..length].to_vec();
                answer[2] |= 0x80;
                if react(&mut answer) {
                    socket.send_to(&answer, peer).unwrap();
                }
            }
            received
        });
        Server { address, stop, thread }
    }

    fn end(self) -> Vec<Received> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// A query for the name `q` and a number, with the id 7 as all captured ones have here.
fn query(number: u16) -> Vec<u8> {
    let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5];
    query.extend_from_slice(format!("q{number:04}").as_bytes());
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    query
}

/// Writes a stream of queries: when, by which client, with which flags; each asks for its number.
fn stream(path: &Path, queries: impl IntoIterator<Item = (i64, u32, u8)>) {
    stream_over(path, queries.into_iter().map(|(due_ns, client, flags)| (due_ns, client, flags, Transport::Udp)));
}

/// The same, and how each query came.
fn stream_over(path: &Path, queries: impl IntoIterator<Item = (i64, u32, u8, Transport)>) {
    let mut stream = StreamWriter::create(path).unwrap();
    for (number, (due_ns, client, flags, transport)) in queries.into_iter().enumerate() {
        let message = &query(number as u16);
        stream.push(Record { due_ns, client, transport, flags, message }).unwrap();
    }
    stream.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
}

fn play(path: &Path, server: SocketAddr, arguments: &[&str]) -> Output {
    let mut command = Command::new(ENGINE);
    command.args(["replay", "play"]).arg(path).args(["--server", &server.to_string()]).args(arguments);
    command.output().unwrap()
}

fn summary(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::str::from_utf8(&output.stdout).unwrap();
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

#[test]
fn every_client_keeps_its_address_and_every_query_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    // Client n asks every n + 1 times 10 ms, so that none asks as another does.
    let mut queries: Vec<_> =
        (0..20).flat_map(|n| (0..10).map(move |i| (i * (n + 1) * 10 * MS / 4, n as u32, 0))).collect();
    queries.sort_unstable();
    stream(&path, queries.iter().copied());
    for (arguments, speed) in [(&["--threads", "2"][..], 1), (&["--port", "kept", "--ports", "3", "--speed", "2"], 2)] {
        let server = Server::start(|_| true);
        let address = server.address;
        let out = folder.path().to_str().unwrap();
        let arguments = [&["--clients-from", "127.1.0.0/16", "--out", out][..], arguments].concat();
        let summary = summary(&play(&path, address, &arguments));
        assert_eq!((count(&summary, "sent"), count(&summary, "answered")), (200, 200), "{summary}");
        assert_eq!((count(&summary, "clients"), count(&summary, "unexpected")), (20, 0));
        let received = server.end();
        let start = received[0].0;
        let mut ports = BTreeMap::<IpAddr, Vec<u16>>::new();
        for (at, peer, message) in &received {
            let number: usize = std::str::from_utf8(&message[12..16]).unwrap().parse().unwrap();
            assert_eq!(message, &query(number as u16)[2..], "but for the id it is as it was captured");
            let (due_ns, client, _) = queries[number];
            assert_eq!(peer.ip(), IpAddr::from([127, 1, 0, client as u8 + 1]));
            let late_ns = at.duration_since(start).as_nanos() as i64 - due_ns / speed;
            assert!(late_ns.abs() < 150 * MS, "{number}: {late_ns}");
            ports.entry(peer.ip()).or_default().push(peer.port());
        }
        let most = ports.into_values().map(|mut ports| {
            ports.sort_unstable();
            ports.dedup();
            ports.len()
        });
        // Ten queries of a client, from 256 ports in turn or from one.
        assert!(most.into_iter().all(|count| if speed == 2 { count == 1 } else { count > 5 }));
        let rows = batches(&folder.path().join("clients.arrow"));
        let mut clients = Vec::new();
        for batch in rows {
            let [numbers, answered] = ["client", "answered"].map(|name| batch.values::<u32>(name).unwrap());
            let [sums_ns, longest_ns] = ["sum_ns", "max_ns"].map(|name| batch.values::<i64>(name).unwrap());
            for row in 0..batch.rows() {
                assert!(0 < longest_ns[row] && longest_ns[row] <= sums_ns[row]);
                clients.push((numbers[row], answered[row]));
            }
        }
        assert_eq!(clients, (0..20).map(|client| (client, 10)).collect::<Vec<_>>());
    }
}

#[test]
fn answers_are_counted_by_what_they_say_and_silence_is_a_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..40).map(|number| (number * MS, number as u32 % 4, 0)));
    let server = Server::start(|answer| {
        let number: u32 = std::str::from_utf8(&answer[14..18]).unwrap().parse().unwrap();
        match number % 4 {
            0 => answer[3] |= 0x20,
            1 => answer[2] |= 2,
            2 => answer[3] |= 3,
            _ => return false,
        }
        true
    });
    // Without --clients-from all are this host.
    let out = folder.path().to_str().unwrap();
    let options = ["--timeout", "0.3s", "--ports", "1", "--transport", "udp", "--out", out];
    let summary = summary(&play(&path, server.address, &options));
    assert_eq!(count(&summary, "answered") + count(&summary, "timeouts"), 40);
    assert_eq!(["timeouts", "authenticated", "truncated"].map(|name| count(&summary, name)), [10, 10, 10]);
    assert_eq!(summary["rcodes"]["NXDOMAIN"], 10);
    let received = server.end();
    assert!(received.iter().all(|(_, peer, _)| *peer == received[0].1), "one address, one port");
    let clients = batches(&folder.path().join("clients.arrow")).remove(0);
    // The n-th client has the n-th kind of answer, and one that did not come counts as a time-out of 300 ms.
    for (client, name) in ["authenticated", "truncated", "nxdomain", "timeouts"].into_iter().enumerate() {
        let counts: Vec<u32> = clients.values(name).unwrap();
        assert_eq!(counts, (0..4).map(|other| if other == client { 10 } else { 0 }).collect::<Vec<_>>(), "{name}");
    }
    let [p50_ns, p99_ns, max_ns] = ["p50_ns", "p99_ns", "max_ns"].map(|name| clients.values::<i64>(name).unwrap());
    assert!(p50_ns[3] >= 300 * MS && (0..4).all(|at| p50_ns[at] <= p99_ns[at] && p99_ns[at] <= max_ns[at]));
}

#[test]
fn retransmissions_are_left_out_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..10).map(|number| (number * MS, 0, if number % 5 == 4 { RETRANSMISSION } else { 0 })));
    let server = Server::start(|_| true);
    let all = summary(&play(&path, server.address, &[]));
    let without = summary(&play(&path, server.address, &["--retransmissions", "off"]));
    assert_eq!((count(&all, "sent"), count(&without, "sent")), (10, 8));
    assert_eq!(count(&without["replayed"], "retransmissions_skipped"), 2);
    server.end();
}

#[test]
fn a_stream_is_played_for_as_long_as_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..9_000).map(|number| (number * MS, number as u32 % 4, 0)));
    let server = Server::start(|_| true);
    let summary = summary(&play(&path, server.address, &["--duration", "0.2s", "--timeout", "0.5s"]));
    assert_eq!(count(&summary, "due"), 200);
    server.end();
}

#[test]
fn what_cannot_be_played_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..300).map(|number| (number * MS, number as u32 % 100, 0)));
    let server: SocketAddr = "127.0.0.1:53".parse().unwrap();
    for (arguments, told) in [
        (&["--clients-from", "198.19.0.0/16"][..], "`ip route add local 198.19.0.0/16 dev lo`"),
        (&["--clients-from", "127.1.0.0/26"], "give a /25"),
        (&["--clients-from", "127.0.0.0/16"], "is within"),
        (&["--clients-from", "2001:2::/64"], "different address families"),
        (&["--server", "192.0.2.1"], "--i-am-authorized 192.0.2.1"),
        (&["--ports", "1", "--threads", "2"], "--threads, each of which needs one: use --ports 2 or more"),
        (&["--server", "192.0.2.1", "--i-am-authorized", "192.0.2.1"], "give --speed"),
    ] {
        let mut command = Command::new(ENGINE);
        command.args(["replay", "play"]).arg(&path);
        if !arguments.contains(&"--server") {
            command.args(["--server", &server.to_string()]);
        }
        let output = command.args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(told), "{arguments:?}: {errors}");
    }
    if Path::new("/proc/net/ipv6_route").exists() {
        let output = play(&path, "[::1]:53".parse().unwrap(), &["--clients-from", "2001:2::/48"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("`ip route add local 2001:2::/48 dev lo`"), "{errors}");
    }
    let damaged = std::fs::read(&path).unwrap();
    std::fs::write(&path, &damaged[..damaged.len() - 40]).unwrap();
    let output = play(&path, process::nobody(), &["--timeout", "0.1s"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("still to come"), "{errors}");
}

/// Answers all queries on a connection, and tells how many there were; `answered` hears how many there are so far.
fn serve_connection(mut connection: TcpStream, mut answered: impl FnMut(usize)) -> usize {
    for count in 0.. {
        answered(count);
        let mut prefix = [0; 2];
        if connection.read_exact(&mut prefix).is_err() {
            return count;
        }
        let mut message = vec![0; usize::from(u16::from_be_bytes(prefix))];
        connection.read_exact(&mut message).unwrap();
        message[2] |= 0x80;
        let _ = connection.write_all(&[&prefix[..], &message].concat());
    }
    unreachable!()
}

/// Plays a stream to a server over TCP; from which address each connection came, with how many queries, and the
/// summary.
fn play_over_tcp(path: &Path, arguments: &[&str]) -> (Vec<(IpAddr, usize)>, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut served = Vec::new();
        loop {
            let (connection, peer) = listener.accept().unwrap();
            if peer.ip() == address.ip() {
                break;
            }
            served.push((peer.ip(), thread::spawn(move || serve_connection(connection, |_| ()))));
        }
        served.into_iter().map(|(peer, served)| (peer, served.join().unwrap())).collect()
    });
    let output = play(path, address, arguments);
    drop(TcpStream::connect(address).unwrap());
    (server.join().unwrap(), summary(&output))
}

#[test]
fn over_tcp_a_client_keeps_its_connection_until_it_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    // Client 0 asks five times in 200 ms, client 1 at the beginning and long after.
    let mut queries: Vec<_> = (0..5).map(|number| (number * 50 * MS, 0, 0, Transport::Tcp)).collect();
    queries.extend([(10 * MS, 1, 0, Transport::Tcp), (1_500 * MS, 1, 0, Transport::Tcp)]);
    queries.sort_unstable();
    stream_over(&path, queries);
    let (mut served, summary) = play_over_tcp(&path, &["--clients-from", "127.1.0.0/16", "--idle-timeout", "0.7s"]);
    served.sort_unstable();
    let [zero, one] = [[127, 1, 0, 1], [127, 1, 0, 2]].map(IpAddr::from);
    assert_eq!(served, [(zero, 5), (one, 1), (one, 1)], "{summary}");
    assert_eq!((count(&summary, "answered"), count(&summary["connections"], "attempted")), (7, 3));
    // For a client that needs one, the connection that was used longest ago is closed.
    let (served, summary) = play_over_tcp(&path, &["--clients-from", "127.1.0.0/16", "--connections", "1"]);
    assert_eq!((count(&summary, "answered"), served.iter().map(|(_, queries)| queries).sum::<usize>()), (7, 7));
    assert_eq!(served.len(), 4, "0, 1, 0 again, 1 again: {served:?}");
}

#[test]
fn a_client_begins_a_connection_where_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    let twice =
        |at: i64| [(at * 100 * MS, 0, NEW_CONNECTION, Transport::Tcp), (at * 100 * MS + 20 * MS, 0, 0, Transport::Tcp)];
    stream_over(&path, (0..5).flat_map(twice));
    let clients_from = ["--clients-from", "127.1.0.0/16"];
    let (served, summary) = play_over_tcp(&path, &clients_from);
    let client = IpAddr::from([127, 1, 0, 1]);
    assert_eq!(served, [(client, 2); 5], "{summary}");
    assert_eq!((count(&summary, "answered"), count(&summary["connections"], "attempted")), (10, 5));
    // If --transport differs from the capture, connections follow the options.
    let (served, _) = play_over_tcp(&path, &[&clients_from[..], &["--transport", "tcp"]].concat());
    assert_eq!(served, [(client, 10)]);
}

#[test]
fn icmp_errors_are_counted_whichever_client_they_come_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..200).map(|number| (number * 5 * MS, number as u32 % 7, 0)));
    for arguments in
        [&["--clients-from", "127.1.0.0/16"][..], &["--ports", "1", "--source-port", "kept", "--transport", "udp"]]
    {
        let summary = summary(&play(&path, process::nobody(), &[arguments, &["--timeout", "0.2s"]].concat()));
        assert_eq!((count(&summary, "sent"), count(&summary, "unreachable")), (200, 200), "{summary}");
    }
}

#[test]
fn a_connection_that_is_not_read_delays_no_other_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    // Client 0 asks more at once than may be outstanding on a connection, client 1 asks after that.
    let mut queries: Vec<_> = (0..100).map(|_| (0, 0, 0, Transport::Tcp)).collect();
    queries.extend((1..=20).map(|number| (number * 5 * MS, 1, 0, Transport::Tcp)));
    stream_over(&path, queries);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (to_first, done) = std::sync::mpsc::channel();
        let mut done = Some(done);
        for connection in listener.incoming().map(Result::unwrap) {
            let is_first = connection.peer_addr().unwrap().ip() == IpAddr::from([127, 1, 0, 1]);
            let to_first = to_first.clone();
            match done.take_if(|_| is_first) {
                // Not read, and closed when the other client has all its answers.
                Some(done) => thread::spawn(move || (done.recv().unwrap(), drop(connection)).0),
                None => thread::spawn(move || {
                    serve_connection(connection, |count| {
                        if count == 20 {
                            let _ = to_first.send(());
                        }
                    });
                }),
            };
        }
    });
    let summary = summary(&play(&path, address, &["--clients-from", "127.1.0.0/16", "--timeout", "20s"]));
    let lost: u64 = summary["lost"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    // What had no room on the first connection goes on the next.
    assert_eq!((count(&summary, "timeouts"), lost, count(&summary, "answered")), (0, 64, 56), "{summary}");
}

#[test]
fn who_waits_for_a_server_that_does_not_read_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream_over(&path, (0..100).map(|_| (0, 0, 0, Transport::Tcp)));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let summary = summary(&play(&path, silent.local_addr().unwrap(), &["--timeout", "0.3s"]));
    assert_eq!(["due", "timeouts", "unsent"].map(|name| count(&summary, name)), [100, 100, 0], "{summary}");
}

#[test]
fn queries_travel_as_they_came_or_as_is_wished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    let kinds = Transport::ALL;
    stream_over(&path, (0..80).map(|number| (number * 5 * MS, number as u32 % 20, 0, kinds[number as usize % 5])));
    let server = process::Server::start(
        "echo 127.0.0.1:0 --transport udp,tcp,dot,doh,doq --dot-port 0 --doh-port 0 --doq-port 0",
    );
    let ports = ["dot", "doh", "doq"].map(|kind| format!("--{kind}-port={}", server.address(kind).port()));
    // It has one port for UDP and TCP.
    assert_eq!(server.address("udp"), server.address("tcp"));
    for (arguments, connections) in [
        (&[][..], 16),
        (&["--transport", "udp"], 0),
        (&["--transport", "tcp"], 20),
        (&["--transport", "doh", "--doh-method", "get"], 20),
        (&["--transport", "doq"], 20),
    ] {
        let ports = ports.each_ref().map(String::as_str);
        let clients = ["--clients-from", "127.1.0.0/16", "--threads", "2", "--timeout", "10s"];
        let arguments = [&clients[..], &ports, arguments].concat();
        let summary = summary(&play(&path, server.address("udp"), &arguments));
        assert_eq!((count(&summary, "sent"), count(&summary, "answered")), (80, 80), "{summary}");
        assert_eq!(count(&summary["connections"], "established"), connections, "{arguments:?}");
    }
}

#[test]
fn over_doq_each_client_keeps_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..12).map(|number| (number * 10 * MS, number as u32 % 4, 0)));
    // Nothing that comes is answered: the address shows in the first datagram.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(process::PATIENCE)).unwrap();
    let port = format!("--doq-port={}", socket.local_addr().unwrap().port());
    let arguments = ["--clients-from", "127.1.0.0/16", "--transport", "doq", &port, "--timeout", "200ms"];
    let summary = summary(&play(&path, socket.local_addr().unwrap(), &arguments));
    assert_eq!((count(&summary, "sent"), count(&summary, "timeouts")), (12, 12), "{summary}");
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_048];
    let sources: BTreeSet<_> =
        iter::from_fn(|| socket.recv_from(&mut buffer).ok()).map(|(_, from)| from.ip()).collect();
    let expected: BTreeSet<IpAddr> = (1..=4).map(|last| [127, 1, 0, last].into()).collect();
    assert_eq!(sources, expected);
}

#[test]
fn a_truncated_answer_is_asked_for_again_over_tcp_by_the_same_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    stream(&path, (0..30).map(|number| (number * 10 * MS, number as u32 % 3, 0)));
    let udp = Server::start(|answer| {
        answer[2] |= 2;
        true
    });
    let listener = TcpListener::bind(udp.address).unwrap();
    let (to_test, served) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for connection in listener.incoming().map(Result::unwrap) {
            let (peer, to_test) = (connection.peer_addr().unwrap().ip(), to_test.clone());
            thread::spawn(move || to_test.send((peer, serve_connection(connection, |_| ()))).unwrap_or_default());
        }
    });
    let clients_from = ["--clients-from", "127.1.0.0/16"];
    let all = summary(&play(&path, udp.address, &clients_from));
    assert_eq!(["sent", "answered", "truncated"].map(|name| count(&all, name)), [30, 30, 30], "{all}");
    assert_eq!(all["rcodes"]["NOERROR"], 30);
    let mut served: Vec<_> = served.iter().take(3).collect();
    served.sort_unstable();
    assert_eq!(served, [1, 2, 3].map(|client| (IpAddr::from([127, 1, 0, client]), 10)));
    let counted = summary(&play(&path, udp.address, &[&clients_from[..], &["--transport", "udp"]].concat()));
    assert_eq!(["answered", "truncated"].map(|name| count(&counted, name)), [30, 30]);
    let class = ["--class", "share=100%,transport=udp"];
    let counted = summary(&play(&path, udp.address, &[&clients_from[..], &class].concat()));
    assert_eq!((count(&counted, "truncated"), count(&counted["connections"], "attempted")), (30, 0));
    udp.end();
    // A port without TCP: the query has no answer, and ends as one whose connection was refused.
    let udp = Server::start(|answer| {
        answer[2] |= 2;
        true
    });
    let refused = summary(&play(&path, udp.address, &clients_from));
    assert_eq!((count(&refused, "answered"), count(&refused["lost"], "refused")), (0, 30), "{refused}");
    udp.end();
}
