//! Small servers over TCP and TLS, in threads of the test.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use dnsrig_net::tls::{DOT, identity};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// A server waits so long for its client at most.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// A server that hands each connection to `serve`, in a thread of its own, until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub listener: TcpListener,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (accepting, stopping, serve) = (listener.try_clone().unwrap(), stop.clone(), Arc::new(serve));
        let thread = thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in accepting.incoming() {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                let (stream, serve) = (stream.unwrap(), serve.clone());
                // No thread of a test waits for ever. What was reset meanwhile has no settings any more.
                let _ = stream.set_read_timeout(Some(WAIT_MAX));
                let _ = stream.set_write_timeout(Some(WAIT_MAX));
                let _ = stream.set_nodelay(true);
                threads.push(thread::spawn(move || serve(stream)));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Server { address, listener, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        let joined = self.thread.take().unwrap().join();
        if !thread::panicking() {
            joined.unwrap();
        }
    }
}

/// How connections ended that were read to their end.
#[derive(Default)]
pub struct Ends {
    pub orderly: AtomicU64,
    pub reset: AtomicU64,
}

impl Ends {
    /// Reads what is left, and counts how it ends.
    pub fn watch(&self, stream: &mut TcpStream) {
        let counter = loop {
            match stream.read(&mut [0; 512]) {
                Ok(0) => break &self.orderly,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break &self.reset,
                Err(_) => return,
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The next query of a stream; None at its end.
pub fn next_query(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut query).ok()?;
    Some(query)
}

pub fn answer(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer
}

pub fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

/// Answers until the stream ends.
pub fn answer_all(stream: &mut (impl Read + Write)) {
    while let Some(query) = next_query(stream) {
        if stream.write_all(&frame(&answer(&query))).is_err() {
            return;
        }
    }
}

/// Settings of a server with a certificate of its own.
pub fn tls_config() -> Arc<ServerConfig> {
    identity::server_config(identity::make_identity([127, 0, 0, 1].into()).unwrap(), DOT, None).unwrap()
}

pub fn answer_all_over_tls(stream: TcpStream, config: Arc<ServerConfig>) {
    answer_all(&mut StreamOwned::new(ServerConnection::new(config).unwrap(), stream));
}

/// Closes with RST.
pub fn reset(stream: TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // It fails on a connection that the other side has reset, which is then over anyway.
    let _ = nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger);
}

/// Runs `load` for half a second, with a timeout of 200 ms unless asked otherwise; the summary.
pub fn load(server: SocketAddr, transport: &str, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let queries = folder.path().join("queries.txt");
    std::fs::write(&queries, "www.example.com A\nmail.example.com AAAA\n").unwrap();
    let timeout: &[&str] = if arguments.contains(&"--timeout") { &[] } else { &["--timeout", "0.2s"] };
    let output = Command::new(env!("CARGO_BIN_EXE_dnsrig-engine"))
        .args(["load", &server.to_string(), "--transport", transport, "--queries"])
        .arg(&queries)
        .args(["--duration", "0.5s", "--interval", "0.1s"])
        .args(timeout)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

pub fn count(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}
