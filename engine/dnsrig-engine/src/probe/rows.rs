//! `zones.arrow`: a row for each zone, written when the probe has ended.

use std::{path::Path, sync::Arc};

use arrow_array::{
    DictionaryArray, Int64Array, RecordBatch, StringArray, UInt32Array, builder::StringBuilder, types::Int32Type,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::core::Core;
use crate::{
    base::rows::{RowFile, RowsError, dictionary_field},
    dns::zone_list::Zones,
};

/// So many rows go into a batch: 65,536 rows of all columns are about 4 MB.
const BATCH_ROWS: u32 = 65_536;

/// The values of the column `outcome`.
const OUTCOMES: [&str; 2] = ["unseen", "seen"];

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("zone", DataType::Utf8, false),
        Field::new("last_unseen_ns", DataType::Int64, true),
        Field::new("seen_ns", DataType::Int64, true),
        Field::new("serial", DataType::UInt32, true),
        Field::new("polls", DataType::UInt32, false),
        dictionary_field("outcome"),
    ]))
}

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, core: &Core) -> Result<(), RowsError> {
    let schema = schema();
    let mut file = RowFile::create(path, &schema)?;
    let outcomes = Arc::new(StringArray::from(OUTCOMES.to_vec()));
    for first in (0..zones.count()).step_by(BATCH_ROWS as usize) {
        let range = first..zones.count().min(first.saturating_add(BATCH_ROWS));
        let batch = batch(&schema, &outcomes, range, zones, core);
        file.write(&batch.expect("the columns are made after the schema"))?;
    }
    file.finish()
}

fn batch(
    schema: &Arc<Schema>,
    outcomes: &Arc<StringArray>,
    range: std::ops::Range<u32>,
    zones: &Zones,
    core: &Core,
) -> Result<RecordBatch, ArrowError> {
    let mut names = StringBuilder::new();
    range.clone().for_each(|zone| names.append_value(zones.name(zone).to_string()));
    let states: Vec<_> = range.map(|zone| core.zone(zone)).collect();
    let outcome_keys = states.iter().map(|state| i32::from(state.seen.is_some()));
    let outcome = DictionaryArray::<Int32Type>::try_new(outcome_keys.collect(), outcomes.clone())?;
    RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(names.finish()),
            Arc::new(states.iter().map(|state| state.last_unseen_ns).collect::<Int64Array>()),
            Arc::new(states.iter().map(|state| state.seen.map(|(seen_ns, _)| seen_ns)).collect::<Int64Array>()),
            Arc::new(states.iter().map(|state| state.seen.map(|(_, serial)| serial)).collect::<UInt32Array>()),
            Arc::new(states.iter().map(|state| Some(state.polls)).collect::<UInt32Array>()),
            Arc::new(outcome),
        ],
    )
}
