//! `probe records`: whether a server answers with the records that are in zone files.
//!
//! [`core`] reads the files and compares answers with them; this file has the connection, which blocks: it is one query
//! after another, and speed does not matter.

mod core;

use std::{
    io::{self, Read as _, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    stop::{Outcome, Stop, Wake},
    target::{self, Authority},
    units::{MINUTE, duration, parse_duration},
};
use dnsrig_dns::{header::Header, name::whole, writer::append_question};
use domain::base::Rtype;
use serde::{Serialize, Serializer};

use super::receive;
use crate::dataset::file_list::{self, Listed};
use core::{Rrset, Verdict, ZoneRecords};

/// Time between two questions to a foreign server that the user vouches for.
const PAUSE_VOUCHED: Duration = Duration::from_millis(10);

/// The number of differences that the summary names, for programs and for people.
const NAMED_MAX: usize = 1_000;
const SHOWN_MAX: usize = 20;

/// The largest zone file: its records need about four times as much memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Answers to earlier questions that are passed over before the right one comes.
const LATE_ANSWERS_MAX: usize = 16;

/// Compare the answers of a server with the records in zone files, RRset by RRset.
///
/// `probe records` asks for each RRset of the zones over TCP, without EDNS, and compares the answer with the zone file.
/// Each difference is named with owner, type and size: records are lacking or extra (`changed`), the RRset is not there
/// (`absent`, with the response code), the answer is marked as truncated (`truncated`), cannot be read (`broken`), or
/// does not come (`no-answer`). TTLs are not compared. RRSIG and NSEC3 records, and all records at or below a
/// delegation but DS and NSEC, are not asked for.
///
/// Exit codes: 0 all RRsets were asked for, 3 not all within --limit, 130 interrupted, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: find out what a secondary lost of the zones of its primary:\n  \
    dnsrig probe records 198.18.0.2 --zone-list /tmp/large/zones.list")]
pub struct Arguments {
    /// Server to ask: an IP address and optionally a port
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    server: SocketAddr,
    /// File with the zones, one per line: name, TAB, and path of the zone file from the folder of the list on, such as
    /// the zones.list of `dnsrig generate`
    #[arg(long, value_name = "FILE")]
    zone_list: PathBuf,
    /// Longest wait for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration(Duration::from_millis(1)..=MINUTE))]
    timeout: Duration,
    /// Time after which no more is asked (exit code 3)
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_duration)]
    limit: Duration,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
    /// IP address that you are allowed to load. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine. It gets at most 100 queries per second
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Option<IpAddr>,
}

/// An RRset for which the server's answer is not what the zone file has.
#[derive(Debug, Serialize)]
struct Difference {
    zone: String,
    owner: String,
    #[serde(serialize_with = "mnemonic")]
    rtype: Rtype,
    records: u64,
    bytes: u64,
    #[serde(flatten)]
    verdict: Verdict,
}

fn mnemonic<S: Serializer>(rtype: &Rtype, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(rtype)
}

#[derive(Debug, Serialize)]
struct Summary {
    outcome: Outcome,
    start_ns: i64,
    elapsed_ns: i64,
    zones: u64,
    rrsets: u64,
    records: u64,
    rrsets_same: u64,
    rrsets_different: u64,
    records_not_asked: u64,
    /// The first [`NAMED_MAX`].
    differences: Vec<Difference>,
}

/// Asks for all RRsets, and reports the differences.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server.ip(), arguments.i_am_authorized)?;
    let zones = read_list(&arguments.zone_list)?;
    let stop = Stop::new(arguments.until_eof)?;
    let speaks = events::are_wanted(arguments.json);
    if speaks {
        Anchors::start()?;
    }
    let mut asking = Asking {
        client: Client { server: arguments.server, timeout: arguments.timeout, connection: None, id: 0 },
        pause: if authority == Authority::Vouched { PAUSE_VOUCHED } else { Duration::ZERO },
        deadline: Instant::now() + arguments.limit,
        stop,
        summary: Summary {
            outcome: Outcome::Done,
            start_ns: clock::monotonic_ns(),
            elapsed_ns: 0,
            zones: 0,
            rrsets: 0,
            records: 0,
            rrsets_same: 0,
            rrsets_different: 0,
            records_not_asked: 0,
            differences: Vec::new(),
        },
    };
    for zone in &zones {
        asking.ask_zone(zone)?;
        if asking.summary.outcome != Outcome::Done {
            break;
        }
    }
    let mut summary = asking.summary;
    let now_ns = clock::monotonic_ns();
    summary.elapsed_ns = now_ns - summary.start_ns;
    events::say(text(&summary));
    if speaks {
        events::summary(now_ns, &summary)?;
    }
    Ok(summary.outcome.exit_code())
}

/// A line of the list.
struct Zone {
    name: String,
    file: PathBuf,
}

/// A failure because a zone file, or the list of them, cannot be used.
fn unusable(path: &Path, reason: impl std::fmt::Display) -> Failure {
    let hint = "give --zone-list the zones.list of a dataset: on each line a name, a TAB, and the path of a zone file";
    Failure::bad_input(format!("{}: {reason}", path.display()), hint)
}

