//! How fast a line receives: run by hand, with the figures for people.
//!
//!     cargo test --release --test stream_speed -- --ignored --nocapture
//!
//! A thread sends framed messages over loopback as fast as it can, plain or over TLS; the test receives and counts
//! them. CPU time is the receiving thread's, by KB, the least of some rounds; Gbit/s are the most. `read(2)` alone is
//! the floor of both. On a machine with others at work the CPU time says more.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Instant,
};

use dnsrig_dns::framing;
use dnsrig_net::{
    connection::{
        Buffers, Connection, SocketOptions,
        socket::{self, Begun},
    },
    poller::sleep_until_readable,
    tls::{Client, DOT, Settings, identity},
};
use nix::time::{ClockId, clock_gettime};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// So much is sent each time.
const BYTES: usize = 256 << 20;

/// How often each is tried, in turn with the others.
const ROUNDS: usize = 5;

/// No reading waits longer for the sender.
const PATIENCE_NS: i64 = 5_000_000_000;

/// A stretch of the stream: as many messages as fit about a megabyte.
fn stretch(message_bytes: usize) -> (Vec<u8>, usize) {
    let count = (1 << 20) / message_bytes;
    let mut bytes = Vec::new();
    (0..count).for_each(|_| {
        framing::append(&mut bytes, &vec![7; message_bytes]);
    });
    (bytes, count)
}

/// Sends [`BYTES`] bytes to whoever comes first.
fn send(listener: TcpListener, message_bytes: usize, tls: Option<Arc<ServerConfig>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (stretch, _) = stretch(message_bytes);
        let mut to: Box<dyn Write> = match tls {
            Some(config) => Box::new(StreamOwned::new(ServerConnection::new(config).unwrap(), stream)),
            None => Box::new(stream),
        };
        for _ in 0..BYTES / stretch.len() {
            to.write_all(&stretch).unwrap();
        }
    })
}

/// What receiving came to: the best of several.
struct Speed {
    gbit_per_s: f64,
    cpu_ns_per_kb: f64,
}

/// CPU time of this thread so far.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

fn measure(bytes: usize, work: impl FnOnce()) -> Speed {
    let (cpu_from_ns, start) = (cpu_ns(), Instant::now());
    work();
    Speed {
        gbit_per_s: bytes as f64 * 8.0 / start.elapsed().as_nanos() as f64,
        cpu_ns_per_kb: (cpu_ns() - cpu_from_ns) * 1e3 / bytes as f64,
    }
}

/// `read(2)`, and nothing else.
fn read_only(message_bytes: usize, read_bytes: usize) -> Speed {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let sender = send(listener, message_bytes, None);
    let mut space = vec![0; read_bytes];
    let speed = measure(BYTES, || while stream.read(&mut space).unwrap() > 0 {});
    sender.join().unwrap();
    speed
}

/// A line, plain or over TLS.
fn line(message_bytes: usize, read_bytes: usize, tls: bool) -> Speed {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = || identity::server_config(identity::make_identity(address.ip()).unwrap(), DOT, None).unwrap();
    let client = tls.then(|| Client::new(address.ip(), Settings::default()).unwrap());
    let options = SocketOptions::default();
    let Begun::Connecting(socket) = socket::begin(address, None, &options).unwrap() else { panic!("no connection") };
    let mut line = Connection::default();
    line.begin(socket, &options, client.as_ref()).unwrap();
    let mut buffers = Buffers::new(read_bytes);
    line.connected(&mut buffers).unwrap();
    let sender = send(listener, message_bytes, tls.then(config));
    let (stretch, count) = stretch(message_bytes);
    let stretches = BYTES / stretch.len();
    let mut messages = 0;
    let speed = measure(stretches * stretch.len(), || {
        let mut closed = false;
        while !closed && messages < stretches * count {
            sleep_until_readable(line.socket().unwrap(), PATIENCE_NS).unwrap();
            loop {
                let reading = line.read(&mut buffers, |message| messages += message.len().min(1)).unwrap();
                closed = reading.closed;
                if closed || !reading.full {
                    break;
                }
            }
        }
    });
    assert_eq!(messages, stretches * count);
    sender.join().unwrap();
    speed
}

#[test]
#[ignore = "takes a minute, and tells figures instead of checking any"]
fn a_line_receives_as_fast_as_it_is_sent_to() {
    for message_bytes in [65_535, 16_384, 150] {
        let mut cases: Vec<(String, Box<dyn Fn() -> Speed>)> = Vec::new();
        for read_bytes in [64 << 10, 256 << 10, 1 << 20] {
            let reads = read_bytes >> 10;
            cases.push((format!("read(2) of {reads} KiB"), Box::new(move || read_only(message_bytes, read_bytes))));
            for (kind, tls) in [("plain", false), ("TLS", true)] {
                let name = format!("{kind}, reads of {reads} KiB");
                cases.push((name, Box::new(move || line(message_bytes, read_bytes, tls))));
            }
        }
        let mut best: Vec<_> = cases.iter().map(|(_, receive)| receive()).collect();
        for _ in 1..ROUNDS {
            for ((_, receive), best) in cases.iter().zip(&mut best) {
                let speed = receive();
                best.gbit_per_s = best.gbit_per_s.max(speed.gbit_per_s);
                best.cpu_ns_per_kb = best.cpu_ns_per_kb.min(speed.cpu_ns_per_kb);
            }
        }
        println!("messages of {message_bytes} bytes");
        for ((name, _), Speed { gbit_per_s, cpu_ns_per_kb }) in cases.iter().zip(best) {
            println!("  {name:24} {gbit_per_s:6.1} Gbit/s {cpu_ns_per_kb:7.1} ns of CPU by KB");
        }
    }
}
