//! `dnsrig-engine`: reads the command line and runs one subcommand.

use std::{env, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};
use dnsrig_core::{events, failure::Failure, old_spellings};
use dnsrig_engine::{
    change, clock, enter, generate, interrogate, link, load, merge, probe, propagation, replay, serve, transfer, watch,
};

/// The measuring tools of dnsrig, a test rig for DNS.
///
/// Standard output is data: JSON lines, one event per line. Everything for people goes to standard error. Timestamps
/// are CLOCK_MONOTONIC, in nanoseconds; the `started` and `anchor` events relate them to wall time.
#[derive(Parser)]
#[command(name = "dnsrig-engine", version = env!("DNSRIG_VERSION"), max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

// What each one does is said once, at its arguments: clap prints it from there.
#[derive(Subcommand)]
enum Command {
    Generate(generate::Arguments),
    Watch(watch::Arguments),
    Probe(probe::Arguments),
    Propagation(propagation::Arguments),
    Change(change::Arguments),
    Load(load::Arguments),
    CompareAnswers(load::compare::Arguments),
    Merge(merge::Arguments),
    Replay(Replay),
    Transfer(transfer::Arguments),
    Interrogate(interrogate::Arguments),
    Serve(serve::Arguments),
    Link(link::Arguments),
    Clock(clock::Arguments),
    #[command(hide = true)]
    Enter(enter::Arguments),
}

/// Replay the captured traffic of clients against a server.
#[derive(clap::Args)]
struct Replay {
    #[command(subcommand)]
    step: ReplayStep,
}

/// From a capture to a server; what its steps have in common is the stream file.
#[derive(Subcommand)]
enum ReplayStep {
    Prepare(replay::prepare::Arguments),
    Describe(replay::describe::Arguments),
    Play(load::play::Arguments),
    Compare(replay::compare::Arguments),
}

fn main() -> ExitCode {
    let arguments = old_spellings::renew(env::args_os());
    let (name, result) = match CommandLine::parse_from(arguments).command {
        Command::Generate(arguments) => ("generate", generate::run(&arguments)),
        Command::Watch(arguments) => ("watch", watch::run(&arguments)),
        Command::Probe(arguments) => ("probe", probe::run(&arguments)),
        Command::Propagation(arguments) => ("propagation", propagation::run(&arguments)),
        Command::Change(arguments) => ("change", change::run(&arguments)),
        Command::Load(arguments) => ("load", load::run(&arguments)),
        Command::CompareAnswers(arguments) => ("compare-answers", load::compare::run(&arguments)),
        Command::Merge(arguments) => ("merge", merge::run(&arguments)),
        Command::Replay(Replay { step: ReplayStep::Prepare(arguments) }) => {
            ("replay prepare", replay::prepare::run(&arguments))
        }
        Command::Replay(Replay { step: ReplayStep::Describe(arguments) }) => {
            ("replay describe", replay::describe::run(&arguments))
        }
        Command::Replay(Replay { step: ReplayStep::Compare(arguments) }) => {
            ("replay compare", replay::compare::run(&arguments))
        }
        Command::Replay(Replay { step: ReplayStep::Play(arguments) }) => ("replay play", load::play::run(&arguments)),
        Command::Transfer(arguments) => ("transfer", transfer::run(&arguments)),
        Command::Interrogate(arguments) => ("interrogate", interrogate::run(&arguments)),
        Command::Serve(arguments) => ("serve", serve::run(&arguments)),
        Command::Link(arguments) => ("link", link::run(&arguments)),
        Command::Clock(arguments) => ("clock", clock::run(&arguments)),
        Command::Enter(arguments) => ("enter", enter::run(&arguments).map(|never| match never {})),
    };
    events::finish();
    result.unwrap_or_else(|failure| report(name, &failure))
}

/// Reports a failure to a person, and returns its exit code.
fn report(name: &str, failure: &Failure) -> ExitCode {
    eprintln!("{} {name}: {}", program(), failure.sentence);
    eprintln!("hint: {}", failure.hint);
    ExitCode::from(failure.exit_code)
}

/// The name by which the program was started, as clap prints it: the rig starts it as `dnsrig`.
fn program() -> String {
    let started = env::args_os().next().unwrap_or_default();
    Path::new(&started).file_name().unwrap_or("dnsrig-engine".as_ref()).to_string_lossy().into_owned()
}
