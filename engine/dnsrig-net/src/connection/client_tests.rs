use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

use dnsrig_dns::framing;
use rustls::{ServerConnection, StreamOwned};

use super::*;
use crate::{
    connection::socket::{Begun, Close},
    poller::sleep_until_readable,
    tls::{self, identity},
};

/// No test waits longer for the other side.
const PATIENCE_NS: i64 = 5_000_000_000;

/// A line to a listener that has not accepted it yet.
fn begin(server: SocketAddr, source: [u8; 4], options: &SocketOptions, tls: Option<&Client>) -> Connection {
    let Begun::Connecting(socket) = socket::begin(server, Some(source.into()), options).unwrap() else {
        panic!("loopback refuses")
    };
    let mut line = Connection::default();
    line.begin(socket, options, tls).unwrap();
    line
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A plain connection, both ends.
fn connect(options: &SocketOptions, buffers: &mut Buffers) -> (Connection, TcpStream) {
    let (listener, address) = listen();
    let mut line = begin(address, [127, 0, 0, 1], options, None);
    let (server, _) = listener.accept().unwrap();
    assert!(line.connected(buffers).unwrap(), "plain lines are open as soon as they are connected");
    (line, server)
}

/// Reads until `wanted` messages came, or until the connection ends.
fn receive(line: &mut Connection, buffers: &mut Buffers, wanted: usize) -> Result<Vec<Vec<u8>>, CloseReason> {
    let mut messages = Vec::new();
    while messages.len() < wanted {
        assert!(sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap(), "nothing comes");
        let reading = line.read(buffers, |message| messages.push(message.to_vec()))?;
        if reading.closed {
            return Err(CloseReason::Closed);
        }
    }
    Ok(messages)
}

fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for message in messages {
        framing::append(&mut bytes, message);
    }
    bytes
}

#[test]
fn messages_come_whole_however_little_is_read_at_a_time() {
    let messages = [vec![1; 65_535], vec![], vec![2; 300], vec![3; 12]];
    for read_bytes in [700, 1 << 10, 256 << 10] {
        let mut buffers = Buffers::new(read_bytes);
        let (mut line, mut server) = connect(&SocketOptions::default(), &mut buffers);
        server.write_all(&framed(&messages)).unwrap();
        assert!(receive(&mut line, &mut buffers, 4).unwrap() == messages, "{read_bytes} at a time");
        drop(server);
        assert_eq!(receive(&mut line, &mut buffers, 1), Err(CloseReason::Closed));
    }
}

#[test]
fn a_line_says_how_it_ended_and_serves_again() {
    let mut buffers = Buffers::new(1_000);
    let (mut line, server) = connect(&SocketOptions::default(), &mut buffers);
    nix::sys::socket::setsockopt(&server, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).unwrap();
    (&server).write_all(&[0, 9, 1]).unwrap();
    assert_eq!(sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).ok(), Some(true));
    line.read(&mut buffers, |_| panic!("it is not complete")).unwrap();
    drop(server);
    assert_eq!(receive(&mut line, &mut buffers, 1), Err(CloseReason::Reset));
    line.close(false, &mut buffers);
    assert!(line.socket().is_none() && !line.is_connected());
    let (listener, address) = listen();
    let options = SocketOptions { close: Close::Rst, ..SocketOptions::default() };
    let Begun::Connecting(socket) = socket::begin(address, None, &options).unwrap() else { panic!() };
    line.begin(socket, &options, None).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    line.connected(&mut buffers).unwrap();
    server.write_all(&[0, 1, 5]).unwrap();
    assert_eq!(receive(&mut line, &mut buffers, 1).unwrap(), [[5]], "what the last connection left is forgotten");
}

#[test]
fn who_listens_nowhere_refuses() {
    let (listener, address) = listen();
    drop(listener);
    let loss = match socket::begin(address, None, &SocketOptions::default()).unwrap() {
        Begun::Failed(error) => socket::loss(error),
        Begun::NoPort => panic!("there are ports"),
        Begun::Connecting(socket) => {
            let mut line = Connection::default();
            line.begin(socket, &SocketOptions::default(), None).unwrap();
            sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap();
            socket::loss(line.error())
        }
    };
    assert_eq!(loss, CloseReason::Refused);
}

