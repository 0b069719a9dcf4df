//! The rows of `probe follow`: what was seen of each zone, written when it has ended.

use std::{path::Path, sync::Arc};

use arrow_array::{BooleanArray, Int64Array, RecordBatch, UInt32Array, builder::StringBuilder};
use arrow_schema::{DataType, Field, Schema};

use super::core::{Row, State};
use crate::{
    base::rows::{RowFile, RowsError},
    dns::zone_list::Zones,
};

const BATCH_ROWS: usize = 65_536;

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("zone", DataType::Utf8, false),
        Field::new("before_ns", DataType::Int64, true),
        Field::new("seen_ns", DataType::Int64, false),
        Field::new("served", DataType::Boolean, false),
        Field::new("serial", DataType::UInt32, true),
    ]))
}

/// Writes all rows to `path`.
pub fn write(path: &Path, zones: &Zones, rows: &[Row]) -> Result<(), RowsError> {
    let schema = schema();
    let mut file = RowFile::create(path, &schema)?;
    for part in rows.chunks(BATCH_ROWS) {
        let mut names = StringBuilder::new();
        part.iter().for_each(|row| names.append_value(zones.name(row.zone).to_string()));
        let serial = |row: &Row| match row.state {
            State::Served { serial } => Some(serial),
            State::Unserved => None,
        };
        let columns: Vec<arrow_array::ArrayRef> = vec![
            Arc::new(names.finish()),
            Arc::new(part.iter().map(|row| row.before_ns).collect::<Int64Array>()),
            Arc::new(part.iter().map(|row| Some(row.seen_ns)).collect::<Int64Array>()),
            Arc::new(part.iter().map(|row| Some(row.state != State::Unserved)).collect::<BooleanArray>()),
            Arc::new(part.iter().map(serial).collect::<UInt32Array>()),
        ];
        file.write(&RecordBatch::try_new(schema.clone(), columns).expect("the columns are made after the schema"))?;
    }
    file.finish()
}
