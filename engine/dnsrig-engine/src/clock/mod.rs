//! `clock`: how far the clocks of two machines lie apart.
//!
//! Exchanges as in NTP (RFC 5905 §8), over one TCP connection a peer, so that a port which ssh forwards will do.
//! [`exchange`] says what four times tell of an offset, [`line`] puts bursts together: both know no socket and no
//! clock. [`message`] is what goes over the wire, [`serve`] the one side and [`compare`] the other.

mod compare;
mod exchange;
mod line;
mod message;
mod peer;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

use crate::base::failure::Failure;

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
