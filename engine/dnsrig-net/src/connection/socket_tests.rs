use std::net::{Ipv4Addr, TcpListener};

use nix::sys::socket::getsockopt;

use super::*;
use crate::tcp_info;

/// An established connection, made with `options`; both ends.
fn pair(options: &SocketOptions) -> (OwnedFd, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = begin(listener.local_addr().unwrap(), None, options).unwrap();
    let Begun::Connecting(client) = begun else { panic!("loopback refuses") };
    // Over loopback the other side sees it when connect(2) has returned.
    let (server, _) = listener.accept().unwrap();
    (client, server)
}

fn with(change: impl FnOnce(&mut SocketOptions)) -> SocketOptions {
    let mut options = SocketOptions::default();
    change(&mut options);
    options
}

#[test]
fn small_segments_wait_only_if_asked_to() {
    for nodelay in [true, false] {
        let (client, _server) = pair(&with(|options| options.nodelay = nodelay));
        assert_eq!(getsockopt(&client, sockopt::TcpNoDelay).unwrap(), nodelay);
    }
}

#[test]
fn closing_resets_or_does_not() {
    use std::io::Read;
    for (close, ending) in [(Close::Fin, Ok(0)), (Close::Rst, Err(io::ErrorKind::ConnectionReset))] {
        let (client, mut server) = pair(&with(|options| options.close = close));
        drop(client);
        assert_eq!(server.read(&mut [0; 1]).map_err(|error| error.kind()), ending, "{close:?}");
    }
}

#[test]
fn the_congestion_control_is_the_one_asked_for() {
    let (client, _server) = pair(&with(|options| options.congestion = Some("reno".into())));
    assert_eq!(tcp_info::congestion(&client).unwrap(), "reno");
}

#[test]
fn a_congestion_control_that_is_not_there_is_named() {
    let options = with(|options| options.congestion = Some("nosuch".into()));
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
    let error = options.check(server).unwrap_err();
    assert_eq!((error.sentence.as_str(), error.exit_code), ("this kernel has no congestion control \"nosuch\"", 2));
    let Err(error) = begin(server, None, &options) else { panic!("it is not there") };
    assert!(error.to_string().contains("nosuch"), "{error}");
}

#[test]
fn the_other_side_sends_segments_no_longer_than_asked_for() {
    let (client, server) = pair(&with(|options| options.mss = Some(536)));
    // Timestamps take 12 bytes of it (RFC 7323 §3.2).
    assert!(getsockopt(&server, sockopt::TcpMaxSeg).unwrap() <= 536);
    assert!(getsockopt(&client, sockopt::TcpMaxSeg).unwrap() <= 536);
}

#[test]
fn segments_of_a_length_that_there_is_not_are_refused() {
    for bytes in [1, 87, 32_768, u32::MAX] {
        let options = with(|options| options.mss = Some(bytes));
        let error = options.check(SocketAddr::from((Ipv4Addr::LOCALHOST, 53))).unwrap_err();
        assert_eq!(error.sentence, format!("this kernel does not accept an MSS of {bytes} bytes"));
    }
}

#[test]
fn the_receive_buffer_is_twice_what_was_asked_for() {
    // The kernel counts its own needs too (socket(7)).
    let (client, _server) = pair(&with(|options| options.receive_buffer = Some(50_000)));
    assert_eq!(getsockopt(&client, sockopt::RcvBuf).unwrap(), 100_000);
}
