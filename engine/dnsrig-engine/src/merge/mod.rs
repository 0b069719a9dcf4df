//! `merge`: puts together what several generators of one load wrote, as if one had.
//!
//! [`generator`] reads the summary of each and checks that they belong together, [`latency_log`] adds histograms,
//! [`rows`] adds or joins rows, and [`summary`] adds the rest. What is read may be anyone's file: sizes are limited,
//! and damage is an error that names the file.

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

use dnsrig_core::{clock, events, failure::Failure, output};
use serde_json::Value;

use generator::Generator;

/// The most generators of a load.
const GENERATORS_MAX: usize = 64;

/// The name of a summary in a directory.
const SUMMARY: &str = "summary.json";

/// Merge what several generators of one load wrote, as if there had been one.
///
/// Each DIR is a folder that `load --out` or `replay play --out` wrote, with its summary.json. The generators started
/// at one agreed moment, each by its own clock. All times become times of the clock of the first DIR or, with
/// --start-ns, of the clock by which they started then; the start times in the folders connect the clocks. Intervals,
/// timeout, transport and model must be the same.
///
/// Histograms are added, interval by interval and bin by bin (latency.hlog). Counts of intervals and of bins of answers
/// are added; busy_ns is the busiest generator's. Rows of clients are joined; for a client that several generators had,
/// counts are added, and p50_ns and p99_ns are the larger values. Rows of queries, if all folders have them, are sorted
/// by due_ns. The summary, as an event and in summary.json, is like that of `load`: counts are added, distributions
/// come from the added histograms, and busy_share and sending_ns are the largest values. Its `generators` list the dir,
/// sent, answered, unsent, busy_share, lag_p99_ns and real_time of each.
///
/// A file can have up to 4 GB, and all rows of queries are held in memory.
///
/// Exit codes: 0 merged, 2 bad input: files are missing, damaged, or do not belong together; 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: merge two generators that shared a load:\n  \
    dnsrig merge generator-1 generator-2 --out merged")]
pub struct Arguments {
    /// Folders that the generators wrote
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Existing folder for the merged files
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Start time of the generators, in nanoseconds of the clock that all times become [default: the start time in the
    /// first DIR]
    #[arg(long, value_name = "NS", value_parser = clap::value_parser!(i64).range(0..generator::TIME_NS_MAX))]
    start_ns: Option<i64>,
    /// Print JSON lines even on a terminal
    #[arg(long)]
    json: bool,
}

/// Reads all, and writes it put together.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { dirs, out, start_ns, json } = arguments;
    if dirs.len() > GENERATORS_MAX {
        let sentence = format!("{} folders are given, but at most {GENERATORS_MAX} are possible", dirs.len());
        return Err(Failure::bad_input(sentence, "merge some of them first"));
    }
    let place = fs::canonicalize(out).map_err(|error| output::unwritten(out, &error))?;
    if let Some(dir) = dirs.iter().find(|dir| fs::canonicalize(dir).is_ok_and(|dir| dir == place)) {
        let sentence = format!("--out is {}, which is also an input", dir.display());
        return Err(Failure::bad_input(sentence, "give --out another folder"));
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
        events::say(format!("{} generators merged into {}\n", generators.len(), out.display()));
    }
    summary.insert("event".into(), "summary".into());
    let path = out.join(SUMMARY);
    let text = format!("{}\n", Value::Object(summary));
    output::write(&path, text).map_err(|error| output::unwritten(&path, &error))?;
    Ok(ExitCode::SUCCESS)
}

/// The directories differ, but links in them may lead to the same file.
fn refuse_same_files(dirs: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let names = rows::ADDED.iter().chain([&rows::QUERIES, &latency_log::NAME, &SUMMARY]);
    names.copied().try_for_each(|name| {
        let read: Vec<_> = dirs.iter().map(|dir| dir.join(name)).collect();
        let read: Vec<_> = read.iter().map(|path| Some(path.as_path())).collect();
        output::check(&[Some(&out.join(name))], &read)
    })
}
