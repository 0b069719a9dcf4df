//! `zones.arrow`: a row for each zone, written when the probe has ended.

use std::path::Path;

use super::core::Core;
use crate::{
    base::{
        failure::Failure,
        rows::{self, Columns},
    },
    dns::zone_list::Zones,
};

/// The values of the column `outcome`.
const OUTCOMES: [&str; 2] = ["unseen", "seen"];

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, core: &Core) -> Result<(), Failure> {
    let columns = Columns::<u32>::default()
        .value("zone", |zone| zones.name(*zone).to_string())
        .optional("last_unseen_ns", |zone| core.zone(*zone).last_unseen_ns)
        .optional("seen_ns", |zone| core.zone(*zone).seen.map(|(seen_ns, _)| seen_ns))
        .optional("serial", |zone| core.zone(*zone).seen.map(|(_, serial)| serial))
        .value("polls", |zone| core.zone(*zone).polls)
        .word("outcome", OUTCOMES, |zone| usize::from(core.zone(*zone).seen.is_some()));
    rows::write(path, columns, 0..zones.count())
}
