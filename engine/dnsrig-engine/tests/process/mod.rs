//! The engine as a process: what it says, and that it ends.

pub mod descriptors;
pub mod primary;
pub mod stalled;

use std::{
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    process::{self, Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::Value;

pub const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// No answer takes longer, on however busy a machine, unless there is none.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Where nobody listens. The kernel gives a port below 32768 only to who asks for it (`ip_local_port_range`), so no
/// other test comes to it meanwhile; each test has another one, and so has each process of tests.
pub fn nobody() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let number = process::id() * 8 + TAKEN.fetch_add(1, Ordering::Relaxed);
    (Ipv4Addr::LOCALHOST, 10_000 + (number % 20_000) as u16).into()
}

/// A process that ends when its standard input does.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the engine with `arguments`, separated by spaces.
    pub fn start(arguments: &str) -> Self {
        Process::spawn(Command::new(ENGINE).args(arguments.split_whitespace()))
    }

    /// Starts a command that becomes the engine.
    pub fn spawn(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Process { child, input, output }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next event.
    pub fn next_event(&mut self) -> Value {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            panic!("no further event came: {}", self.errors());
        }
        serde_json::from_str(&line).unwrap()
    }

    /// The next event of this name.
    pub fn event(&mut self, name: &str) -> Value {
        loop {
            let event = self.next_event();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// What it says on standard error until it ends.
    fn errors(&mut self) -> String {
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        errors
    }

    /// Its standard input.
    pub fn input(&mut self) -> &mut ChildStdin {
        self.input.as_mut().unwrap()
    }

    /// How it failed: what it said, and its exit code.
    pub fn failure(mut self) -> (String, Option<i32>) {
        (self.errors(), self.child.wait().unwrap().code())
    }

    /// The summary, once it has ended by itself, and whether all was well.
    pub fn end(mut self) -> (Value, bool) {
        let summary = self.event("summary");
        (summary, self.child.wait().unwrap().success())
    }

    /// Tells it to end.
    pub fn end_input(&mut self) {
        drop(self.input.take());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server of the engine on loopback, and where it listens.
pub struct Server {
    process: Process,
    pub ready: Value,
}

impl Server {
    /// Starts `serve` with `arguments`, at ports of the kernel's choice if they say so.
    pub fn start(arguments: &str) -> Self {
        let mut process = Process::start(&format!("serve {arguments} --until-eof"));
        let ready = process.event("ready");
        Server { process, ready }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn address(&self, transport: &str) -> SocketAddr {
        self.ready[transport].as_str().unwrap().parse().unwrap()
    }

    pub fn udp(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address("udp")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address("tcp")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// The next event of this name.
    pub fn event(&mut self, name: &str) -> Value {
        self.process.event(name)
    }

    /// Ends it: its summary.
    pub fn end(mut self) -> Value {
        self.process.end_input();
        let (summary, good) = self.process.end();
        assert!(good, "{summary}");
        summary
    }
}
