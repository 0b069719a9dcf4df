//! Runs `replay prepare`.

use std::{net::IpAddr, path::Path, process::ExitCode};

use super::{
    arguments::Arguments,
    finish::{CLIENT_BYTES, Finisher, Options},
    packets::{Packets, Wanted},
    report::{self, Summary},
    server::{Seen, written},
    sort::Sorter,
};
use crate::{
    base::{clock, events, failure::Failure},
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
    let summary = prepare(arguments)?;
    let now_ns = clock::monotonic_ns();
    let summary = Summary { elapsed_ns: now_ns - started_ns, cpu_ns: clock::process_cpu_ns(), ..summary };
    events::say(report::text(&summary));
    events::summary(now_ns, &summary)?;
    if summary.stream.queries == 0 {
        return Err(ReplayError::Empty { packets: summary.captures.iter().map(|capture| capture.items).sum() }.into());
    }
    Ok(ExitCode::SUCCESS)
}

fn prepare(arguments: &Arguments) -> Result<Summary, ReplayError> {
    // First, so that nothing is read in vain.
    let writer = StreamWriter::create(&arguments.out)?;
    let directory = match arguments.out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let sorting = |error| ReplayError::Sort(directory.into(), error);
    let to_v6 = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => *address,
    };
    let wanted = Wanted { servers: arguments.servers.iter().map(to_v6).collect(), ports: arguments.ports.clone() };
    let memory_bytes = usize::try_from(arguments.memory).unwrap_or(usize::MAX);
    let mut packets = Packets::new(wanted, Sorter::new(directory, memory_bytes / 2));
    let limits = Limits { decompressed_bytes_max: arguments.decompressed_max };
    let mut captures = Vec::new();
    for path in &arguments.captures {
        captures.push(capture::read(path, limits, |item| match item {
            Item::Packet(packet) => packets.packet(packet).map_err(sorting),
            Item::Record(record) => packets.record(&record).map_err(sorting),
        })?);
    }
    let mut found = packets.finish().map_err(sorting)?;
    let options = Options {
        gap_ns: (arguments.gap_s * 1e9) as i64,
        clients_max: (memory_bytes / 4 / CLIENT_BYTES).min(u32::MAX as usize),
        store_addresses: arguments.addresses,
    };
    let mut finisher = Finisher::new(options, writer);
    while let Some(entry) = found.sorted.next().map_err(sorting)? {
        finisher.push(&entry)?;
    }
    let stream = finisher.finish()?;
    let mut ledger = found.ledger;
    ledger.messages.kept -= stream.beyond_memory;
    ledger.messages.clients_beyond_memory = stream.beyond_memory;
    debug_assert!(ledger.is_balanced(), "{ledger:?}");
    let name = |&(address, queries): &_| Seen { address: written(address), queries };
    Ok(Summary {
        captures,
        servers: found.servers.iter().copied().map(written).collect(),
        servers_seen: found.seen.iter().take(SERVERS_NAMED).map(name).collect(),
        queries_first: found.seen.iter().map(|(_, queries)| queries).sum(),
        times_backwards: found.times_backwards,
        ledger,
        stream,
        ..Summary::default()
    })
}
