//! `replay describe`: what a stream holds.

mod chart;
mod counts;
mod report;
mod sharing;

use std::{path::PathBuf, process::ExitCode};

use self::{
    counts::Counts,
    report::{Summary, text},
};
use crate::{
    base::{clock, events, failure::Failure},
    dns::stream::{StreamError, StreamReader},
};

/// Say what a stream holds: clients, types, transports, and how many queries when.
///
/// A chart of the queries over time goes to standard error with the most important figures, all of them to the summary
/// on standard output. The whole stream is read twice and checked.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The stream, as `replay prepare` makes it
    #[arg(value_name = "STREAM")]
    pub stream: PathBuf,
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

fn describe(arguments: &Arguments) -> Result<Summary, StreamError> {
    let mut reader = StreamReader::open(&arguments.stream)?;
    let header = *reader.header();
    let mut counts = Counts::new(header.duration_ns);
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
