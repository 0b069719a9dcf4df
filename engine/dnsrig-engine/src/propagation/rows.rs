//! `propagation.arrow`: a row for each change and secondary, written when the measurement has ended.

use std::{net::SocketAddr, path::Path};

use super::core::{Change, Core, Sighting};
use crate::{
    base::{
        failure::Failure,
        rows::{self, Columns},
    },
    dns::zone_list::Zones,
};

/// One change, with its number, as one secondary saw it.
struct Row<'a> {
    number: usize,
    change: &'a Change,
    secondary: SocketAddr,
    sighting: &'a Sighting,
}

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, secondaries: &[SocketAddr], core: &Core) -> Result<(), Failure> {
    let columns = Columns::<Row>::default()
        .value("change", |row| row.number as u32)
        .value("zone", |row| zones.name(row.change.zone).to_string())
        .value("serial", |row| row.change.serial)
        .value("secondary", |row| row.secondary.to_string())
        .value("due_ns", |row| row.change.due_ns)
        .value("changed_ns", |row| row.change.sent_ns)
        .optional("accepted_ns", |row| row.change.accepted_ns())
        .optional("rcode", |row| row.change.answered.map(|(_, rcode)| rcode))
        .optional("last_unseen_ns", |row| row.sighting.last_unseen_ns)
        .optional("seen_ns", |row| row.sighting.seen_ns);
    let of_change = |(number, change)| {
        let sightings = secondaries.iter().zip(core.sightings(number));
        sightings.map(move |(secondary, sighting)| Row { number, change, secondary: *secondary, sighting })
    };
    rows::write(path, columns, core.changes().iter().enumerate().flat_map(of_change))
}
