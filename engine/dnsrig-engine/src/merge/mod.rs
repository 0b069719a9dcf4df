//! `merge`: puts together what several generators of one load wrote, as if one had.
//!
//! [`generator`] reads what each says of itself and whether they belong together, [`latency_log`] adds histograms,
//! [`rows`] adds or joins rows, and [`summary`] adds the rest. What is read may be anyone's file: sizes are limited,
//! and damage is an error that names the file.

mod error;
mod generator;
mod latency_log;
mod rows;
mod summary;
#[cfg(test)]
mod testing;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::Value;

use crate::base::{
    clock, events,
    failure::Failure,
    output::{self, OutputError},
};
use error::MergeError;
use generator::Generator;

/// As many as one load may have.
const GENERATORS_MAX: usize = 64;

/// The name of a summary in a directory.
const SUMMARY: &str = "summary.json";

/// Put together what several generators of one load wrote, as if one had.
///
/// Each DIR is what `load --out` or `replay play --out` wrote, with its summary.json. They began at one agreed moment,
/// each by its own clock: all times become those of the clock of the first DIR, or of that by which they began at
/// --start-ns, by the starts that they tell. Intervals, time-out, transport and model must be the same.
///
/// Histograms are added, interval by interval and bin by bin (latency.hlog). Counts of intervals and of bins of answers
/// add; busy_ns is that of the busiest. Rows of clients are joined; of a client that several generators had, counts
/// add, and p50_ns and p99_ns are the larger ones. Rows of queries, where all have them, are sorted by due_ns. The
/// summary, an event and summary.json, is that of `load`: counts add, distributions are those of the added histograms,
/// and busy_share, sending_ns are the largest. Its `generators` tell of each dir, sent, answered, unsent, busy_share,
/// lag_p99_ns and real_time.
///
/// A file may have 4 GB, and all rows of queries are held in memory.
///
/// Exit codes: 0 put together, 2 bad input: files that are missing, damaged, or do not belong together; 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: two generators that shared a load:\n  \
    dnsrig merge generator-1 generator-2 --out merged")]
pub struct Arguments {
    /// What generators wrote
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// A directory that exists, for what is put together
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// When they began, by the clock that all times are to be of [default: the start that the first DIR tells]
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(i64).range(0..generator::TIME_NS_MAX))]
    start_ns: Option<i64>,
    /// Print JSON lines on a terminal too
    #[arg(long)]
    json: bool,
}

/// Reads all, and writes it put together.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { dirs, out, start_ns, json } = arguments;
    if dirs.len() > GENERATORS_MAX {
        return Err(MergeError::Many(dirs.len(), GENERATORS_MAX).into());
    }
    let place = fs::canonicalize(out).map_err(|error| MergeError::Write(out.clone(), error.to_string()))?;
    if let Some(dir) = dirs.iter().find(|dir| fs::canonicalize(dir).is_ok_and(|dir| dir == place)) {
        return Err(MergeError::Over(dir.clone()).into());
    }
    refuse_same_files(dirs, out)?;
    let mut generators = dirs.iter().map(|dir| Generator::open(dir)).collect::<Result<Vec<_>, _>>()?;
    generator::check(&generators)?;
    let begin_ns = start_ns.unwrap_or(generators[0].facts.start_ns);
    generators.iter_mut().for_each(|generator| generator.begin_ns = begin_ns);
    let times = latency_log::merge(&generators, out)?;
    rows::merge(&generators, out)?;
    let mut summary = summary::merge(&generators, &times)?;
    if events::are_wanted(*json) {
        events::summary(clock::monotonic_ns(), &summary)?;
    } else {
        events::say(format!("{} generators put together in {}\n", generators.len(), out.display()));
    }
    summary.insert("event".into(), "summary".into());
    let path = out.join(SUMMARY);
    let text = format!("{}\n", Value::Object(summary));
    output::write(&path, text).map_err(|error| MergeError::Write(path, error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// The directories differ, but links in them may lead to the same file.
fn refuse_same_files(dirs: &[PathBuf], out: &Path) -> Result<(), OutputError> {
    let names = rows::ADDED.iter().chain([&rows::QUERIES, &latency_log::NAME, &SUMMARY]);
    names.copied().try_for_each(|name| {
        let read: Vec<_> = dirs.iter().map(|dir| dir.join(name)).collect();
        let read: Vec<_> = read.iter().map(|path| Some(path.as_path())).collect();
        output::check(&[Some(&out.join(name))], &read)
    })
}
