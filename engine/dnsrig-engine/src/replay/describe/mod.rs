//! `replay describe`: what a stream holds.

mod counts;
mod report;

use std::{path::PathBuf, process::ExitCode};

use dnsrig_core::{clock, events, failure::Failure};

use self::{
    counts::Counts,
    report::{Summary, text},
};
use crate::{
    dataset::name_table::NameTable,
    query_stream::{
        StreamReader,
        cache::{Simulation, Ttls},
    },
};

/// Describe a stream: clients, types, transports, and how many queries it has when.
///
/// A chart of the queries over time and the most important figures go to standard error, and all figures to the summary
/// on standard output. The whole stream is read twice and checked.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Stream to describe, as `replay prepare` makes it
    #[arg(value_name = "STREAM")]
    pub stream: PathBuf,
    /// Simulate the cache of a resolver that starts empty: how many queries it would answer, minute by minute
    ///
    /// TTLs come from --names or, without it, from a distribution with median 255 s and mean 9,780 s (kau.se, the pages
    /// of Alexa's list), and are 300 s for names that `generate clients` makes up as missing. A stream has no answers,
    /// so all names of a captured stream are assumed to exist.
    #[arg(long)]
    pub cache: bool,
    /// Size of a second simulated cache, in entries. It drops the entry that was used longest ago
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "cache",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub cache_entries: u32,
    /// File with names, TTLs and optionally types, as `generate clients --names-out` writes it
    #[arg(long, value_name = "TABLE", requires = "cache")]
    pub names: Option<PathBuf>,
}

/// Reads the stream, and says what it holds.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let started_ns = clock::monotonic_ns();
    let summary = describe(arguments)?;
    let now_ns = clock::monotonic_ns();
    events::say(text(&summary));
    let elapsed_ns = now_ns - started_ns;
    events::summary(now_ns, &Summary { elapsed_ns, cpu_ns: clock::process_cpu_ns(), ..summary })?;
    Ok(ExitCode::SUCCESS)
}

fn describe(arguments: &Arguments) -> Result<Summary, Failure> {
    let mut reader = StreamReader::open(&arguments.stream)?;
    let header = *reader.header();
    let table = arguments.names.as_deref().map(NameTable::read).transpose()?;
    let simulation = if arguments.cache {
        Simulation::timed(
            header.duration_ns,
            Some(arguments.cache_entries as usize),
            table.as_ref().map_or(Ttls::Drawn, Ttls::Table),
        )
    } else {
        Simulation::forever()
    };
    let mut counts = Counts::new(header.duration_ns, simulation);
    while let Some(record) = reader.next()? {
        counts.add(&record);
    }
    // Which clients are the heaviest is known only now.
    let mut heaviest = counts.heaviest();
    let mut reader = StreamReader::open(&arguments.stream)?;
    while let Some(record) = reader.next()? {
        heaviest.add(&record);
    }
    Ok(Summary { heaviest: heaviest.clients(), ..counts.summary(header) })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        describe: Arguments,
    }

    /// The second cache has from one entry to 16,777,216.
    #[test]
    fn the_cache_has_a_limit() {
        let entries = |words: &str| {
            let words = format!("describe clients.stream {words}");
            CommandLine::try_parse_from(words.split_whitespace()).map(|line| line.describe.cache_entries).ok()
        };
        let read = |number| entries(&format!("--cache --cache-entries {number}"));
        assert_eq!([0, 1, 16_777_216, 16_777_217].map(read), [None, Some(1), Some(16_777_216), None]);
        assert_eq!((entries(""), entries("--cache-entries 5")), (Some(100_000), None));
    }
}
