//! DNS as octets: names, records, queries, signatures, transfers and zone files, and what generated datasets agree on.
//!
//! No socket and no clock. What walks over received messages is written by hand, because it is on the hot path; the
//! rest uses the `domain` crate.

pub mod catalog;
pub mod churn;
pub mod dataset;
mod name;
pub mod query;
pub mod record;
pub mod soa;
#[cfg(test)]
pub mod testing;
pub mod tld_names;
pub mod tsig;
pub mod update;
pub mod xfr;
pub mod zone_arguments;
pub mod zone_list;
pub mod zonefile;
pub mod zonemd;
