//! DNS as bytes: names, records, queries, signatures and transfers.
//!
//! No socket and no clock. What walks over received messages is written by hand, because it is on the hot path; the
//! rest uses the `domain` crate.
//!
//! All that reads bytes from elsewhere is here, with tests that give it bytes of any kind: [`asked`], [`name`],
//! [`record`], [`rdata`], [`soa`], [`tsig`], [`update`] and [`xfr`]; but for what one subcommand alone
//! reads, with the walks of this folder: `load::answer`, `serve::world::query`, `serve::zones::query` and
//! `transfer::notify`.

pub mod catalog;
pub mod dnssec;
pub mod edns;
pub mod header;
pub mod name;
pub mod query;
mod rdata;
pub mod record;
pub mod serial;
pub mod soa;
#[cfg(test)]
pub mod testing;
pub mod tsig;
pub mod update;
pub mod writer;
pub mod xfr;
pub mod zonemd;
pub mod zones;
