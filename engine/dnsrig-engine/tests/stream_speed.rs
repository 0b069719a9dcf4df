//! How fast a line receives: run by hand, with the figures for people.
//!
//!     cargo test --release --test stream_speed -- --ignored --nocapture
//!
//! A thread sends framed messages over loopback as fast as it can, plain or over TLS; the test receives them, counts
//! them and tells Gbit/s and the receiving thread's CPU time by KB. `read(2)` alone is the floor of it. The sender needs
//! a core of its own, so Gbit/s says less than the CPU time does on a machine with others at work.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Instant,
};

use dnsrig_engine::{
    poller::sleep_until_readable,
    serve,
    stream::{
        Buffers, Line, SocketOptions,
        framing::{self, Frames},
        socket::{self, Begun},
        tls::{Client, Settings},
    },
};
use nix::sys::resource::{UsageWho, getrusage};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// So much is sent each time.
const OCTETS: usize = 1 << 30;

/// No reading waits longer for the sender.
const PATIENCE_NS: i64 = 5_000_000_000;

/// A stretch of the stream: as many messages as fit about a megabyte.
fn stretch(message_octets: usize) -> (Vec<u8>, usize) {
    let count = (1 << 20) / message_octets;
    let mut octets = Vec::new();
    (0..count).for_each(|_| {
        framing::append(&mut octets, &vec![7; message_octets]);
    });
    (octets, count)
}

/// Sends [`OCTETS`] octets to whoever comes first.
fn send(listener: TcpListener, message_octets: usize, tls: Option<Arc<ServerConfig>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (stretch, _) = stretch(message_octets);
        let mut to: Box<dyn Write> = match tls {
            Some(config) => Box::new(StreamOwned::new(ServerConnection::new(config).unwrap(), stream)),
            None => Box::new(stream),
        };
        for _ in 0..OCTETS / stretch.len() {
            to.write_all(&stretch).unwrap();
        }
    })
}

/// The thread's CPU time so far, in seconds: its own, and the kernel's for it.
fn cpu_s() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    (seconds(usage.user_time()), seconds(usage.system_time()))
}

fn report(what: &str, octets: usize, work: impl FnOnce()) {
    let ((user_s, system_s), start) = (cpu_s(), Instant::now());
    work();
    let (elapsed_s, (user_to_s, system_to_s)) = (start.elapsed().as_secs_f64(), cpu_s());
    let gbit_per_s = octets as f64 * 8.0 / elapsed_s / 1e9;
    let ns_per_kb = |seconds: f64| seconds * 1e12 / octets as f64;
    let (user, system) = (ns_per_kb(user_to_s - user_s), ns_per_kb(system_to_s - system_s));
    println!("{what:42} {gbit_per_s:6.1} Gbit/s {:6.1} ns/KB, {user:6.1} of them user", user + system);
}

/// `read(2)`, and nothing else.
fn read_only(message_octets: usize, read_octets: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let sender = send(listener, message_octets, None);
    let mut space = vec![0; read_octets];
    report(&format!("read(2) of {} KiB", read_octets >> 10), OCTETS, || while stream.read(&mut space).unwrap() > 0 {});
    sender.join().unwrap();
}

/// A line, plain or over TLS.
fn line(message_octets: usize, read_octets: usize, tls: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = || serve::tls::server_config(serve::tls::make_identity(address.ip()).unwrap()).unwrap();
    let client = tls.then(|| Client::new(address.ip(), Settings::default()).unwrap());
    let options = SocketOptions::default();
    let Begun::Connecting(socket) = socket::begin(address, None, &options).unwrap() else { panic!("no connection") };
    let mut line = Line::<Frames>::default();
    line.begin(socket, &options, client.as_ref()).unwrap();
    let mut buffers = Buffers::new(read_octets);
    line.connected(&mut buffers).unwrap();
    let sender = send(listener, message_octets, tls.then(config));
    let (stretch, count) = stretch(message_octets);
    let stretches = OCTETS / stretch.len();
    let mut messages = 0;
    let kind = if tls { "TLS" } else { "plain" };
    let what = format!("{kind}, messages of {message_octets}, reads of {} KiB", read_octets >> 10);
    report(&what, stretches * stretch.len(), || {
        let mut closed = false;
        while !closed && messages < stretches * count {
            sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap();
            loop {
                let reading = line.read(&mut buffers, |message: &[u8]| messages += message.len().min(1)).unwrap();
                closed = reading.closed;
                if closed || !reading.full {
                    break;
                }
            }
        }
    });
    assert_eq!(messages, stretches * count);
    sender.join().unwrap();
}

#[test]
#[ignore = "takes a minute, and tells figures instead of checking any"]
fn a_line_receives_as_fast_as_it_is_sent_to() {
    for message_octets in [65_535, 16_384, 1_400, 150] {
        read_only(message_octets, 256 << 10);
        for read_octets in [64 << 10, 256 << 10, 1 << 20] {
            line(message_octets, read_octets, false);
        }
        for read_octets in [64 << 10, 256 << 10, 1 << 20] {
            line(message_octets, read_octets, true);
        }
    }
}
