//! `clock`: the offset between the clocks of two machines.
//!
//! Exchanges as in NTP (RFC 5905 §8), over one TCP connection for each peer, so that a port which ssh forwards is
//! enough. [`exchange`] computes an offset from four times, and a line through many of them: it has no socket and no
//! clock. [`message`] is the format on the wire, [`serve`] the one side, [`compare`] the other, and [`peer`] its
//! connection.

mod compare;
mod exchange;
mod message;
mod peer;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;
use dnsrig_core::failure::Failure;

/// Measure the offset between the clocks of two machines, and its error
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    Serve(serve::Arguments),
    Compare(compare::Arguments),
}

/// Answers or asks until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.side {
        Side::Serve(arguments) => serve::run(arguments),
        Side::Compare(arguments) => compare::run(arguments),
    }
}
