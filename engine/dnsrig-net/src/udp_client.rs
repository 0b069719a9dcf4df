//! The loop of a program that asks over one UDP socket. Its core ([`UdpClient`]) decides what is sent when, and what an
//! answer means.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    ops::ControlFlow,
    os::fd::AsFd,
};

use dnsrig_core::{
    clock,
    failure::Failure,
    stop::{Outcome, Stop, Wake},
    target,
};
use dnsrig_dns::header::UDP_BYTES_MAX;
use nix::sys::socket::{setsockopt, sockopt};

use super::udp_batch::is_unreachable;

/// The longest message that is read. It is a byte longer than the longest message of a server, so
/// that a message that is too long is recognised.
const MESSAGE_BYTES_MAX: usize = UDP_BYTES_MAX + 1;

/// What a small datagram takes in a receive buffer, by the kernel's accounting (its `truesize`, for a 512-byte answer
/// rounded up generously).
const BUFFER_BYTES_PER_ANSWER: usize = 2048;

/// The number of messages that are taken in before the client looks at what else is due. Otherwise a server that sends
/// without a pause would keep it from its deadline.
const MESSAGES_MAX: usize = 64;

/// The number of turns without a wait after which the loop checks whether it is to stop, or an event is due.
const TURNS_BETWEEN_CHECKS: u32 = 64;

/// The core of a program that asks over UDP.
pub trait UdpClient {
    /// Sends one message on `socket` if one is due, and returns when to look again unless an answer comes before:
    /// `now_ns` if more may be due. At the end, returns the outcome.
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure>;

    /// Takes in a message. If the socket is not connected, it may come from any host.
    fn on_message(&mut self, now_ns: i64, from: SocketAddr, message: &[u8]) -> Result<(), Failure>;

    /// Takes in an ICMP error: nothing listens there.
    fn on_unreachable(&mut self, now_ns: i64);

    /// Prints the events that are due, and returns when the next one may be.
    fn report(&mut self, now_ns: i64) -> Result<i64, Failure>;
}

/// A socket that speaks to `server` alone and does not block; `answers` as in [`bind`].
pub fn connect(server: SocketAddr, answers: Option<u32>) -> Result<UdpSocket, Failure> {
    let socket = bind(server, answers)?;
    socket.connect(server).map_err(|error| no_socket(server, &error))?;
    Ok(socket)
}

/// A socket that speaks to servers of the same family as `server` and does not block. Its receive buffer has room for
/// this number of small `answers`, or the system's default size without a number.
pub fn bind(server: SocketAddr, answers: Option<u32>) -> Result<UdpSocket, Failure> {
    let bound = || {
        let socket = UdpSocket::bind((target::unspecified(server), 0))?;
        socket.set_nonblocking(true)?;
        if let Some(answers) = answers {
            // The kernel lowers it to net.core.rmem_max if need be; an answer that is dropped then counts as any other
            // loss.
            setsockopt(&socket, sockopt::RcvBuf, &(answers as usize * BUFFER_BYTES_PER_ANSWER))?;
        }
        Ok(socket)
    };
    bound().map_err(|error: io::Error| no_socket(server, &error))
}

fn no_socket(server: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot make a UDP socket to {server}: {error}"),
        format!("see `ip route get {}`: run this on a host that has a route there", server.ip()),
    )
}

/// Has `client` send and receive on `socket`, which does not block, until it ends or someone ends it.
///
/// `server` is the address that is named in an error of the socket.
pub fn run(
    client: &mut impl UdpClient,
    socket: &UdpSocket,
    server: SocketAddr,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let mut turns: u32 = 0;
    loop {
        receive(client, socket, server)?;
        let now_ns = clock::monotonic_ns();
        let until_ns = match client.act(socket, now_ns)? {
            ControlFlow::Break(outcome) => return Ok(outcome),
            ControlFlow::Continue(until_ns) => until_ns,
        };
        turns = turns.wrapping_add(1);
        if until_ns <= now_ns && !turns.is_multiple_of(TURNS_BETWEEN_CHECKS) {
            continue;
        }
        let until_ns = until_ns.min(client.report(now_ns)?);
        if stop.wait(Some(socket.as_fd()), until_ns.saturating_sub(now_ns))? == Wake::Stop {
            return Ok(Outcome::Interrupted);
        }
    }
}

/// Takes in messages that have come, at most [`MESSAGES_MAX`].
fn receive(client: &mut impl UdpClient, socket: &UdpSocket, server: SocketAddr) -> Result<(), Failure> {
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    for _ in 0..MESSAGES_MAX {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => client.on_message(clock::monotonic_ns(), from, &buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_unreachable(&error) => client.on_unreachable(clock::monotonic_ns()),
            Err(error) => {
                return Err(Failure::new(
                    format!("cannot receive from {server}: {error}"),
                    "check the link of this host (ip link, ip route)",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts messages.
    struct Counter(usize);

    impl UdpClient for Counter {
        fn act(&mut self, _socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
            Ok(ControlFlow::Continue(now_ns))
        }

        fn on_message(&mut self, _now_ns: i64, _from: SocketAddr, _message: &[u8]) -> Result<(), Failure> {
            self.0 += 1;
            Ok(())
        }

        fn on_unreachable(&mut self, _now_ns: i64) {}

        fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
            Ok(now_ns)
        }
    }

    #[test]
    fn a_turn_ends_however_many_messages_have_come() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let socket = connect(address, None).unwrap();
        // Few enough for a receive buffer of the default size.
        let sent = MESSAGES_MAX + 10;
        for _ in 0..sent {
            server.send_to(&[0; 12], socket.local_addr().unwrap()).unwrap();
        }
        let mut client = Counter(0);
        for count in [MESSAGES_MAX, sent] {
            receive(&mut client, &socket, address).unwrap();
            assert_eq!(client.0, count);
        }
    }

    /// Wants so many more turns, each after a pause, and counts its reports.
    struct Turns {
        left: u32,
        pause_ns: i64,
        reports: u32,
    }

    impl UdpClient for Turns {
        fn act(&mut self, _socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
            if self.left == 0 {
                return Ok(ControlFlow::Break(Outcome::Done));
            }
            self.left -= 1;
            Ok(ControlFlow::Continue(now_ns + self.pause_ns))
        }

        fn on_message(&mut self, _now_ns: i64, _from: SocketAddr, _message: &[u8]) -> Result<(), Failure> {
            Ok(())
        }

        fn on_unreachable(&mut self, _now_ns: i64) {}

        fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
            self.reports += 1;
            Ok(now_ns)
        }
    }

    #[test]
    fn a_client_reports_whenever_it_waits_and_now_and_then_if_it_never_does() {
        let address = "127.0.0.1:9".parse().unwrap();
        let (socket, stop) = (connect(address, None).unwrap(), Stop::new(false).unwrap());
        for (left, pause_ns, reports) in [
            (TURNS_BETWEEN_CHECKS - 1, 0, 0),
            (TURNS_BETWEEN_CHECKS, 0, 1),
            (2 * TURNS_BETWEEN_CHECKS, 0, 2),
            (3, 1, 3),
        ] {
            let mut client = Turns { left, pause_ns, reports: 0 };
            assert_eq!(run(&mut client, &socket, address, &stop).unwrap(), Outcome::Done);
            assert_eq!(client.reports, reports, "{left} turns, each after {pause_ns} ns");
        }
    }
}
