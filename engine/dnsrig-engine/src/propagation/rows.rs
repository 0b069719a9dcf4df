//! `propagation.arrow`: a row for each change and secondary, written when the measurement has ended.

use std::{net::SocketAddr, path::Path, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::core::{Change, Core, Sighting};
use crate::{
    base::rows::{RowFile, RowsError},
    dns::zone_list::Zones,
};

const BATCH_ROWS: usize = 65_536;

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("change", DataType::UInt32, false),
        Field::new("zone", DataType::Utf8, false),
        Field::new("serial", DataType::UInt32, false),
        Field::new("secondary", DataType::Utf8, false),
        Field::new("due_ns", DataType::Int64, false),
        Field::new("changed_ns", DataType::Int64, false),
        Field::new("accepted_ns", DataType::Int64, true),
        Field::new("rcode", DataType::UInt8, true),
        Field::new("last_unseen_ns", DataType::Int64, true),
        Field::new("seen_ns", DataType::Int64, true),
    ]))
}

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, secondaries: &[SocketAddr], core: &Core) -> Result<(), RowsError> {
    let schema = schema();
    let mut file = RowFile::create(path, &schema)?;
    let rows: Vec<(usize, usize)> =
        (0..core.changes().len()).flat_map(|change| (0..secondaries.len()).map(move |s| (change, s))).collect();
    for part in rows.chunks(BATCH_ROWS) {
        file.write(&batch(&schema, part, zones, secondaries, core).expect("the columns are made after the schema"))?;
    }
    file.finish()
}

fn batch(
    schema: &Arc<Schema>,
    rows: &[(usize, usize)],
    zones: &Zones,
    secondaries: &[SocketAddr],
    core: &Core,
) -> Result<RecordBatch, ArrowError> {
    let changes = || rows.iter().map(|(number, _)| &core.changes()[*number]);
    let times = |of: fn(&Change) -> Option<i64>| Arc::new(changes().map(of).collect::<Int64Array>());
    let sightings = |of: fn(&Sighting) -> Option<i64>| {
        Arc::new(
            rows.iter().map(|(number, secondary)| of(&core.sightings(*number)[*secondary])).collect::<Int64Array>(),
        )
    };
    let names = changes().map(|change| Some(zones.name(change.zone).to_string()));
    let addresses = rows.iter().map(|(_, secondary)| Some(secondaries[*secondary].to_string()));
    RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(rows.iter().map(|(number, _)| Some(*number as u32)).collect::<UInt32Array>()),
            Arc::new(names.collect::<StringArray>()),
            Arc::new(changes().map(|change| Some(change.serial)).collect::<UInt32Array>()),
            Arc::new(addresses.collect::<StringArray>()),
            times(|change| Some(change.due_ns)),
            times(|change| Some(change.sent_ns)),
            times(|change| change.accepted_ns()),
            Arc::new(changes().map(|change| change.answered.map(|(_, rcode)| rcode)).collect::<UInt8Array>()),
            sightings(|sighting| sighting.last_unseen_ns),
            sightings(|sighting| sighting.seen_ns),
        ],
    )
}
