//! `serve`: the other side of a measurement, made of known truth.
//!
//! Each kind of server is a module; what several can use stands beside them: [`sockets`],
//! [`table`] and [`tls`] for streams.

pub mod echo;
pub mod sockets;
pub mod table;
pub mod tls;

pub use crate::stream::framing;

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

/// Be a server whose behaviour is known: what an instrument is tested against.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    Echo(echo::Arguments),
}

/// Serves until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.kind {
        Kind::Echo(arguments) => echo::run(arguments),
    }
}
