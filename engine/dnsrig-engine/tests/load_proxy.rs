//! `load` and `replay play` announce their clients with the PROXY protocol: before each query over UDP, once for each
//! connection over TCP and DoT.

use std::{
    collections::BTreeSet,
    io::Read,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use dnsrig_engine::query_stream::{Record, StreamWriter, Transport};

use crate::{
    process::ENGINE,
    streams::{self, Server, answer, answer_all, answer_all_over_tls, count, load, tls_config},
};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The number of bytes of a header with two addresses of IPv4.
const HEADER_BYTES: usize = 28;

/// Clients that were announced, and the server that they were announced to.
type Announced = Arc<Mutex<Vec<(SocketAddr, SocketAddr)>>>;

/// Reads a header with addresses of IPv4. `family`: the byte of the family and the transport.
fn read_header(header: &[u8], family: u8) -> (SocketAddr, SocketAddr) {
    assert_eq!(&header[..12], SIGNATURE);
    assert_eq!(header[12..16], [0x21, family, 0, 12]);
    let endpoint = |address: usize, port: usize| {
        let address = Ipv4Addr::from(*header[address..].first_chunk::<4>().unwrap());
        SocketAddr::from((address, u16::from_be_bytes(*header[port..].first_chunk().unwrap())))
    };
    (endpoint(16, 24), endpoint(20, 26))
}

/// Takes the header off a connection.
fn accept(stream: &mut TcpStream, announced: &Announced) -> bool {
    let mut header = [0; HEADER_BYTES];
    let is_whole = stream.read_exact(&mut header).is_ok();
    if is_whole {
        announced.lock().unwrap().push(read_header(&header, 0x11));
    }
    is_whole
}

/// The client and the server that a header announces, and the address from which it came.
type Introduced = (SocketAddr, SocketAddr, SocketAddr);

/// A server over UDP that answers for as long as queries come, each with a header.
fn udp_server() -> (SocketAddr, thread::JoinHandle<Vec<Introduced>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let address = socket.local_addr().unwrap();
    let serve = move || {
        let (mut buffer, mut found) = ([0; 4096], Vec::new());
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let (client, server) = read_header(&buffer[..length], 0x12);
            found.push((client, server, peer));
            socket.send_to(&answer(&buffer[HEADER_BYTES..length]), peer).unwrap();
        }
        found
    };
    (address, thread::spawn(serve))
}

#[test]
fn over_udp_each_query_announces_its_client() {
    for segmentation in ["auto", "off"] {
        let (address, server) = udp_server();
        let options = ["--rate", "400", "--proxy-protocol", "--clients", "5", "--segmentation", segmentation];
        let summary = load(address, "udp", &options);
        assert!(count(&summary, "answered") > 50, "{summary}");
        let found = server.join().unwrap();
        assert_eq!(found.len() as u64, count(&summary, "sent"));
        assert!(found.iter().all(|(_, server, _)| *server == address));
        let pairs: BTreeSet<_> = found.iter().map(|(client, _, peer)| (*client, *peer)).collect();
        let clients: BTreeSet<_> = found.iter().map(|(client, ..)| client.ip()).collect();
        assert_eq!(pairs.len(), 5, "a client has one socket, and is announced with one address and port");
        assert_eq!(clients, (1..6).map(|last| IpAddr::from([192, 0, 2, last])).collect());
    }
}

#[test]
fn over_tcp_and_dot_each_connection_announces_its_client_once_and_in_clear() {
    for transport in ["tcp", "dot"] {
        let (announced, config) = (Announced::default(), tls_config());
        let seen = announced.clone();
        let server = Server::start(move |mut stream| match accept(&mut stream, &seen) {
            true if transport == "dot" => answer_all_over_tls(stream, config.clone()),
            true => answer_all(&mut stream),
            false => {}
        });
        let options = ["--proxy-protocol", "--announce-from", "203.0.113.0/24", "--clients", "3"];
        let summary = load(server.address, transport, &[&options[..], &["--queries-per-connection", "4"]].concat());
        assert!(count(&summary, "answered") > 20, "{transport}: {summary}");
        let address = server.address;
        drop(server);
        let announced = announced.lock().unwrap();
        let attempted = summary["connections"]["attempted"].as_u64().unwrap();
        assert!((5..=attempted).contains(&(announced.len() as u64)), "{transport}: {attempted}");
        assert!(announced.iter().all(|(_, server)| *server == address));
        let clients: BTreeSet<_> = announced.iter().map(|(client, _)| client.ip()).collect();
        assert_eq!(clients, (1..4).map(|last| IpAddr::from([203, 0, 113, last])).collect());
        let ports: BTreeSet<_> = announced.iter().map(|(client, _)| client).collect();
        assert_eq!(ports.len(), announced.len(), "each connection has a port of its own");
    }
}

#[test]
fn a_replay_announces_the_clients_of_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.stream");
    let addresses = [[198, 51, 100, 7], [203, 0, 113, 9]].map(Ipv4Addr::from);
    let query = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    let mut stream = StreamWriter::create(&path).unwrap();
    for number in 0..20 {
        let (due_ns, client) = (i64::from(number) * 10_000_000, number % 2);
        stream.push(Record { due_ns, client, transport: Transport::Udp, flags: 0, message: &query }).unwrap();
    }
    stream.finish(0, Some(addresses.map(|address| address.to_ipv6_mapped()))).unwrap();
    let prefix = ["--clients-from", "192.0.2.0/29"];
    for (arguments, expected) in
        [(&[][..], addresses), (&prefix[..], [[192, 0, 2, 1], [192, 0, 2, 2]].map(Ipv4Addr::from))]
    {
        let (address, server) = udp_server();
        let mut command = Command::new(ENGINE);
        command.args(["replay", "play"]).arg(&path).args(["--server", &address.to_string(), "--proxy-protocol"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = server.join().unwrap();
        assert_eq!(found.len(), 20);
        assert!(found.iter().all(|(_, _, peer)| peer.ip() == Ipv4Addr::LOCALHOST), "only announced, not sent from");
        let clients: BTreeSet<_> = found.iter().map(|(client, ..)| client.ip()).collect();
        assert_eq!(clients, expected.into_iter().map(IpAddr::from).collect());
        let ports: BTreeSet<_> = found.iter().map(|(client, ..)| client.port()).collect();
        assert_eq!(ports.len(), 20, "each query has a port of its own");
    }
}

#[test]
fn ipv6_is_announced_as_well_and_what_cannot_be_announced_is_refused() {
    let socket = UdpSocket::bind("[::1]:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let address = socket.local_addr().unwrap();
    streams::load(address, "udp", &["--rate", "20", "--proxy-protocol", "--clients", "1"]);
    let mut buffer = [0; 512];
    let (length, _) = socket.recv_from(&mut buffer).unwrap();
    assert!(length > 52);
    assert_eq!((&buffer[..12], &buffer[12..16]), (&SIGNATURE[..], &[0x21, 0x22, 0, 36][..]));
    assert_eq!(buffer[16..32], "2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(buffer[32..48], Ipv6Addr::LOCALHOST.octets());
    for (options, reason) in [
        (&["--transport", "doq"][..], "--proxy-protocol has no effect with --transport doq"),
        (&["--clients", "300"], "192.0.2.0/24, from which --proxy-protocol announces clients, is too small"),
    ] {
        let queries = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(queries.path(), "www.example.com A\n").unwrap();
        let mut command = Command::new(ENGINE);
        command.args(["load", "127.0.0.1:1", "--proxy-protocol", "--queries"]).arg(queries.path());
        let output = command.args(options).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(reason), "{errors}");
    }
}
