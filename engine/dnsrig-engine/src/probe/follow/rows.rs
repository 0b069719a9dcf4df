//! The rows of `probe follow`: what was seen of each zone, written when it has ended.

use std::path::Path;

use super::core::{Row, State};
use crate::{
    base::{
        failure::Failure,
        rows::{self, Columns},
    },
    dns::zone_list::Zones,
};

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, rows: &[Row]) -> Result<(), Failure> {
    let serial = |row: &&Row| match row.state {
        State::Served { serial } => Some(serial),
        State::Unserved => None,
    };
    let columns = Columns::<&Row>::default()
        .value("zone", |row| zones.name(row.zone).to_string())
        .optional("before_ns", |row| row.before_ns)
        .value("seen_ns", |row| row.seen_ns)
        .value("served", |row| row.state != State::Unserved)
        .optional("serial", serial);
    rows::write(path, columns, rows)
}
