//! DNS as bytes: names, records, queries, signatures and transfers, and what generated datasets agree on.
//!
//! No socket and no clock. What walks over received messages is written by hand, because it is on the hot path; the
//! rest uses the `domain` crate.
//!
//! All that reads bytes from elsewhere is here, with tests that give it bytes of any kind: [`asked`], [`name`],
//! [`record`], [`rdata`], [`soa`], [`stream`], [`tsig`], [`update`] and [`xfr`]; but for what one subcommand alone
//! reads, with the walks of this folder: `load::answer`, `serve::world::query`, `serve::zones::query` and
//! `transfer::notify`.

pub mod asked;
pub mod cache;
pub mod catalog;
pub mod churn;
pub mod dataset;
pub mod dnssec;
pub mod header;
pub mod name;
pub mod name_table;
pub mod query;
pub mod query_options;
mod rdata;
pub mod record;
pub mod serial;
pub mod soa;
pub mod stream;
#[cfg(test)]
pub mod testing;
pub mod text_file;
pub mod tld_names;
pub mod tsig;
pub mod update;
pub mod xfr;
pub mod zone_arguments;
pub mod zone_list;
pub mod zonemd;
