//! `replay prepare`: captures → stream.
//!
//! [`packets`] takes in packets and finds messages, [`server`] chooses the server, [`sort`] brings queries into the
//! order of their times in bounded memory, [`exchanges`] finds what clients sent again. [`operations`] and
//! [`anonymise`] change the queries as asked for, [`finish`] numbers the clients and writes. [`accounting`] has what
//! became of everything that was read.

mod accounting;
mod anonymise;
pub mod arguments;
pub mod exchanges;
pub mod finish;
mod operations;
pub mod packets;
#[cfg(test)]
mod prepare_tests;
pub mod report;
pub mod server;
pub mod sort;

use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use dnsrig_core::{
    clock, events,
    failure::Failure,
    output,
    stop::{INTERRUPTED, Stop, Wake},
    threads::Thread,
    units::nanoseconds,
};

use self::{
    anonymise::Anonymiser,
    exchanges::{Exchanges, Place},
    finish::{CLIENT_BYTES, Finisher, Options, Written},
    operations::{Share, Shares, Timeline, Transports, rotated_ns},
    packets::{Packets, Wanted},
    report::Summary,
    server::{Seen, written},
    sort::{Entry, FROM_ANSWER, Sorted, Sorter, cannot_sort},
};
use crate::{
    query_stream::{KNOWN_FLAGS, RETRANSMISSION, StreamWriter},
    replay::{
        bad_arguments,
        capture::{self, Item, Limits},
    },
};

pub use self::arguments::Arguments;

/// The number of servers that are named.
const SERVERS_NAMED: usize = 10;

/// Makes the stream, and says what became of every packet.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let started_ns = clock::monotonic_ns();
    let stop = Stop::new(false)?;
    let read: Vec<_> = arguments.captures.iter().map(|path| Some(path.as_path())).collect();
    output::check(&[Some(&arguments.out)], &read)?;
    let captures: Vec<_> = arguments.captures.iter().map(PathBuf::as_path).collect();
    if let Some(capture) = output::given_twice(&captures) {
        let reason =
            format!("{} is given twice, which would duplicate every query in it: give it once", capture.display());
        return Err(bad_arguments(reason));
    }
    // First, so that nothing is read in vain.
    let writer = StreamWriter::create(&arguments.out)?;
    end_when_asked(stop, writer.part().into())?;
    let summary = prepare(arguments, writer)?;
    let now_ns = clock::monotonic_ns();
    let summary = Summary { elapsed_ns: now_ns - started_ns, cpu_ns: clock::process_cpu_ns(), ..summary };
    events::say(report::text(&summary));
    events::summary(now_ns, &summary)?;
    if summary.stream.queries == 0 {
        let items: u64 = summary.captures.iter().map(|capture| capture.items).sum();
        let sentence = format!("no query was found in {items} packets or records");
        return Err(Failure::bad_input(sentence, report::empty_hint(&summary)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the process when it is asked to, and leaves nothing behind. Nobody is waited for: a pipe may give no packet.
fn end_when_asked(stop: Stop, part: PathBuf) -> Result<(), Failure> {
    let wait = move || -> Result<(), Failure> {
        while stop.wait(None, i64::MAX)? != Wake::Stop {}
        // It may be finished by now.
        let _ = fs::remove_file(&part);
        process::exit(i32::from(INTERRUPTED))
    };
    Thread::start("stop", wait)?;
    Ok(())
}

fn prepare(arguments: &Arguments, writer: StreamWriter) -> Result<Summary, Failure> {
    if arguments.transports.iter().map(|(_, share)| share).sum::<f64>() > 1.0 + 1e-9 {
        return Err(bad_arguments("the shares of --transport-share are more than 100 % together: lower them"));
    }
    if let (Some(edns), Some(dnssec_ok)) = (arguments.edns, arguments.do_share)
        && dnssec_ok > edns
    {
        return Err(bad_arguments(
            "--do-share is above --edns-share, and DO is a flag of EDNS: lower it, or raise --edns-share",
        ));
    }
    let directory = match arguments.out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let sorting = cannot_sort(directory);
    let to_v6 = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => *address,
    };
    let wanted = Wanted {
        servers: arguments.servers.iter().map(to_v6).collect(),
        ports: arguments.ports.clone(),
        share: Share { share: arguments.keep_share, seed: arguments.seed },
    };
    let mut packets = Packets::new(wanted, Sorter::new(directory, memory_bytes(arguments) / 2));
    let limits = Limits { decompressed_bytes_max: arguments.decompressed_max };
    let mut captures = Vec::new();
    for path in &arguments.captures {
        packets.begin_capture();
        captures.push(capture::read(path, limits, |item| match item {
            Item::Packet(packet) => packets.packet(packet).map_err(&sorting),
            Item::Record(record) => packets.record(&record).map_err(&sorting),
        })?);
    }
    let found = packets.finish().map_err(&sorting)?;
    let (stream, left_out) = write(arguments, found.sorted, found.from_answers > 0, directory, writer)?;
    let mut ledger = found.ledger;
    let LeftOut { outside_cut, after_truncation } = left_out;
    ledger.messages.kept -= outside_cut + after_truncation;
    ledger.messages.outside_cut = outside_cut;
    ledger.messages.after_truncation = after_truncation;
    debug_assert!(ledger.is_balanced(), "{ledger:?}");
    let name = |&(address, queries): &_| Seen { address: written(address), queries };
    Ok(Summary {
        captures,
        servers: found.servers.iter().copied().map(written).collect(),
        servers_seen: found.seen.iter().take(SERVERS_NAMED).map(name).collect(),
        queries_first: found.seen.iter().map(|(_, queries)| queries).sum(),
        is_anonymised: arguments.anonymise,
        times_backwards: found.times_backwards,
        back_max_ns: found.back_max_ns,
        unread: found.unread,
        from_answers: found.from_answers,
        ledger,
        stream,
        ..Summary::default()
    })
}

/// Queries that were kept and are not written.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeftOut {
    pub outside_cut: u64,
    pub after_truncation: u64,
}

/// Which of the queries are written, and when they are due.
pub struct Selection {
    /// Whether queries are taken that only answers tell of.
    takes_answers: bool,
    exchanges: Exchanges,
    timeline: Timeline,
    pub left_out: LeftOut,
    repeated_at_once: u64,
}

impl Selection {
    pub fn new(takes_answers: bool, timeline: Timeline) -> Self {
        let (exchanges, left_out) = (Exchanges::default(), LeftOut::default());
        Selection { takes_answers, exchanges, timeline, left_out, repeated_at_once: 0 }
    }

    /// The query as it is due, unless it is left out; answers only tell of queries.
    pub fn due<'m>(&mut self, entry: Entry<'m>) -> Option<Entry<'m>> {
        if entry.flags & FROM_ANSWER != 0 && !self.takes_answers {
            return None;
        }
        let place = self.exchanges.place(&entry);
        match place {
            Place::Answer => return None,
            Place::AfterTruncation => self.left_out.after_truncation += 1,
            Place::Again { at_once: true } => self.repeated_at_once += 1,
            Place::Again { .. } | Place::New => (),
        }
        if place == Place::AfterTruncation {
            return None;
        }
        let Some(time_ns) = self.timeline.due_ns(entry.time_ns) else {
            self.left_out.outside_cut += 1;
            return None;
        };
        let again = if matches!(place, Place::Again { .. }) { RETRANSMISSION } else { 0 };
        Some(Entry { time_ns, flags: entry.flags & KNOWN_FLAGS | again, ..entry })
    }
}

