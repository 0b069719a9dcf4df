//! `clock compare`: bursts of exchanges with some peers, all at once, until it is stopped.

use std::{
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    row_writer::RowWriter,
    rows::Columns,
    stop::{Stop, Wake},
    target,
    threads::Thread,
    units::{MINUTE, duration, nanoseconds},
};
use serde::Serialize;

use super::{
    exchange::{self, Exchange, Line},
    message::Wall,
    peer::Peer,
};

/// The most peers: `clock serve` has as many connections.
const PEERS_MAX: usize = 64;

/// The line goes through this many bursts of a peer, 11 days at ten seconds; later bursts are reported, but not in it.
const BURSTS_MAX: usize = 100_000;

/// How long a burst and its peer can take.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=MINUTE;

/// Compare the clocks of other machines with the clock of this one, again and again, until stopped.
///
/// Each peer runs `clock serve`. It gets a burst of --exchanges questions at the start, then every --interval, and once
/// more at the end. In a burst, the exchange with the shortest round trip counts. The event `compared` contains
/// `offset_ns`, their CLOCK_MONOTONIC − ours, at the moment `at_ns` of our clock, and `error_ns`: half of that round
/// trip (`rtt_ns`), plus what clocks that differ by 200 ppm drift apart in that time, plus a nanosecond. However
/// unequal the two ways are, the true offset is no further away. It also contains `realtime_offset_ns`, their
/// CLOCK_REALTIME − ours, with `realtime_error_ns`. A peer that does not answer within --limit is reported as `lost`,
/// with the cause in `why`, and is connected to again at the next interval.
///
/// In the `summary`, each peer has the `line` through all bursts: at a moment t of the CLOCK_MONOTONIC of this machine,
/// the offset is offset_ns + drift_ppb × (t − at_ns) / 10⁹. At each burst, the true offset is at most error_ns away
/// from the line; between bursts, this holds if the drift is steady. realtime_offset_ns is the value of the last burst.
///
/// A row of --out is an exchange: time_ns (its middle, by our clock), peer, offset_ns, rtt_ns, burst (from 0).
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a machine whose `clock serve` is reached by a port that ssh forwards:\n  \
    ssh -N -L 5399:127.0.0.1:5399 other &\n  \
    dnsrig clock compare other=127.0.0.1:5399 --out clocks.arrow")]
pub struct Arguments {
    /// Peers: a name for each, and the address of its `clock serve`
    #[arg(value_name = "NAME=ADDRESS:PORT", required = true, value_parser = parse_peer)]
    peers: Vec<(String, SocketAddr)>,
    /// Time from the start of a burst to the start of the next
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration(INTERVALS))]
    interval: Duration,
    /// Number of exchanges in a burst, fewer if they would take longer than --limit
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    exchanges: u16,
    /// Time to wait for a connection, and for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration(INTERVALS))]
    limit: Duration,
    /// File for the rows, one for each exchange (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
    /// IP address that you are allowed to ask. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine. May be repeated
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Vec<IpAddr>,
}

fn parse_peer(text: &str) -> Result<(String, SocketAddr), String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let read = named.and_then(|(name, address)| Some((name.to_owned(), address.parse().ok()?)));
    read.ok_or_else(|| "expected NAME=ADDRESS:PORT, such as berlin=127.0.0.1:5399".into())
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        let failed = |sentence: String| Err(Failure::bad_input(sentence, "see `dnsrig clock compare --help`"));
        if self.peers.len() > PEERS_MAX {
            return failed(format!("{} peers are given, but at most {PEERS_MAX} are possible", self.peers.len()));
        }
        for (number, (name, address)) in self.peers.iter().enumerate() {
            if self.peers[..number].iter().any(|(other, _)| other == name) {
                return failed(format!("two peers have the name {name}: give each peer its own name"));
            }
            let vouched = self.i_am_authorized.iter().copied().find(|vouched| *vouched == address.ip());
            target::authorise(address.ip(), vouched)?;
        }
        Ok(())
    }
}

