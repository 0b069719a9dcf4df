//! `serve`: the other side of a measurement, made of known truth.
//!
//! Each kind of server is a service in the one [`shell`] of sockets, threads and connections.

pub mod echo;
pub mod error;
pub mod shell;
pub mod world;
pub mod zones;

use std::process::ExitCode;

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
