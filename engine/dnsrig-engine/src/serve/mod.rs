//! `serve`: servers with known behaviour, to test instruments against.
//!
//! Each kind of server ([`echo`], [`zones`], [`world`]) is a service in one [`shell`] of sockets, threads and
//! connections.

pub mod echo;
mod failure;
mod shell;
pub mod world;
pub mod zones;

use std::process::ExitCode;

use clap::Subcommand;
use dnsrig_core::failure::Failure;

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
