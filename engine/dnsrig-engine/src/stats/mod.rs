//! Statistics that more than one subcommand needs: no I/O, no clock.

pub mod format;
pub mod histogram;
pub mod rcodes;
pub mod spread;
