use std::{
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::*;
use crate::load::{
    in_flight::{InFlight, Settings},
    interval_stats::IntervalStats,
    queries::Queries,
};

const SECOND_NS: i64 = 1_000_000_000;

fn in_flight() -> InFlight {
    let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    let settings = Settings {
        queries: Arc::new(Queries::from_messages([query])),
        signer: None,
        first: 0,
        timeout_ns: 60 * SECOND_NS,
        clients: 1,
        table: 65_536,
        closed_loop: false,
    };
    InFlight::new(settings, IntervalStats::new(0, SECOND_NS, SECOND_NS, 1))
}

#[test]
fn who_waits_for_room_is_woken_when_there_is_room() {
    // A socket between processes is full as long as nobody reads at its other end; over loopback a UDP socket never is.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let sockets = vec![UdpSocket::from(OwnedFd::from(ours))];
    let (mut udp, mut in_flight) =
        (Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 1).unwrap(), in_flight());
    while udp.send(&[0], &mut in_flight).unwrap() > 0 {}
    let reader = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        while theirs.recv(&mut [0; 64]).is_ok() && theirs.set_nonblocking(true).is_ok() {}
        theirs
    });
    let asleep = Instant::now();
    udp.wait(5 * SECOND_NS, false).unwrap();
    assert!(asleep.elapsed() < Duration::from_secs(2), "it slept on though there was room");
    let _theirs = reader.join().unwrap();
    assert_eq!(udp.send(&[0], &mut in_flight).unwrap(), 1);
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
