//! `transfer`: the transfer side of one or many secondaries.

pub mod journal;
pub mod papers;
pub mod schedule;
pub mod tally;
pub mod wire;