/// Compares until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.check()?;
    let stop = Stop::new(arguments.until_eof)?;
    let rows = arguments.out.as_deref().map(|path| {
        let names: Vec<_> = arguments.peers.iter().map(|(name, _)| name.clone()).collect();
        RowWriter::create(path, columns(names), arguments.peers.len() * usize::from(arguments.exchanges))
    });
    let mut comparison = Comparison {
        count: usize::from(arguments.exchanges),
        limit: arguments.limit,
        peers: arguments.peers.iter().map(|(name, address)| Compared::new(name, *address)).collect(),
        rows: rows.transpose()?,
        speaks: events::are_wanted(arguments.json),
    };
    let mut anchors = comparison.speaks.then(Anchors::start).transpose()?;
    let interval_ns = nanoseconds(arguments.interval);
    let mut due_ns = clock::monotonic_ns();
    for burst in 0.. {
        comparison.burst(burst)?;
        // A burst that took longer leaves out those that were due meanwhile.
        let now_ns = clock::monotonic_ns();
        due_ns += interval_ns * ((now_ns - due_ns) / interval_ns + 1);
        if wait(&stop, due_ns, &mut anchors)? == Wake::Stop {
            comparison.burst(burst + 1)?;
            break;
        }
    }
    comparison.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until it is time or the program is to end, and emits anchors meanwhile.
fn wait(stop: &Stop, due_ns: i64, anchors: &mut Option<Anchors>) -> Result<Wake, Failure> {
    loop {
        let now_ns = clock::monotonic_ns();
        let next_ns = anchors.as_ref().map_or(due_ns, |anchors| anchors.due_ns().min(due_ns));
        if let Some(anchors) = anchors {
            anchors.emit_if_due(now_ns)?;
        }
        if now_ns >= due_ns {
            return Ok(Wake::Timeout);
        }
        if stop.wait(None, next_ns - now_ns)? == Wake::Stop {
            return Ok(Wake::Stop);
        }
    }
}

/// All peers, and their results.
struct Comparison {
    count: usize,
    limit: Duration,
    peers: Vec<Compared>,
    rows: Option<RowWriter<Row>>,
    speaks: bool,
}

/// A peer, and what is known of its clock.
struct Compared {
    name: String,
    /// None while its thread has it.
    peer: Option<Peer>,
    bests: Vec<Exchange>,
    realtime: Option<(i64, i64)>,
    bursts: u64,
    exchanges: u64,
    lost: u64,
}

#[derive(Serialize)]
struct ComparedEvent<'a> {
    peer: &'a str,
    offset_ns: i64,
    error_ns: i64,
    rtt_ns: i64,
    at_ns: i64,
    realtime_offset_ns: i64,
    realtime_error_ns: i64,
}

#[derive(Serialize)]
struct Lost<'a> {
    peer: &'a str,
    why: String,
}

#[derive(Serialize)]
struct PeerSummary<'a> {
    peer: &'a str,
    bursts: u64,
    exchanges: u64,
    lost: u64,
    line: Option<Line>,
    realtime_offset_ns: Option<i64>,
    realtime_error_ns: Option<i64>,
}

#[derive(Serialize)]
struct Summary<'a> {
    peers: Vec<PeerSummary<'a>>,
    rows: u64,
    rows_dropped: u64,
    cpu_ns: i64,
}

impl Comparison {
    /// A burst with each peer, all at once: a thread each, so that no answer waits for another one.
    fn burst(&mut self, number: u32) -> Result<(), Failure> {
        let (count, limit) = (self.count, self.limit);
        let start = |compared: &mut Compared| {
            let mut peer = compared.peer.take().expect("the thread of the burst before has given it back");
            Thread::start("clock", move || {
                let burst = peer.burst(count, limit);
                (peer, burst)
            })
        };
        let threads: Vec<_> = self.peers.iter_mut().map(start).collect::<Result<_, _>>()?;
        let ours = Wall::now();
        for (place, thread) in threads.into_iter().enumerate() {
            let (peer, burst) = thread.join()?;
            let compared = &mut self.peers[place];
            compared.peer = Some(peer);
            match burst {
                Ok(burst) => {
                    compared.report(&burst, ours, self.speaks)?;
                    if let Some(rows) = &mut self.rows {
                        burst.iter().for_each(|exchange| rows.push(Row { place, burst: number, exchange: *exchange }));
                    }
                }
                Err(error) => compared.report_lost(error.to_string(), self.speaks)?,
            }
        }
        // A writer that has failed says so in the end.
        self.rows.as_mut().map(RowWriter::flush);
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        let (rows, rows_dropped) = self.rows.map_or(Ok((0, 0)), RowWriter::finish)?;
        let peers = self.peers.iter().map(Compared::summary).collect();
        if self.speaks {
            let summary = Summary { peers, rows, rows_dropped, cpu_ns: clock::process_cpu_ns() };
            events::summary(clock::monotonic_ns(), &summary)?;
        } else {
            peers.iter().for_each(|peer: &PeerSummary| events::say(peer.text()));
        }
        Ok(())
    }
}

