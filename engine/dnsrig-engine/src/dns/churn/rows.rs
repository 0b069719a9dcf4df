//! `changes.arrow`: a row for each change, written when all were made.

use std::path::Path;

use super::Kind;
use crate::base::{
    failure::Failure,
    rows::{self, Columns},
};

/// The values of the column `kind`.
const KINDS: [&str; 3] = ["remove", "add", "touch"];

/// One change.
#[derive(Clone, Debug)]
pub struct Row {
    /// The member, or the zone whose records change.
    pub zone: String,
    pub kind: Kind,
    pub due_ns: i64,
    pub sent_ns: i64,
    /// When the primary had made it; what a primary does by itself is due, sent and made at once.
    pub accepted_ns: Option<i64>,
    pub rcode: Option<u8>,
    /// The serial that it gave to the catalog, or to the zone, as far as that is known.
    pub serial: Option<u32>,
}

/// Writes all rows to `path`.
pub fn write(path: &Path, rows: impl Iterator<Item = Row>) -> Result<(), Failure> {
    let kind = |row: &Row| match row.kind {
        Kind::Remove => 0,
        Kind::Add => 1,
        Kind::Touch => 2,
    };
    let columns = Columns::<Row>::default()
        .value("zone", |row| row.zone.clone())
        .word("kind", KINDS, kind)
        .value("due_ns", |row| row.due_ns)
        .value("sent_ns", |row| row.sent_ns)
        .optional("accepted_ns", |row| row.accepted_ns)
        .optional("rcode", |row| row.rcode)
        .optional("serial", |row| row.serial);
    rows::write(path, columns, rows)
}
