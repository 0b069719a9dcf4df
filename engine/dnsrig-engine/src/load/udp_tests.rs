use std::{
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    thread,
    time::{Duration, Instant},
};

use super::*;

const SECOND_NS: i64 = 1_000_000_000;
const DUE: Due = Due { at_ns: 0, client: None, query: 0, number: 0 };

fn in_flight(clients: usize) -> InFlight {
    let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    InFlight::of([query], clients, 65_536 / clients, 60 * SECOND_NS)
}

#[test]
fn who_waits_for_room_is_woken_when_there_is_room() {
    // A socket between processes is full as long as nobody reads at its other end; over loopback a UDP socket never is.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let sockets = vec![UdpSocket::from(OwnedFd::from(ours))];
    let (mut udp, mut in_flight) =
        (Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 1).unwrap(), in_flight(1));
    while udp.send(&[DUE], &mut in_flight).unwrap() > 0 {}
    let reader = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        while theirs.recv(&mut [0; 64]).is_ok() && theirs.set_nonblocking(true).is_ok() {}
        theirs
    });
    let asleep = Instant::now();
    udp.wait(5 * SECOND_NS, false).unwrap();
    assert!(asleep.elapsed() < Duration::from_secs(2), "it slept on though there was room");
    let _theirs = reader.join().unwrap();
    assert_eq!(udp.send(&[DUE], &mut in_flight).unwrap(), 1);
    // With room left it is an answer that it waits for.
    let asleep = Instant::now();
    udp.wait(SECOND_NS / 20, true).unwrap();
    assert!(asleep.elapsed() >= Duration::from_millis(50));
}

#[test]
fn an_answer_wakes_only_who_waits_for_it() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let sockets = vec![UdpSocket::from(OwnedFd::from(ours))];
    let mut udp = Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 1).unwrap();
    theirs.send(&[0; 12]).unwrap();
    let asleep = Instant::now();
    udp.wait(SECOND_NS / 20, false).unwrap();
    assert!(asleep.elapsed() >= Duration::from_millis(50));
    let asleep = Instant::now();
    udp.wait(5 * SECOND_NS, true).unwrap();
    assert!(asleep.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_query_leaves_from_the_client_that_it_names() {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..2).map(|_| UnixDatagram::pair().unwrap()).unzip();
    let sockets = ours.into_iter().map(|socket| UdpSocket::from(OwnedFd::from(socket))).collect();
    let mut udp = Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 16).unwrap();
    let mut in_flight = in_flight(2);
    let due = [1, 1, 0, 1].map(|client| Due { client: Some(client), ..DUE });
    assert_eq!(udp.send(&due, &mut in_flight).unwrap(), 4);
    assert_eq!([0, 1].map(|client| in_flight.outstanding_of(client)), [1, 3]);
    let received = theirs.iter().map(|socket| {
        socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count()
    });
    assert_eq!(received.collect::<Vec<_>>(), [1, 3]);
}
