//! DNS as bytes: names, records, queries, signatures and transfers.
//!
//! No file, no socket and no clock. Messages are read and written by hand, because that is on the hot path. The crate
//! `domain` knows types, classes and names as text; the tests compare messages with it as another implementation.
//!
//! There is one reader and one writer. A message is read with its [`header`], its [question](query::Question), the
//! [walk](record::Walk) over its records, [`name`]s and the [OPT record](edns::Opt), and written with [`writer`]. What
//! one subcommand alone wants of a message is decided there, with these parts: `load::answer`, `serve::world::query`,
//! `serve::zones::query`, `transfer::notify` and `replay::message`. All that reads bytes from elsewhere has tests that
//! give it bytes of any kind.

pub mod catalog;
pub mod dnssec;
pub mod edns;
pub mod framing;
pub mod header;
pub mod name;
pub mod query;
pub mod rdata;
pub mod record;
pub mod serial;
pub mod soa;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tsig;
pub mod update;
pub mod writer;
pub mod xfr;
pub mod zonemd;
pub mod zones;