/// Writes queries, which are in order, as they are asked for. Also returns which are left out.
fn write(
    arguments: &Arguments,
    mut sorted: Sorted,
    takes_answers: bool,
    directory: &Path,
    writer: StreamWriter,
) -> Result<(Written, LeftOut), Failure> {
    let sorting = cannot_sort(directory);
    let memory_bytes = memory_bytes(arguments);
    let options = Options {
        transports: Transports { shares: arguments.transports.clone(), seed: arguments.seed },
        edns: Shares { edns: arguments.edns, dnssec_ok: arguments.do_share, seed: arguments.seed },
        speed: arguments.speed,
        clients_max: (memory_bytes / 4 / CLIENT_BYTES).min(u32::MAX as usize),
        store_addresses: arguments.addresses,
        directory: directory.into(),
    };
    let anonymiser = arguments.anonymise.then(|| Anonymiser::new(arguments.keep_tld)).transpose();
    let mut finisher = Finisher::new(options, anonymiser.map_err(|_| no_random())?, writer)?;
    let timeline = Timeline::new(nanoseconds(arguments.gap), arguments.cut.unwrap_or((0, i64::MAX)));
    let mut selection = Selection::new(takes_answers, timeline);
    let mut duration_ns = 0;
    let mut once = (arguments.multiply > 1).then(|| Sorter::new(directory, memory_bytes / 4));
    while let Some(entry) = sorted.next().map_err(&sorting)? {
        let Some(entry) = selection.due(entry) else { continue };
        duration_ns = entry.time_ns;
        match &mut once {
            Some(once) => once.push(&entry).map_err(&sorting)?,
            None => finisher.push(&entry)?,
        }
    }
    drop(sorted);
    if let Some(once) = once {
        let all = Sorter::new(directory, memory_bytes / 4);
        let mut copies = copies(once, duration_ns, arguments.multiply, all).map_err(&sorting)?;
        while let Some(entry) = copies.next().map_err(&sorting)? {
            finisher.push(&entry)?;
        }
    }
    let Selection { timeline, left_out, repeated_at_once, .. } = selection;
    let first_wall_ns = if arguments.anonymise { 0 } else { timeline.first_wall_ns };
    let stream = finisher.finish(first_wall_ns)?;
    Ok((Written { gaps: timeline.gaps, gaps_ns: timeline.gaps_ns, repeated_at_once, ..stream }, left_out))
}

fn no_random() -> Failure {
    Failure::new("the system provides no random numbers", "--anonymise needs a secret random key: see getrandom(2)")
}

fn memory_bytes(arguments: &Arguments) -> usize {
    usize::try_from(arguments.memory).unwrap_or(usize::MAX)
}

/// Every query as often as asked for, of another client each time, in the order of time.
fn copies(once: Sorter, duration_ns: i64, copies: u16, mut all: Sorter) -> io::Result<Sorted> {
    let mut once = once.finish()?;
    while let Some(entry) = once.next()? {
        for copy in 0..copies {
            let time_ns = rotated_ns(entry.time_ns, duration_ns, copy, copies);
            all.push(&Entry { time_ns, copy, ..entry })?;
        }
    }
    all.finish()
}
