//! `clock serve`: answers with the time of its clock. Each connection has a thread, which waits in its socket, so that
//! a question is received as soon as it comes.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    stop::{Stop, Wake},
    threads::Thread,
};
use serde::Serialize;

use super::message::{Answer, QUESTION_BYTES, Question, Wall};

/// Connections at a time; one more is closed at once, and counted.
const CONNECTIONS_MAX: usize = 64;

/// A connection on which nothing comes for this time is closed: twice the longest interval of `clock compare`.
const IDLE: Duration = Duration::from_secs(120);

/// After a connection that could not be accepted, for want of descriptors, the next one waits so long.
const PAUSE_NS: i64 = 100_000_000;

/// Answer the questions of `clock compare` until stopped.
///
/// Events: `started`, `listening` with `address` and `port`, `anchor` every ten seconds, `summary`. It accepts at most
/// 64 connections at a time. A connection is closed if it sends anything but a question of `clock compare`, or nothing
/// for two minutes.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: on loopback, for a port that ssh forwards:\n  \
    dnsrig clock serve 127.0.0.1:5399 --until-eof")]
pub struct Arguments {
    /// Address to listen on. Port 0 chooses a free port
    #[arg(value_name = "ADDRESS:PORT")]
    address: SocketAddr,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listening {
    address: std::net::IpAddr,
    port: u16,
}

#[derive(Serialize)]
struct Summary {
    exchanges: u64,
    connections: u64,
    connections_refused: u64,
}

/// Answers until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let failed = |error| cannot_listen(arguments.address, &error);
    let stop = Stop::new(arguments.until_eof)?;
    let listener = TcpListener::bind(arguments.address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    let mut anchors = events::are_wanted(arguments.json).then(Anchors::start).transpose()?;
    match anchors {
        Some(_) => {
            events::emit("listening", clock::monotonic_ns(), &Listening { address: local.ip(), port: local.port() })?
        }
        None => events::say(format!("{local}: answering `clock compare`; Ctrl-C ends it\n")),
    }
    let exchanges = Arc::new(AtomicU64::new(0));
    let mut summary = Summary { exchanges: 0, connections: 0, connections_refused: 0 };
    let mut conversations = [const { None }; CONNECTIONS_MAX];
    loop {
        let due_ns = anchors.as_ref().map_or(i64::MAX, Anchors::due_ns);
        match stop.wait(Some(listener.as_fd()), due_ns - clock::monotonic_ns())? {
            Wake::Stop => break,
            Wake::Timeout => {}
            Wake::Ready => match listener.accept() {
                Ok((connection, _)) => match place(&mut conversations)? {
                    Some(place) => {
                        let exchanges = exchanges.clone();
                        summary.connections += 1;
                        *place = Some(Thread::start("clock", move || answer_all(connection, &exchanges))?);
                    }
                    None => summary.connections_refused += 1,
                },
                // The peer may be gone again; whatever else it is, looking at once would not help.
                Err(_) => {
                    if stop.wait(None, PAUSE_NS)? == Wake::Stop {
                        break;
                    }
                }
            },
        }
        if let Some(anchors) = &mut anchors {
            anchors.emit_if_due(clock::monotonic_ns())?;
        }
    }
    summary.exchanges = exchanges.load(Ordering::Relaxed);
    if anchors.is_some() {
        events::summary(clock::monotonic_ns(), &summary)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        format!("another program uses port {}: give another port, or 0 for any free port", address.port())
    } else {
        format!("see `ip address`: run this on a host that has {}", address.ip())
    };
    Failure::new(format!("cannot listen on {address}: {error}"), hint)
}

/// A connection, as long as it is open.
type Conversation = Option<Thread<()>>;

/// Finds a place for one more connection, if there is any. It fails if a thread has panicked.
fn place(conversations: &mut [Conversation]) -> Result<Option<&mut Conversation>, Failure> {
    for place in &mut *conversations {
        if let Some(over) = place.take_if(|thread| thread.is_over()) {
            over.join()?;
        }
    }
    Ok(conversations.iter_mut().find(|place| place.is_none()))
}

/// Answers until the peer closes, asks something else or is silent for too long.
fn answer_all(mut connection: TcpStream, exchanges: &AtomicU64) {
    let is_set = connection
        .set_nodelay(true)
        .and_then(|()| connection.set_read_timeout(Some(IDLE)))
        .and_then(|()| connection.set_write_timeout(Some(IDLE)));
    if is_set.is_err() {
        return;
    }
    let mut bytes = [0; QUESTION_BYTES];
    while connection.read_exact(&mut bytes).is_ok() {
        let received_ns = clock::monotonic_ns();
        let Some(question) = Question::decode(&bytes) else { return };
        let wall = Wall::now();
        let answer = Answer { question, received_ns, answered_ns: clock::monotonic_ns(), wall };
        // Counted first: a peer that has the answer may end this program before this thread goes on.
        exchanges.fetch_add(1, Ordering::Relaxed);
        if connection.write_all(&answer.encode()).is_err() {
            exchanges.fetch_sub(1, Ordering::Relaxed);
            return;
        }
    }
}
