//! `changes.arrow`: a row for each change, written when all were made.

use std::{path::Path, sync::Arc};

use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt32Array, builder::StringBuilder,
    types::Int32Type,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::Kind;
use crate::base::rows::{RowFile, RowsError, dictionary_field};

const BATCH_ROWS: usize = 65_536;

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

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("zone", DataType::Utf8, false),
        dictionary_field("kind"),
        Field::new("due_ns", DataType::Int64, false),
        Field::new("sent_ns", DataType::Int64, false),
        Field::new("accepted_ns", DataType::Int64, true),
        Field::new("rcode", DataType::UInt8, true),
        Field::new("serial", DataType::UInt32, true),
    ]))
}

/// Writes all rows to `path`.
pub fn write(path: &Path, mut rows: impl Iterator<Item = Row>) -> Result<(), RowsError> {
    let schema = schema();
    let mut file = RowFile::create(path, &schema)?;
    let kinds = Arc::new(StringArray::from(KINDS.to_vec()));
    loop {
        let some: Vec<Row> = rows.by_ref().take(BATCH_ROWS).collect();
        if some.is_empty() {
            return file.finish();
        }
        file.write(&batch(&schema, &kinds, &some).expect("the columns are made after the schema"))?;
    }
}

fn batch(schema: &Arc<Schema>, kinds: &Arc<StringArray>, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let mut zones = StringBuilder::new();
    rows.iter().for_each(|row| zones.append_value(&row.zone));
    let keys = rows.iter().map(|row| match row.kind {
        Kind::Remove => 0,
        Kind::Add => 1,
        Kind::Touch => 2,
    });
    let times = |time: fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(time).collect::<Int64Array>()) };
    RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(zones.finish()),
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys.collect(), kinds.clone())?),
            times(|row| Some(row.due_ns)),
            times(|row| Some(row.sent_ns)),
            times(|row| row.accepted_ns),
            Arc::new(rows.iter().map(|row| row.rcode).collect::<UInt8Array>()),
            Arc::new(rows.iter().map(|row| row.serial).collect::<UInt32Array>()),
        ],
    )
}