/// Reads the list, whose zones have names, and files beside the list.
fn read_list(path: &Path) -> Result<Vec<Zone>, Failure> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let zone = |Listed { name, file }: Listed| match name {
        Some(name) => Ok(Zone { name, file: folder.join(file) }),
        None => Err(unusable(path, format!("there is no TAB and no path in the line `{}`", file.display()))),
    };
    file_list::read(path).map_err(|reason| unusable(path, reason))?.into_iter().map(zone).collect()
}

struct Asking {
    client: Client,
    pause: Duration,
    deadline: Instant,
    stop: Stop,
    summary: Summary,
}

impl Asking {
    fn ask_zone(&mut self, zone: &Zone) -> Result<(), Failure> {
        let wrong = |reason: String| unusable(&zone.file, reason);
        let (file, bytes) = file_list::open(&zone.file).map_err(wrong)?;
        if bytes > FILE_BYTES_MAX {
            return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        // A file that grows meanwhile is read up to its length of now.
        let records = ZoneRecords::read(file.take(bytes), &zone.file, &zone.name).map_err(wrong)?;
        self.summary.zones += 1;
        self.summary.records_not_asked += records.records_not_asked;
        for rrset in &records.rrsets {
            let pause = i64::try_from(self.pause.as_nanos()).unwrap_or(i64::MAX);
            self.summary.outcome = match self.stop.wait(None, pause)? {
                Wake::Stop => Outcome::Interrupted,
                _ if Instant::now() >= self.deadline => Outcome::Timeout,
                _ => Outcome::Done,
            };
            if self.summary.outcome != Outcome::Done {
                break;
            }
            let verdict = self.client.ask(rrset);
            self.note(zone, rrset, verdict);
        }
        Ok(())
    }

    fn note(&mut self, zone: &Zone, rrset: &Rrset, verdict: Verdict) {
        let summary = &mut self.summary;
        summary.rrsets += 1;
        summary.records += rrset.count();
        if verdict == Verdict::Same {
            summary.rrsets_same += 1;
            return;
        }
        summary.rrsets_different += 1;
        if summary.differences.len() < NAMED_MAX {
            summary.differences.push(Difference {
                zone: zone.name.clone(),
                owner: whole(&rrset.owner).to_string(),
                rtype: rrset.rtype,
                records: rrset.count(),
                bytes: rrset.bytes(),
                verdict,
            });
        }
    }
}

/// A connection to the server, made again when it is lost.
struct Client {
    server: SocketAddr,
    timeout: Duration,
    connection: Option<TcpStream>,
    id: u16,
}

impl Client {
    /// Asks for an RRset; again on a new connection if the server closed the one from before.
    fn ask(&mut self, rrset: &Rrset) -> Verdict {
        let is_new = self.connection.is_none();
        let first = self.answer(rrset);
        let answer = match first {
            Err(_) if !is_new => self.answer(rrset),
            other => other,
        };
        answer.map_or(Verdict::NoAnswer, |message| rrset.judge(&message))
    }

    /// The message that answers; an error ends the connection.
    fn answer(&mut self, rrset: &Rrset) -> io::Result<Vec<u8>> {
        self.id = self.id.wrapping_add(1);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.write_all(&query(self.id, rrset))?;
        let deadline = Instant::now() + self.timeout;
        for _ in 0..LATE_ANSWERS_MAX {
            let message = receive::message(&mut connection, deadline)?;
            if Header::read(&message).is_ok_and(|header| header.id == self.id) {
                self.connection = Some(connection);
                return Ok(message);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let connection = TcpStream::connect_timeout(&self.server, self.timeout)?;
        connection.set_nodelay(true)?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }
}

/// A query for an RRset, with its length before it.
fn query(id: u16, rrset: &Rrset) -> Vec<u8> {
    let mut message = vec![0; 2];
    message.extend_from_slice(&Header { id, questions: 1, ..Header::default() }.to_bytes());
    append_question(&mut message, &rrset.owner, rrset.rtype);
    let length = (message.len() - 2) as u16;
    message[..2].copy_from_slice(&length.to_be_bytes());
    message
}

/// The summary for people: a line for each difference.
fn text(summary: &Summary) -> String {
    let Summary { zones, rrsets, rrsets_same, records_not_asked, differences, outcome, .. } = summary;
    let mut text = format!(
        "{rrsets_same} of {rrsets} RRsets in {zones} zones are as in the files ({records_not_asked} records not asked \
         for){}\n",
        outcome.remark("--limit")
    );
    for Difference { owner, rtype, records, bytes, verdict, .. } in differences.iter().take(SHOWN_MAX) {
        let what = match verdict {
            Verdict::Same => continue,
            Verdict::Changed { lacking, extra } => format!("{lacking} records lacking, {extra} extra"),
            Verdict::Absent { rcode } => format!("absent (RCODE {rcode})"),
            Verdict::Truncated => "truncated".into(),
            Verdict::Broken => "an answer that cannot be read".into(),
            Verdict::NoAnswer => "no answer".into(),
        };
        text += &format!("{owner} {rtype}, {records} records, {bytes} bytes: {what}\n");
    }
    if summary.rrsets_different > SHOWN_MAX as u64 {
        text += &format!("and {} more: --json names {NAMED_MAX}\n", summary.rrsets_different - SHOWN_MAX as u64);
    }
    text
}
