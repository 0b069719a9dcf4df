//! `generate`: the data of an experiment, any number of zones or zones of any size, from a seed.
//!
//! The same arguments give the same bytes, on every machine and in every later version of the same dataset version
//! ([`VERSION`](crate::dataset::VERSION)); golden files in the tests hold us to it.

mod clients;
pub mod dataset;
mod files;
mod large_records;
pub mod tld;
mod world;
pub mod zones;

use std::process::ExitCode;

use clap::Subcommand;
use dnsrig_core::{clock, events, failure::Failure};
use serde::Serialize;

/// Make the data of an experiment from a seed: zones of any number or size, clients, or a world.
///
/// A dataset is a folder: zones.list (one zone per line: name, TAB, path of its file), the zone files below zones/,
/// catalog.zone (a catalog zone as in RFC 9432 that lists all zones, for servers that learn their zones by transfer),
/// and dataset.json, which is written last: if it is there, the dataset is complete.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    Zones(zones::Arguments),
    Tld(tld::Arguments),
    Files(files::Arguments),
    LargeRecords(large_records::Arguments),
    Clients(Box<clients::Arguments>),
    World(world::Arguments),
}

#[derive(Serialize)]
struct Summary<'a, T> {
    elapsed_ns: i64,
    cpu_ns: i64,
    #[serde(flatten)]
    made: &'a T,
}

/// Makes the data, and prints a `summary` event with what it contains.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let started_ns = clock::monotonic_ns();
    match &arguments.kind {
        Kind::Zones(arguments) => say(started_ns, &zones::generate(arguments)?),
        Kind::Tld(arguments) => say(started_ns, &tld::generate(arguments)?),
        Kind::Files(arguments) => say(started_ns, &files::generate(arguments)?),
        Kind::LargeRecords(arguments) => say(started_ns, &large_records::generate(arguments)?),
        Kind::Clients(arguments) => say(started_ns, &clients::generate(arguments)?),
        Kind::World(arguments) => say(started_ns, &world::generate(arguments)?),
    }
}

fn say<T: Serialize>(started_ns: i64, made: &T) -> Result<ExitCode, Failure> {
    let now_ns = clock::monotonic_ns();
    let elapsed_ns = now_ns - started_ns;
    events::summary(now_ns, &Summary { elapsed_ns, cpu_ns: clock::process_cpu_ns(), made })?;
    Ok(ExitCode::SUCCESS)
}
