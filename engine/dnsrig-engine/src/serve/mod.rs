//! `serve`: the other side of a measurement, made of known truth.
//!
//! Each kind of server is a service in the one [`shell`] of sockets, threads and connections.

pub mod echo;
pub mod shell;
pub mod world;
pub mod zones;

use std::{io, process::ExitCode};

use clap::Subcommand;

use crate::base::failure::Failure;

/// Run a server with known behaviour, to test instruments against
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    Echo(Box<echo::Arguments>),
    Zones(Box<zones::Arguments>),
    World(Box<world::Arguments>),
}

/// Serves until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.kind {
        Kind::Echo(arguments) => echo::run(arguments),
        Kind::Zones(arguments) => zones::run(arguments),
        Kind::World(arguments) => world::run(arguments),
    }
}

/// Arguments that do not go together.
fn bad_arguments(sentence: &str) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this server, such as `dnsrig serve zones --help`")
}

/// A system call that should always work failed.
fn system_failed(what: &str, error: impl Into<io::Error>) -> Failure {
    let hint = "check memory, and that open files are not at their limit (ulimit -n)";
    Failure::new(format!("cannot {what}: {}", error.into()), hint)
}

/// A thread cannot answer any longer.
fn answering_failed(error: io::Error) -> Failure {
    system_failed("go on answering", error)
}
