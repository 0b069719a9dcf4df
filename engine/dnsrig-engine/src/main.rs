//! `dnsrig-engine`: reads the command line and runs one subcommand.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dnsrig_engine::{enter, failure::Failure, generate, probe, watch};

/// The instruments of dnsrig, a test rig for DNS.
///
/// Standard output is data: JSON lines, one event a line. Everything meant for people goes to standard error.
/// Timestamps are CLOCK_MONOTONIC, in nanoseconds; the `started` and `anchor` events relate them to wall time.
#[derive(Parser)]
#[command(name = "dnsrig-engine", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the data of an experiment: zones of any number or size, from a seed
    Generate(generate::Arguments),
    /// Sample what the operating system counts: CPU, memory, pressure, sockets, links
    Watch(watch::Arguments),
    /// See when a server answers for each of many zones: readiness, progress, propagation
    Probe(probe::Arguments),
    /// Start a command on a host (what the rig does for every server)
    #[command(hide = true)]
    Enter(enter::Arguments),
}

fn main() -> ExitCode {
    let (name, result) = match CommandLine::parse().command {
        Command::Generate(arguments) => ("generate", generate::run(&arguments)),
        Command::Watch(arguments) => ("watch", watch::run(&arguments)),
        Command::Probe(arguments) => ("probe", probe::run(&arguments)),
        Command::Enter(arguments) => ("enter", enter::run(&arguments).map(|never| match never {})),
    };
    result.unwrap_or_else(|failure| report(name, &failure))
}

/// Tells a person what went wrong and what to do, and gives the exit code for it.
fn report(name: &str, failure: &Failure) -> ExitCode {
    eprintln!("dnsrig-engine {name}: {}", failure.sentence);
    eprintln!("hint: {}", failure.hint);
    ExitCode::from(failure.exit_code)
}
