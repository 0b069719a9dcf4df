//! Runs `replay prepare`.

use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use super::{
    anonymise::Anonymiser,
    arguments::Arguments,
    edns::Shares,
    finish::{CLIENT_BYTES, Finisher, Options, Written},
    operations::{Share, Timeline, Transports, rotated_ns},
    packets::{Packets, Wanted},
    report::{self, Summary},
    server::{Seen, written},
    sort::{Entry, Sorted, Sorter},
};
use crate::{
    base::{
        clock, events,
        failure::Failure,
        output,
        stop::{INTERRUPTED, Stop, StopError, Wake},
        threads::Thread,
    },
    dns::stream::StreamWriter,
    replay::{
        capture::{self, Item, Limits},
        error::ReplayError,
    },
};

/// So many servers are named.
const SERVERS_NAMED: usize = 10;

/// Makes the stream, and says what became of every packet.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let started_ns = clock::monotonic_ns();
    let stop = Stop::new(false)?;
    let read: Vec<_> = arguments.captures.iter().map(|path| Some(path.as_path())).collect();
    output::check(&[Some(&arguments.out)], &read)?;
    // First, so that nothing is read in vain.
    let writer = StreamWriter::create(&arguments.out)?;
    end_when_asked(stop, writer.part().into())?;
    let summary = prepare(arguments, writer)?;
    let now_ns = clock::monotonic_ns();
    let summary = Summary { elapsed_ns: now_ns - started_ns, cpu_ns: clock::process_cpu_ns(), ..summary };
    events::say(report::text(&summary));
    events::summary(now_ns, &summary)?;
    if summary.stream.queries == 0 {
        return Err(ReplayError::Empty { packets: summary.captures.iter().map(|capture| capture.items).sum() }.into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the process when it is asked to, and leaves nothing behind. Nobody is waited for: a pipe may give no packet.
fn end_when_asked(stop: Stop, part: PathBuf) -> Result<(), Failure> {
    let wait = move || -> Result<(), StopError> {
        while stop.wait(None, i64::MAX)? != Wake::Stop {}
        // It may be finished by now.
        let _ = fs::remove_file(&part);
        process::exit(i32::from(INTERRUPTED))
    };
    Thread::start("stop", wait)?;
    Ok(())
}

fn prepare(arguments: &Arguments, writer: StreamWriter) -> Result<Summary, ReplayError> {
    if arguments.transports.iter().map(|(_, share)| share).sum::<f64>() > 1.0 + 1e-9 {
        return Err(ReplayError::Arguments("the shares of --transport are together more than all clients".into()));
    }
    if let (Some(edns), Some(dnssec_ok)) = (arguments.edns, arguments.do_share)
        && dnssec_ok > edns
    {
        return Err(ReplayError::Arguments("--do-share is above --edns, and DO is a flag of EDNS".into()));
    }
    let directory = match arguments.out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let sorting = |error| ReplayError::Sort(directory.into(), error);
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
        captures.push(capture::read(path, limits, |item| match item {
            Item::Packet(packet) => packets.packet(packet).map_err(sorting),
            Item::Record(record) => packets.record(&record).map_err(sorting),
        })?);
    }
    let found = packets.finish().map_err(sorting)?;
    let (stream, outside_cut) = write(arguments, found.sorted, directory, writer)?;
    let mut ledger = found.ledger;
    let beyond_memory = stream.beyond_memory.div_ceil(arguments.multiply.into());
    ledger.messages.kept -= beyond_memory + outside_cut;
    ledger.messages.clients_beyond_memory = beyond_memory;
    ledger.messages.outside_cut = outside_cut;
    debug_assert!(ledger.is_balanced(), "{ledger:?}");
    let name = |&(address, queries): &_| Seen { address: written(address), queries };
    Ok(Summary {
        captures,
        servers: found.servers.iter().copied().map(written).collect(),
        servers_seen: found.seen.iter().take(SERVERS_NAMED).map(name).collect(),
        queries_first: found.seen.iter().map(|(_, queries)| queries).sum(),
        is_anonymised: arguments.anonymise,
        times_backwards: found.times_backwards,
        ledger,
        stream,
        ..Summary::default()
    })
}

/// Writes queries, which are in order, as they are asked for. Also says how many lay outside of a cut.
fn write(
    arguments: &Arguments,
    mut sorted: Sorted,
    directory: &Path,
    writer: StreamWriter,
) -> Result<(Written, u64), ReplayError> {
    let sorting = |error| ReplayError::Sort(directory.into(), error);
    let memory_bytes = memory_bytes(arguments);
    let options = Options {
        transports: Transports { shares: arguments.transports.clone(), seed: arguments.seed },
        edns: Shares { edns: arguments.edns, dnssec_ok: arguments.do_share, seed: arguments.seed },
        speed: arguments.speed,
        clients_max: (memory_bytes / 4 / CLIENT_BYTES).min(u32::MAX as usize),
        store_addresses: arguments.addresses,
    };
    let anonymiser = arguments.anonymise.then(|| Anonymiser::new(arguments.keep_tld)).transpose();
    let mut finisher = Finisher::new(options, anonymiser.map_err(|_| ReplayError::Random)?, writer);
    let mut timeline = Timeline::new((arguments.gap_s * 1e9) as i64, arguments.cut.unwrap_or((0, i64::MAX)));
    let (mut outside_cut, mut duration_ns) = (0, 0);
    let mut once = (arguments.multiply > 1).then(|| Sorter::new(directory, memory_bytes / 4));
    while let Some(entry) = sorted.next().map_err(sorting)? {
        let Some(time_ns) = timeline.due_ns(entry.time_ns) else {
            outside_cut += 1;
            continue;
        };
        duration_ns = time_ns;
        let entry = Entry { time_ns, ..entry };
        match &mut once {
            Some(once) => once.push(&entry).map_err(sorting)?,
            None => finisher.push(&entry)?,
        }
    }
    drop(sorted);
    if let Some(once) = once {
        let all = Sorter::new(directory, memory_bytes / 4);
        let mut copies = copies(once, duration_ns, arguments.multiply, all).map_err(sorting)?;
        while let Some(entry) = copies.next().map_err(sorting)? {
            finisher.push(&entry)?;
        }
    }
    let first_wall_ns = if arguments.anonymise { 0 } else { timeline.first_wall_ns };
    let stream = finisher.finish(first_wall_ns)?;
    Ok((Written { gaps: timeline.gaps, gaps_ns: timeline.gaps_ns, ..stream }, outside_cut))
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