#[test]
fn a_line_comes_from_the_address_that_was_asked_for() {
    let (listener, address) = listen();
    let lines = [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 2]]
        .map(|source| (source, begin(address, source, &SocketOptions::default(), None)));
    for (source, _line) in &lines {
        assert_eq!(listener.accept().unwrap().1.ip(), std::net::IpAddr::from(*source));
    }
}

#[test]
fn what_is_read_is_acknowledged_at_once_if_asked_to() {
    for quickack in [true, false] {
        let mut buffers = Buffers::new(1_000);
        let options = SocketOptions { quickack, ..SocketOptions::default() };
        let (mut line, mut server) = connect(&options, &mut buffers);
        // The kernel does this by itself on connections that ask and answer: it waits with acknowledgements.
        acknowledging(line.socket().unwrap(), Some(0));
        server.write_all(&[0, 1, 5]).unwrap();
        receive(&mut line, &mut buffers, 1).unwrap();
        assert_eq!(acknowledging(line.socket().unwrap(), None), i32::from(quickack));
    }
}

/// TCP_QUICKACK of a socket: sets it, or reads it.
fn acknowledging(socket: BorrowedFd<'_>, set: Option<libc::c_int>) -> libc::c_int {
    use std::os::fd::AsRawFd;
    let (mut value, mut bytes) = (set.unwrap_or(-1), size_of::<libc::c_int>() as libc::socklen_t);
    let (fd, level, name) = (socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK);
    let result = match set {
        // SAFETY: the kernel reads the int `value`, whose length `bytes` is.
        Some(_) => unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), bytes) },
        // SAFETY: the kernel writes at most `bytes` bytes to `value`, and any bits are an int.
        None => unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut bytes) },
    };
    assert_eq!(result, 0);
    value
}

#[test]
fn http_begins_when_the_handshake_is_done_however_little_comes_at_a_time() {
    let (listener, address) = listen();
    let config = identity::server_config(identity::make_identity(address.ip()).unwrap(), tls::DOH, None).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
        let (mut http, mut bytes) = (http2::Server::new(None), [0; 4096]);
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            let mut queries = Vec::new();
            http.receive(&bytes[..count], |query| queries.push(query.to_vec())).unwrap();
            queries.iter().for_each(|query| http.respond(query));
            stream.write_all(http.output()).unwrap();
            http.output().clear();
        }
    });
    let settings = tls::Settings { protocol: tls::DOH, alpn_required: true, ..tls::Settings::default() };
    let client = Client::new(address.ip(), settings).unwrap();
    let mut line = begin(address, [127, 0, 0, 1], &SocketOptions::default(), Some(&client));
    let path = http2::Path::parse("/dns-query").unwrap();
    let requests = http2::Requests::new(http2::Method::Post, address.to_string(), &path);
    line.speak_http(http2::Client::new(requests.into()));
    // The flight of the server comes in pieces.
    let mut buffers = Buffers::new(100);
    line.queue(&framed(&[vec![1, 2, 3], vec![4, 5, 6]]));
    assert_eq!((line.connected(&mut buffers), line.room()), (Ok(false), Some(98)));
    let (mut messages, mut was_open) = (Vec::new(), false);
    while messages.len() < 2 {
        assert!(sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap(), "nothing comes");
        let reading = line.read(&mut buffers, |message| messages.push(message.to_vec())).unwrap();
        if reading.open && !was_open {
            was_open = true;
            assert_eq!(line.send_queue(&mut buffers), Ok(EarlyQueries::default()));
        }
    }
    assert_eq!(messages, [[1, 2, 3], [4, 5, 6]], "with their IDs");
    line.close(true, &mut buffers);
    assert!(line.room().is_none());
    server.join().unwrap();
}