impl Compared {
    fn new(name: &str, address: SocketAddr) -> Self {
        Compared {
            name: name.to_owned(),
            peer: Some(Peer::new(address)),
            bests: Vec::new(),
            realtime: None,
            bursts: 0,
            exchanges: 0,
            lost: 0,
        }
    }

    fn report(&mut self, burst: &[Exchange], ours: Wall, speaks: bool) -> Result<(), Failure> {
        let Some(best) = exchange::best(burst) else { return Ok(()) };
        self.bursts += 1;
        self.exchanges += burst.len() as u64;
        if self.bests.len() < BURSTS_MAX {
            self.bests.push(best);
        }
        let (realtime_offset_ns, realtime_error_ns) = best.realtime(ours);
        self.realtime = Some((realtime_offset_ns, realtime_error_ns));
        let Exchange { at_ns, offset_ns, error_ns, rtt_ns, .. } = best;
        let peer = &self.name;
        if speaks {
            let event =
                ComparedEvent { peer, offset_ns, error_ns, rtt_ns, at_ns, realtime_offset_ns, realtime_error_ns };
            return events::emit("compared", clock::monotonic_ns(), &event);
        }
        events::say(format!(
            "{peer}: CLOCK_MONOTONIC {:+.6} s, wall clock {:+.3} ms, each ±{:.3} ms\n",
            offset_ns as f64 / 1e9,
            realtime_offset_ns as f64 / 1e6,
            realtime_error_ns as f64 / 1e6,
        ));
        Ok(())
    }

    fn report_lost(&mut self, why: String, speaks: bool) -> Result<(), Failure> {
        self.lost += 1;
        if speaks {
            return events::emit("lost", clock::monotonic_ns(), &Lost { peer: &self.name, why });
        }
        events::say(format!("{}: no answer: {why}\n", self.name));
        Ok(())
    }

    fn summary(&self) -> PeerSummary<'_> {
        PeerSummary {
            peer: &self.name,
            bursts: self.bursts,
            exchanges: self.exchanges,
            lost: self.lost,
            line: exchange::fit(&self.bests),
            realtime_offset_ns: self.realtime.map(|(offset_ns, _)| offset_ns),
            realtime_error_ns: self.realtime.map(|(_, error_ns)| error_ns),
        }
    }
}

impl PeerSummary<'_> {
    fn text(&self) -> String {
        let PeerSummary { peer, bursts, lost, .. } = self;
        let line = self.line.map_or("its clock is unknown".into(), |line| {
            format!("drift {:+.3} ppm, error of the line {:.3} ms", line.drift_ppb / 1e3, line.error_ns as f64 / 1e6)
        });
        format!("{peer}: {bursts} bursts, {lost} lost; {line}\n")
    }
}

struct Row {
    /// Which peer.
    place: usize,
    burst: u32,
    exchange: Exchange,
}

fn columns(names: Vec<String>) -> Columns<'static, Row> {
    Columns::default()
        .value("time_ns", |row: &Row| row.exchange.at_ns)
        .word("peer", names, |row| row.place)
        .value("offset_ns", |row| row.exchange.offset_ns)
        .value("rtt_ns", |row| row.exchange.rtt_ns)
        .value("burst", |row| row.burst)
}