#[test]
fn queries_wait_for_the_handshake_and_answers_come_whole_over_tls() {
    let (listener, address) = listen();
    let config = identity::server_config(identity::make_identity(address.ip()).unwrap(), tls::DOT, None).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
        let mut query = [0; 8];
        stream.read_exact(&mut query).unwrap();
        stream.write_all(&framed(&[vec![7; 65_535], query[2..5].to_vec()])).unwrap();
        let mut end = [0; 1];
        stream.read(&mut end).unwrap()
    });
    let client = Client::new(address.ip(), tls::Settings { alpn_required: true, ..tls::Settings::default() }).unwrap();
    let mut line = begin(address, [127, 0, 0, 1], &SocketOptions::default(), Some(&client));
    let mut buffers = Buffers::new(10_000);
    line.queue(&framed(&[vec![1, 2, 3], vec![9]]));
    assert!(!line.connected(&mut buffers).unwrap());
    let mut messages = Vec::new();
    let mut was_open = false;
    while messages.len() < 2 {
        assert!(sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap(), "nothing comes");
        let reading = line.read(&mut buffers, |message| messages.push(message.to_vec())).unwrap();
        if reading.open && !was_open {
            was_open = true;
            line.send_queue(&mut buffers).unwrap();
        }
    }
    assert!(messages == [vec![7; 65_535], vec![1, 2, 3]]);
    line.close(true, &mut buffers);
    assert_eq!(server.join().unwrap(), 0, "it heard that this was the end");
}

#[test]
fn queries_beyond_the_room_of_http_wait_until_there_is_room_or_the_server_leaves() {
    let path = http2::Path::default();
    let requests = http2::Requests::new(http2::Method::Post, "dns.example".into(), &path);
    let mut line = Connection::default();
    line.speak_http(http2::Client::new(std::sync::Arc::new(requests)));
    let buffers = &mut Buffers::new(1_000);
    line.queue(&framed(&(0..150).map(|id| vec![0, id, 1, 2]).collect::<Vec<_>>()));
    let waiting = |line: &Connection| each_frame(&line.queue).count();
    line.send_queue(buffers).unwrap();
    assert_eq!((waiting(&line), line.room()), (50, Some(0)), "100 streams before the settings come");
    let mut server = http2::Server::new(Some("streams=120".parse().unwrap()));
    line.http().unwrap().receive(server.output(), |_| ()).unwrap();
    line.send_waiting(buffers).unwrap();
    assert_eq!(waiting(&line), 30);
    line.send_waiting(buffers).unwrap();
    assert_eq!(waiting(&line), 30);
    // GOAWAY after all streams so far.
    let goodbye = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0];
    line.http().unwrap().receive(&goodbye, |_| ()).unwrap();
    line.send_waiting(buffers).unwrap();
    let lost: Vec<_> = line.http().unwrap().take_lost().collect();
    let fault = http2::Fault::GoAway(http2::ErrorCode::NONE);
    assert_eq!((waiting(&line), lost), (0, (120..150).map(|id| (id, fault)).collect()));
}

#[test]
fn an_introduction_goes_first_and_together_with_what_follows() {
    let (mut buffers, (listener, address)) = (Buffers::new(1_000), listen());
    for tls in [None, Some(Client::new(address.ip(), tls::Settings::default()).unwrap())] {
        let mut line = begin(address, [127, 0, 0, 1], &SocketOptions::default(), tls.as_ref());
        line.introduce(b"hello");
        assert!(!line.is_blocked(), "it waits for the connection, not for room");
        line.queue(&framed(&[vec![7; 12]]));
        let (mut server, _) = listener.accept().unwrap();
        if line.connected(&mut buffers).unwrap() {
            line.send_queue(&mut buffers).unwrap();
        }
        let mut first = [0; 4_096];
        let count = server.read(&mut first).unwrap();
        assert!(count > 5 + 12 && first.starts_with(b"hello"), "{:?}", &first[..count]);
        line.close(false, &mut buffers);
        assert_eq!(server.read(&mut first).unwrap(), 0, "it is sent once");
    }
}
